"""What our client sends is what Microsoft's SDK sends where both do the same thing, field for field.

`foundry_requests.json` holds the SDK's requests as they were recorded. Left aside are the pinned version, the stamp of
ownership, our turn's id and page sizes.
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

SDK = json.loads(Path(__file__).with_name("foundry_requests.json").read_text())
CONVERSATION = SDK["conversations_delete"]["path"].rsplit("/", 1)[1]
STAMP = Stamp("run_1", "rsc_1", "d1")


class Recorder(BaseHTTPRequestHandler):
    """Writes down each request and answers with the least that a client needs."""

    requests: ClassVar[list[dict[str, Any]]] = []

    def _record(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        self.requests.append(
            {
                "method": self.command,
                "path": path.removeprefix("/api/projects/p"),
                "query": query,
                "body": json.loads(raw) if raw else None,
                "headers": {name.lower(): value for name, value in self.headers.items()},
            }
        )
        if self.requests[-1]["body"] and self.requests[-1]["body"].get("stream"):
            event = {"type": "response.completed", "response": {"id": "resp_1", "output": [], "status": "completed"}}
            body, kind = f"data: {json.dumps(event)}\n\n".encode(), "text/event-stream"
        else:
            answer = {"id": CONVERSATION, "name": "MyAgent", "version": "1", "data": [], "output": []}
            body, kind = json.dumps(answer).encode(), "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _record  # noqa: N815  # the base class's names

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class Silent:
    """A listener that only takes note."""

    def conversation_opened(self, conversation: str) -> None: ...

    def text(self, delta: str) -> None: ...

    def waited(self) -> None:
        """Wait on."""

    def retrying(self, reason: str, seconds: float) -> None:
        raise AssertionError(reason)


@pytest.fixture
def backend(tmp_path):
    Recorder.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}/api/projects/p/"
    opened = open_backend("foundry", endpoint, env={"AGENT_TOKEN": "t"}, options=BackendOptions(home=tmp_path))
    yield opened
    opened.close()
    server.shutdown()
    thread.join()
    server.server_close()


def agent_of(tmp_path: Path, body: dict[str, Any]) -> Any:
    """Return our definition of the agent that the SDK created."""
    definition = {key: value for key, value in body["definition"].items() if key != "kind"}
    extra = {key: value for key, value in body.items() if key != "definition"}
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"name": "MyAgent", **definition, **extra}))
    return load_agent(path, {})


def submit(backend: Any, tmp_path: Path) -> None:
    item = SDK["submit_function_call_output_conversation"]["body"]["input"][0]
    outcomes = ((Call(item["call_id"], "f", "{}"), Outcome(output=item["output"])),)
    backend.submit(Submit(AgentRef("MyAgent", "1"), CONVERSATION, "turn_1", "resp_1", outcomes), Silent())


def start(backend: Any, tmp_path: Path) -> None:
    request = Start(AgentRef("MyAgent", "1"), "hi", "turn_1", CONVERSATION, STAMP, stream=True)
    backend.start(request, Silent())


DOES: dict[str, Any] = {
    "create_version": lambda b, p: b.create_agent(agent_of(p, SDK["create_version"]["body"]), STAMP),
    "create_version_with_description_metadata": lambda b, p: b.create_agent(
        agent_of(p, SDK["create_version_with_description_metadata"]["body"]), STAMP
    ),
    "submit_function_call_output_conversation": submit,
    "responses_create_stream_function_call": start,
    "agents_get": lambda b, p: b.find_agent("MyAgent"),
    "agents_get_version": lambda b, p: b.find_agent("MyAgent", "1"),
    "agents_list": lambda b, p: list(b.agents()),
    "agents_list_versions": lambda b, p: list(b.versions("MyAgent")),
    "delete_version": lambda b, p: b.delete_agent_version(AgentRef("MyAgent", "1")),
    "agents_delete": lambda b, p: b.delete_agent("MyAgent", []),
    "conversations_delete": lambda b, p: b.delete_conversation(CONVERSATION),
    "conversation_items_list_page1": lambda b, p: b.transcript(CONVERSATION),
}


def without_ours(body: Any) -> Any:
    """Leave aside what only we send."""
    if not isinstance(body, dict):
        return body
    kept = {key: value for key, value in body.items() if key != "metadata"}
    metadata = {k: v for k, v in (body.get("metadata") or {}).items() if not k.startswith("agentfn-")}
    if metadata:
        kept["metadata"] = metadata
    if "agent_reference" in kept:
        kept["agent_reference"] = {k: v for k, v in kept["agent_reference"].items() if k != "version"}
    # Where the SDK chains by response, we are in a conversation.
    if kept.get("stream"):
        kept.pop("conversation", None)
    return kept


@pytest.mark.parametrize("name", DOES)
def test_the_same_request_goes_out(backend: Any, tmp_path: Path, name: str) -> None:
    DOES[name](backend, tmp_path)
    (ours,) = Recorder.requests
    theirs = SDK[name]
    assert (ours["method"], ours["path"]) == (theirs["method"], theirs["path"])
    assert without_ours(ours["body"]) == theirs["body"]
    paging = {"limit", "kind", "order"}
    queries = [{k: v for k, v in parse_qsl(q["query"]) if k not in paging} for q in (ours, theirs)]
    assert queries[0] == queries[1]


@pytest.mark.parametrize("name", ["agents_get", "create_version"])
def test_the_agents_plane_gets_a_request_id_of_its_own(backend: Any, tmp_path: Path, name: str) -> None:
    DOES[name](backend, tmp_path)
    headers = Recorder.requests[0]["headers"]
    assert headers["authorization"] == "Bearer t"
    assert len(headers["x-ms-client-request-id"]) == 36
    assert headers["user-agent"].startswith("agentfn/")


def test_a_new_conversation_carries_our_stamp_and_no_more(backend: Any) -> None:
    backend.start(Start(AgentRef("MyAgent", "1"), "hi", "turn_1", None, STAMP), Silent())
    opened, asked = Recorder.requests
    assert (opened["method"], opened["path"], opened["query"]) == ("POST", "/openai/v1/conversations", "")
    assert opened["body"] == {"metadata": STAMP.metadata()}
    assert asked["body"] == {
        "agent_reference": {"type": "agent_reference", "name": "MyAgent", "version": "1"},
        "conversation": CONVERSATION,
        "input": "hi",
        "metadata": {"agentfn-turn": "turn_1"},
    }
