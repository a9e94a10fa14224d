"""The agents plane: versions, names, limits, pages and errors (foundry.md §2, §5)."""

from __future__ import annotations

import pytest

DEFINITION = {"kind": "prompt", "model": "m"}


def create(service, name="demo", path="/versions", **body):
    return service.agents("POST", f"/{name}{path}", {"definition": DEFINITION, **body})


@pytest.fixture
def service(make_service):
    return make_service()


def test_a_version_is_shown_as_the_service_shows_it(service):
    version = create(service, metadata={"a": "b"}).json
    guid = version.pop("agent_guid")
    assert len(guid) == 36
    assert version == {
        "metadata": {"a": "b"},
        "object": "agent.version",
        "id": "demo:1",
        "name": "demo",
        "version": "1",
        "description": "",
        "created_at": 1_800_000_000,
        "definition": DEFINITION,
        "status": "active",
    }
    assert list(version["definition"]) == ["kind", "model"]


def test_versions_count_up_also_where_nothing_changed(service):
    assert [create(service).json["id"] for _ in range(3)] == ["demo:1", "demo:2", "demo:3"]


def test_update_makes_a_version_only_where_something_changed(service):
    create(service)
    assert create(service, path="").json["versions"]["latest"]["version"] == "1"
    assert create(service, path="", description="new").json["versions"]["latest"]["version"] == "2"
    assert create(service, name="other", path="").status == 404


def test_a_deleted_version_leaves_the_others_and_its_number_is_not_used_again(service):
    for _ in range(3):
        create(service)
    gone = service.agents("DELETE", "/demo/versions/3").json
    assert gone == {"object": "agent.version.deleted", "name": "demo", "version": "3", "deleted": True}
    assert service.agents("GET", "/demo").json["versions"]["latest"]["version"] == "2"
    assert create(service).json["version"] == "4"
    assert service.agents("DELETE", "/demo/versions/3").status == 404


def test_with_its_last_version_the_agent_goes_and_a_new_one_starts_again(service):
    first = create(service).json
    service.agents("DELETE", "/demo/versions/1")
    assert service.agents("GET", "/demo").error["message"] == "Agent demo doesn't exist"
    again = create(service).json
    assert again["version"] == "1"
    assert again["agent_guid"] != first["agent_guid"]


def test_a_deleted_agent_takes_its_versions_along(service):
    create(service)
    create(service)
    assert service.agents("DELETE", "/demo").json == {"object": "agent.deleted", "name": "demo", "deleted": True}
    assert service.agents("DELETE", "/demo").error["message"] == "Agent not found"
    assert create(service).json["version"] == "1"


def test_names_are_compared_without_regard_to_case(service):
    create(service, name="MyAgent")
    assert create(service, name="myagent").json["id"] == "MyAgent:2"


@pytest.mark.parametrize("name", ["a", "a-b", "0", "x" * 63])
def test_good_names(service, name):
    assert create(service, name=name).status == 200


@pytest.mark.parametrize("name", ["-a", "a-", "a_b", "a%20b", "a.b", "x" * 64, "%C3%A9", "a%2Fb"])
def test_bad_names_are_refused_in_the_services_words(service, name):
    error = create(service, name=name).error
    assert error["code"] == "invalid_parameters"
    assert "must not exceed 63 characters" in error["message"]


