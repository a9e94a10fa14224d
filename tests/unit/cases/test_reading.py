"""The test file: defaults, extends and matrix; each problem at its place, and no case spoilt by another one's."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import agentfn.cases
from agentfn.cases.case import BrokenCase, Case, Limits
from agentfn.cases.expect.read import CALL_KEYS, KEYS
from agentfn.cases.expect.words import WORDS
from agentfn.cases.read import COMPOSING_KEYS, FILE_KEYS
from agentfn.cases.read_case import ANSWER_KEYS, CASE_KEYS, TURN_KEYS
from agentfn.document.read import read_document
from tests.conftest import ROOT

SCHEMA = json.loads(Path(agentfn.cases.__file__).with_name("test.schema.json").read_text())
TEST_FILES = sorted([*ROOT.glob("samples/*/test_*.yaml"), *ROOT.glob("agentfn/templates/test_*.yaml")])


def test_the_smallest_case(read) -> None:
    (case,) = read("agent: agent.yaml\ncases:\n  - {name: a, input: hi}\n")
    assert (case.name, case.line, case.column, case.turns[0].input) == ("a", 3, 5, "hi")
    assert case.handlers
    assert case.limits == Limits()


def test_defaults_and_extends_are_merged_where_members_matter_and_replaced_elsewhere(read) -> None:
    one, two = read(
        """\
agent: agent.yaml
defaults:
  tags: [all]
  outputs: {get_time: noon}
  limits: {rounds: 3}
cases:
  - name: base
    abstract: true
    input: hi
    outputs: {get_weather: rain}
    expect: {steps: 2, answer: rain}
  - name: one
    extends: base
    expect: {answer: sun}
    limits: {calls: 4}
  - name: two
    extends: one
    input: ho
    tags: [slow]
"""
    )
    assert isinstance(one, Case)
    assert isinstance(two, Case)
    assert (one.turns[0].input, two.turns[0].input) == ("hi", "ho")
    assert (one.tags, two.tags) == (("all",), ("slow",))
    assert set(two.outputs) == {"get_weather", "get_time"}
    assert (two.limits.rounds, two.limits.calls) == (3, 4)
    assert str(two.expect.answer) == '"sun"'
    assert two.expect.steps is not None
    # Only what a case itself gives must be asked for.
    assert not any(stub.required for stub in two.outputs.values())


def test_a_matrix_makes_a_case_of_each_combination_and_keeps_types(read) -> None:
    cases = read(
        """\
agent: agent.yaml
cases:
  - name: "{{city}} for {{n}}"
    matrix: {city: [Oslo, Bergen], n: [1, 2]}
    input: "{{n}} days in {{city}}"
    expect: {calls: [{name: get_weather, arguments: {city: "{{city}}", days: ["{{n}}"]}}]}
  - name: rows
    matrix: [{city: Rome}, {city: Bonn}]
    input: "{{city}}"
"""
    )
    assert [case.name for case in cases] == [
        "Oslo for 1", "Oslo for 2", "Bergen for 1", "Bergen for 2", "rows [Rome]", "rows [Bonn]",
    ]  # fmt: skip
    first = cases[0]
    assert isinstance(first, Case)
    assert first.turns[0].input == "1 days in Oslo"
    assert str(first.expect.calls[0]) == 'get_weather(city: "Oslo", days: [1], …)'


def test_rows_whose_names_would_be_the_same_are_told_apart(read) -> None:
    cases = read("agent: agent.yaml\ncases:\n  - {name: 'for {{n}}', matrix: {n: [1, 2], m: [3, 4]}, input: '{{m}}'}\n")
    assert [case.name for case in cases] == ["for 1 [1, 3]", "for 1 [1, 4]", "for 2 [2, 3]", "for 2 [2, 4]"]


@pytest.mark.parametrize(
    "cases",
    [
        "  - {name: val, matrix: {x: [1, '1']}, input: 'go {{x}}'}\n",
        "  - {name: 'a [Leo]', input: b}\n  - {name: a, matrix: {x: [Leo, Leo]}, input: '{{x}}'}\n",
    ],
)
def test_no_case_takes_another_ones_name(read, cases) -> None:
    names = [case.name for case in read("agent: agent.yaml\ncases:\n" + cases)]
    assert len(set(names)) == len(names) == cases.count("{name") + 1


def test_a_case_keeps_its_tags_whatever_is_wrong_with_it(read) -> None:
    wrong = read(
        """\
