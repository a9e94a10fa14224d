"""Reads an agent file: every problem is collected, each with its line and column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from agentfn.definition.agent import Agent
from agentfn.definition.model_settings import SETTINGS, check_settings
from agentfn.definition.reader import Reader
from agentfn.definition.tools import read_tools
from agentfn.document.read import read_document
from agentfn.errors import Finding, InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.model import Json

#: foundry.md §2.7.
AGENT_NAME = r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$"
#: foundry.md §2.2, §8; three of the sixteen pairs are agentfn's own stamp.
METADATA_PAIRS, METADATA_KEY, METADATA_VALUE = 13, 64, 512
DESCRIPTION_LENGTH = 512

_KEYS = ("name", "model", "instructions", "description", "metadata", *SETTINGS, "tools", "local")


def load_agent(path: Path, env: Mapping[str, str], *, default_model: str | None = None) -> Agent:
    """Return the definition in a file; raise InvalidFileError with every error where there is one."""
    agent, findings = check_agent(path, env, default_model=default_model)
    errors = [finding for finding in findings if finding.severity == "error"]
    if agent is None or errors:
        raise InvalidFileError(errors, hint=f"agentfn validate {path}")
    return agent


def check_agent(
    path: Path,
    env: Mapping[str, str],
    *,
    protocol: str | None = None,
    default_model: str | None = None,
    advice: bool = True,
) -> tuple[Agent | None, list[Finding]]:
    """Return the definition (None where it cannot be used) and all findings, by line.

    `protocol` adds the rules of services that speak it; `default_model` is used where the file names no model; `advice`
    adds warnings on names and descriptions. Raises UsageError where the file cannot be opened.
    """
    try:
        document = read_document(path)
    except InvalidFileError as exc:
        return None, exc.findings
    reader = Reader(document, env)
    agent = _agent(reader, path, default_model)
    if agent is not None and advice:
        from agentfn.definition.advice import advise

        advise(reader, agent)
    if agent is not None:
        from agentfn.definition.services import check_service

        check_service(reader, agent, protocol)
    findings = sorted(reader.findings, key=lambda finding: (finding.line, finding.column))
    return (None if any(f.severity == "error" for f in findings) else agent), findings


def _agent(reader: Reader, path: Path, default_model: str | None) -> Agent | None:
    value = reader.document.value
    if not isinstance(value, dict):
        reader.error((), "type", "an agent file is a mapping with name, model, instructions and tools")
        return None
    reader.unknown_keys(value, _KEYS, (), "an agent file")
    name = reader.text(value, "name", ())
    _check_name(reader, value, name)
    model = reader.text(value, "model", (), expand=True) if "model" in value else default_model
    if model is None and "model" not in value:
        reader.error((), "model", "model is missing: the name of a model or deployment")
    elif model == "":
        reader.error(("model",), "model", "model is empty")
    functions, others, order = read_tools(reader, value)
    check_settings(reader, value, [tool.name for tool in functions])
    return Agent(
        name=name or "",
        model=model or "",
        instructions=reader.text(value, "instructions", ()) if value.get("instructions") is not None else None,
        description=_description(reader, value),
        metadata=_metadata(reader, value),
        settings={key: value[key] for key in SETTINGS if value.get(key) is not None},
        functions=functions,
        other_tools=others,
        tool_order=order,
        local=_local(reader, value),
        path=path,
        base=path.parent,
    )


def _check_name(reader: Reader, value: Mapping[str, Json], name: str | None) -> None:
    if "name" not in value:
        reader.error((), "name", "name is missing")
    elif name is not None and not re.fullmatch(AGENT_NAME, name):
        message = f'"{name}" is no agent name: letters, digits and inner hyphens, 1 to 63 characters ({AGENT_NAME})'
        reader.error(("name",), "name", message)


def _description(reader: Reader, value: Mapping[str, Json]) -> str | None:
    if value.get("description") is None:
        return None
    text = reader.text(value, "description", ())
    if text is not None and len(text) > DESCRIPTION_LENGTH:
        message = f"description has {len(text)} characters, the limit is {DESCRIPTION_LENGTH}"
        reader.error(("description",), "limit", message)
    return text


def _metadata(reader: Reader, value: Mapping[str, Json]) -> dict[str, str]:
    found = value.get("metadata")
    if found is None:
        return {}
    if not isinstance(found, dict):
        reader.error(("metadata",), "type", "metadata must be a mapping of texts")
        return {}
    if len(found) > METADATA_PAIRS:
        message = f"{len(found)} pairs, the limit is {METADATA_PAIRS} (of 16, agentfn adds 3 of its own)"
        reader.error(("metadata",), "limit", message)
    pairs = {}
    for key in found:
        text = reader.text(found, key, ("metadata",), expand=True)
        if text is None:
            continue
        if len(key) > METADATA_KEY or len(text) > METADATA_VALUE:
            message = f"{key}: keys have at most {METADATA_KEY} characters, values {METADATA_VALUE}"
            reader.error(("metadata", key), "limit", message)
        pairs[key] = text
    return pairs


def _local(reader: Reader, value: Mapping[str, Json]) -> Json:
    local = value.get("local")
    if local is None or isinstance(local, list):
        return local
    if isinstance(local, str):
        if reader.document.source and not (Path(reader.document.source).parent / local).is_file():
            reader.error(("local",), "local", f"there is no scenario file {local}")
        return local
    reader.error(("local",), "type", "local is the name of a scenario file, or a list of steps")
    return None
