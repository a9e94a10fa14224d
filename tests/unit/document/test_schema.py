"""JSON Schema checks: every problem at once, in words, without fetching anything and without crashing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.document.check import instance_problems, schema_problems
from agentfn.document.plain import fits, is_sound
from agentfn.document.schema import library_instance_problems, library_schema_problems
from agentfn.document.walk import pointer

SCHEMA = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "minimum": 1},
        "dry_run": {"type": "boolean"},
        "zip": {"type": "string", "pattern": "^[0-9]{5}$"},
        "unit": {"enum": ["c", "f"]},
        "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["limit"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            {"limit": "50", "dry_run": "false"},
            ["/dry_run expects boolean, got string", "/limit expects integer, got string"],
        ),
        ({}, ["missing required property limit"]),
        ({"limit": True}, ["/limit expects integer, got boolean"]),
        ({"limit": None}, ["/limit expects integer, got null"]),
        ({"limit": 0}, ["/limit must be at least 1, got 0"]),
        ({"limit": 1, "unit": "k"}, ['/unit must be one of "c", "f", got "k"']),
        ({"limit": 1, "dryrun": True}, ["unknown property dryrun (did you mean dry_run?)"]),
        ({"limit": 1, "other": 1}, ["unknown property other; allowed: limit, dry_run, zip, unit, who, tags"]),
        ({"limit": 1, "who": 3}, ["/who expects string or null, got 3"]),
        ({"limit": 1, "tags": ["a", 2]}, ["/tags/1 expects string, got integer"]),
        ({"limit": 1, "tags": ["a", "b", "c"]}, ["/tags has 3 items, at most 2 are allowed"]),
        ({"limit": 1, "zip": "1"}, ['/zip must match ^[0-9]{5}$, got "1"']),
        ([], ["the value expects object, got array"]),
    ],
)
def test_problems_are_told_in_words(value: Any, told: list[str]) -> None:
    assert sorted(problem.message for problem in instance_problems(value, SCHEMA)) == sorted(told)


def test_a_valid_value_has_no_problem() -> None:
    assert instance_problems({"limit": 7301244019558000123, "zip": "01701", "who": None}, SCHEMA) == []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "objekt"}, ("type",)),
        ({"properties": {"a": {"$ref": "#/$defs/Rolle"}}, "$defs": {"Role": {}}}, ("properties", "a", "$ref")),
        ({"properties": {"a": {"$ref": "https://example.com/x"}}}, ("properties", "a", "$ref")),
        ({"properties": {"a": {"pattern": "("}}}, ("properties", "a", "pattern")),
        ({"required": "a"}, ("required",)),
        ("text", ()),
    ],
)
def test_a_broken_schema_is_told_at_its_place(schema: Any, path: tuple[str, ...]) -> None:
    assert path in {problem.path for problem in schema_problems(schema)}


def test_references_that_run_in_a_circle_do_not_crash() -> None:
    assert instance_problems({}, {"$ref": "#"})
    node = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}}
    assert instance_problems({"next": {"next": 1}}, node)[0].pointer == "/next/next"


def test_pointers_escape_what_they_must() -> None:
    assert pointer(("a/b", "c~d", 0)) == "/a~1b/c~0d/0"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_value_can_be_checked_and_any_schema_too(value: Any) -> None:
    assert isinstance(instance_problems(value, SCHEMA), list)
    assert isinstance(schema_problems(value), list)


plain_schemas = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", "text", 3]),
            "enum": st.lists(st.sampled_from(["a", "b", 1, True, None]), max_size=3),
            "description": st.sampled_from(["x", 3]),
            "pattern": st.just("^a"),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array"]),
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner),
            "required": st.lists(st.sampled_from(["a", "b", 1])),
            "additionalProperties": st.booleans(),
            "items": inner,
        },
    ),
)
values = st.recursive(
    st.sampled_from(["a", "b", 1, 1.0, 0, True, False, None, 2.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner),
)


@given(plain_schemas, values)
def test_what_is_plainly_right_is_right_for_the_library_too(schema: Any, value: Any) -> None:
    if is_sound(schema):
        assert library_schema_problems(schema) == []
    if fits(value, schema):
        assert library_instance_problems(value, schema) == []


def test_the_plain_way_is_taken_for_plain_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "sign": {"type": "string", "description": "A sign"},
            "n": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["sign"],
        "additionalProperties": False,
    }
    assert is_sound(schema)
    assert fits({"sign": "Aries", "n": [1, 2]}, schema)
    assert not fits({"sign": "Aries", "n": [1, True]}, schema)
    assert not fits({"sign": "Aries", "other": 1}, schema)


def test_problems_come_in_the_order_of_the_document() -> None:
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}
    found = instance_problems([-1] * 11, schema)
    assert [problem.path for problem in found] == [(index,) for index in range(11)]


def test_numbers_beyond_all_reason_are_told() -> None:
    assert instance_problems(10**400, {"multipleOf": 0.5})[0].message == "a number is too large to be checked"
