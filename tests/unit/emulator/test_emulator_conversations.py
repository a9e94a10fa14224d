"""Conversations and their items (foundry.md §3)."""

from __future__ import annotations

import re

import pytest


def message(text):
    return {"role": "user", "content": text}


def test_a_conversation_and_its_items_share_a_partition_key(service):
    made = service.openai("POST", "conversations", {"items": [message("hi")], "metadata": {"a": "b"}}).json
    assert re.fullmatch(r"conv_[0-9a-f]{16}00[A-Za-z0-9]{32}", made["id"])
    assert made == {"id": made["id"], "object": "conversation", "metadata": {"a": "b"}, "created_at": 1_800_000_000}
    (item,) = service.items(made["id"])
    assert item["id"].startswith("msg_" + made["id"][5:23])
    assert item["content"] == [{"type": "input_text", "text": "hi"}]
    assert (item["type"], item["status"]) == ("message", "completed")


def test_metadata_is_replaced(service):
    identity = service.conversation(metadata={"a": "b"})
    assert service.openai("POST", f"conversations/{identity}", {"metadata": {"c": "d"}}).json["metadata"] == {"c": "d"}
    assert service.openai("GET", f"conversations/{identity}").json["metadata"] == {"c": "d"}


def test_a_deleted_conversation_is_gone_with_its_items(service):
    identity = service.conversation(items=[message("hi")])
    gone = service.openai("DELETE", f"conversations/{identity}").json
    assert gone == {"object": "conversation.deleted", "deleted": True, "id": identity}
    for method, path in (("GET", ""), ("GET", "/items"), ("DELETE", ""), ("POST", "")):
        refused = service.openai(method, f"conversations/{identity}{path}", {} if method == "POST" else None)
        assert (refused.status, refused.error["code"]) == (404, "not_found")
        assert refused.error["message"] == f"Conversation '{identity}' not found"


def test_an_invented_id_is_malformed(service):
    refused = service.openai("GET", "conversations/conv_mine")
    assert refused.status == 400
    assert refused.error["message"] == "Invalid conversation id 'conv_mine', Malformed identifier."
    assert service.ask("hi", conversation="conv_mine").status == 400


def test_items_are_added_read_and_deleted_one_by_one(service):
    identity = service.conversation()
    added = service.openai("POST", f"conversations/{identity}/items", {"items": [message("a"), message("b")]}).json
    first, second = added["data"]
    assert (added["first_id"], added["last_id"], added["has_more"]) == (first["id"], second["id"], False)
    assert service.openai("GET", f"conversations/{identity}/items/{first['id']}").json == first
    shown = service.openai("DELETE", f"conversations/{identity}/items/{first['id']}").json
    assert shown["object"] == "conversation"
    assert service.items(identity) == [second]
    assert service.openai("GET", f"conversations/{identity}/items/{first['id']}").status == 404
    assert service.openai("DELETE", f"conversations/{identity}/items/{first['id']}").status == 404


def test_items_come_in_pages_newest_first(service):
    identity = service.conversation(items=[message(str(n)) for n in range(5)])

    def texts(query):
        page = service.openai("GET", f"conversations/{identity}/items?{query}").json
        return [item["content"][0]["text"] for item in page["data"]], page["last_id"], page["has_more"]

    newest, cursor, more = texts("limit=2")
    assert (newest, more) == (["4", "3"], True)
    middle, cursor, more = texts(f"limit=2&after={cursor}")
    assert (middle, more) == (["2", "1"], True)
    last, cursor, more = texts(f"limit=2&after={cursor}")
    assert (last, more) == (["0"], False)
    assert cursor is not None
    assert texts(f"after={cursor}") == ([], None, False)
    assert texts("item_type=function_call") == ([], None, False)


def test_twenty_items_at_most(service):
    too_many = {"items": [message("x")] * 21}
    for path in ("conversations", f"conversations/{service.conversation()}/items"):
        error = service.openai("POST", path, too_many).error
        assert (error["code"], error["param"]) == ("invalid_payload", "/items")
        assert error["message"] == "maxItems: Value should have at most 20 items"


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ("text only", None),
        ([5], None),
        ([{"role": "user"}], "items[0].content"),
        ([{"content": "x"}], "items[0].role"),
        ([{"role": "user", "content": 5}], "items[0].content"),
        ([{"role": "user", "content": ["x"]}], "items[0].content[0]"),
        ([{"type": 5}], "items[0].type"),
        ([{"type": "function_call_output", "output": "x"}], "items[0].call_id"),
        ([{"type": "function_call_output", "call_id": "c"}], "items[0].output"),
        ([{"type": "function_call_output", "call_id": "c", "output": None}], "items[0].output"),
        ([{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}], "items[0].arguments"),
    ],
)
def test_items_of_the_wrong_shape_are_refused_by_place(service, items, param):
    if items == "text only":
        assert service.openai("POST", "conversations", {"items": items}).status == 200  # one user message
        return
    refused = service.openai("POST", "conversations", {"items": items})
    assert refused.status == 400, refused.text
    if param:
        assert refused.error["param"] == param


def test_conversations_are_listed_by_the_agent_that_answered(service):
    service.make_agent(name="other")
    first, second = service.conversation(), service.conversation()
    service.ask("horoscope of Leo", conversation=first)

    def listed(query=""):
        return [entry["id"] for entry in service.openai("GET", f"conversations{query}").json["data"]]

    assert listed() == [second, first]
    assert listed("?agent_name=bot") == [first]
    assert listed("?agent_id=bot:1") == [first]
    assert listed("?agent_name=other") == []
