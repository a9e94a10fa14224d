"""Answers a call by POSTing it as JSON to a URL: to this machine, or over TLS."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentfn.handlers.outputs import decode_output
from agentfn.handlers.running import stoppable
from agentfn.model import Json, Outcome
from agentfn.network import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.protocol import CallContext, Result

#: Characters of a failure's body that the agent is told.
TOLD_BODY = 2000

#: The most bytes of a body that are read; no service takes a tenth of it.
MOST_BYTES = 128 * 1024 * 1024

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|signature", re.IGNORECASE)


def secrets_of(value: Mapping[str, Json]) -> Iterable[str]:
    """Yield what an `http` mapping holds that nobody else should see: credentials in headers, query and address."""
    for name, text in (value.get("headers") or {}).items():
        if _SECRET_HEADER.search(name) and isinstance(text, str):
            yield text
            yield text.rpartition(" ")[2]  # without its scheme, such as Bearer
    with contextlib.suppress(ValueError):
        parts = urlsplit(value["url"])
        if parts.password:
            yield parts.password
        if parts.query:
            yield parts.query
            yield from (pair.partition("=")[2] for pair in parts.query.split("&") if _SECRET_HEADER.search(pair))


class _Cut(Exception):  # noqa: N818  # a signal to ourselves, told as a time-out or a flood
    """The answer was not waited for; the argument says why."""


class _Line:
    """The connection of one request, as far as it is known, so that another thread can cut it."""

    def __init__(self) -> None:
        self._socket: Any = None
        self.is_cut = False

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take httpx's reports of what happens on the connection."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_cut:
                self.cut()

    def cut(self) -> None:
        """End the connection, which wakes the thread that reads from it."""
        self.is_cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


class HttpHandler:
    """Posts each call to one URL."""

    def __init__(self, spec: HandlerSpec, end: Finish) -> None:
        self._url: str = spec.value["url"]
        self._headers: dict[str, str] = dict(spec.value.get("headers") or {})
        self._spec = spec
        self._end = end

    def problem(self) -> str | None:
        """Say why the URL may not be called, or None."""
        try:
            parts = urlsplit(self._url)
            host, _ = parts.hostname, parts.port
        except ValueError as exc:
            return f"{self._shown()} is no URL: {exc}"
        if not host:
            return f"{self._shown()} names no host"
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
            return f"{self._shown()}: plain http is for this machine only; use https"
        for name, value in self._headers.items():
            fits = _HEADER_NAME.fullmatch(name) and isinstance(value, str) and _HEADER_VALUE.fullmatch(value)
            if not fits:
                return f"the header {name} cannot be sent: names and values are texts of plain characters on one line"
        return None

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Post the call once; a redirect is a failure, since it could lead anywhere."""
        problem = self.problem()
        if problem is not None:
            return self._end.result(Outcome(error=problem))
        import httpx

        timeout = context.seconds_for(self._spec.timeout)
        body = {
            "call_id": context.call.id,
            "function": context.call.function,
            "arguments": dict(arguments),
            "conversation": context.conversation,
            "turn": context.turn,
        }
        try:
            status, charset, data = self._post(body, timeout)
        except (_Cut, httpx.TimeoutException) as exc:
            why = str(exc) if isinstance(exc, _Cut) else ""
            return self._end.result(
                Outcome(error=why or f"no answer from {self._shown()} within {round(timeout, 1):g} s"),
            )
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            return self._end.result(Outcome(error=f"cannot reach {self._shown()}: {exc}"))
        text, warnings = decode_output(data, charset or self._spec.encoding)
        if not 200 <= status < 300:  # noqa: PLR2004  # the statuses of success
            error = f"HTTP {status}: {self._end.mask(text)[:TOLD_BODY]}"
            return self._end.result(Outcome(error=error), quoted=text)
        return self._end.output(text, self._spec.result, warnings=warnings)

    def _post(self, body: Json, timeout: float) -> tuple[int, str | None, bytes]:
        """Return status, charset and body. httpx limits each read; the timer limits them all together."""
        import httpx

        line = _Line()
        timer = threading.Timer(timeout, line.cut)
        timer.daemon = True
        last = time.monotonic() + timeout
        local = is_loopback(urlsplit(self._url).hostname)
        try:
            with (
                stoppable(line.cut),
                httpx.Client(timeout=timeout, trust_env=not local, verify=self._url.startswith("https:")) as client,
            ):
                timer.start()
                with client.stream(
                    "POST",
                    self._url,
                    json=body,
                    headers=self._headers,
                    extensions={"trace": line.trace},
                ) as response:
                    data = _read(response.iter_bytes(), last)
                if line.is_cut:
                    raise _Cut
                return response.status_code, response.charset_encoding, data
        except httpx.TransportError as exc:
            if line.is_cut:
                raise _Cut from exc
            raise
        finally:
            timer.cancel()

    def _shown(self) -> str:
        """Return the URL without what may be secret in it: user, password, query."""
        try:
            parts = urlsplit(self._url)
        except ValueError:
            return "the address"
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _read(chunks: Iterable[bytes], last: float) -> bytes:
    data = bytearray()
    for chunk in chunks:
        data += chunk
        if len(data) > MOST_BYTES:
            msg = f"the answer has more than {MOST_BYTES:,} bytes"
            raise _Cut(msg)
        if time.monotonic() > last:
            raise _Cut
    return bytes(data)
