"""Who lets a call run that its tool wants to be asked about: a person, or a file of rules where nobody is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.document.check import instance_problems, schema_problems
from agentfn.errors import InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentfn.definition.agent import FunctionTool
    from agentfn.document.read import Document
    from agentfn.errors import Finding
    from agentfn.model import Json

_WORDS: Mapping[Json, bool] = {"yes": True, "no": False, True: True, False: False}


class Verdict(NamedTuple):
    """A decision on a call. `by` says whose it is; `reason` is told to the agent where the answer is no.

    `arguments` is JSON text that takes the place of the model's arguments.
    """

    allowed: bool
    by: str
    reason: str = ""
    arguments: str | None = None


class Rules:
    """The decisions of an ``--approve`` file, by function; what it says nothing of stays undecided."""

    def __init__(self, rules: Mapping[str, Json] | None = None, source: str = "") -> None:
        self._rules = rules or {}
        self._source = source

    def decide(self, function: str, arguments: Mapping[str, Json]) -> Verdict | None:
        """Return the decision on a call, or None where the file has none for it."""
        rule = self._rules.get(function)
        if rule is None:
            return None
        if isinstance(rule, dict):
            # Arguments beyond the rule are nobody's decision: the call stays pending.
            return None if instance_problems(dict(arguments), rule["if"]) else Verdict(allowed=True, by=self._source)
        return Verdict(_WORDS[rule], self._source, "" if _WORDS[rule] else f"{self._source} says no to {function}")


def read_rules(path: Path) -> Rules:
    """Read an ``--approve`` file: function → ``yes``, ``no``, or ``{if: a JSON Schema}``; raise InvalidFileError."""
    from agentfn.document.read import read_document

    return rules_of(read_document(path), path.name)


def rules_of(document: Document, source: str) -> Rules:
    """Check the rules that a document holds; `source` is whose decisions they are called."""
    if not isinstance(document.value, dict):
        raise InvalidFileError(
            [document.finding((), "approve", "expected a mapping of functions to yes, no or {if: …}")]
        )
    findings: list[Finding] = []
    for function, rule in document.value.items():
        if isinstance(rule, dict) and set(rule) == {"if"} and isinstance(rule["if"], dict):
            findings += [
                document.finding((function, "if", *problem.path), "approve", problem.message)
                for problem in schema_problems(rule["if"])
            ]
        elif isinstance(rule, (dict, list)) or rule not in _WORDS:
            findings.append(document.finding((function,), "approve", "expected yes, no, or {if: a JSON Schema}"))
    if findings:
        raise InvalidFileError(findings)
    return Rules(document.value, source)


def what_runs(tool: FunctionTool | None) -> str:
    """Return what a call of this tool will run, as the file has it; nothing that may hold a secret."""
    if tool is None:
        return "a local script"
    spec = tool.handler
    if spec.kind == "exec":
        return "exec: " + " ".join(map(repr, spec.value))
    if spec.kind == "python":
        return f"python: {spec.value}"
    if spec.kind == "http":
        return f"POST to {str(spec.value.get('url')).partition('?')[0]}"
    return spec.kind
