"""Saved agents of the Agents API: headers, bodies, what a configuration may hold, changes, pages (openai-agents.md §1, §2)."""

from __future__ import annotations

import pytest

from tests.unit.emulator.test_agents_api import HEADERS, TOOL, Api

GET, POST = ("GET", "/v1/agents"), ("POST", "/v1/agents")
SEARCH = {"type": "tool_search"}


@pytest.fixture
def api(make_service):
    return lambda *steps, **options: Api(make_service(*steps, **options))


def function(**changes):
    return {"model": "m", "tools": [{**TOOL, **changes}]}


# Headers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "agents=v2", "agents=v1, assistants=v2"])
@pytest.mark.parametrize("route", [GET, POST, ("GET", "/v1/agents/sessions/sess_x/events")])
def test_every_route_wants_the_beta_as_its_only_value(make_service, route, value):
    headers = {"content-type": "application/json"} | ({} if value is None else {"openai-beta": value})
    refused = make_service()(*route, {}, headers)
    assert (refused.status, refused.error) == (
        400,
        {
            "type": "invalid_beta",
            "code": "invalid_beta",
            "message": "To access the Agents API, set the 'OpenAI-Beta' header to 'agents=v1'.",
            "param": None,
        },
    )


def test_only_a_post_has_to_say_that_it_is_json_and_a_bodyless_one_has_to_as_well(api):
    here = api()
    assert here("GET", "/agents", content_type="text/plain").status == 200
    identity = here.agent()
    for kind in ("text/plain", "application/jsonp", ""):
        refused = here("POST", f"/agents/{identity}", content_type=kind)
        assert (refused.status, refused.error["message"]) == (
            400,
            "expected request with Content-Type: application/json",
        )
    assert here("POST", f"/agents/{identity}", content_type="Application/JSON; charset=utf-8").status == 200


def test_a_key_is_not_judged_and_its_absence_is_a_401_without_code(make_service):
    service = make_service(require_token=True)
    assert service(*GET, None, {**HEADERS, "authorization": "Bearer anything"}).status == 200
    refused = service(*GET, None, HEADERS)
    assert refused.status == 401
    assert set(refused.error) == {"type", "code", "message", "param"}
    assert (refused.error["type"], refused.error["code"], refused.error["param"]) == (
        "invalid_request_error",
        None,
        None,
    )


# Configurations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        (b"", "model", "Missing required parameter: 'model'."),
        (b"null", "model", "Missing required parameter: 'model'."),
        (b'"text"', None, "expected an object"),
        (b'{"model": "m", "text": {"format": {"type": "text", "type": "text"}}}', None, "duplicate JSON key 'type'"),
        ({"model": "m", "name": "x" * 129}, "name", "maximum length 128"),
        ({"model": "m", "instructions": "x" * 1_048_577}, "instructions", "maximum length 1048576"),
        ({"model": "m", "metadata": {str(n): "" for n in range(17)}}, "metadata", "at most 16"),
        ({"model": "m", "metadata": {"k" * 65: "v"}}, "metadata", "at most 64"),
        ({"model": "m", "metadata": {"k": "v" * 513}}, "metadata.k", "maximum length 512"),
        ({"model": "m", "metadata": []}, "metadata", "expected an object, but got an array"),
        ({"model": "m", "service_tier": "gold"}, "service_tier", "Invalid value: 'gold'"),
        ({"model": "m", "text": {"verbosity": "huge"}}, "text.verbosity", "Supported values are: 'low', 'medium'"),
        ({"model": "m", "text": {"format": {}}}, "text.format.type", "Missing required parameter"),
        ({"model": "m", "text": {"format": {"type": "json_schema"}}}, "text.format.schema", "Missing required"),
        (
            {"model": "m", "text": {"format": {"type": "json_schema", "schema": {"type": "array"}}}},
            "text.format.schema",
            "object",
        ),
        ({"model": "m", "reasoning": {"level": "low"}}, "reasoning.level", "Unknown parameter: 'reasoning.level'."),
        ({"model": "m", "multi_agent": {}}, "multi_agent.enabled", "Missing required parameter"),
        ({"model": "m", "multi_agent": {"enabled": "yes"}}, "multi_agent.enabled", "expected a boolean"),
        ({"model": "m", "multi_agent": {"enabled": True, "x": 1}}, "multi_agent.x", "Unknown parameter"),
        ({"model": "m", "compaction": {"sync": True}}, "compaction.sync", "Unknown parameter"),
        ({"model": "m", "experimental": {"fast": True}}, "experimental.fast", "Unknown parameter"),
        ({"model": "m", "tools": {}}, "tools", "expected an array, but got an object"),
        ({"model": "m", "tools": ["f"]}, "tools[0]", "expected an object, but got a string"),
        ({"model": "m", "tools": [TOOL, {}]}, "tools[1].type", "Missing required parameter: 'tools[1].type'."),
        ({"model": "m", "tools": [{"type": "abacus"}]}, "tools[0].type", "Invalid value: 'abacus'"),
        ({"model": "m", "tools": [{**SEARCH, "name": "s"}]}, "tools[0].name", "Unknown parameter"),
        (function(name=None), "tools[0].name", "Missing required parameter: 'tools[0].name'."),
        (function(description=7), "tools[0].description", "expected a string, but got an integer"),
        (function(parameters=[]), "tools[0].parameters", "expected an object, but got an array"),
        (function(defer_loading="no"), "tools[0].defer_loading", "expected a boolean, but got a string"),
        (function(**{"async": 1}), "tools[0].async", "expected a boolean, but got an integer"),
        ({"model": "m", "tools": [{**TOOL, "name": str(n)} for n in range(2001)]}, "tools", "2000"),
    ],
)
def test_what_a_configuration_may_not_hold(api, body, param, told):
    refused = api()("POST", "/agents", body)
    assert (refused.status, refused.error["type"], refused.error["code"]) == (
        400,
        "invalid_request_error",
        "invalid_request_error",
    )
    assert refused.error["param"] == param
    assert told in refused.error["message"]


