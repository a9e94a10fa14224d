"""A turn killed before each statement it sends to the database: all or nothing of each step, and it always goes on."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.emulator.app import Application

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).parent / "killed_program.py"
WHOLE = ["message", "function_call", "function_call_output", "message"]
ASK: dict[str, Any] = {"agent_reference": {"type": "agent_reference", "name": "bot"}}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL to send")


class Client:
    """The service in process, over the file that was left behind."""

    def __init__(self, file: Path) -> None:
        self._app = Application(file)

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        raw = json.dumps(body).encode() if body is not None else b""
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": f"/api/projects/p/{path}",
            "QUERY_STRING": "api-version=v1&order=asc",
            "CONTENT_LENGTH": str(len(raw)),
            "wsgi.input": io.BytesIO(raw),
            "agentfn.in_process": True,
        }
        return json.loads(b"".join(self._app(environ, lambda _status, _headers: None)))

    def close(self) -> None:
        self._app.close()


def killed_turns(folder: Path) -> Iterator[tuple[Client, str]]:
    """Yield what is left behind by a turn that was killed one statement later each time."""
    for fatal in range(1, 100):
        file = folder / f"{fatal}.db"
        client = Client(file)
        client("POST", "agents/bot/versions", {"definition": {"kind": "prompt", "model": "m"}})
        conversation = client("POST", "openai/v1/conversations", {})["id"]
        client.close()
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(file), str(fatal), conversation], timeout=60, check=False
        )
        client = Client(file)
        yield client, conversation
        client.close()
        if done.returncode == 0:
            return
        assert done.returncode == -signal.SIGKILL
    raise AssertionError("the turn never ended")


def test_a_turn_killed_anywhere_is_whole_or_goes_on(tmp_path):
    seen: list[int] = []
    for client, conversation in killed_turns(tmp_path):
        items = client("GET", f"openai/v1/conversations/{conversation}/items")["data"]
        responses = client("GET", "openai/v1/responses")["data"]
        assert [item["type"] for item in items] == WHOLE[: len(items)]
        assert len(items) == 2 * len(responses)
        seen.append(len(items))
        body = {**ASK, "conversation": conversation}
        if not items:
            # The service of this process has no scenario; that of the killed one was not stored either.
            assert client("POST", "openai/v1/responses", {**body, "input": "hello"})["status"] == "completed"
        elif len(items) == 2:
            answer = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": "x"}
            done = client("POST", "openai/v1/responses", {**body, "input": [answer]})
            assert done["output"][0]["content"][0]["text"] == "done"
        else:
            assert (
                client("POST", "openai/v1/responses", {**body, "input": "more"})["error"]["code"]
                == "scenario_exhausted"
            )
    assert seen == sorted(seen)
    assert {0, 2, 4} == set(seen)
    assert len(seen) > 10
