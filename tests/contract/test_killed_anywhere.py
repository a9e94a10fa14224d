"""A command killed at every point it passes: no side effect twice, no message or output twice, and it always goes on.

`killed_chats.py` does the killing and the going on; here is what must hold of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentfn.settings import PROTOCOLS

PROGRAM = Path(__file__).parent / "killed_chats.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork and no SIGKILL")


@pytest.fixture(params=[(protocol, command) for protocol in PROTOCOLS for command in ("chat", "respond")], ids="-".join)
def points(request: pytest.FixtureRequest, tmp_path: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), *request.param],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_whatever_the_point_nothing_happens_twice_and_nothing_is_stuck(points):
    assert len(points) > 20
    for found in points:
        # The function ran once, or it is in doubt whether it did, which was reported and decided by the user.
        assert found["effects"] <= 1, found
        if found["doubt"]:
            assert (found["refused"], found["decided"]) == (8, 0), found
        for conversation in found["conversations"]:
            kinds = [kind for kind, _ in conversation["entries"]]
            assert kinds in ([], ["user", "call", "output", "agent"]), found
            if kinds and not found["doubt"]:
                assert found["effects"] == 1, found
                assert conversation["entries"][2][1] == "paid", found
            # The conversation ended, and takes another message.
            assert conversation["again"] == [0, "Good bye."], found
        assert found["left"] == [], found
        assert (found["cleanup"], found["remote"]) == (0, [0, 0]), found
    # Points of all kinds were met: before anything was there, with the handler in the middle, and at the end.
    assert {found["effects"] for found in points} == {0, 1}
    assert {found["doubt"] for found in points} == {False, True}
