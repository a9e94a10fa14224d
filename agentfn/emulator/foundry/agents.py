"""Foundry's agents plane: agents and their versions (foundry.md §2)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.foundry.errors import foundry_error, invalid, not_found, payload
from agentfn.emulator.foundry.paging import page
from agentfn.emulator.http import Answer, ApiError, Request

if TYPE_CHECKING:
    import sqlite3

    from agentfn.emulator.app import Application

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_NAME_RULE = (
    "Must start and end with alphanumeric characters, can contain hyphens in the middle,"
    " and must not exceed 63 characters."
)
_MOST_TOOLS, _MOST_PAIRS, _DESCRIPTION = 128, 16, 512

Route = tuple[str, str, Callable[..., Answer]]


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
            ("GET", "agents", self.list),
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
        definition = _definition(body)
        with self._store.writing() as db:
            if self._find(name) and not self._app.loose:
                message = "The resource already exists or was modified concurrently. Please retry."
                raise ApiError(409, foundry_error("conflict", message, type_="ServiceError"))
            self._insert(db, name, body, definition)
        return Answer(self._agent(name))

    def update(self, request: Request, name: str) -> Answer:
        """Make a new version only where something changed (foundry.md §2.1)."""
        body = request.json()
        definition = _definition(body)
        with self._store.writing() as db:
            versions = self._find(name)
            if not versions:
                raise not_found(f"Agent {name} doesn't exist")
            latest = versions[-1]
            now = (definition, body.get("description") or "", _metadata(body))
            if now != (latest.definition, latest.description, latest.metadata):
                self._insert(db, name, body, definition)
        return Answer(self._agent(name))

    def create_version(self, request: Request, name: str) -> Answer:
        """Make the next version; the first one creates the agent."""
        body = request.json()
        _require_name(name)
        definition = _definition(body)
        with self._store.writing() as db:
            version = self._insert(db, name, body, definition)
        return Answer(version.show())

    def get(self, request: Request, name: str) -> Answer:
        """Return one agent."""
        del request
        return Answer(self._agent(name))

    def list(self, request: Request) -> Answer:
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
        rows = self._store.rows(
            "SELECT a.guid, a.name, v.version, v.created_at, v.description, v.metadata, v.definition"
            " FROM agent a JOIN agent_version v ON v.guid = a.guid WHERE a.folded = ? ORDER BY v.version",
            name.casefold(),
        )
        return [Version(*row[:5], json.loads(row[5]), json.loads(row[6])) for row in rows]

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
        metadata, description = _metadata(body), body.get("description") or ""
        if not isinstance(description, str) or len(description) > _DESCRIPTION:
            raise invalid(f"description must be a text of at most {_DESCRIPTION} characters", param="description")
        row = self._store.one("SELECT guid, name, next_version FROM agent WHERE folded = ?", name.casefold())
        guid, shown, number = row or (str(uuid.uuid4()), name, 1)
        db.execute(
            "INSERT INTO agent (guid, name, folded, next_version) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (guid) DO UPDATE SET next_version = excluded.next_version",
            (guid, shown, name.casefold(), number + 1),
        )
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


def _metadata(body: dict[str, Any]) -> dict[str, str]:
    metadata = body.get("metadata") or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise invalid("metadata must be an object of texts", param="metadata")
    if len(metadata) > _MOST_PAIRS or any(len(k) > 64 or len(v) > 512 for k, v in metadata.items()):  # noqa: PLR2004  # foundry.md §8
        raise invalid("metadata: at most 16 pairs, keys of 64 and values of 512 characters", param="metadata")
    return metadata


def _definition(body: dict[str, Any]) -> dict[str, Any]:
    """Return the definition as it is echoed: only what was set, `kind` first (foundry.md §2.5)."""
    given = body.get("definition")
    if not isinstance(given, dict):
        raise payload("definition is required", param="/definition")
    if given.get("kind") != "prompt":
        if not isinstance(given.get("kind"), str):
            raise payload("definition.kind is required", param="/definition/kind")
        message = "This kind of agent is a preview; the embedded service has prompt agents only."
        raise ApiError(403, foundry_error("preview_feature_required", message, param="Foundry-Features"))
    if not isinstance(given.get("model"), str) or not given["model"]:
        raise payload("definition.model is required", param="/definition/model")
    definition = {"kind": "prompt"} | {key: value for key, value in given.items() if value is not None}
    tools = definition.get("tools", [])
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and "type" in tool for tool in tools):
        raise payload("definition.tools must be an array of objects with a type", param="/definition/tools")
    if len(tools) > _MOST_TOOLS:
        raise ApiError(400, foundry_error("tool_limit_exceeded", f"{len(tools)} tools, the limit is {_MOST_TOOLS}"))
    if "tools" in definition:
        definition["tools"] = [_tool(tool, index) for index, tool in enumerate(tools)]
    return definition


def _tool(tool: dict[str, Any], index: int) -> dict[str, Any]:
    if tool["type"] != "function":
        return tool
    name = tool.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name):
        raise payload("a function's name has 1 to 128 of A-Za-z0-9_-", param=f"/definition/tools/{index}/name")
    # An empty schema is echoed as that of an object without properties (foundry.md §2.4).
    return tool | {"parameters": tool.get("parameters") or {"type": "object", "properties": {}}}
