"""Agents and conversations: created once, listed to the last page, deleted honestly."""

from __future__ import annotations

import pytest

from agentfn.definition.agent import Agent
from agentfn.errors import NegativeError, ServiceError
from agentfn.model import AgentRef
from tests.unit.backends.conftest import LOST, Answer, ok, page, refused
from tests.unit.backends.shapes import CONVERSATIONS, ITEMS, STAMP, said

DEMO = Agent(name="demo", model="m", instructions="Help.")
VERSIONS = "/agents/demo/versions"
VERSION = {
    "object": "agent.version",
    "id": "demo:4",
    "name": "demo",
    "version": "4",
    "agent_guid": "g-1",
    "metadata": STAMP.metadata(),
}
CONFLICT = refused(409, "conflict", "The resource already exists or was modified concurrently. Please retry.")
MISSING = refused(404, "not_found", "Agent demo doesn't exist")


# Creating ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        LOST,
        ok(VERSION, cut="mid"),
        refused(500, "server_error"),
        refused(408, "Timeout"),
        ok({}),
        Answer(200, b"<html>"),
        CONFLICT,
    ],
)
def test_a_version_whose_creation_was_not_confirmed_is_found_by_its_stamp(server, backend, answer):
    others = {"name": "demo", "version": "5", "metadata": {"agentfn-id": "another"}}
    server.expect(("POST", VERSIONS, answer), ("GET", VERSIONS, page([others, VERSION])))
    assert backend.create_agent(DEMO, STAMP) == AgentRef("demo", "4", "g-1")


@pytest.mark.parametrize("listed", [page([{"name": "demo", "version": "3"}]), MISSING])
def test_a_version_that_was_not_made_is_made_with_the_same_bytes(server, backend, listed):
    server.expect(
        ("POST", VERSIONS, LOST),
        ("GET", VERSIONS, listed),
        ("POST", VERSIONS, ok({**VERSION, "version": 4})),
    )
    assert backend.create_agent(DEMO, STAMP).version == "4"
    assert server.seen[0].raw == server.seen[2].raw


def test_a_creation_that_is_never_confirmed_says_that_it_may_have_happened(server, backend, slept):
    server.expect(
        *[("POST", VERSIONS, LOST), ("GET", VERSIONS, page([]))] * 4,
        ("POST", VERSIONS, LOST),
    )
    with pytest.raises(ServiceError, match="unknown whether it was carried out") as caught:
        backend.create_agent(DEMO, STAMP)
    assert (caught.value.code, caught.value.status) == ("unknown_fate", None)
    assert slept == [0.5, 1, 2, 4]


def test_a_conflict_is_tried_a_few_times_and_then_told(server, backend, slept):
    server.expect(*[("POST", VERSIONS, CONFLICT), ("GET", VERSIONS, page([]))] * 3, ("POST", VERSIONS, CONFLICT))
    with pytest.raises(
        ServiceError, match=r"creating agent demo: .*modified concurrently.*\[request req_9\]"
    ) as caught:
        backend.create_agent(DEMO, STAMP)
    assert (caught.value.code, caught.value.status) == ("conflict", 409)
    assert len(slept) == 3


def test_a_new_project_may_say_not_found_and_keep_the_version(server, backend):
    not_yet = refused(404, "NotFound", "Project not found")
    server.expect(("POST", VERSIONS, not_yet), ("GET", VERSIONS, page([VERSION])))
    assert backend.create_agent(DEMO, STAMP).version == "4"
    server.expect(("POST", VERSIONS, not_yet), ("GET", VERSIONS, not_yet))
    with pytest.raises(ServiceError) as caught:
        backend.create_agent(DEMO, STAMP)
    assert caught.value.code == "project_not_found"


def test_a_limit_is_told_at_once(server, backend, slept):
    server.expect(("POST", VERSIONS, refused(403, "agents_limit_exceeded", "The maximum number was reached.")))
    with pytest.raises(ServiceError, match="maximum number"):
        backend.create_agent(DEMO, STAMP)
    assert slept == []


