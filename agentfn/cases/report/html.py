"""The report as one self-contained HTML page: nothing to fetch, no script, every text escaped."""

from __future__ import annotations

import html
from importlib.resources import files
from typing import TYPE_CHECKING

from agentfn.cases.report.data import counts
from agentfn.cases.report.explain import TITLES, Context, anchor, explain, rate, summary
from agentfn.cases.report.timeline import Moment, moments
from agentfn.visible import visible

if TYPE_CHECKING:
    from agentfn.cases.results import CaseResult, Judged, RunResult

#: Forbids what the page never does, should a text ever get past the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_LABELS = {"passed": "passed", "failed": "failed", "could_not_run": "could not run", "not_run": "not run"}


def as_html(result: RunResult, context: Context) -> str:
    """Return the page."""
    style = files("agentfn.cases.report").joinpath("page.css").read_text("utf-8")
    tally = counts(result)
    listed = "".join(f"<li><b>{count}</b>{_LABELS[verdict]}</li>" for verdict, count in tally.items())
    about = f"{context.backend} ({context.endpoint}), run {context.run}"
    if context.backend == "local":
        about += "; answered by the embedded service, which is no language model"
    body = "\n".join(_case(case, context, number) for number, case in enumerate(result.results, 1))
    title = f"agentfn: {summary(tally, result.seconds)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{style}</style></head>\n"
        f'<body><h1>{_text(title)}</h1><p class="about">{_text(about)}</p><ul class="counts">{listed}</ul>\n'
        f"{body}\n</body></html>\n"
    )


def _text(text: str) -> str:
    return html.escape(visible(text))


def _case(result: CaseResult, context: Context, number: int) -> str:
    case = result.case
    is_open = " open" if result.verdict in ("failed", "could_not_run") else ""
    why = explain(result, context._replace(page=None), number)
    told = f'<pre class="why">{html.escape(chr(10).join(why))}</pre>' if why else ""
    if result.verdict == "passed" and rate(result):
        told = f'<pre class="why">{_text(rate(result))}</pre>'
    attempts = "".join(_attempt(judged, len(result.attempts)) for judged in result.attempts)
    return (
        f'<details class="{result.verdict}" id="{anchor(number)}"{is_open}><summary>'
        f'<span class="name">{_text(case.name or "(the whole file)")}</span>'
        f'<span class="verdict">{_text(TITLES[result.verdict])}</span>'
        f'<span class="place">{_text(case.location)}</span>'
        f'<span class="time">{result.seconds:.2f} s</span></summary>'
        f'<div class="inside">{told}{attempts}</div></details>'
    )


def _attempt(judged: Judged, of: int) -> str:
    attempt = judged.attempt
    title = ""
    if of > 1:
        verdict = "passed" if judged.passed else "could not run" if attempt.error is not None else "failed"
        title = f"<h2>attempt {attempt.number}: {verdict}</h2>"
    found = moments(attempt)
    whole = max([moment.at + moment.seconds for moment in found] + [0.001])
    return f'{title}<ol class="timeline">{"".join(_moment(moment, whole) for moment in found)}</ol>'


def _moment(moment: Moment, whole: float) -> str:
    left, width = 100 * moment.at / whole, 100 * moment.seconds / whole
    left = min(left, 99.0)
    return (
        f'<li class="{moment.kind}"><span class="at">+{moment.at:.3f} s</span>'
        f'<span class="what">{_text(moment.title)}</span><pre>{_text(moment.text)}</pre>'
        f'<span class="bar"><i style="left:{left:.1f}%;width:{min(width, 100 - left):.1f}%"></i></span></li>'
    )
