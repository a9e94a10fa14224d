"""Sends requests. The home of httpx: its errors become three, and nothing above knows of it.

`RefusedError`: the service answered with an error status. `UnknownFateError`: the request went out and no answer came, so
that nobody knows whether it was carried out. `ServiceError`: the service was never reached.
"""

from __future__ import annotations

import ipaddress
import json
import ssl
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from agentfn import __version__
from agentfn.backends.retry import Patience
from agentfn.backends.sse import events
from agentfn.errors import ServiceError, UsageError
from agentfn.masking import Masker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentfn.backends.credentials import Credential

#: A model may compute for long; connecting may not take long.
READ_SECONDS, CONNECT_SECONDS = 600.0, 10.0

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
#: Answers that say nothing of whether the request was carried out.
AMBIGUOUS = frozenset({408, 500, 502, 503, 504})


class Reply(NamedTuple):
    """An answer: its JSON body (None where it is none), lower-case headers, and the service's clock when it came."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str
    service_now: float

    @property
    def request_id(self) -> str | None:
        """Return the service's own id of the request, for its support."""
        return self.headers.get("x-request-id") or self.headers.get("apim-request-id")

    def error(self) -> dict[str, Any]:
        """Return the error object, whatever it is wrapped in; empty where there is none."""
        body = self.body if isinstance(self.body, dict) else {}
        error = body.get("error", body)
        return error if isinstance(error, dict) else {"message": str(error)}


class RefusedError(Exception):
    """The service answered with an error status."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}")
        self.reply = reply


class UnknownFateError(Exception):
    """The request may or may not have been carried out. `headers` may say how long to wait."""

    def __init__(self, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.headers = headers or {}


class Options(NamedTuple):
    """What a channel is given beside its address; tests give a clock and a sleep of their own."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    log: Callable[[str], None] | None = None
    transport: httpx.BaseTransport | None = None