def test_what_is_sent_is_what_the_preview_shows(server, backend):
    server.expect(("POST", VERSIONS, ok(VERSION)))
    backend.create_agent(DEMO, STAMP)
    assert server.seen[0].body == backend.preview(DEMO, STAMP)
    assert backend.preview(DEMO) == {"definition": {"kind": "prompt", "model": "m", "instructions": "Help."}}


# Listing -------------------------------------------------------------------------------------------------------------


def names(start: int, end: int) -> list[dict[str, str]]:
    return [{"id": f"ci-{number:04}", "name": f"ci-{number:04}"} for number in range(start, end)]


def test_all_pages_are_read(server, backend):
    server.expect(
        ("GET", "/agents", page(names(0, 100), more=True, last="c1")),
        ("GET", "/agents", page(names(100, 200), more=True, last="c2")),
        ("GET", "/agents", page(names(200, 230), more=False, last="c3")),
    )
    assert len({agent.ref.name for agent in backend.agents()}) == 230
    assert [seen.query for seen in server.seen] == [
        "limit=100&api-version=v1",
        "limit=100&after=c1&api-version=v1",
        "limit=100&after=c2&api-version=v1",
    ]


def test_a_repeated_page_marker_ends_the_list_with_an_error(server, backend):
    server.expect(
        ("GET", "/agents", page(names(0, 100), more=True, last="c1")),
        ("GET", "/agents", page(names(100, 200), more=True, last="c2")),
        ("GET", "/agents", page(names(0, 100), more=True, last="c1")),
    )
    with pytest.raises(ServiceError, match="server repeated the page marker c1"):
        list(backend.agents())


def test_without_a_marker_the_last_id_counts_and_without_one_the_list_has_no_end(server, backend):
    server.expect(
        ("GET", CONVERSATIONS, page([{"id": "conv_1"}], more=True)),
        ("GET", CONVERSATIONS, page([], more=True)),
    )
    with pytest.raises(ServiceError, match="gave no page marker"):
        list(backend.conversations())
    assert "after=conv_1" in server.seen[1].query


def test_markers_are_escaped(server, backend):
    server.expect(
        ("GET", "/agents/a%20b%2Fc/versions", page([], more=True, last="a b/c:1&x=1")),
        ("GET", "/agents/a%20b%2Fc/versions", page([])),
    )
    assert list(backend.versions("a b/c")) == []
    assert server.seen[1].query == "limit=100&after=a%20b%2Fc%3A1%26x%3D1&api-version=v1"


def test_a_web_page_in_place_of_a_list_says_that_the_endpoint_is_wrong(server, backend):
    server.expect(("GET", "/agents", Answer(200, b"<html>portal</html>", (("Content-Type", "text/html"),))))
    with pytest.raises(ServiceError, match="answered with no list") as caught:
        list(backend.agents())
    assert "doctor" in (caught.value.hint or "")


def test_reading_is_tried_again_whatever_happened(server, backend, slept):
    server.expect(
        ("GET", "/agents", LOST),
        ("GET", "/agents", refused(503, None, retry_after="2")),
        ("GET", "/agents", refused(429, None, retry_after="1")),
        ("GET", "/agents", page(names(0, 1))),
    )
    assert len(list(backend.agents())) == 1
    assert slept == [0.5, 2, 1]


def test_reading_from_a_service_that_stays_down_tells_its_last_words(server, backend):
    server.expect(*[("GET", "/agents", refused(500, "server_error", "kaputt"))] * 5)
    with pytest.raises(ServiceError, match=r"500 server_error: kaputt \[request req_9\]") as caught:
        list(backend.agents())
    assert caught.value.code == "server_error"


