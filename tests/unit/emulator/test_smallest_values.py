"""The smallest valid value of schemas that take some finding, and texts for patterns."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator

from agentfn.emulator.models.matching import matching
from agentfn.emulator.models.smallest import smallest

SCHEMAS = [
    {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 4, "minLength": 3}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#/$defs/b"}]},
    {"oneOf": [{"type": "integer", "minimum": 5}, {"type": "integer", "maximum": 3}]},
    {"oneOf": [{"type": "string"}, {"const": ""}]},
    {"type": "string", "allOf": [{"pattern": "^x"}, {"minLength": 3}]},
    {"anyOf": [{"enum": []}, {"type": "null"}]},
    {"enum": [5, "a"], "type": "string"},
    {"properties": {"a": {"minimum": 3}}, "required": ["a"], "type": "object"},
    {"minimum": 3},
    {"items": {"type": "string"}, "minItems": 2},
    {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": {"type": "null"}, "minItems": 3},
    {"type": "array", "items": {"enum": ["b", "a", "c"]}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"type": "string", "maxLength": 1}, "minItems": 3, "uniqueItems": True},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True},
    {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True},
    {"type": "object", "properties": {"a": {}, "b": {"type": "integer"}}, "minProperties": 2},
    {"type": "object", "required": ["x"], "additionalProperties": {"type": "integer", "minimum": 2}},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "maximum": -2.5},
    {"type": "integer", "exclusiveMaximum": -3},
    {"type": "integer", "minimum": 7, "multipleOf": 5},
    {"type": "number", "minimum": 0.1, "multipleOf": 0.25},
    {"type": ["integer", "string"], "minLength": 2, "minimum": 1},
    {"type": "boolean", "const": True},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "date", "minLength": 10},
    {"$ref": "#/$defs/c", "description": "beside it"},
]
SHARED = {"b": {"properties": {"b": {"const": 2}}, "required": ["b"]}, "c": {"type": "string", "minLength": 1}}


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_a_valid_value_is_found(schema):
    whole = {**schema, "$defs": SHARED}
    Draft202012Validator(whole).validate(smallest(whole, whole))


@pytest.mark.parametrize(
    "schema", [{"type": "string", "minLength": 3, "maxLength": 2}, {"not": {}}, {"$ref": "#/$defs/loop"}]
)
def test_what_allows_nothing_gives_null(schema):
    loop = {"$ref": "#/$defs/loop", "enum": []}
    assert smallest(schema, {**schema, "$defs": {"loop": loop}}) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "", "^$", "abc", "^a.c$", r"^\d{3}-\d{2}$", r"^\w+@\w+\.(com|org)$", "^[^a]$", "^[^abc0]+$", r"^[\d]{2}[\s][\w]$",
        r"^\D\W\S$", "^(?:a|bc)?d$", "^(a(b(c)))$", "^a*?b+?$", "^[A-Fa-f0-9]{8}$", r"^\$\d+\.\d\d$", "^(?>ab)c++$", "^[^x]$",
        r"^[^\d\s]$", "end$",
    ],
)  # fmt: skip
@pytest.mark.parametrize("least", [0, 4])
def test_a_text_is_found_for_a_pattern_where_there_is_one(pattern, least):
    text = matching(pattern, least)
    if text is None:
        assert least == 4
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        return
    assert re.search(pattern, text)
    assert len(text) >= least


@pytest.mark.parametrize("pattern", ["(", r"^(a)\1$", "(?!)", "a{99999999999}"])
def test_what_is_no_pattern_or_beyond_this_gives_nothing(pattern):
    assert matching(pattern) is None
