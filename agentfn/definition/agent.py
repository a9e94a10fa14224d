"""The agent file as data: what an author wrote, checked and completed, independent of any service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentfn.model import Json


class HandlerSpec(NamedTuple):
    """How a call is answered here. `kind` is ``manual``, ``exec``, ``python``, ``http`` or ``output``.

    `value` is what stands under that key (`exec`: list of texts; `python`: ``file.py:function`` or
    ``module:function``; `http`: mapping with `url`; `output`: any JSON value). `timeout` is in seconds.
    """

    kind: str
    value: Json = None
    timeout: float = 60.0
    env: tuple[str, ...] = ()
    cwd: str | None = None
    interpreter: str | None = None
    encoding: str = "utf-8"
    result: str = "text"  # or "content": the output is an array of content parts


class FunctionTool(NamedTuple):
    """A function that the agent may ask for.

    `parameters` is the JSON Schema as written (`{}` where the author gave none). `extra` holds further keys that go to
    the service untouched (`defer_loading`, `async`, …). `line` and `column` say where the tool starts in its file.
    """

    name: str
    description: str | None
    parameters: dict[str, Json]
    strict: bool | None = None
    extra: dict[str, Json] = {}  # noqa: RUF012  # nobody changes a definition
    handler: HandlerSpec = HandlerSpec(kind="manual")
    ask: Json = "never"  # "never" | "always" | {"unless": schema}
    idempotent: bool = False
    verify: HandlerSpec | None = None  # tells after a crash whether a call ran; of the kind exec
    refuse_secrets: bool = False
    returns: dict[str, Json] | None = None
    is_asking: bool = False  # the author said something under ask, be it never
    line: int = 0
    column: int = 0


class Agent(NamedTuple):
    """A checked agent definition.

    `settings` holds what the author set among description-independent model settings (`temperature`, `top_p`,
    `reasoning`, `tool_choice`, `text`), as written. `other_tools` are tools of other types, passed through untouched.
    `tool_order` gives the position of every tool: function names and indexes into `other_tools`, as written.
    `local` is the scenario for the embedded service: a path relative to `base`, or a list of steps written in place.
    `base` is the folder that relative paths start from.
    """

    name: str
    model: str
    instructions: str | None
    description: str | None = None
    metadata: dict[str, str] = {}  # noqa: RUF012  # nobody changes a definition
    settings: dict[str, Json] = {}  # noqa: RUF012  # nobody changes a definition
    functions: tuple[FunctionTool, ...] = ()
    other_tools: tuple[dict[str, Json], ...] = ()
    tool_order: tuple[str | int, ...] = ()
    local: Json = None
    path: Path | None = None
    base: Path = Path()

    def function(self, name: str) -> FunctionTool | None:
        """Return the function tool of that exact name, or None."""
        return next((tool for tool in self.functions if tool.name == name), None)
