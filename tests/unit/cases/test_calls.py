"""Expected calls against those that came: order, number and steps, compared with trying every way."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfn.cases.expect.calls import call_failures
from agentfn.cases.expect.read import read_expectations
from agentfn.cases.happened import HappenedCall
from agentfn.definition.reader import Reader
from agentfn.document.read import Document

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentfn.cases.expect.failure import Failure


class Asked(NamedTuple):
    """A call that came: its function, whether it has `x`, and the step in which it was asked for."""

    name: str
    x: bool
    step: int


def failures(asked: Sequence[Asked], expect: dict[str, Any]) -> list[str]:
    return [failure.message for failure in failed(asked, expect)]


def failed(asked: Sequence[Asked], expect: dict[str, Any]) -> list[Failure]:
    reader = Reader(Document("expected", expect, {}, {}), {})
    calls = [
        HappenedCall(1, call.step, f"call_{n}", call.name, '{"x": 1}' if call.x else "{}", "answered")
        for n, call in enumerate(asked)
    ]
    read = read_expectations(reader, expect, (), None)
    assert not reader.findings
    return list(call_failures(read, calls))


ENTRY: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"name": "f"}, {"name": "f", "arguments": {"x": 1}}, {"name": "g"}]
)
TIMES = st.sampled_from([1, 2, [1, 2], {"min": 1}, [0, 1]])
BLOCKS = st.lists(
    st.tuples(ENTRY, TIMES).map(lambda pair: [{**pair[0], "times": pair[1]}])
    | ENTRY.map(lambda entry: [entry])
    | st.lists(ENTRY, min_size=2, max_size=3),
    min_size=1,
    max_size=3,
)
ASKED = st.lists(st.tuples(st.sampled_from("fg"), st.booleans(), st.booleans()), max_size=5).map(
    lambda calls: [Asked(name, x, sum(new for *_, new in calls[: at + 1])) for at, (name, x, _) in enumerate(calls)]
)


def _fits(call: Asked, entry: dict[str, Any]) -> bool:
    return call.name == entry["name"] and (call.x or "arguments" not in entry)


def _counts(entry: dict[str, Any], most: int) -> Iterator[int]:
    times = entry.get("times", 1)
    least, last = (
        (times["min"], most) if isinstance(times, dict) else times if isinstance(times, list) else (times,) * 2
    )
    return iter(range(least, min(last, most) + 1))


def _spread(blocks: Sequence[Sequence[dict[str, Any]]], most: int) -> Iterator[list[list[dict[str, Any]]]]:
    """Yield the blocks with each entry as often as it may come."""
    options = [
        [list(block)] if len(block) > 1 else [[block[0]] * count for count in _counts(block[0], most)]
        for block in blocks
    ]
    for chosen in itertools.product(*options):
        yield list(chosen)


def _possible(
    asked: Sequence[Asked], blocks: Sequence[Sequence[dict[str, Any]]], *, ordered: bool, exact: bool
) -> bool:
    """Try every way to give each entry a call of its own."""
    together = [len(block) > 1 for block in blocks]
    for filled in _spread(blocks, len(asked)):
        entries = [(number, entry) for number, block in enumerate(filled) for entry in block]
        if exact and len(entries) != len(asked):
            continue
        for places in itertools.permutations(range(len(asked)), len(entries)):
            if not all(_fits(asked[at], entry) for at, (_, entry) in zip(places, entries, strict=True)):
                continue
            found: dict[int, list[int]] = {}
            for at, (number, _) in zip(places, entries, strict=True):
                found.setdefault(number, []).append(at)
            one_step = all(len({asked[at].step for at in found[n]}) == 1 for n in found if together[n])
            numbers = sorted(found)
            follows = all(max(found[a]) < min(found[b]) for a, b in itertools.pairwise(numbers))
            rises = all(together[n] or found[n] == sorted(found[n]) for n in numbers)
            if one_step and (not ordered or (follows and rises)):
                return True
    return False


def _written(blocks: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [block[0] if len(block) == 1 else {"together": list(block)} for block in blocks]


@settings(deadline=None)
@given(ASKED, BLOCKS)
def test_calls_in_exact_order_are_told_as_by_trying_every_way(asked, blocks) -> None:
    holds = not failures(asked, {"calls": _written(blocks), "order": "exact"})
    assert holds == _possible(asked, blocks, ordered=True, exact=True)


@settings(deadline=None)
@given(ASKED, BLOCKS.map(lambda blocks: [[{k: v for k, v in e.items() if k != "times"} for e in b] for b in blocks]))
def test_calls_that_belong_together_are_told_as_by_trying_every_way(asked, blocks) -> None:
    written = _written(blocks)
    assert (not failures(asked, {"calls": written})) == _possible(asked, blocks, ordered=False, exact=False)
    in_order = not failures(asked, {"calls": written, "order": "in_order"})
    assert in_order == _possible(asked, blocks, ordered=True, exact=False)


def test_twenty_pairs_are_assigned_to_twenty_steps() -> None:
    asked = [Asked(name, x=False, step=step) for step in range(20) for name in "fg"]
    pair = {"together": ["f", "g"]}
    assert not failures(asked, {"calls": [pair] * 20, "nothing_else": True})
    assert failures(asked, {"calls": [pair] * 21}) == ["f, g were not asked for in the same step"]


@pytest.mark.parametrize("order", ["any", "in_order", "exact"])
def test_calls_that_are_there_but_apart_are_one_failure(order) -> None:
    asked = [Asked("f", x=False, step=1), Asked("g", x=False, step=2)]
    found = failures(asked, {"calls": [{"together": ["f", "g"]}], "order": order})
    assert found[0] == "f, g were not asked for in the same step"


def test_the_nearest_call_to_one_that_lacks_is_none_that_stands_for_another() -> None:
    expect = {"calls": [{"together": [{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 2}}]}]}
    (failure,) = failed([Asked("f", x=True, step=1), Asked("f", x=False, step=1)], expect)
    assert failure.nearest.startswith("f()")
    assert "call_1" in failure.nearest


def test_under_exact_order_a_repeated_call_comes_where_it_stands() -> None:
    expect = {"calls": [{"name": "f", "times": [1, 3]}, "g"], "order": "exact"}
    assert not failures([Asked(name, x=False, step=n) for n, name in enumerate("ffg")], expect)
    assert failures([Asked(name, x=False, step=n) for n, name in enumerate("fgf")], expect) == [
        "the calls came in another order"
    ]
