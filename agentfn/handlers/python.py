"""Answers a call with a Python function, in a process of its own and in the user's Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentfn.handlers.exec import ExecHandler, failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.process import Finished
    from agentfn.handlers.protocol import CallContext, Result
    from agentfn.model import Json

#: Runs the function; started by its path, so that the user's Python needs no agentfn.
CHILD = Path(__file__).with_name("python_child.py")

#: Stands in the child's stderr before the reason of a failure, which alone the agent is told.
REASON = "\x1d"


def find_python(interpreter: str | None, env: Mapping[str, str]) -> str:
    """Return the Python to use: the named one, else ``python3`` on PATH, else agentfn's own."""
    if interpreter:
        return str(Path(interpreter).expanduser())
    names = ("python3", "python") if os.name == "posix" else ("python", "py")
    found = next((path for name in names if (path := shutil.which(name, path=env.get("PATH")))), None)
    return found or sys.executable


class _PythonProgram(ExecHandler):
    """The child: its stdout is the result to the letter, and its stderr ends with why the function failed."""

    def _text(self, stdout: bytes) -> tuple[str, list[str]]:
        return stdout.decode("utf-8"), []

    def _failure(self, finished: Finished, stderr: str, timeout: float) -> str:
        _, marked, reason = stderr.rpartition(REASON)
        return reason if marked else failure(finished, stderr, timeout)


class PythonHandler:
    """Calls ``file.py:function`` or ``module:function`` with the arguments by keyword."""

    def __init__(self, spec: HandlerSpec, base: Path, env: Mapping[str, str], end: Finish) -> None:
        self._target, _, self._function = str(spec.value).rpartition(":")
        self._base = base
        command = [find_python(spec.interpreter, env), str(CHILD), str(base.absolute()), self._target, self._function]
        self._program = _PythonProgram(command, spec, base, env, end)

    def problem(self) -> str | None:
        """Say why the function cannot be reached, as far as that shows without running it."""
        if self._target.endswith(".py") and not (self._base / self._target).is_file():
            return f"there is no file {self._base / self._target}"
        return self._program.problem()

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Call the function once."""
        result = self._program.run(arguments, context)
        return result._replace(stderr=result.stderr.rpartition(REASON)[0] or result.stderr)
