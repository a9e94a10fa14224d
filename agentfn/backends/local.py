"""The clients of the other backends over the embedded service, in process: no key, no port."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import httpx

from agentfn.backends.credentials import fixed
from agentfn.backends.http import Channel, Options
from agentfn.emulator.app import Application, ConnectionCut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentfn.backends import BackendOptions
    from agentfn.backends.protocol import Backend

#: The embedded service's file in the state folder.
STATE_FILE = "local.db"
_HOST = "http://127.0.0.1"


def open_backend(endpoint: str, env: Mapping[str, str], options: BackendOptions) -> Backend:
    """Return one of the embedded service's faces as a backend; ``local/openai`` names that of the Agents API."""
    del env
    app = Application(options.home / STATE_FILE, scenario=options.scenario, clock=options.clock, sleep=options.sleep)
    return backend_over(app, endpoint, options)


def backend_over(app: Application, endpoint: str, options: BackendOptions) -> Backend:
    """Return one of the faces of an embedded service that somebody holds; closing the backend closes the service too."""
    return _FACES[endpoint.removeprefix("local/")](endpoint, InProcess(app), options)


def _channel(base: str, transport: InProcess, options: BackendOptions, headers: Mapping[str, str]) -> Channel:
    given = Options(sleep=options.sleep, clock=options.clock, log=options.log, transport=transport, headers=headers)
    return Channel(_HOST + base, fixed("local", "none needed in process"), given)


def _foundry(endpoint: str, transport: InProcess, options: BackendOptions) -> Backend:
    from agentfn.backends.foundry import FoundryBackend

    return FoundryBackend(_channel("/api/projects/local", transport, options, {}), name="local", endpoint=endpoint)


def _openai(endpoint: str, transport: InProcess, options: BackendOptions) -> Backend:
    from agentfn.backends.openai import BETA, OpenAIBackend

    channel = _channel("/v1", transport, options, BETA)
    return OpenAIBackend(channel, name="local", endpoint=endpoint, clock=options.clock, list_lag=0.0)


def _responses(endpoint: str, transport: InProcess, options: BackendOptions) -> Backend:
    from agentfn.backends.responses import make

    return make(_channel("/v1", transport, options, {}), "local", endpoint, options)


#: Face → what opens it; their names are those of the backends.
_FACES = {"foundry": _foundry, "openai": _openai, "responses": _responses}


class InProcess(httpx.BaseTransport):
    """Calls a WSGI application in place of a server.

    httpx's own transport mangles paths that are not ASCII and lets a broken connection through as the application's own
    exception; this one passes the path raw and translates.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Run the application for one request."""
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            del exc_info
            started.update(status=int(status.split(maxsplit=1)[0]), headers=headers)

        try:
            body = self._app(_environ(request), start_response)
        except ConnectionCut as exc:
            message = "the embedded service cut the connection, as its scenario says"
            raise httpx.RemoteProtocolError(message, request=request) from exc
        return httpx.Response(started["status"], headers=started["headers"], stream=_Body(body, request))

    def close(self) -> None:
        """Close the application's state file."""
        self._app.close()


class _Body(httpx.SyncByteStream):
    """An application's body as httpx reads it."""

    def __init__(self, body: Iterable[bytes], request: httpx.Request) -> None:
        self._body = body
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except ConnectionCut as exc:
            message = "the embedded service cut the connection, as its scenario says"
            raise httpx.RemoteProtocolError(message, request=self._request) from exc

    def close(self) -> None:
        close = getattr(self._body, "close", None)
        if close is not None:
            close()


def _environ(request: httpx.Request) -> dict[str, Any]:
    body = request.read()
    environ = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.url.path.encode("utf-8").decode("latin-1"),
        "RAW_URI": request.url.raw_path.decode("ascii"),
        "QUERY_STRING": request.url.query.decode("ascii"),
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(body),
        "agentfn.in_process": True,
        "wsgi.url_scheme": "http",
    }
    for name, value in request.headers.items():
        environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return environ
