"""A scenario: what the stand-in model does, step by step. docs/scenario.md describes the grammar."""

from __future__ import annotations

import hashlib
import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.document.read import Document, read_document
from agentfn.emulator.control import seconds_of
from agentfn.emulator.models.step import AskedCall, Fault, Prompt, Reply
from agentfn.errors import Finding, InvalidFileError

if TYPE_CHECKING:
    from pathlib import Path

_ANSWERS = ("say", "call", "error", "fail", "incomplete")
_MODIFIERS = ("when", "delay", "cut", "advance", "usage", "repeat", "allow_duplicate_ids")
_CUTS = ("before", "mid", "after")
_PLACEHOLDER = re.compile(r"\{\{\s*(message|output(?:\.[A-Za-z0-9_-]+)?)\s*\}\}")


class Scenario(NamedTuple):
    """Checked steps, as the author wrote them, and the name of where they stand."""

    steps: tuple[dict[str, Any], ...]
    source: str

    @property
    def digest(self) -> str:
        """Return what tells this scenario from another."""
        return hashlib.sha256(json.dumps(self.steps, sort_keys=True).encode()).hexdigest()[:32]


def load_scenario(path: Path) -> Scenario:
    """Read a file: a list of steps, or a mapping with the key steps. Raises InvalidFileError with every finding."""
    return _checked(read_document(path))


def parse_scenario(steps: Any, source: str) -> Scenario:
    """Check steps that were written in place, in an agent file or a case."""
    return _checked(Document(source, steps, {}, {}))


def _checked(document: Document) -> Scenario:
    steps, path = document.value, ()
    if isinstance(steps, dict) and set(steps) == {"steps"}:
        steps, path = steps["steps"], ("steps",)  # type: ignore[assignment]  # a longer path
    if not isinstance(steps, list):
        raise InvalidFileError([document.finding((), "scenario", "a scenario is a list of steps")])
    checker = _Checker(document)
    for index, step in enumerate(steps):
        checker.check(step, (*path, index))
    if checker.findings:
        raise InvalidFileError(checker.findings, hint="docs/scenario.md has the grammar")
    return Scenario(tuple(steps), document.source)


