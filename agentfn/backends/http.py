"""Sends requests. The home of httpx: its errors become three, and nothing above knows of it.

`RefusedError`: the service answered with an error status. `UnknownFateError`: the request went out and no answer came, or
one that says nothing, so that nobody knows whether it was carried out. `NotSentError`: the service was never reached.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from agentfn import __version__
from agentfn.backends.retry import Patience, http_date
from agentfn.backends.sse import BrokenEventError, events
from agentfn.errors import ServiceError, UsageError
from agentfn.masking import Masker
from agentfn.network import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from urllib.parse import SplitResult

    from agentfn.backends.credentials import Credential

#: A model may compute for long; connecting may not take long.
READ_SECONDS, CONNECT_SECONDS = 600.0, 10.0
#: A service that cannot be reached is rarely there a moment later.
MOST_CONNECTS = 2

#: The event that stands for an answer which is no stream.
WHOLE = "agentfn.whole"

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_EXAMPLE = "https://NAME.services.ai.azure.com/api/projects/PROJECT"


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
        if not isinstance(error, dict):
            return {"message": str(error)}
        # Servers in Python's frameworks say "detail", some of them with a list of what was wrong where.
        return (
            error if error.get("message") or "detail" not in error else {**error, "message": _detail(error["detail"])}
        )


class RefusedError(Exception):
    """The service answered with an error status."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}")
        self.reply = reply


