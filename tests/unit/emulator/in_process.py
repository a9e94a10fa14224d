"""A client of the embedded service in process, and a clock that tests move."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentfn.emulator.app import Application

HOROSCOPE = {
    "type": "function",
    "name": "get_horoscope",
    "description": "Get today's horoscope for an astrological sign.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"sign": {"type": "string", "description": "An astrological sign like Taurus or Aquarius"}},
        "required": ["sign"],
        "additionalProperties": False,
    },
}


class Reply(NamedTuple):
    """What the service answered."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the events of a stream."""
        frames = [frame for frame in self.text.split("\n\n") if frame and not frame.startswith(":")]
        return [json.loads(frame.partition("\ndata: ")[2]) for frame in frames]


class Clock:
    """Seconds that pass only when somebody sleeps or a test moves them."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Service:
    """A client of the application, which sees exactly what WSGI shows."""

    def __init__(self, app: Application, clock: Clock) -> None:
        self.app = app
        self.clock = clock

    def open(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None):
        """Return status, headers and the unread body."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        target, _, query = path.partition("?")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": target,
            "RAW_URI": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(raw)),
            "wsgi.input": io.BytesIO(raw),
            "wsgi.errors": sys.stderr,
            "agentfn.in_process": True,
        }
        environ |= {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in (headers or {}).items()}
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            started.update(
                status=int(status.split(maxsplit=1)[0]), headers={name.lower(): value for name, value in headers}
            )

        chunks = self.app(environ, start_response)
        return started["status"], started["headers"], chunks

    def __call__(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        status, sent, chunks = self.open(method, path, body, headers)
        try:
            text = b"".join(chunks).decode("utf-8")
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        return Reply(status, sent, text)

    def agents(self, method: str, path: str = "", body: Any = None) -> Reply:
        mark = "&" if "?" in path else "?"
        return self(method, f"/api/projects/p/agents{path}{mark}api-version=v1", body)

    def openai(self, method: str, path: str, body: Any = None) -> Reply:
        return self(method, f"/api/projects/p/openai/v1/{path}", body)

    def make_agent(self, *tools: dict[str, Any], name: str = "bot", **settings: Any) -> dict[str, Any]:
        definition = {"kind": "prompt", "model": "gpt-5-mini", "tools": list(tools or (HOROSCOPE,)), **settings}
        reply = self.agents("POST", f"/{name}/versions", {"definition": definition})
        assert reply.status == 200, reply.text
        version: dict[str, Any] = reply.json
        return version

    def conversation(self, **body: Any) -> str:
        identity: str = self.openai("POST", "conversations", body).json["id"]
        return identity

    def ask(self, said: Any = None, *, agent: str = "bot", **more: Any) -> Reply:
        """Ask for a response; without `said` the body has no input."""
        body: dict[str, Any] = {"agent_reference": {"type": "agent_reference", "name": agent}, **more}
        if said is not None:
            body["input"] = said
        return self.openai("POST", "responses", body)

    def items(self, conversation: str) -> list[dict[str, Any]]:
        """Return a conversation's items, oldest first."""
        listed = self.openai("GET", f"conversations/{conversation}/items?order=asc&limit=100").json
        data: list[dict[str, Any]] = listed["data"]
        return data


def output(call_id: str, text: Any = "otter") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def call_ids(reply: Reply) -> list[str]:
    return [item["call_id"] for item in reply.json["output"] if item["type"] == "function_call"]


def said(reply: Reply) -> str:
    """Return the text of a response."""
    parts = [part["text"] for item in reply.json["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(parts)
