"""Arguments are the model's text: what is no object that fits is told with its reason, and never repaired."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.definition.agent import FunctionTool
from agentfn.handlers.arguments import Checked, check_arguments
from agentfn.model import Call


def check(text: str, properties: dict[str, Any] | None = None, *required: str, name: str = "f") -> Checked:
    parameters = {"type": "object", "properties": properties or {}, "required": list(required)}
    tool = FunctionTool(name="f", description=None, parameters=parameters)
    return check_arguments(Call("call_A1", name, text), tool if name == "f" else None, ["f", "g"])


TEXT = {"location": {"type": "string"}}


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_blank_is_the_empty_object(text: str) -> None:
    assert check(text) == Checked({}, None)
    assert (
        check(text, TEXT, "location").problem
        == "arguments of call_A1 (f) are wrong: missing required property location"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"cmd": "mkdir -p /tmp/demo && cat > /tmp', "string not closed, from position 8 to the end at 41"),
        ('{"location":"Oslo"}{"location":"Bergen"}', "unexpected text after the JSON object at position 19"),
        ('{"location":"Oslo"} Calling the tool now.', "unexpected text after the JSON object at position 20"),
        ('{"location":"Oslo"}\n```', "unexpected text after the JSON object at position 20"),
        ('{"location":"Oslo"}}', "unexpected text after the JSON object at position 19"),
        ("[1, 2]", "must be a JSON object, got array"),
        ("42", "must be a JSON object, got number"),
        ('"Oslo"', "must be a JSON object, got string"),
        ("true", "must be a JSON object, got boolean"),
        ("null", "must be a JSON object, got null"),
        ("query = '''\nselect 1\n'''", "not valid JSON: expecting value at position 0"),
        ("{'query': 'select 1'}", "at position 1"),
        ('{"query": "select 1", "dry_run": True}', "expecting value at position 33"),
        ('{"query": "select 1",}', "at position 2"),
        ('{"title": "Q3" "owner": "ops"}', "expecting ',' delimiter at position 15"),
        ('{"amount": 1e400}', "hold a number out of range: 1e400"),
        ('{"amount": NaN}', "NaN is no number"),
        ('{"amount": -Infinity}', "-Infinity is no number"),
        ('{"a": 1, "a": 2}', "name a twice"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a": ' * 500 + "1" + "}" * 500, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "hold a number out of range: 1111"),
        ('{"a": -' + "1" * 400 + "}", "hold a number out of range: -1111"),
        ('{"\\ud800": 1, "\\ud801": 2}', "name \ufffd twice"),
        ("[1] [2]", "unexpected text after the JSON value at position 4"),
    ],
)
def test_what_is_no_json_object_is_told_with_its_reason(text: str, told: str) -> None:
    checked = check(text)
    assert checked.arguments is None
    assert told in str(checked.problem)
    assert "call_A1" in str(checked.problem)
    assert "missing" not in str(checked.problem)


def test_raw_control_characters_are_kept_with_a_warning() -> None:
    checked = check('{"text": "line one\nline\ttwo"}')
    assert checked.arguments == {"text": "line one\nline\ttwo"}
    assert "control characters" in checked.warnings[0]


def test_an_object_encoded_twice_is_unwrapped_once() -> None:
    checked = check(json.dumps(json.dumps({"order_id": "88231"})))
    assert checked.arguments == {"order_id": "88231"}
    assert "encoded twice" in checked.warnings[0]
    assert check(json.dumps(json.dumps(json.dumps({})))).arguments is None


def test_half_a_surrogate_pair_is_replaced_with_a_warning() -> None:
    checked = check('{"text": "ok \\ud83d end"}')
    assert checked.arguments == {"text": "ok \ufffd end"}
    assert "U+FFFD" in checked.warnings[0]
    assert check('{"text": "\\ud83d\\ude00"}').warnings == ()


def test_big_integers_stay_exact() -> None:
    assert check('{"id": 7301244019558000123}').arguments == {"id": 7301244019558000123}


def test_many_keys_with_one_twice_are_refused_at_once() -> None:
    text = "{" + ",".join(f'"k{index}": 1' for index in range(20_000)) + ', "k19999": 2}'
    started = time.monotonic()
    assert "name k19999 twice" in str(check(text).problem)
    assert time.monotonic() - started < 5, "comparing each key with each other took half a minute"


def test_numbers_that_a_float_cannot_hold_break_no_check() -> None:
    halves = {"a": {"type": "number", "multipleOf": 0.5}}
    assert check('{"a": 1' + "0" * 307 + "}", halves).arguments == {"a": 10**307}
    assert check('{"a": 1' + "0" * 400 + "}", halves).problem is not None


def test_of_many_problems_the_first_are_told_and_the_rest_counted() -> None:
    problem = str(check(json.dumps({"a": ["x"] * 500}), {"a": {"type": "array", "items": {"type": "integer"}}}).problem)
    assert problem.count("expects integer, got string") == 10
    assert problem.endswith("and 490 more")


def test_all_problems_are_told_together() -> None:
    properties = {"limit": {"type": "integer"}, "dry_run": {"type": "boolean"}, "zip": {"type": "string"}}
    problem = check('{"limit":"50","dry_run":"false","zip":"01701"}', properties).problem
    assert "/limit expects integer, got string" in str(problem)
    assert "/dry_run expects boolean, got string" in str(problem)
    assert "zip" not in str(problem)


def test_null_is_a_value_where_the_schema_allows_it() -> None:
    nullable = {"unit": {"type": ["string", "null"]}}
    assert check('{"unit": null}', nullable, "unit").arguments == {"unit": None}
    assert "/unit expects string, got null" in str(check('{"unit": null}', {"unit": {"type": "string"}}).problem)


def test_unknown_and_empty_names_are_told_with_what_there_is() -> None:
    assert (
        check("{}", name="multi_tool_use.parallel").problem
        == "unknown function multi_tool_use.parallel; available: f, g"
    )
    assert check("{}", name="").problem == "call_A1 has no function name; available: f, g"


@given(st.text())
def test_any_text_is_arguments_or_a_problem(text: str) -> None:
    checked = check(text)
    assert (checked.arguments is None) != (checked.problem is None)


@given(
    st.dictionaries(
        st.text(), st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
    )
)
def test_every_json_object_is_read_to_the_same_value(value: dict[str, Any]) -> None:
    assert check(json.dumps(value)).arguments == json.loads(json.dumps(value))