agent: agent.yaml
defaults: {tags: [all]}
cases:
  - {name: a, tags: [smoke], input: hi, expcet: {}}
  - {name: b, input: hi, expcet: {}}
  - {name: c, extends: nobody}
  - {name: d, input: hi, tags: ['{{x}}'], matrix: {x: []}}
  - {name: e, input: hi, tags: [smoke], repeat: 0}
"""
    )
    assert [case.tags for case in wrong] == [("smoke",), ("all",), None, None, ("smoke",)]


def test_outputs_of_turns_that_are_taken_over_need_not_be_asked_for(read) -> None:
    turns = "turns: [{input: hi, outputs: {get_time: noon}}]"
    one, two = read(f"agent: agent.yaml\ncases:\n  - {{name: a, {turns}}}\n  - {{name: b, extends: a}}\n")
    assert one.turns[0].outputs["get_time"].required
    assert not two.turns[0].outputs["get_time"].required


def test_outputs_whose_function_a_matrix_names_must_be_asked_for(read) -> None:
    text = "  - {name: a, matrix: {f: [get_time]}, input: hi, outputs: {'{{f}}': noon}}\n"
    (case,) = read("agent: agent.yaml\ncases:\n" + text)
    assert case.outputs["get_time"].required


CASE = "agent: agent.yaml\ncases:\n  - name: a\n    input: hi\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("cases: []\n", "1:1 a test file is a mapping"),
        ("agent: agent.yaml\ncases:\n  - input: hi\n", "3:5 a case is a mapping with a name"),
        (CASE + "  - {name: a, input: ho}\n", '5:12 two cases are called "a", the other one at line 3'),
        (CASE + "    exepct: {}\n", "5:5 a case has no key exepct (did you mean expect?)"),
        (
            "agents: agent.yaml\ncases: [{name: a, input: b}]\n",
            "1:1 a test file has no key agents (did you mean agent?)",
        ),
        (CASE + "    turns: [ho]\n", "3:5 a case has either input"),
        (
            CASE + "    expect: {calls: [{name: get_wether}]}\n",
            "5:29 the agent has no function get_wether (did you mean get_weather?)",
        ),
        (
            CASE + "    expect: {calls: [{name: get_weather, arguments: {town: x}}]}\n",
            "5:54 the function's schema has no town",
        ),
        (CASE + "    expect: {pending: []}\n", "5:23 pending is true, false, or the calls that wait"),
        (CASE + "    expect: {answer: }\n", "5:22 answer is empty"),
        (CASE + "    expect: {calls: [{name: get_time, arguments: }]}\n", "5:50 arguments is empty"),
        (CASE + "    expect: {never: get_wether}\n", "5:21 the agent has no function get_wether"),
        (
            CASE + "    expect: {answer: {contians: x}}\n",
            "5:23 answer has no matcher contians (did you mean contains?)",
        ),
        (CASE + "    expect: {answer: {regex: '('}}\n", "5:30 ( is no regular expression"),
        (CASE + "    expect: {order: exact}\n", "5:21 order says how calls follow each other"),
        (CASE + "    expect: {calls: [get_time], order: sorted}\n", "order is one of any, in_order, exact"),
        (CASE + "    expect: {calls: [{together: [get_time]}]}\n", "together is a list of two or more calls"),
        (CASE + "    expect: {calls: [{name: get_time, times: -1}]}\n", "a range is a number"),
        (
            CASE + "    outputs: {get_tyme: x}\n",
            "5:15 outputs has no key get_tyme (did you mean get_time?)",
        ),
        (CASE + "    outputs: {get_time: []}\n", "a list of outputs is one for each call"),
        (CASE + "    outputs: {get_time: {output: 1, error: no}}\n", "exactly one of output, content and error"),
        (CASE + "    repeat: {times: 2, at_least: 3}\n", "5:13 repeat is a number from 1 on"),
        (CASE + "    limits: {rounds: 0}\n", "5:22 rounds is a number from 1 on"),
        (CASE + "    limits: {seconds: soon}\n", "seconds is a number or a span"),
        (CASE + "    tags: {a: b}\n", "5:11 tags is a list of texts"),
        (CASE + "    extends: [b]\n", "5:14 extends names another case of this file"),
        (
            "agent: agent.yaml\ncases: [{name: a, turns: [{input: hi, outputs: 5}]}]\n",
            "outputs is a mapping of functions",
        ),
        (CASE + "    expect: {answer: {regex: 'a{99999999999999999999}'}}\n", "is no regular expression"),
        (CASE + "    expect: {answer: {json_path: {'$[?@.a=~/(/]': 1}}}\n", "is no JSON path"),
        (CASE + "    extends: b\n", "5:14 extends names another case of this file; known: none"),
        (CASE + "    matrix: {n: []}\n", "5:13 n of a matrix is a list of values"),
        (CASE + "    matrix: {n: [1]}\n", "no text of the case has {{n}}"),
        (CASE + "    matrix: [{n: 1}, {m: 1}]\n", "each row of a matrix has the same names, and m, n is not in all"),
        (
            "agent: agent.yaml\ncases: [{name: a, turns: [{input: hi, expect: {failure: {contains: x}}}, hi]}]\n",
            "a conversation ends with a turn that fails or waits",
        ),
        (CASE + "    local: [{sya: hello}]\n", "5:14"),
        (CASE + "    handlers: maybe\n", "5:15"),
        (CASE + "    agent: other.yaml\n", "there is no"),
        (CASE + "    input: again\n", '5:5 key "input" at lines 4 and 5'),
    ],
)
def test_a_problem_is_told_at_its_place(problems, text, told) -> None:
    found = problems(text)
    assert any(told in line for line in found), found


def test_a_broken_case_spoils_no_other(read) -> None:
    cases = read(CASE + "  - {name: b, input: hi, repeat: 0}\n  - {name: c, input: hi}\n")
    assert [isinstance(case, BrokenCase) for case in cases] == [False, True, False]
    assert (cases[1].name, cases[1].line) == ("b", 5)


def test_a_case_that_extends_a_broken_one_names_the_line_that_is_wrong(problems) -> None:
    found = problems("agent: agent.yaml\ncases:\n  - {name: a, input: hi, tags: 5}\n  - {name: b, extends: a}\n")
    assert found == ["3:32 tags is a list of texts", "3:32 tags is a list of texts"]


def test_a_parameter_that_is_called_like_a_matcher_word_is_meant(read) -> None:
    (case,) = read(CASE + "    expect: {calls: [{name: get_weather, arguments: {type: string}}]}\n")
    assert str(case.expect.calls[0]) == 'get_weather(type: "string", …)'


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: path.parent.name)
def test_the_schema_for_editors_takes_the_test_files_here(path) -> None:
    jsonschema.validate(read_document(path).value, SCHEMA)


def test_the_schema_for_editors_has_the_keys_that_are_read() -> None:
    definitions = SCHEMA["$defs"]

    def keys(name: str) -> set[str]:
        return set(definitions[name]["properties"])

    assert set(SCHEMA["properties"]) == set(FILE_KEYS)
    assert keys("case") == {*CASE_KEYS, *COMPOSING_KEYS}
    assert set(SCHEMA["properties"]["defaults"]["properties"]) == set(CASE_KEYS) - {"name"}
    assert keys("turn") == set(TURN_KEYS)
    assert keys("expect") == set(KEYS)
    assert keys("call") | keys("together") == set(CALL_KEYS)
    assert keys("answer") == set(ANSWER_KEYS)
    assert keys("words") == set(WORDS)
    assert keys("key_limits") == set(Limits._fields)


@pytest.mark.parametrize(
    "wrong", ["inputs: hi", "repeat: 0", "handlers: 1", "expect: {call: []}", "expect: {order: up}"]
)
def test_the_schema_for_editors_refuses_slips(wrong, tmp_path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("agent: a\ncases:\n  - name: a\n    " + wrong + "\n")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(read_document(path).value, SCHEMA)
