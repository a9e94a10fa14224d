"""Runs test files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentfn.cli import _options as opt
from agentfn.cli._context import AppContext
from agentfn.cli._output import CommandResult
from agentfn.errors import AgentfnError, Finding, InterruptedRunError, InvalidFileError, UsageError

if TYPE_CHECKING:
    from agentfn.cases.report.explain import Context
    from agentfn.cases.results import RunResult
    from agentfn.cases.select import AnyCase
    from agentfn.cli._testing import TestRun


@opt.command
def test(
    ctx: AppContext,
    paths: Annotated[list[str], typer.Argument(help="Test files, folders of them, or FILE::CASE.")],
    keyword: Annotated[str | None, typer.Option("-k", help='Only cases with these words: "sign and not slow".')] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only cases with this tag, or another such.")] = None,
    shard: Annotated[str | None, typer.Option("--shard", help="Only a part: 2/5 is the second of five.")] = None,
    last_failed: Annotated[bool, typer.Option("--last-failed", help="Only what failed the last time.")] = False,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Begin nothing more once a case failed.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=64, help="Cases at the same time, at most.")] = 8,
    junit: Annotated[str | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    html: Annotated[str | None, typer.Option("--html", help="Write one HTML page to this file.")] = None,
    record: Annotated[
        str | None, typer.Option("--record", help="Keep what the service answers in this folder.")
    ] = None,
    replay: Annotated[str | None, typer.Option("--replay", help="Let recordings of this folder answer.")] = None,
    handlers: Annotated[str, typer.Option("--handlers", help="With --replay: real (default) or recorded.")] = "real",
    keep: Annotated[bool, typer.Option("--keep", help="Leave what was made on the service.")] = False,
) -> CommandResult:
    """Run test files and compare what the agent asks for and says with what is expected."""
    from agentfn.cli._testing import Recordings, Reports, TestRun, page_of, require_writable, write_reports

    if handlers not in ("real", "recorded"):
        raise UsageError(f"--handlers {handlers}: real or recorded")
    if record is not None and replay is not None:
        raise UsageError("--record and --replay exclude each other", hint="choose one")
    if replay is not None and not Path(replay).is_dir():
        raise UsageError(
            f"there is no folder {replay} with recordings", code="file_not_found", hint="--record makes it"
        )
    from agentfn.cases.running.schedule import Options

    cases = _chosen(ctx, paths, keyword, tuple(tag or ()), shard, last_failed=last_failed)
    reports, recordings = Reports(junit, html), Recordings(record, replay, handlers == "real")
    require_writable(reports, recordings)
    run = TestRun(ctx, cases, recordings, keep=keep)
    many = f"{len(cases)} cases" if len(cases) > 1 else "1 case"
    ctx.console.say(f"{many} on {run.surroundings.backend}, run {run.surroundings.run}")
    result = run.go(Options(jobs, fail_fast))
    context = run.context(page_of(result, reports, run.surroundings.home))
    write_reports(result, context, reports, ctx.env, ctx.console)
    return _ended(ctx, run, result, context)


def _chosen(
    ctx: AppContext,
    paths: list[str],
    keyword: str | None,
    tags: tuple[str, ...],
    shard: str | None,
    *,
    last_failed: bool,
) -> list[AnyCase]:
    from agentfn.cases.read import Sources
    from agentfn.cases.select import Selection, collect, read_shard, select
    from agentfn.cli._testing import load_agent

    selection = Selection(keyword, tags, read_shard(shard) if shard is not None else None, last_failed)
    found = collect(paths, Sources(ctx.env, lambda path: load_agent(ctx, path)))
    cases = select(found, selection, ctx.settings().home)
    if not cases:
        told = f"no case was selected, of {len(found)}" if found else "no test file there, so no case was selected"
        hint = "-k, --tag and --shard narrow down; test files are called test_*.yaml"
        if found and last_failed:
            told, hint = f"{told}: none that is left failed the last time", "leave out --last-failed to run them"
        raise InvalidFileError([Finding(paths[0], 0, 0, "nothing-selected", told)], hint=hint)
    return cases


def _ended(ctx: AppContext, run: TestRun, result: RunResult, context: Context) -> CommandResult:
    from agentfn.cases.report.data import as_data
    from agentfn.cases.select import remember
    from agentfn.cli._testing import show

    remember(result.results, run.surroundings.home)
    for item in result.left:
        ctx.console.warn(
            f"not removed: {item.resource.label}: {item.why}; agentfn cleanup --run {result.run}{context.flags}"
        )
    if context.backend == "local":
        ctx.console.say("answered by the embedded service, which is no language model")
    if result.interrupted:
        if not ctx.json:
            show(ctx.console, result, context)
        interrupted = InterruptedRunError("interrupted: what has not run yet neither passed nor failed")
        interrupted.data = as_data(result, context)
        raise interrupted
    errors = _errors(result) if ctx.json else ()
    return CommandResult(
        as_data(result, context),
        result.exit_code,
        render=lambda console: show(console, result, context),
        errors=errors,
    )


def _errors(result: RunResult) -> tuple[AgentfnError, ...]:
    """Return an error of the envelope for each case that did not pass."""
    found: list[AgentfnError] = []
    for case in result.results:
        failed = case.failed_attempt
        if case.verdict == "failed" and failed is not None:
            message = f"{case.case.name}: {failed.failures[0].message}"
            found.append(AgentfnError(message, code="case_failed", location=case.case.location))
        elif case.verdict == "could_not_run" and case.error is not None:
            found.append(case.error)
    return tuple(found)
