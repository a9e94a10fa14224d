"""A recording as data and as a file: what came in, what came back, step by step.

Ids of the service are replaced by numbers and its times left out, so that recording the same answers again gives the same
file. Secrets are masked before any of it reaches the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentfn.document.check import instance_problems
from agentfn.document.read import parse_document
from agentfn.errors import Finding, InvalidFileError
from agentfn.masking import MASK
from agentfn.model import Call, Outcome, Usage

if TYPE_CHECKING:
    from agentfn.cases.case import Case
    from agentfn.definition.agent import Agent
    from agentfn.masking import Masker
    from agentfn.model import Json

#: The form of the file; it grows when a key changes its meaning.
VERSION = 1
_HINT = "record it: agentfn test … --record DIR"
_HEAD = "# What a service answered, recorded by agentfn test --record; played by --replay.\n"


class RecordedStep(NamedTuple):
    """One request and its answer. `sent` are the outcomes that went out, by call id; none in a turn's first step."""

    sent: dict[str, Outcome]
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    failure: str | None = None
    usage: Usage | None = None


class RecordedTurn(NamedTuple):
    """A message and the steps that followed it."""

    message: str
    steps: tuple[RecordedStep, ...]


class Fingerprint(NamedTuple):
    """What the answers depended on: the model, and digests of the instructions and of each function's parameters."""

    model: str
    instructions: str
    functions: dict[str, str]


class Recording(NamedTuple):
    """All recorded attempts at one case, by their number; `case` is its name."""

    case: str
    backend: str
    agent: Fingerprint
    attempts: dict[int, tuple[RecordedTurn, ...]]


def fingerprint(agent: Agent) -> Fingerprint:
    """Return what answers of this agent depend on."""
    functions = {tool.name: _digest(tool.parameters) for tool in agent.functions}
    return Fingerprint(agent.model, _digest(agent.instructions), functions)


def _digest(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def path_of(folder: Path, case: Case, masker: Masker) -> Path:
    """Return the file of a case: a folder for each test file, where it lies beside the recordings, and a known name.

    The name is the case's without secrets; a file that was written where others were known is found by its mark.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", masker.mask(case.name).lower()).strip("-")[:60]
    mark = hashlib.sha256(case.name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    beside = Path(os.path.relpath(case.file.resolve().with_suffix(""), folder.resolve().parent))
    parts = ["_up" if part == ".." else part for part in beside.parts]
    path = folder.joinpath(*parts, f"{slug}-{mark}.yaml")
    return path if path.exists() else next(path.parent.glob(f"*-{mark}.yaml"), path)


def written(recording: Recording) -> str:
    """Return the recording as the text of its file."""
    from agentfn.document.write import to_yaml

    value = {
        "agentfn": VERSION,
        "case": recording.case,
        "backend": recording.backend,
        "agent": recording.agent._asdict(),
        "attempts": [
            {"number": number, "turns": [_turn(turn) for turn in turns]}
            for number, turns in sorted(recording.attempts.items())
        ],
    }
    return _HEAD + to_yaml(value)


def _turn(turn: RecordedTurn) -> dict[str, Json]:
    return {"message": turn.message, "steps": [_step(step) for step in turn.steps]}


def _step(step: RecordedStep) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if step.sent:
        found["sent"] = {call: _outcome(outcome) for call, outcome in step.sent.items()}
    if step.calls:
        found["calls"] = [_call(call) for call in step.calls]
    if step.answer is not None or (not step.calls and step.failure is None):
        found["answer"] = step.answer
    if step.failure is not None:
        found["failure"] = step.failure
    if step.usage is not None:
        found["usage"] = step.usage._asdict()
    return found


def _outcome(outcome: Outcome) -> dict[str, Json]:
    return {key: value for key, value in outcome._asdict().items() if value is not None}


def _call(call: Call) -> dict[str, Json]:
    """Return a call, its arguments as JSON where writing them again gives the same text."""
    try:
        value = json.loads(call.arguments)
        if isinstance(value, dict) and json.dumps(value, ensure_ascii=False) == call.arguments:
            return {"id": call.id, "function": call.function, "arguments": value}
    except (ValueError, RecursionError):
        pass
    return {"id": call.id, "function": call.function, "raw": call.arguments}


def read_recording(path: Path, case: Case) -> Recording:
    """Return the case's recording in a file; raise InvalidFileError where there is none, or none that can be understood."""
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise _wrong(path, f"there is no recording of this case: {exc.strerror}") from exc
    document = parse_document(data, str(path))
    value = document.value
    if isinstance(value, dict) and value.get("agentfn", VERSION) != VERSION:
        raise _wrong(path, f"it was recorded in the form {value['agentfn']}, this agentfn knows {VERSION}")
    problems = instance_problems(value, _schema())
    if problems:
        findings = [document.finding(problem.path, "recording", problem.message) for problem in problems]
        raise InvalidFileError(findings, hint=_HINT)
    if value["case"] != case.name and MASK not in value["case"]:
        raise _wrong(path, f"it is a recording of {value['case']!r}, not of {case.name!r}")
    attempts = {attempt["number"]: tuple(map(_read_turn, attempt["turns"])) for attempt in value["attempts"]}
    return Recording(value["case"], value["backend"], Fingerprint(**value["agent"]), attempts)


@cache
def _schema() -> dict[str, Json]:
    found: dict[str, Json] = json.loads(Path(__file__).with_name("recording.schema.json").read_text("utf-8"))
    return found


def _read_turn(value: dict[str, Json]) -> RecordedTurn:
    return RecordedTurn(value["message"], tuple(map(_read_step, value["steps"])))


def _read_step(value: dict[str, Json]) -> RecordedStep:
    return RecordedStep(
        sent={call: Outcome(**outcome) for call, outcome in value.get("sent", {}).items()},
        calls=tuple(_read_call(call) for call in value.get("calls", ())),
        answer=value.get("answer"),
        failure=value.get("failure"),
        usage=Usage(**value["usage"]) if value.get("usage") else None,
    )


def _read_call(value: dict[str, Json]) -> Call:
    text = value["raw"] if "raw" in value else json.dumps(value["arguments"], ensure_ascii=False)
    return Call(value["id"], value["function"], text)


def _wrong(path: Path, message: str) -> InvalidFileError:
    return InvalidFileError([Finding(str(path), 0, 0, "recording", message)], hint=_HINT)
