"""Carries an open turn on with what a person, a file, a script or the handlers give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cli import _sessions
from agentfn.cli._story import Story
from agentfn.cli._turns import finish, turn_data
from agentfn.cli._waiting import turn_to_answer
from agentfn.errors import UsageError
from agentfn.journal.calls import Calls
from agentfn.turn.answers import masked, pick_call
from agentfn.turn.loop import TurnLoop
from agentfn.turn.waiting import look_again

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agentfn.backends.protocol import Backend
    from agentfn.cli._context import AppContext
    from agentfn.cli._output import CommandResult
    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import Handler
    from agentfn.journal.calls import CallRow
    from agentfn.journal.turns import Conversation, Turn
    from agentfn.model import Outcome


class Answers(NamedTuple):
    """Where outcomes come from. `only_stored` allows none but those that the journal holds already.

    `rerun` is a call in doubt that the user allows to run once more.
    """

    outcomes: Callable[[Sequence[CallRow]], dict[str, Outcome]] | None = None
    script: Path | None = None
    run: bool = False
    wait: float = 10.0
    approve: str | None = None
    only_stored: bool = False
    rerun: str | None = None
    call: str | None = None


def respond_to(ctx: AppContext, named: str | None, answers: Answers) -> CommandResult:
    """Answer the waiting calls of one turn and run it on."""
    conversation, turn = turn_to_answer(ctx, named, answers.call)
    backend = ctx.backend_at(conversation.backend, conversation.endpoint)
    rows = _rows(ctx, backend, conversation, turn)
    if answers.only_stored and any(row.outcome is None for row in rows):
        waiting = next(row for row in rows if row.outcome is None)
        raise UsageError(
            f"{waiting.function} [{waiting.id}] waits for an output, and there is no terminal to ask on",
            hint=f"agentfn respond {conversation.id} --call {waiting.id} --output TEXT, or --run, or --script PATH",
        )
    if answers.rerun is not None:
        row = pick_call(rows, answers.rerun)
        Calls(ctx.journal(), conversation, turn.id).set_state([row.id], "waiting")
    given = answers.outcomes(rows) if answers.outcomes and answers.rerun is None else {}
    given = {call: masked(outcome, ctx.masker().mask_json) for call, outcome in given.items()}
    agent = _sessions.definition_of(ctx, conversation)
    story = Story(ctx.console, stream=ctx.console.answers_on_terminal)
    how = _sessions.How(
        conversation.run,
        run_handlers=answers.run or answers.script is not None,
        wait=answers.wait,
        stream=ctx.console.answers_on_terminal,
        approve=answers.approve,
        only=answers.rerun,
        ask=not (given or answers.run or answers.script),
        unfit=_sessions.unfit_functions(ctx, agent, conversation),
    )
    handlers = _handlers(ctx, agent, conversation) if answers.run else {}
    session = _sessions.session(ctx, backend, conversation, agent, handlers, story, how)
    if answers.script is not None:
        session.default_handler = _script(ctx, answers.script)
    result = TurnLoop(session).resume(turn, given)
    return finish(ctx, result, turn_data(result, conversation.run, ()), story, agent=None)


def _rows(ctx: AppContext, backend: Backend, conversation: Conversation, turn: Turn) -> list[CallRow]:
    """Return the turn's unsettled calls; where the journal may be behind, the service is asked first."""
    calls = Calls(ctx.journal(), conversation, turn.id)
    rows = calls.unsettled()
    if not rows:
        look_again(ctx.journal(), backend, conversation, turn)
        rows = calls.unsettled()
    return rows


def _handlers(ctx: AppContext, agent: Agent | None, conversation: Conversation) -> dict[str, Handler]:
    if agent is None:
        raise UsageError(
            f"the definition of {conversation.ref} is not known here, so it has no handlers to run",
            hint=f"agentfn respond {conversation.id} --script PATH",
        )
    return _sessions.handlers_of(ctx, agent)


def _script(ctx: AppContext, path: Path) -> Handler:
    from pathlib import Path as Folder

    from agentfn.handlers import script_handler

    handler = script_handler(path, cwd=Folder.cwd(), env=ctx.env, masker=ctx.masker())
    problem = handler.problem()
    if problem is not None:
        raise UsageError(f"{path} cannot answer calls: {problem}")
    return handler
