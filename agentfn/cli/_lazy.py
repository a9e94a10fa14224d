"""The command table: a command's module is imported when that command runs, not before.

Help comes from the table, so `--help` and `--version` load none of it. A test holds table and modules together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer.core

if TYPE_CHECKING:
    from collections.abc import Mapping


class Lazy(NamedTuple):
    """Where a command lives (``module:function``) and its one line of help."""

    target: str
    help: str


_COMMANDS = "agentfn.cli.commands"

TABLE: Mapping[str, Lazy] = {
    "init": Lazy(
        f"{_COMMANDS}.init:init",
        "Write a small working agent, its function, a test file and a CI workflow; overwrite nothing.",
    ),
    "validate": Lazy(f"{_COMMANDS}.validate:validate", "Check definitions: every finding with its place and a reason."),
    "create": Lazy(f"{_COMMANDS}.create:create", "Create the agent, or a new version when the definition changed."),
    "list": Lazy(f"{_COMMANDS}.list:list_", "List what agentfn owns and has not removed: agents and conversations."),
    "show": Lazy(
        f"{_COMMANDS}.show:show",
        "Show one agent in full: its definition on the service, its versions, and who owns them.",
    ),
    "chat": Lazy(f"{_COMMANDS}.chat:chat", "Talk to an agent: one message, or a conversation on a terminal."),
    "pending": Lazy(f"{_COMMANDS}.pending:pending", "Show the calls that wait, and the command that answers each."),
    "respond": Lazy(f"{_COMMANDS}.respond:respond", "Answer waiting calls and carry the turn on."),
    "log": Lazy(f"{_COMMANDS}.log:log", "Show a conversation's transcript."),
    "cleanup": Lazy(f"{_COMMANDS}.cleanup:cleanup", "Remove what agentfn created and still owns, and nothing else."),
    "test": Lazy(
        f"{_COMMANDS}.test:test", "Run test files and compare what the agent asks for and says with what is expected."
    ),
    "call": Lazy(f"{_COMMANDS}.call:call", "Run one handler alone, as a turn would."),
    "serve": Lazy(
        f"{_COMMANDS}.serve:serve",
        "Serve the embedded service on a loopback port, for other programs and SDKs.",
    ),
    "doctor": Lazy(f"{_COMMANDS}.doctor:doctor", "Show what is configured, from where, and whether it works."),
}


def load(name: str) -> Any:
    """Return the command of that name, importing its module."""
    module, _, function = TABLE[name].target.partition(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name=name, help=TABLE[name].help)(getattr(import_module(module), function))
    return typer.main.get_command(app)


class LazyGroup(typer.core.TyperGroup):
    """A group whose commands come from the table."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the table's order."""
        del ctx
        return list(TABLE)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, imported now; None where there is none of that name."""
        del ctx
        return load(cmd_name) if cmd_name in TABLE else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or say which one may have been meant."""
        from difflib import get_close_matches

        if args and args[0] not in TABLE and not args[0].startswith("-"):
            close = get_close_matches(args[0], TABLE, n=1)
            meant = f" (did you mean {close[0]}?)" if close else f"; there are: {', '.join(TABLE)}"
            ctx.fail(f"there is no command {args[0]}{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands' help from the table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in TABLE.items()])
