"""The stand-in model: which function, which arguments, what it says; and that arguments always fit the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentfn.emulator.models.standin import answer
from agentfn.emulator.models.step import Output, Prompt
from agentfn.emulator.models.values import arguments_for


def prompt(message: str, *tools: dict[str, Any], choice: Any = "auto", outputs: tuple[Output, ...] = ()) -> Prompt:
    return Prompt(list(tools), choice, message, outputs, outputs, 1)


def function(name: str, description: str = "", required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return {"type": "function", "name": name, "description": description, "parameters": parameters}


def chosen(message: str, part: dict[str, Any], name: str = "value") -> Any:
    """Return what the one required parameter gets."""
    return arguments_for(function("do_it", "", None, **{name: part}), message)[name]


WEATHER = function("getCurrentWeather", "Get the current weather in a location", location={"type": "string"})
HOROSCOPE = function("get_horoscope", "Get today's horoscope for an astrological sign.", sign={"type": "string"})
CITIES = function("list_cities", "List all cities of a country.", country={"type": "string"})


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("What's the weather in Dar es Salaam, Tanzania?", "getCurrentWeather"),
        ("What is my horoscope? I am an Aquarius.", "get_horoscope"),
        ("Which city is the largest of that country?", "list_cities"),
        ("WEATHER please", "getCurrentWeather"),
    ],
)
def test_the_function_that_the_message_is_about_is_called(message, name):
    (call,) = answer(prompt(message, WEATHER, HOROSCOPE, CITIES)).calls
    assert call.function == name


def test_no_function_fits_and_the_answer_says_what_it_is_and_what_there_is():
    reply = answer(prompt("Tell me a joke", WEATHER, HOROSCOPE))
    assert reply.calls == ()
    assert "no language model" in str(reply.text)
    assert "getCurrentWeather, get_horoscope" in str(reply.text)


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("none", None),
        ("required", "getCurrentWeather"),
        ({"type": "function", "name": "get_horoscope"}, "get_horoscope"),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"name": "get_horoscope"}]}, "get_horoscope"),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "get_horoscope"}]}, None),
        ({"type": "function", "name": "unknown"}, None),
    ],
)
def test_the_tool_choice_is_honoured_where_nothing_fits(choice, name):
    calls = answer(prompt("Tell me a joke", WEATHER, HOROSCOPE, choice=choice)).calls
    assert [call.function for call in calls] == ([name] if name else [])


def test_outputs_are_told_with_the_function_each_came_from():
    outputs = (Output("a", "1", '{"x": 1}'), Output("b", "2", '{"error": "no"}'), Output("c", "3", ""))
    assert (
        answer(prompt("weather", WEATHER, outputs=outputs)).text == 'a gave {"x": 1}; b gave {"error": "no"}; c gave '
    )


@pytest.mark.parametrize(
    ("message", "part", "value"),
    [
        # a word that is in the enum, the examples or the description
        ("in Fahrenheit please, I am 5", {"type": "string", "enum": ["celsius", "fahrenheit"]}, "fahrenheit"),
        ("level 3 of 7", {"type": "integer", "enum": [1, 3]}, 3),
        ("I like Bergen", {"type": "string", "examples": ["Oslo", "Bergen"]}, "Bergen"),
        ("I am an Aquarius.", {"type": "string", "description": "A sign like Taurus or Aquarius"}, "Aquarius"),
        (
            "the weather in San Francisco, CA",
            {"type": "string", "description": "City and state, e.g. San Francisco, CA"},
            "San Francisco, CA",
        ),
        ("a Sign: Leo, or a star", {"type": "string", "description": "Leo, star"}, "Leo"),
        # a number, date, address or quoted text that fits
        ("give me 42 of them", {"type": "integer"}, 42),
        ("give me 42 or 7 of them", {"type": "integer", "maximum": 10}, 7),
        ("it costs 2.5 euros", {"type": "number"}, 2.5),
        ("on 2026-12-01, 5 people", {"type": "string", "format": "date"}, "2026-12-01"),
        ("at 2026-12-01T10:00:00Z", {"type": "string", "format": "date-time"}, "2026-12-01T10:00:00Z"),
        ("write to ann@example.org!", {"type": "string", "format": "email"}, "ann@example.org"),
        ("see https://example.org/a?b=1.", {"type": "string", "format": "uri"}, "https://example.org/a?b=1"),
        ('call it "Blue Door"', {"type": "string"}, "Blue Door"),
        ('call it "abc" or "AB-1"', {"type": "string", "pattern": "^[A-Z]{2}-\\d$"}, "AB-1"),
        # a default, the first enum value, the smallest
        ("nothing", {"type": "integer", "default": 9}, 9),
        ("nothing", {"type": "string", "enum": ["b", "a"]}, "b"),
        ("nothing", {"type": "string"}, ""),
        ("nothing", {"type": "integer", "minimum": 3}, 3),
        ("nothing", {"type": ["string", "null"]}, None),
        ("nothing", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ("about Oslo", {"anyOf": [{"type": "null"}, {"type": "string"}], "description": "such as Oslo"}, "Oslo"),
        ("rooms 3", {"type": "array", "items": {"type": "integer"}}, [3]),
        ("for Ann", {"type": "object", "properties": {"n": {"type": "string", "description": "Ann"}}}, {"n": "Ann"}),
    ],
)
def test_values_are_chosen_in_the_pinned_order(message, part, value):
    assert chosen(message, part) == value


def test_words_of_the_parameters_and_functions_own_names_are_no_values():
    part = {"type": "string", "description": "The weather location"}
    assert arguments_for(function("getWeather", location=part), "weather at that location") == {"location": ""}


def test_optional_parameters_are_given_only_what_the_message_says():
    tool = function(
        "f", required=[], unit={"type": "string", "enum": ["c", "f"]}, days={"type": "integer", "default": 3}
    )
    assert arguments_for(tool, "hello") == {}
    assert arguments_for(tool, "5 days") == {"days": 5}


def test_two_parameters_do_not_get_the_same_number():
    tool = function("book", nights={"type": "integer"}, guests={"type": "integer"})
    assert arguments_for(tool, "3 nights, 2 guests") == {"nights": 3, "guests": 2}


def test_a_schema_that_contains_itself_ends():
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}
    tool = {"name": "walk", "parameters": {"type": "object", "properties": {"n": {"$ref": "#/$defs/node"}}}}
    tool["parameters"]["$defs"] = {"node": node}  # type: ignore[index]  # a nested mapping
    tool["parameters"]["required"] = ["n"]  # type: ignore[index]  # likewise
    assert arguments_for(tool, "walk 3 times") == {"n": {}}


def test_a_reference_to_anywhere_in_the_schema_is_followed():
    properties = {"a": {"type": "integer", "minimum": 5}, "b": {"$ref": "#/properties/a"}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties, "required": ["a", "b"]}}
    assert arguments_for(tool, "") == {"a": 5, "b": 5}


# --- any schema that has a value gets one ---

TEXTS = ["^[a-z]+$", r"^\d{4}-\d{2}$", "^(yes|no)$", "[A-Z]{2}", r"^[^\s@]+@x\.org$", r"^\w{3,}$", "^$"]


@st.composite
def scalars(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(
        st.sampled_from(["string", "integer", "number", "boolean", "null", "enum", "const", "pattern", "format"])
    )
    if kind == "string":
        least = draw(st.integers(0, 5))
        return {"type": "string", "minLength": least, "maxLength": least + draw(st.integers(0, 9))}
    if kind in ("integer", "number"):
        low = draw(st.integers(-50, 50))
        schema: dict[str, Any] = {"type": kind}
        schema |= draw(st.sampled_from([{}, {"minimum": low}, {"exclusiveMinimum": low}]))
        schema |= draw(st.sampled_from([{}, {"maximum": low + 12}, {"exclusiveMaximum": low + 12}]))
        return schema | draw(st.sampled_from([{}, {"multipleOf": 5}]))
    values = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=4))
    if kind == "enum":
        return {"enum": draw(st.lists(values, min_size=1, max_size=3))}
    if kind == "const":
        return {"const": draw(values)}
    if kind == "pattern":
        return {"type": "string", "pattern": draw(st.sampled_from(TEXTS))}
    if kind == "format":
        return {"type": "string", "format": draw(st.sampled_from(["date", "date-time", "email", "uri", "uuid", "odd"]))}
    return {"type": kind}


def composed(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["city", "unit", "days", "who", "$ref"])

    @st.composite
    def objects(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(names.filter(lambda n: n != "$ref"), inner, max_size=3))
        required = [name for name in properties if draw(st.booleans())]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    arrays = st.builds(
        lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)
    )
    unique = st.integers(0, 3).map(
        lambda n: {"type": "array", "items": {"type": "integer"}, "minItems": n, "uniqueItems": True}
    )
    unions = st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    types = st.sampled_from([["string", "null"], ["integer", "string"], ["null", "boolean"]]).map(lambda t: {"type": t})
    return st.one_of(objects(), arrays, unique, unions, types)


SCHEMAS = st.recursive(scalars(), composed, max_leaves=8)
MESSAGES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["5 days in Oslo", 'say "yes" or "2026-11"', "a@x.org on 2026-12-01", "-3.5 and 40", "null AB"]),
)


@settings(deadline=None, max_examples=300)
@given(properties=st.dictionaries(st.sampled_from(["a", "b", "c"]), SCHEMAS, max_size=3), message=MESSAGES)
def test_arguments_always_fit_the_schema(properties, message):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    tool = {"type": "function", "name": "f", "parameters": parameters}
    (call,) = answer(prompt(message, tool, choice="required")).calls
    Draft202012Validator(parameters).validate(json.loads(call.arguments))


@settings(deadline=None, max_examples=100)
@given(shared=SCHEMAS, message=MESSAGES)
def test_arguments_fit_where_the_schema_refers_to_shared_parts(shared, message):
    properties = {
        "a": {"$ref": "#/$defs/part"},
        "b": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1},
    }
    parameters = {"type": "object", "properties": properties, "required": ["a", "b"], "$defs": {"part": shared}}
    arguments = arguments_for({"name": "f", "parameters": parameters}, message)
    Draft202012Validator(parameters).validate(arguments)
