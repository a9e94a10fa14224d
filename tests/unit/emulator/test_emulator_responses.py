"""Responses: a turn in its several forms, what is refused and in which words (foundry.md §4, §5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.emulator.in_process import HOROSCOPE, call_ids, output, said

QUESTION = "What is my horoscope? I am an Aquarius."


def test_a_turn_on_a_conversation(service):
    conversation = service.conversation()
    asked = service.ask(QUESTION, conversation=conversation, metadata={"turn": "t1"})
    body = asked.json
    assert asked.status == 200
    assert asked.headers["x-agentfn-model"] == "stand-in"
    assert (body["status"], body["error"], body["conversation"]) == ("completed", None, {"id": conversation})
    assert body["metadata"] == {"turn": "t1"}
    assert body["agent_reference"] == {"type": "agent_reference", "name": "bot", "version": "1"}
    assert body["tools"] == [HOROSCOPE]
    assert "previous_response_id" not in body
    (call,) = body["output"]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == (
        "function_call",
        "get_horoscope",
        {"sign": "Aquarius"},
    )
    done = service.ask([output(call["call_id"])], conversation=conversation)
    assert said(done) == "get_horoscope gave otter"
    items = service.items(conversation)
    assert [item["type"] for item in items] == ["message", "function_call", "function_call_output", "message"]
    assert [item.get("response_id") for item in items] == [None, body["id"], None, done.json["id"]]
    assert items[1]["agent_reference"] == body["agent_reference"]
    assert service.openai("GET", f"responses/{body['id']}").json == body


def test_a_turn_by_previous_response_and_its_branches(service):
    first = service.ask(QUESTION)
    (call_id,) = call_ids(first)
    for text in ("one", "two"):
        done = service.ask([output(call_id, text)], previous_response_id=first.json["id"])
        assert said(done) == f"get_horoscope gave {text}"
        assert done.json["previous_response_id"] == first.json["id"]
        assert "conversation" not in done.json


@pytest.mark.parametrize("given", [[], "", None])
def test_the_model_goes_on_where_the_history_stands(service, given):
    conversation = service.conversation(items=[{"role": "user", "content": QUESTION}])
    assert len(call_ids(service.ask(given, conversation={"id": conversation}))) == 1


def test_an_interrupted_turn_goes_on_with_outputs_that_arrived(service):
    conversation = service.conversation()
    (call_id,) = call_ids(service.ask(QUESTION, conversation=conversation))
    service.openai("POST", f"conversations/{conversation}/items", {"items": [output(call_id)]})
    assert said(service.ask([], conversation=conversation)) == "get_horoscope gave otter"


def test_output_may_be_content_parts(service):
    first = service.ask(QUESTION)
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    done = service.ask([output(call_ids(first)[0], parts)], previous_response_id=first.json["id"])
    assert said(done) == "get_horoscope gave a\nb"


def test_a_pinned_version_answers(service):
    service.make_agent({**HOROSCOPE, "name": "other_horoscope"})
    reference = {"type": "agent_reference", "name": "bot", "version": "1"}
    body = {"agent_reference": reference, "input": QUESTION}
    assert service.openai("POST", "responses", body).json["output"][0]["name"] == "get_horoscope"
    assert service.ask(QUESTION).json["agent_reference"]["version"] == "2"


def test_without_an_agent_model_and_tools_stand_in_the_request(service):
    body = {"model": "m", "input": QUESTION, "tools": [HOROSCOPE]}
    made = service.openai("POST", "responses", body).json
    assert (made["agent_reference"], made["model"], len(made["output"])) == (None, "m", 1)
    assert service.openai("POST", "responses", {"input": "hi"}).error["param"] == "model"


def test_a_call_that_comes_back_with_its_output_is_not_kept_twice(service):
    """A documented sample sends the call items back together with previous_response_id."""
    first = service.ask(QUESTION)
    call = first.json["output"][0]
    done = service.ask([call, output(call["call_id"])], previous_response_id=first.json["id"])
    assert done.status == 200
    listed = service.openai("GET", f"responses/{done.json['id']}/input_items").json
    assert [item["type"] for item in listed["data"]] == ["function_call_output"]


def test_what_is_not_stored_can_be_carried_by_the_client(service):
    first = service.ask(QUESTION, store=False)
    assert service.openai("GET", f"responses/{first.json['id']}").status == 404
    call = first.json["output"][0]
    user = {"role": "user", "content": QUESTION}
    assert said(service.ask([user, call, output(call["call_id"])], store=False)) == "get_horoscope gave otter"
    refused = service.ask([output(call["call_id"])], previous_response_id=first.json["id"])
    assert refused.error["code"] == "previous_response_not_found"


def test_not_stored_on_a_conversation_reads_its_history_and_leaves_it(service):
    conversation = service.conversation(items=[{"role": "user", "content": QUESTION}])
    assert len(call_ids(service.ask(conversation=conversation, store=False))) == 1
    assert len(service.items(conversation)) == 1


# --- refusals ---


def test_the_older_field_is_refused_unless_loose(service, make_service):
    body = {"agent": {"type": "agent_reference", "name": "bot"}, "input": QUESTION}
    error = service.openai("POST", "responses", body).error
    assert error["code"] == "invalid_payload"
    assert error["message"] == "The 'agent' property is deprecated. Use 'agent_reference' instead."
    assert make_service(loose=True).openai("POST", "responses", body).status == 200


def test_settings_beside_an_agent_are_refused_one_by_one(service):
    error = service.ask("hi", model="m", temperature=1, tools=[], instructions=None).error
    assert (error["code"], error["message"]) == ("invalid_payload", "Invalid payload")
    assert [detail["param"] for detail in error["details"]] == ["model", "tools", "temperature"]
    assert {detail["message"] for detail in error["details"]} == {"Not allowed when agent is specified."}


def test_an_unanswered_call_poisons_the_conversation(service):
    conversation = service.conversation()
    (call_id,) = call_ids(service.ask(QUESTION, conversation=conversation))
    for given in ("another question", [], [{"role": "user", "content": "x"}]):
        refused = service.ask(given, conversation=conversation)
        assert refused.status == 400
        assert refused.error == {
            "message": f"No tool output found for function call {call_id}.",
            "type": "invalid_request_error",
            "param": "input",
            "code": None,
        }
    assert len(service.items(conversation)) == 2


def test_outputs_for_unknown_or_answered_calls_are_refused(service):
    conversation = service.conversation()
    (call_id,) = call_ids(service.ask(QUESTION, conversation=conversation))
    twice = service.ask([output(call_id), output(call_id)], conversation=conversation)
    assert twice.error["message"] == f"No tool call found for function call output with call_id {call_id}."
    service.ask([output(call_id)], conversation=conversation)
    for other in (call_id, "call_unknown"):
        refused = service.ask([output(other)], conversation=conversation)
        assert refused.error["message"] == f"No tool call found for function call output with call_id {other}."
        assert (refused.status, refused.error["code"]) == (400, None)


def test_a_run_expires_ten_minutes_after_the_response_that_asked(service):
    conversation = service.conversation()
    (call_id,) = call_ids(service.ask(QUESTION, conversation=conversation))
    service.clock.now += 600
    early = service.ask([output("call_other")], conversation=conversation)
    assert early.error["code"] is None
    service.clock.now += 1
    refused = service.ask([output(call_id)], conversation=conversation)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (400, "run_expired", "input")
    assert call_id in refused.error["message"]


def test_a_tool_output_in_the_last_second_is_in_time(service):
    first = service.ask(QUESTION)
    service.clock.now += 600
    assert service.ask([output(call_ids(first)[0])], previous_response_id=first.json["id"]).status == 200


def test_an_output_that_is_too_long_is_refused(service):
    first = service.ask(QUESTION)
    long = "x" * 10_485_761
    refused = service.ask([output(call_ids(first)[0], long)], previous_response_id=first.json["id"])
    assert refused.error["code"] == "string_above_max_length"


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        ({"conversation": "conv_" + "0" * 50, "previous_response_id": "resp_x"}, 400, "exclude each other"),
        ({"conversation": "conv_" + "0" * 50}, 404, "Conversation 'conv_"),
        ({"conversation": {"id": 5}}, 400, "conversation must be an id"),
        ({"previous_response_id": "resp_nobody"}, 400, "Previous response with id 'resp_nobody' not found."),
        ({"agent": "nobody", "version": None}, 404, "Agent nobody doesn't exist"),
        ({"background": True, "store": False}, 400, "store"),
    ],
)
def test_requests_that_cannot_be(service, more, status, says):
    agent = more.pop("agent", "bot")
    refused = service.ask(QUESTION, agent=agent, **more)
    assert (refused.status, says in refused.error["message"]) == (status, True), refused.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("stream", "yes"),
        ("background", 1),
        ("store", "no"),
        ("metadata", []),
        ("metadata", {"a": 1}),
        ("previous_response_id", 5),
        ("conversation", 5),
        ("input", 5),
        ("input", [5]),
        ("agent_reference", "bot"),
        ("agent_reference", {"name": "bot"}),
        ("agent_reference", {"type": "agent_reference"}),
        ("agent_reference", {"type": "agent_reference", "name": "bot", "version": True}),
    ],
)
def test_fields_of_the_wrong_type_are_refused(service, field, value):
    assert service.ask(**{"said": QUESTION, field: value} if field != "input" else {"said": value}).status == 400


def test_nothing_to_answer_is_refused(service):
    nothing: tuple[Any, ...] = (None, "", [])
    for given in nothing:
        assert service.ask(given).error["message"] == "Missing required parameter: 'input'."


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"type": "object", "properties": {}}, "'additionalProperties' is required to be supplied and to be false."),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
            "Missing 'a'.",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object", "properties": {}}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "In context=('properties', 'a'), 'additionalProperties'",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "array"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "array schema missing items",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"allOf": [{"type": "string"}]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "'allOf' is not permitted",
        ),
    ],
)
def test_strict_schemas_are_checked_at_the_first_response(service, parameters, says):
    tool = {"type": "function", "name": "f", "strict": True, "parameters": parameters}
    service.make_agent({"type": "code_interpreter"}, tool, name="strict")
    refused = service.ask("f", agent="strict")
    assert (refused.status, refused.error["code"]) == (400, "invalid_function_parameters")
    assert refused.error["param"] == "tools[1].parameters"
    assert refused.error["message"].startswith("Invalid schema for function 'f': ")
    assert says in refused.error["message"]


def test_alternatives_at_the_root_are_refused_also_without_strict(service):
    service.make_agent({"type": "function", "name": "f", "parameters": {"anyOf": [{"type": "object"}]}}, name="root")
    assert "at the top level" in service.ask("f", agent="root").error["message"]


# --- what is kept ---


def test_responses_are_listed_filtered_and_deleted(service):
    conversation = service.conversation()
    first = service.ask("tell me a joke", conversation=conversation).json["id"]
    second = service.ask("tell me a joke").json["id"]

    def listed(query=""):
        return [entry["id"] for entry in service.openai("GET", f"responses{query}").json["data"]]

    assert listed() == [second, first]
    assert listed(f"?conversation_id={conversation}") == [first]
    assert listed("?agent_name=nobody") == []
    assert service.openai("DELETE", f"responses/{first}").json == {"id": first, "object": "response", "deleted": True}
    assert listed() == [second]
    missing = service.openai("GET", f"responses/{first}")
    assert missing.status == 404
    assert missing.error["message"] == f"Response with id '{first}' not found."
    assert service.openai("DELETE", f"responses/{first}").status == 404
    assert len(service.items(conversation)) == 2


def test_what_follows_a_deleted_response_still_stands(service):
    first = service.ask("hello").json["id"]
    second = service.ask("more", previous_response_id=first).json["id"]
    service.openai("DELETE", f"responses/{first}")
    assert service.ask("even more", previous_response_id=second).status == 200
    assert service.ask("more", previous_response_id=first).status == 400


def test_input_items_are_those_of_the_request(service):
    first = service.ask([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]).json["id"]
    listed = service.openai("GET", f"responses/{first}/input_items").json
    assert [item["content"][0]["text"] for item in listed["data"]] == ["b", "a"]


def test_call_ids_that_come_back_in_a_later_turn_wait_again(play):
    call = {"call": [{"name": "get_horoscope", "arguments": {"sign": "Leo"}, "id": "call_0"}]}
    service = play(call, {"say": "one"}, call, {"say": "two"})
    conversation = service.conversation()
    for word in ("one", "two"):
        assert call_ids(service.ask("again", conversation=conversation)) == ["call_0"]
        assert said(service.ask([output("call_0")], conversation=conversation)) == word


def test_lone_surrogates_and_other_characters_survive(play):
    service = play(
        {"call": [{"name": "get_horoscope", "raw": '{"sign": "\\ud83d"}'}]}, {"say": "é\u2028\ud83d{{output}}"}
    )
    first = service.ask("x", metadata={"k": "\ud83d"})
    assert first.json["output"][0]["arguments"] == '{"sign": "\\ud83d"}'
    done = service.ask([output(call_ids(first)[0], "\u0000\U0001f9a6")], previous_response_id=first.json["id"])
    assert said(done) == "é\u2028\ud83d\u0000\U0001f9a6"
