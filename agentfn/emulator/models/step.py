"""What a model sees and what it does in one step, whichever stand-in it is."""

from __future__ import annotations

from typing import Any, NamedTuple


class Output(NamedTuple):
    """An output that a function has given."""

    function: str
    call_id: str
    text: str


class Prompt(NamedTuple):
    """What a model step sees.

    `message` is the user's latest text, `outputs` those that have just come, `earlier` all of this turn so far (the new
    ones too). `number` counts the thread's model steps from 1.
    """

    tools: list[dict[str, Any]]
    tool_choice: Any
    message: str
    outputs: tuple[Output, ...]
    earlier: tuple[Output, ...]
    number: int


class AskedCall(NamedTuple):
    """A call that the model asks for; `id` None lets the service choose."""

    function: str
    arguments: str
    id: str | None = None


class Fault(NamedTuple):
    """An HTTP error in place of an answer."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[str, str], ...] = ()
    type: str = "error"


class Reply(NamedTuple):
    """What the model does in one step.

    `failure` is a (code, message) of a turn that fails, `incomplete` the reason of one that is broken off. `cut` is
    ``before``, ``mid`` or ``after``; `delay` and the advances are seconds. The clock moves by `advance_first` before
    the step and by `advance` after it. `accepts_after` is how many seconds calls of a session are seen before they take
    results.
    """

    text: str | None = None
    calls: tuple[AskedCall, ...] = ()
    fault: Fault | None = None
    failure: tuple[str, str] | None = None
    incomplete: str | None = None
    delay: float = 0.0
    cut: str | None = None
    advance: float = 0.0
    advance_first: float = 0.0
    accepts_after: float = 0.0
    usage: dict[str, int] | None = None
