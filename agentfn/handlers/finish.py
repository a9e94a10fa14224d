"""The last step of every handler: known secrets masked, doubts told, the output checked against its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentfn.document.check import instance_problems
from agentfn.handlers.outputs import BadOutput, content_parts
from agentfn.handlers.protocol import Result
from agentfn.masking import Masker, looks_secret
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.definition.agent import FunctionTool


class Finish:
    """Turns what a handler gave into a result. `masker` knows agentfn's secrets and the handler's declared ones."""

    def __init__(self, masker: Masker, returns: dict[str, Json] | None = None) -> None:
        self._masker = masker
        self._returns = returns

    def output(self, text: str, kind: str, *, warnings: Iterable[str] = (), stderr: str = "") -> Result:
        """Return the result for an output text; `kind` is ``text`` or ``content``."""
        told = list(warnings)
        if kind == "content":
            try:
                outcome = Outcome(content=content_parts(json.loads(text)))
            except (BadOutput, ValueError, RecursionError) as exc:
                return self.result(Outcome(error=f"the output is no array of content parts: {exc}"), stderr=stderr)
        else:
            outcome = Outcome(output=text)
            problem = self._breaks_schema(text)
            if problem is not None:
                return self.result(Outcome(error=problem), warnings=told, stderr=stderr)
        told += [f"the output holds what looks like {what}" for what in looks_secret(self._masker.mask(text))]
        return self.result(outcome, warnings=told, stderr=stderr)

    def result(self, outcome: Outcome, *, warnings: Iterable[str] = (), stderr: str = "") -> Result:
        """Return the result for an outcome that is final but for its secrets."""
        told = list(warnings)
        mask = self._masker.mask_json
        clean = Outcome(mask(outcome.output), mask(outcome.content), mask(outcome.error))
        if clean != outcome:
            told.append("a known secret in the output was masked")
        return Result(clean, tuple(told), self._masker.mask(stderr))

    def _breaks_schema(self, text: str) -> str | None:
        if self._returns is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        problems = instance_problems(value, self._returns)
        if not problems:
            return None
        return "the output does not match returns: " + "; ".join(problem.message for problem in problems)


def finish_for(tool: FunctionTool | None, env: Mapping[str, str], masker: Masker) -> Finish:
    """Return the last step for one tool's handler."""
    if tool is None:
        return Finish(masker)
    declared = [env[name] for name in tool.handler.env if name in env]
    return Finish(masker.with_more(declared) if declared else masker, tool.returns)
