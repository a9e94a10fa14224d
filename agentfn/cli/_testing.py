"""One run of `test`: gathers what it needs, tells how it goes on, and writes the reports that were asked for."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.case import BrokenCase
from agentfn.cases.report.data import counts
from agentfn.cases.report.explain import Context, explain, headline, rate, summary
from agentfn.cases.report.masked import masked, masked_case
from agentfn.cases.running.attempt import Runner, Watch
from agentfn.cases.running.local import LocalPlace
from agentfn.cases.running.place import Surroundings
from agentfn.cases.running.remote import RemotePlace
from agentfn.cases.running.schedule import Options, Schedule
from agentfn.cli._turns import place_flags
from agentfn.errors import UsageError
from agentfn.lifecycle.ensure import new_run
from agentfn.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentfn.cases.case import Case
    from agentfn.cases.recording.record import Recorder
    from agentfn.cases.results import CaseResult, RunResult
    from agentfn.cases.running.place import Place
    from agentfn.cli._context import AppContext
    from agentfn.cli._output import Console
    from agentfn.definition.agent import Agent
    from agentfn.handlers.protocol import Handler
    from agentfn.masking import Masker

#: HTML pages of runs in which something failed that are kept in the state folder.
KEPT_PAGES = 20


class Reports(NamedTuple):
    """Where reports go; None writes none."""

    junit: str | None = None
    page: str | None = None


class Recordings(NamedTuple):
    """Where recordings are written to or played from; `handlers` lets the real ones run while one is played."""

    record: str | None = None
    replay: str | None = None
    handlers: bool = True


def load_agent(ctx: AppContext, path: Path) -> Agent:
    """Return an agent for cases, checked against the rules of the service that they run on."""
    from agentfn.cli._sessions import load_file

    return load_file(ctx, str(path))


class TestRun:
    """One run over chosen cases."""

    __test__ = False  # for pytest, which takes classes of such a name for tests

    def __init__(
        self, ctx: AppContext, cases: Sequence[Case | BrokenCase], recordings: Recordings, *, keep: bool = False
    ) -> None:
        self._ctx = ctx
        self._cases = cases
        self._recordings = recordings
        self.masker = _masker(ctx, cases)
        backend, endpoint = ctx.place() if recordings.replay is None else ("replay", recordings.replay)
        self.surroundings = Surroundings(
            run=new_run(),
            backend=backend,
            endpoint=endpoint,
            home=ctx.settings().home,
            env=ctx.env,
            masker=self.masker,
            clock=ctx.clock,
            log=ctx.log,
            keep=keep,
            recorder=_recorder(recordings, self.masker),
        )

    def go(self, options: Options) -> RunResult:
        """Run the cases and return what came of them, without secrets."""
        place, replace = self.place()
        progress = Progress(self._ctx.console, len(self._cases), self.masker)
        runner = Runner(self.surroundings, Watch(), replace)
        result = Schedule(self._cases, place, runner, options).run(progress)
        progress.clear()
        if result.interrupted and self.surroundings.recorder is not None:
            self._ctx.console.warn("nothing was recorded: the run was interrupted")
        elif self.surroundings.recorder is not None:
            for path in self.surroundings.recorder.write():
                self._ctx.console.say(f"recorded {path}")
        return masked(result, self.masker)

    def place(self) -> tuple[Place, Callable[[Case, int], dict[str, Handler]] | None]:
        """Return where the cases run, and what gives recorded outputs in place of handlers."""
        if self._recordings.replay is not None:
            from agentfn.cases.recording.replay import ReplayPlace

            played = ReplayPlace(self.surroundings, Path(self._recordings.replay))
            return played, None if self._recordings.handlers else played.handlers
        if self.surroundings.backend == "local":
            return LocalPlace(self.surroundings), None
        return RemotePlace(self.surroundings), None

    def context(self, page: Path | None) -> Context:
        """Return what reports need to know of the run."""
        surroundings = self.surroundings
        flags = place_flags(surroundings.backend, surroundings.endpoint)
        if self._recordings.replay is not None:
            flags = f" --replay {shlex.quote(self._recordings.replay)}"
            flags += "" if self._recordings.handlers else " --handlers recorded"
        return Context(
            surroundings.run, surroundings.backend, surroundings.endpoint, flags, str(page) if page else None
        )


def _recorder(recordings: Recordings, masker: Masker) -> Recorder | None:
    if recordings.record is None:
        return None
    from agentfn.cases.recording.record import Recorder

    return Recorder(Path(recordings.record), masker)


def _masker(ctx: AppContext, cases: Sequence[Case | BrokenCase]) -> Masker:
    """Return what knows agentfn's secrets and those that any handler of these cases may see."""
    names = {
        name
        for case in cases
        if not isinstance(case, BrokenCase)
        for tool in case.agent.functions
        for name in tool.handler.env
    }
    return ctx.masker().with_more([ctx.env[name] for name in sorted(names) if name in ctx.env])


