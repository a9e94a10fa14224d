"""Puts the embedded service on a loopback port: werkzeug's threaded server with a request handler of ours.

werkzeug's own handler closes each connection after one answer; here connections are kept, chunks are flushed as they
come, and a scenario's cut really closes the socket. One thread a connection: an event stream holds its own.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from agentfn.emulator.http import ConnectionCut
from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.emulator.app import Application
    from agentfn.emulator.tls import TlsFiles

HOST = "127.0.0.1"


class _Handler(WSGIRequestHandler):
    """Serves the requests of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120  # an idle connection is let go after so many seconds

    def run_wsgi(self) -> None:
        """Answer one request; a cut closes the connection without another byte."""
        environ = self.make_environ()
        started: list[Any] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            del exc_info
            started[:] = [status, headers]

        body: Iterable[bytes] = ()
        try:
            body = self.server.app(environ, start_response)
            self._send(started[0], started[1], body)
        except ConnectionCut:
            self._cut()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _send(self, status: str, headers: list[tuple[str, str]], body: Iterable[bytes]) -> None:
        code, _, reason = status.partition(" ")
        names = {name.lower() for name, _ in headers}
        chunked = "content-length" not in names
        self.send_response_only(int(code), reason or HTTPStatus(int(code)).phrase)
        for name, value in headers:
            self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in body:
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: `--debug` of the client tells its own requests."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  # werkzeug's name
        """Say nothing of broken connections: clients come and go."""


class _Server(ThreadedWSGIServer):
    """werkzeug's server, without its handling of errors that a client's leaving causes."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell an error that is not the client's doing."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError)):
            super().handle_error(request, client_address)


class Server:
    """The service on a port of this machine; as a context manager it serves in a thread and is ready on enter."""

    def __init__(self, app: Application, *, port: int = 0, tls: TlsFiles | None = None) -> None:
        context = None
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
        self._app = app
        self._check_port(port)
        self._server = _Server(HOST, port, app, handler=_Handler, ssl_context=context)
        if context is not None:
            # Else the handshake runs in the accepting thread, and one idle connection blocks everybody.
            self._server.socket.do_handshake_on_connect = False  # type: ignore[attr-defined]  # a TLS socket
        self._thread: threading.Thread | None = None

    @staticmethod
    def _check_port(port: int) -> None:
        """Find out by ourselves whether the port is free: werkzeug ends the process where it is not."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as exc:
                message = f"port {port} cannot be used: {exc.strerror}"
                raise ServiceError(message, code="port_taken", hint="another --port, or --port 0") from exc

    @property
    def port(self) -> int:
        """Return the port, also where 0 was asked for."""
        return self._server.port

    def serve_forever(self) -> None:
        """Serve until `shutdown`, in this thread."""
        self._server.serve_forever(poll_interval=0.05)

    def shutdown(self) -> None:
        """Stop serving; call it from another thread."""
        self._server.shutdown()

    def close(self) -> None:
        """Let go of the port and the state."""
        self._server.server_close()
        self._app.close()

    def __enter__(self) -> Self:
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.serve_forever, name="serve", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop, and wait for it."""
        self.shutdown()
        if self._thread is not None:
            self._thread.join()
        self.close()


def environment(port: int, tls: TlsFiles | None) -> dict[str, str]:
    """Return the variables that point unmodified programs here (foundry.md §7)."""
    from agentfn.emulator.control import TOKEN

    scheme = "https" if tls is not None else "http"
    base = f"{scheme}://localhost:{port}" if tls is not None else f"{scheme}://{HOST}:{port}"
    values = {
        "FOUNDRY_PROJECT_ENDPOINT": f"{base}/api/projects/local",
        "AGENT_TOKEN": TOKEN,
        "IDENTITY_ENDPOINT": f"{base}/msi/token",
        "IDENTITY_HEADER": "local",
    }
    if tls is not None:
        # requests reads the one, httpx and the standard library the other; both hold the system's certificates too.
        values |= {"REQUESTS_CA_BUNDLE": str(tls.bundle), "SSL_CERT_FILE": str(tls.bundle)}
    return values
