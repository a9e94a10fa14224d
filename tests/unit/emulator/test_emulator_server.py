"""The server: real sockets, kept connections, chunks, cuts, TLS, and an end that ends everything."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario
from agentfn.emulator.server import HOST, Server, environment
from agentfn.emulator.tls import make_certificate
from agentfn.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

AGENTS = "/api/projects/p/agents?api-version=v1"
RESPONSES = "/api/projects/p/openai/v1/responses"
MODEL = {"model": "m", "input": "x"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server that plays these steps."""
    running: list[Server] = []

    def begin(*steps: dict[str, Any], tls: bool = False) -> Server:
        scenario = parse_scenario(list(steps), "s.yaml") if steps else None
        files = make_certificate(tmp_path / "tls") if tls else None
        server = Server(Application(tmp_path / f"{len(running)}.db", scenario=scenario), tls=files)
        running.append(server.__enter__())
        return server

    yield begin
    for server in running:
        server.__exit__()


@pytest.fixture
def connect() -> Iterator[Callable[[Server], http.client.HTTPConnection]]:
    opened: list[http.client.HTTPConnection] = []

    def make(server: Server) -> http.client.HTTPConnection:
        opened.append(http.client.HTTPConnection(HOST, server.port, timeout=20))
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()


def post(connection: http.client.HTTPConnection, body: dict[str, Any]) -> http.client.HTTPResponse:
    connection.request("POST", RESPONSES, json.dumps(body))
    return connection.getresponse()


def raw(server: Server, request: bytes) -> bytes:
    """Send bytes, and return everything until the server closes."""
    with socket.create_connection((HOST, server.port), timeout=20) as opened:
        opened.sendall(request)
        answer = b""
        while piece := opened.recv(65536):
            answer += piece
        return answer


def test_a_connection_is_kept_over_answers_errors_and_streams(start, connect):
    connection = connect(start({"say": "hello", "repeat": "forever"}))
    connection.connect()
    own = connection.sock.getsockname()
    for method, path, body in (
        ("GET", AGENTS, None),
        ("POST", "/nowhere", "x" * 1000),
        ("POST", RESPONSES, json.dumps({**MODEL, "stream": True})),
        ("POST", RESPONSES, "{"),
        ("PUT", AGENTS, "y"),
        ("HEAD", "/nowhere", None),
        ("GET", AGENTS, None),
    ):
        connection.request(method, path, body)
        answer = connection.getresponse()
        assert answer.read() or method == "HEAD"
    assert connection.sock.getsockname() == own


def test_chunked_bodies_are_read(start, connect):
    connection = connect(start({"say": "hello"}))
    text = json.dumps(MODEL)
    connection.request("POST", RESPONSES, iter([text[:5].encode(), text[5:].encode()]), encode_chunked=True)
    assert json.loads(connection.getresponse().read())["status"] == "completed"


def test_an_older_protocol_gets_no_chunks_and_an_end(start):
    server = start({"say": "hello"})
    body = json.dumps({**MODEL, "stream": True}).encode()
    answer = raw(server, b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (RESPONSES.encode(), len(body), body))
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert rest.startswith(b": open\n\n")
    assert rest.endswith(b"\n\n")


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: x", b"Content-Length: 99999999999", b"Content-Length: -5"],
)
def test_a_body_that_cannot_be_read_ends_the_connection(start, head):
    answer = raw(start(), b"POST %b HTTP/1.1\r\nHost: x\r\n%b\r\n\r\n{}" % (RESPONSES.encode(), head))
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))
    assert b"Connection: close" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("rest", [b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"Content-Length: 50\r\n\r\n{"])
def test_a_client_that_breaks_off_is_let_go_and_others_are_served(start, connect, rest):
    server = start()
    with socket.create_connection((HOST, server.port), timeout=20) as opened:
        opened.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\n%b" % (RESPONSES.encode(), rest))
        opened.shutdown(socket.SHUT_WR)
        assert opened.recv(100) == b""
    connection = connect(server)
    connection.request("GET", AGENTS)
    assert connection.getresponse().status == 200


def test_a_stream_is_flushed_while_the_model_still_thinks(start, connect):
    server = start({"say": "slow", "delay": "10m"})
    answer = post(connect(server), {**MODEL, "stream": True})
    assert answer.status == 200
    assert answer.readline() == b": open\n"
    answer.readline()
    assert answer.readline() == b"event: response.created\n"
    other = connect(server)
    other.request("GET", AGENTS)
    assert other.getresponse().status == 200


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_cut_closes_the_socket_without_a_byte(start, connect, cut):
    server = start({"say": "x", "cut": cut}, {"say": "next"})
    with pytest.raises(http.client.RemoteDisconnected):
        post(connect(server), MODEL)
    assert post(connect(server), MODEL).status == 200