class UnknownFateError(Exception):
    """The request may or may not have been carried out. `reply` is the answer that says nothing, where there was one."""

    def __init__(self, reason: str, reply: Reply | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.reply = reply

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the answer's headers, which may say how long to wait."""
        return self.reply.headers if self.reply is not None else {}

    @property
    def told(self) -> str:
        """Return the reason with what the service says of it."""
        if self.reply is None:
            return self.reason
        message = self.reply.error().get("message") or _title(self.reply.text)
        request = f" [request {self.reply.request_id}]" if self.reply.request_id else ""
        return self.reason + (f": {message}" if message else "") + request


class NotSentError(Exception):
    """Nothing went out, so sending it (again) is safe whatever it is. `error` is what the user is told in the end."""

    def __init__(self, reason: str, error: ServiceError) -> None:
        super().__init__(reason)
        self.reason = reason
        self.error = error


class Options(NamedTuple):
    """What a channel is given beside its address; tests give a clock, a sleep and a chance of their own.

    `headers` go with every request.
    """

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    log: Callable[[str], None] | None = None
    transport: httpx.BaseTransport | None = None
    chance: Callable[[], float] = random.random
    headers: Mapping[str, str] = {}


def require_address(base: str) -> bool:
    """Check an address and tell whether it means this machine; raise UsageError where no token may be sent to it."""
    parts = _address(base)
    if parts is None:
        raise UsageError(f"{base} is no address of a service", hint=f"it looks like {_EXAMPLE}")
    loopback = is_loopback(parts.hostname)
    if parts.scheme == "http" and not loopback:
        raise UsageError(f"{base}: a token is sent over plain http to this machine only", hint="use https")
    return loopback


def _address(base: str) -> SplitResult | None:
    try:
        parts = urlsplit(base)
        httpx.URL(base)
        port = parts.port
    except (ValueError, httpx.InvalidURL):
        return None
    more = parts.query or parts.fragment or parts.username is not None
    return parts if parts.scheme in ("http", "https") and parts.hostname and port != 0 and not more else None


class Channel:
    """A connection to one service. Several threads may use it."""

    def __init__(self, base: str, credential: Credential, options: Options) -> None:
        loopback = require_address(base)
        self._base = base.rstrip("/")
        self.credential = credential
        self._options = options
        self._client = httpx.Client(
            # A proxy must not see what is meant for this machine.
            trust_env=not loopback,
            # Loading certificates costs more than a request, so only https pays for it; an empty context trusts nobody,
            # should it be used. The other one heeds SSL_CERT_FILE, for this machine too.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if base.startswith("http:") else httpx.create_ssl_context(),
            transport=options.transport,
            headers={"User-Agent": f"agentfn/{__version__}", "Accept": "application/json", **options.headers},
        )

    def patience(self, told: Callable[[str, float], None] = lambda _reason, _seconds: None) -> Patience:
        """Return the retries of one operation; `told` hears of each."""
        return Patience(told, sleep=self._options.sleep, clock=self._options.clock, chance=self._options.chance)

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
        """Send a request until there is an answer; raise RefusedError, UnknownFateError, or ServiceError at the end.

        "Not now" is waited out with the same bytes; so is an unknown fate where `safe` says that twice is like once.
        """
        while True:
            try:
                return self.attempt(method, path, body=body, headers=headers)
            except RefusedError as exc:
                if not is_not_now(exc.reply):
                    raise
                patience.wait(told_status(exc.reply), exc.reply.headers, exc, status=exc.reply.status)
            except UnknownFateError as exc:
                if not safe:
                    raise
                patience.wait(exc.reason, exc.headers, self._failing(exc))
            except NotSentError as exc:
                patience.wait(exc.reason, {}, exc.error, most=MOST_CONNECTS)

    def attempt(self, method: str, path: str, *, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send a request once and return the answer; raise one of the three errors."""
        with self._translated(method, path):
            for renewed in (False, True):
                response = self._client.send(self._request(method, path, body, headers))
                reply = self._reply(response)
                self._note(method, path, str(reply.status), reply)
                if reply.status != httpx.codes.UNAUTHORIZED or renewed or not self.credential.renew():
                    break  # else the token had expired, and a new one has been fetched
        return _checked(reply)

    def stream(
        self, method: str, path: str, *, body: Any = None, silence: float | None = None
    ) -> Iterator[tuple[dict[str, Any], float]]:
        """Send a request once and yield the events of its answer, each with the service's clock at the start of it.

        The request goes out, and errors are raised, before the first event is asked for. A comment of the stream is an
        empty event; a server that does not stream answers as if it had not been asked to, which is one event of type
        `WHOLE` with its ``body``. `silence` is how many seconds may pass without a byte. Raises one of the three errors,
        once the answer began UnknownFateError alone.
        """
        with self._translated(method, path):
            for renewed in (False, True):
                response = self._client.send(self._request(method, path, body, None, silence), stream=True)
                try:
                    if not response.is_success or "json" in response.headers.get("content-type", ""):
                        response.read()
                    reply = self._reply(response)
                    self._note(method, path, str(reply.status), reply)
                    if reply.status == httpx.codes.UNAUTHORIZED and not renewed and self.credential.renew():
                        response.close()
                        continue
                    _checked(reply)
                except BaseException:
                    response.close()
                    raise
                break
        return self._events(method, path, response, reply)

    def _events(
        self, method: str, path: str, response: httpx.Response, reply: Reply
    ) -> Iterator[tuple[dict[str, Any], float]]:
        try:
            with self._translated(method, path):
                if isinstance(reply.body, dict):
                    yield {"type": WHOLE, "body": reply.body}, reply.service_now
                elif not response.is_stream_consumed:
                    for event in events(response.iter_bytes()):
                        yield event, reply.service_now
        except BrokenEventError as exc:
            raise UnknownFateError("an event of the stream was broken") from exc
        finally:
            response.close()

    def _request(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] | None, silence: float | None = None
    ) -> httpx.Request:
        given = {**self.credential.headers(), **(headers or {})}
        content = None
        if body is not None:
            given["Content-Type"] = "application/json"
            content = encoded(body)
        wait = httpx.Timeout(READ_SECONDS if silence is None else silence, connect=CONNECT_SECONDS)
        return self._client.build_request(method, self._base + path, content=content, headers=given, timeout=wait)

    def _reply(self, response: httpx.Response) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        whole = response.is_stream_consumed
        # A service may echo the token in an error, and an error is shown; an answer stays as it came.
        text = response.text if whole else ""
        text = text if response.is_success else self.mask(text)
        try:
            body = json.loads(text) if whole else None
        except (ValueError, RecursionError):
            body = None
        return Reply(response.status_code, headers, body, text, http_date(headers.get("date")) or self._options.clock())

    def mask(self, text: str) -> str:
        """Return text without the token, which a service may echo in an error."""
        return Masker(self.credential.secrets()).mask(text)

    @contextmanager
    def _translated(self, method: str, path: str) -> Iterator[None]:
        try:
            yield
        except _NOT_SENT as exc:
            reason = self.mask(str(exc)) or "the connection was not made in time"
            self._note(method, path, reason)
            raise NotSentError("the service cannot be reached", self._unreachable(reason)) from exc
        except httpx.HTTPError as exc:
            reason = self.mask(_reason(exc))
            self._note(method, path, reason)
            raise UnknownFateError(reason) from exc

    def _note(self, method: str, path: str, outcome: str, reply: Reply | None = None) -> None:
        if self._options.log is not None:
            request_id = f" ({reply.request_id})" if reply is not None and reply.request_id else ""
            self._options.log(f"{method} {self._base}{path} [Authorization: ***] → {outcome}{request_id}")

    def _unreachable(self, reason: str) -> ServiceError:
        hint = "check the endpoint and the network: agentfn doctor"
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            hint = "SSL_CERT_FILE names a file with the certificates to trust"
        return ServiceError(f"cannot reach {self._base}: {reason}", code="unreachable", hint=hint)

    def _failing(self, exc: UnknownFateError) -> ServiceError:
        if exc.reply is None:
            return self._unreachable(exc.reason)
        code = str(exc.reply.error().get("code") or f"http_{exc.reply.status}")
        return ServiceError(f"{self._base}: {exc.told}", code=code, hint="try again later; agentfn doctor")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _title(text: str) -> str:
    """Return the title of a web page that came in place of an error."""
    _, _, rest = text.partition("<title>")
    return rest.partition("</title>")[0].strip()[:80] if rest else ""


def _detail(detail: Any) -> str:
    entries = detail if isinstance(detail, list) else [detail]
    told = []
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {"msg": entry}
        place = ".".join(str(part) for part in fields.get("loc") or ())
        told.append((f"{place}: " if place else "") + str(fields.get("msg") or fields.get("message") or entry))
    return "; ".join(told)


def encoded(body: Any) -> bytes:
    """Return JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, stays the escape that it came as."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def is_not_now(reply: Reply) -> bool:
    """Tell whether a refusal means "come back": throttled, or another run has the conversation (foundry.md §5.2)."""
    error = reply.error()
    if reply.status == httpx.codes.TOO_MANY_REQUESTS:
        return "insufficient_quota" not in (error.get("code"), error.get("type"))
    return is_locked(reply)


def is_locked(reply: Reply) -> bool:
    """Tell whether a refusal says that another run has the conversation; its status is 400 all the same."""
    error = reply.error()
    told = str(error.get("message") or "")
    return error.get("code") == "conversation_locked" or told.startswith("Another process is currently operating on")


def told_status(reply: Reply) -> str:
    """Return a refusal in a few words."""
    code = reply.error().get("code")
    return f"the service answered {reply.status}" + (f" {code}" if code and str(code) != str(reply.status) else "")


def _checked(reply: Reply) -> Reply:
    if httpx.codes.is_success(reply.status):
        return reply
    # Neither says whether the request was carried out.
    if httpx.codes.is_server_error(reply.status) or reply.status == httpx.codes.REQUEST_TIMEOUT:
        raise UnknownFateError(told_status(reply), reply)
    raise RefusedError(reply)


def _reason(exc: httpx.HTTPError) -> str:
    if isinstance(exc, httpx.TimeoutException):
        return "the service did not answer in time"
    return f"the connection broke ({exc})" if str(exc) else "the connection broke"
