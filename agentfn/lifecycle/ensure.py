"""Makes sure that an agent exists in exactly the given definition."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

from agentfn.definition.digest import digest
from agentfn.model import AgentRef, Stamp

if TYPE_CHECKING:
    from agentfn.backends.protocol import Backend
    from agentfn.definition.agent import Agent
    from agentfn.journal.ledger import Ledger


class Ensured(NamedTuple):
    """The agent version to use; `changed` tells whether it was made now."""

    ref: AgentRef
    changed: bool


def new_run() -> str:
    """Return an id for one run of a command; everything it creates is stamped with it."""
    return f"run_{uuid.uuid4().hex[:12]}"


def create(backend: Backend, ledger: Ledger, agent: Agent, run: str) -> AgentRef:
    """Create a version, whatever there is already; the ledger knows before the service does."""
    stamp = Stamp(run, f"rsc_{uuid.uuid4().hex}", digest(agent))
    ledger.intend_agent(stamp, agent.name, str(agent.path.resolve()) if agent.path else None)
    ref = backend.create_agent(agent, stamp)
    ledger.agent_created(stamp.token, ref)
    return ref


def ensure_latest(backend: Backend, ledger: Ledger, agent: Agent, run: str) -> Ensured:
    """Create a new version only where the service's latest differs from the definition (`create`)."""
    latest = backend.find_agent(agent.name)
    if latest is not None and latest.metadata.get("agentfn-digest") == digest(agent):
        return Ensured(latest.ref, changed=False)
    return Ensured(create(backend, ledger, agent, run), changed=True)


def ensure_usable(backend: Backend, ledger: Ledger, agent: Agent, run: str, *, own: bool) -> Ensured:
    """Return a version with this definition, for a turn that pins it.

    What the ledger knows is taken at its word, which costs no request. `own` makes one rather than use a version that
    only the service knows of (a run that will remove what it made must not lean on another's).
    """
    known = ledger.agent_with_digest(agent.name, digest(agent))
    if known is not None:
        return Ensured(known.ref, changed=False)
    if own:
        return Ensured(create(backend, ledger, agent, run), changed=True)
    return ensure_latest(backend, ledger, agent, run)
