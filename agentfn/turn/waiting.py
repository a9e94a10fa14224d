"""The calls that wait, over all conversations: what the journal holds open, checked against what the services say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.errors import AgentfnError, NegativeError
from agentfn.journal.calls import CallRow, Calls
from agentfn.journal.ledger import Ledger
from agentfn.journal.turns import Conversation, Turn, Turns
from agentfn.model import AgentRef, Json, Usage
from agentfn.turn.state import PUBLIC_STATE, arguments_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentfn.backends.protocol import Backend, Look
    from agentfn.journal.store import Journal
    from agentfn.locks import FileLock

#: Conversations that are asked about at the same time.
PARALLEL = 8


class WaitingCall(NamedTuple):
    """A call that has no accepted outcome yet. Times are unix seconds by our clock."""

    conversation: Conversation
    turn: str
    call: str
    function: str
    arguments: str
    state: str
    problem: str | None
    asked_at: float
    expires_at: float | None

    @property
    def answer_with(self) -> str:
        """Return the command that answers it, or that sends the outcome it has."""
        if self.state == "expired":
            return f"agentfn chat {self.conversation.ref} MESSAGE"  # nothing is taken there any more
        if self.state == "answered":
            return f"agentfn respond {self.conversation.id}"
        return f"agentfn respond {self.conversation.id} --call {self.call} --output TEXT"

    def as_json(self) -> dict[str, Json]:
        """Return the call as `pending --json` shows it."""
        return {
            "conversation": self.conversation.id,
            "turn": self.turn,
            "call": self.call,
            "function": self.function,
            "arguments": arguments_value(self.arguments),
            "state": self.state,
            "problem": self.problem,
            "asked_at": round(self.asked_at, 3),
            "expires_at": None if self.expires_at is None else round(self.expires_at, 3),
            "answer_with": self.answer_with,
            "agent": str(self.conversation.ref),
            "backend": self.conversation.backend,
        }


class _Open(NamedTuple):
    conversation: Conversation
    turn: Turn


def open_turns(journal: Journal, backend: str | None = None) -> list[tuple[Conversation, Turn]]:
    """Return the turns that the journal holds open, oldest first, optionally of one backend only."""
    turns = Turns(journal)
    found = []
    for turn in turns.open():
        if backend in (None, turn.backend):
            known = turns.find_conversation(turn.conversation or "")
            here = [c for c in known if (c.backend, c.endpoint) == (turn.backend, turn.endpoint)]
            found += [(conversation, turn) for conversation in here]
    return found


def find_unopened(journal: Journal, backend_of: Callable[[Conversation], Backend]) -> list[str]:
    """Look for conversations whose opening was cut short, by their stamp; return a warning for each service in trouble.

    One that is found gets its id, and its turn goes on like any other; one that was never opened is over. What another
    process is just opening is left to it.
    """
    turns, warnings = Turns(journal), []
    for unopened in turns.unopened():
        lock = opening_lock(journal, unopened.turn.id)
        if not lock.acquire(0):
            continue
        try:
            backend = backend_of(unopened.conversation)
            found = backend.find_conversation(unopened.token)
            if found is not None:
                known = unopened.conversation._replace(id=found, at=journal.clock())
                turns.opened(known, unopened.turn.id, unopened.token)
            elif journal.clock() - unopened.turn.at >= backend.list_lag:
                Ledger(journal, backend.name, backend.endpoint).never_opened(unopened.token)
        except AgentfnError as exc:
            warnings.append(f"{unopened.conversation.backend} {unopened.conversation.endpoint}: {exc.message}")
        finally:
            lock.release()
    return warnings


def opening_lock(journal: Journal, turn: str) -> FileLock:
    """Return the lock that is held while a turn opens its conversation."""
    return journal.lock(f"opening\n{turn}")


def waiting_calls(
    journal: Journal,
    turns: Sequence[tuple[Conversation, Turn]],
    backend_of: Callable[[Conversation], Backend] | None,
) -> tuple[list[WaitingCall], list[str]]:
    """Return the calls of these turns that wait, and a warning for each service that could not be asked.

    `backend_of` None reads the journal alone. What the services say is written back into the journal.
    """
    looks: dict[str, Look | AgentfnError] = {}
    limits: dict[str, int | None] = {}
    if backend_of is not None and turns:
        looks, limits = _ask(journal, [_Open(*pair) for pair in turns], backend_of)
    calls: list[WaitingCall] = []
    warnings: list[str] = []
    for conversation, turn in turns:
        look = looks.get(turn.id)
        if isinstance(look, AgentfnError):
            warnings.append(f"{conversation.id}: {look.message}; shown as last known")
            look = None
        if look is not None:
            turn = sync(journal, conversation, turn, look)  # noqa: PLW2901  # the same turn, as it stands now
        calls += _calls(journal, conversation, turn, limits.get(turn.id, 600))
    return calls, warnings


def look_again(journal: Journal, backend: Backend, conversation: Conversation, turn: Turn) -> Look:
    """Ask the service how a turn stands, and write down what it says."""
    if turn.state == "intended":
        look = backend.look(conversation.id, turn.message, earlier_same(journal, conversation, turn))
    else:
        look = backend.look(conversation.id)
    sync(journal, conversation, turn, look)
    return look


def earlier_same(journal: Journal, conversation: Conversation, turn: Turn) -> int:
    """Return how often a turn's message had reached the conversation before it."""
    before = [t for t in Turns(journal).of(conversation) if t.at < turn.at and t.id != turn.id]
    return sum(t.message == turn.message and t.arrived for t in before)


