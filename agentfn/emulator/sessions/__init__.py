"""The Agents API's face: saved agents, and sessions in which the service holds the turn open (openai-agents.md).

A session is rows. Whatever touches it (a request, a poll of a stream) moves it on by what is due, see `machine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, Face, has_credentials
from agentfn.emulator.sessions.agents import Agents
from agentfn.emulator.sessions.errors import error_body
from agentfn.emulator.sessions.inputs import Inputs
from agentfn.emulator.sessions.machine import Machine
from agentfn.emulator.sessions.sessions import Sessions
from agentfn.emulator.sessions.turns import Turns

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.http import Request, Router

_BETA = "agents=v1"


def add_session_routes(router: Router, app: Application) -> None:
    """Add the routes under ``/v1/agents``; those of sessions first, an agent's id would match them too."""
    agents, machine = Agents(app), Machine(app)
    sessions = Sessions(app, agents, machine)
    for group in (sessions, Inputs(app, machine), Turns(app, machine), agents):
        for method, path, handler in group.routes():
            router.add(method, f"v1/{path}", handler)


def _error(status: int, message: str) -> dict[str, Any]:
    return error_body(status, message)


def _check(request: Request, demanded: bool) -> None:  # the shape of Face
    """Refuse what lacks a header; the beta's is looked at before the credentials (openai-agents.md §1)."""
    if request.headers.get("openai-beta") != _BETA:
        message = f"To access the Agents API, set the 'OpenAI-Beta' header to '{_BETA}'."
        raise ApiError(400, error_body(400, message, type_="invalid_beta"))
    if demanded and not has_credentials(request):
        message = "You didn't provide an API key."
        raise ApiError(401, error_body(401, message), {"WWW-Authenticate": "Bearer"})
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and kind != "application/json":
        message = "expected request with Content-Type: application/json"
        raise ApiError(400, error_body(400, message))


FACE = Face(add_routes=add_session_routes, error=_error, check=_check)
