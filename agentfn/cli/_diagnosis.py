"""What is configured, from where, and whether it works: the checks of `doctor`."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from agentfn import __version__
from agentfn.errors import AgentfnError, NotAuthorisedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentfn.cli._context import AppContext


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
    """Check who we are and whether the service answers."""
    settings = ctx.settings()
    checks: list[Check] = []
    if settings.backend_name == "foundry":
        checks.append(_tried("token", lambda: _token(ctx)))
        if checks[0].error is not None:
            return checks
    checks.append(_tried("service", lambda: _answers(ctx)))
    return checks


def _token(ctx: AppContext) -> Check:
    from agentfn.backends.credentials import foundry_credential, token_facts
    from agentfn.network import is_loopback

    _, endpoint = ctx.place()
    credential = foundry_credential(ctx.env, loopback=is_loopback(urlsplit(endpoint).hostname))
    facts = token_facts(credential.token())
    told = f"for {facts.who}" if facts.who else "present"
    if facts.expires_at is not None:
        told += f", until {datetime.fromtimestamp(facts.expires_at, UTC):%Y-%m-%d %H:%M} UTC"
        if facts.expires_at < ctx.clock():
            error = NotAuthorisedError(
                f"the token has expired ({told})",
                code="bad_token",
                hint="az login, or a fresh AGENT_TOKEN",
            )
            return Check("token", told, credential.origin, error)
    return Check("token", told, credential.origin)


def _answers(ctx: AppContext) -> Check:
    backend = ctx.backend()
    backend.probe()
    note = "the embedded service; no language model" if backend.name == "local" else "answers"
    return Check("service", backend.endpoint, note)


def _tool(ctx: AppContext, name: str) -> Check:
    found = shutil.which(name, path=ctx.env.get("PATH", os.defpath))
    return Check(name, found or "not found", "for python handlers" if name == "python3" else "for Foundry's tokens")


def _tried(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except AgentfnError as exc:
        return Check(name, exc.message, error=exc)