def test_a_cut_in_the_middle_leaves_half_a_body(start, connect):
    server = start({"say": "x", "cut": "mid", "repeat": 2})
    with pytest.raises(http.client.IncompleteRead) as raised:
        post(connect(server), MODEL).read()
    assert raised.value.partial.startswith(b"{")
    with pytest.raises(http.client.IncompleteRead) as raised:
        post(connect(server), {**MODEL, "stream": True}).read()
    assert b"response.created" in raised.value.partial
    assert b"response.completed" not in raised.value.partial


def test_the_end_of_the_server_is_the_end_of_its_connections(tmp_path, connect):
    scenario = parse_scenario([{"say": "x", "delay": "10m"}], "s.yaml")
    with Server(Application(tmp_path / "s.db", scenario=scenario)) as server:
        answer = post(connect(server), {**MODEL, "stream": True})
        answer.readline()
        idle = connect(server)
        idle.request("GET", AGENTS)
        idle.getresponse().read()
    assert idle.sock.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, server.port), timeout=5)


def test_only_this_machine_is_served(start):
    server = start()
    with socket.socket() as probe:
        probe.settimeout(5)
        # Another loopback address stands for any other interface.
        assert probe.connect_ex(("127.0.0.2", server.port)) != 0


def test_a_taken_port_is_told(start, tmp_path):
    port = start().port
    app = Application(tmp_path / "other.db")
    with pytest.raises(ServiceError) as raised:
        Server(app, port)
    app.close()
    assert f"port {port} cannot be used" in str(raised.value)
    assert raised.value.code == "port_taken"


def test_many_connections_at_once(start, connect):
    server = start()
    answers: list[int] = []

    def ask() -> None:
        connection = http.client.HTTPConnection(HOST, server.port, timeout=20)
        for _ in range(5):
            connection.request("POST", "/api/projects/p/openai/v1/conversations", "{}")
            answer = connection.getresponse()
            answer.read()
            answers.append(answer.status)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 60


# --- TLS ---


def test_an_idle_connection_does_not_hold_up_the_handshakes_of_others(start, tmp_path):
    server = start(tls=True)
    context = ssl.create_default_context(cafile=str(tmp_path / "tls" / "bundle.pem"))
    for host in ("localhost", HOST):
        with socket.create_connection((HOST, server.port), timeout=20):
            connection = http.client.HTTPSConnection(host, server.port, timeout=20, context=context)
            connection.request("GET", AGENTS)
            answer = connection.getresponse()
            assert (answer.status, answer.read()[:1]) == (200, b"{")
            connection.close()


def test_plain_http_to_a_tls_port_is_let_go(start, connect):
    connection = connect(start(tls=True))
    connection.request("GET", AGENTS)
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        connection.getresponse()


def test_a_certificate_is_kept_and_its_bundle_does_not_grow(tmp_path, monkeypatch):
    first = make_certificate(tmp_path)
    before = (first.certificate.read_bytes(), first.bundle.read_bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(first.bundle))  # as whoever exported what `serve` printed has it
    again = make_certificate(tmp_path)
    assert (again.certificate.read_bytes(), again.bundle.read_bytes()) == before
    assert again.key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("file", ["certificate", "key"])
def test_a_pair_of_which_one_is_broken_or_anothers_is_made_again(tmp_path, file):
    other = make_certificate(tmp_path / "other")
    for text in (b"nonsense", getattr(other, file).read_bytes()):
        files = make_certificate(tmp_path)
        getattr(files, file).write_bytes(text)
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*make_certificate(tmp_path)[:2])


def test_without_the_extra_the_hint_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UsageError) as raised:
        make_certificate(tmp_path)
    assert raised.value.hint == "pip install 'agentfn[tls]'"


def test_the_environment_points_programs_here(tmp_path):
    plain = environment(8080, None)
    assert plain["FOUNDRY_PROJECT_ENDPOINT"] == "http://127.0.0.1:8080/api/projects/local"
    assert plain["IDENTITY_ENDPOINT"] == "http://127.0.0.1:8080/msi/token"
    trusted = {"REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"}
    assert set(environment(8080, make_certificate(tmp_path))) - set(plain) == trusted
