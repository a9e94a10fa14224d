"""A session's turns and items (openai-agents.md §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, Request, Route
from agentfn.emulator.sessions import rows
from agentfn.emulator.sessions.errors import absent
from agentfn.emulator.sessions.paging import page

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.sessions.machine import Machine

_SESSION = "agents/sessions/{}"


class Turns:
    """The routes of turns and items."""

    def __init__(self, app: Application, machine: Machine) -> None:
        self._store = app.store
        self._machine = machine

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            ("GET", f"{_SESSION}/turns", self.index),
            ("GET", f"{_SESSION}/turns/{{}}", self.get),
            ("GET", f"{_SESSION}/turns/{{}}/items", self.turn_items),
            ("GET", f"{_SESSION}/items", self.items),
        ]

    def index(self, request: Request, session: str) -> Answer:
        """List a session's turns."""
        row = self._session(session)
        return page(request, [rows.show_turn(turn, row) for turn in rows.turns_of(self._store, session)], strict=True)

    def get(self, request: Request, session: str, identity: str) -> Answer:
        """Return one turn."""
        del request
        row = self._session(session)
        return Answer(rows.show_turn(self._turn(session, identity), row))

    def turn_items(self, request: Request, session: str, identity: str) -> Answer:
        """List the items of one turn."""
        self._session(session)
        self._turn(session, identity)
        return page(request, _finished(rows.items_of(self._store, session, identity)), items=True)

    def items(self, request: Request, session: str) -> Answer:
        """List a session's items."""
        self._session(session)
        return page(request, _finished(rows.items_of(self._store, session)), items=True)

    def _session(self, session: str) -> rows.SessionRow:
        self._machine.advance(session)
        return rows.session_of(self._store, session)

    def _turn(self, session: str, identity: str) -> rows.TurnRow:
        found = next((turn for turn in rows.turns_of(self._store, session) if turn.id == identity), None)
        if found is None:
            raise absent("Turn")
        return found


def _finished(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what is under way: a call that waits is no item of the list yet (openai-agents.md §5)."""
    return [item for item in items if item["status"] in ("completed", "failed")]
