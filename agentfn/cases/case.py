"""A test case as data: what is said, what answers the calls, what is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.expect.expectations import Expectations
from agentfn.turn.approvals import Rules

if TYPE_CHECKING:
    from pathlib import Path

    from agentfn.cases.expect.matchers import Matcher
    from agentfn.definition.agent import Agent
    from agentfn.emulator.models.scenario import Scenario
    from agentfn.errors import AgentfnError
    from agentfn.model import Json

#: Stands between a file and a case's name where one case is meant: ``weather.yaml::asks for Oslo``.
SEPARATOR = "::"


class Answer(NamedTuple):
    """What a function gives in place of its handler: text or JSON as `output`, or content parts, or an error.

    Where `when` is set, it answers every call whose arguments match; else it is used once, in its turn.
    """

    output: Json = None
    content: list[Json] | None = None
    error: str | None = None
    when: Matcher | None = None


class Stub(NamedTuple):
    """The answers of one function. `each` says that they are used one after another, else the one is used always.

    `required` says that a case whose agent never asks for the function has failed.
    """

    function: str
    answers: tuple[Answer, ...]
    each: bool
    required: bool


class TurnSpec(NamedTuple):
    """One thing that is said to the agent; `outputs` go before those of the case."""

    input: str
    outputs: dict[str, Stub] = {}  # noqa: RUF012  # nobody changes a case
    expect: Expectations = Expectations()


class Limits(NamedTuple):
    """When a turn of a case has gone on for long enough."""

    rounds: int = 25
    calls: int = 250
    identical: int = 10
    seconds: float = 300.0


class Repeat(NamedTuple):
    """How often a case runs, and how often it must pass."""

    times: int = 1
    at_least: int = 1


class Case(NamedTuple):
    """One checked case. `line` and `column` are where it stands in `file`.

    `handlers` lets the agent's handlers answer what `outputs` say nothing of. `scenario` is for the embedded service.
    """

    file: Path
    name: str
    line: int
    column: int
    agent: Agent
    turns: tuple[TurnSpec, ...]
    expect: Expectations = Expectations()
    outputs: dict[str, Stub] = {}  # noqa: RUF012  # nobody changes a case
    handlers: bool = True
    scenario: Scenario | None = None
    approve: Rules = Rules()
    repeat: Repeat = Repeat()
    limits: Limits = Limits()
    tags: tuple[str, ...] = ()
    #: The name as it is written in the file, which cases of one matrix share.
    entry: str = ""

    @property
    def id(self) -> str:
        """Return what names this one case on the command line."""
        return f"{self.file}{SEPARATOR}{self.name}"

    @property
    def location(self) -> str:
        """Return where the case stands."""
        return f"{self.file}:{self.line}:{self.column}"


class BrokenCase(NamedTuple):
    """A case, or a whole file (`name` is empty then), that cannot run for what is written there.

    `tags` is None where they are not known; `entry` is the name as written, which cases of one matrix share.
    """

    file: Path
    name: str
    line: int
    column: int
    error: AgentfnError
    tags: tuple[str, ...] | None = ()
    entry: str = ""

    @property
    def id(self) -> str:
        """Return what names it on the command line."""
        return f"{self.file}{SEPARATOR}{self.name}" if self.name else str(self.file)

    @property
    def location(self) -> str:
        """Return where it stands."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)
