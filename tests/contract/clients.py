"""What the suites of our clients share: an agent, a listener, a talk, and the embedded service behind each face."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.backends import BackendOptions, open_backend
from agentfn.backends.protocol import Start, Submit
from agentfn.definition.agent import Agent, FunctionTool
from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario
from agentfn.emulator.server import Server
from agentfn.model import AgentRef, Call, Outcome, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import ExitStack
    from pathlib import Path

    from agentfn.backends.protocol import Backend

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
STAMP = Stamp("run_1", "rsc_1", "d" * 32)
ASK = {"call": {"get_weather": {"city": "Oslo"}}}
SAY = {"say": "Sunny in Oslo ✅."}


def agent(name: str = "demo", *, parameters: Any = SCHEMA, strict: bool | None = None) -> Agent:
    tool = FunctionTool(name="get_weather", description="Weather in a city.", parameters=parameters, strict=strict)
    return Agent(name=name, model="m", instructions="Help.", functions=(tool,), tool_order=("get_weather",))


class Listener:
    """Writes down what a backend reports."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.pieces: list[str] = []
        self.retries: list[str] = []
        self.turns: list[str] = []
        self.notices: list[str] = []
        self.calls: list[str] = []

    def turn_opened(self, turn: str) -> None:
        self.turns.append(turn)

    def noticed(self, told: str) -> None:
        self.notices.append(told)

    def call_asked(self, call: Call) -> None:
        self.calls.append(call.id)

    def conversation_opened(self, conversation: str) -> None:
        self.opened.append(conversation)

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def waited(self) -> None:
        """Wait on."""

    def retrying(self, reason: str, seconds: float) -> None:
        self.retries.append(reason)


class Talk(NamedTuple):
    """A conversation with the agent, whole or streamed."""

    backend: Backend
    agent: AgentRef
    listener: Listener
    stream: bool

    @property
    def id(self) -> str:
        return self.listener.opened[0]

    def say(self, message: str = "Weather in Oslo?", *, earlier_same: int = 0) -> Step:
        conversation = self.id if self.listener.opened else None
        request = Start(self.agent, message, f"turn_{uuid.uuid4().hex}", conversation, STAMP, earlier_same, self.stream)
        return self.backend.start(request, self.listener)

    def answer(self, step: Step, *outcomes: Outcome) -> Step:
        pairs = tuple(zip(step.calls, outcomes, strict=True))
        return self.backend.submit(Submit(self.agent, self.id, "turn_1", step.id, pairs, self.stream), self.listener)

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.backend.transcript(self.id)]


class Without:
    """The service as one that lacks something: a route, or the memory of earlier responses."""

    def __init__(self, app: Application, *, conversations: bool = True, previous: bool = True) -> None:
        self._app = app
        self._conversations = conversations
        self._previous = previous

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if not self._conversations and path.startswith("/v1/conversations"):
            start_response("404 Not Found", [("Content-Type", "application/json"), ("Content-Length", "22")])
            return [b'{"detail":"Not Found"}']
        if not self._previous and environ["REQUEST_METHOD"] == "POST" and path == "/v1/responses":
            body = json.loads(environ["wsgi.input"].read())
            body.pop("previous_response_id", None)
            data = json.dumps(body).encode()
            import io

            environ |= {"wsgi.input": io.BytesIO(data), "CONTENT_LENGTH": str(len(data))}
        return self._app(environ, start_response)

    def close(self) -> None:
        self._app.close()


class Face(NamedTuple):
    """A face of the service: the backend that speaks to it, its path, and what the server lacks."""

    backend: str
    path: str
    lacks: frozenset[str] = frozenset()


FACES = {
    "foundry": Face("foundry", "/api/projects/p"),
    "openai": Face("openai", "/v1"),
    "responses": Face("responses", "/v1"),
    "chained": Face("responses", "/v1", frozenset({"conversations"})),
    "forgetful": Face("responses", "/v1", frozenset({"conversations", "previous"})),
}


def connected(face: Face, *steps: Any, home: Path, stack: ExitStack, socket: bool) -> Backend:
    """Open a face of the service with a scenario's steps, in process or over a socket; nobody sleeps."""
    scenario = parse_scenario(list(steps), "test") if steps else None
    options = BackendOptions(home=home, scenario=scenario, sleep=lambda _: None)
    if not socket and not face.lacks:
        backend = open_backend("local", f"local/{face.backend}", env={}, options=options)
    else:
        app = Application(home / "s.db", scenario=scenario, sleep=lambda _: None)
        lacking = Without(app, conversations="conversations" not in face.lacks, previous="previous" not in face.lacks)
        served = stack.enter_context(Server(lacking if face.lacks else app))  # type: ignore[arg-type]  # a WSGI application
        endpoint = f"http://127.0.0.1:{served.port}{face.path}"
        backend = open_backend(face.backend, endpoint, env={}, options=options._replace(scenario=None))
    stack.callback(backend.close)
    return backend
