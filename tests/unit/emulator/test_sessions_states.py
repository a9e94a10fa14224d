"""Sessions of the Agents API: opened, listed, changed, cancelled, deleted, and their turns (openai-agents.md §3 to §5)."""

from __future__ import annotations

import pytest

from tests.unit.emulator.test_agents_api import ASK, SAY, TOOL, Api, message, result_of

NONE = {"environment": {"type": "none"}}
INLINE = {**NONE, "agent": {"model": "m", "tools": [TOOL]}, "input": "hi"}
CANCEL = {"type": "agent.session.input.cancel"}
USER = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}


@pytest.fixture
def api(make_service):
    return lambda *steps, **options: Api(make_service(*steps, **options))


# Opening -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "param", "told"),
    [
        ({"name": "n"}, "name", "Unknown parameter: 'name'."),
        ({"agent": {"model": "m", "name": "n"}}, "agent.name", "Unknown parameter: 'agent.name'."),
        ({"agent": {}}, "agent.model", "Missing required parameter: 'agent.model'."),
        ({"agent": None}, "agent_id", "Missing required parameter: 'agent_id'."),
        ({"agent": "m"}, "agent", "expected an object, but got a string"),
        ({"agent_id": 7}, "agent_id", "expected a string, but got an integer"),
        ({"environment": {}}, "environment.type", "Missing required parameter: 'environment.type'."),
        ({"environment": {"type": "moon"}}, "environment.type", "Invalid value: 'moon'"),
        ({"environment": "none"}, "environment", "expected an object"),
        ({"input": ""}, "input", "empty"),
        ({"input": []}, "input", "empty"),
        ({"input": "x" * 1_048_577}, "input", "maximum length 1048576"),
        ({"input": [{**USER, "role": "system"}]}, "input[0].role", "Invalid value: 'system'"),
        ({"input": [{"content": []}]}, "input[0].role", "Missing required parameter: 'input[0].role'."),
        ({"input": [USER, {"role": "user"}]}, "input[1].content", "Missing required parameter: 'input[1].content'."),
        ({"input": [{**USER, "type": "item"}]}, "input[0].type", "Invalid value: 'item'"),
        ({"input": [{**USER, "content": "hi"}]}, "input[0].content", "expected an array, but got a string"),
        ({"input": [{**USER, "content": [{"type": "input_file"}]}]}, "input[0].content[0].type", "Invalid value"),
        (
            {"input": [{**USER, "content": [{"type": "input_image"}]}]},
            "input[0].content[0].image_url",
            "Missing required",
        ),
        ({"stream": "yes"}, "stream", "expected a boolean, but got a string"),
        ({"review": "peer"}, "review", "Supported values are: 'none', 'auto_review'"),
        ({"prompt_cache_options": {"ttl": "1h"}}, "prompt_cache_options.ttl", "Supported values are: '30m', '12h'"),
    ],
)
def test_what_opens_no_session(api, change, param, told):
    here = api(SAY)
    refused = here("POST", "/agents/sessions", {**INLINE, **change})
    assert refused.status == 400
    assert refused.error["param"] == param
    assert told in refused.error["message"]
    assert here("GET", "/agents/sessions").json["data"] == []


def test_an_agent_that_is_not_there_opens_no_session(api):
    here = api()
    for identity in ("agent_never", "\ud800"):
        refused = here("POST", "/agents/sessions", {**NONE, "agent_id": identity, "input": "hi"})
        assert (refused.status, refused.error["type"]) == (404, "not_found_error")


def test_the_session_that_was_opened_is_shown_whole(api, clock):
    here = api(SAY)
    body = {**INLINE, "metadata": {"p": "x"}, "vault_ids": ["v"], "prompt_cache_options": {"ttl": "30m"}}
    made = here("POST", "/agents/sessions", body)
    assert made.status == 201
    agent, identity, now = made.json.pop("agent"), made.json["id"], int(clock.now)
    assert made.json | {"agent": None} == {
        "id": identity,
        "object": "agent.session",
        "created_at": now,
        "last_active_at": now,
        "metadata": {"p": "x"},
        "status": "in_progress",
        "required_actions": [],
        "error": None,
        "agent": None,
        "environment": {"type": "none"},
        "vault_ids": ["v"],
        "usage": None,
        "prompt_cache_options": {"ttl": "30m"},
    }
    assert identity.startswith("sess_")
    assert agent["id"].startswith("agent_")
    assert (agent["name"], agent["model"], agent["tools"]) == (None, "m", [{**TOOL, "defer_loading": False}])