def is_loopback(host: str | None) -> bool:
    """Tell whether a host name means this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


class Channel:
    """A connection to one service."""

    def __init__(self, base: str, credential: Credential, options: Options) -> None:
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{base} is no address", hint="https://NAME.services.ai.azure.com/api/projects/PROJECT")
        loopback = is_loopback(parts.hostname)
        if parts.scheme == "http" and not loopback:
            raise UsageError(f"{base}: a token is sent over plain http to this machine only", hint="use https")
        self._base = base.rstrip("/")
        self._credential = credential
        self._options = options
        self._client = httpx.Client(
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            # A proxy must not see what is meant for this machine.
            trust_env=not loopback,
            # Loading certificates costs more than a request; a context without any trusts nobody, should it be used.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if parts.scheme == "http" else True,
            transport=options.transport,
            headers={"User-Agent": f"agentfn/{__version__}", "Accept": "application/json"},
        )

    def patience(self, told: Callable[[str, float], None]) -> Patience:
        """Return the retries of one operation."""
        return Patience(told, sleep=self._options.sleep, clock=self._options.clock)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        patience: Patience,
        safe: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and return the answer; raise RefusedError or UnknownFateError.

        "Not now" is waited out with the same bytes; so is an unknown fate where `safe` says that twice is like once.
        """
        while True:
            try:
                return self._once(method, path, body, headers)
            except RefusedError as exc:
                if not is_not_now(exc.reply):
                    raise
                patience.wait(told_status(exc.reply), exc.reply.headers, exc)
            except UnknownFateError as exc:
                if not safe:
                    raise
                patience.wait(exc.reason, exc.headers, self._unreachable(exc.reason))
            except _NOT_SENT as exc:
                # Nothing went out, so sending it (again) is safe whatever it is.
                patience.wait(f"cannot reach {self._base}", {}, self._unreachable(str(exc)))

    def stream(self, path: str, *, body: Any, patience: Patience) -> Iterator[tuple[dict[str, Any], float]]:
        """Post a request and yield its events, each with the service's clock at the start of the answer."""
        while True:
            try:
                yield from self._stream_once(path, body)
            except RefusedError as exc:
                if not is_not_now(exc.reply):
                    raise
                patience.wait(told_status(exc.reply), exc.reply.headers, exc)
            except _NOT_SENT as exc:
                patience.wait(f"cannot reach {self._base}", {}, self._unreachable(str(exc)))
            else:
                return

    def _once(self, method: str, path: str, body: Any, headers: Mapping[str, str] | None) -> Reply:
        for attempt in (1, 2):
            try:
                response = self._client.request(
                    method,
                    self._base + path,
                    json=body,
                    headers={**self._authorization(), **(headers or {})},
                )
            except _NOT_SENT:
                raise
            except httpx.HTTPError as exc:
                raise UnknownFateError(_reason(exc)) from exc
            reply = self._reply(response)
            self._note(method, path, reply)
            if reply.status == httpx.codes.UNAUTHORIZED and attempt == 1 and self._credential.renew():
                continue  # the token had expired; a new one has been fetched
            break
        return _checked(reply)

    def _stream_once(self, path: str, body: Any) -> Iterator[tuple[dict[str, Any], float]]:
        try:
            with self._client.stream("POST", self._base + path, json=body, headers=self._authorization()) as response:
                if not response.is_success:
                    response.read()
                reply = self._reply(response)
                self._note("POST", path, reply)
                _checked(reply)
                for event in events(response.iter_raw()):
                    yield event, reply.service_now
        except _NOT_SENT:
            raise
        except httpx.HTTPError as exc:
            raise UnknownFateError(_reason(exc)) from exc

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._credential.token()}"}

    def _reply(self, response: httpx.Response) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        whole = response.is_closed or response.is_stream_consumed
        # A service may echo the token in an error, and an error is shown; an answer stays as it came.
        text = response.text if whole else ""
        text = text if response.is_success else self.mask(text)
        try:
            body = json.loads(text) if whole else None
        except (ValueError, RecursionError):
            body = None
        return Reply(response.status_code, headers, body, text, _date(headers) or self._options.clock())

    def mask(self, text: str) -> str:
        """Return text without the token, which a service may echo in an error."""
        return Masker(self._credential.secrets()).mask(text)

    def _note(self, method: str, path: str, reply: Reply) -> None:
        if self._options.log is not None:
            request_id = f" ({reply.request_id})" if reply.request_id else ""
            self._options.log(f"{method} {self._base}{path} [Authorization: ***] → {reply.status}{request_id}")

    def _unreachable(self, reason: str) -> ServiceError:
        return ServiceError(
            f"cannot reach {self._base}: {self.mask(reason)}",
            code="unreachable",
            hint="check the endpoint and the network: agentfn doctor",
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def is_not_now(reply: Reply) -> bool:
    """Tell whether a refusal means "come back": throttled, or another run has the conversation (foundry.md §5.2)."""
    code = str(reply.error().get("code") or "")
    if reply.status == httpx.codes.TOO_MANY_REQUESTS:
        return code != "insufficient_quota"
    return code == "conversation_locked"


def told_status(reply: Reply) -> str:
    """Return a refusal in a few words."""
    code = reply.error().get("code")
    return f"the service answered {reply.status}" + (f" {code}" if code and str(code) != str(reply.status) else "")


def _checked(reply: Reply) -> Reply:
    if reply.status in AMBIGUOUS:
        raise UnknownFateError(told_status(reply), reply.headers)
    if not httpx.codes.is_success(reply.status):
        raise RefusedError(reply)
    return reply


def _reason(exc: httpx.HTTPError) -> str:
    if isinstance(exc, httpx.TimeoutException):
        return "the service did not answer in time"
    return f"the connection broke ({exc})" if str(exc) else "the connection broke"


def _date(headers: Mapping[str, str]) -> float | None:
    import email.utils

    try:
        return email.utils.parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError):
        return None
