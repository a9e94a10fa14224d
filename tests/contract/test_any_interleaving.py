"""Any mixture of stops, lost and doubled requests and refusals: said once, done once, answered once, and never stuck.

Everything real but the network between client and service, which breaks as a plan says, and the process, which is stopped
by an exception that nothing catches; then another one goes on over the same files.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentfn.backends import BackendOptions
from agentfn.backends.local import _FACES, InProcess
from agentfn.definition.agent import Agent, FunctionTool
from agentfn.definition.digest import digest
from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario
from agentfn.errors import AgentfnError
from agentfn.handlers.protocol import Result
from agentfn.journal.calls import Calls
from agentfn.journal.ledger import Ledger
from agentfn.journal.store import Journal
from agentfn.journal.turns import Conversation, Turns
from agentfn.lifecycle.ensure import ensure_usable
from agentfn.model import Outcome
from agentfn.settings import PROTOCOLS
from agentfn.turn.loop import TurnLoop
from agentfn.turn.session import Session, functions_digest
from agentfn.turn.waiting import find_unopened, open_turns, waiting_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL = FunctionTool(name="pay", description="Pays.", parameters={"type": "object"})
AGENT = Agent(name="bot", model="m", instructions=None, functions=(TOOL,), tool_order=("pay",))
STEPS = [
    {"call": [{"pay": {"to": "Kim"}}, {"pay": {"to": "Lee"}}]},
    {"call": {"pay": {"to": "Sasha"}}},
    {"say": "All are paid."},
]
FAULTS = ("none", "before", "after", "twice", "429", "503")


class Stop(BaseException):
    """The process ends here."""


class World:
    """One folder, and everything in it that outlives a process."""

    def __init__(self, folder: Path, face: str, faults: list[str], stops: list[int]) -> None:
        self.folder, self.face = folder, face
        self.faults, self.stops = faults, stops
        self.done: list[str] = []
        self.moments = 0

    def moment(self) -> None:
        """Pass a moment at which the process may end."""
        self.moments += 1
        if self.moments in self.stops:
            raise Stop

    @contextmanager
    def process(self) -> Iterator[tuple[Any, Journal]]:
        """Open what a process has open: the service's client and the journal."""
        app = Application(self.folder / "s.db", scenario=parse_scenario(STEPS, "test"), sleep=lambda _: None)
        options = BackendOptions(home=self.folder, sleep=lambda _: None)
        backend = _FACES[self.face](f"local/{self.face}", Broken(app, self), options)  # type: ignore[arg-type]
        journal = Stopping(self.folder, self)
        try:
            yield backend, journal
        finally:
            backend.close()
            journal.close()


class Broken(httpx.BaseTransport):
    """The network: each request that changes something meets the plan's next fault."""

    def __init__(self, app: Application, world: World) -> None:
        self._inner = InProcess(app)
        self._world = world

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._world.moment()
        plan = self._world.faults
        fault = plan.pop(0) if plan and request.method == "POST" else "none"
        if fault == "before":
            raise httpx.ConnectError("refused", request=request)
        if fault in ("429", "503"):
            return httpx.Response(int(fault), json={"error": {"code": "x", "message": "later"}})
        if fault == "twice" and (b"function_call_output" in request.read() or b"tool_result" in request.read()):
            self._inner.handle_request(request).read()
        response = self._inner.handle_request(request)
        if fault == "after":
            if "event-stream" not in response.headers["content-type"]:  # which has no end while a call waits
                response.read()
            raise httpx.ReadError("broken", request=request)
        self._world.moment()
        return response

    def close(self) -> None:
        self._inner.close()


class Stopping(Journal):
    """A journal in which a process may end before and after each write."""

    def __init__(self, home: Path, world: World) -> None:
        super().__init__(home)
        self._world = world

    @contextmanager
    def writing(self) -> Iterator[Any]:
        self._world.moment()
        with super().writing() as db:
            yield db
        self._world.moment()