def test_a_sessions_configuration_overrides_the_saved_one_and_hides_tool_search(api):
    here = api(SAY)
    saved = here.agent(name="n", tools=[TOOL, {"type": "tool_search"}], instructions="Help.", service_tier="flex")
    assert [t["type"] for t in here("GET", f"/agents/{saved}").json["tools"]] == ["function", "tool_search"]

    def opened(**own):
        body = {**NONE, "agent_id": saved, "agent": own, "input": "hi"}
        return here("POST", "/agents/sessions", body).json["agent"]

    whole = opened()
    assert (whole["id"], whole["name"], whole["instructions"], whole["service_tier"]) == (saved, "n", "Help.", "flex")
    assert [tool["name"] for tool in whole["tools"]] == ["get_weather"]
    assert opened(tools=None)["tools"] == []
    assert [tool["name"] for tool in opened(tools=[{**TOOL, "name": "other"}])["tools"]] == ["other"]
    assert opened(model="n")["model"] == "n"
    assert opened(model=None, service_tier=None)["model"] == "m"


def test_opening_twice_with_one_key_opens_two(api):
    here = api(SAY)
    agent = here.agent()
    body = {**NONE, "agent_id": agent, "input": "hi"}
    made = {here("POST", "/agents/sessions", body, idempotency_key="k").json["id"] for _ in range(2)}
    assert len(made) == 2


def test_space_is_something_to_say_and_messages_may_hold_images(api):
    here = api({"say": "one"})
    image = {"type": "input_image", "image_url": "https://example.com/otter.png"}
    spaces, several = here.open(" "), here.open(input=[{**USER, "type": "message"}, {**USER, "content": [image]}])
    assert here.items(spaces)[0]["content"] == [{"type": "input_text", "text": " "}]
    assert [item["content"] for item in here.items(several)[:2]] == [USER["content"], [image]]


# Lists ---------------------------------------------------------------------------------------------------------------


def test_sessions_are_found_by_all_their_metadata_and_by_agent(api):
    here = api(SAY)
    both = here.open(metadata={"run": "1", "a b": "x/y"})
    one = here.open(metadata={"run": "1"})
    other = here.open(metadata={"run": "2"})

    def found(query):
        return [session["id"] for session in here("GET", f"/agents/sessions?{query}").json["data"]]

    assert found("") == [other, one, both]
    assert found("metadata%5Brun%5D=1&order=asc") == [both, one]
    assert found("metadata[run]=1&metadata%5Ba%20b%5D=x%2Fy") == [both]
    assert found("metadata%5Brun%5D=") == []
    agent = here.state(one)["agent"]["id"]
    assert found(f"agent_id={agent}") == [one]
    assert found(f"agent_id={agent}&metadata%5Brun%5D=2") == []


def test_the_list_shows_what_has_become_of_sessions_that_nobody_looked_at(api, clock):
    here = api({**ASK, "delay": "5s"}, SAY)
    session = here.open()

    def listed():
        return [(one["id"], one["status"]) for one in here("GET", "/agents/sessions").json["data"]]

    assert listed() == [(session, "in_progress")]
    clock.now += 5
    assert listed() == [(session, "requires_action")]


@pytest.mark.parametrize("limit", ["0", "101", "-1"])
def test_the_list_of_turns_refuses_a_limit_where_that_of_items_takes_the_nearest(api, limit):
    here = api(SAY)
    session = here.open()
    refused = here("GET", f"/agents/sessions/{session}/turns?limit={limit}")
    assert (refused.status, refused.error["message"]) == (400, "limit must be between 1 and 100")
    assert here("GET", f"/agents/sessions/{session}/items?limit={limit}").status == 200


