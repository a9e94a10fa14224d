"""A scenario: what the stand-in model does, step by step. docs/scenario.md describes the grammar."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.models.scenario_check import Checker, is_long_form, is_pattern, is_pause
from agentfn.emulator.models.step import AskedCall, Fault, Prompt, Reply
from agentfn.emulator.spans import seconds_of
from agentfn.errors import InvalidFileError

if TYPE_CHECKING:
    from pathlib import Path as File

    from agentfn.document.read import Document, Path

_PLACEHOLDER = re.compile(r"\{\{\s*(message|output(?:\.[A-Za-z0-9_-]+)?)\s*\}\}")

Used = dict[str, int]
"""How often each step was taken, by its index as text (it is kept as JSON)."""


class Scenario(NamedTuple):
    """Checked steps, as the author wrote them, and the name of where they stand."""

    steps: tuple[dict[str, Any], ...]
    source: str

    @property
    def digest(self) -> str:
        """Return what tells this scenario from another."""
        return hashlib.sha256(json.dumps(self.steps, sort_keys=True).encode()).hexdigest()[:32]


def load_scenario(path: File) -> Scenario:
    """Read a file: a list of steps, or a mapping with the key steps. Raises InvalidFileError with every finding."""
    from agentfn.document.read import read_document

    return scenario_of(read_document(path))


def parse_scenario(steps: Any, source: str) -> Scenario:
    """Check steps that were written in place, in an agent file; `source` is that file's name."""
    from agentfn.document.read import Document

    return scenario_of(Document(source, steps, {}, {}))


def scenario_of(document: Document) -> Scenario:
    """Check the steps that a document holds, each of which knows where it stands."""
    steps = document.value
    path: Path = ()
    if isinstance(steps, dict) and set(steps) == {"steps"}:
        steps, path = steps["steps"], ("steps",)
    if not isinstance(steps, list):
        message = "a scenario is a list of steps, or a mapping with the one key steps"
        raise InvalidFileError([document.finding((), "scenario", message)])
    checker = Checker(document)
    for index, step in enumerate(steps):
        checker.check(step, (*path, index))
    if checker.findings:
        raise InvalidFileError(checker.findings, hint="docs/scenario.md has the grammar")
    return Scenario(tuple(steps), document.source)


def take(scenario: Scenario, used: Used, prompt: Prompt) -> tuple[Reply, Used]:
    """Return what the model does now, and how often each step was taken by then.

    The first step whose conditions hold and that is not used up is taken. Steps that only advance the clock are no
    answer: those met on the way are played before it, those right behind it after it.
    """
    used = dict(used)
    reasons: list[str] = []
    before = 0.0
    for index, step in enumerate(scenario.steps):
        if _is_used_up(step, used.get(str(index), 0)):
            continue
        reason = _unmet(step.get("when") or {}, prompt)
        if reason is not None:
            reasons.append(f"step {index + 1} not: {reason}")
            continue
        used[str(index)] = used.get(str(index), 0) + 1
        if is_pause(step):
            before += seconds_of(step["advance"]) or 0.0
            continue
        after = _pauses_behind(scenario, index, used)
        reply = _reply(step, prompt)
        return reply._replace(advance=reply.advance + after, advance_first=before), used
    return _exhausted(scenario, prompt, reasons)._replace(advance_first=before), used


def _is_used_up(step: dict[str, Any], times: int) -> bool:
    repeat = step.get("repeat", 1)
    return repeat != "forever" and times >= int(repeat)


def _pauses_behind(scenario: Scenario, index: int, used: Used) -> float:
    """Return the seconds of the unconditional pauses right behind a step, and mark them as used."""
    if not _is_used_up(scenario.steps[index], used[str(index)]):
        return 0.0  # it will be repeated; they stand behind the last time
    seconds = 0.0
    for number, step in enumerate(scenario.steps[index + 1 :], index + 1):
        if not is_pause(step) or "when" in step:
            break
        if not used.get(str(number)):
            seconds += seconds_of(step["advance"]) or 0.0
            used[str(number)] = 1
    return seconds


def _exhausted(scenario: Scenario, prompt: Prompt, reasons: list[str]) -> Reply:
    outputs = "; ".join(f"{output.function} gave {output.text!r}" for output in prompt.outputs) or "none"
    left = "; ".join(reasons) or "no step is left"
    message = (
        f"the scenario {scenario.source} has no step for model step {prompt.number}"
        f" (message {prompt.message!r}, outputs just come: {outputs}); {left}"
    )
    return Reply(failure=("scenario_exhausted", message))


def _unmet(when: dict[str, Any], prompt: Prompt) -> str | None:
    """Say which condition does not hold, or None."""
    if "step" in when and when["step"] != prompt.number:
        return f"it is for model step {when['step']}"
    if "message" in when and not _matches(when["message"], prompt.message):
        return f"the message does not hold {when['message']!r}"
    wanted = when.get("output", {})
    for function, text in [(None, wanted)] if isinstance(wanted, str) else wanted.items():
        outputs = [output for output in prompt.outputs if function in (None, output.function)]
        if not any(_matches(text, output.text) for output in outputs):
            of = f" of {function}" if function else ""
            return f"no output{of} that has just come holds {text!r}"
    return None


def _matches(wanted: str, text: str) -> bool:
    if is_pattern(wanted):
        return re.search(wanted[1:-1], text) is not None
    return wanted.casefold() in text.casefold()


def _reply(step: dict[str, Any], prompt: Prompt) -> Reply:
    error, fail = step.get("error"), step.get("fail")
    return Reply(
        text=_filled(step["say"], prompt) if "say" in step else None,
        calls=tuple(_calls(step.get("call"), prompt)),
        fault=_fault(error) if error is not None else None,
        failure=(fail.get("code", "server_error"), fail.get("message", "the scenario says so"))
        if fail is not None
        else None,
        incomplete=step.get("incomplete"),
        delay=seconds_of(step.get("delay", 0)) or 0.0,
        cut=step.get("cut"),
        advance=seconds_of(step.get("advance", 0)) or 0.0,
        accepts_after=seconds_of(step.get("accepts_after", 0)) or 0.0,
        usage=step.get("usage"),
    )


def _fault(error: dict[str, Any]) -> Fault:
    headers = tuple((name, str(value)) for name, value in error.get("headers", {}).items())
    status = error["status"]
    return Fault(
        status,
        error.get("code", str(status)),
        error.get("message", f"the scenario answers HTTP {status} here"),
        headers,
        error.get("type", "error"),
    )


def _calls(call: Any, prompt: Prompt) -> list[AskedCall]:
    calls = []
    for entry in call if isinstance(call, list) else [call] if call else []:
        if is_long_form(entry):
            text = entry["raw"] if "raw" in entry else _arguments(entry.get("arguments"), prompt)
            calls.append(AskedCall(entry["name"], text, entry.get("id")))
        else:
            calls += [AskedCall(name, _arguments(arguments, prompt)) for name, arguments in entry.items()]
    return calls


def _arguments(arguments: dict[str, Any] | None, prompt: Prompt) -> str:
    return json.dumps(_deep(arguments or {}, prompt), ensure_ascii=False)


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
        known = [output.text for output in prompt.earlier if function in ("", output.function)]
        # Left as written where there is none: an empty place would hide the mistake.
        return known[-1] if known else match[0]

    return _PLACEHOLDER.sub(value, text)
