"""What a case expects, as data; `read` makes it of a file, `judge` compares it with what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from agentfn.cases.expect.matchers import MISSING, Difference

if TYPE_CHECKING:
    from agentfn.cases.expect.matchers import Matcher
    from agentfn.cases.expect.words import Range
    from agentfn.cases.happened import HappenedCall

Order = Literal["any", "in_order", "exact"]


class ExpectedCall(NamedTuple):
    """A call that is expected, or with `never` is not. What is None may be anything.

    `times` counts all calls that match, `group` is the number of a list of calls that are asked for in the same step.
    """

    name: str
    arguments: Matcher | None = None
    output: Matcher | None = None
    error: Matcher | None = None
    state: str | None = None
    times: Range | None = None
    group: int | None = None
    line: int = 0

    @property
    def least(self) -> int:
        """Return how many calls must match."""
        return 1 if self.times is None else int(self.times.least or 0)

    def differences(self, call: HappenedCall) -> list[Difference]:
        """Return where a call is not the expected one; a call of another function differs in its name alone."""
        if call.function != self.name:
            return [Difference("", self.name, call.function)]
        found = self.arguments.differences(call.value) if self.arguments is not None else []
        found += _labelled("output", self.output, call.output)
        found += _labelled("error", self.error, call.error)
        if self.state is not None and call.state != self.state:
            found.append(Difference("state", self.state, call.state))
        return found

    def __str__(self) -> str:
        """Return the call as code is written."""
        from agentfn.cases.expect.matchers import Keys

        if self.arguments is None:
            inner = "…"
        elif isinstance(self.arguments, Keys):
            inner = ", ".join(f"{name}: {matcher}" for name, matcher in self.arguments.members.items())
            inner += "" if self.arguments.closed else (", …" if inner else "…")
        else:
            inner = str(self.arguments)
        more = [f"output {self.output}" if self.output else "", f"error {self.error}" if self.error else ""]
        more += [self.state or "", f"{self.times} times" if self.times else ""]
        told = ", ".join(part for part in more if part)
        return f"{self.name}({inner})" + (f", {told}" if told else "")


def _labelled(label: str, matcher: Matcher | None, value: str | None) -> list[Difference]:
    if matcher is None:
        return []
    return [d._replace(path=f"{label}{d.path}") for d in matcher.differences(MISSING if value is None else value)]


class Expectations(NamedTuple):
    """Everything that is expected of a turn or of a whole case. None and empty expect nothing.

    `pending` is False where every turn must come to its end, else the calls that wait then (empty: any).
    """

    calls: tuple[ExpectedCall, ...] = ()
    order: Order = "any"
    nothing_else: bool = False
    never: tuple[ExpectedCall, ...] = ()
    pending: tuple[ExpectedCall, ...] | Literal[False] = False
    answer: Matcher | None = None
    failure: Matcher | None = None
    steps: Range | None = None
    tokens: Range | None = None
    seconds: Range | None = None
    line: int = 0

    @property
    def ends_conversation(self) -> bool:
        """Tell whether a turn of which this is expected leaves a conversation in which a case cannot go on."""
        return self.pending is not False or self.failure is not None
