"""Where each setting comes from: flag, environment, the project's file, the user's file, default, in that order.

An environment variable alone never switches from the embedded service to a paid one: an endpoint is read from it only
when the backend was chosen. Neither file may hold a secret.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.errors import Finding, InvalidFileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Known(NamedTuple):
    """A backend: its module, what shows an agent as it would be sent, and where its endpoint may come from.

    The module's ``open_backend(endpoint, env, options)`` opens it. `body` is a ``module:function`` that needs no
    connection. `variables` are read in their order, `default_endpoint` is used where none is set.
    """

    module: str
    body: str
    variables: tuple[str, ...] = ()
    default_endpoint: str | None = None


_OPENAI = "https://api.openai.com/v1"

#: Every backend (foundry.md §6, openai-agents.md §1); a further one is a module and a row here.
BACKENDS: Mapping[str, Known] = {
    "local": Known("agentfn.backends.local", "agentfn.backends.foundry_agents:version_body"),
    "foundry": Known(
        "agentfn.backends.foundry",
        "agentfn.backends.foundry_agents:version_body",
        ("FOUNDRY_PROJECT_ENDPOINT", "AZURE_AI_PROJECT_ENDPOINT", "PROJECT_ENDPOINT"),
    ),
    "openai": Known(
        "agentfn.backends.openai", "agentfn.backends.sessions.shapes:agent_body", ("OPENAI_BASE_URL",), _OPENAI
    ),
    "responses": Known(
        "agentfn.backends.responses",
        "agentfn.backends.steps.members:agent_members",
        ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
        _OPENAI,
    ),
}

#: The faces of the embedded service: one for every real backend's protocol.
PROTOCOLS = tuple(name for name in BACKENDS if name != "local")

PROJECT_FILE = "agentfn.toml"
USER_FILE = "config.toml"

_KEYS = ("backend", "endpoint", "model", "protocol")
_SECRET_WORDS = ("token", "key", "secret", "password", "credential")


class Setting(NamedTuple):
    """A value and where it came from, in words for a person."""

    value: str | None
    origin: str


class Settings(NamedTuple):
    """All settings of one command. `files` are the config files that were read."""

    backend: Setting
    endpoint: Setting
    model: Setting
    protocol: Setting
    profile: Setting
    home: Path
    home_origin: str
    files: tuple[Path, ...]

    @property
    def backend_name(self) -> str:
        """Return the backend's name, which is never missing."""
        return self.backend.value or "local"

    @property
    def protocol_name(self) -> str:
        """Return the protocol that is spoken: the backend's, or the chosen face's of the embedded service."""
        return str(self.protocol.value) if self.backend_name == "local" else self.backend_name


class _Source(NamedTuple):
    """A config file's flat values, and the name it is called by."""

    values: Mapping[str, str]
    origin: str


def load_settings(env: Mapping[str, str], cwd: Path, flags: Mapping[str, str | None]) -> Settings:
    """Return the settings; `flags` maps backend, endpoint, profile and protocol to what was typed, or None.

    Raises UsageError for an unknown backend or profile, InvalidFileError for a config file that is wrong.
    """
    files = [path for path in (_project_file(cwd), _user_file(env)) if path is not None]
    documents = [(path, _read(path)) for path in files]
    profile = _first([("--profile", flags.get("profile")), ("AGENTFN_PROFILE", env.get("AGENTFN_PROFILE"))])
    if profile.value is None:
        profile = _first([(str(path), document.get("profile")) for path, document in documents])
    sources = _sources(documents, profile)

    def find(name: str, *first: tuple[str, str | None], default: str | None = None) -> Setting:
        return _first([*first, *((source.origin, source.values.get(name)) for source in sources)], default)

    backend = find(
        "backend",
        ("--backend", flags.get("backend")),
        ("AGENTFN_BACKEND", env.get("AGENTFN_BACKEND") or None),
        default="local",
    )
    if backend.value is None or backend.value not in BACKENDS:
        raise UsageError(
            f"there is no backend {backend.value} ({backend.origin})",
            hint=f"one of {', '.join(BACKENDS)}",
        )
    known = BACKENDS[backend.value]
    variables = [(name, env.get(name) or None) for name in known.variables]
    protocol = find("protocol", ("--protocol", flags.get("protocol")), default="foundry")
    if protocol.value not in PROTOCOLS:
        raise UsageError(
            f"the embedded service has no protocol {protocol.value} ({protocol.origin})",
            hint=f"one of {', '.join(PROTOCOLS)}",
        )
    home, home_origin = _home(env)
    return Settings(
        backend=backend,
        endpoint=find("endpoint", ("--endpoint", flags.get("endpoint")), *variables, default=known.default_endpoint),
        model=find("model"),
        protocol=protocol,
        profile=profile,
        home=home,
        home_origin=home_origin,
        files=tuple(files),
    )