def test_what_is_not_there_is_none_and_a_wrong_endpoint_is_an_error(server, backend):
    server.expect(
        ("GET", "/agents/demo", MISSING),
        ("GET", "/agents/demo/versions/9", MISSING),
        ("GET", VERSIONS, MISSING),
        ("GET", "/agents/demo", Answer(404, b"<html><title>nginx</title>")),
        ("GET", VERSIONS, refused(404, "NotFound", "Project not found")),
    )
    assert backend.find_agent("demo") is None
    assert backend.find_agent("demo", "9") is None
    assert list(backend.versions("demo")) == []
    with pytest.raises(ServiceError, match="nginx"):
        backend.find_agent("demo")
    with pytest.raises(ServiceError, match="Project not found"):
        list(backend.versions("demo"))


def test_the_latest_version_of_an_agent_is_found_inside_it(server, backend):
    agent = {"object": "agent", "id": "demo", "name": "demo", "versions": {"latest": VERSION}}
    server.expect(("GET", "/agents/demo", ok(agent)), ("GET", "/agents/demo/versions/4", ok(VERSION)))
    assert backend.find_agent("demo").ref == backend.find_agent("demo", "4").ref == AgentRef("demo", "4", "g-1")


def test_a_transcript_is_read_oldest_first_to_its_end(server, backend):
    server.expect(
        ("GET", ITEMS, page([said("a", role="user")], more=True, last="msg_a")),
        ("GET", ITEMS, page([said("b")])),
    )
    assert [entry.text for entry in backend.transcript("conv_1")] == ["a", "b"]
    assert all("order=asc" in seen.query for seen in server.seen)


# Deleting ------------------------------------------------------------------------------------------------------------


def test_deleting_says_whether_there_was_something(server, backend):
    gone = refused(404, "not_found", "Conversation 'conv_1' not found")
    server.expect(
        ("DELETE", "/agents/demo/versions/4", ok({"deleted": True})),
        ("DELETE", "/agents/demo", MISSING),
        ("DELETE", f"{CONVERSATIONS}/conv_1", LOST),
        ("DELETE", f"{CONVERSATIONS}/conv_1", gone),
    )
    assert backend.delete_agent_version(AgentRef("demo", "4")) is True
    assert backend.delete_agent("demo", []) is False
    assert backend.delete_conversation("conv_1") is False
    assert [seen.query for seen in server.seen] == ["api-version=v1", "api-version=v1", "", ""], "never forced"


def test_a_deletion_that_did_not_happen_is_never_reported_as_one(server, backend, slept):
    server.expect(
        ("DELETE", "/agents/demo", ok({"deleted": False})),
        ("DELETE", "/agents/demo", refused(409, "conflict", "Agent has active sessions.")),
        ("DELETE", "/agents/demo", Answer(404, b"<html>")),
        ("DELETE", "/agents/demo", refused(404, "NotFound", "Project not found")),
    )
    for error, told in [
        (NegativeError, "was not deleted"),
        (NegativeError, r"active sessions.*\[request req_9\]"),
        (ServiceError, "web page"),
        (ServiceError, "Project not found"),
    ]:
        with pytest.raises(error, match=told):
            backend.delete_agent("demo", [])
    assert slept == []


def test_a_passing_conflict_on_deletion_is_tried_again(server, backend, slept):
    server.expect(("DELETE", "/agents/demo", CONFLICT), ("DELETE", "/agents/demo", ok({"deleted": True})))
    assert backend.delete_agent("demo", []) is True
    assert slept == [0.5]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ok({"data": []}), None),
        (ok({"hello": 1}), "does not answer as a project does"),
        (MISSING, "does not answer as a project does"),
    ],
)
def test_a_probe_tells_a_project_from_something_else(server, backend, answer, told):
    server.expect(("GET", "/agents", answer))
    if told is None:
        assert backend.probe() == {"agents": "yes", "conversations": "yes"}
        return
    with pytest.raises(ServiceError, match=told):
        backend.probe()