def test_an_unknown_place_in_a_list_is_told_as_each_list_does(api):
    here = api(SAY)
    session = here.open()
    turn = here("GET", f"/agents/sessions/{session}/turns").json["data"][0]["id"]
    for path in ("/agents", "/agents/sessions", f"/agents/sessions/{session}/turns"):
        assert (here("GET", f"{path}?after=x").status) == 404
    for path in (f"/agents/sessions/{session}/items", f"/agents/sessions/{session}/turns/{turn}/items"):
        refused = here("GET", f"{path}?after=x")
        assert (refused.status, refused.error["message"]) == (400, "Invalid session item ID in `after`")


def test_items_are_paged_and_those_of_a_turn_are_its_own(api):
    here = api({"say": "one"}, {"say": "two"})
    session = here.open()
    here.state(session)
    here.send(session, message("again"))
    first, second = here("GET", f"/agents/sessions/{session}/turns?order=asc").json["data"]
    items = here.items(session)
    assert [item["turn_id"] for item in items] == [first["id"]] * 2 + [second["id"]] * 2
    page = here("GET", f"/agents/sessions/{session}/items?order=asc&limit=3").json
    assert (page["data"], page["last_id"], page["has_more"]) == (items[:3], items[2]["id"], True)
    rest = here("GET", f"/agents/sessions/{session}/items?order=asc&after={page['last_id']}").json
    assert (rest["data"], rest["has_more"]) == (items[3:], False)
    own = here("GET", f"/agents/sessions/{session}/turns/{second['id']}/items?order=asc").json["data"]
    assert own == items[2:]
    assert here("GET", f"/agents/sessions/{session}/turns/turn_x/items").status == 404
    assert here("GET", f"/agents/sessions/{session}/turns/turn_x").status == 404
    assert here("GET", f"/agents/sessions/sess_x/turns/{first['id']}").status == 404


# Turns ---------------------------------------------------------------------------------------------------------------


def test_a_turn_is_shown_whole(api, clock):
    here = api({**SAY, "delay": "5s", "usage": {"input_tokens": 7, "output_tokens": 3}})
    session = here.open()
    began = int(clock.now)
    here.state(session)
    clock.now += 5
    agent = here.state(session)["agent"]["id"]
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10,
    }
    assert turn == {
        "id": turn["id"],
        "object": "agent.session.turn",
        "session_id": session,
        "agent_id": agent,
        "subagent_id": None,
        "status": "completed",
        "created_at": began,
        "started_at": began,
        "completed_at": began + 5,
        "error": None,
        "usage": usage,
    }
    assert here.state(session)["usage"] == usage
    assert here("GET", f"/agents/sessions/{session}/turns/{turn['id']}").json == turn


def test_a_failed_turn_leaves_its_session_idle_and_without_an_error(api):
    here = api({"fail": {"code": "server_overloaded", "message": "busy"}}, SAY)
    session = here.open()
    state = here.state(session)
    assert (state["status"], state["error"]) == ("idle", None)
    (turn,) = here("GET", f"/agents/sessions/{session}/turns").json["data"]
    assert (turn["status"], turn["error"]) == ("failed", {"code": "server_overloaded", "message": "busy"})
    assert here.send(session, message("again")).status == 202
    assert here.items(session)[-1]["content"][0]["text"] == "Sunny in Oslo."


def test_arguments_that_are_no_object_are_shown_as_what_they_are(api):
    here = api({"call": [{"name": "get_weather", "raw": "[1]"}, {"name": "get_weather", "raw": "{oh"}]}, SAY)
    session = here.open()
    assert [action["arguments"] for action in here.state(session)["required_actions"]] == [[1], "{oh"]


# Changes, cancellation, deletion -------------------------------------------------------------------------------------


