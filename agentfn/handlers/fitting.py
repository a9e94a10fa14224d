"""Says in one line, for the agent too, how a value breaks a schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.document.check import instance_problems

if TYPE_CHECKING:
    from agentfn.model import Json

#: So many problems are told, the rest counted: a list of thousands of wrong items must not become thousands of lines.
TOLD_PROBLEMS = 10


def schema_complaint(value: Json, schema: dict[str, Json]) -> str | None:
    """Return everything in which a value breaks a schema, or None where it fits."""
    try:
        problems = instance_problems(value, schema)
    except (RecursionError, OverflowError) as exc:
        return f"the value cannot be checked against the schema: {exc}"
    if not problems:
        return None
    told = [problem.message for problem in problems[:TOLD_PROBLEMS]]
    if len(problems) > TOLD_PROBLEMS:
        told.append(f"and {len(problems) - TOLD_PROBLEMS} more")
    return "; ".join(told)
