"""Routes that no real service has: the clock, a reset, and a token for programs that ask a managed identity for one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentfn.emulator.http import Answer, ApiError, Request, Router, openai_error

if TYPE_CHECKING:
    from agentfn.emulator.app import Application

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

#: What the token route gives out; any bearer is accepted, so it proves nothing and opens nothing.
TOKEN = "agentfn-local-token"  # noqa: S105  # no secret


def seconds_of(span: object) -> float | None:
    """Return a span such as ``200ms``, ``2s``, ``11m`` or a number of seconds, in seconds; None where it is none."""
    if isinstance(span, (int, float)) and not isinstance(span, bool) and span >= 0:
        return float(span)
    match = _SPAN.fullmatch(span.strip()) if isinstance(span, str) else None
    return float(match[1]) * _UNITS[match[2]] if match else None


def add_control_routes(router: Router, app: Application) -> None:
    """Add the control routes."""

    def clock(request: Request) -> Answer:
        if request.method == "POST":
            seconds = seconds_of(request.json().get("advance"))
            if seconds is None:
                raise ApiError(400, openai_error("advance must be a span such as 11m", param="advance"))
            app.store.advance(seconds)
        return Answer({"now": app.store.now()})

    def reset(request: Request) -> Answer:
        del request
        app.store.reset()
        return Answer({"reset": True})

    def token(request: Request) -> Answer:
        # foundry.md §7.2: what azure-identity asks an App Service for.
        expires = str(int(app.store.now()) + 86400)
        resource = request.query.get("resource", "https://ai.azure.com")
        return Answer({"access_token": TOKEN, "expires_on": expires, "resource": resource, "token_type": "Bearer"})

    router.add("GET", "_agentfn/clock", clock)
    router.add("POST", "_agentfn/clock", clock)
    router.add("POST", "_agentfn/reset", reset)
    router.add("GET", "msi/token", token)
