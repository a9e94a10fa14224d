"""Foundry's agents and conversations as it writes and shows them (foundry.md §2, §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.backends.steps.items import created_at
from agentfn.model import AgentRef, Json, RemoteAgent, RemoteConversation, Stamp

if TYPE_CHECKING:
    from agentfn.definition.agent import Agent

Item = dict[str, Any]


def version_body(agent: Agent, stamp: Stamp | None) -> dict[str, Json]:
    """Return the body that creates a version (foundry.md §2.2)."""
    from agentfn.definition.digest import wire_tools

    definition: dict[str, Json] = {"kind": "prompt", "model": agent.model}
    if agent.instructions is not None:
        definition["instructions"] = agent.instructions
    tools = wire_tools(agent)
    if tools:
        definition["tools"] = tools
    definition |= agent.settings
    body: dict[str, Json] = {"definition": definition}
    if agent.description is not None:
        body["description"] = agent.description
    metadata = agent.metadata | (stamp.metadata() if stamp else {})
    if metadata:
        body["metadata"] = metadata
    return body


def remote_agent(body: Json) -> RemoteAgent:
    """Return an agent.version, or the latest version of an agent (foundry.md §2.5)."""
    entry = body if isinstance(body, dict) else {}
    versions = entry.get("versions")
    latest = versions.get("latest") if isinstance(versions, dict) else None
    found = latest if isinstance(latest, dict) else entry
    name = str(found.get("name") or entry.get("name") or "")
    version = found.get("version")
    guid = found.get("agent_guid")
    metadata = found.get("metadata")
    definition = found.get("definition")
    return RemoteAgent(
        AgentRef(name, None if version is None else str(version), guid if isinstance(guid, str) else None),
        created_at(found),
        {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
        definition if isinstance(definition, dict) else {},
    )


def remote_conversation(body: Item) -> RemoteConversation:
    """Return a conversation of the list."""
    metadata = body.get("metadata")
    return RemoteConversation(
        str(body.get("id") or ""),
        created_at(body),
        {str(k): str(v) for k, v in metadata.items()} if isinstance(metadata, dict) else {},
    )
