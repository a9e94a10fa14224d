"""The agent file: what it means, and every finding with its rule and place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import agentfn.definition
from agentfn.definition.digest import digest, wire_tools
from agentfn.definition.load import check_agent, load_agent
from agentfn.errors import InvalidFileError

HEAD = "name: demo-agent\nmodel: gpt-5-mini\ninstructions: You are a helpful assistant.\n"
SCHEMA = json.loads(Path(agentfn.definition.__file__).with_name("agent.schema.json").read_text())


@pytest.fixture
def check(tmp_path: Path):
    """Check a file's text; return its errors and warnings as ``line:column rule message``."""

    def run(text: str, env: dict[str, str] | None = None, **options: Any):
        path = tmp_path / "agent.yaml"
        path.write_text(text)
        agent, findings = check_agent(path, env or {}, **options)
        told = [f"{f.line}:{f.column} {f.rule}: {f.message}" for f in findings if f.severity == "error"]
        warned = [f"{f.line}:{f.column} {f.rule}: {f.message}" for f in findings if f.severity == "warning"]
        assert (agent is None) == bool(told)
        return agent, told, warned

    return run


def tool(parameters: str, **keys: str) -> str:
    extra = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    return f"{HEAD}tools:\n  - name: search\n    description: Look things up.\n{extra}    parameters:\n{parameters}"


def test_tools_may_be_flat_nested_or_short(check) -> None:
    parameters = "{type: object, properties: {q: {type: string, description: What}}, required: [q]}"
    spellings = [
        f"  - {{type: function, name: f, description: Finds it all, parameters: {parameters}}}\n",
        f"  - {{type: function, function: {{name: f, description: Finds it all, parameters: {parameters}}}}}\n",
        f"  - {{name: f, description: Finds it all, parameters: {parameters}}}\n",
    ]
    agents = [check(f"{HEAD}tools:\n{spelling}")[0] for spelling in spellings]
    assert len({digest(agent) for agent in agents}) == 1
    assert wire_tools(agents[0])[0]["type"] == "function"


def test_other_tools_pass_through_untouched_and_in_order(check) -> None:
    agent, _, _ = check(
        f"{HEAD}tools:\n  - {{type: mcp, server_url: x}}\n  - {{name: f, description: Finds it all}}\n  - type: tool_search\n"
    )
    assert [entry.get("type") for entry in wire_tools(agent)] == ["mcp", "function", "tool_search"]
    assert wire_tools(agent)[0] == {"type": "mcp", "server_url": "x"}


