"""Writes a small working agent with its function, its tests and a workflow that runs them."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import NegativeError, UsageError

if TYPE_CHECKING:
    from agentfn.cli._output import Console

#: Template → where it goes in the folder.
FILES = {
    "agent.yaml": "agent.yaml",
    "orders.py": "orders.py",
    "test_agent.yaml": "test_agent.yaml",
    "workflow.yml": ".github/workflows/agent-tests.yml",
}


@opt.command
def init(
    ctx: AppContext,
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Where to; it is made if it is not there.")] = ".",
) -> CommandResult:
    """Write a small working agent, its function, a test file and a CI workflow; overwrite nothing."""
    root = Path(folder)
    templates = files("agentfn") / "templates"
    wanted = {root / place: (templates / name).read_text("utf-8") for name, place in FILES.items()}
    same = [path for path, text in wanted.items() if _is_same(path, text)]
    taken = [str(path) for path in wanted if path not in same and (path.exists() or path.is_symlink())]
    if taken:
        raise NegativeError(
            f"nothing was written: {', '.join(taken)} would be overwritten",
            code="exists",
            hint="agentfn init DIR, with a folder that is empty or new",
        )
    written = [path for path in wanted if path not in same]
    try:
        for path in written:
            path.parent.mkdir(parents=True, exist_ok=True)
            # "x" fails where the file came to be in the meantime.
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(wanted[path])
    except OSError as exc:
        raise UsageError(f"{exc.filename} cannot be written: {exc.strerror}") from exc
    if _is_inside_repository(root):
        ctx.console.warn(f"{root}/.github is not at the repository's root, the only place where workflows are found")
    data = {"folder": str(root), "written": [str(path) for path in written], "unchanged": [str(path) for path in same]}
    return CommandResult(data, render=lambda console: _show(console, root, written, same))


def _is_same(path: Path, text: str) -> bool:
    try:
        return path.read_text("utf-8") == text
    except (OSError, ValueError):
        return False


def _is_inside_repository(root: Path) -> bool:
    """Tell whether a folder above this one is a repository's root."""
    whole = root.resolve()
    return not (whole / ".git").exists() and any((above / ".git").exists() for above in whole.parents)


def _show(console: Console, root: Path, written: list[Path], same: list[Path]) -> None:
    for path in written:
        console.out(f"wrote {path}")
    for path in same:
        console.out(f"unchanged {path}")
    agent = shlex.quote(str(root / "agent.yaml"))
    console.say(f'next: agentfn test {shlex.quote(str(root))}, then agentfn chat {agent} "Where is my order 1042?"')
