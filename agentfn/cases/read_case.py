"""Reads one case that is already put together: what is said, what answers, what is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.case import Answer, Case, Limits, Repeat, Stub, TurnSpec
from agentfn.cases.expect.read import read_expectations
from agentfn.cases.expect.words import Known, MatcherReader
from agentfn.document.derived import part
from agentfn.emulator.models.scenario import load_scenario, scenario_of
from agentfn.emulator.spans import seconds_of
from agentfn.errors import InvalidFileError, UsageError
from agentfn.handlers.outputs import BadOutput, content_parts, to_text
from agentfn.turn.approvals import Rules, rules_of

if TYPE_CHECKING:
    from pathlib import Path as File

    from agentfn.definition.agent import Agent
    from agentfn.definition.reader import Reader
    from agentfn.document.read import Path
    from agentfn.emulator.models.scenario import Scenario
    from agentfn.model import Json

CASE_KEYS = (
    "name",
    "agent",
    "input",
    "turns",
    "local",
    "outputs",
    "handlers",
    "approve",
    "expect",
    "repeat",
    "limits",
    "tags",
)
TURN_KEYS = ("input", "outputs", "expect")
ANSWER_KEYS = ("output", "content", "error", "when")
_RULE = "test-file"


class Own(NamedTuple):
    """What a case says itself, rather than a default or a case that it extends: these functions' outputs, and its turns."""

    outputs: frozenset[str]
    turns: bool


def read_case(reader: Reader, file: File, agent: Agent, own: Own) -> Case | None:
    """Return the case that a reader's document is; None, or a doubtful one beside findings, where something is wrong.

    Outputs of its `own` must be asked for.
    """
    return _Reading(reader, file, agent, own).case()


