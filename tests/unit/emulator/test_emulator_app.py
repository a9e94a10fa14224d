"""The application around its routes: bodies, paths, tokens, the net under everything, and its state file."""

from __future__ import annotations

import io
import sqlite3
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfn.emulator.app import Application
from agentfn.emulator.store import MIGRATIONS
from agentfn.errors import InvalidFileError

RESPONSES = "/api/projects/p/openai/v1/responses"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "the body is no JSON"),
        (b"[]", "the body must be a JSON object"),
        (b"\xff{}", "the body is not UTF-8: byte 0xff at 0"),
        (b"[" * 100_000, "the body is no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "the body is no JSON"),
    ],
)
def test_bodies_that_are_none(service, body, says):
    refused = service("POST", RESPONSES, body)
    assert refused.status == 400
    assert says in refused.error["message"]


def test_unknown_routes_and_methods(service):
    missing = service("GET", "/api/projects/p/nothing")
    assert (missing.status, missing.error["code"]) == (404, "not_found")
    refused = service("PUT", RESPONSES)
    assert (refused.status, refused.headers["allow"]) == (405, "GET, POST")
    assert service("GET", "/").status == 404


def test_a_segment_may_hold_an_encoded_slash(service):
    assert service("GET", "/api/projects/a%2Fb/agents/bot?api-version=v1").status == 200
    assert (
        service("GET", "/api/projects/p/agents/bot%2Fversions?api-version=v1")
        .error["message"]
        .startswith("Agent bot/v")
    )


@pytest.mark.parametrize("length", ["x", "-1", "1e3"])
def test_a_length_that_is_no_number(service, length):
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": RESPONSES, "CONTENT_LENGTH": length, "wsgi.input": io.BytesIO()}
    status: list[str] = []
    service.app(environ, lambda line, _: status.append(line))
    assert status == ["400 Bad Request"]


def test_a_body_beyond_the_limit_is_refused_unread(service):
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": RESPONSES, "CONTENT_LENGTH": "9" * 12, "wsgi.input": None}
    status: list[str] = []
    service.app(environ, lambda line, _: status.append(line))
    assert status[0].startswith("413 ")


def test_a_token_is_asked_for_only_where_it_is_wanted(make_service):
    service = make_service(require_token=True)
    path = "/api/projects/p/agents?api-version=v1"
    refused = service("GET", path)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.error["message"].startswith("Unauthorized. Access token is missing")
    for header in ({"Authorization": "Bearer x"}, {"api-key": "x"}):
        assert service("GET", path, headers=header).status == 200
    token = service("GET", "/msi/token?resource=https://ai.azure.com&api-version=2019-08-01").json
    assert (token["token_type"], token["resource"]) == ("Bearer", "https://ai.azure.com")
    assert int(token["expires_on"]) > service.clock.now


def test_a_fault_of_the_service_itself_is_an_answer_and_a_traceback(service):
    log = io.StringIO()
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/_agentfn/clock", "wsgi.errors": log}  # and no wsgi.input
    status: list[str] = []
    (body,) = service.app(environ, lambda line, _: status.append(line))
    assert status == ["500 Internal Server Error"]
    assert b'"code": "server_error"' in body
    assert "KeyError: 'wsgi.input'" in log.getvalue()


def test_the_control_routes(service):
    assert service("POST", "/_agentfn/clock", {"advance": "11m"}).json == {"now": 1_800_000_660.0}
    assert service("POST", "/_agentfn/clock", {"advance": "later"}).status == 400
    service("GET", "/api/projects/p/agents?api-version=v1", headers={"Authorization": "Bearer secret-token-1"})
    listed = service("GET", "/_agentfn/requests")
    assert "secret-token-1" not in listed.text
    last = listed.json["data"][-2]
    assert (last["method"], last["path"], last["status"]) == ("GET", "/api/projects/p/agents", 200)
    assert service("POST", "/_agentfn/reset").json == {"reset": True}
    assert service.agents("GET").json["data"] == []
    assert service("GET", "/_agentfn/clock").json == {"now": 1_800_000_000.0}


TEXT = st.one_of(st.text(max_size=8), st.just("\ud800"))
ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["input", "conversation", "previous_response_id", "agent_reference", "metadata", "stream", "store", "background",
     "items", "definition", "name", "description", "model", "tools"]
)  # fmt: skip
PATHS = st.sampled_from(["openai/v1/responses", "openai/v1/conversations", "agents", "agents/a/versions", "agents/a"])


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=PATHS, body=st.dictionaries(FIELDS, ANY, max_size=4))
def test_no_body_brings_the_service_down(service, path, body):
    """In process an unexpected exception is raised, so this test sees it."""
    assert service("POST", f"/api/projects/p/{path}?api-version=v1", body).status in (200, 400, 403, 404, 409)


ITEM = st.fixed_dictionaries(
    {}, optional={"type": st.one_of(ANY, st.sampled_from(["message", "function_call", "function_call_output", "reasoning"])),
                  "role": st.one_of(ANY, st.just("user")), "content": ANY, "call_id": ANY, "output": ANY, "name": ANY,
                  "arguments": ANY, "id": ANY, "response_id": ANY}
)  # fmt: skip


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.lists(ITEM, max_size=3))
def test_no_item_brings_the_service_down(service, items):
    made = service.openai("POST", "conversations", {"items": items})
    assert made.status in (200, 400)
    if made.status == 200:
        assert service.ask([], conversation=made.json["id"]).status in (200, 400)
    assert service.ask(items).status in (200, 400)


# --- the state file ---


def test_a_file_of_a_newer_agentfn_is_refused_by_name(tmp_path):
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    with pytest.raises(InvalidFileError) as raised:
        Application(path)
    assert str(path) in str(raised.value)
    assert "newer agentfn" in str(raised.value)


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    path = tmp_path / "state.db"
    path.write_text("this is no database, though long enough to look at" * 50)
    with pytest.raises(InvalidFileError, match=r"state\.db"):
        Application(path)
    with pytest.raises(InvalidFileError, match="cannot be used"):
        Application(path / "below")


def test_the_file_is_the_owners_alone(service):
    assert service.app.store.path.stat().st_mode & 0o777 == 0o600


def test_threads_come_and_go_without_keeping_connections(service):
    def work() -> None:
        assert service.agents("GET", "/bot").status == 200

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(service.app.store._all) <= 2
