"""Answers a call with a Python function, in a process of its own and in the user's Python."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agentfn.handlers.exec import TOLD_CHARACTERS, ExecHandler, NotAnsweredError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.process import Finished

#: Runs the function; started by its path, so that the user's Python needs no agentfn.
#: What the child writes behind a result.
DONE = b"\0agentfn: done"

CHILD = Path(__file__).with_name("python_child.py")


def find_python(interpreter: str | None, env: Mapping[str, str]) -> str:
    """Return the Python to use: the named one, else ``python3`` on PATH, else agentfn's own."""
    if interpreter:
        return str(Path(interpreter).expanduser())
    names = ("python3", "python") if os.name == "posix" else ("python", "py")
    found = next((path for name in names if (path := shutil.which(name, path=env.get("PATH", os.defpath)))), None)
    return found or sys.executable


class PythonHandler(ExecHandler):
    """Calls ``file.py:function`` or ``module:function`` with the arguments by keyword.

    What runs is `CHILD`: its stdout is the result to the letter, or with exit status 1 why the function failed.
    """

    def __init__(self, spec: HandlerSpec, base: Path, env: Mapping[str, str], end: Finish) -> None:
        target, _, function = str(spec.value).rpartition(":")
        command = [find_python(spec.interpreter, env), str(CHILD), str(base.absolute()), target, function]
        super().__init__(command, spec, base, env, end, script=base / target if target.endswith(".py") else None)

    def _text(self, stdout: bytes) -> tuple[str, list[str]]:
        if not stdout.endswith(DONE):
            raise NotAnsweredError("the function ended the process before it returned")
        return stdout.removesuffix(DONE).decode("utf-8", "replace"), []

    def _failure(self, finished: Finished, stderr: str, timeout: float) -> tuple[str, str]:
        if finished.status == 1 and finished.stdout:
            reason = finished.stdout.decode("utf-8", "replace")
            return self._end.mask(reason)[:TOLD_CHARACTERS], reason
        return super()._failure(finished, stderr, timeout)
