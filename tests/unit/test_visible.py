"""Nothing that a model or a function wrote is executed by a terminal or a CI."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.visible import short, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb", "a\\x0db"),
        ("evil \u202etxt", "evil \\u202etxt"),
        ("half \ud83d", "half \\ud83d"),
        ("::error file=x::y", ":\\:error file=x::y"),
        ("  ::warning::y", "  :\\:warning::y"),
        ("ok\n##vso[task.complete]", "ok\n#\\#vso[task.complete]"),
        ("tabs\tand\nlines stay", "tabs\tand\nlines stay"),
        ("naïve ✓ 東京 📊 a::b # ##", "naïve ✓ 東京 📊 a::b # ##"),
    ],
)
def test_what_would_act_is_shown_and_the_rest_stays(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_on_one_line_line_feeds_are_written_out() -> None:
    assert visible("a\nb", multiline=False) == "a\\nb"


@given(st.text())
def test_nothing_acts_whatever_comes(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    for line in shown.splitlines():
        assert not re.match(r"\s*::[A-Za-z]", line)
        assert "##vso[" not in line
    assert visible(shown) == shown


def test_short_says_how_much_there_was() -> None:
    assert short("a  b\nc", 10) == "a b c"
    assert short("x" * 300, 5) == "xxxxx… (300 characters)"
