"""Foundry's agents plane: agents and their versions (foundry.md §2)."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.foundry.definition import definition_of
from agentfn.emulator.http import Answer, ApiError, Request, Route
from agentfn.emulator.responses.errors import foundry_error, invalid, not_found
from agentfn.emulator.responses.limits import metadata_of
from agentfn.emulator.responses.paging import page

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from agentfn.emulator.app import Application

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NAME_RULE = (
    "Must start and end with alphanumeric characters, can contain hyphens in the middle,"
    " and must not exceed 63 characters."
)
_MOST_VERSIONS, _DESCRIPTION = 1000, 512


class Version(NamedTuple):
    """A version of an agent."""

    guid: str
    name: str
    number: int
    created_at: int
    description: str
    metadata: dict[str, str]
    definition: dict[str, Any]

    @property
    def id(self) -> str:
        """Return ``name:version``."""
        return f"{self.name}:{self.number}"

    def show(self) -> dict[str, Any]:
        """Return the agent.version object (foundry.md §2.5)."""
        return {
            "metadata": self.metadata,
            "object": "agent.version",
            "id": self.id,
            "name": self.name,
            "version": str(self.number),
            "description": self.description,
            "created_at": self.created_at,
            "definition": self.definition,
            "status": "active",
            "agent_guid": self.guid,
        }


class Agents:
    """The routes under ``/agents``."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._store = app.store

    def routes(self) -> list[Route]:
        """Return the plane's routes."""
        table: list[Route] = [
            ("POST", "agents", self.create),
            ("GET", "agents", self.index),
            ("POST", "agents/{}", self.update),
            ("GET", "agents/{}", self.get),
            ("DELETE", "agents/{}", self.delete),
            ("POST", "agents/{}/versions", self.create_version),
            ("GET", "agents/{}/versions", self.list_versions),
            ("GET", "agents/{}/versions/{}", self.get_version),
            ("DELETE", "agents/{}/versions/{}", self.delete_version),
        ]
        return [(method, path, self._versioned(handler)) for method, path, handler in table]

    def _versioned(self, handler: Callable[..., Answer]) -> Callable[..., Answer]:
        def call(request: Request, *values: str) -> Answer:
            # Any value is taken: a client newer than this service must not break overnight.
            if "api-version" not in request.query and not self._app.loose:
                raise invalid("The api-version query parameter is required.", param="api-version")
            return handler(request, *values)

        return call

    def create(self, request: Request) -> Answer:
        """Create an agent by its name in the body; an existing one is a conflict unless loose (foundry.md §2.6)."""
        body = request.json()
        name = _require_name(body.get("name"))
        definition = definition_of(body)
        with self._store.writing() as db:
            if self._find(name) and not self._app.loose:
                message = "The resource already exists or was modified concurrently. Please retry."
                raise ApiError(409, foundry_error("conflict", message, type_="ServiceError"))
            self._insert(db, name, body, definition)
        return Answer(self._agent(name))

    def update(self, request: Request, name: str) -> Answer:
        """Make a new version only where something changed (foundry.md §2.1)."""
        body = request.json()
        definition = definition_of(body)
        with self._store.writing() as db:
            versions = self._find(name)
            if not versions:
                raise not_found(f"Agent {name} doesn't exist")
            latest = versions[-1]
            now = (definition, _description(body), metadata_of(body))
            if now != (latest.definition, latest.description, latest.metadata):
                self._insert(db, name, body, definition)
        return Answer(self._agent(name))

    def create_version(self, request: Request, name: str) -> Answer:
        """Make the next version; the first one creates the agent."""
        body = request.json()
        _require_name(name)
        definition = definition_of(body)
        with self._store.writing() as db:
            version = self._insert(db, name, body, definition)
        return Answer(version.show())

    def get(self, request: Request, name: str) -> Answer:
        """Return one agent."""
        del request
        return Answer(self._agent(name))

    def index(self, request: Request) -> Answer:
        """List agents; entries lack `agent_endpoint` (foundry.md §2.5)."""
        names = [row[0] for row in self._store.rows("SELECT name FROM agent ORDER BY rowid")]
        kind = request.query.get("kind")
        agents = [versions for name in names if (versions := self._find(name))]
        if kind:
            agents = [versions for versions in agents if versions[-1].definition.get("kind") == kind]
        return page(request, agents, lambda versions: versions[-1].name, _show_agent)

    def list_versions(self, request: Request, name: str) -> Answer:
        """List the versions of one agent."""
        versions = self._find(name)
        if not versions:
            raise not_found(f"Agent {name} doesn't exist")
        return page(request, versions, lambda version: version.id, Version.show)

    def get_version(self, request: Request, name: str, version: str) -> Answer:
        """Return one version."""
        del request
        return Answer(self.require(name, version).show())

    def delete(self, request: Request, name: str) -> Answer:
        """Delete an agent with all its versions; a later one of that name starts at 1 again."""
        del request
        with self._store.writing() as db:
            versions = self._find(name)
            if not versions:
                raise not_found("Agent not found")
            db.execute("DELETE FROM agent WHERE guid = ?", (versions[-1].guid,))
        return Answer({"object": "agent.deleted", "name": versions[-1].name, "deleted": True})

    def delete_version(self, request: Request, name: str, version: str) -> Answer:
        """Delete one version; with the last one the agent goes too (an inference, foundry.md §2.6)."""
        del request
        with self._store.writing() as db:
            found = self.require(name, version)
            db.execute("DELETE FROM agent_version WHERE guid = ? AND version = ?", (found.guid, found.number))
            db.execute(
                "DELETE FROM agent WHERE guid = ? AND NOT EXISTS (SELECT 1 FROM agent_version WHERE guid = ?)",
                (found.guid, found.guid),
            )
        body = {"object": "agent.version.deleted", "name": found.name, "version": str(found.number), "deleted": True}
        return Answer(body)

    def require(self, name: str, version: str | None) -> Version:
        """Return a version, the latest where None; raise 404 where it is not there."""
        versions = self._find(name)
        if not versions:
            raise not_found(f"Agent {name} doesn't exist")
        if version is None:
            return versions[-1]
        found = next((v for v in versions if str(v.number) == version), None)
        if found is None:
            raise not_found(f"Agent {name} with version {version} not found")
        return found

    def _find(self, name: str) -> list[Version]:
        """Return an agent's versions, oldest first; none where there is no such agent."""
        if not _NAME.fullmatch(name):
            return []
        rows = self._store.rows(
            "SELECT a.guid, a.name, v.version, v.created_at, v.description, v.metadata, v.definition"
            " FROM agent a JOIN agent_version v ON v.guid = a.guid WHERE a.folded = ? ORDER BY v.version",
            name.casefold(),
        )
        return [
            Version(guid, shown, number, created_at, description, json.loads(metadata), json.loads(definition))
            for guid, shown, number, created_at, description, metadata, definition in rows
        ]

    def _agent(self, name: str) -> dict[str, Any]:
        versions = self._find(name)
        if not versions:
            raise not_found(f"Agent {name} doesn't exist")
        rule = {"type": "FixedRatio", "agent_version": "@latest", "traffic_percentage": 100}
        endpoint = {
            "version_selector": {"version_selection_rules": [rule]},
            "protocols": ["responses"],
            "authorization_schemes": [{"type": "Entra", "isolation_key_source": {"kind": "Entra"}}],
        }
        return _show_agent(versions) | {"agent_endpoint": endpoint}

    def _insert(self, db: sqlite3.Connection, name: str, body: dict[str, Any], definition: dict[str, Any]) -> Version:
        metadata, description = metadata_of(body), _description(body)
        row = self._store.one("SELECT guid, name, next_version FROM agent WHERE folded = ?", name.casefold())
        guid, shown, number = row or (str(uuid.uuid4()), name, 1)
        db.execute(
            "INSERT INTO agent (guid, name, folded, next_version) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (guid) DO UPDATE SET next_version = excluded.next_version",
            (guid, shown, name.casefold(), number + 1),
        )
        if db.execute("SELECT count(*) FROM agent_version WHERE guid = ?", (guid,)).fetchone()[0] >= _MOST_VERSIONS:
            message = f"An agent has at most {_MOST_VERSIONS} versions; delete some."
            raise ApiError(400, foundry_error("UserError", message))
        now = int(self._store.now())
        db.execute(
            "INSERT INTO agent_version (guid, version, created_at, description, metadata, definition)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (guid, number, now, description, json.dumps(metadata), json.dumps(definition)),
        )
        return Version(guid, shown, number, now, description, metadata, definition)


def _show_agent(versions: list[Version]) -> dict[str, Any]:
    latest = versions[-1]
    return {"object": "agent", "id": latest.name, "name": latest.name, "versions": {"latest": latest.show()}}


def _require_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(_NAME_RULE, param="name")
    return name


def _description(body: dict[str, Any]) -> str:
    description = body.get("description") or ""
    if not isinstance(description, str) or len(description) > _DESCRIPTION:
        raise invalid(f"description must be a string of at most {_DESCRIPTION} characters", param="description")
    if any("\ud800" <= character <= "\udfff" for character in description):
        raise invalid("description holds half of a surrogate pair", param="description")
    return description
