"""Answers every call with the same output."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from agentfn.handlers.outputs import BadOutput, content_parts, to_text
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.handlers.finish import Finish
    from agentfn.handlers.protocol import CallContext, Result


class CannedHandler:
    """A canned output: a text as it is, anything else as JSON, or an array of content parts."""

    def __init__(self, value: Json, kind: str, end: Finish) -> None:
        self._value = value
        self._kind = kind
        self._end = end

    def problem(self) -> str | None:
        """Say why the value cannot be sent, or None."""
        try:
            text = to_text(self._value)
            if self._kind == "content":
                content_parts(json.loads(text))
        except ValueError as exc:
            return f"the canned output cannot be sent: {exc}"
        return None

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Return the output."""
        del arguments, context
        try:
            return self._end.output(to_text(self._value), self._kind)
        except BadOutput as exc:
            return self._end.result(Outcome(error=str(exc)))