def test_what_a_configuration_may_hold(api):
    here = api()
    given = {
        "name": "n" * 128,
        "instructions": "",
        "metadata": {"k" * 64: "v" * 512},
        "tools": [{**TOOL, "name": "f" * 200, "parameters": {}, "defer_loading": True, "async": True}, SEARCH],
        "reasoning": {"effort": "xhigh", "summary": "concise"},
        "service_tier": "flex",
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "verbosity": "low"},
        "multi_agent": {"enabled": True, "max_concurrent_subagents": 3},
        "compaction": {"async": True},
        "experimental": {"time_awareness": True},
    }
    made = here("POST", "/agents", {"model": "m", **given})
    assert made.status == 201
    assert {key: made.json[key] for key in given} == given


def test_the_tools_together_are_smaller_than_three_mebibytes(api):
    here = api()
    spare = 3_145_728 - len('[{"type":"function","name":"f","description":"","parameters":{}}]')
    tool = {"type": "function", "name": "f", "parameters": {}}
    fits, exceeds = (
        {"model": "m", "tools": [{**tool, "description": "é" * (size // 2)}]} for size in (spare, spare + 2)
    )
    assert here("POST", "/agents", fits).status == 201
    assert here("POST", "/agents", exceeds).error["param"] == "tools"


# Changes -------------------------------------------------------------------------------------------------------------


def test_a_change_leaves_what_it_does_not_name_and_null_clears_what_can_be_empty(api, clock):
    here = api()
    identity = here.agent(instructions="Help.", experimental={"time_awareness": True}, service_tier="flex")
    made = here("GET", f"/agents/{identity}").json
    clock.now += 60
    touched = here("POST", f"/agents/{identity}", {}).json
    assert touched == {**made, "updated_at": made["created_at"] + 60}
    emptied = here("POST", f"/agents/{identity}", {"tools": None, "instructions": None, "model": None}).json
    assert emptied == {**touched, "tools": [], "instructions": None}
    merged = here("POST", f"/agents/{identity}", {"experimental": {}, "service_tier": "fast"}).json
    assert (merged["experimental"], merged["service_tier"]) == ({"time_awareness": True}, "fast")
    assert here("POST", f"/agents/{identity}", {"id": "agent_y"}).error["param"] == "id"
    assert here("GET", f"/agents/{identity}").json == merged


def test_what_is_deleted_cannot_be_told_from_what_never_was(api):
    here = api()
    identity = here.agent()
    session = here.open()
    agent = here.state(session)["agent"]["id"]
    for one in (identity, agent):
        assert here("DELETE", f"/agents/{one}").status == 200
    for method, body in (("GET", None), ("POST", {}), ("DELETE", None)):
        refusals = [here(method, f"/agents/{one}", body) for one in (identity, "agent_never", "~")]
        assert [refused.status for refused in refusals] == [404] * 3
        assert len({refused.text for refused in refusals}) == 1
    assert here.state(session)["agent"]["id"] == agent  # its sessions go on
    assert here("GET", "/agents").json["data"] == []


# Pages ---------------------------------------------------------------------------------------------------------------


def test_pages_follow_each_other_in_both_orders(api):
    here = api()
    made = [here.agent() for _ in range(5)]
    for order, wanted in (("", made[::-1]), ("&order=asc", made), ("&order=desc", made[::-1])):
        seen, after, more = [], "", True
        while more:
            page = here("GET", f"/agents?limit=2{order}{after}").json
            assert page["object"] == "list"
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            seen += [agent["id"] for agent in page["data"]]
            after, more = f"&after={page['last_id']}", page["has_more"]
        assert seen == wanted
    beyond = here("GET", f"/agents?after={made[0]}").json
    assert beyond == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


def test_a_page_has_twenty_entries_where_nobody_asks_and_never_more_than_a_hundred(api):
    here = api()
    for _ in range(102):
        here.agent()
    for query, size in (("", 20), ("?limit=101", 100), ("?limit=0", 1), ("?unknown=1&limit=3", 3)):
        page = here("GET", f"/agents{query}").json
        assert (len(page["data"]), page["has_more"]) == (size, True)


@pytest.mark.parametrize("limit", ["ten", "", "1.5", "-", "9" * 5000])
def test_a_limit_that_is_no_number_is_refused(api, limit):
    refused = api()("GET", f"/agents?limit={limit}")
    assert refused.status == 400
    assert refused.error["message"].startswith("Failed to deserialize query string: limit: ")


def test_an_order_that_is_none_is_refused(api):
    assert api()("GET", "/agents?order=up").status == 400
