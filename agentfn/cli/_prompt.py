"""Asks a person on the terminal: for a call's output, for approval, for confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.model import Call, Outcome
from agentfn.turn.approvals import Verdict
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cli._output import Console


class Terminal:
    """The answerer where a person is there. Questions go to stderr, answers come from the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def answer(self, call: Call, problem: str | None) -> Outcome | None:
        """Ask for the output: a line of text; ``!reason`` is an error; an empty line leaves the call pending."""
        say = self._console.say
        say(f"\n{visible(call.function, multiline=False) or '(no name)'} [{call.id}] asks:")
        say(f"  {visible(call.arguments)}")
        if problem is not None:
            say(f"  its arguments are wrong: {visible(problem)}")
        line = self._console.ask('output (empty: leave it pending, "!text": tell the agent it failed): ')
        if not line:
            return None
        return Outcome(error=line[1:].strip() or "failed") if line.startswith("!") else Outcome(output=line)

    def approve(self, call: Call, runs: str, problem: str | None) -> Verdict | None:
        """Ask whether a call may run: y, n with a reason, e to change its arguments, or nothing to leave it pending."""
        say = self._console.say
        if problem is not None:
            say(f"  these arguments are wrong: {visible(problem)}")
        say(f"\n{visible(call.function, multiline=False)} [{call.id}] wants to run")
        say(f"  {visible(runs, multiline=False)}")
        say(f"  with {visible(call.arguments)}")
        line = (self._console.ask("run it? (y / n reason / e: edit / empty: leave it pending): ") or "").strip()
        if line.lower() in {"y", "yes"}:
            return Verdict(allowed=True, by="terminal")
        if line.lower() in {"e", "edit"}:
            edited = self._console.ask("arguments as JSON (empty: leave it pending): ")
            return Verdict(allowed=True, by="terminal", arguments=edited) if edited else None
        if line.lower().startswith("n"):
            _, _, reason = line.partition(" ")
            return Verdict(allowed=False, by="terminal", reason=reason.strip() or "no reason given")
        return None


def confirmed(console: Console, question: str) -> bool:
    """Ask a yes-or-no question; anything but yes is no."""
    return (console.ask(f"{question} (y/N): ") or "").strip().lower() in {"y", "yes"}
