"""Lets pytest collect test files of agents beside tests in Python, and gives those the embedded service.

pytest imports this at every start, so nothing heavy is imported before a test file was found.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agentfn.cases.case import BrokenCase, Case
    from agentfn.cases.results import CaseResult
    from agentfn.cases.running.attempt import Runner
    from agentfn.cases.running.place import Ground, Place
    from agentfn.cli._context import AppContext
    from agentfn.cli._testing import TestRun
    from agentfn.testing import EmbeddedService

#: What tells a file of ours that cannot be read from another tool's.
_LOOKS_OURS = re.compile(r"^cases\s*:(?=.*^\s*(?:-\s*)?(?:input|turns)\s*:)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def agentfn_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedService]:
    """Give the embedded service, new for this test, with the environment set so that programs and SDKs find it."""
    from agentfn.testing import EmbeddedService

    with EmbeddedService() as service:
        for name, value in service.environment.items():
            monkeypatch.setenv(name, value)
        yield service


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> TestFile | None:
    """Take test files of agents."""
    if file_path.suffix not in (".yaml", ".yml"):
        return None
    from agentfn.cases.select import is_test_file

    if not is_test_file(file_path) and not parent.session.isinitpath(file_path):
        return None
    if not _is_ours(file_path):
        return None
    found: TestFile = TestFile.from_parent(parent, path=file_path)
    return found


def _is_ours(path: Path) -> bool:
    """Tell a test file of an agent, also one with mistakes, from another tool's file of such a name."""
    from agentfn.document.read import read_document
    from agentfn.errors import AgentfnError

    try:
        value = read_document(path).value
    except AgentfnError:
        return _LOOKS_OURS.search(path.read_text("utf-8", "replace")) is not None
    cases = value.get("cases") if isinstance(value, dict) else None
    if not isinstance(cases, list):
        return False
    if str(value.get("agent")).endswith((".yaml", ".yml")):
        return True
    layers = [layer for layer in (*cases, value.get("defaults")) if isinstance(layer, dict)]
    return any(key in layer for layer in layers for key in ("input", "turns", "extends"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what the session's cases made on the service."""
    running = session.config.stash.get(_RUNNING, None)
    if running is not None:
        running.finish()


class TestFile(pytest.File):
    """A test file of an agent."""

    __test__ = False

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the file's cases; a file that cannot be read at all is a collection error."""
        from agentfn.cases.read import Sources, read_cases
        from agentfn.cli._testing import load_agent

        ctx = _context(self.config)
        for case in read_cases(self.path, Sources(ctx.env, lambda path: load_agent(ctx, path))):
            if not case.name:
                raise self.CollectError(ctx.masker().mask("\n".join(_why(case))))
            yield CaseItem.from_parent(self, name=case.name, case=case)


class CaseItem(pytest.Item):
    """One case. It runs at set-up, so that what kept it from running is an error, and is compared as the test."""

    def __init__(self, *, case: Case | BrokenCase, **kwargs: object) -> None:
        super().__init__(**kwargs)  # type: ignore[arg-type]  # pytest's own
        self.case = case
        self.result: CaseResult | None = None
        self.extra_keyword_matches.update(case.tags or ())

    def setup(self) -> None:
        """Run the case as often as its verdict needs."""
        self.result = _running(self.session).run(self.case)
        if self.result.verdict == "could_not_run":
            self._fail(self.result)

    def runtest(self) -> None:
        """Fail where the case was not as expected."""
        if self.result is not None and self.result.verdict != "passed":
            self._fail(self.result)

    def _fail(self, result: CaseResult) -> NoReturn:
        """End with the explanation that `agentfn test` gives, and no traceback, which would show unmasked values."""
        pytest.fail("\n".join(_running(self.session).explain(result)), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the case stands."""
        return self.path, max(0, self.case.line - 1), self.name


class _Running:
    """What the cases of one pytest process share: a run, and a place on the backend that the settings choose."""

    def __init__(self, ctx: AppContext, cases: list[Case | BrokenCase]) -> None:
        from agentfn.cases.running.attempt import Runner, Watch
        from agentfn.cli._testing import Recordings, TestRun

        self._run: TestRun = TestRun(ctx, cases, Recordings())
        self._runner: Runner = Runner(self._run.surroundings, Watch())
        self._place: Place | None = None
        self._ground: Ground | None = None

    def run(self, case: Case | BrokenCase) -> CaseResult:
        """Run one case; secrets are out of what comes back."""
        from agentfn.cases.case import BrokenCase
        from agentfn.cases.report.masked import masked_case
        from agentfn.cases.results import CaseResult
        from agentfn.cases.running.alone import run_alone

        if isinstance(case, BrokenCase):
            return masked_case(CaseResult(case), self._run.masker)
        if self._place is None:
            self._place, _ = self._run.place()
        if self._ground is None:
            self._ground = self._place.open(0)
        return masked_case(run_alone(case, self._runner, self._ground), self._run.masker)

    def explain(self, result: CaseResult) -> list[str]:
        """Return why a case did not pass."""
        from agentfn.cases.report.explain import explain

        return explain(result, self._run.context(None), 0)

    def finish(self) -> None:
        """Close, and remove what was made; what is left is told, and found by the next clean-up."""
        if self._ground is not None:
            self._ground.close()
        for item in self._place.finish(given_up=False) if self._place is not None else ():
            run = self._run.surroundings.run
            sys.stderr.write(f"\nnot removed: {item.resource.label}: {item.why}; agentfn cleanup --run {run}\n")


_RUNNING: pytest.StashKey[_Running] = pytest.StashKey()
_CONTEXT: pytest.StashKey[AppContext] = pytest.StashKey()


def _context(config: pytest.Config) -> AppContext:
    if _CONTEXT not in config.stash:
        from agentfn.cli._context import AppContext, Flags

        config.stash[_CONTEXT] = AppContext(Flags(), command="test")
    return config.stash[_CONTEXT]


def _running(session: pytest.Session) -> _Running:
    stash = session.config.stash
    if _RUNNING not in stash:
        cases = [item.case for item in session.items if isinstance(item, CaseItem)]
        stash[_RUNNING] = _Running(_context(session.config), cases)
    return stash[_RUNNING]


def _why(case: Case | BrokenCase) -> list[str]:
    from agentfn.cases.report.explain import Context, explain
    from agentfn.cases.results import CaseResult

    return explain(CaseResult(case), Context("", "local", ""), 0)