def require_endpoint(settings: Settings) -> str:
    """Return the endpoint of the chosen backend; raise UsageError that names where it may come from."""
    if settings.endpoint.value:
        return settings.endpoint.value
    names = BACKENDS[settings.backend_name].variables
    raise UsageError(
        f"the backend {settings.backend_name} needs an endpoint",
        code="no_endpoint",
        hint=f"--endpoint URL, or set {', '.join(names)}",
    )


def _first(candidates: list[tuple[str, str | None]], default: str | None = None) -> Setting:
    for origin, value in candidates:
        if value is not None:
            return Setting(value, origin)
    return Setting(default, "default" if default is not None else "not set")


def _home(env: Mapping[str, str]) -> tuple[Path, str]:
    if env.get("AGENTFN_HOME"):
        return Path(env["AGENTFN_HOME"]).expanduser().absolute(), "AGENTFN_HOME"
    from platformdirs import user_state_path

    return user_state_path("agentfn", appauthor=False), "the platform's state folder"


def _project_file(cwd: Path) -> Path | None:
    return next((f / PROJECT_FILE for f in (cwd, *cwd.parents) if (f / PROJECT_FILE).is_file()), None)


def _user_file(env: Mapping[str, str]) -> Path | None:
    if env.get("AGENTFN_HOME"):
        # A home of its own has a config of its own, so that a pipeline depends on nobody's settings.
        path = _home(env)[0] / USER_FILE
    else:
        from platformdirs import user_config_path

        path = user_config_path("agentfn", appauthor=False) / USER_FILE
    return path if path.is_file() else None


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise InvalidFileError([Finding(str(path), 0, 0, "config", str(exc))]) from exc
    findings = list(_findings(path, text, document))
    if findings:
        raise InvalidFileError(findings)
    return document


def _findings(path: Path, text: str, document: Mapping[str, Any]) -> list[Finding]:
    """Return what is wrong with a config file's keys and values."""
    tables: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [(document, (*_KEYS, "profile", "profiles"))]
    profiles = document.get("profiles", {})
    if isinstance(profiles, dict):
        tables += [(table, _KEYS) for table in profiles.values() if isinstance(table, dict)]
    found = []
    for table, known in tables:
        for key, value in table.items():
            problem = _problem(key, value, known)
            if problem is not None:
                line, column = _place(text, key)
                found.append(Finding(str(path), line, column, "config", problem))
    return found


def _problem(key: str, value: Any, known: tuple[str, ...]) -> str | None:
    if key in known:
        if key == "profiles":
            return None if isinstance(value, dict) else "profiles must be a table of tables"
        return None if isinstance(value, str) else f"{key} must be a text"
    if any(word in key.lower() for word in _SECRET_WORDS):
        return f"{key} looks like a secret; a config file is no place for one, use the environment"
    from difflib import get_close_matches

    close = get_close_matches(key, known, n=1)
    return f"unknown key {key}" + (f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(known)}")


def _place(text: str, key: str) -> tuple[int, int]:
    """Return where a key stands, found by its text: tomllib keeps no positions."""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.lstrip()
        if stripped.startswith((key, f'"{key}"')):
            return number, len(line) - len(stripped) + 1
    return 0, 0


def _sources(documents: list[tuple[Path, dict[str, Any]]], profile: Setting) -> list[_Source]:
    sources = []
    for path, document in documents:
        table = document.get("profiles", {}).get(profile.value) if profile.value else None
        if table is not None:
            sources.append(_Source(table, f"profile {profile.value} of {path}"))
    if profile.value and not sources:
        names = sorted({name for _, document in documents for name in document.get("profiles", {})})
        raise UsageError(
            f"there is no profile {profile.value} ({profile.origin})",
            hint=f"one of {', '.join(names)}" if names else f"write [profiles.{profile.value}] into {PROJECT_FILE}",
        )
    return sources + [_Source(document, str(path)) for path, document in documents]