class Pay:
    """The function whose effect must not happen twice."""

    def __init__(self, world: World) -> None:
        self._world = world

    def problem(self) -> str | None:
        return None

    def run(self, arguments: Any, context: Any) -> Result:
        self._world.done.append(context.call.id)
        return Result(Outcome(output=f"paid {arguments['to']}"))


def begun(world: World, backend: Any, journal: Journal) -> Session:
    ref = ensure_usable(backend, Ledger(journal, backend.name, backend.endpoint), AGENT, "run_1", own=False).ref
    new = Conversation(
        backend.name,
        backend.endpoint,
        "",
        ref.name,
        ref.version,
        None,
        digest(AGENT),
        functions_digest(AGENT),
        "run_1",
        0.0,
    )
    return session(world, backend, journal, new)


def session(world: World, backend: Any, journal: Journal, conversation: Conversation) -> Session:
    return Session(
        backend=backend,
        journal=journal,
        conversation=conversation,
        agent=AGENT,
        run="run_1",
        emit=lambda _: None,
        handlers={"pay": Pay(world)},
    )


def go_on(world: World, backend: Any, journal: Journal, doubted: set[str]) -> bool:
    """Do what a user would do next; return whether there was anything to do."""
    find_unopened(journal, lambda _: backend)
    turns = open_turns(journal)
    if not turns:
        return False
    calls, _ = waiting_calls(journal, turns, lambda _: backend)
    conversation, turn = turns[-1]
    doubts = [call.call for call in calls if call.state == "in_doubt"]
    doubted |= set(doubts)
    current = next((t for t in Turns(journal).of(conversation) if t.id == turn.id), turn)
    if current.state in ("intended", "open"):
        given = {call: Outcome(output="checked by hand") for call in doubts}
        TurnLoop(session(world, backend, journal, conversation)).resume(current, given)
    return True


@pytest.mark.parametrize("face", PROTOCOLS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    faults=st.lists(st.sampled_from(FAULTS), max_size=8),
    stops=st.lists(st.integers(1, 80), max_size=4, unique=True),
)
@example(faults=[], stops=[16, 34, 46])  # three stops, of which the last fell between an outcome and its request
def test_said_once_done_once_answered_once(face: str, faults: list[str], stops: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), face, list(faults), sorted(stops))
        doubted: set[str] = set()
        for attempt in range(20):
            try:
                with world.process() as (backend, journal):
                    if attempt == 0:
                        TurnLoop(begun(world, backend, journal)).start("pay everybody")
                    elif not go_on(world, backend, journal, doubted):
                        break
            except (Stop, AgentfnError):
                continue
        world.faults, world.stops = [], []
        with world.process() as (backend, journal):
            for _ in range(10):
                if not go_on(world, backend, journal, doubted):
                    break
            check(world, backend, journal, doubted)


def check(world: World, backend: Any, journal: Journal, doubted: set[str]) -> None:
    assert len(world.done) == len(set(world.done)), "a function ran twice for one call"
    assert open_turns(journal) == []
    assert Turns(journal).unopened() == []
    told = list(backend.conversations()) if world.face != "responses" else []
    known = Turns(journal).conversations(backend.name, backend.endpoint)
    for identity in {c.id for c in told} | {c.id for c in known}:
        entries = backend.transcript(identity)
        kinds = [entry.kind for entry in entries]
        assert kinds.count("user") <= 1, "the message was said twice"
        outputs = [entry.call_id for entry in entries if entry.kind == "output"]
        assert len(outputs) == len(set(outputs)), "a call was answered twice"
        if "user" in kinds and identity in {c.id for c in known}:
            assert kinds[-1] == "agent", "the conversation did not come to its end"
            assert set(outputs) <= set(world.done) | doubted
    for conversation in known:
        for turn in Turns(journal).of(conversation):
            assert turn.state in ("ended", "failed")
            assert Calls(journal, conversation, turn.id).unsettled() == []
