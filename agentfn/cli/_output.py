"""The one place that prints: results to stdout, the story to stderr, one JSON envelope."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from agentfn.errors import AgentfnError, ExitCode, InvalidFileError
from agentfn.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentfn.cli._context import AppContext
    from agentfn.model import Json

#: The envelope's version; it grows when a key changes its meaning or goes.
ENVELOPE = 1

_STATUS = {ExitCode.OK: "ok", ExitCode.NEGATIVE: "failed", ExitCode.PENDING: "pending"}


def safe_streams() -> None:
    """Let stdout and stderr replace what a console cannot show rather than fail on it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  # for good
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


class Console:
    """Where text goes. `interactive` tells whether a person can be asked: stdin and stderr are terminals."""

    def __init__(self, *, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self._out = stdout or sys.stdout
        self._err = stderr or sys.stderr

    @property
    def interactive(self) -> bool:
        """Tell whether a person is there to be asked."""
        return sys.stdin is not None and sys.stdin.isatty() and self._err.isatty()

    @property
    def answers_on_terminal(self) -> bool:
        """Tell whether stdout is a terminal, where an answer may appear as it comes."""
        return self._out.isatty()

    def out(self, text: str) -> None:
        """Print a line of the result."""
        self.out_part(text + "\n")

    def out_part(self, text: str) -> None:
        """Print a piece of the result, at once."""
        self._out.write(text)
        self._out.flush()

    def say(self, text: str) -> None:
        """Print a line of the story."""
        self._err.write(text + "\n")
        self._err.flush()

    def say_part(self, text: str) -> None:
        """Print a piece of the story, at once."""
        self._err.write(text)
        self._err.flush()

    @property
    def shows_progress(self) -> bool:
        """Tell whether a line of the story may be replaced by the next one."""
        return self._err.isatty() and os.environ.get("TERM") != "dumb"

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.say(f"warning: {text}")

    def error(self, exc: AgentfnError, *, mask: Callable[[str], str] = str) -> None:
        """Print an error and what to do about it; every finding of a bad file on a line of its own."""
        lines = [str(finding) for finding in exc.findings] if isinstance(exc, InvalidFileError) else [exc.message]
        for line in lines:
            self.say(f"error: {visible(mask(line))}")
        if exc.hint:
            self.say(f"  try: {visible(mask(exc.hint))}")

    def ask(self, question: str) -> str | None:
        """Ask on the terminal and return the line; None at the end of input."""
        self._err.write(question)
        self._err.flush()
        line = sys.stdin.readline()
        if not line:
            self._err.write("\n")
            return None
        return line.rstrip("\r\n")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print rows: a table on a terminal, else tab-separated lines without header, for other programs."""
        cells = [[visible(str(cell if cell is not None else ""), multiline=False) for cell in row] for row in rows]
        if not self._out.isatty():
            for row in cells:
                self.out("\t".join(row))
            return
        from rich.console import Console as Rich
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for name in header:
            table.add_column(name, overflow="fold")  # an id that is cut off cannot be copied
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        Rich(file=self._out, no_color="NO_COLOR" in os.environ or None).print(table)


class CommandResult(NamedTuple):
    """What a command returns: `data` for ``--json``, `render` for a person.

    `errors` go with an exit code other than 0 where the command still has data to give. `closing` is the last line of the
    story, in whatever form the rest is printed.
    """

    data: Json
    exit_code: ExitCode = ExitCode.OK
    render: Callable[[Console], None] | None = None
    errors: tuple[AgentfnError, ...] = ()
    closing: str | None = None


def emit(ctx: AppContext, result: CommandResult | None) -> int:
    """Print a command's result in the form that was asked for; return the exit code."""
    if result is None:
        return ExitCode.OK
    if ctx.json:
        entries = [entry for exc in result.errors for entry in error_entries(exc)]
        ctx.console.out(envelope(ctx.command, result.data, result.exit_code, entries))
    else:
        if result.render is not None:
            result.render(ctx.console)
        for exc in result.errors:
            ctx.console.error(exc)
    if result.closing is not None:
        ctx.console.say(result.closing)
    return result.exit_code


def envelope(command: str | None, data: Json, exit_code: ExitCode, errors: Sequence[dict[str, Json]]) -> str:
    """Return the JSON document that every command prints with ``--json``; ASCII, so no console can spoil it."""
    return json.dumps(
        {
            "agentfn": ENVELOPE,
            "command": command,
            "status": _STATUS.get(exit_code, "error"),
            "exit_code": int(exit_code),
            "data": data,
            "errors": list(errors),
        },
    )


def error_entries(exc: AgentfnError) -> list[dict[str, Json]]:
    """Return an error as the envelope's entries: one for each finding of a bad file."""
    if isinstance(exc, InvalidFileError):
        return [
            {
                "code": finding.rule,
                "message": finding.message,
                "hint": exc.hint,
                "location": f"{finding.source}:{finding.line}:{finding.column}" if finding.line else finding.source,
            }
            for finding in exc.findings
        ]
    return [{"code": exc.code, "message": exc.message, "hint": exc.hint, "location": exc.location}]
