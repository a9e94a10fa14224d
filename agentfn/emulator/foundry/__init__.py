"""Foundry's face: the agents plane, conversations and responses, over any project name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.emulator.foundry.agents import Agents
from agentfn.emulator.foundry.conversations import Conversations
from agentfn.emulator.foundry.responses import Responses

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
    ):
        router.add(method, f"{_PROJECT}/{path}", _without_project(handler))


def _without_project(handler: Callable[..., Answer]) -> Callable[..., Answer]:
    """Let any project name answer: there is one state, whatever the project is called."""

    def call(request: Request, project: str, *values: str) -> Answer:
        del project
        return handler(request, *values)

    return call