def test_create_by_post_conflicts_with_an_existing_name_unless_loose(service, make_service):
    body = {"name": "demo", "definition": DEFINITION}
    made = service.agents("POST", "", body).json
    assert made["object"] == "agent"
    assert made["agent_endpoint"]["protocols"] == ["responses"]
    refused = service.agents("POST", "", body)
    assert (refused.status, refused.error["code"]) == (409, "conflict")
    assert "retry-after" not in refused.headers
    assert make_service(loose=True).agents("POST", "", body).json["versions"]["latest"]["version"] == "2"


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"definition": None}, 400, "definition is required"),
        ({"definition": {"kind": "prompt"}}, 400, "model is required"),
        ({"definition": {"model": "m"}}, 400, "kind is required"),
        ({"definition": {"kind": "hosted", "model": "m"}}, 403, "preview"),
        ({"definition": {**DEFINITION, "instructions": 5}}, 400, "instructions"),
        ({"definition": {**DEFINITION, "temperature": 3}}, 400, "between 0 and 2"),
        ({"definition": {**DEFINITION, "tools": {}}}, 400, "array"),
        ({"definition": {**DEFINITION, "tools": [{"type": 5}]}}, 400, "array of objects"),
        ({"definition": {**DEFINITION, "tools": [{"type": "mcp"}] * 129}}, 400, "129 tools"),
        ({"definition": {**DEFINITION, "tools": [{"type": "function", "name": "a b"}]}}, 400, "name"),
        ({"definition": {**DEFINITION, "tools": [{"type": "function", "name": "a", "parameters": 1}]}}, 400, "Schema"),
        ({"description": "x" * 513}, 400, "512"),
        ({"description": "\ud800"}, 400, "surrogate"),
        ({"metadata": {str(i): "" for i in range(17)}}, 400, "16 pairs"),
        ({"metadata": {"k": "x" * 513}}, 400, "512"),
        ({"metadata": {"k": 5}}, 400, "strings"),
        ({"metadata": []}, 400, "object"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_nothing_is_made(service, change, status, says):
    refused = create(service, **change)
    assert (refused.status, says in refused.error["message"]) == (status, True), refused.text
    assert refused.error["additionalInfo"]["request_id"] == refused.headers["x-request-id"]
    assert service.agents("GET", "/demo").status == 404


def test_an_empty_schema_is_echoed_as_an_object_without_properties(service):
    tools = [{"type": "function", "name": "f", "parameters": {}}, {"type": "code_interpreter"}]
    definition = create(service, definition={**DEFINITION, "tools": tools, "top_p": None}).json["definition"]
    assert definition["tools"][0]["parameters"] == {"type": "object", "properties": {}}
    assert definition["tools"][1] == {"type": "code_interpreter"}
    assert "top_p" not in definition


def test_the_api_version_is_required(service):
    assert service("GET", "/api/projects/p/agents").status == 400
    assert service("GET", "/api/projects/other-project/agents?api-version=2027-01-01").status == 200


def names(page):
    return [entry["name"] for entry in page["data"]]


def test_lists_go_newest_first_in_pages_that_end_as_the_sdk_expects(service):
    for name in ("a", "b", "c"):
        create(service, name=name)
    page = service.agents("GET", "?limit=2").json
    assert (names(page), page["first_id"], page["last_id"], page["has_more"]) == (["c", "b"], "c", "b", True)
    assert "agent_endpoint" not in page["data"][0]
    page = service.agents("GET", "?limit=2&after=b").json
    assert (names(page), page["last_id"], page["has_more"]) == (["a"], "a", False)
    assert service.agents("GET", "?limit=2&after=a").json == {
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
        "object": "list",
    }
    assert names(service.agents("GET", "?order=asc").json) == ["a", "b", "c"]
    assert names(service.agents("GET", "?before=b").json) == ["c"]
    assert names(service.agents("GET", "?after=nobody").json) == []
    assert names(service.agents("GET", "?kind=prompt").json) == ["c", "b", "a"]
    assert names(service.agents("GET", "?kind=hosted").json) == []


def test_version_cursors_are_name_and_number(service):
    for _ in range(3):
        create(service)
    page = service.agents("GET", "/demo/versions?after=demo%3A3").json
    assert [version["version"] for version in page["data"]] == ["2", "1"]
    assert service.agents("GET", "/nobody/versions").status == 404


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=%C2%B2", "order=up"])
def test_bad_paging_is_refused(service, query):
    assert service.agents("GET", f"?{query}").error["code"] == "invalid_parameters"


def test_an_agent_has_at_most_a_thousand_versions(service):
    create(service)
    with service.app.store.writing() as db:
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
            " INSERT INTO agent_version SELECT guid, i, created_at, description, metadata, definition"
            " FROM agent_version, n"
        )
    assert create(service).error["code"] == "UserError"
