"""JSON Schema by jsonschema, told in words. The one home of jsonschema; `check` is how to get here."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from agentfn.document.walk import Path, pointer, resolve_pointer, subschemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentfn.model import Json


class Problem(NamedTuple):
    """Something wrong at one place of a value. `message` starts with the place where that is not the root."""

    path: Path
    message: str

    @property
    def pointer(self) -> str:
        """Return the place as a JSON pointer; the root is empty."""
        return pointer(self.path)


_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    type(None): "null",
    int: "integer",
    float: "number",
}


def type_name(value: Json) -> str:
    """Return the JSON name of a value's type."""
    return _NAMES.get(type(value), type(value).__name__)


def library_schema_problems(schema: Json) -> list[Problem]:
    """Return what is wrong with a JSON Schema (draft 2020-12), references included; nothing is ever fetched."""
    if not isinstance(schema, (dict, bool)):
        return [Problem((), f"a schema must be an object, got {type_name(schema)}")]
    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    try:
        problems = [_problem(error) for error in _leaves(validator.iter_errors(schema))]
    except RecursionError:
        return [Problem((), "nested too deeply")]
    problems += [Problem(path, message) for path, message in _reference_problems(schema)]
    problems += [Problem(path, message) for path, message in _pattern_problems(schema)]
    return sorted(set(problems), key=lambda problem: (_order(problem.path), problem.message))


def library_instance_problems(instance: Json, schema: dict[str, Json] | bool) -> list[Problem]:
    """Return everything in which a value breaks a schema, in document order; empty where it fits."""
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        errors = sorted(validator.iter_errors(instance), key=lambda error: _order(error.absolute_path))
        return list(dict.fromkeys(_problem(error) for error in _leaves(errors)))
    except RecursionError:
        return [Problem((), "the schema or the value is nested too deeply to be checked")]
    except OverflowError:
        return [Problem((), "a number is too large to be checked")]
    except (SchemaError, Unresolvable, re.error) as exc:
        return [Problem((), f"the schema cannot be used: {str(exc).splitlines()[0]}")]


def _order(path: Iterable[str | int]) -> list[tuple[bool, int, str]]:
    """Return what sorts paths as a reader would: indexes by their number, names by their letters."""
    return [(isinstance(part, str), 0, part) if isinstance(part, str) else (False, part, "") for part in path]


def _leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield errors worth telling: for anyOf and its like the branch that came nearest, where one clearly did."""
    for error in errors:
        if error.validator in {"anyOf", "oneOf"} and error.context:
            best = jsonschema.exceptions.best_match([error])
            yield best if best is not None and len(best.absolute_path) > len(error.absolute_path) else error
        else:
            yield error


def _problem(error: ValidationError) -> Problem:
    path: Path = tuple(error.absolute_path)
    return Problem(path, _message(error, pointer(path)))


def _message(error: ValidationError, place: str) -> str:
    value: Any = error.instance
    limit: Any = error.validator_value
    at = f"{place} " if place else ""
    match error.validator:
        case "type":
            expected = " or ".join(limit) if isinstance(limit, list) else limit
            return f"{at or 'the value '}expects {expected}, got {type_name(value)}"
        case "required":
            missing = [name for name in limit if name not in value and f"'{name}'" in error.message]
            return f"{at and at + 'is '}missing required property {', '.join(missing)}"
        case "enum":
            return f"{at or 'the value '}must be one of {_list(limit)}, got {_shown(value)}"
        case "const":
            return f"{at or 'the value '}must be {_shown(limit)}, got {_shown(value)}"
        case "additionalProperties" if limit is False and isinstance(error.schema, dict):
            return at + _unknown(value, error.schema)
        case "pattern":
            return f"{at or 'the value '}must match {limit}, got {_shown(value)}"
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return f"{at or 'the value '}must be {_BOUND[str(error.validator)]} {limit}, got {_shown(value)}"
        case "minLength" | "maxLength":
            return (
                f"{at or 'the value '}has {len(value)} characters, {_BOUND[str(error.validator)]} {limit} are allowed"
            )
        case "minItems" | "maxItems":
            return f"{at or 'the value '}has {len(value)} items, {_BOUND[str(error.validator)]} {limit} are allowed"
        case "anyOf" | "oneOf":
            return f"{at or 'the value '}{_alternatives(limit)}, got {_shown(value)}"
        case _:
            return f"{at}{error.message}"


def _alternatives(branches: list[Any]) -> str:
    types = [str(branch["type"]) for branch in branches if isinstance(branch, dict) and "type" in branch]
    if types and len(types) == len(branches):
        return f"expects {' or '.join(types)}"
    return f"fits none, or more than one, of the {len(branches)} allowed forms"


_BOUND = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "minLength": "at least",
    "maxLength": "at most",
    "minItems": "at least",
    "maxItems": "at most",
}


def _unknown(value: dict[str, Json], schema: dict[str, Any]) -> str:
    known = list(schema.get("properties", {}))
    patterns = schema.get("patternProperties", {})
    extra = [name for name in value if name not in known and not any(re.search(p, name) for p in patterns)]
    parts = []
    for name in extra:
        close = get_close_matches(name, known, n=1)
        parts.append(f"unknown property {name}" + (f" (did you mean {close[0]}?)" if close else ""))
    return "; ".join(parts) + ("" if any("did you mean" in part for part in parts) else f"; allowed: {_names(known)}")


def _names(known: list[str]) -> str:
    return ", ".join(known) if known else "none"


def _list(values: list[Json]) -> str:
    return ", ".join(_shown(value) for value in values)


def _shown(value: Json) -> str:
    """Return a value as short JSON."""
    import json

    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"  # noqa: PLR2004  # enough to recognise it


def _reference_problems(schema: Json) -> Iterator[tuple[Path, str]]:
    for path, part in subschemas(schema):
        reference = part.get("$ref")
        if not isinstance(reference, str):
            continue
        if not reference.startswith("#"):
            yield (*path, "$ref"), f"$ref {reference} points outside this schema; nothing is fetched"
        elif resolve_pointer(schema, reference) is None:
            yield (*path, "$ref"), f"$ref {reference} points to nothing"


def _pattern_problems(schema: Json) -> Iterator[tuple[Path, str]]:
    for path, part in subschemas(schema):
        pattern = part.get("pattern")
        if isinstance(pattern, str):
            try:
                re.compile(pattern)
            except re.error as exc:
                yield (*path, "pattern"), f"pattern {pattern} is no regular expression: {exc}"
