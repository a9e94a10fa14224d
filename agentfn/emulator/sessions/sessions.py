"""Sessions: opened, listed, changed, deleted (openai-agents.md §3)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import Answer, ConnectionCut, Request, Route
from agentfn.emulator.sessions import rows
from agentfn.emulator.sessions.errors import absent, conflict, invalid, missing, wrong_type, wrong_value
from agentfn.emulator.sessions.fields import (
    CONFIGURATION,
    body_of,
    check_choice,
    check_configuration,
    completed,
    messages_of,
    metadata_of,
    require_known,
    require_model,
)
from agentfn.emulator.sessions.ids import new_id
from agentfn.emulator.sessions.live import LiveStream
from agentfn.emulator.sessions.paging import page
from agentfn.emulator.store import save_thread

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.sessions.agents import Agents
    from agentfn.emulator.sessions.machine import Machine

Body = dict[str, Any]

_ENVIRONMENTS = ("none", "openai_hosted", "self_hosted")
_KNOWN = (
    "environment",
    "agent_id",
    "agent",
    "input",
    "stream",
    "stream_options",
    "metadata",
    "vault_ids",
    "prompt_cache_options",
    "review",
)
_CLEARED = ("instructions", "tools")
_CHANGEABLE = ("metadata", "agent", "prompt_cache_options", "review")
_REVIEWS, _TTLS = ("none", "auto_review"), ("30m", "12h")
_FILTER = re.compile(r"metadata\[(.+)\]")


class Sessions:
    """The routes under ``/agents/sessions``."""

    def __init__(self, app: Application, agents: Agents, machine: Machine) -> None:
        self._app = app
        self._store = app.store
        self._agents = agents
        self._machine = machine

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            ("POST", "agents/sessions", self.create),
            ("GET", "agents/sessions", self.index),
            ("GET", "agents/sessions/{}", self.get),
            ("POST", "agents/sessions/{}", self.update),
            ("DELETE", "agents/sessions/{}", self.delete),
        ]

    def create(self, request: Request) -> Answer:
        """Open a session with its first message; twice the same request makes two."""
        body = body_of(request)
        require_known(body, _KNOWN)
        agent_id, agent = self._configuration(body)
        _check_environment(body)
        if not isinstance(body.get("stream") or False, bool):
            raise wrong_type("stream", "a boolean", body["stream"])
        messages = self._input(body)
        metadata = metadata_of(body)
        now = int(self._store.now())
        row = rows.SessionRow(new_id("sess"), now, now, agent_id, agent, metadata, _settings(body), {})
        # An agent given in place has an id of its own in each session, and is known by its configuration here.
        asked = agent_id if body.get("agent_id") is not None else json.dumps(body["agent"], sort_keys=True)
        # Who asks again sends the same metadata; clients that mark each session are told apart by it.
        key = f"session:{asked}:{json.dumps([messages, metadata], sort_keys=True)}"
        row = row._replace(thread=self._store.thread(key))
        decision = self._machine.foresee(row, [{"type": "message", **message} for message in messages])
        if decision.reply.fault is not None or decision.reply.cut == "before":
            # The same request may come again, and is to get the following step.
            with self._store.writing() as db:
                save_thread(db, key, decision.after_fault)
            self._machine.refuse(decision, None)
        with self._store.writing() as db:
            if decision.reply.cut == "after":
                save_thread(db, key, decision.after)  # who asks again, not knowing of this one, gets the following step
            else:
                db.execute("DELETE FROM thread WHERE key = ?", (key,))
            db.execute(
                "INSERT INTO session (id, created_at, last_active_at, agent_id, agent, metadata, settings, thread)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row[:4], *map(json.dumps, row[4:])),
            )
            self._machine.pin(db, row, decision)
            self._machine.begin(db, row.id, messages)
        shown = rows.show_session(self._store, row)
        if decision.reply.cut == "after":
            raise ConnectionCut
        if not body.get("stream"):
            return Answer(shown, status=201)
        created = {"type": "agent.session.created", "event_id": new_id("evt"), "session": shown}
        stream = LiveStream(self._app, self._machine, row.id, first=[created], after=0, ends_idle=True)
        return Answer(stream=stream, status=201)

    def index(self, request: Request) -> Answer:
        """List sessions, by agent or metadata where that is asked for."""
        wanted = {m[1]: value for key, value in request.query.items() if (m := _FILTER.fullmatch(key))}
        agent = request.query.get("agent_id")
        found = [
            row
            for row in rows.all_sessions(self._store)
            if agent in (None, row.agent_id) and wanted.items() <= row.metadata.items()
        ]
        for row in found:  # who only lists sees what becomes of them, too
            self._machine.advance(row.id)
        kept = {row.id: row for row in rows.all_sessions(self._store)}
        return page(request, [rows.show_session(self._store, kept[row.id]) for row in found if row.id in kept])

    def get(self, request: Request, identity: str) -> Answer:
        """Return one session."""
        del request
        self._machine.advance(identity)
        return Answer(rows.show_session(self._store, rows.session_of(self._store, identity)))

    def update(self, request: Request, identity: str) -> Answer:
        """Change metadata or parts of the agent; a change of tools counts from the next model step."""
        body = body_of(request)
        require_known(body, _CHANGEABLE)
        if not body:
            raise invalid("At least one update field is required")
        changed = _object_at(body, "agent")
        require_known(changed, ("model", "reasoning", "service_tier", "tools"), "agent.")
        check_configuration(changed, "agent.")
        given = metadata_of(body)
        with self._store.writing() as db:
            row = rows.session_of(self._store, identity)
            agent = row.agent | completed({**row.agent, **{k: v for k, v in changed.items() if v is not None}})
            metadata = given if "metadata" in body else row.metadata
            settings = row.settings | _settings(body)
            db.execute(
                "UPDATE session SET agent = ?, metadata = ?, settings = ? WHERE id = ?",
                (json.dumps(agent), json.dumps(metadata), json.dumps(settings), identity),
            )
        return Answer(rows.show_session(self._store, rows.session_of(self._store, identity)))

    def delete(self, request: Request, identity: str) -> Answer:
        """Delete a session that no turn runs or waits in; doing it twice is the same as once."""
        del request
        self._machine.advance(identity)
        with self._store.writing() as db:
            known = self._store.one("SELECT deleted FROM session WHERE id = ?", identity)
            if known is None:
                raise absent("Session")
            if rows.active_turn(self._store, identity) is not None:
                raise conflict("session must be durably idle or failed without required actions before deletion")
            for table in ("session_turn", "session_item", "session_call", "session_event"):
                db.execute(f"DELETE FROM {table} WHERE session = ?", (identity,))
            db.execute("DELETE FROM thread WHERE substr(key, 1, ?) = ?", (len(f"key:{identity}:"), f"key:{identity}:"))
            db.execute(
                "UPDATE session SET deleted = 1, agent = '{}', metadata = '{}', settings = '{}', thread = '{}'"
                " WHERE id = ?",
                (identity,),
            )
        self._machine.ring()
        return Answer({"id": identity, "object": "agent.session.deleted", "deleted": True})

    def _configuration(self, body: Body) -> tuple[str, Body]:
        """Return the id and the configuration that a session begins with; its faults are told before any other."""
        own = _object_at(body, "agent")
        require_known(own, CONFIGURATION, "agent.")
        check_configuration(own, "agent.")
        identity = body.get("agent_id")
        if identity is None:
            if body.get("agent") is None:
                raise missing("agent_id")
            require_model(own, "agent.")
            new = new_id("agent")
            return new, {"id": new, "name": None} | completed(own)
        if not isinstance(identity, str):
            raise wrong_type("agent_id", "a string", identity)
        saved = self._agents.require(identity)
        kept = {key: saved.get(key) for key in CONFIGURATION}
        given = {key: value for key, value in own.items() if value is not None or key in _CLEARED}
        return identity, {"id": identity, "name": saved["name"]} | completed({**kept, **given})

    def _input(self, body: Body) -> list[Body]:
        if body.get("input") is None:
            raise invalid("conversation-only sessions currently require initial input", "input")
        return messages_of(body["input"], "input")


def _check_environment(body: Body) -> None:
    environment = body.get("environment")
    if environment is None:
        raise missing("environment")
    if not isinstance(environment, dict):
        raise wrong_type("environment", "an object", environment)
    kind = environment.get("type")
    if kind is None:
        raise missing("environment.type")
    if kind not in _ENVIRONMENTS:
        raise wrong_value("environment.type", kind, _ENVIRONMENTS)
    if kind != "none":
        raise invalid("The embedded service has no environments but 'none'.", "environment.type")


def _object_at(body: Body, key: str) -> Body:
    given = body.get(key)
    if given is not None and not isinstance(given, dict):
        raise wrong_type(key, "an object", given)
    return given or {}


def _settings(body: Body) -> Body:
    check_choice(body.get("review"), "review", _REVIEWS)
    check_choice(_object_at(body, "prompt_cache_options").get("ttl"), "prompt_cache_options.ttl", _TTLS)
    return {k: body[k] for k in ("vault_ids", "prompt_cache_options", "review") if body.get(k) is not None}
