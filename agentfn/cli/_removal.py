"""What `cleanup` would remove: what the ledger chose, and runs of `test` that were stopped; asked about and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.errors import NegativeError, UsageError

if TYPE_CHECKING:
    from agentfn.cli._context import AppContext
    from agentfn.cli._output import Console
    from agentfn.journal.ledger import Resource
    from agentfn.lifecycle.cleanup import Selection
    from agentfn.model import Json


class Removal(NamedTuple):
    """Resources of a service, and runs on the embedded service of which only the stores are left."""

    rows: list[Resource]
    runs: list[str]

    def __len__(self) -> int:
        return len(self.rows) + len(self.runs)

    def require_consent(self, ctx: AppContext) -> None:
        """Ask whether all may go; raise NegativeError where not, UsageError where nobody can be asked."""
        if not ctx.console.interactive:
            raise UsageError(
                f"{len(self)} things would be removed, and there is no terminal to ask on",
                code="confirmation_needed",
                hint="see them with --dry-run, then add --yes",
            )
        from agentfn.cli._prompt import confirmed

        for row in self.rows:
            ctx.console.say(f"  {row.kind} {row.label}")
        for run in self.runs:
            ctx.console.say(f"  stores of {run}")
        if not confirmed(ctx.console, f"remove these {len(self)}?"):
            raise NegativeError("nothing was removed: not confirmed", code="declined")

    def preview(self, console: Console) -> None:
        """Print what would go."""
        for row in self.rows:
            console.out(f"{row.kind} {row.label}")
        for run in self.runs:
            console.out(f"run {run}")
        console.say(f"{len(self)} would be removed; nothing was")


def left_runs_of(ctx: AppContext, selection: Selection) -> list[str]:
    """Return the chosen runs of `test` on the embedded service that were stopped and whose stores are still there."""
    if ctx.place()[0] != "local" or selection.agents or selection.conversations:
        return []
    from agentfn.lifecycle.runs import left_runs

    return [run for run in left_runs(ctx.settings().home) if selection.run in (None, run)]


def resource_data(row: Resource) -> dict[str, Json]:
    """Return a resource as the envelope tells it."""
    return {"kind": row.kind, "name": row.name, "version": row.version, "label": row.label, "run": row.run}


def run_data(run: str) -> dict[str, Json]:
    """Return a run as the envelope tells it."""
    return {"kind": "run", "name": run, "version": None, "label": run, "run": run}
