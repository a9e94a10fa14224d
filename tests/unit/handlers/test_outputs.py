"""Outputs: texts as they are, everything else as JSON; what cannot be sent is told with its place."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.backends.protocol import OutputLimit
from agentfn.handlers.outputs import BadOutput, content_parts, decode_output, size_problem, to_text
from agentfn.model import Outcome


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (False, "false"),
        (0.0, "0.0"),
        ([], "[]"),
        ({}, "{}"),
        ("", ""),
        (None, "null"),
        ("é✓", "é✓"),
        ({"é": [1]}, '{"é": [1]}'),
        (dt.date(2024, 1, 31), '"2024-01-31"'),
        ({"at": dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC)}, '{"at": "2024-01-31T10:00:00+00:00"}'),
        ({"total": Decimal("10.50")}, '{"total": 10.50}'),
        (Decimal("12345678901234567890.12"), "12345678901234567890.12"),
        ((1, [dt.time(9, 30)]), '[1, ["09:30:00"]]'),
        (12345678901234567890, "12345678901234567890"),
    ],
)
def test_a_value_becomes_the_text_that_is_sent(value: Any, text: str) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": [1, float("nan")]}, "the output.a[1] is nan"),
        (float("inf"), "the output is inf"),
        ({"a": b"x"}, "the output.a is bytes"),
        ({1: "a"}, "the key 1, which is no text"),
        ("half \ud83d", "half of a surrogate pair at character 5"),
        ({"a": "\ud83d"}, "the output.a holds half"),
        ({"a": Decimal("NaN")}, "the output.a is Decimal"),
        ([10**5000], "the output[0] is a number of too many digits"),
        (nested(5000), "the output is nested too deeply"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(BadOutput, match=told.replace("[", r"\[").replace("]", r"\]")):
        to_text(value)


@pytest.mark.parametrize(
    ("data", "text", "warned"),
    [
        (b"ok\n", "ok", False),
        (b"ok\r\n", "ok", False),
        (b"ok\n\n", "ok\n", False),
        (b"", "", False),
        (b"caf\xe9 ok", "caf\ufffd ok", True),
        (b"saved \xed\xa0\xbd\n", "saved \ufffd\ufffd\ufffd", True),
    ],
)
def test_bytes_become_text_less_one_line_end(data: bytes, text: str, warned: bool) -> None:
    decoded, warnings = decode_output(data, "utf-8")
    assert decoded == text
    assert bool(warnings) == warned


def test_another_encoding_may_be_named() -> None:
    assert decode_output(b"caf\xe9", "latin-1") == ("café", [])


@pytest.mark.parametrize("encoding", ["base64", "undefined", "no-such-encoding"])
def test_what_is_no_encoding_of_text_is_read_as_utf_8(encoding: str) -> None:
    text, warnings = decode_output("é\n".encode(), encoding)
    assert text == "é"
    assert warnings == [f"{encoding} is no encoding of text; the output was read as UTF-8"]


def test_half_a_surrogate_pair_of_another_encoding_is_replaced() -> None:
    text, warnings = decode_output(b"+2D0-", "utf-7")
    assert text == "\ufffd"
    assert "surrogate" in warnings[0]


def test_size_is_told_in_the_units_of_the_service() -> None:
    outcome = Outcome(output="é" * 10)
    assert size_problem(outcome, OutputLimit(10, "characters")) is None
    assert "20 bytes, the service takes 10" in str(size_problem(outcome, OutputLimit(10, "bytes")))
    assert size_problem(Outcome(error="x" * 11), OutputLimit(10, "characters")) is not None


def test_content_parts_are_checked() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]
    assert content_parts(parts) == parts
    wrong: list[Any] = [
        [],
        {},
        [{"type": "text", "text": "a"}],
        [{"type": "input_image"}],
        ["a"],
        [{"type": ["input_text"], "text": "a"}],
        [{"type": "input_text", "text": "a", "more": nested(5000)}],
    ]
    for bad in wrong:
        with pytest.raises(BadOutput):
            content_parts(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON.filter(lambda value: not isinstance(value, str)))
def test_json_is_written_as_python_writes_it(value: Any) -> None:
    assert to_text(value) == json.dumps(value, ensure_ascii=False)


@given(st.binary())
def test_any_bytes_become_text_that_can_be_sent(data: bytes) -> None:
    text, _ = decode_output(data, "utf-8")
    text.encode("utf-8")
