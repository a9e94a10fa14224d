"""Runs one handler alone."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import AgentfnError, ExitCode, NegativeError, UsageError

if TYPE_CHECKING:
    from agentfn.cli._output import Console
    from agentfn.handlers.protocol import Result


@opt.command
def call(
    ctx: AppContext,
    file: Annotated[str, typer.Argument(help="The agent file.")],
    function: Annotated[str, typer.Argument(help="The function's name.")],
    arguments: Annotated[str, typer.Argument(metavar="[ARGS-JSON]", help="Its arguments; - reads stdin.")] = "",
) -> CommandResult:
    """Run one handler alone, as a turn would."""
    from agentfn.cli._sessions import handlers_of, load_file
    from agentfn.handlers.arguments import check_arguments
    from agentfn.handlers.protocol import CallContext
    from agentfn.model import Call
    from agentfn.utf8 import decode

    text = decode(sys.stdin.buffer.read(), "standard input") if arguments == "-" else arguments
    agent = load_file(ctx, file)
    names = [tool.name for tool in agent.functions]
    tool = agent.function(function)
    if tool is None:
        raise NegativeError(
            f"{file} has no function {function}; it has: {', '.join(names) or 'none'}",
            code="function_not_found",
        )
    asked = Call("call_local", function, text)
    checked = check_arguments(asked, tool, names)
    for warning in checked.warnings:
        ctx.console.warn(warning)
    if checked.arguments is None:
        raise NegativeError(str(checked.problem), code="invalid_arguments")
    handler = handlers_of(ctx, agent, only=function).get(function)
    if handler is None:
        raise UsageError(f"{function} has no handler: its calls are answered by hand", code="no_handler")
    started = time.monotonic()
    result = handler.run(checked.arguments, CallContext(asked, "conv_local", "turn_local", "local"))
    return _result(ctx, function, checked.arguments, result, time.monotonic() - started)


def _result(
    ctx: AppContext,
    function: str,
    arguments: dict[str, object],
    result: Result,
    seconds: float,
) -> CommandResult:
    outcome = result.outcome
    data: dict[str, object] = {"function": function, "arguments": arguments, "seconds": round(seconds, 3)}
    data["warnings"] = list(result.warnings)
    data["stderr"] = result.stderr
    for warning in result.warnings:
        ctx.console.warn(warning)
    if outcome.failed:
        error = AgentfnError(f"{function} failed: {outcome.error}", code="handler_failed")
        return CommandResult(data | {"error": outcome.error}, ExitCode.NEGATIVE, errors=(error,))
    output = outcome.output if outcome.content is None else outcome.content

    def render(console: Console) -> None:
        import json

        from agentfn.visible import visible

        if result.stderr:
            console.say(visible(result.stderr.rstrip()))
        console.out(visible(output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)))

    return CommandResult(data | {"output": output}, render=render)
