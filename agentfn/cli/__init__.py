"""The command line.

A command is three parts: options, a call into the core, a render; one small file each::

    @opt.command
    def show(ctx: AppContext, name: Annotated[str, typer.Argument(help="…")]) -> CommandResult:
        \"\"\"Show one agent in full.\"\"\"
        found = ctx.backend().find_agent(name)
        return CommandResult({"agent": str(found.ref)}, render=lambda console: console.out(str(found.ref)))

and a row in `_lazy.TABLE`. `data` is what ``--json`` prints, `render` what a person sees; errors are raised. Nothing
heavy is imported at module level: `_context` hands out the journal, a backend and the rest when they are asked for.
"""

from __future__ import annotations


def run(argv: list[str]) -> int:
    """Run the command line and return its exit code."""
    from agentfn.cli._errors import guarded

    return guarded(argv)
