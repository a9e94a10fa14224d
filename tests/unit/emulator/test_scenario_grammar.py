"""The grammar of scenarios: what is accepted, and where and how each mistake is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentfn.emulator.models.scenario import load_scenario, parse_scenario
from agentfn.errors import InvalidFileError, UsageError

ROOT = Path(__file__).parents[3]


def findings(step):
    """Return the messages for a scenario of one step."""
    with pytest.raises(InvalidFileError) as raised:
        parse_scenario([step], "agent.yaml")
    return [finding.message for finding in raised.value.findings]


@pytest.mark.parametrize(
    "step",
    [
        {"say": "x"},
        {"call": {"f": {}, "g": None}},
        {"call": [{"f": {"a": 1}}, {"name": "f", "raw": "{"}, {"name": "f", "arguments": None, "id": "c"}]},
        {"call": {"name": {"first": "Ann"}}},
        {"call": [{"name": "f", "id": "c"}, {"name": "g", "id": "c"}], "allow_duplicate_ids": True},
        {"say": "x", "call": {"f": {}}, "incomplete": "max_output_tokens", "usage": {"input_tokens": 5}},
        {"error": {"status": 429, "headers": {"Retry-After": 1}, "type": "x", "code": "y", "message": "z"}},
        {"fail": {}},
        {"cut": "before"},
        {"advance": "11m"},
        {"advance": 5, "when": {"step": 2}},
        {"say": "x", "delay": "200ms", "cut": "mid", "advance": "1h", "repeat": "forever"},
        {"say": "x", "when": {"message": "/^a/", "output": {"f": "b"}, "step": 3}, "repeat": 2},
        {"say": "x", "when": {"output": "b"}},
    ],
)
def test_what_the_grammar_has(step):
    assert parse_scenario([step], "x").steps == (step,)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("say hello", "a step is a mapping with one of say, call"),
        ({}, "a step needs one of say, call"),
        ({"when": {"step": 1}}, "a step needs one of"),
        ({"delay": "1s"}, "a step needs one of"),
        ({"cut": "after"}, "a step needs one of"),
        ({"sayy": "x"}, "a step has no key sayy (did you mean say?)"),
        ({"say": "x", "colour": 1}, "a step has no key colour; known: say, call"),
        ({"say": 5}, "say must be text; quote it"),
        ({"say": "x", "error": {"status": 500}}, "say and error do not go together"),
        ({"error": {"status": 500}, "cut": "mid"}, "error and cut do not go together"),
        ({"incomplete": 5}, "incomplete must be text"),
        ({"say": "x", "delay": "soon"}, "delay is a span such as 200ms, 2s or 11m, got 'soon'"),
        ({"advance": "-1s"}, "advance is a span"),
        ({"advance": "1s", "repeat": 2}, "takes no repeat"),
        ({"say": "x", "cut": "end"}, "cut is one of before, mid, after, got 'end'"),
        ({"say": "x", "repeat": 0}, "repeat is a number from 1 on, or forever, got 0"),
        ({"say": "x", "repeat": True}, "repeat is a number"),
        ({"say": "x", "allow_duplicate_ids": 1}, "allow_duplicate_ids is true or false"),
        ({"error": 500}, "error is a mapping with status"),
        ({"error": {"code": "x"}}, "error is a mapping with status"),
        ({"error": {"status": 200}}, "status is an HTTP error from 400 to 599, got 200"),
        ({"error": {"status": 500, "mesage": "x"}}, "error has no key mesage (did you mean message?)"),
        ({"error": {"status": 500, "code": 5}}, "code must be text"),
        ({"error": {"status": 500, "headers": []}}, "headers is a mapping"),
        ({"error": {"status": 500, "headers": {"a": "b\r\nc: d"}}}, "one line of plain text"),
        ({"error": {"status": 500, "headers": {"a b": "c"}}}, "is no header name"),
        ({"fail": "x"}, "fail is a mapping with code and message"),
        ({"fail": {"text": "x"}}, "fail has no key text"),
        ({"fail": {"code": 1}}, "code must be text"),
        ({"say": "x", "usage": 5}, "usage is a mapping"),
        ({"say": "x", "usage": {"input_tokens": -1}}, "input_tokens is a number of tokens"),
        ({"say": "x", "usage": {"tokens": 1}}, "usage has no key tokens"),
        ({"say": "x", "when": "hello"}, "when is a mapping with message, output or step"),
        ({"say": "x", "when": {}}, "when is a mapping"),
        ({"say": "x", "when": {"mesage": "x"}}, "when has no key mesage (did you mean message?)"),
        ({"say": "x", "when": {"message": 5}}, "message is compared with text; quote 5"),
        ({"say": "x", "when": {"message": "/(/"}}, "/(/ is no regular expression"),
        ({"say": "x", "when": {"output": {}}}, "output is compared with text"),
        ({"say": "x", "when": {"output": {"f": 1}}}, "f is compared with text; quote 1"),
        ({"say": "x", "when": {"step": 0}}, "counted from 1"),
        ({"call": []}, "call is empty"),
        ({"call": "f"}, "call is {function: {arguments}}"),
        ({"call": {"f": "text"}}, "the arguments of a call are a mapping"),
        ({"call": {"name": "f", "argumets": {}}}, "a call has no key argumets (did you mean arguments?)"),
        ({"call": {"name": "f", "raw": "x", "arguments": {}}}, "raw stands in place of arguments"),
        ({"call": {"name": "f", "raw": {}}}, "raw is the exact text"),
        ({"call": {"name": "f", "arguments": "x"}}, "arguments is a mapping; for other text use raw"),
        ({"call": {"name": "f", "id": 5}}, "id is text"),
        ({"call": [{"name": "f", "id": "c"}, {"name": "g", "id": "c"}]}, "call_id c used by f and g"),
    ],
)
def test_mistakes_are_told(step, says):
    assert any(says in message for message in findings(step)), findings(step)


def test_a_scenario_in_place_is_told_by_step(tmp_path):
    with pytest.raises(InvalidFileError) as raised:
        parse_scenario([{"say": "x"}, {"say": "x", "when": {"message": 5}}], "agent.yaml")
    assert str(raised.value) == "agent.yaml: scenario: step 2.when.message: message is compared with text; quote 5"


def test_every_mistake_of_a_file_is_told_at_its_place(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("- say: hello\n- sya: x\n  delay: soon\n- call:\n    - name: f\n      argments: {}\n")
    with pytest.raises(InvalidFileError) as raised:
        load_scenario(path)
    places = [(finding.line, finding.column) for finding in raised.value.findings]
    assert places == [(2, 3), (2, 3), (3, 10), (6, 7)]
    assert raised.value.location == f"{path}:2:3"


def test_a_file_is_a_list_or_a_mapping_with_steps(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("steps:\n  - say: x\n")
    assert load_scenario(path).steps == ({"say": "x"},)
    for wrong in ("say: x\n", "steps:\n  say: x\n", "steps: []\nmore: 1\n", "5\n"):
        path.write_text(wrong)
        with pytest.raises(InvalidFileError, match="a scenario is a list of steps"):
            load_scenario(path)
    with pytest.raises(UsageError):
        load_scenario(tmp_path / "missing.yaml")


def test_the_digest_is_of_the_steps_alone():
    first = parse_scenario([{"say": "x", "delay": 1}], "a.yaml")
    assert first.digest == parse_scenario([{"delay": 1, "say": "x"}], "b.yaml").digest
    assert first.digest != parse_scenario([{"say": "y", "delay": 1}], "a.yaml").digest


def test_every_scenario_in_the_documentation_is_valid():
    text = (ROOT / "docs" / "scenario.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 5
    for number, block in enumerate(blocks):
        from agentfn.document.read import parse_document

        value = parse_document(block, f"example {number}").value
        parse_scenario(value["local"] if isinstance(value, dict) and "local" in value else value, f"example {number}")
