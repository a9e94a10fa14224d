"""Each kind of handler, run as a turn runs it: real processes, a real server."""

from __future__ import annotations

import http.server
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentfn.definition.agent import FunctionTool, HandlerSpec
from agentfn.handlers import build_handler, script_handler
from agentfn.handlers.protocol import CallContext, Handler, Result
from agentfn.masking import Masker
from agentfn.model import Call, Outcome

ENV = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
CONTEXT = CallContext(Call("call_A", "f", "{}"), "conv_1", "turn_1", "local")


def make(
    base: Path,
    kind: str,
    value: Any,
    *,
    returns: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    **keys: Any,
) -> Handler:
    spec = HandlerSpec(kind=kind, value=value, **keys)
    tool = FunctionTool(name="f", description=None, parameters={}, handler=spec, returns=returns)
    handler = build_handler(tool, base, env={**ENV, **(env or {})}, masker=Masker(["known-secret"]))
    assert handler is not None
    return handler


@pytest.fixture
def python(tmp_path: Path):
    """Run a function of a Python file of this text."""

    def run(text: str, arguments: dict[str, Any] | None = None, function: str = "f", **keys: Any) -> Result:
        (tmp_path / "tool.py").write_text(text)
        handler = make(tmp_path, "python", f"tool.py:{function}", **keys)
        assert handler.problem() is None
        return handler.run(arguments or {}, CONTEXT)

    return run


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("return a", "x"),
        ("return 'line\\n'", "line\n"),
        ("return {'é': [1, None, True]}", '{"é": [1, null, true]}'),
        ("return None", "null"),
        ("return 0", "0"),
        ("import datetime; return datetime.date(2024, 1, 31)", '"2024-01-31"'),
        ("import decimal; return {'t': decimal.Decimal('10.50')}", '{"t": 10.50}'),
        ("print('chatter'); import os; os.system('echo more'); return 'quiet'", "quiet"),
    ],
)
def test_a_python_function_gives_its_result(python, body: str, output: str) -> None:
    assert python(f"def f(a):\n    {body}\n", {"a": "x"}).outcome == Outcome(output=output)


def test_what_a_python_function_prints_goes_to_stderr(python) -> None:
    result = python("def f():\n    print('hello')\n    return 1\n")
    assert result.outcome.output == "1"
    assert "hello" in result.stderr


def test_a_coroutine_is_awaited(python) -> None:
    assert python("async def f():\n    return 'later'\n").outcome.output == "later"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f():\n    raise ValueError('no such city')\n", "ValueError: no such city"),
        ("def f():\n    return float('nan')\n", "ValueError: "),
        ("def f():\n    return b'x'\n", "TypeError: the function returned bytes"),
        ("def f():\n    return '\\ud83d'\n", "UnicodeEncodeError: "),
        ("def f(a):\n    return a\n", "TypeError: f() missing 1 required"),
        ("def g():\n    return 1\n", "AttributeError: "),
        ("import nothing_of_that_name\n", "ModuleNotFoundError: "),
        ("def f():\n    raise SystemExit(0)\n", "the function ended the process"),
        ("def f(:\n", "SyntaxError: "),
    ],
)
def test_an_exception_is_a_failure_that_names_it(python, text: str, error: str) -> None:
    result = python(text)
    assert str(result.outcome.error).startswith(error)
    assert "Traceback" not in str(result.outcome.error)


def test_a_module_by_name_and_imports_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "module.py").write_text("import helper\ndef f():\n    return helper.VALUE\n")
    assert make(tmp_path, "python", "module:f").run({}, CONTEXT).outcome.output == "7"


def test_the_interpreter_may_be_named(python, tmp_path: Path) -> None:
    fake = tmp_path / "mypython"
    fake.write_text(f'#!/bin/sh\nexport CHOSEN=mine\nexec {sys.executable} "$@"\n')
    fake.chmod(0o755)
    assert (
        python("import os\ndef f():\n    return os.environ['CHOSEN']\n", interpreter=str(fake)).outcome.output == "mine"
    )


def test_what_the_schema_of_returns_refuses_is_told_to_the_agent(tmp_path: Path) -> None:
    returns = {"type": "object", "required": ["mm"]}
    good = make(tmp_path, "output", {"mm": 3}, returns=returns).run({}, CONTEXT)
    bad = make(tmp_path, "output", {"cm": 3}, returns=returns).run({}, CONTEXT)
    assert good.outcome.output == '{"mm": 3}'
    assert bad.outcome.error == "the output does not match returns: missing required property mm"


def test_known_secrets_are_masked_and_likely_ones_named(tmp_path: Path) -> None:
    result = make(tmp_path, "output", "a known-secret here").run({}, CONTEXT)
    assert result.outcome.output == "a *** here"
    assert "masked" in result.warnings[0]
    result = make(tmp_path, "output", "ghp_" + "a" * 36).run({}, CONTEXT)
    assert result.outcome.output == "ghp_" + "a" * 36
    assert "looks like a GitHub token" in result.warnings[0]


def test_content_parts_are_an_outcome_of_their_own(tmp_path: Path) -> None:
    parts = [{"type": "input_text", "text": "rain"}]
    assert make(tmp_path, "output", parts, result="content").run({}, CONTEXT).outcome == Outcome(content=parts)
    assert "no array of content parts" in str(
        make(tmp_path, "output", "rain", result="content").run({}, CONTEXT).outcome.error
    )


def test_a_time_out_never_exceeds_what_the_service_leaves(tmp_path: Path) -> None:
    handler = make(tmp_path, "exec", ["sleep", "30"], timeout=30.0)
    started = time.monotonic()
    result = handler.run({}, CONTEXT._replace(deadline=time.monotonic() + 0.5))
    assert time.monotonic() - started < 10
    assert str(result.outcome.error).startswith("no answer within")


def test_a_grandchild_that_keeps_the_pipe_open_does_not_block(tmp_path: Path) -> None:
    program = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\nprint('done')\n"
    (tmp_path / "tool.py").write_text(program)
    started = time.monotonic()
    result = make(tmp_path, "exec", [sys.executable, "tool.py"], timeout=2.0).run({}, CONTEXT)
    assert time.monotonic() - started < 20
    assert result.outcome.output == "done"


def test_a_script_without_the_execute_bit_runs_under_python(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text("import json, sys\nprint(json.load(sys.stdin)['a'])\n")
    handler = script_handler(Path("answer.py"), cwd=tmp_path, env=ENV, masker=Masker([]))
    assert handler.problem() is None
    assert handler.run({"a": "é"}, CONTEXT).outcome.output == "é"


class Service(http.server.BaseHTTPRequestHandler):
    """Answers as its path says, and writes down what came."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        self.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status = int(self.path.strip("/") or 200)
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://example.com/")
        body = b"sunny" if status == 200 else b"out of order"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def url():
    Service.seen.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
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
