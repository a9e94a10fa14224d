"""Which cases run: -k, tags, shards, what failed the last time; and how many at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.cases.case import BrokenCase
from agentfn.cases.running.cap import Cap
from agentfn.cases.select import Selection, is_test_file, keyword, read_shard, select, shard_of
from agentfn.errors import AgentfnError, UsageError


def case(name: str, file: str = "test_a.yaml", tags: tuple[str, ...] = ()) -> BrokenCase:
    return BrokenCase(Path(file), name, 1, 1, AgentfnError("for a test"), tags)


@pytest.mark.parametrize(
    ("expression", "text", "holds"),
    [
        ("sign", "the right Sign", True),
        ("right sign", "the right sign", True),
        ("sign right", "the right sign", False),
        ("sign and not slow", "sign", True),
        ("sign and not slow", "slow sign", False),
        ("a or b and c", "a", True),
        ("(a or b) and c", "a", False),
        ("not (a or b)", "c", True),
        ('"not found"', "it was not found", True),
    ],
)
def test_keyword_expressions(expression, text, holds) -> None:
    assert keyword(expression)(text.casefold()) is holds


@pytest.mark.parametrize("expression", ["", "and", "a and", "(a", "a)", "not", "()"])
def test_expressions_that_are_none(expression) -> None:
    with pytest.raises(UsageError):
        keyword(expression)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2", "1/2/3"])
def test_shards_that_are_none(text) -> None:
    with pytest.raises(UsageError):
        read_shard(text)


@given(st.sets(st.text(min_size=1, max_size=5), max_size=20), st.integers(1, 6), st.text(min_size=1, max_size=5))
def test_shards_are_a_partition_in_which_other_cases_move_nothing(names, of, more) -> None:
    cases = [case(name) for name in sorted(names)]
    parts = [select(cases, Selection(shard=(number, of)), Path()) for number in range(1, of + 1)]
    assert sorted(found.name for part in parts for found in part) == sorted(names)
    with_more = select([*cases, case(more)], Selection(shard=(1, of)), Path())
    assert {found.name for found in with_more} - {more} == {found.name for found in parts[0]} - {more}


def test_the_folder_that_a_file_lies_in_moves_no_case_to_another_shard() -> None:
    assert shard_of(case("x", "a/test_a.yaml"), 64) == shard_of(case("x", "/b/c/test_a.yaml"), 64)


def test_tags_and_names_select_and_a_broken_file_is_never_left_out() -> None:
    cases = [case("one", tags=("smoke",)), case("two"), case("", "test_broken.yaml")]
    assert [found.name for found in select(cases, Selection(tags=("smoke",)), Path())] == ["one", ""]
    assert [found.name for found in select(cases, Selection(keyword="two"), Path())] == ["two", ""]


def test_a_case_whose_tags_are_not_known_is_never_left_out_for_them() -> None:
    cases = [case("one")._replace(tags=None), case("two")]
    assert [found.name for found in select(cases, Selection(tags=("smoke",)), Path())] == ["one"]
    assert [found.name for found in select(cases, Selection(keyword="three"), Path())] == ["one"]


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("test_a.yaml", True),
        ("a_test.yml", True),
        ("tests.yaml", True),
        ("test.yml", True),
        ("agent.yaml", False),
        ("test_a.py", False),
    ],
)
def test_how_test_files_are_called(name, is_one) -> None:
    assert is_test_file(Path(name)) is is_one


def test_strain_halves_how_many_run_and_calm_brings_them_back_one_by_one() -> None:
    cap = Cap(8)
    cap.attempt_ended(strained=True)
    cap.attempt_ended(strained=True)
    assert cap.now == 2
    for _ in range(2):
        cap.attempt_ended(strained=False)
    assert cap.now == 3
    for _ in range(100):
        cap.attempt_ended(strained=False)
    assert cap.now == 8
    for _ in range(10):
        cap.attempt_ended(strained=True)
    assert cap.now == 1
