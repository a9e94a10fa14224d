"""Our client runs a whole turn against Microsoft's own implementation of the protocol, not only against ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from agentfn.backends import BackendOptions, open_backend
from agentfn.backends.protocol import Start, Submit
from agentfn.model import AgentRef, Outcome, Stamp
from tests.conftest import eventually

#: An id of the shape that Foundry gives out (foundry.md §3); this server keeps no conversations but takes one's id.
CONVERSATION = "conv_" + "ab" * 8 + "00" + "A" * 32
AGENT = AgentRef("horoscope-bot", "1")


class Listener:
    """Collects what streams."""

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def turn_opened(self, turn: str) -> None: ...

    def noticed(self, told: str) -> None: ...

    def call_asked(self, call: object) -> None: ...

    def conversation_opened(self, conversation: str) -> None:
        raise AssertionError(conversation)

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def waited(self) -> None:
        """Wait on."""

    def retrying(self, reason: str, seconds: float) -> None:
        raise AssertionError(reason)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("microsoft")
    command = [sys.executable, str(Path(__file__).with_name("microsoft_server.py")), str(port)]
    env = {**os.environ, "HOME": str(home)}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, cwd=home)
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        try:
            return httpx.get(f"{url}/readiness", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    eventually(ready, 60)
    yield f"{url}/api/projects/local"
    process.terminate()
    process.wait(timeout=30)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_whole_turn(endpoint: str, tmp_path: Path, stream: bool) -> None:
    backend = open_backend("foundry", endpoint, env={}, options=BackendOptions(home=tmp_path))
    listener = Listener()
    message = "What is my horoscope? I am an Aquarius."
    asked = backend.start(
        Start(AGENT, message, "turn_1", CONVERSATION, Stamp("run_1", "rsc_1"), stream=stream), listener
    )
    (call,) = asked.calls
    assert (call.id, call.function, call.arguments) == ("call_1", "get_horoscope", '{"sign": "Aquarius"}')
    assert asked.answer is None
    answer = backend.submit(
        Submit(AGENT, CONVERSATION, "turn_1", asked.id, ((call, Outcome(output="otters")),), stream=stream), listener
    )
    backend.close()
    assert answer.answer == "You will hear: otters"
    assert answer.failure is None
    assert "".join(listener.pieces) == ("You will hear: otters" if stream else "")
