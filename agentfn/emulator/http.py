"""Requests, answers and errors of the embedded service, whichever face they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

#: A body larger than this is refused; the largest output that a service takes is far below it.
LARGEST_BODY = 64 * 1024 * 1024


class ApiError(Exception):
    """An answer that is an error; `body` is the whole JSON document."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(json.dumps(body))
        self.status = status
        self.body = body
        self.headers = headers or {}


class ConnectionCut(Exception):  # noqa: N818  # named for what happens, on purpose
    """The connection breaks here because a scenario says so; a server closes the socket, a transport raises."""


class Request(NamedTuple):
    """One request. `segments` is the decoded path; `query` keeps the last value of each name."""

    method: str
    segments: tuple[str, ...]
    query: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    id: str

    def json(self) -> dict[str, Any]:
        """Return the body as an object; an empty one is an empty object."""
        if not self.raw.strip():
            return {}
        try:
            value = json.loads(self.raw.decode("utf-8"))
        except UnicodeDecodeError as exc:
            message = f"the body is not UTF-8: byte 0x{self.raw[exc.start]:02x} at {exc.start}"
            raise ApiError(400, openai_error(message, code="invalid_json")) from exc
        except (ValueError, RecursionError) as exc:
            raise ApiError(400, openai_error(f"the body is no JSON: {exc}", code="invalid_json")) from exc
        if not isinstance(value, dict):
            raise ApiError(400, openai_error("the body must be a JSON object", code="invalid_json"))
        return value


class Answer(NamedTuple):
    """A successful answer: a JSON document (None is no body at all), or `stream`, an iterator of server-sent events."""

    body: Any = None
    stream: Iterable[bytes] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    status: int = 200


Handler = Callable[..., Answer]

Route = tuple[str, str, Handler]
"""Method, path below a face's root, handler."""


def openai_error(message: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """Return an error of the model layer (foundry.md §5.1)."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def read_request(environ: dict[str, Any], identity: str) -> Request:
    """Return the request of a WSGI environment.

    The path is split before it is decoded where the server passes it raw, so that ``a%2Fb`` stays one segment.
    """
    raw_path = environ.get("RAW_URI") or environ.get("REQUEST_URI") or ""
    path = raw_path.split("?", 1)[0]
    if path.startswith("/"):
        segments = tuple(unquote(part) for part in path.split("/") if part)
    else:
        decoded = environ.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace")
        segments = tuple(part for part in decoded.split("/") if part)
    body = _read_body(environ)
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    return Request(environ["REQUEST_METHOD"], segments, query, headers, body, identity)


def _read_body(environ: dict[str, Any]) -> bytes:
    length = environ.get("CONTENT_LENGTH") or ""
    if length:
        if not (length.isascii() and length.isdecimal()):
            raise ApiError(400, openai_error(f"Content-Length {length!r} is no number"))
        size = int(length)
    else:
        # A server that takes a chunked body apart says so; how long it is shows only at its end.
        size = LARGEST_BODY + 1 if environ.get("wsgi.input_terminated") else 0
    body: bytes = environ["wsgi.input"].read(size) if size <= LARGEST_BODY or not length else b""
    if len(body) > LARGEST_BODY or (length and size > LARGEST_BODY):
        raise ApiError(413, openai_error(f"the body is larger than {LARGEST_BODY} bytes", code="content_too_large"))
    return body


def encode(value: Any) -> bytes:
    """Return JSON as it goes out: UTF-8, and escapes only where a lone surrogate leaves no other way."""
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value).encode("ascii")


class Router:
    """Finds the handler of a path: tuples of segments, where ``{}`` takes any one segment."""

    def __init__(self) -> None:
        self._routes: dict[int, list[tuple[str, tuple[str, ...], Handler]]] = {}

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Add a route such as ``GET agents/{}/versions``."""
        parts = tuple(part for part in path.split("/") if part)
        self._routes.setdefault(len(parts), []).append((method, parts, handler))

    def find(self, method: str, segments: tuple[str, ...]) -> tuple[Handler, tuple[str, ...]] | set[str]:
        """Return the handler and the values for ``{}``; the methods that the path has where this one is missing."""
        allowed: set[str] = set()
        for known, parts, handler in self._routes.get(len(segments), ()):
            if all(part in ("{}", segment) for part, segment in zip(parts, segments, strict=True)):
                if known == method:
                    return handler, tuple(s for p, s in zip(parts, segments, strict=True) if p == "{}")
                allowed.add(known)
        return allowed


class Face(NamedTuple):
    """One protocol of the service.

    `error` makes the body of a refusal that no route is behind; `check` refuses a request before its route is run, where
    headers are missing or (second argument) credentials are demanded and there are none.
    """

    add_routes: Callable[[Router, Any], None]
    error: Callable[[int, str], dict[str, Any]]
    check: Callable[[Request, bool], None]


def has_credentials(request: Request) -> bool:
    """Tell whether a request brings any credentials; which ones, nobody here could judge."""
    return "authorization" in request.headers or "api-key" in request.headers
