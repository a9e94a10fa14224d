"""Conversations and their items (foundry.md §3; openai-agents.md §7)."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, ApiError, Request, Route
from agentfn.emulator.responses.errors import foundry_error, invalid, not_found
from agentfn.emulator.responses.ids import CONVERSATION_ID, new_id, partition, partition_of
from agentfn.emulator.responses.items import Item, normalise, require_few
from agentfn.emulator.responses.limits import metadata_of
from agentfn.emulator.responses.paging import page
from agentfn.locks import FileLock

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from agentfn.emulator.app import Application


class Conversations:
    """The routes under ``/conversations``."""

    def __init__(self, app: Application) -> None:
        self._store = app.store

    def routes(self) -> list[Route]:
        """Return the routes that every face has."""
        return [
            ("POST", "conversations", self.create),
            ("GET", "conversations/{}", self.get),
            ("POST", "conversations/{}", self.update),
            ("DELETE", "conversations/{}", self.delete),
            ("POST", "conversations/{}/items", self.add_items),
            ("GET", "conversations/{}/items", self.list_items),
            ("GET", "conversations/{}/items/{}", self.get_item),
            ("DELETE", "conversations/{}/items/{}", self.delete_item),
        ]

    def create(self, request: Request) -> Answer:
        """Open a conversation, with items where the body has some."""
        body = request.json()
        require_few(body.get("items"))
        key = partition()
        identity = new_id("conv", key)
        items = normalise(body.get("items"), key, param="items")
        metadata = metadata_of(body)
        with self._store.writing() as db:
            db.execute(
                "INSERT INTO conversation (id, created_at, metadata) VALUES (?, ?, ?)",
                (identity, int(self._store.now()), json.dumps(metadata)),
            )
            append(db, identity, items)
        return Answer(self._show(identity))

    def index(self, request: Request) -> Answer:
        """List conversations (Foundry only)."""
        rows = self._store.rows("SELECT id, agent FROM conversation ORDER BY created_at, rowid")
        name, version = request.query.get("agent_name"), request.query.get("agent_id")
        ids = [
            row[0]
            for row in rows
            if (name is None or (row[1] or "").split(":")[0] == name) and version in (None, row[1])
        ]
        return page(request, ids, str, self._show)

    def get(self, request: Request, identity: str) -> Answer:
        """Return a conversation."""
        del request
        return Answer(self._show(identity))

    def update(self, request: Request, identity: str) -> Answer:
        """Replace a conversation's metadata."""
        self.require(identity)
        metadata = metadata_of(request.json())
        with self._store.writing() as db:
            db.execute("UPDATE conversation SET metadata = ? WHERE id = ?", (json.dumps(metadata), identity))
        return Answer(self._show(identity))

    def delete(self, request: Request, identity: str) -> Answer:
        """Delete a conversation and its items."""
        del request
        self.require(identity)
        with self._store.writing() as db:
            db.execute("DELETE FROM conversation WHERE id = ?", (identity,))
            db.execute("DELETE FROM thread WHERE key = ?", (identity,))
        # Nobody can come back for it: a request that waits for the lock finds the conversation gone.
        with contextlib.suppress(OSError):  # where an open file cannot be removed, it stays
            self.lock(identity).path.unlink()
        return Answer({"object": "conversation.deleted", "deleted": True, "id": identity})

    def add_items(self, request: Request, identity: str) -> Answer:
        """Add items; the answer lists them in the request's order."""
        self.require(identity)
        body = request.json()
        require_few(body.get("items"))
        items = normalise(body.get("items"), partition_of(identity), param="items")
        if not items:
            raise invalid("items must not be empty", param="items")
        with self._store.writing() as db:
            append(db, identity, items)
        ids = {"first_id": items[0]["id"], "last_id": items[-1]["id"]}
        return Answer({"object": "list", "data": items, "has_more": False} | ids)

    def list_items(self, request: Request, identity: str) -> Answer:
        """List a conversation's items."""
        self.require(identity)
        items = self.items(identity)
        kind = request.query.get("item_type")
        return page(request, [i for i in items if kind in (None, i["type"])], lambda item: str(item["id"]), lambda i: i)

    def get_item(self, request: Request, identity: str, item: str) -> Answer:
        """Return one item."""
        del request
        self.require(identity)
        found = next((i for i in self.items(identity) if i["id"] == item), None)
        if found is None:
            raise not_found(f"Item '{item}' not found")
        return Answer(found)

    def delete_item(self, request: Request, identity: str, item: str) -> Answer:
        """Delete one item; the answer is the conversation."""
        del request
        self.require(identity)
        with self._store.writing() as db:
            gone = db.execute("DELETE FROM item WHERE conversation = ? AND id = ?", (identity, item)).rowcount
        if not gone:
            raise not_found(f"Item '{item}' not found")
        return Answer(self._show(identity))

    def items(self, identity: str) -> list[Item]:
        """Return a conversation's items, oldest first."""
        rows = self._store.rows("SELECT data FROM item WHERE conversation = ? ORDER BY position", identity)
        return [json.loads(row[0]) for row in rows]

    def lock(self, identity: str) -> FileLock:
        """Return the lock of a conversation (not yet held); it dies with its holder."""
        return FileLock(self._store.path.with_name(self._store.path.name + ".locks") / identity)

    def require(self, identity: str) -> None:
        """Refuse an id that is malformed or unknown (foundry.md §3, §5.2)."""
        if not CONVERSATION_ID.fullmatch(identity):
            message = f"Invalid conversation id '{identity}', Malformed identifier."
            raise ApiError(400, foundry_error("invalid_parameters", message, param="conversation"))
        if self._store.one("SELECT 1 FROM conversation WHERE id = ?", identity) is None:
            raise not_found(f"Conversation '{identity}' not found")

    def _show(self, identity: str) -> dict[str, Any]:
        self.require(identity)
        row = self._store.one("SELECT created_at, metadata FROM conversation WHERE id = ?", identity)
        created_at, metadata = row or (0, "{}")
        return {
            "id": identity,
            "object": "conversation",
            "metadata": json.loads(metadata),
            "created_at": created_at,
        }


def append(db: sqlite3.Connection, conversation: str, items: Iterable[Item]) -> None:
    """Append items to a conversation, inside a running transaction."""
    db.executemany(
        "INSERT INTO item (id, conversation, data) VALUES (?, ?, ?)",
        [(item["id"], conversation, json.dumps(item)) for item in items],
    )
