"""The one place where an exception becomes text, JSON and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from agentfn.cli._output import Console, envelope, error_entries
from agentfn.errors import AgentfnError, ExitCode, ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def guarded(argv: Sequence[str]) -> int:
    """Run the command line; whatever happens, speak of it in the form that was asked for."""
    from agentfn.cli._output import safe_streams

    safe_streams()
    try:
        # A pipeline that is cancelled sends SIGTERM; it ends a command as cleanly as Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        return _invoke(list(argv))
    except AgentfnError as exc:
        return _report(exc, argv)
    except KeyboardInterrupt:
        _say_interrupted(argv)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output stopped reading; nothing is wrong, and nobody is there to be told.
        _silence(sys.stdout)
        return ExitCode.OK
    except OSError as exc:
        # A full disk, a folder that may not be written: the machine's trouble, not a bug.
        where = f": {exc.filename}" if exc.filename else ""
        return _report(ServiceError(f"{exc.strerror or exc}{where}", code="machine"), argv)
    except Exception as exc:  # noqa: BLE001  # the last net: a bug of ours, told as one
        if type(exc).__module__ == "sqlite3":
            # A full disk, a file that broke: what was written before stands, and what was not is in doubt, not lost.
            hint = "make room, or set AGENTFN_HOME to another folder; then agentfn pending"
            return _report(
                ServiceError(f"the state could not be written or read: {exc}", code="machine", hint=hint), argv
            )
        return _bug(exc, argv)


def _invoke(argv: list[str]) -> int:
    import typer
    from typer._click.exceptions import ClickException  # vendored by typer since 0.26; the cap holds it there

    from agentfn.cli._lazy import LazyGroup

    app = typer.Typer(
        cls=LazyGroup,
        add_completion=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=False)(_root)
    try:
        result: Any = app(argv or ["--help"], standalone_mode=False, prog_name="agentfn")
    except ClickException as exc:
        context = getattr(exc, "ctx", None)
        usage = context.command_path if context is not None else "agentfn"
        raise UsageError(exc.format_message(), hint=f"{usage} --help") from exc
    if result == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt  # typer has turned it into this number
    return int(result) if result else ExitCode.OK


def _root() -> None:
    """Define, run and answer function agents: on Microsoft Foundry, or offline with no account."""


def _report(exc: AgentfnError, argv: Sequence[str]) -> int:
    console = Console()
    if _wants_json(argv):
        console.out(_masked(envelope(_command(argv), exc.data, exc.exit_code, error_entries(exc))))
    else:
        console.error(exc, mask=_masked)
    return exc.exit_code


def _masked(text: str) -> str:
    """Return text without the secrets that the environment holds, whoever put one into an error."""
    from agentfn.cli._context import known_secrets
    from agentfn.masking import Masker

    return Masker(known_secrets(os.environ)).mask(text)


def _say_interrupted(argv: Sequence[str]) -> None:
    exc = AgentfnError("interrupted", code="interrupted", hint="agentfn pending shows what waits")
    console = Console()
    if _wants_json(argv):
        console.out(envelope(_command(argv), None, ExitCode.INTERRUPTED, error_entries(exc)))
    else:
        console.error(exc)


def _bug(exc: Exception, argv: Sequence[str]) -> int:
    console = Console()
    if "--debug" in argv or os.environ.get("AGENTFN_DEBUG"):
        import traceback

        console.say(_masked("".join(traceback.format_exception(exc))))
    told = AgentfnError(
        f"a bug in agentfn: {type(exc).__name__}",
        code="bug",
        hint="please report it, with the traceback that --debug shows",
    )
    if _wants_json(argv):
        console.out(envelope(_command(argv), None, ExitCode.BUG, error_entries(told)))
    else:
        console.error(told)
    return ExitCode.BUG


def _wants_json(argv: Sequence[str]) -> bool:
    """Tell whether JSON was asked for; a usage error happens before the options are read."""
    words = list(argv)
    if "--" in words:
        words = words[: words.index("--")]
    return "--json" in words


def _command(argv: Sequence[str]) -> str | None:
    from agentfn.cli._lazy import TABLE

    return next((word for word in argv if word in TABLE), None)


def _silence(stream: Any) -> None:
    """Point a closed pipe elsewhere, so that the interpreter's last flush does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
