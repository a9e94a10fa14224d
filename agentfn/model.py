"""The vocabulary that every layer shares: plain values, no input or output.

Words, used alike in code, help, JSON and SQL: an *agent* has *tools*; a *conversation* with it is made of *turns*; in a
turn the service asks for *calls* of functions; a *handler* answers a call with an *output* (or an error), together an
*outcome*. NamedTuples rather than dataclasses where they do: they cost a third to define, and every command pays that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with str keys."""


class AgentRef(NamedTuple):
    """One version of an agent, as a service knows it.

    `guid` is the service's own identity of the agent where it has one: names and version numbers are used again after
    a deletion, the guid is not (foundry.md §2.5, §2.6).
    """

    name: str
    version: str | None = None
    guid: str | None = None

    def __str__(self) -> str:
        """Return ``name:version``, or the name alone where there are no versions."""
        return f"{self.name}:{self.version}" if self.version else self.name


class Call(NamedTuple):
    """A function call that the service asks for.

    `arguments` is JSON text exactly as the model wrote it, so it may be no JSON at all; a service that sends an object
    (openai-agents.md §3) has it serialised by its backend.
    """

    id: str
    function: str
    arguments: str


class Outcome(NamedTuple):
    """How a call ended on our side: an output to be sent, or an error the agent is told.

    Exactly one of `output`, `content` and `error` is not None. `content` is a list of content parts (``input_text``,
    ``input_image``) sent as such. The text is final: masked, and journaled as it will be sent.
    """

    output: str | None = None
    content: list[Json] | None = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Tell whether the call ended in an error."""
        return self.error is not None


class Usage(NamedTuple):
    """Tokens that a turn consumed, as the service counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    def plus(self, other: Usage | None) -> Usage:
        """Return the sum of both; None adds nothing."""
        return Usage(*(a + b for a, b in zip(self, other, strict=True))) if other else self


class OtherAction(NamedTuple):
    """Something other than a function call that the service waits for, such as an approval in a portal."""

    type: str
    id: str
    advice: str


class Step(NamedTuple):
    """What a service answered to a message or to outputs: calls that wait, or the end of the turn.

    `id` names the response (Foundry, Responses) or turn (OpenAI sessions) that the calls belong to. `created_at` is its
    creation in unix seconds by the service's clock, from which the time to answer counts; `service_now` is that clock
    when the answer arrived. `answer` is the agent's text, None while calls wait. `failure` is the service's reason where
    the turn ended without an answer.
    """

    id: str
    created_at: float
    service_now: float
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    failure: str | None = None
    usage: Usage | None = None
    actions: tuple[OtherAction, ...] = ()
    version: str | None = None


class Stamp(NamedTuple):
    """The mark that a create request carries in the resource's metadata, so that it can be found and recognised again.

    `token` is unique to one ledger row; `run` to one run of a command; `digest` identifies the definition (agents).
    """

    run: str
    token: str
    digest: str | None = None

    def metadata(self) -> dict[str, str]:
        """Return the stamp as metadata pairs (three of the sixteen that a service allows, foundry.md §8)."""
        pairs = {"agentfn-run": self.run, "agentfn-id": self.token}
        return pairs | {"agentfn-digest": self.digest} if self.digest else pairs


class RemoteAgent(NamedTuple):
    """A version of an agent as the service lists it; `metadata` may hold a stamp of ours."""

    ref: AgentRef
    created_at: float | None
    metadata: dict[str, str]
    definition: dict[str, Json]


class RemoteConversation(NamedTuple):
    """A conversation as the service lists it; `metadata` may hold a stamp of ours."""

    id: str
    created_at: float | None
    metadata: dict[str, str]


class Entry(NamedTuple):
    """One line of a transcript: a message, a call, or an output.

    `kind` is ``user``, ``agent``, ``call``, ``output`` or the service's own item type. `text` is the message, the
    call's arguments or the output; `call_id` and `function` are set where the item has them.
    """

    kind: str
    text: str
    id: str | None = None
    call_id: str | None = None
    function: str | None = None
    response_id: str | None = None
    raw: Json = None
