"""What our client of the Agents API sends is what OpenAI's SDK sends where both do the same thing, field for field.

`openai_requests.json` holds the SDK's requests as they were recorded. Left aside are the stamp of ownership, page sizes,
and the id of a saved agent where the SDK's flow gives the agent in place.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import pytest

from agentfn.backends import BackendOptions, open_backend
from agentfn.backends.protocol import Start, Submit
from agentfn.definition.load import load_agent
from agentfn.model import AgentRef, Call, Outcome, Stamp
from tests.contract.clients import Listener

SDK = json.loads(Path(__file__).with_name("openai_requests.json").read_text())
SESSION = SDK["get_session"]["path"].rsplit("/", 1)[1]
AGENT = SDK["get_agent"]["path"].rsplit("/", 1)[1]
STAMP = Stamp("run_1", "rsc_1", "d1")


def events(turn: str, session: str) -> bytes:
    """Return a stream in which a turn of that message ends at once."""
    message: dict[str, Any] = {
        "type": "message",
        "id": "msg_1",
        "turn_id": turn,
        "role": "user",
        "status": "completed",
        "phase": None,
    }
    message["content"] = [{"type": "input_text", "text": "Again?"}]
    idle = {"id": session, "status": "idle", "required_actions": []}
    told: list[dict[str, Any]] = [
        {"type": "agent.session.created", "session": {**idle, "status": "in_progress"}},
        {"type": "agent.session.turn.created", "turn_id": turn, "turn": {"id": turn, "status": "queued"}},
        {"type": "agent.session.turn.item.added", "turn_id": turn, "item": message},
        {"type": "agent.session.turn.completed", "turn_id": turn, "turn": {"id": turn, "status": "completed"}},
        {"type": "agent.session.idle", "session": idle},
    ]
    return b"".join(
        b"data: " + json.dumps({"event_id": f"evt_{n}", **e}).encode() + b"\n\n" for n, e in enumerate(told)
    )


class Recorder(BaseHTTPRequestHandler):
    """Writes down each request and answers with the least that a client needs."""

    requests: ClassVar[list[dict[str, Any]]] = []
    turn = "turn_1"

    def _record(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = json.loads(raw) if raw else None
        path = path.removeprefix("/v1")
        self.requests.append(
            {"method": self.command, "path": path, "query": query, "body": body, "headers": headers},
        )
        streams = (body or {}).get("stream") or (self.command == "GET" and path.endswith("/events"))
        status, kind, answer = 200, "application/json", b""
        if streams:
            status, kind, answer = 201 if body else 200, "text/event-stream", events(self.turn, SESSION)
        elif path.endswith("/events"):
            status = 202
        else:
            found = {"id": AGENT, "name": "support", "status": "idle", "data": [], "deleted": True}
            answer = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = _record  # noqa: N815  # the base class's names

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def backend(tmp_path):
    Recorder.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    options = BackendOptions(home=tmp_path, sleep=lambda _: None)
    opened = open_backend("openai", endpoint, env={"OPENAI_API_KEY": "k"}, options=options)
    yield opened
    opened.close()
    server.shutdown()
    thread.join()
    server.server_close()


def agent_of(tmp_path: Path, body: dict[str, Any]) -> Any:
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(body))
    return load_agent(path, {})


def answer(backend: Any, name: str, outcome: Outcome) -> None:
    event = SDK[name]["body"]["events"][0]
    session = SDK[name]["path"].split("/")[3]
    calls = ((Call(event["call_id"], "f", "{}"), outcome),)
    backend.submit(Submit(AgentRef("support", AGENT), session, "turn_1", event["turn_id"], calls), Listener())


DOES: dict[str, Any] = {
    "create_agent": lambda b, p: b.create_agent(agent_of(p, SDK["create_agent"]["body"]), STAMP),
    "get_agent": lambda b, p: b.find_agent("support", AGENT),
    "list_agents": lambda b, p: list(b.agents()),
    "create_session_streamed": lambda b, p: b.start(
        Start(AgentRef("support", AGENT), "Who is customer 123?", "turn_1", None, STAMP), Listener()
    ),
    "get_session": lambda b, p: b.look(SESSION),
    "watch_session": lambda b, p: b.submit(Submit(AgentRef("support", AGENT), SESSION, "t", "turn_1", ()), Listener()),
    "say": lambda b, p: b.start(
        Start(AgentRef("support", AGENT), "Again?", "turn_1", SDK["say"]["path"].split("/")[3], STAMP), Listener()
    ),
    "answer": lambda b, p: answer(b, "answer", Outcome(output=SDK["answer"]["body"]["events"][0]["output"])),
    "answer_with_error": lambda b, p: answer(b, "answer_with_error", Outcome(error="Tool handler failed.")),
    "list_items": lambda b, p: b.transcript(SESSION),
    "delete_session": lambda b, p: b.delete_conversation(SESSION),
    "delete_agent": lambda b, p: b.delete_agent_version(AgentRef("support", AGENT)),
}


def without_ours(body: Any) -> Any:
    """Leave aside what only one of both sends."""
    if not isinstance(body, dict):
        return body
    kept = {key: value for key, value in body.items() if key not in ("metadata", "agent_id", "agent")}
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if not k.startswith("agentfn-")}
    return kept | ({"metadata": metadata} if metadata else {})


@pytest.mark.parametrize("name", DOES)
def test_the_same_request_goes_out(backend: Any, tmp_path: Path, name: str) -> None:
    DOES[name](backend, tmp_path)
    theirs = SDK[name]
    ours = next(r for r in Recorder.requests if (r["method"], r["path"]) == (theirs["method"], theirs["path"]))
    assert without_ours(ours["body"]) == without_ours(theirs["body"])
    queries = [{k: v for k, v in parse_qsl(q["query"]) if k not in ("limit", "order", "after")} for q in (ours, theirs)]
    assert queries[0] == queries[1]
    assert ours["headers"]["openai-beta"] == theirs["beta"] == "agents=v1"
    assert ours["headers"]["authorization"] == "Bearer k"
    if theirs["body"] is not None:
        assert ours["headers"]["content-type"] == theirs["content_type"] == "application/json"


def test_a_lost_session_is_looked_for_with_the_filter_as_the_sdk_writes_it(backend: Any) -> None:
    backend.find_conversation("x y")
    theirs = dict(parse_qsl(SDK["list_by_metadata"]["query"]))
    ours = dict(parse_qsl(Recorder.requests[0]["query"]))
    assert theirs["metadata[purpose]"] == ours["metadata[agentfn-id]"] == "x y"
    assert "metadata%5B" in Recorder.requests[0]["query"]


def test_each_event_has_a_key_that_another_process_would_give_it_too(backend: Any) -> None:
    for _ in range(2):
        answer(backend, "answer", Outcome(output="x"))
    keys = [r["headers"].get("idempotency-key") for r in Recorder.requests if r["method"] == "POST"]
    assert keys[0] is not None
    assert len(keys[0]) <= 256
    assert keys[0] == keys[1]
