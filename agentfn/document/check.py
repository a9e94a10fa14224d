"""Checks values against JSON Schemas, and schemas themselves: the plain ones by sight, the others with jsonschema.

jsonschema is loaded only where something is not plainly right, so that most commands never pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.document.plain import fits, is_sound

if TYPE_CHECKING:
    from agentfn.document.schema import Problem
    from agentfn.model import Json


def schema_problems(schema: Json) -> list[Problem]:
    """Return what is wrong with a JSON Schema (draft 2020-12), references included; nothing is ever fetched."""
    if is_sound(schema):
        return []
    from agentfn.document.schema import library_schema_problems

    return library_schema_problems(schema)


def instance_problems(instance: Json, schema: dict[str, Json] | bool) -> list[Problem]:
    """Return everything in which a value breaks a schema; empty where it fits."""
    if fits(instance, schema):
        return []
    from agentfn.document.bounded import MOST_SECONDS, bounded
    from agentfn.document.schema import Problem, library_instance_problems

    try:
        return bounded(lambda: library_instance_problems(instance, schema))
    except TimeoutError:
        told = f"the value could not be checked within {MOST_SECONDS:g} s: a pattern of the schema takes for ever on it"
        return [Problem((), told)]
