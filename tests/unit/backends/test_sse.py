"""Server-sent events give the same objects however the bytes are cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.backends.sse import BrokenEventError, events

TEXT = "naïve ✅ \u2028 \x85 end"
STREAM = (
    ": keep-alive\r\n\r\n"
    'event: response.output_item.added\r\ndata:{"type":"a","n":1}\r\n\r\n'
    ": PROCESSING\n\n"
    f"event: x\ndata: {json.dumps({'type': 'b', 'text': TEXT}, ensure_ascii=False)}\n\n"
    'id: 7\ndata: {"type":\ndata: "c"}\n\n'
    'event: named.by.line\ndata: {"n": 2}\n\n'
    "data: [DONE]\n\n"
    "data: not json\n\n"
    'data: {"type":"cut off"}'
).encode()
EXPECTED = [
    {},
    {"type": "a", "n": 1},
    {},
    {"type": "b", "text": TEXT},
    {"type": "c"},
    {"n": 2, "type": "named.by.line"},
]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_any_chunking_gives_the_same_events(size: int) -> None:
    assert list(events(cut(STREAM, size))) == EXPECTED


@given(st.lists(st.binary(max_size=40)))
def test_any_bytes_are_survived(chunks: list[bytes]) -> None:
    try:
        assert all(isinstance(event, dict) for event in events(chunks))
    except BrokenEventError:
        assert b"{" in b"".join(chunks)


def test_half_an_object_is_told_and_not_passed_over() -> None:
    found = events([b'data: {"type":"a"}\n\ndata: {"type":"b", "te\n\ndata: {"type":"c"}\n\n'])
    assert next(found) == {"type": "a"}
    with pytest.raises(BrokenEventError):
        next(found)


objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
)


@given(st.lists(objects), st.integers(1, 9), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_goes_in_comes_out(values: list[dict[str, Any]], size: int, end: str) -> None:
    text = "".join(f"data: {json.dumps(value, ensure_ascii=False)}{end}{end}" for value in values)
    assert list(events(cut(text.encode(), size))) == values


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_line_end_that_is_cut_in_two_ends_one_line(size: int) -> None:
    data = b'event: named\r\ndata: {"n":\r\ndata: 1}\r\n\r\n'
    assert list(events(cut(data, size))) == [{"n": 1, "type": "named"}]


def test_a_byte_order_mark_at_the_start_is_no_part_of_the_first_line() -> None:
    assert list(events([b"\xef\xbb", b'\xbfdata: {"n": 1}\n\n'])) == [{"n": 1}]
