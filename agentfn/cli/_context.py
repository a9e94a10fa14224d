"""What a command may need, made when it is asked for: settings, journal, backend, masker, console."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from agentfn.cli._output import Console
from agentfn.errors import UsageError
from agentfn.settings import Settings, load_settings, require_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentfn.backends.protocol import Backend
    from agentfn.emulator.models.scenario import Scenario
    from agentfn.journal.store import Journal
    from agentfn.masking import Masker

#: Variables that hold credentials of agentfn's own; their values never reach a screen, a file or a handler's output.
SECRET_VARIABLES = (
    "AGENT_TOKEN",
    "OPENAI_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_API_KEY",
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_PASSWORD",
)


def known_secrets(env: Mapping[str, str]) -> list[str]:
    """Return the secret values that the environment holds."""
    return [env[name] for name in SECRET_VARIABLES if env.get(name)]


class Flags(NamedTuple):
    """The options that every command has."""

    backend: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    protocol: str | None = None
    json: bool = False
    debug: bool = False


class AppContext:
    """One command's collaborators; closed when the command ends."""

    def __init__(self, flags: Flags, *, command: str) -> None:
        self.command = command
        self.flags = flags
        self.json = flags.json
        self.env: Mapping[str, str] = os.environ
        self.clock = time.time
        self.console = Console()
        self._settings: Settings | None = None
        self._journal: Journal | None = None
        self._masker: Masker | None = None
        self._backends: dict[tuple[str, str], Backend] = {}

    def __enter__(self) -> Self:
        """Do nothing yet: everything is made on demand."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close what was opened."""
        for backend in self._backends.values():
            backend.close()
        if self._journal is not None:
            self._journal.close()

    def settings(self) -> Settings:
        """Return the settings of this command."""
        if self._settings is None:
            flags = {name: getattr(self.flags, name) for name in ("backend", "endpoint", "profile", "protocol")}
            self._settings = load_settings(self.env, Path.cwd(), flags)
        return self._settings

    def journal(self) -> Journal:
        """Return the journal of AGENTFN_HOME."""
        if self._journal is None:
            from agentfn.journal.store import Journal

            self._journal = Journal(self.settings().home, clock=self.clock)
        return self._journal

    def masker(self) -> Masker:
        """Return what knows this command's secrets."""
        if self._masker is None:
            from agentfn.masking import Masker

            self._masker = Masker(known_secrets(self.env))
        return self._masker

    def chosen_backend(self) -> str | None:
        """Return the backend that was asked for on the command line, or None where none was."""
        self.settings()
        return self.flags.backend

    def place(self) -> tuple[str, str]:
        """Return the backend and the endpoint that the settings choose; nothing is opened."""
        settings = self.settings()
        if settings.backend_name == "local":
            if self.flags.endpoint is not None:
                raise UsageError("the embedded service has no --endpoint", hint="add --backend, or leave it out")
            return "local", f"local/{settings.protocol.value}"
        return settings.backend_name, require_endpoint(settings).rstrip("/")

    def backend(self, *, scenario: Scenario | None = None) -> Backend:
        """Return the backend that the settings choose."""
        return self.backend_at(*self.place(), scenario=scenario)

    def backend_at(self, name: str, endpoint: str, *, scenario: Scenario | None = None) -> Backend:
        """Return the backend of a conversation or ledger row, whatever the settings say."""
        if (name, endpoint) not in self._backends:
            from agentfn.backends import BackendOptions, open_backend

            options = BackendOptions(
                home=self.settings().home,
                scenario=scenario,
                log=self.log,
                clock=self.clock,
            )
            self._backends[name, endpoint] = open_backend(name, endpoint, env=self.env, options=options)
        return self._backends[name, endpoint]

    @property
    def log(self) -> Callable[[str], None] | None:
        """Return what takes a line a request, where that was asked for."""
        if not (self.flags.debug or self.env.get("AGENTFN_DEBUG")):
            return None
        return lambda line: self.console.say(self.masker().mask(line))
