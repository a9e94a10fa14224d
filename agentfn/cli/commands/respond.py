"""Answers waiting calls and carries the turn on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentfn.journal.calls import CallRow
    from agentfn.model import Outcome


@opt.command
def respond(
    ctx: AppContext,
    conversation: Annotated[str | None, typer.Argument(help="Where the call waits; may be left out if clear.")] = None,
    call: Annotated[str | None, typer.Option("--call", help="Its id; may be left out if only one waits.")] = None,
    output: Annotated[str | None, typer.Option("--output", help="The output, as it is.")] = None,
    output_file: Annotated[str | None, typer.Option("--output-file", help="A file with it; - is stdin.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="Tell the agent that the call failed, and why.")] = None,
    content: Annotated[Path | None, typer.Option("--content", help="A file: JSON array of content parts.")] = None,
    outputs: Annotated[Path | None, typer.Option("--outputs", help="A file: outputs of several calls.")] = None,
    script: Annotated[Path | None, typer.Option("--script", help="A local program that answers any call.")] = None,
    run: Annotated[bool, typer.Option("--run", help="Run the agent's own handlers.")] = False,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run --call again, though it may have run.")] = False,
    abandon: Annotated[bool, typer.Option("--abandon", help="Tell the agent that nobody can answer.")] = False,
    wait: opt.Wait = 10.0,
    approve: opt.Approve = None,
) -> CommandResult:
    """Answer waiting calls and carry the turn on."""
    from agentfn.cli._responding import Answers, respond_to

    direct = {"--output": output, "--output-file": output_file, "--error": error, "--content": content}
    given = [name for name, value in direct.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} say different things of one call", hint="choose one")
    if rerun and (call is None or given):
        raise UsageError("--rerun needs --call, and no outcome beside it", hint="--call ID --rerun")
    if abandon and (call or given or outputs or script or run):
        raise UsageError("--abandon answers every call that waits", hint="leave the other options out")
    if call is not None and not (given or rerun):
        raise UsageError("--call needs the call's outcome", hint="--output TEXT, --output-file PATH or --error TEXT")
    if script is not None and run:
        raise UsageError("--script and --run both answer every call", hint="choose one")
    if not (given or outputs or script or run or rerun or abandon) and not ctx.console.interactive:
        return respond_to(ctx, conversation, Answers(wait=wait, approve=approve, only_stored=True))
    for path in (content, outputs, script):
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}")
    single = _single(output, output_file, error, content) if given else None

    def outcomes(rows: Sequence[CallRow]) -> dict[str, Outcome]:
        from agentfn.turn.answers import abandoned, pick_call, read_outputs

        if abandon:
            return abandoned(rows)
        found = read_outputs(outputs, rows) if outputs is not None else {}
        return found | {pick_call(rows, call).id: single} if single is not None else found

    rerun_call = call if rerun else None
    answers = Answers(outcomes, script, run or rerun, wait, approve, rerun=rerun_call, call=call)
    return respond_to(ctx, conversation, answers)


def _single(output: str | None, output_file: str | None, error: str | None, content: Path | None) -> Outcome:
    """Return the one outcome that the options give."""
    from agentfn.model import Outcome
    from agentfn.turn.answers import read_content
    from agentfn.utf8 import decode, require_text

    if content is not None:
        return read_content(content)
    if error is not None:
        return Outcome(error=require_text(error, "--error"))
    if output_file is None:
        return Outcome(output=require_text(output or "", "--output"))
    if output_file == "-":
        return Outcome(output=decode(sys.stdin.buffer.read(), "standard input"))
    path = Path(output_file)
    if not path.is_file():
        raise UsageError(f"there is no file {output_file}")
    return Outcome(output=decode(path.read_bytes(), output_file))