class _Checker:
    """Collects what is wrong with a scenario's steps."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.findings: list[Finding] = []

    def _error(self, path: tuple[str | int, ...], message: str) -> None:
        where = "" if self._document.position(path) != (0, 0) else f"step {path[-1] if path else ''}: "
        self.findings.append(self._document.finding(path, "scenario", where + message))

    def check(self, step: Any, path: tuple[str | int, ...]) -> None:
        if not isinstance(step, dict):
            self._error(path, f"a step is a mapping with one of {', '.join(_ANSWERS)}")
            return
        known = (*_ANSWERS, *_MODIFIERS)
        for key in step:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(known)}"
                self._error((*path, key), f"a step has no key {key}{meant}")
        answers = [key for key in _ANSWERS if key in step]
        if not answers and not {"cut", "advance"} & set(step):
            self._error(path, f"a step needs one of {', '.join(_ANSWERS)}")
        if len(answers) > 1 and answers != ["say", "call"]:
            self._error(path, f"{' and '.join(answers)} do not go together")
        self._check_values(step, path)
        if "call" in step:
            self._check_calls(step, path)

    def _check_values(self, step: dict[str, Any], path: tuple[str | int, ...]) -> None:
        if "say" in step and not isinstance(step["say"], str):
            self._error((*path, "say"), "say must be text; quote it")
        for key in ("delay", "advance"):
            if key in step and seconds_of(step[key]) is None:
                self._error((*path, key), f"{key} is a span such as 200ms, 2s or 11m, got {step[key]!r}")
        if "cut" in step and step["cut"] not in _CUTS:
            self._error((*path, "cut"), f"cut is one of {', '.join(_CUTS)}, got {step['cut']!r}")
        repeat = step.get("repeat", 1)
        if repeat != "forever" and (isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1):
            self._error((*path, "repeat"), f"repeat is a number from 1 on, or forever, got {repeat!r}")
        error = step.get("error")
        if "error" in step and not (isinstance(error, dict) and isinstance(error.get("status"), int)):
            self._error((*path, "error"), "error is a mapping with status, and optionally code, message and headers")
        when = step.get("when")
        if "when" in step:
            self._check_when(when, (*path, "when"))

    def _check_when(self, when: Any, path: tuple[str | int, ...]) -> None:
        if not isinstance(when, dict) or not when:
            self._error(path, "when is a mapping with message, output or step")
            return
        for key, value in when.items():
            if key not in ("message", "output", "step"):
                self._error((*path, key), f"when has no key {key}; known: message, output, step")
            texts = list(value.values()) if key == "output" and isinstance(value, dict) else [value]
            for text in texts if key != "step" else []:
                if not isinstance(text, str):
                    self._error((*path, key), f"{key} is compared with text; quote {text!r}")
                elif _is_pattern(text):
                    try:
                        re.compile(text[1:-1])
                    except re.error as exc:
                        self._error((*path, key), f"{text} is no regular expression: {exc}")

    def _check_calls(self, step: dict[str, Any], path: tuple[str | int, ...]) -> None:
        ids: list[str] = []
        entries = step["call"] if isinstance(step["call"], list) else [step["call"]]
        for index, entry in enumerate(entries):
            at = (*path, "call", index) if isinstance(step["call"], list) else (*path, "call")
            if not isinstance(entry, dict) or not entry:
                self._error(at, "call is {function: {arguments}}, or a list of such")
            elif "name" in entry and set(entry) <= {"name", "arguments", "raw", "id"}:
                if "raw" in entry and ("arguments" in entry or not isinstance(entry["raw"], str)):
                    self._error(at, "raw is the exact text of the arguments, in place of arguments")
                ids += [entry["id"]] if "id" in entry else []
            elif not all(isinstance(value, dict) or value is None for value in entry.values()):
                self._error(at, "the arguments of a call are a mapping; for other text use {name: …, raw: …}")
        twice = next((i for i in ids if ids.count(i) > 1), None)
        if twice is not None and not step.get("allow_duplicate_ids"):
            self._error((*path, "call"), f"two calls share the id {twice}; their outputs could not be told apart")


def take(scenario: Scenario, used: dict[str, int], prompt: Prompt) -> tuple[Reply, dict[str, int]]:
    """Return what the model does now, and how often each step was used: the first that holds and is not used up."""
    reasons = []
    for index, step in enumerate(scenario.steps):
        repeat = step.get("repeat", 1)
        if repeat != "forever" and used.get(str(index), 0) >= repeat:
            continue
        reason = _unmet(step.get("when") or {}, prompt)
        if reason is None:
            return _reply(step, prompt), {**used, str(index): used.get(str(index), 0) + 1}
        reasons.append(f"step {index + 1} not: {reason}")
    outputs = "; ".join(f"{output.function} gave {output.text!r}" for output in prompt.outputs) or "none"
    left = "; ".join(reasons) or "none is left"
    message = (
        f"the scenario {scenario.source} has no step for model step {prompt.number}"
        f" (message {prompt.message!r}, outputs just come: {outputs}); {left}"
    )
    return Reply(failure=("scenario_exhausted", message)), used


def _unmet(when: dict[str, Any], prompt: Prompt) -> str | None:
    """Say which condition does not hold, or None."""
    if "step" in when and when["step"] != prompt.number:
        return f"it is for model step {when['step']}"
    if "message" in when and not _matches(when["message"], prompt.message):
        return f"the message does not hold {when['message']!r}"
    if "output" not in when:
        return None
    wanted = when["output"]
    if isinstance(wanted, str):
        if not any(_matches(wanted, output.text) for output in prompt.outputs):
            return f"no output that has just come holds {wanted!r}"
        return None
    for function, text in wanted.items():
        if not any(output.function == function and _matches(text, output.text) for output in prompt.outputs):
            return f"no output of {function} that has just come holds {text!r}"
    return None


def _is_pattern(text: str) -> bool:
    return len(text) > 2 and text.startswith("/") and text.endswith("/")  # noqa: PLR2004  # two slashes and something


def _matches(wanted: str, text: str) -> bool:
    if _is_pattern(wanted):
        return re.search(wanted[1:-1], text) is not None
    return wanted.casefold() in text.casefold()


def _reply(step: dict[str, Any], prompt: Prompt) -> Reply:
    error = step.get("error")
    fail = step.get("fail")
    return Reply(
        text=_filled(step["say"], prompt) if "say" in step else None,
        calls=tuple(_calls(step.get("call"), prompt)),
        fault=_fault(error) if error else None,
        failure=(str(fail.get("code", "server_error")), str(fail.get("message", "failed"))) if fail else None,
        incomplete=step.get("incomplete"),
        delay=seconds_of(step.get("delay", 0)) or 0.0,
        cut=step.get("cut"),
        advance=seconds_of(step.get("advance", 0)) or 0.0,
        usage=step.get("usage"),
    )


def _fault(error: dict[str, Any]) -> Fault:
    headers = tuple((str(k), str(v)) for k, v in (error.get("headers") or {}).items())
    status = error["status"]
    return Fault(status, str(error.get("code", status)), str(error.get("message", f"scripted error {status}")), headers)


def _calls(call: Any, prompt: Prompt) -> list[AskedCall]:
    calls = []
    for entry in call if isinstance(call, list) else [call] if call else []:
        if "name" in entry and set(entry) <= {"name", "arguments", "raw", "id"}:
            text = entry["raw"] if "raw" in entry else json.dumps(_deep(entry.get("arguments") or {}, prompt))
            calls.append(AskedCall(str(entry["name"]), text, entry.get("id")))
        else:
            calls += [AskedCall(name, json.dumps(_deep(args or {}, prompt))) for name, args in entry.items()]
    return calls


def _deep(value: Any, prompt: Prompt) -> Any:
    if isinstance(value, str):
        return _filled(value, prompt)
    if isinstance(value, list):
        return [_deep(item, prompt) for item in value]
    if isinstance(value, dict):
        return {key: _deep(item, prompt) for key, item in value.items()}
    return value


def _filled(text: str, prompt: Prompt) -> str:
    """Return the text with ``{{message}}``, ``{{output}}`` and ``{{output.FUNCTION}}`` filled in."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "message":
            return prompt.message
        _, _, function = name.partition(".")
        known = [o.text for o in prompt.earlier if function in ("", o.function)]
        return known[-1] if known else match[0]

    return _PLACEHOLDER.sub(value, text)