def test_variables_are_expanded_where_the_contract_says_and_nowhere_else(check) -> None:
    text = (
        "name: demo\nmodel: ${MODEL:-small}\ninstructions: Keep ${MODEL}\nmetadata: {team: '${TEAM}'}\n"
        "tools:\n  - {name: f, description: 'Weather for {{ city }} and ${HOME}', handler: {exec: ['${TOOL:-cat}']}}\n"
    )
    agent, _, _ = check(text, {"TEAM": "blue"})
    assert (agent.model, agent.metadata, agent.instructions) == ("small", {"team": "blue"}, "Keep ${MODEL}")
    assert agent.functions[0].description == "Weather for {{ city }} and ${HOME}"
    assert agent.functions[0].handler.value == ["cat"]
    _, told, _ = check(text, {})
    assert told == ["4:18 variable: ${TEAM} is not set; give a default: ${TEAM:-…}"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model: m\n", "1:1 name: name is missing"),
        ("name: demo\n", "1:1 model: model is missing"),
        (HEAD + "temprature: 1\n", "4:1 unknown-key: an agent file has no key temprature (did you mean temperature?)"),
        (HEAD + "temperature: 3\n", "4:14 range: temperature must be a number from 0 to 2, got 3"),
        (
            HEAD + "tool_choice: {type: function, name: g}\n",
            "4:14 value: tool_choice names g, which is no function here",
        ),
        (
            HEAD + "tools:\n  - {name: f, handler: {exec: ./run.sh now}}\n",
            "handler: exec is a list, since there is no shell: [./run.sh, now]",
        ),
        (
            HEAD + "tools:\n  - {name: f, handler: {exec: [a], output: b}}\n",
            "exactly one of exec, python, http, output; this one has exec and output",
        ),
        (
            HEAD + "tools:\n  - {name: f, handler: {output: b, timeout: soon}}\n",
            "timeout: timeout is a span such as 30s",
        ),
        (HEAD + "tools:\n  - {name: f, handler: {python: nope}}\n", "python is file.py:function or module:function"),
        (
            HEAD + "tools:\n  - {name: f, handler: {exec: [a], encoding: base64}}\n",
            "handler: there is no encoding 'base64'",
        ),
        (HEAD + "tools:\n  - {name: f, ask: sometimes}\n", "ask: ask is never, always, or"),
        (
            HEAD + "tools:\n  - {name: f, descripton: x}\n",
            "unknown-key: a function tool has no key descripton (did you mean description?)",
        ),
        (HEAD + "local: nowhere.yaml\n", "4:8 local: there is no scenario file nowhere.yaml"),
        (HEAD + "description: " + "x" * 513 + "\n", "limit: description has 513 characters, the limit is 512"),
        (HEAD + "metadata: {" + ", ".join(f"k{i}: v" for i in range(14)) + "}\n", "14 pairs, the limit is 13"),
        ("- a\n", "1:1 type: an agent file is a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_rule_and_place(check, text: str, told: str) -> None:
    _, errors, _ = check(text)
    assert any(told in error for error in errors), errors


@pytest.mark.parametrize("name", ["modern-workplace", "A1", '"7"', "a" * 63])
def test_good_agent_names(check, name: str) -> None:
    assert check(f"name: {name}\nmodel: m\n")[1] == []


@pytest.mark.parametrize("name", ["modern_workplace", "My Agent", "-x", "x-", '""', "a" * 64])
def test_bad_agent_names_are_told_with_the_rule(check, name: str) -> None:
    (error,) = check(f"name: {name}\nmodel: m\n")[1]
    assert "^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$" in error


def test_bad_function_names_are_all_told(check) -> None:
    names = ["node.restart", "get_/whoami", "météo", "two words", "a" * 65, "ok_name-1"]
    tools = "".join(f'  - {{name: "{name}", description: Does it all}}\n' for name in names)
    errors = check(f"{HEAD}tools:\n{tools}")[1]
    assert len(errors) == 5
    assert all("^[a-zA-Z0-9_-]{1,64}$" in error for error in errors)


def test_a_function_defined_twice_names_both_lines(check) -> None:
    errors = check(f"{HEAD}tools:\n  - name: read\n  - name: read\n")[1]
    assert errors == ["6:11 duplicate-function: function read is defined twice (lines 5 and 6)"]


def test_too_many_functions(check) -> None:
    tools = "".join(f"  - {{name: f{number}, description: Number {number} of many}}\n" for number in range(129))
    assert "129 functions, the limit is 128" in check(f"{HEAD}tools:\n{tools}")[1][0]


STRICT = """\
      type: object
      properties:
        filter: {type: object, properties: {name: {type: string}}, required: [name]}
        rows: {type: array, items: {type: object, additionalProperties: true, properties: {id: {type: string}}, required: [id]}}
        opt: {type: [object, "null"], properties: {a: {type: string}}, required: [a]}
        loose: {properties: {b: {type: string}}, required: [b]}
      required: [filter, rows, opt, loose]
"""


def test_strict_mode_wants_additional_properties_false_at_every_level(check) -> None:
    errors = check(tool(STRICT, strict="true"))[1]
    places = [error.split("strict: ")[1].split(":")[0] for error in errors]
    assert sorted(places) == [
        "#",
        "#/properties/filter",
        "#/properties/loose",
        "#/properties/opt",
        "#/properties/rows/items",
    ]
    assert check(tool(STRICT))[1] == []


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("{location: {type: string}, unit: {type: string, enum: [c, f]}}", "#/properties/unit is not in required"),
        (
            "{location: {$ref: '#/$defs/L', description: Where}}",
            "#/properties/location: $ref stands beside description",
        ),
        ("{location: {type: string, format: uri}}", "#/properties/location/format: strict mode has no format uri"),
        ("{location: {allOf: [{type: string}]}}", "#/properties/location/allOf: strict mode has no allOf"),
    ],
)
def test_what_strict_mode_refuses(check, parameters: str, told: str) -> None:
    text = (
        f"      type: object\n      properties: {parameters}\n      required: [location]\n"
        "      additionalProperties: false\n      $defs: {L: {type: string}}\n"
    )
    errors = check(tool(text, strict="true"))[1]
    assert len(errors) == 1
    assert told in errors[0]


@pytest.mark.parametrize("form", ["date-time", "uuid", "email"])
def test_formats_that_strict_mode_knows(check, form: str) -> None:
    text = f"      {{type: object, properties: {{a: {{type: string, format: {form}}}}}, required: [a], additionalProperties: false}}\n"
    assert check(tool(text, strict="true"))[1] == []


