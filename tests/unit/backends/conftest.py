"""A server on this machine that answers what a test scripted, in exactly that order, and a client that never sleeps."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agentfn.backends.credentials import fixed
from agentfn.backends.foundry import FoundryBackend
from agentfn.backends.http import Channel, Options
from agentfn.backends.openai import BETA, OpenAIBackend

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "tok-SECRET-0123456789abcdef"
PROJECT = "/api/projects/p"
#: What the script's clock says, at the client and at the service.
NOW = 1_800_000_000.0
DATE = "Fri, 15 Jan 2027 08:00:00 GMT"


class Answer(NamedTuple):
    """What the server says: bytes with a status and headers. `cut` breaks off before the first byte or in the middle."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut: str | None = None


class Seen(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    query: str
    raw: bytes
    headers: dict[str, str]

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


def ok(body: Any, *, cut: str | None = None, status: int = 200, **headers: str) -> Answer:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Answer(status, json.dumps(body).encode(), (("Content-Type", "application/json"), *named), cut)


def refused(status: int, code: str | None, message: str = "no", **headers: str) -> Answer:
    return ok({"error": {"code": code, "message": message}}, status=status, **{"x_request_id": "req_9", **headers})


def streamed(data: bytes, *, cut: str | None = None) -> Answer:
    return Answer(200, data, (("Content-Type", "text/event-stream; charset=utf-8"),), cut)


def page(entries: list[Any], *, more: bool = False, last: str | None = None) -> Answer:
    return ok({"object": "list", "data": entries, "has_more": more, "last_id": last})


LOST = Answer(cut="before")


class Scripted:
    """The server; a request that the script does not expect next is answered with 418 and fails the test."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.wrong: list[str] = []
        self._script: list[tuple[str, str, Answer]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}{PROJECT}"

    def expect(self, *steps: tuple[str, str, Answer]) -> None:
        """Add requests to come, as method and start of the path behind the project, and what each is answered."""
        self._script += steps

    def take(self, seen: Seen) -> Answer:
        self.seen.append(seen)
        if self._script:
            method, path, answer = self._script[0]
            if (seen.method, seen.path) == (method, path):
                del self._script[0]
                return answer
        self.wrong.append(f"{seen.method} {seen.path}?{seen.query}, expected {self._script[:1]}")
        return refused(418, "unexpected")

    def finish(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        assert not self.wrong, self.wrong
        assert not self._script, f"never asked for: {self._script}"


def _handler(scripted: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path, _, query = self.path.partition("?")
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = scripted.take(Seen(self.command, path.removeprefix(PROJECT), query, raw, headers))
            if answer.cut == "before":
                self._break()
                return
            self.send_response_only(answer.status)
            given = {"Date": DATE, "Content-Length": str(len(answer.body)), **dict(answer.headers)}
            for name, value in given.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut == "mid" else answer.body)
            if answer.cut == "mid":
                self.wfile.flush()
                self._break()

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815  # the base class's names

        def _break(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    return Handler


class Listener:
    """Writes down what a backend reports."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.pieces: list[str] = []
        self.retries: list[str] = []
        self.turns: list[str] = []

    def turn_opened(self, turn: str) -> None:
        self.turns.append(turn)

    def noticed(self, told: str) -> None: ...

    def call_asked(self, call: object) -> None: ...

    def conversation_opened(self, conversation: str) -> None:
        self.opened.append(conversation)

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def waited(self) -> None:
        """Wait on."""

    def retrying(self, reason: str, seconds: float) -> None:
        self.retries.append(reason)


@pytest.fixture
def server() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.finish()


@pytest.fixture
def slept() -> list[float]:
    """The seconds that the client would have slept."""
    return []


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def backend(server: Scripted, slept: list[float], log: list[str]) -> Iterator[FoundryBackend]:
    options = Options(sleep=slept.append, clock=lambda: NOW, log=log.append, chance=lambda: 0.0)
    opened = FoundryBackend(
        Channel(server.endpoint, fixed(TOKEN, "the test"), options), name="foundry", endpoint=server.endpoint
    )
    yield opened
    opened.close()


@pytest.fixture
def listener() -> Listener:
    return Listener()


class Clock:
    """A clock that moves by `step` each time it is read."""

    def __init__(self) -> None:
        self.now = NOW
        self.step = 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(server, slept, clock) -> Iterator[OpenAIBackend]:
    options = Options(sleep=slept.append, clock=clock, chance=lambda: 0.0, headers=BETA)
    channel = Channel(server.endpoint, fixed(TOKEN, "the test"), options)
    opened = OpenAIBackend(channel, name="openai", endpoint=server.endpoint, clock=clock)
    yield opened
    opened.close()
