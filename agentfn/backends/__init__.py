"""The services that agentfn talks to; `protocol` is what all of them offer, `settings.BACKENDS` lists them."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from agentfn.settings import BACKENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from agentfn.backends.protocol import Backend
    from agentfn.definition.agent import Agent
    from agentfn.emulator.models.scenario import Scenario
    from agentfn.model import Json


class BackendOptions(NamedTuple):
    """What a backend is given beside its endpoint.

    `home` is the state folder (the embedded service's file lies there), `scenario` what its stand-in does; `log` takes a
    line a request.
    """

    home: Path
    scenario: Scenario | None = None
    log: Callable[[str], None] | None = None
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def open_backend(name: str, endpoint: str, *, env: Mapping[str, str], options: BackendOptions) -> Backend:
    """Return a backend; its module is imported now and not before."""
    module = import_module(BACKENDS[name].module)
    backend: Backend = module.open_backend(endpoint, env, options)
    return backend


def preview(protocol: str, agent: Agent) -> dict[str, Json]:
    """Return an agent as it would be sent by a backend of that protocol, without a connection."""
    module, _, function = BACKENDS[protocol].body.partition(":")
    body: dict[str, Json] = getattr(import_module(module), function)(agent, None)
    return body
