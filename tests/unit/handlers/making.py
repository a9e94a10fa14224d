"""Makes handlers as `build_handler` does for a turn, and the context of a call."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from agentfn.definition.agent import FunctionTool, HandlerSpec
from agentfn.handlers import build_handler
from agentfn.handlers.protocol import CallContext, Handler
from agentfn.masking import Masker
from agentfn.model import Call

#: agentfn's own environment: the tests' Python first, and a home that is not the user's.
ENV = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}", "LC_ALL": "C.UTF-8"}
CONTEXT = CallContext(Call("call_A", "f", "{}"), "conv_1", "turn_1", "local")
SECRET = "known-secret"


def make(
    base: Path,
    kind: str,
    value: Any,
    *,
    returns: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    declared: tuple[str, ...] = (),
    **keys: Any,
) -> Handler:
    """Return the handler of a function `f`; `env` is what agentfn's environment has besides, `declared` names of it."""
    spec = HandlerSpec(kind=kind, value=value, env=declared, **keys)
    tool = FunctionTool(name="f", description=None, parameters={}, handler=spec, returns=returns)
    handler = build_handler(tool, base, env={**ENV, **(env or {})}, masker=Masker([SECRET]))
    assert handler is not None
    return handler


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that is dead but not yet collected does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