def sync(journal: Journal, conversation: Conversation, turn: Turn, look: Look) -> Turn:
    """Write down what the service says of a turn, and return the turn as it stands now."""
    turns = Turns(journal)
    calls = Calls(journal, conversation, turn.id)
    if not look.exists:
        turns.failed(turn.id, "the service no longer knows the conversation")
    elif not look.arrived:
        turns.failed(turn.id, "the message never arrived")
    elif look.step is not None and look.waiting:
        calls.asked(look.step._replace(calls=look.waiting), {}, turn.usage, looked=True)
    elif look.step is not None and (look.step.answer is not None or look.step.failure is not None):
        turns.ended(turn.id, look.step, turn.usage)
    return next((t for t in turns.of(conversation) if t.id == turn.id), turn)


def _ask(
    journal: Journal,
    turns: Sequence[_Open],
    backend_of: Callable[[Conversation], Backend],
) -> tuple[dict[str, Look | AgentfnError], dict[str, int | None]]:
    looks: dict[str, Look | AgentfnError] = {}
    limits: dict[str, int | None] = {}
    backends: dict[str, Backend] = {}
    for conversation, turn in turns:
        try:
            backends[turn.id] = backend_of(conversation)
            limits[turn.id] = backends[turn.id].seconds_to_answer
        except AgentfnError as exc:
            looks[turn.id] = exc

    # The journal is read here, since it belongs to this thread.
    same = {item.turn.id: earlier_same(journal, *item) for item in turns if item.turn.state == "intended"}

    def ask(item: _Open) -> None:
        backend, turn = backends[item.turn.id], item.turn
        try:
            looks[turn.id] = (
                backend.look(item.conversation.id, turn.message, same[turn.id])
                if turn.id in same
                else backend.look(item.conversation.id)
            )
        except AgentfnError as exc:
            looks[item.turn.id] = exc

    reachable = [item for item in turns if item.turn.id in backends]
    if len(reachable) == 1:
        ask(reachable[0])
    elif reachable:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=PARALLEL, thread_name_prefix="pending") as pool:
            list(pool.map(ask, reachable))
    return looks, limits


def _calls(journal: Journal, conversation: Conversation, turn: Turn, limit: int | None) -> list[WaitingCall]:
    rows = Calls(journal, conversation, turn.id).unsettled()
    expires_at = None if limit is None or turn.asked_at is None else turn.asked_at + limit - turn.skew
    running = bool(rows) and any(row.state == "started" for row in rows) and _held(journal, conversation)
    return [
        WaitingCall(
            conversation=conversation,
            turn=turn.id,
            call=row.id,
            function=row.function,
            arguments=row.arguments,
            state=_state(row, expires_at, running=running, now=journal.clock()),
            problem=row.problem,
            asked_at=turn.asked_at - turn.skew if turn.asked_at is not None else row.asked_at,
            expires_at=expires_at,
        )
        for row in rows
    ]


def _state(row: CallRow, expires_at: float | None, *, running: bool, now: float) -> str:
    if expires_at is not None and expires_at <= now:
        return "expired"
    if row.state == "started" and running:
        return "running"
    return PUBLIC_STATE[row.state]


def _held(journal: Journal, conversation: Conversation) -> bool:
    """Tell whether some process, or a handler it left behind, still works on the conversation."""
    lock = journal.lock(conversation.key)
    if lock.acquire(0):
        lock.release()
        return False
    return True


def adopt(journal: Journal, backend: Backend, conversation: str, run: str) -> tuple[Conversation, Turn | None]:
    """Make a conversation that the journal does not know answerable from here, with the calls that wait in it.

    Returns its turn, or None where no call waits. Raises NegativeError where the service does not know it either.
    """
    look = backend.look(conversation)
    if not look.exists:
        raise NegativeError(
            f"there is no conversation {conversation}, neither in the journal nor at {backend.endpoint}",
            code="conversation_not_found",
            hint="agentfn list shows the conversations there are",
        )
    now = journal.clock()
    agent = look.agent or AgentRef("")
    known = Conversation(
        backend.name,
        backend.endpoint,
        conversation,
        agent.name,
        agent.version,
        None,
        None,
        {},
        run,
        now,
    )
    turns = Turns(journal)
    turns.remember(known)
    if look.step is None or not look.waiting:
        return known, None
    turn = look.step.id if backend.names_turns else f"turn_{look.step.id}"
    turns.begin(known, turn, "", None)
    Calls(journal, known, turn).asked(look.step._replace(calls=look.waiting), {}, Usage())
    return known, next(t for t in turns.of(known) if t.id == turn)
