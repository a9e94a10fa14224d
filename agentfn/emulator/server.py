"""Puts the embedded service on a loopback port: werkzeug's threaded server with a request handler of ours.

werkzeug's own handler closes each connection after one answer; here connections are kept, chunks are flushed as they
come, and a scenario's cut really closes the socket. One thread a connection: an event stream holds its own.
"""

from __future__ import annotations

import contextlib
import io
import socket
import ssl
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from agentfn.emulator.http import LARGEST_BODY, ConnectionCut
from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentfn.emulator.app import Application
    from agentfn.emulator.tls import TlsFiles

HOST = "127.0.0.1"
#: How long the end of the server waits for requests that are being answered, in seconds.
GRACE_SECONDS = 2.0

Header = tuple[str, str]


class _Handler(WSGIRequestHandler):
    """Serves the requests of one connection."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120  # an idle connection is let go after so many seconds

    def run_wsgi(self) -> None:
        """Answer one request; a cut closes the connection without another byte."""
        environ = self.make_environ()
        started: list[tuple[str, list[Header]]] = []

        def start_response(status: str, headers: list[Header], exc_info: Any = None, /) -> Any:
            del exc_info
            started[:] = [(status, headers)]

        body: Iterable[bytes] = ()
        try:
            self._take_body(environ)
            body = self.server.app(environ, start_response)
            self._send(*started[0], body)
        except ConnectionCut:
            self._cut()
        except (ConnectionError, TimeoutError, ssl.SSLError):
            self.close_connection = True  # the client left
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _take_body(self, environ: dict[str, Any]) -> None:
        """Read the whole body before it is answered, or the rest of it would be taken for the next request."""
        length = environ.get("CONTENT_LENGTH", "0")
        if environ.get("wsgi.input_terminated"):
            environ.pop("CONTENT_LENGTH", None)
            try:
                data = environ["wsgi.input"].read(LARGEST_BODY + 1)
            except OSError as exc:
                raise ConnectionResetError from exc  # chunks that are none
            self.close_connection = self.close_connection or len(data) > LARGEST_BODY
        elif length.isascii() and length.isdecimal() and int(length) <= LARGEST_BODY:
            data = self.rfile.read(int(length))
            if len(data) < int(length):
                raise ConnectionResetError
        else:
            data = b""  # the application refuses it by its length
            self.close_connection = True
        environ["wsgi.input"] = io.BytesIO(data)

    def _send(self, status: str, headers: list[Header], body: Iterable[bytes]) -> None:
        code, _, reason = status.partition(" ")
        is_sized = any(name.lower() == "content-length" for name, _ in headers)
        is_chunked = not is_sized and self.request_version != "HTTP/1.0"
        self.close_connection = self.close_connection or not (is_sized or is_chunked)
        self.send_response_only(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        for piece in body:
            if piece:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
                self.wfile.flush()
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing: the control route of recent requests tells them."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  # werkzeug's name
        """Say nothing of broken connections: clients come and go."""


class _Server(ThreadedWSGIServer):
    """werkzeug's server, which also knows its open connections, so that its end is the end of them."""

    daemon_threads = True

    def __init__(self, app: Any, listening: socket.socket, context: ssl.SSLContext | None) -> None:
        self._guard = threading.Lock()
        self._open: dict[int, tuple[Any, threading.Thread]] = {}
        super().__init__(HOST, 0, app, _Handler, ssl_context=context, fd=listening.fileno())

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection."""
        with self._guard:
            self._open[id(request)] = (request, threading.current_thread())
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._guard:
                del self._open[id(request)]

    def close_connections(self) -> None:
        """Close every connection and wait a little for their threads."""
        with self._guard:
            served = list(self._open.values())
        for request, _ in served:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        end = time.monotonic() + GRACE_SECONDS
        for _, thread in served:
            thread.join(max(0.0, end - time.monotonic()))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell an error that is not the client's doing."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError)):
            super().handle_error(request, client_address)


class Server:
    """The service on a port of this machine; as a context manager it serves in a thread and is ready on enter.

    Raises ServiceError where the port is taken. The application is closed with the server.
    """

    def __init__(self, app: Application, port: int = 0, tls: TlsFiles | None = None) -> None:
        context = None
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
        self._app = app
        # Opened here: werkzeug ends the process where the port is taken.
        with _listen(port) as listening:
            self._server = _Server(app, listening, context)
        if context is not None:
            # Else the handshake runs in the accepting thread, and one idle connection blocks everybody.
            self._server.socket.do_handshake_on_connect = False  # type: ignore[attr-defined]  # a TLS socket
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Return the port, also where 0 was asked for."""
        return self._server.port

    def serve_forever(self) -> None:
        """Serve until `shutdown`, in this thread."""
        self._server.serve_forever(poll_interval=0.05)

    def shutdown(self) -> None:
        """Stop serving; call it from another thread than the serving one."""
        self._server.shutdown()

    def close(self) -> None:
        """Let go of the port, the connections and the state."""
        self._server.server_close()
        self._server.close_connections()
        self._app.close()

    def __enter__(self) -> Self:
        """Serve in a thread; the port takes connections already."""
        self._thread = threading.Thread(target=self.serve_forever, name="serve", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop, and wait for it."""
        self.shutdown()
        if self._thread is not None:
            self._thread.join()
        self.close()


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(128)
    except OSError as exc:
        listening.close()
        message = f"port {port} cannot be used: {exc.strerror or exc}"
        raise ServiceError(message, code="port_taken", hint="another --port, or --port 0") from exc
    return listening


def environment(port: int, tls: TlsFiles | None) -> dict[str, str]:
    """Return the variables that point unmodified programs here (foundry.md §7; openai-agents.md §1)."""
    from agentfn.emulator.control import TOKEN

    base = f"https://localhost:{port}" if tls is not None else f"http://{HOST}:{port}"
    values = {
        "FOUNDRY_PROJECT_ENDPOINT": f"{base}/api/projects/local",
        "AGENT_TOKEN": TOKEN,
        "IDENTITY_ENDPOINT": f"{base}/msi/token",
        "IDENTITY_HEADER": "local",
        "OPENAI_BASE_URL": f"{base}/v1",
        "OPENAI_API_KEY": TOKEN,
    }
    if tls is not None:
        # requests reads the one, httpx and the standard library the other; both hold the system's certificates too.
        values |= {"REQUESTS_CA_BUNDLE": str(tls.bundle), "SSL_CERT_FILE": str(tls.bundle)}
        # Node adds these to its own.
        values["NODE_EXTRA_CA_CERTS"] = str(tls.certificate)
    return values