class _Reading:
    """One case that is being read."""

    def __init__(self, reader: Reader, file: File, agent: Agent, own: Own) -> None:
        self._reader = reader
        self._file = file
        self._agent = agent
        self._own = own
        self._value: dict[str, Json] = reader.document.value

    def _error(self, path: Path, message: str, rule: str = _RULE) -> None:
        self._reader.error(path, rule, message)

    def case(self) -> Case | None:
        value = self._value
        turns = self._turns()
        line, column = self._reader.document.position(())
        handlers = self._reader.flag(value, "handlers", ())
        return Case(
            file=self._file,
            name=value["name"],
            line=line,
            column=column,
            agent=self._agent,
            turns=turns,
            expect=read_expectations(self._reader, value.get("expect"), ("expect",), self._agent),
            outputs=self._outputs(value.get("outputs"), ("outputs",), self._own.outputs),
            handlers=handlers is not False,
            scenario=self._scenario(),
            approve=self._approve(),
            repeat=self._repeat(),
            limits=self._limits(),
            tags=self._tags(),
        )

    def _turns(self) -> tuple[TurnSpec, ...]:
        value = self._value
        if ("input" in value) == ("turns" in value):
            self._error((), "a case has either input, what is said, or turns, a list of what is said one after another")
            return ()
        if "input" in value:
            said = value["input"] if isinstance(value["input"], list) else [value["input"]]
            paths: list[Path] = (
                [("input", i) for i in range(len(said))] if isinstance(value["input"], list) else [("input",)]
            )
            turns = [TurnSpec(self._said(text, path)) for text, path in zip(said, paths, strict=True)]
        elif isinstance(value["turns"], list):
            turns = [self._turn(turn, ("turns", index)) for index, turn in enumerate(value["turns"])]
        else:
            turns = []
        last = next((index for index, turn in enumerate(turns[:-1]) if turn.expect.ends_conversation), None)
        if last is not None:
            self._error(
                ("turns", last), "a conversation ends with a turn that fails or waits, so no other may follow it"
            )
        if not turns:
            self._error(("turns",) if "turns" in value else ("input",), "nothing is said to the agent")
        return tuple(turns)

    def _turn(self, turn: Json, path: Path) -> TurnSpec:
        if not isinstance(turn, dict):
            return TurnSpec(self._said(turn, path))
        self._reader.unknown_keys(turn, TURN_KEYS, path, "a turn")
        return TurnSpec(
            self._said(turn.get("input"), (*path, "input")),
            self._outputs(turn.get("outputs"), (*path, "outputs"), None if self._own.turns else frozenset()),
            read_expectations(self._reader, turn.get("expect"), (*path, "expect"), self._agent),
        )

    def _said(self, text: Json, path: Path) -> str:
        if not isinstance(text, str) or not text.strip():
            self._error(path, "input is what is said to the agent: a text that is not empty")
            return ""
        return text

    def _outputs(self, value: Json, path: Path, required: frozenset[str] | None) -> dict[str, Stub]:
        """Read outputs; `required` are the functions that must be asked for, None is all of them."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._error(path, "outputs is a mapping of functions to what they give")
            return {}
        known = [tool.name for tool in self._agent.functions]
        found = {}
        for function, given in value.items():
            at = (*path, function)
            if function not in known:
                self._reader.unknown_keys({function: given}, known, path, "outputs")
                continue
            each = isinstance(given, list)
            entries = [(entry, (*at, i)) for i, entry in enumerate(given)] if each else [(given, at)]
            answers = tuple(self._answer(entry, where, function) for entry, where in entries)
            if not answers:
                self._error(at, "a list of outputs is one for each call, and this one is empty; {output: []} is one")
            found[function] = Stub(function, answers, each, required is None or function in required)
        return found

    def _answer(self, value: Json, path: Path, function: str) -> Answer:
        """Read one output: a mapping with one of output, content and error (and optionally when), else the output itself."""
        if not isinstance(value, dict) or not value or not set(value) <= set(ANSWER_KEYS) or set(value) == {"when"}:
            self._require_sendable(value, path)
            return Answer(output=value)
        if sum(key in value for key in ("output", "content", "error")) != 1:
            self._error(path, "write exactly one of output, content and error")
            return Answer()
        tool = self._agent.function(function)
        schema = tool.parameters if tool is not None else None
        when = None
        if "when" in value:
            when = MatcherReader(self._reader).read(value["when"], (*path, "when"), Known(schema, schema))
        if "error" in value and not isinstance(value["error"], str):
            self._error((*path, "error"), "error is a text; quote it")
        if "content" in value:
            try:
                return Answer(content=content_parts(value["content"]), when=when)
            except BadOutput as exc:
                self._error((*path, "content"), str(exc))
        if "output" in value:
            self._require_sendable(value["output"], (*path, "output"))
        return Answer(value.get("output"), None, value.get("error"), when)

    def _require_sendable(self, value: Json, path: Path) -> None:
        try:
            to_text(value)
        except BadOutput as exc:
            self._error(path, str(exc))

    def _scenario(self) -> Scenario | None:
        """Return the case's scenario, else the agent's; None for the stand-in."""
        local = self._value.get("local")
        try:
            if isinstance(local, str):
                return load_scenario(self._file.parent / local)
            if local is not None:
                return scenario_of(part(self._reader.document, ("local",)))
            if isinstance(self._agent.local, str):
                return load_scenario(self._agent.base / self._agent.local)
            if self._agent.local is not None:
                from agentfn.emulator.models.scenario import parse_scenario

                return parse_scenario(self._agent.local, str(self._agent.path))
        except InvalidFileError as exc:
            self._reader.findings += exc.findings
        except UsageError as exc:
            self._error(("local",), exc.message)
        return None

    def _approve(self) -> Rules:
        if "approve" not in self._value:
            return Rules()
        try:
            return rules_of(part(self._reader.document, ("approve",)), "the case")
        except InvalidFileError as exc:
            self._reader.findings += exc.findings
            return Rules()

    def _repeat(self) -> Repeat:
        value = self._value.get("repeat", 1)
        if isinstance(value, dict):
            self._reader.unknown_keys(value, ("times", "at_least"), ("repeat",), "repeat")
            times: Json = value.get("times")
            at_least: Json = value.get("at_least", times)
        else:
            times = at_least = value
        if _is_count(times) and _is_count(at_least) and at_least <= times:
            return Repeat(times, at_least)
        self._error(("repeat",), "repeat is a number from 1 on, or {times: 10, at_least: 8}")
        return Repeat()

    def _limits(self) -> Limits:
        value = self._value.get("limits")
        if value is None:
            return Limits()
        if not isinstance(value, dict):
            self._error(("limits",), f"limits is a mapping with any of {', '.join(Limits._fields)}")
            return Limits()
        self._reader.unknown_keys(value, Limits._fields, ("limits",), "limits")
        found = Limits()
        for key, given in value.items():
            if key == "seconds":
                seconds = seconds_of(given)
                if not seconds:
                    self._error(("limits", key), f"seconds is a number or a span such as 30s or 2m, got {given!r}")
                else:
                    found = found._replace(seconds=seconds)
            elif key in Limits._fields:
                if not _is_count(given):
                    self._error(("limits", key), f"{key} is a number from 1 on, got {given!r}")
                else:
                    found = found._replace(**{key: given})
        return found

    def _tags(self) -> tuple[str, ...]:
        value = self._value.get("tags", [])
        tags = [value] if isinstance(value, str) else value
        if not isinstance(tags, list) or not all(isinstance(tag, str) and tag.strip() for tag in tags):
            self._error(("tags",), "tags is a list of texts")
            return ()
        return tuple(tags)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
