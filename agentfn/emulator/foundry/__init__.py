"""Foundry's face: the agents plane, conversations and responses, over any project name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.foundry.agents import Agents
from agentfn.emulator.http import ApiError, Face, has_credentials
from agentfn.emulator.responses.conversations import Conversations
from agentfn.emulator.responses.errors import foundry_error
from agentfn.emulator.responses.routes import Responses

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.emulator.app import Application
    from agentfn.emulator.http import Answer, Request, Router

_PROJECT = "api/projects/{}"


def add_foundry_routes(router: Router, app: Application) -> None:
    """Add both planes' routes (foundry.md §1.2)."""
    agents = Agents(app)
    conversations = Conversations(app)
    responses = Responses(app, agents, conversations)
    for method, path, handler in (
        *agents.routes(),
        *((m, f"openai/v1/{p}", h) for m, p, h in (*conversations.routes(), *responses.routes())),
        # Lists that only Foundry has.
        ("GET", "openai/v1/conversations", conversations.index),
        ("GET", "openai/v1/responses", responses.index),
    ):
        router.add(method, f"{_PROJECT}/{path}", _without_project(handler))


def _without_project(handler: Callable[..., Answer]) -> Callable[..., Answer]:
    """Let any project name answer: there is one state, whatever the project is called."""

    def call(request: Request, project: str, *values: str) -> Answer:
        del project
        return handler(request, *values)

    return call


def _error(status: int, message: str) -> dict[str, Any]:
    return foundry_error("method_not_allowed" if status == 405 else "not_found", message)  # noqa: PLR2004  # HTTP's


def _check(request: Request, demanded: bool) -> None:  # the shape of Face
    """Refuse a request without a token where one is demanded (foundry.md §5.2)."""
    if demanded and not has_credentials(request):
        message = (
            "Unauthorized. Access token is missing, invalid, audience is incorrect (https://ai.azure.com),"
            " or have expired."
        )
        raise ApiError(401, foundry_error("401", message), {"WWW-Authenticate": "Bearer"})


FACE = Face(add_routes=add_foundry_routes, error=_error, check=_check)
