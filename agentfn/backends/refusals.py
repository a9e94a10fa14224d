"""Refusals in the user's words, each with the next step (foundry.md §5.2, openai-agents.md §1)."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.errors import AgentfnError, NegativeError, NotAuthorisedError, PendingError, ServiceError

if TYPE_CHECKING:
    from agentfn.backends.http import Reply
    from agentfn.backends.service import Advice

_NO_OUTPUT = re.compile(r"No tool output found for function call (\S+?)\.?$")
_NO_CALL = re.compile(r"No tool call found for function call output with call_id (\S+?)\.?$")
_LIMITS = ("insufficient_quota", "agents_limit_exceeded", "tool_limit_exceeded", "UserError")


def translated(
    reply: Reply,
    endpoint: str,
    doing: str,
    advice: Advice,
    *,
    sent: tuple[str, ...] = (),
    asked_at: float | None = None,
) -> AgentfnError:
    """Return the error for a refusal.

    `doing` says what was asked, `advice` what to do about it; `sent` are the calls whose outputs were in it, `asked_at` is
    when the service asked for them, in unix seconds, where that is known.
    """
    error = _innermost(reply.error())
    code = str(error.get("code") or "")
    message = str(error.get("message") or "").strip() or _plain(reply)
    told = f"{doing}: {message}{_details(error)}{_request(reply)}"
    refusal = _Refusal(reply, code, message, told, endpoint, doing, sent, asked_at, advice)
    for find in (_identity, _missing, _calls, _definition, _limits):
        found = find(refusal)
        if found is not None:
            return found
    return ServiceError(
        told if code else f"{told} (HTTP {reply.status})",
        code=code or f"http_{reply.status}",
        hint=None if reply.error() else advice.endpoint,
        status=reply.status,
        request_id=reply.request_id,
    )


class _Refusal(NamedTuple):
    """A refusal taken apart: `told` is the whole message for the user, `sent` the calls whose outputs were in it."""

    reply: Reply
    code: str
    message: str
    told: str
    endpoint: str
    doing: str
    sent: tuple[str, ...]
    asked_at: float | None
    advice: Advice


def _innermost(error: dict[str, Any]) -> dict[str, Any]:
    """Return the error inside a wrapped one, whose message ends with JSON (foundry.md §5.1)."""
    text = str(error.get("message") or "")
    start = text.find("{")
    if start > 0 and "\n" in text[:start]:
        try:
            inner = json.loads(text[start:])
        except ValueError:
            return error
        if isinstance(inner, dict):
            found = inner.get("error", inner)
            return {**error, **found} if isinstance(found, dict) and found.get("message") else error
    return error


def _plain(reply: Reply) -> str:
    """Return what an answer says that holds no error as JSON: a gateway's text, a web server's page, or nothing."""
    text = reply.text.strip()
    if "html" in reply.headers.get("content-type", "") or text.startswith("<"):
        title = re.search(r"<title>([^<]*)</title>", text, re.IGNORECASE)
        return f"the answer was {reply.status} with a web page" + (f", {title[1].strip()}" if title else "")
    place = reply.headers.get("location")
    moved = f", which points to {place}" if place else ""
    return text[:300] or f"the answer was {reply.status} and said nothing{moved}"


def _details(error: dict[str, Any]) -> str:
    """Return what each detail of a refused payload says."""
    entries = error.get("details")
    told = [
        f"{entry.get('param')}: {entry.get('message')}"
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and entry.get("message")
    ]
    return f" ({'; '.join(told)})" if told else ""


def _request(reply: Reply) -> str:
    return f" [request {reply.request_id}]" if reply.request_id else ""


def _identity(refusal: _Refusal) -> AgentfnError | None:
    reply, code, message, told, *_ = refusal
    if code == "preview_feature_required":
        hint = "agentfn makes prompt agents, which need no preview feature: is this the project's own endpoint?"
        return ServiceError(told, code=code, hint=hint, status=reply.status, request_id=reply.request_id)
    if reply.status == 401 or (reply.status == 403 and code not in _LIMITS):  # noqa: PLR2004  # HTTP's own numbers
        if "lacks the required data action" in message or code == "PermissionDenied" or reply.status == 403:  # noqa: PLR2004
            return NotAuthorisedError(
                told,
                code="permission_denied",
                hint=refusal.advice.permission,
            )
        return NotAuthorisedError(
            told,
            code="bad_token",
            hint=refusal.advice.sign_in,
        )
    return None


def _missing(refusal: _Refusal) -> AgentfnError | None:
    reply, code, message, told, endpoint, *_ = refusal
    if code == "DeploymentNotFound" or "DeploymentNotFound" in message:
        hint = "set model in the agent file to a deployment of this project, then agentfn create FILE"
        return ServiceError(told, code="deployment_not_found", hint=hint, status=reply.status)
    unknown = "agentfn list shows the conversations there are"
    if message.startswith("Invalid conversation id"):
        return NegativeError(told, code="conversation_not_found", hint=unknown)
    if reply.status != 404:  # noqa: PLR2004  # HTTP's own number
        return None
    if "Project not found" in message:
        hint = f"check the endpoint {endpoint}; a new project needs a minute"
        return ServiceError(told, code="project_not_found", hint=hint, status=404)
    if message.startswith("Conversation"):
        return NegativeError(told, code="conversation_not_found", hint=unknown)
    if message.startswith("Agent"):
        return NegativeError(told, code="agent_not_found", hint="agentfn list --remote, or agentfn create FILE")
    return None


def _calls(refusal: _Refusal) -> AgentfnError | None:
    reply, code, message, told, *_ = refusal
    sent = refusal.sent
    if code == "run_expired" or "expired" in message.lower():
        asked = "" if refusal.asked_at is None else f" The calls were asked for at {_utc(refusal.asked_at)}."
        return NegativeError(
            f"{told}.{asked} A turn lives ten minutes from the response that asked, waiting included. The output is kept"
            " in the journal",
            code="expired",
            hint="ask again in a new conversation; for slow work return a status at once and poll",
        )
    unanswered = _NO_OUTPUT.search(message)
    if unanswered and sent:
        return ServiceError(
            f"the service says that {unanswered[1]} has no output, though this request carried outputs for"
            f" {', '.join(sent)}{_request(reply)}; they are kept",
            code="output_not_seen",
            hint="agentfn respond sends them again",
            status=reply.status,
            request_id=reply.request_id,
        )
    if unanswered:
        return PendingError(
            f"call {unanswered[1]} still waits for its output, so nothing else is taken{_request(reply)}",
            code="unanswered_call",
            hint="agentfn pending, then agentfn respond",
        )
    unknown = _NO_CALL.search(message)
    if unknown:
        hint = "agentfn pending shows what waits"
        return NegativeError(f"{told}; it was answered already, or never asked", code="call_not_waiting", hint=hint)
    return None


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _definition(refusal: _Refusal) -> AgentfnError | None:
    reply, code, message, told, *_ = refusal
    hint = None
    if code == "invalid_function_parameters" or message.startswith("Invalid schema for function"):
        code, hint = "invalid_function_parameters", "agentfn validate FILE names every place"
    elif message.startswith("Unsupported parameter"):
        code, hint = "unsupported_parameter", "this model does not take it: remove it from the agent file"
    elif "'agent' property is deprecated" in message:
        code = "agent_field"
    elif code == "conversation_locked":
        hint = "another run works on this conversation; try again when it is done"
    elif reply.status == 409 and refusal.doing.startswith("deleting"):  # noqa: PLR2004  # HTTP's own number
        return NegativeError(
            f"{told}; it is left as it was", code="conflict", hint="end its active sessions, then try again"
        )
    elif reply.status == 409:  # noqa: PLR2004  # HTTP's own number
        code, hint = code or "conflict", "somebody else changes it at the same time; try again"
    else:
        return None
    return ServiceError(told, code=code, hint=hint, status=reply.status, request_id=reply.request_id)


def _limits(refusal: _Refusal) -> AgentfnError | None:
    reply, code, _, told, *_ = refusal
    if code in _LIMITS:
        hint = "check the quota; agentfn cleanup --older-than 1d removes what is left over"
        return ServiceError(told, code=code, hint=hint, status=reply.status, request_id=reply.request_id)
    if reply.status == 429:  # noqa: PLR2004  # HTTP's own number
        told = f"{told}; still throttled after several tries"
        hint = "try again later"
        code = "throttled"
        return ServiceError(told, code=code, hint=hint, status=reply.status, request_id=reply.request_id)
    return None
