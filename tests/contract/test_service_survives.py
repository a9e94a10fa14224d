"""The embedded service killed without warning, and several of them on one file: never stuck, never half-done."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.conftest import eventually

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = {"definition": {"kind": "prompt", "model": "m"}}
ASK: dict[str, Any] = {"agent_reference": {"type": "agent_reference", "name": "bot"}}
SLOW = "- say: slow\n  delay: 10m\n"


class Service:
    """A client of one `agentfn serve`."""

    def __init__(self, served: Any) -> None:
        self.process = served.process
        self._url = served.url
        self._client = httpx.Client(
            base_url=f"{served.url}/api/projects/local", headers={"Authorization": "Bearer x"}, timeout=30
        )

    def __call__(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self._client.request(method, path, json=body)

    def ask(self, said: Any, **more: Any) -> httpx.Response:
        return self("POST", "/openai/v1/responses", {**ASK, "input": said, **more})

    def make_agent(self) -> str:
        answer = self("POST", "/agents/bot/versions?api-version=v1", DEFINITION)
        assert answer.status_code == 200, answer.text
        version: str = answer.json()["version"]
        return version

    def conversation(self) -> str:
        identity: str = self("POST", "/openai/v1/conversations", {}).json()["id"]
        return identity

    def items(self, conversation: str) -> list[str]:
        listed = self("GET", f"/openai/v1/conversations/{conversation}/items?order=asc&limit=100").json()
        return [item["content"][0]["text"] for item in listed["data"]]

    def is_thinking(self) -> bool:
        """Tell whether a response is being made: asked for, and without an answer yet."""
        recent = httpx.get(f"{self._url}/_agentfn/requests").json()["data"]
        return any(note["path"].endswith("/responses") and note["status"] is None for note in recent)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=30)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def start(serve, tmp_path: Path):
    """Start the service on one and the same folder each time."""
    opened: list[Service] = []

    def begin(scenario: str | None = None) -> Service:
        options: list[str | Path] = []
        if scenario is not None:
            path = tmp_path / "scenario.yaml"
            path.write_text(scenario)
            options = ["--scenario", path]
        opened.append(Service(serve(*options, folder=tmp_path)))
        return opened[-1]

    yield begin
    for service in opened:
        service.close()


def in_background(call: Any) -> threading.Thread:
    """Send a request whose answer nobody will see."""

    def send() -> None:
        with pytest.raises(httpx.TransportError):
            call()

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.parametrize("stream", [False, True])
def test_killed_while_the_model_thinks_nothing_has_happened_and_nothing_is_locked(start, stream):
    first = start(SLOW)
    first.make_agent()
    conversation = first.conversation()
    if stream:
        body = {**ASK, "input": "lost", "conversation": conversation, "stream": True}
        with first._client.stream("POST", "/openai/v1/responses", json=body) as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": open"
            first.kill()
            with pytest.raises(httpx.TransportError):
                list(lines)
    else:
        sender = in_background(lambda: first.ask("lost", conversation=conversation))
        eventually(first.is_thinking)
        locked = first.ask("meanwhile", conversation=conversation)
        assert locked.json()["error"]["code"] == "conversation_locked"
        first.kill()
        sender.join()
    second = start("- say: quick\n")
    assert second.items(conversation) == []
    answer = second.ask("again", conversation=conversation)
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert second.items(conversation) == ["again", "quick"]


def test_killed_with_a_queued_response_another_process_finishes_it(start):
    first = start("- say: late\n  delay: 1s\n- say: next\n")
    first.make_agent()
    conversation = first.conversation()
    queued = first.ask("x", conversation=conversation, background=True).json()["id"]
    first.kill()
    second = start()
    done = eventually(
        lambda: (body := second("GET", f"/openai/v1/responses/{queued}").json())["status"] == "completed" and body
    )
    assert done["output"][0]["content"][0]["text"] == "late"
    assert second.items(conversation) == ["x", "late"]
    # The scenario goes on too, though the second process was never told it.
    second.ask("y", conversation=conversation)
    assert second.items(conversation) == ["x", "late", "y", "next"]


def test_one_conversation_is_locked_across_processes_and_free_when_its_holder_dies(start):
    slow = start(SLOW)
    slow.make_agent()
    quick = start("- say: quick\n")
    conversation = slow.conversation()
    sender = in_background(lambda: slow.ask("lost", conversation=conversation))
    eventually(slow.is_thinking)
    refused = quick.ask("y", conversation=conversation)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "conversation_locked")
    assert quick.ask("y", conversation=quick.conversation()).status_code == 200
    slow.kill()
    sender.join()
    assert quick.ask("y", conversation=conversation).status_code == 200
    assert quick.items(conversation) == ["y", "quick"]


def test_two_processes_write_to_one_file_at_once(start):
    services = [start("- say: quick\n  repeat: forever\n") for _ in range(2)]
    shared = services[0].conversation()
    services[0].make_agent()

    def work(number: int) -> tuple[str, int]:
        service = services[number % 2]
        version = service.make_agent()
        own = service.conversation()
        assert service.ask("x", conversation=own).status_code == 200
        answer = service.ask(f"message {number}", conversation=shared)
        assert answer.status_code == 200 or answer.json()["error"]["code"] == "conversation_locked", answer.text
        assert service("DELETE", f"/openai/v1/conversations/{own}").status_code == 200
        return version, answer.status_code

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(24)))
    assert sorted(int(version) for version, _ in results) == list(range(2, 26))
    answered = sum(status == 200 for _, status in results)
    items = services[1].items(shared)
    assert len(items) == 2 * answered
    # Each message has its own answer right behind it: no step was mixed with another.
    assert all(text == "quick" for text in items[1::2])
    assert len(set(items[::2])) == answered
