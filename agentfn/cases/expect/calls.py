"""Compares the calls that were asked for with those that were expected."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from agentfn.cases.expect.assign import best_matching, ordered_matching
from agentfn.cases.expect.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentfn.cases.expect.expectations import Expectations, ExpectedCall
    from agentfn.cases.happened import HappenedCall

#: Ways to choose the steps of calls that belong together that are tried.
_MOST_WAYS = 2000


def call_failures(expect: Expectations, calls: Sequence[HappenedCall]) -> Iterator[Failure]:
    """Yield in what the calls differ from what is expected of them: missing ones, their number, order, others."""
    slots = [entry for entry in expect.calls for _ in range(entry.least)]
    taken = _assigned(expect, slots, calls)
    missing = [index for index in range(len(slots)) if index not in taken]
    if missing and expect.order != "any" and not _missing_without_order(slots, calls):
        yield _wrong_order(expect, slots, calls)
    else:
        spare = [call for index, call in enumerate(calls) if index not in taken.values()]
        for index in missing:
            yield _missing(slots[index], calls, spare, slots)
    for entry in expect.calls:
        if entry.times is not None:
            yield from _count(entry, calls)
    matched = set(taken.values())
    if expect.nothing_else:
        repeated = [entry for entry in expect.calls if entry.times is not None]
        for index, call in enumerate(calls):
            if index not in matched and not any(not entry.differences(call) for entry in repeated):
                yield Failure(
                    "order" if expect.order == "exact" else "nothing_else",
                    f"{call.function} was asked for, and nothing but the expected calls may be",
                    expected=_listed(expect.calls) or "no call",
                    actual=f"{call}  [{call.id}, turn {call.turn}, step {call.step}]",
                    line=expect.line,
                )
    for entry in expect.never:
        for call in calls:
            if not entry.differences(call):
                yield Failure(
                    "never",
                    f"{entry.name} was asked for, and must never be",
                    expected=f"never {entry}",
                    actual=f"{call}  [{call.id}, turn {call.turn}, step {call.step}]",
                    line=entry.line,
                )


def _fits(slots: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> list[list[bool]]:
    return [[not slot.differences(call) for call in calls] for slot in slots]


def _assigned(expect: Expectations, slots: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> dict[int, int]:
    """Return slot → call for as many slots as possible, calls that belong together in one step."""
    fits = _fits(slots, calls)
    best = best_matching if expect.order == "any" else ordered_matching
    groups = sorted({slot.group for slot in slots if slot.group is not None})
    steps = sorted({(call.turn, call.step) for call in calls})
    if not groups or not steps:
        return best(fits)
    found: dict[int, int] = {}
    for number, chosen in enumerate(product(steps, repeat=len(groups))):
        where = dict(zip(groups, chosen, strict=True))
        narrowed = [
            [
                good and (slot.group is None or (c.turn, c.step) == where[slot.group])
                for good, c in zip(row, calls, strict=True)
            ]
            for slot, row in zip(slots, fits, strict=True)
        ]
        tried = best(narrowed)
        if len(tried) > len(found):
            found = tried
        if len(found) == len(slots) or number >= _MOST_WAYS:
            break
    return found


def _missing_without_order(slots: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> bool:
    return len(best_matching(_fits(slots, calls))) < len(slots)


def _wrong_order(expect: Expectations, slots: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> Failure:
    return Failure(
        "order",
        "the calls came in another order",
        expected=" → ".join(slot.name for slot in slots),
        actual=" → ".join(call.function for call in calls),
        line=expect.line,
    )


def _missing(
    slot: ExpectedCall,
    calls: Sequence[HappenedCall],
    spare: Sequence[HappenedCall],
    slots: Sequence[ExpectedCall],
) -> Failure:
    """Say what is missing, with the call that came nearest: a spare one of that function, else any of it."""
    same = [call for call in spare if call.function == slot.name] or [c for c in calls if c.function == slot.name]
    if not same:
        asked = ", ".join(str(call) for call in calls)
        return Failure(
            "calls", f"{slot.name} was not asked for", expected=str(slot), actual=asked or "no call", line=slot.line
        )
    nearest = min(same, key=lambda call: len(slot.differences(call)))
    differences = tuple(slot.differences(nearest))
    where = f"{nearest}  [{nearest.id}, turn {nearest.turn}, step {nearest.step}]"
    if differences:
        told = f"{slot.name} was not asked for as expected"
        return Failure("calls", told, str(slot), nearest=where, differences=differences, line=slot.line)
    if slot.group is not None:
        names = ", ".join(other.name for other in slots if other.group == slot.group)
        told = f"{names} were not asked for in the same step"
        steps = ", ".join(f"{call.function} in turn {call.turn}, step {call.step}" for call in calls)
        return Failure("calls", told, str(slot), steps, line=slot.line)
    wanted = sum(other.name == slot.name for other in slots)
    told = (
        f"{slot.name} was asked for {len([c for c in calls if c.function == slot.name])} times, expected are {wanted}"
    )
    return Failure("calls", told, str(slot), ", ".join(map(str, same)), line=slot.line)


def _count(entry: ExpectedCall, calls: Sequence[HappenedCall]) -> Iterator[Failure]:
    matching = [call for call in calls if not entry.differences(call)]
    if entry.times is not None and not entry.times.holds(len(matching)) and len(matching) >= entry.least:
        yield Failure(
            "times",
            f"{entry.name} was asked for {len(matching)} times",
            expected=f"{entry.times} times {entry._replace(times=None)}",
            actual=", ".join(map(str, matching)) or "no such call",
            line=entry.line,
        )


def _listed(entries: Sequence[ExpectedCall]) -> str:
    return ", ".join(map(str, entries))
