"""The unmodified openai SDK against scenarios of `agentfn serve`: several calls, races, breaks (openai-agents.md §8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("openai")

PROGRAM = Path(__file__).parent / "openai_sdk_program.py"
CALLS = "{call: [{get_weather: {city: Oslo}}, {get_weather: {city: Bergen}}]}"
CALL = "call: {get_weather: {city: Oslo}}"
SAY = "{say: 'Bergen: {{output.get_weather}}'}"
ANSWER = 'Bergen: {"weather":"sunny in Bergen"}'
SUNNY = '{"weather":"sunny in Oslo"}'


@pytest.fixture
def play(serve, tmp_path):
    """Run a part of the program against the service with these steps; return what it saw and what was asked for."""

    def run(part: str, *steps: str) -> tuple[Any, list[tuple[str, str, Any]]]:
        scenario = tmp_path / "scenario.yaml"
        scenario.write_text("".join(f"- {step}\n" for step in steps))
        served = serve("--scenario", scenario)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), part],
            env={**kept, **served.env, "HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        notes = httpx.get(f"{served.url}/_agentfn/requests").json()["data"]
        asked = [(note["method"], note["path"].removeprefix("/v1/agents"), note["status"]) for note in notes]
        return json.loads(done.stdout), asked

    return run


def results(asked: list[tuple[str, str, Any]]) -> list[Any]:
    """Return how the events that were sent ended."""
    return [status for method, path, status in asked if method == "POST" and path.endswith("/events")]


def test_the_documented_calls_with_two_functions_and_small_pages(play):
    seen, asked = play("flow", CALLS, SAY, "{say: Welcome.}")
    assert seen == {
        "partly": [["requires_action", [{"city": "Oslo"}]], ["idle", []]],
        "kinds": [
            "turn.item.added",
            "in_progress",
            "turn.item.added",
            "turn.item.added",
            "requires_action",
            *["turn.item.added", "turn.item.done"] * 3,
            "idle",
        ],
        "turns": ["completed", "completed"],
        "items": [
            *["message", "function_call", "function_call"],
            *["function_call_output", "function_call_output", "message"],
            *["message", "message"],
        ],
        "agents": True,
        "found": [True],
        "deleted": True,
        "left": [],
    }
    assert results(asked) == [202, 202, 202]


def test_both_helpers_run_every_function_and_end_in_the_answer(play):
    seen, asked = play("helpers", CALLS, SAY, CALLS, SAY)
    assert seen == {
        "ended": "agent.session.idle",
        "texts": [ANSWER] * 3,
        "turns": True,
        "phases": ["final_answer"],
        "ran": ["Oslo", "Bergen"] * 3,
    }
    assert set(results(asked)) <= {202, 400}  # a result that is faster than its call comes again
    assert results(asked).count(202) == 7


@pytest.mark.parametrize("span", ["50ms", "600ms"])
def test_a_helper_that_is_faster_than_the_registration_tries_again_and_runs_nothing_twice(play, span):
    step = f"{{{CALL}, accepts_after: {span}}}"
    seen, asked = play("race", step, "{say: '{{output}}'}", step, "{say: '{{output}}'}")
    assert seen == {"texts": [SUNNY] * 2, "ran": ["Oslo", "Oslo"]}
    sent = results(asked)
    assert sent.count(202) == 3  # two results and the second message
    assert set(sent) <= {202, 400}
    if span == "600ms":  # nobody is so slow that it had no need to try again
        assert sent[0] == 400


def test_a_stream_that_breaks_leaves_a_session_that_is_answered(play):
    seen, _ = play("broken", f"{{{CALL}, cut: mid}}", "{say: Sunny.}")
    assert seen == {
        "seen": [
            *["created", "turn.created", "turn.item.added", "in_progress", "turn.in_progress", "turn.item.added"],
            "APIConnectionError",
        ],
        "text": "Sunny.",
        "rest": [],
    }


def test_refusals_are_the_exceptions_that_the_sdk_has_for_them(play):
    seen, _ = play("refused", "{error: {status: 429, code: rate_limit_exceeded, type: rate_limit_error}}")
    assert seen == {
        "beta": ["BadRequestError", 400, "invalid_beta", "invalid_beta", None],
        "missing": ["BadRequestError", 400, "invalid_request_error", "invalid_request_error", "model"],
        "nested": [
            *["BadRequestError", 400, "invalid_request_error", "invalid_request_error"],
            "agent.tools[0].strict",
        ],
        "absent": ["NotFoundError", 404, "not_found_error", "not_found_error", None],
        "busy": ["RateLimitError", 429, "rate_limit_error", "rate_limit_exceeded", None],
    }


def test_the_sdk_opens_a_second_session_where_an_answer_was_lost(play):
    fault = "{error: {status: 503, headers: {Retry-After-Ms: '10'}}}"
    seen, asked = play("retried", fault, "{say: Hello., cut: after}", "{say: Hello.}")
    opened = [status for method, path, status in asked if (method, path) == ("POST", "/sessions")]
    assert opened == [503, "cut", 201]
    assert seen == {"known": "in_progress", "sessions": 2}


def test_the_asynchronous_helpers_end_in_the_answer_too(play):
    seen, _ = play("in_async", CALLS, SAY, CALLS, SAY)
    assert seen == {"texts": [ANSWER] * 2, "ran": ["Oslo", "Bergen"] * 2}


def test_responses_are_played_by_response_and_in_a_conversation(play):
    said = 'Bergen: {"weather": "sunny in Bergen"}'
    seen, _ = play("responses", CALLS, SAY)
    assert seen["unanswered"][:3] == ["BadRequestError", 400, "invalid_request_error"]
    assert seen["both"][:3] == ["BadRequestError", 400, "invalid_request_error"]
    assert {key: seen[key] for key in ("by_response", "in_conversation", "streamed", "items")} == {
        "by_response": said,
        "in_conversation": said,
        "streamed": True,
        "items": [
            *["message", "message", "function_call", "function_call"],
            *["function_call_output", "function_call_output", "message"],
        ],
    }
