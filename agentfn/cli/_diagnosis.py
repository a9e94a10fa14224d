"""What is configured, from where, and whether it works: the checks of `doctor`."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from agentfn import __version__
from agentfn.errors import AgentfnError, NotAuthorisedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.backends.protocol import Backend
    from agentfn.cli._context import AppContext
    from agentfn.model import Json


class Check(NamedTuple):
    """One line of the report; `error` is set where it does not work."""

    name: str
    value: str
    origin: str = ""
    error: AgentfnError | None = None


def diagnose(ctx: AppContext) -> list[Check]:
    """Return all checks, each tried whatever the others said."""
    return [
        Check("agentfn", __version__, f"Python {sys.version.split()[0]}"),
        *_settings(ctx),
        _tried("state", lambda: _state(ctx)),
        *_backend(ctx),
        *(_tool(ctx, name) for name in ("python3", "az")),
    ]


def _settings(ctx: AppContext) -> list[Check]:
    settings = ctx.settings()
    checks = [
        Check(name, setting.value or "-", setting.origin)
        for name, setting in (
            ("backend", settings.backend),
            ("endpoint", settings.endpoint),
            ("model", settings.model),
            ("protocol", settings.protocol),
            ("profile", settings.profile),
        )
    ]
    files = ", ".join(str(path) for path in settings.files)
    return [*checks, Check("config files", files or "none"), Check("home", str(settings.home), settings.home_origin)]


def _state(ctx: AppContext) -> Check:
    version = ctx.journal().version()
    free = shutil.disk_usage(ctx.settings().home).free // (1024 * 1024)
    return Check("state", f"journal version {version}, {free:,} MiB free")


def _backend(ctx: AppContext) -> list[Check]:
    """Check who we are, whether the service answers, and what it can do."""
    opened: list[Backend] = []

    def identity() -> Check:
        backend = ctx.backend()
        opened.append(backend)
        return _identity(ctx, backend)

    checks = [_tried("token", identity)]
    if checks[0].error is not None or not opened:
        return checks
    features: dict[str, Json] = {}

    def answers() -> Check:
        features.update(opened[0].probe())
        note = "the embedded service; no language model" if opened[0].name == "local" else "answers"
        return Check("service", opened[0].endpoint, note)

    checks.append(_tried("service", answers))
    if features:
        checks.append(Check("features", ", ".join(f"{name}: {value}" for name, value in features.items())))
    return checks


def _identity(ctx: AppContext, backend: Backend) -> Check:
    """Say whom the token or key speaks for, and until when, as far as it says so itself."""
    from agentfn.backends.credentials import token_facts

    facts = token_facts(backend.credential.token())
    origin = backend.credential.origin
    told = f"for {facts.who}" if facts.who else "a key, which names nobody"
    if backend.name == "local" or origin.startswith("none needed"):
        told = "none"
    if facts.expires_at is not None:
        told += f", until {datetime.fromtimestamp(facts.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
        if facts.expires_at < ctx.clock():
            error = NotAuthorisedError(
                f"the token has expired ({told})",
                code="bad_token",
                hint="az login, or a fresh AGENT_TOKEN",
            )
            return Check("token", told, origin, error)
    return Check("token", told, origin)


def _tool(ctx: AppContext, name: str) -> Check:
    found = shutil.which(name, path=ctx.env.get("PATH", os.defpath))
    return Check(name, found or "not found", "for python handlers" if name == "python3" else "for Foundry's tokens")


def _tried(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except AgentfnError as exc:
        return Check(name, exc.message, error=exc)
