"""Nothing that a model or a function wrote is executed by a terminal or a CI."""

from __future__ import annotations

import re
import time

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
        ("next\u0085line\u2028s", "next\\x85line\\u2028s"),
        ("tags \U000e0041", "tags \\U000e0041"),
        ("::1", ":\\:1"),
        ("\n\n \t:::: x", "\n\n \t:\\::: x"),
        ("\u3000::error::x", "\u3000:\\:error::x"),
        ("\u200d:\u200d:error::x", "\u200d:\\\u200d:error::x"),
        ("see ###[error]x", "see ##\\#[error]x"),
        ("#\u200d#VSO[x]", "#\\\u200d#VSO[x]"),
        ("## Heading\n### Another", "## Heading\n### Another"),
        (
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u270c\ufe0f",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u270c\ufe0f",
        ),
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


COMMANDS = st.lists(
    st.sampled_from(["::", "##", "#", "vso[", "[", "error", " ", "\n", "\t", "\u200d", "\ufe0f", "\r", "\x1b"])
).map("".join)


@given(st.text() | COMMANDS)
def test_nothing_acts_whatever_comes(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    for line in shown.splitlines():
        assert not line.lstrip().startswith("::")
        assert "##vso[" not in line
        assert "##[" not in line
    assert visible(shown) == shown


#: Without controls and without marks that are nothing to see; the commands themselves are left out too.
PRINTABLE = st.text(
    st.characters(
        exclude_categories=["C", "Zl", "Zp"], exclude_characters="\u034f" + "".join(map(chr, range(0xFE00, 0xFE10)))
    )
).filter(lambda text: "::" not in text and "##" not in text)


@given(PRINTABLE)
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_many_empty_lines_take_no_time() -> None:
    started = time.monotonic()
    assert visible("\n" * 300_000 + "x").count("\n") == 300_000
    assert time.monotonic() - started < 5, "each line used to look at all that follow"


def test_short_says_how_much_there_was() -> None:
    assert short("a  b\nc", 10) == "a b c"
    assert short("x" * 300, 5) == "xxxxx… (300 characters)"
