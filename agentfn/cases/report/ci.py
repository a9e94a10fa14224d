"""What a build service shows beside the code: GitHub's annotations and step summary, Azure Pipelines' issues.

These are the commands that `visible` breaks up everywhere else; whatever came from a model is escaped into their data.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

from agentfn.cases.report.data import counts
from agentfn.cases.report.explain import TITLES, Context, explain, rate, summary
from agentfn.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentfn.cases.results import CaseResult, RunResult

#: Annotations that GitHub shows of one kind in one step; more would be dropped without a word.
MOST_ANNOTATIONS = 10
#: The most that GitHub takes as a step's summary, in bytes.
MOST_SUMMARY = 1024 * 1024
_SUMMARY_LINES = 40


def _broken(result: RunResult) -> Iterator[tuple[int, CaseResult]]:
    for number, case in enumerate(result.results, 1):
        if case.verdict in ("failed", "could_not_run"):
            yield number, case


def github_annotations(result: RunResult, context: Context, workspace: Path | None = None) -> list[str]:
    """Return a line for each case that did not pass, which GitHub shows at the case's own line.

    `workspace` is where the repository lies: GitHub knows files from there, wherever the command runs.
    """
    found = []
    for number, case in _broken(result):
        title = f"{TITLES[case.verdict]}: {case.case.name or case.case.file}"
        place = f"file={_property(_from(workspace, case))},line={max(1, case.case.line)},title={_property(title)}"
        found.append(f"::error {place}::{_data(chr(10).join(explain(case, context, number)))}")
    if len(found) > MOST_ANNOTATIONS:
        more = len(found) - MOST_ANNOTATIONS + 1
        found = [*found[: MOST_ANNOTATIONS - 1], f"::error::{more} more cases did not pass; the step's summary has all"]
    return found


def azure_issues(result: RunResult, context: Context) -> list[str]:
    """Return a line for each case that did not pass, which Azure Pipelines lists with its place."""
    found = []
    for number, case in _broken(result):
        told = f"{TITLES[case.verdict]}: {case.case.name}\n" + "\n".join(explain(case, context, number))
        place = f"type=error;sourcepath={_azure(_posix(case))};linenumber={max(1, case.case.line)}"
        found.append(f"##vso[task.logissue {place}]{_azure(told, data=True)}")
    return found


def github_summary(result: RunResult, context: Context) -> str:
    """Return Markdown: a table of all cases, and why each that did not pass did not."""
    lines = [f"## agentfn: {summary(counts(result), result.seconds)}", ""]
    lines += [f"Backend {_cell(context.backend)}, run `{context.run}`.", ""]
    lines += ["| case | verdict | seconds |", "|---|---|---|"]
    for case in result.results:
        name = _cell(case.case.name or str(case.case.file))
        repeated = f" ({_cell(rate(case))})" if rate(case) else ""
        lines.append(f"| {name} | {TITLES[case.verdict]}{repeated} | {case.seconds:.2f} |")
    for number, case in _broken(result):
        told = explain(case, context, number)[:_SUMMARY_LINES]
        text = html.escape("\n".join(told))
        lines += ["", f"### {_cell(case.case.name or str(case.case.file))}", "", f"<pre>{text}</pre>"]
    found = "\n".join(lines) + "\n"
    data = found.encode("utf-8", "replace")
    return found if len(data) <= MOST_SUMMARY else data[: MOST_SUMMARY - 100].decode("utf-8", "ignore") + "…\n"


def append_summary(path: Path, text: str) -> None:
    """Add text to the file that GitHub reads a step's summary from."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _posix(case: CaseResult) -> str:
    return Path(case.case.file).as_posix()


def _from(workspace: Path | None, case: CaseResult) -> str:
    path = Path(case.case.file).resolve()
    return path.relative_to(workspace).as_posix() if workspace and path.is_relative_to(workspace) else _posix(case)


def _cell(text: str) -> str:
    """Return text for a table's cell, in which nothing is markup."""
    escaped = html.escape(visible(text, multiline=False), quote=False)
    return "".join(f"\\{c}" if c in "|`*_[]\\~#" else c for c in escaped)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text, multiline=False)).replace(":", "%3A").replace(",", "%2C")


def _azure(text: str, *, data: bool = False) -> str:
    text = (text if data else visible(text, multiline=False)).replace("%", "%AZP25")
    return text.replace(";", "%3B").replace("\r", "%0D").replace("\n", "%0A").replace("]", "%5D")
