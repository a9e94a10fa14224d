"""The report as JUnit XML, in the form that GitLab, Jenkins and Azure Pipelines read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from agentfn.cases.report.explain import Context, anchor, explain
from agentfn.cases.report.transcript import transcript
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cases.results import CaseResult, RunResult


def as_junit(result: RunResult, context: Context) -> str:
    """Return the run as XML: a suite a file; failed is a failure, could not run an error, not run skipped."""
    root = ET.Element("testsuites", name="agentfn", time=f"{result.seconds:.3f}")
    files = list(dict.fromkeys(case.case.file for case in result.results))
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for file in files:
        own = [(number, case) for number, case in enumerate(result.results, 1) if case.case.file == file]
        suite = ET.SubElement(root, "testsuite", name=_plain(str(file)))
        tally = {
            "tests": len(own),
            "failures": sum(case.verdict == "failed" for _, case in own),
            "errors": sum(case.verdict == "could_not_run" for _, case in own),
            "skipped": sum(case.verdict == "not_run" for _, case in own),
        }
        for key, value in tally.items():
            suite.set(key, str(value))
            totals[key] += value
        suite.set("time", f"{sum(case.seconds for _, case in own):.3f}")
        properties = ET.SubElement(suite, "properties")
        for name, told in (("backend", context.backend), ("endpoint", context.endpoint), ("run", context.run)):
            ET.SubElement(properties, "property", name=name, value=_plain(told))
        for number, case in own:
            suite.append(_case(case, context, number))
    for key, value in totals.items():
        root.set(key, str(value))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _case(result: CaseResult, context: Context, number: int) -> ET.Element:
    case = result.case
    element = ET.Element(
        "testcase",
        classname=_plain(Path(case.file).with_suffix("").as_posix().replace("/", ".")),
        name=_plain(case.name or "(the whole file)"),
        time=f"{result.seconds:.3f}",
        file=_plain(str(case.file)),
        line=str(case.line),
    )
    lines = explain(result, context, number)
    if result.verdict == "failed" and result.failed_attempt is not None:
        first = result.failed_attempt.failures[0]
        ET.SubElement(element, "failure", type=first.rule, message=_plain(first.message)).text = _text(lines)
    elif result.verdict == "could_not_run" and result.error is not None:
        error = result.error
        ET.SubElement(element, "error", type=error.code, message=_plain(error.message)).text = _text(lines)
    elif result.verdict == "not_run":
        ET.SubElement(element, "skipped", message="the run ended before this case")
    if result.attempts:
        shown = result.failed_attempt or result.attempts[-1]
        ET.SubElement(element, "system-out").text = _text(transcript(shown.attempt))
    if context.page is not None and result.has_transcript:
        properties = ET.SubElement(element, "properties")
        ET.SubElement(properties, "property", name="transcript", value=_plain(f"{context.page}#{anchor(number)}"))
    return element


def _plain(text: str) -> str:
    """Return text for an attribute: on one line, and without what XML has no place for."""
    return visible(text, multiline=False)


def _text(lines: list[str]) -> str:
    return "\n".join(visible(line) for line in lines)
