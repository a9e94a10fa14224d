"""Who we are: to Foundry by AGENT_TOKEN, the Azure CLI or azure-identity (foundry.md §6), to OpenAI's kind by a key."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from agentfn.errors import NotAuthorisedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCOPE = "https://ai.azure.com/.default"
#: How long the Azure CLI may take, in seconds.
CLI_SECONDS = 60
_SIGN_IN = "az login, then try again; or set AGENT_TOKEN"


class Credential:
    """A bearer token, fetched when it is first needed. `origin` says where from, in words for a person."""

    def __init__(
        self, *sources: tuple[str, Callable[[], str]], renewable: bool = False, header: str = "Authorization"
    ) -> None:
        self.origin = sources[0][0]
        self._sources = sources
        self._renewable = renewable
        self._header = header
        self._token: str | None = None
        self._lock = threading.Lock()

    def token(self) -> str:
        """Return the token; raise NotAuthorisedError where there is none to be had."""
        with self._lock:  # several threads may ask at once, and one question is enough
            if self._token is None:
                self._token = self._fetch()
            return self._token

    def headers(self) -> dict[str, str]:
        """Return the header that proves who we are: a bearer token, or a key under its own name."""
        token = self.token()
        return {self._header: f"Bearer {token}" if self._header == "Authorization" else token}

    def renew(self) -> bool:
        """Fetch another token after a 401; tell whether there is one."""
        if not self._renewable:
            return False
        with self._lock:
            old, self._token = self._token, self._fetch()
            return self._token != old

    def secrets(self) -> list[str]:
        """Return what must never be shown."""
        return [self._token] if self._token else []

    def _fetch(self) -> str:
        """Return the first source's token that there is; where there is none, the first one's reason is told."""
        first: NotAuthorisedError | None = None
        for origin, fetch in self._sources:
            try:
                token = _required(fetch(), origin)
            except NotAuthorisedError as exc:
                first = first or exc
            else:
                self.origin = origin
                return token
        assert first is not None  # noqa: S101  # there is a source
        raise first


def _required(token: str, origin: str) -> str:
    """Return a token that a header can hold; whatever else stands in its place is a mistake worth naming."""
    token = token.strip()
    if token and all("!" <= character <= "~" for character in token):
        return token
    fault = "holds blanks or characters that no token has" if token else "is empty"
    raise NotAuthorisedError(f"the token from {origin} {fault}", code="bad_token", hint=_SIGN_IN)


def fixed(token: str, origin: str, header: str = "Authorization") -> Credential:
    """Return a credential with a token that is known already."""
    return Credential((origin, lambda: token), header=header)


def foundry_credential(env: Mapping[str, str], *, loopback: bool) -> Credential:
    """Return the credential for a Foundry endpoint; a service on this machine takes any token.

    The Azure CLI may be installed and not signed in, as on many build machines; then azure-identity is asked too.
    """
    if env.get("AGENT_TOKEN", "").strip():
        return fixed(env["AGENT_TOKEN"], "AGENT_TOKEN")
    if loopback:
        return fixed("local", "none needed on this machine")
    import shutil

    program = shutil.which("az", path=env.get("PATH", os.defpath))
    cli = [("az account get-access-token", lambda: _from_cli(program, env))] if program is not None else []
    return Credential(*cli, ("azure-identity", _from_identity), renewable=True)


#: Hosts of Azure OpenAI, which take a key under a name of its own.
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def is_azure(endpoint: str) -> bool:
    """Tell whether an address is Azure OpenAI's."""
    return (urlsplit(endpoint).hostname or "").endswith(_AZURE)


def openai_credential(env: Mapping[str, str], endpoint: str, *, loopback: bool) -> Credential:
    """Return the credential for OpenAI, Azure OpenAI (``api-key``), or a server of their kind; one here takes any."""
    names: tuple[str, ...]
    if is_azure(endpoint):
        names, header = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY"), "api-key"
    else:
        names, header = ("OPENAI_API_KEY",), "Authorization"
    for name in names:
        if env.get(name, "").strip():
            return fixed(env[name], name, header)
    if loopback:
        return fixed("local", "none needed on this machine")

    def missing() -> str:
        raise NotAuthorisedError(
            f"there is no key for {endpoint}: {' and '.join(names)} not set",
            code="no_token",
            hint=f"set {names[0]}; a server that wants none takes any text",
        )

    return Credential((names[0], missing))


def _from_cli(program: str, env: Mapping[str, str]) -> str:
    import subprocess

    command = [program, "account", "get-access-token", "--scope", SCOPE, "--query", "accessToken", "-o", "tsv"]
    try:
        done = subprocess.run(  # noqa: S603  # a fixed command
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLI_SECONDS,
            env=dict(env),
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise NotAuthorisedError(f"the Azure CLI gave no token: {exc}", hint=_SIGN_IN) from exc
    if done.returncode != 0 or not done.stdout.strip():
        reason = done.stderr.strip().splitlines()
        told = reason[-1] if reason else f"exit {done.returncode}"
        raise NotAuthorisedError(f"the Azure CLI gave no token: {told}", hint=_SIGN_IN)
    return done.stdout.strip()


def _from_identity() -> str:
    try:
        from azure.core.exceptions import ClientAuthenticationError
        from azure.identity import DefaultAzureCredential
    except ImportError as exc:
        raise NotAuthorisedError(
            "there is no token for Foundry: AGENT_TOKEN is not set and the Azure CLI is not installed",
            code="no_token",
            hint="set AGENT_TOKEN, install the Azure CLI, or pip install 'agentfn[azure]'",
        ) from exc
    try:
        token: str = DefaultAzureCredential().get_token(SCOPE).token
    except ClientAuthenticationError as exc:
        first = str(exc).splitlines()[0]
        raise NotAuthorisedError(f"azure-identity gave no token: {first}", hint=_SIGN_IN) from exc
    return token


class TokenFacts(NamedTuple):
    """What a token says of itself; nothing of it is verified. `expires_at` is unix seconds."""

    who: str | None
    expires_at: float | None
    audience: str | None


def token_facts(token: str) -> TokenFacts:
    """Return what a JSON web token says; all None where it is none."""
    import base64
    import json

    parts = token.split(".")
    claims: dict[str, Any] = {}
    if len(parts) == 3:  # noqa: PLR2004  # header, claims, signature
        try:
            padded = parts[1] + "=" * (-len(parts[1]) % 4)
            decoded = json.loads(base64.urlsafe_b64decode(padded))
            claims = decoded if isinstance(decoded, dict) else {}
        except ValueError:
            claims = {}
    who = claims.get("upn") or claims.get("unique_name") or claims.get("appid") or claims.get("oid")
    expires = claims.get("exp")
    return TokenFacts(
        str(who) if who else None,
        float(expires) if isinstance(expires, (int, float)) else None,
        str(claims["aud"]) if "aud" in claims else None,
    )