class Progress:
    """Tells each case's verdict as it comes, and on a terminal how many still run."""

    def __init__(self, console: Console, total: int, masker: Masker) -> None:
        self._console = console
        self._total = total
        self._masker = masker
        self._ended = 0
        self._is_shown = False

    def case_finished(self, result: CaseResult) -> None:
        """Tell the verdict on a line."""
        self._ended += 1
        self.clear()
        result = masked_case(result, self._masker)
        more = f"  ({rate(result)})" if rate(result) else ""
        self._console.say(f"{headline(result)}  {result.seconds:.2f} s{more}")

    def progress(self, running: int, allowed: int) -> None:
        """Show how far the run has come, on a line that the next one replaces."""
        if self._console.shows_progress and running:
            self.clear()
            self._console.say_part(f"{self._ended} of {self._total}, {running} running (at most {allowed})")
            self._is_shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._console.say_part("\r\x1b[K")
            self._is_shown = False


def write_reports(
    result: RunResult, context: Context, reports: Reports, env: Mapping[str, str], console: Console
) -> None:
    """Write the files that were asked for, the page of a run that failed, and what a build service shows."""
    if reports.junit is not None:
        from agentfn.cases.report.junit import as_junit

        _write(reports.junit, as_junit(result, context))
    if context.page is not None:
        from agentfn.cases.report.html import as_html

        _write(context.page, as_html(result, context))
    if env.get("GITHUB_ACTIONS") == "true":
        from agentfn.cases.report.ci import append_summary, github_annotations, github_summary

        workspace = Path(env["GITHUB_WORKSPACE"]).resolve() if env.get("GITHUB_WORKSPACE") else None
        for line in github_annotations(result, context, workspace):
            console.say(line)
        if env.get("GITHUB_STEP_SUMMARY"):
            try:
                append_summary(Path(env["GITHUB_STEP_SUMMARY"]), github_summary(result, context))
            except OSError as exc:
                console.warn(f"the step's summary cannot be written: {exc.strerror}")
    elif env.get("TF_BUILD", "").lower() == "true":
        from agentfn.cases.report.ci import azure_issues

        for line in azure_issues(result, context):
            console.say(line)


def require_writable(reports: Reports, recordings: Recordings) -> None:
    """Raise UsageError where a report or recording could not be written, before anything runs for it."""
    if reports.junit is not None and reports.page is not None and Path(reports.junit) == Path(reports.page):
        raise UsageError(f"--junit and --html both write {reports.junit}", hint="give each a file of its own")
    for path in (reports.junit, reports.page, recordings.record):
        if path is None:
            continue
        try:
            if path == recordings.record:
                Path(path).mkdir(parents=True, exist_ok=True)
            else:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).open("a", encoding="utf-8").close()
        except OSError as exc:
            raise UsageError(f"{path} cannot be written: {exc.strerror}") from exc


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, "utf-8", errors="backslashreplace")


def page_of(result: RunResult, reports: Reports, home: Path) -> Path | None:
    """Return where the HTML page goes: where it was asked for, else into the state folder where something failed."""
    if reports.page is not None:
        return Path(reports.page)
    if all(case.verdict in ("passed", "not_run") or not case.has_transcript for case in result.results):
        return None
    folder = home / "reports"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in sorted(folder.glob("*.html"), key=lambda path: path.stat().st_mtime)[: -KEPT_PAGES + 1]:
        old.unlink(missing_ok=True)
    path = folder / f"{result.run}.html"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return path


def show(console: Console, result: RunResult, context: Context) -> None:
    """Show why cases did not pass, then the counts."""
    for number, case in enumerate(result.results, 1):
        lines = explain(case, context, number)
        if lines:
            console.out(headline(case))
            for line in lines:
                console.out(f"  {visible(line)}")
            console.out("")
    console.out(summary(counts(result), result.seconds))
