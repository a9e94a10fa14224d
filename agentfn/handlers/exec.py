"""Answers a call by running a program: arguments as JSON on stdin, the output on stdout."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from agentfn.handlers.environment import handler_environment
from agentfn.handlers.outputs import decode_output
from agentfn.handlers.process import MOST_BYTES, Finished, run_program
from agentfn.handlers.program import has_folder, program_problem
from agentfn.model import Json, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from agentfn.definition.agent import HandlerSpec
    from agentfn.handlers.finish import Finish
    from agentfn.handlers.protocol import CallContext, Result

#: Characters of stderr, and of stdout of a failed program, that the agent is told.
TOLD_CHARACTERS = 2000


class NotAnsweredError(Exception):
    """A process ended well and gave no result; the message says so."""


class ExecHandler:
    """Runs a program for each call.

    `base` is where a relative program path starts, and the programs' folder unless the spec names another. `script` is
    a file among the command's words that must be there.
    """

    def __init__(
        self,
        command: Sequence[str],
        spec: HandlerSpec,
        base: Path,
        env: Mapping[str, str],
        end: Finish,
        *,
        script: Path | None = None,
    ) -> None:
        self._command = tuple(command)
        self._base = base
        self._spec = spec
        self._cwd = base / spec.cwd if spec.cwd else base
        self._env = env
        self._end = end
        self._script = script

    def problem(self) -> str | None:
        """Say why the program cannot start, or None; runs nothing."""
        if any("\0" in word for word in self._command):
            return "the command holds a NUL character"
        try:
            if not self._cwd.is_dir():
                return f"there is no folder {self._cwd}"
            if self._script is not None and not self._script.is_file():
                return f"there is no file {self._script}"
        except OSError as exc:
            return f"{exc.filename} cannot be looked at: {exc.strerror}"
        return program_problem(self._command[0], self._base, self._env)

    def run(self, arguments: Mapping[str, Json], context: CallContext) -> Result:
        """Run the program once."""
        problem = self.problem()
        if problem is not None:
            return self._end.result(Outcome(error=f"cannot start {self._command[0]}: {problem}"))
        timeout = context.seconds_for(self._spec.timeout)
        program = self._command[0]
        if has_folder(program):
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
        stderr, _ = decode_output(finished.stderr, self._spec.encoding)
        if finished.status != 0:
            error, quoted = self._failure(finished, stderr, timeout)
            return self._end.result(Outcome(error=error), stderr=stderr, quoted=quoted)
        try:
            text, warnings = self._text(finished.stdout)
        except NotAnsweredError as exc:
            return self._end.result(Outcome(error=str(exc)), stderr=stderr)
        return self._end.output(text, self._spec.result, warnings=warnings, stderr=stderr)

    def _text(self, stdout: bytes) -> tuple[str, list[str]]:
        return decode_output(stdout, self._spec.encoding)

    def _failure(self, finished: Finished, stderr: str, timeout: float) -> tuple[str, str]:
        """Return what the agent is told, how the program ended and the end of what it wrote; and all that it wrote."""
        stdout, _ = decode_output(finished.stdout, self._spec.encoding)
        told, partial = self._end_of(stderr), self._end_of(stdout)
        how = how_it_ended(finished, timeout)
        text = f"{how}: {told}" if told else how
        return (f"{text}\npartial output: {partial}" if partial else text), f"{stderr}\n{stdout}"

    def _end_of(self, text: str) -> str:
        # Masked before it is cut: half of a secret would not be recognised.
        return self._end.mask(text.strip())[-TOLD_CHARACTERS:]


def how_it_ended(finished: Finished, timeout: float) -> str:
    """Return in words how a program ended that did not succeed; `timeout` is the seconds it had."""
    if finished.flooded:
        return f"stopped after it had written more than {MOST_BYTES:,} bytes"
    if finished.status is None:
        return f"no answer within {round(timeout, 1):g} s"
    if finished.status < 0:
        return f"killed by signal {-finished.status} ({_signal_name(-finished.status)})"
    return f"exit {finished.status}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
