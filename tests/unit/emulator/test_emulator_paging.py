"""Pages of a list: whoever follows the cursors sees everything once, whatever the size of a page."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentfn.emulator.http import Request
from agentfn.emulator.responses.paging import page


def ask(entries, **query):
    request = Request("GET", (), query, {}, b"", "id")
    return page(request, entries, str, lambda entry: {"id": entry}).body


@given(count=st.integers(0, 30), limit=st.integers(1, 12), order=st.sampled_from(["asc", "desc"]))
def test_following_the_cursor_shows_everything_once(count, limit, order):
    entries = [f"e{number}" for number in range(count)]
    seen: list[str] = []
    query: dict[str, str] = {}
    while True:
        shown = ask(entries, limit=str(limit), order=order, **query)
        seen += [entry["id"] for entry in shown["data"]]
        assert (shown["first_id"], shown["last_id"]) == (
            (shown["data"][0]["id"], shown["data"][-1]["id"]) if shown["data"] else (None, None)
        )
        if not shown["has_more"]:
            break
        assert len(shown["data"]) == limit
        query = {"after": shown["last_id"]}
    assert seen == (entries if order == "asc" else entries[::-1])


@given(count=st.integers(1, 30), limit=st.integers(1, 12), index=st.integers(0, 29))
def test_before_gives_what_stands_right_in_front(count, limit, index):
    entries = [f"e{number}" for number in range(count)]
    index %= count
    shown = ask(entries, limit=str(limit), order="asc", before=entries[index])
    assert [entry["id"] for entry in shown["data"]] == entries[max(0, index - limit) : index]
    assert shown["has_more"] is (index > limit)


def test_after_decides_where_both_cursors_are_given():
    assert [e["id"] for e in ask(["a", "b", "c"], order="asc", after="b", before="b")["data"]] == ["c"]
