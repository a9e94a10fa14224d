"""Finds out after a crash whether a call ran: its tool's `verify` command gets the same arguments and says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from agentfn.handlers.environment import handler_environment
from agentfn.handlers.exec import how_it_ended
from agentfn.handlers.finish import finish_for
from agentfn.handlers.outputs import decode_output
from agentfn.handlers.process import run_program
from agentfn.handlers.program import has_folder, program_problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from agentfn.definition.agent import FunctionTool, HandlerSpec
    from agentfn.handlers.protocol import CallContext, Result
    from agentfn.masking import Masker
    from agentfn.model import Json

#: The exit status by which a verify command says that the call did not run.
DID_NOT_RUN = 3


class Verdict(NamedTuple):
    """What a verify command found: the outcome of a call that ran, that it did not run, or neither and why."""

    result: Result | None = None
    did_not_run: bool = False
    told: str = ""


class Verifier:
    """Runs one tool's verify command."""

    def __init__(
        self, tool: FunctionTool, spec: HandlerSpec, base: Path, *, env: Mapping[str, str], masker: Masker
    ) -> None:
        self._spec = spec
        self._base = base
        self._cwd = base / spec.cwd if spec.cwd else base
        self._env = env
        self._end = finish_for(tool, env, masker)

    def problem(self) -> str | None:
        """Say why the command cannot start, or None; runs nothing."""
        return program_problem(self._spec.value[0], self._base, self._env)

    def check(self, arguments: Mapping[str, Json], context: CallContext) -> Verdict:
        """Run the command once."""
        program, *words = self._spec.value
        if has_folder(program):
            program = str((self._base / program).absolute())
        timeout = context.seconds_for(self._spec.timeout)
        try:
            finished = run_program(
                [program, *words],
                stdin=json.dumps(dict(arguments), ensure_ascii=False).encode("utf-8"),
                cwd=str(self._cwd),
                env=handler_environment(self._env, self._spec.env, context),
                timeout=timeout,
                inherit=context.inherit,
            )
        except OSError as exc:
            return Verdict(told=f"verify cannot start {program}: {exc.strerror or exc}")
        stderr, _ = decode_output(finished.stderr, self._spec.encoding)
        if finished.status == DID_NOT_RUN:
            return Verdict(did_not_run=True)
        if finished.status != 0:
            reason = self._end.mask(stderr.strip())[-200:]
            return Verdict(
                told=f"verify did not tell: {how_it_ended(finished, timeout)}" + (f": {reason}" if reason else "")
            )
        text, warnings = decode_output(finished.stdout, self._spec.encoding)
        return Verdict(self._end.output(text, self._spec.result, warnings=warnings, stderr=stderr))


def build_verifiers(
    agent_tools: tuple[FunctionTool, ...], base: Path, *, env: Mapping[str, str], masker: Masker
) -> dict[str, Verifier]:
    """Return the verifiers of the tools that have one, by function."""
    return {
        tool.name: Verifier(tool, tool.verify, base, env=env, masker=masker)
        for tool in agent_tools
        if tool.verify is not None and tool.verify.kind == "exec"
    }
