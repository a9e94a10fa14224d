"""Checks definitions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import ExitCode, UsageError
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.definition.agent import Agent
    from agentfn.errors import Finding
    from agentfn.model import Json


@opt.command
def validate(
    ctx: AppContext,
    files: Annotated[list[str], typer.Argument(help="Agent files.")],
    show: Annotated[bool, typer.Option("--show", help="Also show what would be sent.")] = False,
) -> CommandResult:
    """Check definitions: every finding with its place and a reason."""
    from agentfn.definition.load import check_agent

    missing = [file for file in files if not Path(file).is_file()]
    if missing:
        raise UsageError(f"there is no file {', '.join(missing)}", code="file_not_found")
    settings = ctx.settings()
    checked = []
    for file in files:
        agent, findings = check_agent(
            Path(file),
            ctx.env,
            protocol=settings.protocol_name,
            default_model=settings.model.value,
        )
        checked.append((file, agent, findings))
    found = any(finding.severity == "error" for _, _, findings in checked for finding in findings)
    data = {"files": [_data(settings.protocol_name, *entry) for entry in checked]}
    code = ExitCode.NEGATIVE if found else ExitCode.OK
    return CommandResult(data, code, render=lambda console: _show(console, data, checked, bodies=show))


def _data(protocol: str, file: str, agent: Agent | None, findings: list[Finding]) -> dict[str, Json]:
    from agentfn.backends import preview

    return {
        "file": file,
        "valid": agent is not None,
        "findings": [
            {
                "line": finding.line,
                "column": finding.column,
                "rule": finding.rule,
                "severity": finding.severity,
                "message": finding.message,
            }
            for finding in findings
        ],
        "would_send": preview(protocol, agent) if agent is not None else None,
    }


def _show(
    console: Console,
    data: dict[str, Json],
    checked: list[tuple[str, Agent | None, list[Finding]]],
    *,
    bodies: bool,
) -> None:
    import json

    for _, _, findings in checked:
        for finding in findings:
            console.out(visible(str(finding), multiline=False))
    if bodies:
        for entry in data["files"]:
            console.out(visible(json.dumps(entry["would_send"], indent=2, ensure_ascii=False)))
    errors = sum(finding.severity == "error" for _, _, findings in checked for finding in findings)
    warnings = sum(finding.severity == "warning" for _, _, findings in checked for finding in findings)
    console.say(f"{len(checked)} checked: {errors} errors, {warnings} warnings")
