"""One thing in which a case was not as expected, told so that a person can act on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentfn.cases.expect.matchers import Difference
    from agentfn.model import Json


class Failure(NamedTuple):
    """What was expected beside what happened. `rule` is the key of `expect`, or what else was not met.

    `nearest` is the call that came nearest, `differences` are where it differs. `line` is the expectation's, 0 where there
    is none.
    """

    rule: str
    message: str
    expected: str = ""
    actual: str = ""
    nearest: str = ""
    differences: tuple[Difference, ...] = ()
    line: int = 0

    def lines(self) -> list[str]:
        """Return the failure as lines for a person, the message first."""
        found = [self.message]
        found += [f"  expected  {self.expected}"] if self.expected else []
        found += [f"  got       {self.actual}"] if self.actual else []
        found += [f"  nearest   {self.nearest}"] if self.nearest else []
        found += [f"    {difference}" for difference in self.differences]
        return found

    def as_json(self) -> dict[str, Json]:
        """Return the failure as the report's document has it."""
        return {
            "rule": self.rule,
            "message": self.message,
            "expected": self.expected or None,
            "actual": self.actual or None,
            "nearest": self.nearest or None,
            "differences": [difference._asdict() for difference in self.differences],
            "line": self.line or None,
        }
