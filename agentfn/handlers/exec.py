"""Answers a call by running a program: arguments as JSON on stdin, the output on stdout."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from agentfn.handlers.environment import handler_environment
from agentfn.handlers.outputs import decode_output
from agentfn.handlers.process import Finished, run_program
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.protocol import CallContext, Result

#: Characters of stderr, and of stdout of a failed program, that the agent is told.
TOLD_STDERR, TOLD_STDOUT = 2000, 2000


class ExecHandler:
    """Runs a program for each call. `base` is where a relative program path starts."""

    def __init__(
        self,
        command: Sequence[str],
        spec: HandlerSpec,
        base: Path,
        env: Mapping[str, str],
        end: Finish,
    ) -> None:
        self._command = tuple(command)
        self._base = base
        self._spec = spec
        self._cwd = base / spec.cwd if spec.cwd else base
        self._env = env
        self._end = end

    def problem(self) -> str | None:
        """Say why the program cannot start, or None; runs nothing."""
        if not self._cwd.is_dir():
            return f"there is no folder {self._cwd}"
        program = self._command[0]
        if os.sep not in program and "/" not in program:
            found = shutil.which(program, path=self._env.get("PATH"))
            return None if found else f"{program} was not found on PATH"
        return _file_problem(self._base / program, self._env)

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Run the program once."""
        timeout = self._spec.timeout
        if context.deadline is not None:
            timeout = min(timeout, max(0.1, context.deadline - time.monotonic()))
        program = self._command[0]
        if os.sep in program or "/" in program:
            program = str((self._base / program).absolute())
        try:
            finished = run_program(
                [program, *self._command[1:]],
                stdin=json.dumps(dict(arguments), ensure_ascii=False).encode("utf-8"),
                cwd=str(self._cwd),
                env=handler_environment(self._env, self._spec.env, context),
                timeout=timeout,
                inherit=context.inherit,
            )
        except OSError as exc:
            return self._end.result(Outcome(error=f"cannot start {self._command[0]}: {exc.strerror or exc}"))
        stderr = finished.stderr.decode("utf-8", "replace")
        if finished.status != 0:
            return self._end.result(Outcome(error=self._failure(finished, stderr, timeout)), stderr=stderr)
        text, warnings = self._text(finished.stdout)
        return self._end.output(text, self._spec.result, warnings=warnings, stderr=stderr)

    def _text(self, stdout: bytes) -> tuple[str, list[str]]:
        return decode_output(stdout, self._spec.encoding)

    def _failure(self, finished: Finished, stderr: str, timeout: float) -> str:
        return failure(finished, stderr, timeout)


def failure(finished: Finished, stderr: str, timeout: float) -> str:
    """Return what the agent is told: how the program ended, and the end of what it wrote."""
    if finished.status is None:
        how = f"no answer within {timeout:g} s"
    elif finished.status < 0:
        how = f"killed by signal {-finished.status} ({_signal_name(-finished.status)})"
    else:
        how = f"exit {finished.status}"
    told = stderr.strip()[-TOLD_STDERR:]
    text = f"{how}: {told}" if told else how
    partial = finished.stdout.decode("utf-8", "replace").strip()[-TOLD_STDOUT:]
    return f"{text}\npartial output: {partial}" if partial else text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _file_problem(path: Path, env: Mapping[str, str]) -> str | None:
    if not path.exists():
        return f"there is no file {path}"
    if path.is_dir():
        return f"{path} is a folder"
    if os.name != "posix":
        return None
    if not os.access(path, os.X_OK):
        return f"{path} is not executable (chmod +x, or name its interpreter first: [python3, {path.name}])"
    with path.open("rb") as file:
        start = file.read(256)
    if start.startswith(b"#!"):
        words = start.split(b"\n", 1)[0][2:].split()
        interpreter = words[0].decode("utf-8", "replace") if words else ""
        if not Path(interpreter).is_file():
            return f"{path} asks for the interpreter {interpreter or '(none)'}, which is not there"
        if interpreter.endswith("/env") and len(words) > 1 and not words[1].startswith(b"-"):
            name = words[1].decode("utf-8", "replace")
            if shutil.which(name, path=env.get("PATH")) is None:
                return f"{path} asks for {name}, which was not found on PATH"
    elif not start.startswith((b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe", b"MZ")):
        return f"{path} is no program: it has no #! line (name its interpreter first: [python3, {path.name}])"
    return None
