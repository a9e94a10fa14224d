"""Every refusal that Foundry is known for (foundry.md §5.2), in the user's words and with the exit code it deserves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.backends.foundry import ADVICE
from agentfn.backends.http import Reply
from agentfn.backends.refusals import translated
from agentfn.errors import AgentfnError, ExitCode

ENDPOINT = "https://x.services.ai.azure.com/api/projects/p"
ROLE = "lacks the required data action `Microsoft.CognitiveServices/accounts/AIServices/agents/write` to perform"
WRAPPED = (
    'The resource exists.\r\n\r\n{"error": {"code": "conflict", "message": "modified concurrently. Please retry."}}'
)


def reply(status: int, body: Any, text: str | None = None, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in {"x_request_id": "req_9", **headers}.items()}
    return Reply(status, named, body, json.dumps(body) if text is None else text, 0.0)


def refusal(status: int, code: str | None, message: str, **more: Any) -> Reply:
    return reply(status, {"error": {"code": code, "message": message, **more}})


def error(given: Reply, doing: str = "asking the agent", **more: Any) -> AgentfnError:
    return translated(given, ENDPOINT, doing, ADVICE, **more)


CASES: list[tuple[Reply, ExitCode, str, str]] = [
    (
        refusal(401, "PermissionDenied", f"The principal {ROLE}"),
        ExitCode.NOT_AUTHORISED,
        "permission_denied",
        "Foundry User",
    ),
    (refusal(401, None, f"The principal {ROLE}"), ExitCode.NOT_AUTHORISED, "permission_denied", "Azure AI User"),
    (refusal(401, "401", "Unauthorized. Access token is missing"), ExitCode.NOT_AUTHORISED, "bad_token", "az login"),
    (reply(401, {"statusCode": 401, "message": "have expired"}), ExitCode.NOT_AUTHORISED, "bad_token", "AGENT_TOKEN"),
    (refusal(403, "Forbidden", "no"), ExitCode.NOT_AUTHORISED, "permission_denied", "role"),
    (refusal(403, "preview_feature_required", "opt in"), ExitCode.SERVICE, "preview_feature_required", "prompt agents"),
    (refusal(403, "agents_limit_exceeded", "too many"), ExitCode.SERVICE, "agents_limit_exceeded", "agentfn cleanup"),
    (refusal(400, "UserError", "1000 versions"), ExitCode.SERVICE, "UserError", "agentfn cleanup"),
    (
        refusal(404, "not_found", "Agent demo doesn't exist"),
        ExitCode.NEGATIVE,
        "agent_not_found",
        "agentfn list --remote",
    ),
    (refusal(404, "not_found", "Agent demo with version 9 not found"), ExitCode.NEGATIVE, "agent_not_found", "create"),
    (refusal(404, "not_found", "Conversation 'conv_1' not found"), ExitCode.NEGATIVE, "conversation_not_found", "list"),
    (
        refusal(400, "invalid_parameters", "Invalid conversation id 'x', Malformed identifier."),
        ExitCode.NEGATIVE,
        "conversation_not_found",
        "list",
    ),
    (refusal(404, "NotFound", "Project not found"), ExitCode.SERVICE, "project_not_found", ENDPOINT),
    (refusal(404, "DeploymentNotFound", "The API deployment"), ExitCode.SERVICE, "deployment_not_found", "model"),
    (
        refusal(400, None, "No tool output found for function call call_1."),
        ExitCode.PENDING,
        "unanswered_call",
        "pending",
    ),
    (
        refusal(400, None, "No tool call found for function call output with call_id call_1."),
        ExitCode.NEGATIVE,
        "call_not_waiting",
        "pending",
    ),
    (refusal(400, "run_expired", "late"), ExitCode.NEGATIVE, "expired", "new conversation"),
    (
        refusal(400, None, "Invalid schema for function 'f': In context=(), 'additionalProperties' is required"),
        ExitCode.SERVICE,
        "invalid_function_parameters",
        "agentfn validate",
    ),
    (
        refusal(400, None, "Unsupported parameter: 'temperature' is not supported with this model."),
        ExitCode.SERVICE,
        "unsupported_parameter",
        "remove it",
    ),
    (refusal(400, "conversation_locked", "Another process"), ExitCode.SERVICE, "conversation_locked", "another run"),
    (refusal(429, "RateLimitReached", "slow down"), ExitCode.SERVICE, "throttled", "later"),
    (refusal(409, "conflict", "modified concurrently"), ExitCode.SERVICE, "conflict", "try again"),
    (reply(404, None, "<html><title> Not here </title></html>"), ExitCode.SERVICE, "http_404", "agentfn doctor"),
    (reply(418, None, ""), ExitCode.SERVICE, "http_418", "agentfn doctor"),
]


@pytest.mark.parametrize(("given_reply", "exit_code", "code", "hint"), CASES, ids=[case[2] for case in CASES])
def test_each_refusal_has_its_exit_code_and_the_next_step(given_reply, exit_code, code, hint):
    found = error(given_reply)
    assert (found.exit_code, found.code) == (exit_code, code)
    assert found.hint is not None
    assert hint in found.hint
    assert "req_9" in found.message


def test_what_is_wrong_with_a_payload_is_listed():
    details = [
        {"code": "ValidationError", "message": "Not allowed when agent is specified.", "param": "temperature"},
        {"message": "Not allowed when agent is specified.", "param": "top_p"},
        "nonsense",
    ]
    found = error(refusal(400, "invalid_payload", "Invalid payload", details=details))
    assert found.code == "invalid_payload"
    assert "temperature: Not allowed when agent is specified.; top_p: Not allowed" in found.message


def test_an_error_inside_an_error_is_the_one_that_is_told():
    found = error(refusal(409, None, WRAPPED, type="ServiceError"), "creating agent demo")
    assert (found.code, found.message) == (
        "conflict",
        "creating agent demo: modified concurrently. Please retry. [request req_9]",
    )


def test_a_conflict_on_deletion_is_a_no_that_says_what_is_left():
    found = error(refusal(409, "conflict", "Agent has active sessions."), "deleting agent demo")
    assert (found.exit_code, found.code) == (ExitCode.NEGATIVE, "conflict")
    assert found.hint is not None
    assert "sessions" in found.hint
    assert "left as it was" in found.message


@pytest.mark.parametrize(
    ("given_reply", "told"),
    [
        (reply(404, None, "<!doctype html><title>Sign in</title>"), "404 with a web page, Sign in"),
        (reply(400, None, "x" * 1000), "x" * 300),
        (reply(302, None, "", location="https://login.example"), "points to https://login.example"),
        (reply(400, {"error": "just text"}), "just text"),
        (reply(400, {"detail": "Not Found"}), "Not Found"),
        (reply(400, ["odd"]), "odd"),
    ],
)
def test_an_answer_without_an_error_object_is_told_as_it_is(given_reply, told):
    message = error(given_reply).message
    assert told in message
    assert "<" not in message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["code", "message", "details", "error", "x"]), inner)
    ),
    max_leaves=8,
)


@given(st.integers(300, 499), json_values)
def test_any_body_becomes_an_error_and_never_a_crash(status, body):
    found = error(reply(status, body), sent=("call_1",))
    assert isinstance(found, AgentfnError)
    assert found.message.startswith("asking the agent: ")
