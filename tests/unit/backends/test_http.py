"""Connections: where a token may go, what is logged, and what is told when nothing answers."""

from __future__ import annotations

import socket

import pytest

from agentfn.backends import BackendOptions, open_backend
from agentfn.backends.credentials import Credential, fixed
from agentfn.backends.foundry import FoundryBackend
from agentfn.backends.http import Channel, Options
from agentfn.emulator.app import Application
from agentfn.emulator.server import Server
from agentfn.emulator.tls import make_certificate
from agentfn.errors import NotAuthorisedError, ServiceError, UsageError
from agentfn.network import is_loopback
from tests.unit.backends.conftest import LOST, TOKEN, Listener, ok, page, refused
from tests.unit.backends.shapes import RESPONSES, response, said, start


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "nonsense",
        "ftp://127.0.0.1/api/projects/p",
        "http://[::1/api/projects/p",
        "https://x.example:99999/api/projects/p",
        "https://x.example:0/api/projects/p",
        "https:///api/projects/p",
        "https://x.example/api/projects/p?api-version=v1",
        "https://x.example/api/projects/p#top",
        "https://user:secret@x.example/api/projects/p",
        "https://x.example/api/pro\x00jects/p",
        "https://x.services.ai.azure.com",
        "https://x.services.ai.azure.com/api/projects/",
        "https://x.services.ai.azure.com/api/projects/p/openai/v1",
        "http://example.com/api/projects/p",
        "http://127.0.0.1.example.com/api/projects/p",
    ],
)
def test_what_is_not_a_projects_endpoint_is_a_usage_error(endpoint, tmp_path):
    with pytest.raises(UsageError) as caught:
        open_backend("foundry", endpoint, env={"AGENT_TOKEN": TOKEN}, options=BackendOptions(home=tmp_path))
    assert caught.value.hint


@pytest.mark.parametrize(
    "endpoint", ["https://x.services.ai.azure.com/api/projects/p/", "http://[::1]:9/api/projects/_project"]
)
def test_what_is_one_is_taken(endpoint, tmp_path):
    backend = open_backend("foundry", endpoint, env={"AGENT_TOKEN": TOKEN}, options=BackendOptions(home=tmp_path))
    backend.close()


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.1", False), (None, False)],  # noqa: S104
)
def test_this_machine_is_told_from_others(host, here):
    assert is_loopback(host) is here


def test_a_slash_at_the_end_changes_nothing(server, tmp_path):
    server.expect(("GET", "/agents", page([])))
    backend = open_backend("foundry", f"{server.endpoint}/", env={}, options=BackendOptions(home=tmp_path))
    assert list(backend.agents()) == []
    backend.close()
    assert server.seen[0].headers["authorization"] == "Bearer local", "no account is asked for on this machine"


def test_what_is_meant_for_this_machine_goes_through_no_proxy(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    server.expect(("GET", "/agents", page([])))
    backend = open_backend("foundry", server.endpoint, env={}, options=BackendOptions(home=tmp_path))
    assert list(backend.agents()) == []
    backend.close()


def test_one_connection_carries_a_whole_turn(server, backend, listener):
    server.expect(*[("POST", RESPONSES, ok(response(said("hi"))))] * 3)
    ports: set[str] = set()
    for _ in range(3):
        backend.start(start(), listener)
        pool = backend._channel._client._transport._pool
        ports |= {
            repr(connection._connection._network_stream.get_extra_info("client_addr"))
            for connection in pool.connections
        }
    assert len(ports) == 1


def test_the_log_has_a_line_a_request_and_no_token(server, backend, log, listener):
    echo = refused(401, "invalid_api_key", f"Incorrect key provided: {TOKEN}")
    server.expect(("GET", "/agents", LOST), ("GET", "/agents", page([])), ("POST", RESPONSES, echo))
    assert list(backend.agents()) == []
    with pytest.raises(NotAuthorisedError) as caught:
        backend.start(start(), listener)
    where = f"GET {server.endpoint}/agents?limit=100&api-version=v1 [Authorization: ***]"
    assert log[0].startswith(f"{where} → the connection broke")
    assert log[1] == f"{where} → 200"
    assert log[2] == f"POST {server.endpoint}{RESPONSES} [Authorization: ***] → 401 (req_9)"
    assert "***" in caught.value.message
    assert "SECRET" not in "".join(log) + caught.value.message


def test_nobody_there_is_found_out_soon_and_told(slept):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers, and nobody else gets the port
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}/api/projects/p"
        channel = Channel(endpoint, fixed(TOKEN, "test"), Options(sleep=slept.append, chance=lambda: 0.0))
        backend = FoundryBackend(channel, name="foundry", endpoint=endpoint)
        for ask in (lambda: list(backend.agents()), lambda: backend.start(start(), Listener())):
            slept.clear()
            with pytest.raises(ServiceError, match=f"cannot reach {endpoint}") as caught:
                ask()
            assert caught.value.code == "unreachable"
            assert slept == [0.5, 1]
        backend.close()


@pytest.mark.parametrize("stream", [False, True])
def test_an_expired_token_is_renewed_once(server, listener, stream):
    tokens = iter(["old", "new"])
    credential = Credential(("test", lambda: next(tokens)), renewable=True)
    backend = FoundryBackend(Channel(server.endpoint, credential, Options()), name="foundry", endpoint=server.endpoint)
    server.expect(
        ("POST", RESPONSES, refused(401, None, "expired")),
        ("POST", RESPONSES, ok(response(said("hi")))),
    )
    assert backend.start(start(stream=stream), listener).answer == "hi"
    backend.close()
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


def test_a_token_that_stays_refused_is_not_fetched_for_ever(server, listener):
    tokens = iter(["old", "new", "newer"])
    credential = Credential(("test", lambda: next(tokens)), renewable=True)
    backend = FoundryBackend(Channel(server.endpoint, credential, Options()), name="foundry", endpoint=server.endpoint)
    server.expect(*[("POST", RESPONSES, refused(401, None, "expired"))] * 2)
    with pytest.raises(NotAuthorisedError):
        backend.start(start(), listener)
    backend.close()
    assert next(tokens) == "newer", "nobody asked for it"


def test_a_certificate_is_checked_and_can_be_trusted(tmp_path, monkeypatch):
    files = make_certificate(tmp_path)
    with Server(Application(tmp_path / "s.db"), tls=files) as served:
        endpoint = f"https://127.0.0.1:{served.port}/api/projects/p"
        options = BackendOptions(home=tmp_path, sleep=lambda _: None)
        stranger = open_backend("foundry", endpoint, env={}, options=options)
        with pytest.raises(ServiceError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            list(stranger.agents())
        stranger.close()
        assert "SSL_CERT_FILE" in (caught.value.hint or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(files.certificate))
        friend = open_backend("foundry", endpoint, env={}, options=options)
        assert list(friend.agents()) == []
        friend.close()
