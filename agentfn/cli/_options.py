"""Options that commands share, and the decorator that gives every command those that all have."""

from __future__ import annotations

import functools
import inspect
import math
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from agentfn.cli._context import AppContext, Flags
from agentfn.cli._output import CommandResult, emit
from agentfn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

Backend = Annotated[str | None, typer.Option("--backend", help="local (default), foundry, openai or responses.")]
Endpoint = Annotated[str | None, typer.Option("--endpoint", help="The service's address.")]
Profile = Annotated[str | None, typer.Option("--profile", help="A named profile of the config files.")]
Protocol = Annotated[
    str | None, typer.Option("--protocol", help="Its face, for local: foundry (default), openai, responses.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Debug = Annotated[bool, typer.Option("--debug", help="Tell each request on stderr; a traceback for a bug.")]
Scenario = Annotated[
    str | None,
    typer.Option("--scenario", help="A file: what the embedded service's stand-in model does."),
]
Wait = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for another process's turn.")]
Approve = Annotated[
    str | None,
    typer.Option("--approve", help="A file: which calls may run where nobody is there to ask."),
]

_COMMON = {
    "backend": (Backend, None),
    "endpoint": (Endpoint, None),
    "profile": (Profile, None),
    "protocol": (Protocol, None),
    "json": (AsJson, False),
    "debug": (Debug, False),
}


#: Arguments and options that name something: an empty one is a variable that was not set.
_NAMES = (
    "agent",
    "conversation",
    "name",
    "file",
    "files",
    "function",
    "call",
    "run",
    "backend",
    "endpoint",
    "profile",
    "protocol",
)


def _require_said(values: dict[str, Any]) -> None:
    """Refuse a name that is empty, and a number that is none."""
    for option, value in values.items():
        given = value if isinstance(value, list) else [value]
        if option in _NAMES and any(
            item == "" or (option in ("agent", "name") and str(item).endswith(":")) for item in given
        ):
            raise UsageError(f"{option} is empty", hint="was a variable not set?")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{option} must be a number of seconds, got {value}")


def span(text: str, option: str) -> float:
    """Return a span of time such as 30m or 1d in seconds; raise UsageError where it is none."""
    from agentfn.emulator.spans import seconds_of

    seconds = seconds_of(text)
    if seconds is None:
        raise UsageError(f"{option} {text} is no span of time", hint="such as 30m, 12h or 1d")
    return seconds


def command(function: Callable[..., CommandResult | None]) -> Callable[..., int]:
    """Make a command of a function that takes an AppContext and its own options and returns a result.

    The command gets the options that every command has, builds the context from them, and emits the result.
    """
    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "ctx"
    ]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _COMMON.items()
    ]

    @functools.wraps(function)
    def run(**values: Any) -> int:
        _require_said(values)
        flags = Flags(**{name: values.pop(name) for name in _COMMON})
        with AppContext(flags, command=function.__name__.strip("_")) as ctx:
            result = function(ctx, **values)
            return emit(ctx, result)

    run.__signature__ = inspect.Signature(own + common)  # type: ignore[attr-defined]  # read by typer
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in own + common}
    return run
