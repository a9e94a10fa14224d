"""What answers a call: a program, a Python function, a URL, a canned output; a manual function has none of them.

`arguments` checks what the model sent before anything runs, `outputs` what is sent back; one module a kind of handler.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agentfn.definition.agent import FunctionTool, HandlerSpec
from agentfn.errors import Finding, InvalidFileError
from agentfn.handlers.finish import finish_for
from agentfn.handlers.running import stop_running

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import Handler
    from agentfn.masking import Masker

__all__ = ["build_handler", "build_handlers", "script_handler", "stop_running"]


def build_handler(tool: FunctionTool, base: Path, *, env: Mapping[str, str], masker: Masker) -> Handler | None:
    """Return the handler of a tool, None for a manual one. `base` is the agent file's folder; `env` agentfn's own."""
    spec = tool.handler
    end = finish_for(tool, env, masker)
    if spec.kind == "manual":
        return None
    if spec.kind == "exec":
        from agentfn.handlers.exec import ExecHandler

        return ExecHandler(spec.value, spec, base, env, end)
    if spec.kind == "python":
        from agentfn.handlers.python import PythonHandler

        return PythonHandler(spec, base, env, end)
    if spec.kind == "http":
        from agentfn.handlers.http import HttpHandler

        return HttpHandler(spec, end)
    if spec.kind == "output":
        from agentfn.handlers.canned import CannedHandler

        return CannedHandler(spec.value, spec.result, end)
    msg = f"no handler of the kind {spec.kind}"
    raise ValueError(msg)


def build_handlers(
    agent: Agent, tools: Iterable[FunctionTool], *, env: Mapping[str, str], masker: Masker
) -> dict[str, Handler]:
    """Return the handlers of these tools of an agent; manual ones have none.

    Raises InvalidFileError where one cannot start, which is told before a turn does.
    """
    handlers = {}
    for tool in tools:
        handler = build_handler(tool, agent.base, env=env, masker=masker)
        if handler is None:
            continue
        problem = handler.problem()
        if problem is not None:
            told = f"the handler of {tool.name} cannot start: {problem}"
            place = Finding(str(agent.path), tool.line, tool.column, "handler", told)
            raise InvalidFileError([place], hint="correct it, or answer by hand: --no-run")
        handlers[tool.name] = handler
    return handlers


def script_handler(path: Path, *, cwd: Path, env: Mapping[str, str], masker: Masker) -> Handler:
    """Return a handler that answers any call with one local program (`respond --script`), run in `cwd`.

    A ``.py`` file without the execute bit runs under the Python of the `python` handler; Windows has no such bit.
    """
    from agentfn.handlers.exec import ExecHandler
    from agentfn.handlers.python import find_python

    path = (cwd / path).absolute()
    plain = path.suffix == ".py" and (os.name == "nt" or not os.access(path, os.X_OK))
    command = [find_python(None, env), str(path)] if plain else [str(path)]
    spec = HandlerSpec(kind="exec", value=command)
    return ExecHandler(command, spec, cwd, env, finish_for(None, env, masker), script=path)
