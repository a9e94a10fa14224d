"""The Responses and Conversations API: the face of OpenAI and its like, and most of Foundry's second plane.

What differs is small: Foundry's responses name an agent and expire, its errors have a form of their own, and it lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, ApiError, Face, has_credentials, openai_error
from agentfn.emulator.responses.conversations import Conversations
from agentfn.emulator.responses.routes import Responses

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.http import Handler, Request, Router

#: Foundry's words for what OpenAI has no code for.
_NO_CODE = ("not_found", "invalid_parameters", "invalid_payload")


def add_responses_routes(router: Router, app: Application) -> None:
    """Add the plain face's routes under ``/v1`` (openai-agents.md §7)."""
    conversations = Conversations(app)
    responses = Responses(app, None, conversations)
    for method, path, handler in (*conversations.routes(), *responses.routes()):
        router.add(method, f"v1/{path}", _plainly(handler))
    router.add("POST", "v1/responses/compact", _no_compaction)


def _no_compaction(request: Request) -> Answer:
    """Say that a route does not exist whose path looks like a response's."""
    raise ApiError(404, openai_error(f"there is no route /{'/'.join(request.segments)}"))


def _plainly(handler: Handler) -> Handler:
    """Give refusals OpenAI's form: one object of four members."""

    def call(request: Request, *values: str) -> Answer:
        try:
            return handler(request, *values)
        except ApiError as exc:
            raise ApiError(exc.status, plain_error(exc.body), exc.headers) from exc

    return call


def plain_error(body: dict[str, Any]) -> dict[str, Any]:
    """Return an error body in OpenAI's form, whichever form it has."""
    error = body.get("error")
    if not isinstance(error, dict) or "additionalInfo" not in error:
        return body
    code = error.get("code")
    plain = openai_error(str(error.get("message")), param=error.get("param"), code=None if code in _NO_CODE else code)
    if error.get("type") not in ("error", "ServiceError"):
        plain["error"]["type"] = error["type"]
    return plain


def _error(status: int, message: str) -> dict[str, Any]:
    del status
    return openai_error(message)


def _check(request: Request, demanded: bool) -> None:  # the shape of Face
    if demanded and not has_credentials(request):
        raise ApiError(401, openai_error("You didn't provide an API key."), {"WWW-Authenticate": "Bearer"})


FACE = Face(add_routes=add_responses_routes, error=_error, check=_check)
