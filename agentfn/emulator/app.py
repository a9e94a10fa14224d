"""The embedded service as a plain WSGI application: one object serves in process and over a socket."""

from __future__ import annotations

import email.utils
import secrets
import sys
import threading
import time
import traceback
from collections import deque
from http import HTTPStatus
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentfn.emulator.http import (
    Answer,
    ApiError,
    ConnectionCut,
    Face,
    Request,
    Router,
    encode,
    openai_error,
    read_request,
)
from agentfn.emulator.store import Store
from agentfn.network import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from agentfn.emulator.models.scenario import Scenario

__all__ = ["Application", "ConnectionCut"]

#: How a path begins → the module whose ``FACE`` answers it; imported when such a request comes. The first that fits.
FACES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("api",), "agentfn.emulator.foundry"),
    (("v1", "agents"), "agentfn.emulator.sessions"),
    (("v1",), "agentfn.emulator.responses"),
    ((), "agentfn.emulator.control"),
)

#: How many requests are remembered, and how much of each body, in bytes.
RECENT, RECENT_BODY = 200, 20_000


class Application:
    """The service over one state file.

    `scenario` is what the stand-in model does in conversations that begin now; `loose` also takes what older clients
    send; `require_token` answers 401 to a request without credentials. What is not `durable` is gone after a crash, and
    belongs to one process. `clock` gives unix seconds, `sleep` waits them.
    """

    def __init__(
        self,
        store: Path,
        *,
        scenario: Scenario | None = None,
        loose: bool = False,
        require_token: bool = False,
        durable: bool = True,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = Store(store, clock, durable=durable)
        self.scenario = scenario
        self.loose = loose
        self.sleep = sleep
        #: Waits so long for something to happen. Where nobody else can ring the bell, any way to wait will do.
        self.idle: Callable[[float], None] = self._for_the_bell
        #: What was asked lately, for tests and for whoever wonders; without headers, which hold tokens.
        self.recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        #: Rung when something happened that an open stream may wait for; other processes' doings ring nothing.
        self.bell = threading.Condition()
        self._require_token = require_token
        self._faces: dict[str, tuple[Face, Router]] = {}

    def _for_the_bell(self, seconds: float) -> None:
        with self.bell:
            self.bell.wait(seconds)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request; a scenario's cut is raised as ConnectionCut, here or while the body is read."""
        identity = secrets.token_hex(16)
        try:
            status, answer = self._guarded(environ, identity)
            headers = [("X-Request-ID", identity), ("Date", email.utils.formatdate(self.store.now(), usegmt=True))]
        finally:
            self.store.release()
        headers += answer.headers
        if answer.stream is not None:
            headers += [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")]
            start_response(_status_line(status), headers)
            return answer.stream
        body = b"" if answer.body is None else encode(answer.body)
        headers += [("Content-Type", "application/json; charset=utf-8"), ("Content-Length", str(len(body)))]
        start_response(_status_line(status), headers)
        return _half(body) if answer.cut else [body]

    def _guarded(self, environ: dict[str, Any], identity: str) -> tuple[int, Answer]:
        """Return an answer whatever happens, and note the request."""
        note: dict[str, Any] = {"id": identity, "method": environ.get("REQUEST_METHOD"), "status": None}
        self.recent.append(note)
        try:
            request = read_request(environ, identity)
            note |= {"path": "/" + "/".join(request.segments), "query": request.query}
            note["body"] = request.raw[:RECENT_BODY].decode("utf-8", "replace")
            answer = self._answer(request)
            status = answer.status
        except ApiError as exc:
            error = _with_request_id(exc.body, identity)
            status, answer = exc.status, Answer(error, headers=tuple(exc.headers.items()))
        except ConnectionCut:
            note["status"] = "cut"
            raise
        except Exception:  # the last net: a client gets an answer, the log the reason
            if environ.get("agentfn.in_process"):
                raise  # the caller is agentfn itself, which says what it is: a bug
            log = environ.get("wsgi.errors") or sys.stderr
            log.write(traceback.format_exc())
            status, answer = 500, Answer(openai_error("the embedded service failed", code="server_error"))
        note["status"] = "cut" if answer.cut else status
        return status, answer

    def _answer(self, request: Request) -> Answer:
        _require_local(request)
        face, router = self._face(request.segments)
        found = router.find(request.method, request.segments)
        if isinstance(found, set):
            if found:
                error = face.error(405, f"{request.method} is not allowed here")
                raise ApiError(405, error, {"Allow": ", ".join(sorted(found))})
            raise ApiError(404, face.error(404, f"there is no route /{'/'.join(request.segments)}"))
        face.check(request, self._require_token)
        handler, values = found
        return handler(request, *values)

    def _face(self, segments: tuple[str, ...]) -> tuple[Face, Router]:
        name = next(module for start, module in FACES if segments[: len(start)] == start)
        if name not in self._faces:
            face: Face = import_module(name).FACE
            router = Router()
            face.add_routes(router, self)
            self._faces[name] = face, router
        return self._faces[name]

    def close(self) -> None:
        """Close the state file."""
        self.store.close()


def _require_local(request: Request) -> None:
    """Refuse what a web page may have sent: a foreign host name that points here, or a foreign origin."""
    for name in ("host", "origin"):
        given = request.headers.get(name)
        if given and not is_loopback(urlsplit(given if name == "origin" else f"//{given}").hostname):
            raise ApiError(403, openai_error(f"this service answers to programs of this machine, not to {given}"))


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Status"  # a scenario may invent one


def _with_request_id(body: dict[str, Any], identity: str) -> dict[str, Any]:
    """Put the request's id where Foundry's own errors have it (foundry.md §5.1)."""
    info = body.get("error", {}).get("additionalInfo") if isinstance(body.get("error"), dict) else None
    if isinstance(info, dict):
        info["request_id"] = identity
    return body


def _half(body: bytes) -> Iterator[bytes]:
    """Send half of a body, then break off."""
    yield body[: len(body) // 2]
    raise ConnectionCut
