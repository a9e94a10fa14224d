"""Writes a transcript as text, JSON, Markdown or one self-contained HTML page."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

from agentfn.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentfn.model import Entry

_TITLE = {"user": "user", "agent": "agent", "call": "call", "output": "output"}


def _title(entry: Entry) -> str:
    title = _TITLE.get(entry.kind, entry.kind)
    name = f" {entry.function}" if entry.function else ""
    call = f" [{entry.call_id}]" if entry.call_id else ""
    return visible(f"{title}{name}{call}", multiline=False)


def as_text(conversation: str, agent: str | None, entries: Sequence[Entry]) -> str:
    """Return one block an entry; text of several lines is indented."""
    del conversation, agent
    lines = []
    for entry in entries:
        body = visible(entry.text).replace("\n", "\n    ")
        lines.append(f"{_title(entry)}: {body}")
    return "\n".join(lines)


def _plain(entry: Entry) -> dict[str, str]:
    values = entry._asdict()
    return {key: value for key, value in values.items() if value is not None and key != "raw"}


def as_json(conversation: str, agent: str | None, entries: Sequence[Entry]) -> str:
    """Return the whole transcript as one JSON document."""
    return json.dumps({"conversation": conversation, "agent": agent, "entries": [_plain(e) for e in entries]}, indent=2)


def as_jsonl(conversation: str, agent: str | None, entries: Sequence[Entry]) -> str:
    """Return one JSON object an entry."""
    del conversation, agent
    return "\n".join(json.dumps(_plain(entry)) for entry in entries)


def as_markdown(conversation: str, agent: str | None, entries: Sequence[Entry]) -> str:
    """Return Markdown in which every text stands in a fence that it cannot close."""
    parts = [f"# Conversation {conversation}" + (f" with {agent}" if agent else "")]
    for entry in entries:
        text = visible(entry.text)
        fence = "`" * max(3, 1 + _longest_run(text))
        parts.append(f"## {html.escape(_title(entry), quote=False)}\n\n{fence}\n{text}\n{fence}")
    return "\n\n".join(parts)


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}"
    "section{margin:1rem 0;padding:.5rem 1rem;border-left:4px solid #bbb}section.user{border-color:#36c}"
    "section.agent{border-color:#2a7}section.call,section.output{border-color:#c83}"
    "h2{font-size:.9rem;margin:0;color:#666}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.25rem 0}"
)


def as_html(conversation: str, agent: str | None, entries: Sequence[Entry]) -> str:
    """Return one page with no script and nothing to fetch; every text is escaped."""
    title = html.escape(f"Conversation {conversation}" + (f" with {agent}" if agent else ""))
    body = "\n".join(
        f'<section class="{html.escape(_TITLE.get(e.kind, "other"))}"><h2>{html.escape(_title(e))}</h2>'
        f"<pre>{html.escape(visible(e.text))}</pre></section>"
        for e in entries
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n{body}\n</body></html>"
    )


WRITERS: dict[str, Callable[[str, str | None, Sequence[Entry]], str]] = {
    "text": as_text,
    "json": as_json,
    "jsonl": as_jsonl,
    "md": as_markdown,
    "html": as_html,
}
