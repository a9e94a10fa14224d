"""Reads sessions, their turns and their items (openai-agents.md §3, §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from agentfn.backends.service import Item, Page, segment
from agentfn.backends.sessions import shapes
from agentfn.errors import NegativeError, ServiceError

if TYPE_CHECKING:
    from agentfn.backends.service import Service

SESSIONS = "/agents/sessions"


def path_of(session: str) -> str:
    """Return the path of a session."""
    return f"{SESSIONS}/{segment(session)}"


class Reading:
    """What one service says of its sessions."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def session(self, session: str) -> tuple[Item | None, float]:
        """Return a session as it stands, and the service's clock; None where there is no such session."""
        reply = self._service.get(path_of(session), f"looking at session {session}")
        if reply is None:
            return None, 0.0
        if not isinstance(reply.body, dict):
            raise ServiceError(f"session {session}: the answer was no JSON object", code="bad_answer")
        return reply.body, reply.service_now

    def turn(self, session: str, turn: str) -> Item:
        """Return a turn, the latest one where it is not named; empty where there is none."""
        path = f"{path_of(session)}/turns"
        reply = self._service.get(
            f"{path}/{segment(turn)}" if turn else f"{path}?limit=1&order=desc", "reading the turn"
        )
        body = reply.body if reply is not None and isinstance(reply.body, dict) else {}
        if turn:
            return body
        data = body.get("data")
        return data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}

    def items(self, session: str, turn: str | None = None) -> list[Item]:
        """Return the items of a session, or of one turn, oldest first."""
        path = f"{path_of(session)}/turns/{segment(turn)}/items" if turn else f"{path_of(session)}/items"
        return [
            i for page in self._service.pages(path, f"reading session {session}", order="asc") for i in page.entries
        ]

    def lost(self, reason: str) -> ServiceError:
        """Return the error where patience ended and nobody knows what became of a request."""
        return ServiceError(
            f"{self._service.endpoint} failed or did not answer ({reason}), and went on doing so",
            code="unknown_fate",
            hint="agentfn pending looks what became of it; what was computed is kept, and agentfn respond goes on",
        )

    def stamped(self, token: str) -> str | None:
        """Return the session that carries the stamp; new ones come first, so one page is enough."""
        wanted = f"{quote('metadata[agentfn-id]', safe='')}={segment(token)}"
        pages = self._service.pages(SESSIONS, "looking for the new session", order="desc", filters=(wanted,))
        for session in next(pages, Page([], 0.0)).entries:
            # A server that does not know the filter lists everything.
            if shapes.remote_conversation(session).metadata.get("agentfn-id") == token:
                return str(session.get("id"))
        return None

    def absent(self, session: str) -> NegativeError:
        """Return the error for a session that the service does not have."""
        return NegativeError(
            f"there is no session {session} at {self._service.endpoint}",
            code="conversation_not_found",
            hint="agentfn list shows the conversations there are",
        )
