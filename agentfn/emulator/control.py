"""Routes that no real service has: the clock, a reset, recent requests, and a token for programs that want one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.emulator.http import Answer, ApiError, Face, Request, Router, openai_error
from agentfn.emulator.spans import seconds_of

if TYPE_CHECKING:
    from agentfn.emulator.app import Application

#: What the token route gives out; any bearer is accepted, so it proves nothing and opens nothing.
TOKEN = "agentfn-local-token"  # noqa: S105  # no secret


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
        app.recent.clear()
        return Answer({"reset": True})

    def requests(request: Request) -> Answer:
        del request
        return Answer({"data": list(app.recent)})

    def token(request: Request) -> Answer:
        # foundry.md §7.2: what azure-identity asks an App Service for.
        expires = str(int(app.store.now()) + 86400)
        resource = request.query.get("resource", "https://ai.azure.com")
        return Answer({"access_token": TOKEN, "expires_on": expires, "resource": resource, "token_type": "Bearer"})

    router.add("GET", "_agentfn/clock", clock)
    router.add("POST", "_agentfn/clock", clock)
    router.add("POST", "_agentfn/reset", reset)
    router.add("GET", "_agentfn/requests", requests)
    router.add("GET", "msi/token", token)


FACE = Face(
    add_routes=add_control_routes,
    error=lambda status, message: openai_error(message, code="not_found" if status == 404 else None),  # noqa: PLR2004  # HTTP's
    check=lambda _request, _require: None,
)