def test_the_root_must_be_an_object_without_alternatives_also_without_strict(check) -> None:
    for text in ("      oneOf: [{type: object}]\n", "      type: object\n      anyOf: [{required: [a]}]\n"):
        (error,) = [e for e in check(tool(text))[1] if "schema-root" in e]
        assert "the root must be type: object" in error


def test_arrays_need_items(check) -> None:
    text = "      {type: object, properties: {values: {type: array, items: {type: array}}, tags: {type: [array, 'null']}}, required: [values]}\n"
    errors = check(tool(text))[1]
    assert [error.split(": ")[1] for error in errors] == ["#/properties/values/items", "#/properties/tags"]


def test_texts_in_an_enum_stay_as_written(check) -> None:
    text = (
        "      type: object\n      properties:\n"
        "        version: {type: string, enum: [1.9, 1.10, 1_000, 0x1F, 01701, 08:30, NO, on], default: 1.10}\n"
        "        level: {type: integer, enum: [1, 2]}\n      required: [version, level]\n"
    )
    agent, told, _ = check(tool(text))
    assert told == []
    properties = agent.functions[0].parameters["properties"]
    assert properties["version"]["enum"] == ["1.9", "1.10", "1_000", "0x1F", "01701", "08:30", "NO", "on"]
    assert properties["version"]["default"] == "1.10"
    assert properties["level"]["enum"] == [1, 2]


def test_an_enum_value_of_another_type_is_told_at_its_place(check) -> None:
    errors = check(
        tool("      type: object\n      properties: {a: {type: integer, enum: [1, two]}}\n      required: [a]\n")
    )[1]
    assert len(errors) == 1
    assert errors[0].startswith("9:49 enum-type: #/properties/a/enum/1")


def test_advice_on_what_keeps_a_model_from_calling(check) -> None:
    _, _, warned = check(f"{HEAD}tool_choice: none\ntools:\n  - name: run\n  - {{name: get_it, description: get it}}\n")
    rules = [warning.split()[1] for warning in warned]
    assert rules == ["advice-tool-choice:", "advice-description:", "advice-name:", "advice-description:"]


def test_openai_demands_a_description_and_lacks_strict(check) -> None:
    _, told, warned = check(
        f"{HEAD}tools:\n  - {{name: get_it, strict: true, parameters: {{type: object, properties: {{}}, additionalProperties: false}}}}\n",
        protocol="openai",
    )
    assert "openai-description" in told[0]
    assert any("openai-strict" in warning for warning in warned)


def test_the_digest_changes_with_what_is_sent_and_with_nothing_else(check) -> None:
    base = digest(check(f"{HEAD}tools:\n  - {{name: get_it, description: Gets it all}}\n")[0])
    same = digest(
        check(
            f"{HEAD}tools:\n  - {{name: get_it, description: Gets it all, handler: {{output: 1}}, ask: always, idempotent: true}}\n"
        )[0]
    )
    other = digest(check(f"{HEAD}tools:\n  - {{name: get_it, description: Gets it at all}}\n")[0])
    assert base == same != other


def test_load_raises_with_every_error(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("name: a_b\ntools: 3\n")
    with pytest.raises(InvalidFileError) as caught:
        load_agent(path, {})
    assert [f.rule for f in caught.value.findings] == ["model", "name", "type"]


GOOD = [
    "name: a\nmodel: m\n",
    HEAD
    + "tools:\n  - {name: f, handler: {exec: [python3, x.py], timeout: 30s, env: [A_B]}}\n  - {type: mcp, anything: 1}\n",
    HEAD
    + "tools:\n  - {type: function, function: {name: f}, handler: {output: null}, ask: {unless: {type: object}}}\n",
    HEAD + "x-note: mine\nmetadata: {a: b}\ntemperature: 0.5\ntool_choice: auto\nlocal: [{say: hi}]\n",
]
BAD = [
    HEAD + "nonsense: 1\n",
    "name: a_b\nmodel: m\n",
    HEAD + "tools:\n  - {name: f, handler: {exec: [a], python: 'b.py:c'}}\n",
    HEAD + "tools:\n  - {name: f, handler: sometimes}\n",
    HEAD + "tools:\n  - {name: 'a b'}\n",
    HEAD + "top_p: 2\n",
    HEAD + "tools:\n  - {type: function, description: nameless}\n",
]


@pytest.mark.parametrize("text", GOOD + BAD)
def test_the_schema_for_editors_agrees_with_the_loader(check, text: str) -> None:
    from agentfn.document.read import parse_document

    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    by_schema = jsonschema.Draft202012Validator(SCHEMA).is_valid(parse_document(text, "a.yaml").value)
    assert by_schema == (check(text)[1] == []) == (text in GOOD)