def test_a_session_is_changed_in_what_may_change(api):
    here = api(SAY)
    session = here.open(metadata={"p": "x"})
    made = here.state(session)
    path = f"/agents/sessions/{session}"
    assert here("POST", path, {}).error["message"] == "At least one update field is required"
    assert here("POST", path, {"input": "x"}).error["param"] == "input"
    assert here("POST", path, {"agent": {"instructions": "x"}}).error["param"] == "agent.instructions"
    assert here("POST", path, {"agent": "m"}).error["param"] == "agent"
    assert here("POST", path, {"review": "peer"}).error["param"] == "review"
    assert here.state(session) == made
    changed = here("POST", path, {"metadata": {"q": "y"}, "agent": {"tools": [{**TOOL, "name": "other"}]}}).json
    assert changed["metadata"] == {"q": "y"}
    assert [tool["name"] for tool in changed["agent"]["tools"]] == ["other"]
    assert (changed["agent"]["id"], changed["agent"]["model"]) == (made["agent"]["id"], "m")
    assert here("POST", path, {"metadata": None}).json["metadata"] == {}
    assert here.state(session)["agent"] == changed["agent"]
    assert here("POST", "/agents/sessions/sess_x", {"metadata": {}}).status == 404


def test_a_change_of_tools_counts_from_the_next_model_step(api):
    here = api()  # the stand-in calls the first function that is there
    session = here.open()
    (first,) = here.state(session)["required_actions"]
    here("POST", f"/agents/sessions/{session}", {"agent": {"tools": [{**TOOL, "name": "other"}]}})
    assert here.state(session)["required_actions"] == [first]
    here.send(session, result_of(first))
    here.send(session, message("Weather?"))
    assert [action["name"] for action in here.state(session)["required_actions"]] == ["other"]


def test_a_cancelled_session_takes_the_next_message(api):
    here = api(ASK, {"say": "Anew."})
    session = here.open()
    (action,) = here.state(session)["required_actions"]
    assert here.send(session, CANCEL, message("never mind")).status == 202
    state = here.state(session)
    assert (state["status"], state["required_actions"]) == ("idle", [])
    turns = here("GET", f"/agents/sessions/{session}/turns?order=asc").json["data"]
    assert [turn["status"] for turn in turns] == ["cancelled", "completed"]
    assert here.send(session, result_of(action)).status == 409
    assert [item["type"] for item in here.items(session)] == ["message"] * 3  # the call is of no history
    assert here.send(session, CANCEL).status == 202  # nothing is there to cancel
    assert here.state(session)["status"] == "idle"


def test_a_slow_model_is_cancelled_and_its_time_changes_nothing(api, clock):
    here = api({**ASK, "delay": "5s"}, SAY)
    session = here.open()
    assert here.state(session)["status"] == "in_progress"
    here.send(session, CANCEL)
    assert here.state(session)["status"] == "idle"
    clock.now += 10
    assert here.state(session)["status"] == "idle"
    assert [item["role"] for item in here.items(session)] == ["user"]


def test_a_cancellation_before_the_turn_exists_is_accepted_without_effect(api):
    here = api(SAY)
    session = here.open()
    assert here.send(session, CANCEL).status == 202
    assert here.state(session)["status"] == "idle"
    assert here.items(session)[-1]["content"][0]["text"] == "Sunny in Oslo."


@pytest.mark.parametrize("step", [ASK, {**SAY, "delay": "5s"}])
def test_a_session_in_which_a_turn_runs_or_waits_is_not_deleted(api, step):
    here = api(step)
    session = here.open()
    here.state(session)
    refused = here("DELETE", f"/agents/sessions/{session}")
    assert (refused.status, refused.error) == (
        409,
        {
            "type": "conflict_error",
            "code": "conflict_error",
            "message": "session must be durably idle or failed without required actions before deletion",
            "param": None,
        },
    )
    here.send(session, CANCEL)
    assert here("DELETE", f"/agents/sessions/{session}").status == 200


def test_a_deleted_session_is_gone_from_everywhere(api):
    here = api(SAY)
    session = here.open()
    here.state(session)
    path = f"/agents/sessions/{session}"
    for _ in range(2):
        assert here("DELETE", path).json == {"id": session, "object": "agent.session.deleted", "deleted": True}
    for method, end, body in (
        ("GET", "", None),
        ("POST", "", {"metadata": {}}),
        ("GET", "/turns", None),
        ("GET", "/items", None),
        ("GET", "/events", None),
        ("POST", "/events", {"events": []}),
    ):
        assert here(method, f"{path}{end}", body).status == 404, end
    assert here("GET", "/agents/sessions").json["data"] == []
