"""Answers calls with what a case gives as outputs, and remembers what was asked for."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from agentfn.handlers.finish import Finish, finish_for
from agentfn.handlers.outputs import BadOutput, to_text
from agentfn.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.cases.case import Answer, Stub
    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import CallContext, Handler, Result
    from agentfn.masking import Masker
    from agentfn.model import Json


class StubHandler:
    """Stands in for a function's handler in one attempt at a case."""

    def __init__(self, stub: Stub, end: Finish) -> None:
        self.stub = stub
        self.asked = 0
        #: How many calls there was no answer for.
        self.unanswered = 0
        self._end = end
        self._left = [answer for answer in stub.answers if answer.when is None]
        self._given = 0
        # Calls of one step run side by side.
        self._lock = threading.Lock()

    def problem(self) -> str | None:
        """Say that nothing keeps it from answering."""
        return None

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Return the answer that is meant for these arguments, else the next one."""
        del context
        answer = self._choose(dict(arguments))
        if answer is None:
            told = f"the case has {self._given} outputs for {self.stub.function}, and none is left for this call"
            return self._end.result(Outcome(error=told))
        if answer.error is not None:
            return self._end.result(Outcome(error=answer.error))
        if answer.content is not None:
            return self._end.output(json.dumps(answer.content, ensure_ascii=False), "content")
        try:
            return self._end.output(to_text(answer.output), "text")
        except BadOutput as exc:
            return self._end.result(Outcome(error=str(exc)))

    def _choose(self, arguments: dict[str, Json]) -> Answer | None:
        with self._lock:
            self.asked += 1
            for answer in self.stub.answers:
                if answer.when is not None and not answer.when.differences(arguments):
                    return answer
            if not self._left:
                self.unanswered += 1
                return None
            self._given += 1
            return self._left.pop(0) if self.stub.each else self._left[0]


class Overruled:
    """A handler whose results a recording gives. What the case gives is asked too, to know of what lacks or is not used."""

    def __init__(self, stub: StubHandler, recorded: Handler) -> None:
        self._stub = stub
        self._recorded = recorded

    def problem(self) -> str | None:
        """Say that nothing keeps it from answering."""
        return None

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Return what was recorded."""
        self._stub.run(arguments, context)
        return self._recorded.run(arguments, context)


def stub_handlers(
    stubs: Iterable[Stub], agent: Agent, env: Mapping[str, str], masker: Masker
) -> dict[str, StubHandler]:
    """Return a handler for each function that a case gives outputs for, new for each attempt."""
    return {stub.function: StubHandler(stub, finish_for(agent.function(stub.function), env, masker)) for stub in stubs}
