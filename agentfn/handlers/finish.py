"""The last step of every handler: known secrets masked, doubts told, the output checked against its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentfn.handlers.fitting import schema_complaint
from agentfn.handlers.outputs import content_parts
from agentfn.handlers.protocol import Result
from agentfn.masking import Masker, looks_secret
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.definition.agent import FunctionTool


class Finish:
    """Turns what a handler gave into a result. `masker` knows agentfn's secrets and the handler's declared ones.

    `refuse` holds back an output that merely looks like it holds a secret.
    """

    def __init__(self, masker: Masker, returns: dict[str, Json] | None = None, *, refuse: bool = False) -> None:
        self._masker = masker
        self._returns = returns
        self._refuse = refuse

    def mask(self, text: str) -> str:
        """Return the text without known secrets; whoever cuts a text calls this before."""
        return self._masker.mask(text)

    def output(self, text: str, kind: str, *, warnings: Iterable[str] = (), stderr: str = "") -> Result:
        """Return the result for an output text; `kind` is ``text`` or ``content``."""
        if kind == "content":
            try:
                outcome = Outcome(content=content_parts(json.loads(text)))
            except (ValueError, RecursionError) as exc:
                outcome = Outcome(error=f"the output is no array of content parts: {exc}")
        else:
            problem = self._breaks_schema(text)
            outcome = Outcome(output=text) if problem is None else Outcome(error=problem)
        return self.result(outcome, warnings=warnings, stderr=stderr, quoted=text)

    def result(
        self,
        outcome: Outcome,
        *,
        warnings: Iterable[str] = (),
        stderr: str = "",
        quoted: str = "",
    ) -> Result:
        """Return the result for an outcome that is final but for its secrets.

        `quoted` is the whole of what an error gives a part of, already masked there.
        """
        mask = self._masker.mask_json
        clean = Outcome(mask(outcome.output), mask(outcome.content), mask(outcome.error))
        told = list(warnings)
        if clean != outcome or self._masker.found(quoted):
            told.append("a known secret in the output was masked")
        text = clean.error if clean.error is not None else clean.output
        looks = looks_secret(json.dumps(clean.content) if text is None else text)
        told += [f"the output holds what looks like {what}" for what in looks]
        if looks and self._refuse:
            clean = Outcome(error=f"the output was held back: it looks like it holds {' and '.join(looks)}")
        return Result(clean, tuple(told), self._masker.mask(stderr))

    def _breaks_schema(self, text: str) -> str | None:
        if self._returns is None:
            return None
        complaint = _complaint(text, self._returns)
        if complaint is None:
            return None
        masked = self.mask(text)
        if masked != text:  # the complaint may quote half of a secret, which nothing would recognise
            complaint = _complaint(masked, self._returns) or "it holds a secret that was masked"
        return f"the output does not match returns: {complaint}"


def _complaint(text: str, returns: dict[str, Json]) -> str | None:
    """Return how an output breaks the schema of `returns`, or None. It is taken as JSON where it is JSON.

    A text may look like a number or a list and still be meant as a text.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return schema_complaint(text, returns)
    complaint = schema_complaint(value, returns)
    if complaint is not None and returns.get("type") == "string":
        return schema_complaint(text, returns)
    return complaint


def finish_for(tool: FunctionTool | None, env: Mapping[str, str], masker: Masker) -> Finish:
    """Return the last step for one tool's handler."""
    if tool is None:
        return Finish(masker)
    secrets = [env[name] for name in tool.handler.env if name in env]
    if tool.handler.kind == "http":
        from agentfn.handlers.http import secrets_of

        secrets += secrets_of(tool.handler.value)
    return Finish(masker.with_more(secrets) if secrets else masker, tool.returns, refuse=tool.refuse_secrets)
