"""HTTP handlers against a real server: what is posted, what comes back, and what becomes of time and secrets."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from agentfn.handlers import http as http_handler
from agentfn.handlers import stop_running
from agentfn.model import Outcome
from tests.conftest import eventually
from tests.unit.handlers.making import CONTEXT, make

if TYPE_CHECKING:
    from pathlib import Path

    from agentfn.handlers.protocol import Result


class Service(http.server.BaseHTTPRequestHandler):
    """Answers as its path says, and writes down what came."""

    seen: ClassVar[list[dict[str, Any]]] = []
    ending = threading.Event()

    def do_POST(self) -> None:
        self.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        word = self.path.partition("?")[0].strip("/")
        with contextlib.suppress(OSError):  # some tests leave before the answer has ended
            if word.startswith("drip"):
                self.drip(in_headers=word == "drip-headers")
            else:
                self.answer(int(word) if word.isdigit() else 200, word)

    def answer(self, status: int, word: str) -> None:
        body = {
            "echo": f"{self.headers.get('Authorization')} {self.path}".encode(),
            "latin": b"caf\xe9",
            "odd": "é".encode(),
            "much": b"x" * 200_000,
        }.get(word, b"sunny" if status == 200 else b"out of order")
        charset = {"latin": "latin-1", "odd": "base64"}.get(word)
        self.send_response(status)
        if charset:
            self.send_header("Content-Type", f"text/plain; charset={charset}")
        if status == 302:
            self.send_header("Location", "http://example.com/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, *, in_headers: bool) -> None:
        """Send a little at a time, without end; no single wait is ever long."""
        self.wfile.write(b"HTTP/1.0 200 OK\r\n" + (b"" if in_headers else b"\r\n"))
        while not self.ending.wait(0.02):
            self.wfile.write(b"X-More: 1\r\n" if in_headers else b"x")

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url():
    Service.seen.clear()
    Service.ending.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Service.ending.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_http_posts_the_call_and_takes_the_body(tmp_path: Path, url: str) -> None:
    handler = make(tmp_path, "http", {"url": url})
    assert handler.problem() is None
    assert handler.run({"city": "Oslo"}, CONTEXT).outcome == Outcome(output="sunny")
    assert Service.seen == [
        {
            "call_id": "call_A",
            "function": "f",
            "arguments": {"city": "Oslo"},
            "conversation": "conv_1",
            "turn": "turn_1",
        }
    ]


@pytest.mark.parametrize("status", [500, 404, 302])
def test_http_failures_and_redirects_are_told(tmp_path: Path, url: str, status: int) -> None:
    result = make(tmp_path, "http", {"url": f"{url}/{status}"}).run({}, CONTEXT)
    assert result.outcome == Outcome(error=f"HTTP {status}: out of order")


def test_http_is_for_this_machine_or_over_tls(tmp_path: Path) -> None:
    assert "use https" in str(make(tmp_path, "http", {"url": "http://example.com/f"}).problem())
    assert make(tmp_path, "http", {"url": "https://example.com/f"}).problem() is None
    unreachable = make(tmp_path, "http", {"url": "http://127.0.0.1:9/"}).run({}, CONTEXT)
    assert str(unreachable.outcome.error).startswith("cannot reach")


@pytest.mark.parametrize("where", ["drip", "drip-headers"])
def test_one_time_out_is_for_the_whole_answer(tmp_path: Path, url: str, where: str) -> None:
    started = time.monotonic()
    result = make(tmp_path, "http", {"url": f"{url}/{where}"}, timeout=0.5).run({}, CONTEXT)
    assert result.outcome.error == f"no answer from {url}/{where} within 0.5 s"
    assert time.monotonic() - started < 10


def test_a_running_request_ends_when_agentfn_is_interrupted(tmp_path: Path, url: str) -> None:
    results: list[Result] = []
    handler = make(tmp_path, "http", {"url": f"{url}/drip-headers"}, timeout=50.0)
    thread = threading.Thread(target=lambda: results.append(handler.run({}, CONTEXT)))
    thread.start()
    eventually(lambda: Service.seen)
    stop_running()
    thread.join(20)
    assert not thread.is_alive()
    assert results[0].outcome.failed


def test_an_answer_without_end_is_not_taken(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_handler, "MOST_BYTES", 100_000)
    result = make(tmp_path, "http", {"url": f"{url}/much"}).run({}, CONTEXT)
    assert result.outcome.error == "the answer has more than 100,000 bytes"


def test_the_charset_that_the_server_names_is_used_where_it_is_one(tmp_path: Path, url: str) -> None:
    assert make(tmp_path, "http", {"url": f"{url}/latin"}).run({}, CONTEXT).outcome.output == "café"
    odd = make(tmp_path, "http", {"url": f"{url}/odd"}).run({}, CONTEXT)
    assert odd.outcome.output == "é"
    assert "no encoding of text" in odd.warnings[0]


def test_credentials_of_a_request_are_masked_where_they_come_back(tmp_path: Path, url: str) -> None:
    value = {"url": f"{url}/echo?code=0123456789", "headers": {"Authorization": "Bearer 9876543210"}}
    result = make(tmp_path, "http", value).run({}, CONTEXT)
    assert result.outcome.output == "*** /echo?***"
    assert "masked" in result.warnings[0]


def test_an_address_is_told_without_its_secrets(tmp_path: Path) -> None:
    value = {"url": "http://me:password1@127.0.0.1:9/f?code=0123456789"}
    error = str(make(tmp_path, "http", value).run({}, CONTEXT).outcome.error)
    assert error.startswith("cannot reach http://127.0.0.1:9/f: ")


def test_a_proxy_is_not_asked_for_this_machine(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert make(tmp_path, "http", {"url": url}).run({}, CONTEXT).outcome.output == "sunny"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"url": "http://127.0.0.1:99999/"}, "is no URL"),
        ({"url": "http://[::1/"}, "is no URL"),
        ({"url": "https:///f"}, "names no host"),
        ({"url": "http://127.0.0.1.example.com/"}, "use https"),
        ({"url": "http://127.0.0.1/", "headers": {"X": 5}}, "the header X cannot be sent"),
        ({"url": "http://127.0.0.1/", "headers": {"X": "a\r\nY: b"}}, "the header X cannot be sent"),
        ({"url": "http://127.0.0.1/", "headers": {"X": "é"}}, "the header X cannot be sent"),
        ({"url": "http://127.0.0.1/", "headers": {"": "a"}}, "cannot be sent"),
    ],
)
def test_what_cannot_be_posted_is_told_before_and_when(tmp_path: Path, value: dict[str, Any], told: str) -> None:
    handler = make(tmp_path, "http", value)
    assert told in str(handler.problem())
    assert told in str(handler.run({}, CONTEXT).outcome.error)
