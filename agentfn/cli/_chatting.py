"""One command's chat: the agent made sure of, turns run, and what was made removed again where that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cli import _sessions
from agentfn.errors import NegativeError, PendingError
from agentfn.journal.calls import Calls
from agentfn.journal.ledger import Ledger
from agentfn.journal.turns import Turns
from agentfn.lifecycle.ensure import ensure_usable, new_run
from agentfn.turn.loop import TurnLoop
from agentfn.turn.refusals import require_answered
from agentfn.turn.session import functions_digest, new_conversation
from agentfn.turn.state import call_report

if TYPE_CHECKING:
    from agentfn.cli._context import AppContext
    from agentfn.definition.agent import Agent
    from agentfn.journal.calls import CallRow
    from agentfn.journal.ledger import Resource
    from agentfn.journal.turns import Conversation
    from agentfn.lifecycle.cleanup import CleanUp
    from agentfn.model import AgentRef
    from agentfn.turn.events import Emit
    from agentfn.turn.state import TurnResult


class ChatOptions(NamedTuple):
    """What a chat is asked to do.

    `target` is a file or ``name[:version]``; `conversation` None begins a new one with the first message. `own` makes
    an agent version of this run's own where the ledger knows none, so that it can be removed afterwards.
    """

    target: str
    conversation: str | None = None
    scenario: str | None = None
    own: bool = False
    run_handlers: bool = True
    wait: float = 10.0
    stream: bool = False
    approve: str | None = None


class Chat:
    """A chat with one agent: any number of messages in one conversation.

    Making one changes nothing anywhere; `open` makes sure of the agent, and `created` tells from then on what was made.
    """

    def __init__(self, ctx: AppContext, options: ChatOptions) -> None:
        self.run = new_run()
        self._ctx = ctx
        self._options = options
        self._counted_on_ledger = False
        known = _sessions.known_conversation(ctx, options.conversation) if options.conversation else None
        self.place = place = (known.backend, known.endpoint) if known else ctx.place()
        self.ledger = Ledger(ctx.journal(), *place)
        by_file = _sessions.is_file_name(options.target)
        target = (
            _sessions.Target(_sessions.load_file(ctx, options.target), None)
            if by_file
            else _sessions.ledger_target(ctx, self.ledger, options.target)
        )
        script = _sessions.local_scenario(target.agent if target else None, options.scenario, place[0])
        self.backend = ctx.backend_at(*place, scenario=script)
        if target is None or (target.agent is None and target.ref is not None):
            target = _sessions.remote_target(self.backend, self.ledger, options.target)
        self.agent: Agent | None = target.agent
        self._known, self._ref = known, target.ref
        self._handlers = _sessions.handlers_of(ctx, self.agent) if options.run_handlers else {}

    def open(self, emit: Emit) -> None:
        """Make sure that the agent is there."""
        options = self._options
        if self._known is not None:
            # Before anything is made for a message that will not be sent.
            try:
                require_answered(self._ctx.journal(), self._known)
            except PendingError as exc:
                exc.data = self._standing(self._known)
                raise
        ref = self._ref or self._ensure(own=options.own)
        begun = self._conversation(options.conversation, self._known, ref)
        how = _sessions.How(self.run, options.run_handlers, options.wait, options.stream, approve=options.approve)
        self.session = _sessions.session(self._ctx, self.backend, begun, self.agent, self._handlers, emit, how)

    def say(self, message: str) -> TurnResult:
        """Run one turn."""
        try:
            return TurnLoop(self.session).start(message)
        except PendingError as exc:
            exc.data = self._standing(self.session.conversation)
            raise
        except NegativeError as exc:
            if exc.code != "agent_not_found" or not self._counted_on_ledger:
                raise
        # Somebody removed the version that the ledger counted on: make it again, once.
        session, digest = self.session, self.session.conversation.digest
        lost = self.ledger.agent_with_digest(session.conversation.agent, digest or "")
        if lost is not None:
            self.ledger.end(lost.token, "gone")
        ref = self._ensure(own=True)
        if session.conversation.id:
            Turns(session.journal).repin(session.conversation, ref, digest, functions_digest(self.agent))
        session.conversation = session.conversation._replace(agent=ref.name, version=ref.version)
        return TurnLoop(session).start(message)

    def _standing(self, conversation: Conversation) -> dict[str, object]:
        """Return the `data` of a chat that is not gone on with: the turn that waits, and its calls."""
        turns = Turns(self._ctx.journal()).of(conversation)
        return {
            "agent": str(conversation.ref),
            "conversation": conversation.id,
            "turn": turns[-1].id if turns else None,
            "answer": None,
            "calls": [call_report(row) for row in self._calls(conversation)],
            "usage": None,
            "created": [],
            "run": self.run,
        }

    def calls(self) -> list[CallRow]:
        """Return the calls of the latest turn, also where it broke off."""
        return self._calls(self.session.conversation)

    def _calls(self, conversation: Conversation) -> list[CallRow]:
        turns = Turns(self._ctx.journal()).of(conversation)
        return Calls(self._ctx.journal(), conversation, turns[-1].id).all() if turns else []

    def created(self) -> list[Resource]:
        """Return what this run made and has not removed."""
        return [row for row in self.ledger.live() if row.run == self.run]

    def remove(self) -> CleanUp:
        """Remove what this run made (`--rm`)."""
        from agentfn.lifecycle.cleanup import remove_own_run

        return remove_own_run(self.backend, self.ledger, self.run)

    def _ensure(self, *, own: bool) -> AgentRef:
        assert self.agent is not None  # noqa: S101  # a target without a version is a file
        ensured = ensure_usable(self.backend, self.ledger, self.agent, self.run, own=own)
        self._counted_on_ledger = not ensured.changed
        return ensured.ref

    def _conversation(
        self,
        named: str | None,
        known: Conversation | None,
        ref: AgentRef,
    ) -> Conversation:
        from agentfn.definition.digest import digest

        code = digest(self.agent) if self.agent is not None and self.agent.path is not None else None
        turns = Turns(self._ctx.journal())
        if known is not None:
            if (known.agent, known.version) != (ref.name, ref.version):
                turns.repin(known, ref, code, functions_digest(self.agent))
            return known._replace(agent=ref.name, version=ref.version, digest=code)
        begun = new_conversation(self.backend, self.agent, ref, code, self.run)
        if named is not None:
            begun = begun._replace(id=named, at=self._ctx.clock())
            turns.remember(begun)
        return begun
