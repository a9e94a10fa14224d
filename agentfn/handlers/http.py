"""Answers a call by POSTing it as JSON to a URL: to this machine, or over TLS."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentfn.handlers.outputs import decode_output
from agentfn.model import Json, Outcome
from agentfn.network import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.protocol import CallContext, Result

#: Characters of a failure's body that the agent is told.
TOLD_BODY = 2000


class HttpHandler:
    """Posts each call to one URL."""

    def __init__(self, spec: HandlerSpec, end: Finish) -> None:
        self._url: str = spec.value["url"]
        self._headers: dict[str, str] = dict(spec.value.get("headers") or {})
        self._spec = spec
        self._end = end

    def problem(self) -> str | None:
        """Say why the URL may not be called, or None."""
        parts = urlsplit(self._url)
        if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)):
            return None
        return f"{self._url}: plain http is for this machine only; use https"

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Post the call once; a redirect is a failure, since it could lead anywhere."""
        import httpx

        timeout = self._spec.timeout
        if context.deadline is not None:
            timeout = min(timeout, max(0.1, context.deadline - time.monotonic()))
        body = {
            "call_id": context.call.id,
            "function": context.call.function,
            "arguments": dict(arguments),
            "conversation": context.conversation,
            "turn": context.turn,
        }
        local = is_loopback(urlsplit(self._url).hostname)
        try:
            with httpx.Client(timeout=timeout, trust_env=not local, verify=self._url.startswith("https:")) as client:
                response = client.post(self._url, json=body, headers=self._headers)
        except httpx.TimeoutException:
            return self._end.result(Outcome(error=f"no answer from {self._url} within {timeout:g} s"))
        except httpx.HTTPError as exc:
            return self._end.result(Outcome(error=f"cannot reach {self._url}: {exc}"))
        text, warnings = decode_output(response.content, response.encoding or "utf-8")
        if not response.is_success:
            return self._end.result(Outcome(error=f"HTTP {response.status_code}: {text[:TOLD_BODY]}"))
        return self._end.output(text, self._spec.result, warnings=warnings)
