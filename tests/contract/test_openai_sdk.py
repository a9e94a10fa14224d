"""The unmodified openai SDK against `agentfn serve`, given nothing but the environment it prints (openai-agents.md §8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

PROGRAM = Path(__file__).parent / "openai_program.py"
ANSWER = 'get_horoscope gave {"horoscope": "Aquarius: a baby otter."}'
#: openai-agents.md §4.4; the stream was opened after the session was made.
TURN = [
    "agent.session.turn.item.added",
    "agent.session.in_progress",
    "agent.session.turn.in_progress",
    "agent.session.turn.item.added",
    "agent.session.requires_action",
    "agent.session.turn.item.added",
    "agent.session.turn.item.done",
    "agent.session.turn.item.added",
    "agent.session.turn.content_part.added",
    *["agent.session.turn.output_text.delta"] * 4,
    "agent.session.turn.output_text.done",
    "agent.session.turn.content_part.done",
    "agent.session.turn.item.done",
    "agent.session.turn.completed",
    "agent.session.idle",
]


def run_program(env: dict[str, str], folder: Path, *args: str) -> Any:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *args],
        env={**kept, **env, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_documented_flows_run_unmodified(serve, tmp_path):
    seen = run_program(serve().env, tmp_path)
    deltas = [kind for kind in seen["kinds"] if kind.endswith("delta")]
    assert len(deltas) > 1
    assert [kind for kind in seen.pop("kinds") if kind not in deltas] == [kind for kind in TURN if kind not in deltas]
    whole = ["message", "function_call", "function_call_output", "message"]
    assert seen == {
        "created": ["in_progress", [], None],
        "deletion_while_waiting": [409, "conflict_error", "conflict_error"],
        "arguments": {"sign": "Aquarius"},
        "turn_while_waiting": "waiting",
        "returned": None,
        "changed": [409, "conflict_error", "conflict_error"],
        "items": whole,
        "answer": ANSWER,
        "turn": ["completed", True],
        "turn_items": whole,
        "found_by_metadata": [True],
        "helper": 'get_horoscope gave {"horoscope":"Aquarius: a baby otter."}',
        "created_helper": 'get_horoscope gave {"horoscope":"Aquarius: a baby otter."}',
        "failing_helper": "get_horoscope gave Tool handler failed.",
        "renamed": "renamed",
        "session_metadata": {"a": "b"},
        "session_deleted": True,
        "deleted_twice": True,
        "gone": [404, "not_found_error", "not_found_error"],
        "agent_deleted": True,
        "by_response": ANSWER,
        "by_conversation": ANSWER,
        "conversation_items": whole,
        "unanswered": [400, "invalid_request_error", None],
        "conversation_deleted": True,
    }


def test_a_result_that_comes_before_the_call_is_registered_is_refused_and_tried_again(serve, tmp_path):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "- call: {get_horoscope: {sign: Aquarius}}\n  accepts_after: 150ms\n- say: '{{output.get_horoscope}}'\n"
    )
    served = serve("--scenario", scenario)
    assert run_program(served.env, tmp_path, "race") == {"answer": '{"horoscope":"Aquarius: a baby otter."}'}
    import httpx

    notes = httpx.get(f"{served.url}/_agentfn/requests").json()["data"]
    sent = [n["status"] for n in notes if n["method"] == "POST" and n["path"].endswith("/events")]
    assert sent in ([400, 202], [400, 400, 202])
