"""Compares the calls that were asked for with those that were expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.cases.expect.assign import (
    Block,
    TooManyWaysError,
    follow_exactly,
    grouped_matching,
    ordered_matching,
)
from agentfn.cases.expect.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentfn.cases.expect.expectations import Expectations, ExpectedCall, Order
    from agentfn.cases.happened import HappenedCall


def call_failures(expect: Expectations, calls: Sequence[HappenedCall]) -> Iterator[Failure]:
    """Yield in what the calls differ from what is expected of them: missing ones, their number, order, others."""
    if expect.order != "exact":
        yield from _differing(expect, calls)
    elif not _are_exactly(expect.calls, calls):
        yield from list(_differing(expect, calls)) or [_wrong_order(expect, calls)]
    for entry in expect.never:
        for call in calls:
            if not entry.differences(call):
                yield Failure(
                    "never",
                    f"{entry.name} was asked for, and must never be",
                    expected=f"never {entry}",
                    actual=_placed(call),
                    line=entry.line,
                )


def _differing(expect: Expectations, calls: Sequence[HappenedCall]) -> Iterator[Failure]:
    slots = [entry for entry in expect.calls for _ in range(entry.least)]
    fits = _fits(slots, calls)
    try:
        taken = _assigned(expect.order, slots, fits, calls)
        in_any_order = taken if len(taken) == len(slots) else _assigned("any", slots, fits, calls)
    except TooManyWaysError:
        told = "there are too many ways in which these calls could stand together; say more of each, or expect fewer"
        yield Failure("calls", told, _listed(expect.calls), line=expect.line)
        return
    missing = [slot for index, slot in enumerate(slots) if index not in taken]
    if len(taken) < len(in_any_order) == len(slots):
        yield _wrong_order(expect, calls)
    else:
        spare = [call for index, call in enumerate(calls) if index not in taken.values()]
        yield from _all_missing(missing, calls, spare, slots)
    for entry in expect.calls:
        if entry.times is not None:
            yield from _count(entry, calls)
    if expect.nothing_else:
        matched = set(taken.values())
        repeated = [entry for entry in expect.calls if entry.times is not None]
        for index, call in enumerate(calls):
            if index not in matched and not any(not entry.differences(call) for entry in repeated):
                yield Failure(
                    "order" if expect.order == "exact" else "nothing_else",
                    f"{call.function} was asked for, and nothing but the expected calls may be",
                    expected=_listed(expect.calls) or "no call",
                    actual=_placed(call),
                    line=expect.line,
                )


def _fits(slots: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> list[list[bool]]:
    return [[not slot.differences(call) for call in calls] for slot in slots]


def _steps(calls: Sequence[HappenedCall]) -> list[tuple[int, int]]:
    return [(call.turn, call.step) for call in calls]


def _blocks(slots: Sequence[ExpectedCall]) -> list[Block]:
    """Return the slots as blocks; those of one group stand side by side."""
    groups: dict[object, list[int]] = {}
    for index, slot in enumerate(slots):
        groups.setdefault(("single", index) if slot.group is None else slot.group, []).append(index)
    return [Block(tuple(rows)) for rows in groups.values()]


def _assigned(
    order: Order, slots: Sequence[ExpectedCall], fits: list[list[bool]], calls: Sequence[HappenedCall]
) -> dict[int, int]:
    """Return slot → call for as many slots as possible, calls that belong together in one step."""
    best = grouped_matching if order == "any" else ordered_matching
    return best(_blocks(slots), fits, _steps(calls))


def _are_exactly(entries: Sequence[ExpectedCall], calls: Sequence[HappenedCall]) -> bool:
    blocks = [_repeated(block, entries[block.rows[0]]) for block in _blocks(entries)]
    return follow_exactly(blocks, _fits(entries, calls), _steps(calls))


def _repeated(block: Block, entry: ExpectedCall) -> Block:
    if entry.times is None:
        return block
    return Block(block.rows, entry.least, None if entry.times.most is None else int(entry.times.most))


def _placed(call: HappenedCall) -> str:
    return f"{call}  [{call.id}, turn {call.turn}, step {call.step}]"


def _wrong_order(expect: Expectations, calls: Sequence[HappenedCall]) -> Failure:
    return Failure(
        "order",
        "the calls came in another order",
        expected=" → ".join(entry.name + (f" {entry.times} times" if entry.times else "") for entry in expect.calls),
        actual=" → ".join(call.function for call in calls),
        line=expect.line,
    )


def _all_missing(
    missing: Sequence[ExpectedCall],
    calls: Sequence[HappenedCall],
    spare: Sequence[HappenedCall],
    slots: Sequence[ExpectedCall],
) -> Iterator[Failure]:
    """Say what is missing. Calls of one group that are all there, but not together, are one failure."""
    for slot in missing:
        group = [other for other in slots if slot.group is not None and other.group == slot.group]
        if all(any(not other.differences(call) for call in calls) for other in group) and group:
            if slot is group[0]:
                told = f"{', '.join(other.name for other in group)} were not asked for in the same step"
                steps = ", ".join(f"{call.function} in turn {call.turn}, step {call.step}" for call in calls)
                yield Failure("calls", told, _listed(group), steps, line=slot.line)
        elif not group or all(slot.differences(call) for call in calls):
            others = [other for other in group if other is not slot]
            left = [call for call in spare if all(other.differences(call) for other in others)]
            yield _missing(slot, calls, left or spare, slots)


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
    if differences:
        told = f"{slot.name} was not asked for as expected"
        return Failure("calls", told, str(slot), nearest=_placed(nearest), differences=differences, line=slot.line)
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
