"""Saved agents (openai-agents.md §2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, Request, Route
from agentfn.emulator.sessions.errors import absent
from agentfn.emulator.sessions.fields import (
    CONFIGURATION,
    body_of,
    check_configuration,
    completed,
    metadata_of,
    require_known,
    require_model,
)
from agentfn.emulator.sessions.ids import new_id
from agentfn.emulator.sessions.paging import page

if TYPE_CHECKING:
    from agentfn.emulator.app import Application

_KNOWN = ("name", "metadata", *CONFIGURATION)
_CLEARED = ("name", "instructions", "tools", "metadata")


class Agents:
    """The routes under ``/agents``."""

    def __init__(self, app: Application) -> None:
        self._store = app.store

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            ("POST", "agents", self.create),
            ("GET", "agents", self.index),
            ("GET", "agents/{}", self.get),
            ("POST", "agents/{}", self.update),
            ("DELETE", "agents/{}", self.delete),
        ]

    def create(self, request: Request) -> Answer:
        """Save an agent; names need not be unique."""
        body = body_of(request)
        require_known(body, _KNOWN)
        check_configuration(body)
        require_model(body)
        now = int(self._store.now())
        shown = _shown(new_id("agent"), now, now, body)
        with self._store.writing() as db:
            db.execute(
                "INSERT INTO saved_agent (id, created_at, updated_at, body) VALUES (?, ?, ?, ?)",
                (shown["id"], now, now, json.dumps(shown)),
            )
        return Answer(shown, status=201)

    def index(self, request: Request) -> Answer:
        """List agents, newest first."""
        rows = self._store.rows("SELECT body FROM saved_agent ORDER BY position")
        return page(request, [json.loads(row[0]) for row in rows])

    def get(self, request: Request, identity: str) -> Answer:
        """Return one agent."""
        del request
        return Answer(self.require(identity))

    def update(self, request: Request, identity: str) -> Answer:
        """Change what the body names; null clears what can be empty, metadata is replaced as a whole."""
        body = body_of(request)
        require_known(body, _KNOWN)
        check_configuration(body)
        with self._store.writing() as db:
            old = self.require(identity)
            given = {key: value for key, value in body.items() if value is not None or key in _CLEARED}
            if isinstance(given.get("experimental"), dict):
                given["experimental"] = {**old.get("experimental", {}), **given["experimental"]}
            now = int(self._store.now())
            shown = _shown(identity, old["created_at"], now, {**old, **given})
            db.execute(
                "UPDATE saved_agent SET updated_at = ?, body = ? WHERE id = ?", (now, json.dumps(shown), identity)
            )
        return Answer(shown)

    def delete(self, request: Request, identity: str) -> Answer:
        """Delete an agent; the sessions made from it go on."""
        del request
        with self._store.writing() as db:
            if not db.execute("DELETE FROM saved_agent WHERE id = ?", (identity,)).rowcount:
                raise absent("Agent")
        return Answer({"id": identity, "object": "agent.deleted", "deleted": True})

    def require(self, identity: str) -> dict[str, Any]:
        """Return an agent; 404 where there is none."""
        row = self._store.one("SELECT body FROM saved_agent WHERE id = ?", identity)
        if row is None:
            raise absent("Agent")
        found: dict[str, Any] = json.loads(row[0])
        return found


def _shown(identity: str, created_at: int, updated_at: int, body: dict[str, Any]) -> dict[str, Any]:
    times = {"id": identity, "object": "agent", "created_at": created_at, "updated_at": updated_at}
    return times | {"name": body.get("name"), "metadata": metadata_of(body)} | completed(body)
