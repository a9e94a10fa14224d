"""Programs: what they get, how they end, and that nothing of them outlives its time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.handlers import process, stop_running
from agentfn.model import Call, Outcome
from tests.conftest import ROOT, eventually
from tests.unit.handlers.making import CONTEXT, SECRET, is_alive, make

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentfn.handlers.protocol import Result

#: Starts a process that outlives its parent for a while and keeps stdout open; both write their numbers to files.
LEAVES_ONE_BEHIND = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session={alone})
open("child.tmp", "w").write(str(child.pid))
os.rename("child.tmp", "child")
print("done", flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Result]:
    """Run a Python program of this text."""

    def run(text: str, arguments: dict[str, Any] | None = None, **keys: Any) -> Result:
        (tmp_path / "tool.py").write_text(text)
        handler = make(tmp_path, "exec", [sys.executable, "tool.py"], **keys)
        assert handler.problem() is None
        return handler.run(arguments or {}, CONTEXT)

    return run


def number(path: Path) -> int:
    """Return the process number that a program wrote to a file."""
    eventually(path.exists)
    return int(path.read_text())


def test_long_arguments_arrive_on_stdin_and_never_on_the_command_line(program) -> None:
    text = "import json, sys\nprint(len(json.load(sys.stdin)['text']), sys.argv[1:], repr(sys.stdin.read()))"
    assert program(text, {"text": "é" * 200_000}).outcome.output == "200000 [] ''"


def test_metacharacters_are_text(program, tmp_path: Path) -> None:
    asked = {"to": "+1555; touch PWNED1", "name": "$(touch PWNED2)"}
    assert json.loads(program("import sys\nprint(sys.stdin.read())", asked).outcome.output) == asked
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tool.py"]


def test_a_megabyte_each_way_does_not_block(program) -> None:
    text = "import sys\nsys.stdout.write('o' * 1_000_000)\nsys.stderr.write('e' * 1_000_000)\nsys.stdin.read()"
    result = program(text, {"a": "i" * 1_000_000})
    assert result.outcome.output == "o" * 1_000_000
    assert result.stderr == "e" * 1_000_000


def test_a_program_that_reads_nothing_may_be_sent_much(program) -> None:
    assert program("print('ok')", {"a": "i" * 1_000_000}).outcome.output == "ok"


def test_a_failure_names_status_stderr_and_the_partial_output(program) -> None:
    error = program(
        "import sys\nprint('half', flush=True)\nprint('disk full', file=sys.stderr)\nsys.exit(3)"
    ).outcome.error
    assert error == "exit 3: disk full\npartial output: half"


def test_a_signal_is_told_apart_from_a_status(program) -> None:
    assert program("import os\nos.kill(os.getpid(), 9)").outcome.error == "killed by signal 9 (SIGKILL)"


def test_what_a_failure_wrote_in_another_encoding_is_read(program) -> None:
    text = "import sys\nsys.stdout.buffer.write(b'caf\\xe9')\nsys.stderr.buffer.write(b'\\xfcber')\nsys.exit(1)"
    assert program(text, encoding="latin-1").outcome.error == "exit 1: über\npartial output: café"


def test_a_secret_is_masked_before_the_end_is_cut_from_the_rest(program) -> None:
    error = program(f"import sys\nsys.exit('{SECRET}' + 'x' * 1990)").outcome.error
    assert error == "exit 1: ***" + "x" * 1990, "cut first, ten characters of the secret would have been left"


def test_control_characters_are_sent_as_printed(program) -> None:
    assert program("print('\\x1b[31mred\\0')").outcome.output == "\x1b[31mred\0"


def test_a_handler_that_hangs_is_ended_with_all_that_it_started(program, tmp_path: Path) -> None:
    text = LEAVES_ONE_BEHIND.format(alone=False) + "child.wait()\n"
    result = program(text, timeout=2.0)
    assert result.outcome.error == "no answer within 2 s\npartial output: done"
    child = number(tmp_path / "child")
    eventually(lambda: not is_alive(child))


def test_a_program_that_will_not_end_is_killed(program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.2)
    text = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    error = program(text, timeout=1.0).outcome.error
    pid = int(str(error).rpartition(" ")[2])
    eventually(lambda: not is_alive(pid))


@pytest.mark.parametrize("alone", [False, True])
def test_what_a_program_leaves_behind_is_not_waited_for(program, tmp_path: Path, alone: bool) -> None:
    """A process that holds the output open costs a second, not the whole time-out; in a session of its own it lives."""
    started = time.monotonic()
    assert program(LEAVES_ONE_BEHIND.format(alone=alone), timeout=50.0).outcome == Outcome(output="done")
    assert time.monotonic() - started < 30
    child = number(tmp_path / "child")
    if alone:
        os.kill(child, signal.SIGKILL)
    eventually(lambda: not is_alive(child))


def test_endless_output_is_ended_long_before_the_time_is(program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_BYTES", 1_000_000)
    error = program("while True:\n    print('y' * 1000)", timeout=50.0).outcome.error
    assert str(error).startswith("stopped after it had written more than ")


def test_running_programs_end_when_agentfn_is_interrupted(program, tmp_path: Path) -> None:
    results: list[Result] = []
    text = "import os, time\nopen('t', 'w').write(str(os.getpid()))\nos.rename('t', 'pid')\ntime.sleep(60)"
    thread = threading.Thread(target=lambda: results.append(program(text, timeout=50.0)))
    thread.start()
    pid = number(tmp_path / "pid")
    stop_running()
    thread.join(20)
    assert not is_alive(pid)
    assert results[0].outcome.error == "killed by signal 15 (SIGTERM)"


def test_ctrl_c_ends_the_program_and_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(LEAVES_ONE_BEHIND.format(alone=False) + "child.wait()\n")
    caller = (
        "import sys; from pathlib import Path; from tests.unit.handlers.making import CONTEXT, make\n"
        "make(Path(sys.argv[1]), 'exec', [sys.executable, 'tool.py']).run({}, CONTEXT)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", caller, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    ) as running:
        child = number(tmp_path / "child")
        running.send_signal(signal.SIGINT)
        _, stderr = running.communicate(timeout=30)
    assert stderr.rstrip().endswith(b"KeyboardInterrupt")
    eventually(lambda: not is_alive(child))


def test_a_running_handler_holds_what_it_is_to_inherit(program, tmp_path: Path) -> None:
    read, write = os.pipe()
    (tmp_path / "tool.py").write_text(f"import os\nos.write({write}, b'held')\n")
    result = make(tmp_path, "exec", [sys.executable, "tool.py"]).run({}, CONTEXT._replace(inherit=(write,)))
    os.close(write)
    assert result.outcome.output == ""
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"held"


def test_a_part_of_the_time_that_the_service_leaves_is_kept_to_tell_it(tmp_path: Path) -> None:
    now = time.monotonic()
    assert CONTEXT.seconds_for(30.0) == 30.0
    assert CONTEXT._replace(deadline=now + 600).seconds_for(30.0) == 30.0
    assert 50 < CONTEXT._replace(deadline=now + 60).seconds_for(100.0) <= 55
    assert 0 < CONTEXT._replace(deadline=now - 5).seconds_for(100.0) <= 0.1
    handler = make(tmp_path, "exec", ["sleep", "30"], timeout=30.0)
    result = handler.run({}, CONTEXT._replace(deadline=time.monotonic() + 0.4))
    assert result.outcome.error == "no answer within 0.3 s"


def test_ids_with_odd_characters_start_a_program_all_the_same(tmp_path: Path) -> None:
    handler = make(tmp_path, "exec", ["sh", "-c", 'printf %s "$AGENTFN_CALL_ID"'])
    odd = CONTEXT._replace(call=Call("call_\0\ud83d", "f", "{}"))
    assert handler.run({}, odd).outcome.output == "call_\ufffd\ufffd"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "plain.sh",
            b"#!/bin/sh\n",
            "plain.sh is not executable (chmod +x, or name its interpreter first: [sh, plain.sh])",
        ),
        ("+crlf", b"#!/bin/sh\r\necho\r\n", "has Windows line ends"),
        ("+gone", b"#!/opt/none/python3\n", "asks for the interpreter /opt/none/python3, which is not there"),
        ("+empty_line", b"#!\n", "asks for the interpreter (none)"),
        ("+by_env", b"#!/usr/bin/env no-such-xyz\n", "asks for no-such-xyz, which was not found on PATH"),
        ("+text", b"echo hello\n", "is no program: it has no #! line"),
        ("+nothing", b"", "is no program"),
    ],
)
def test_a_file_that_cannot_start_is_told_with_its_reason(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name.removeprefix("+")
    path.write_bytes(content)
    if name.startswith("+"):
        path.chmod(0o755)
    handler = make(tmp_path, "exec", [f"./{path.name}"])
    assert told in str(handler.problem())
    assert told in str(handler.run({}, CONTEXT).outcome.error), "also where nobody looked before"


@pytest.mark.parametrize(
    "line", ["#!/bin/sh -e", "#! /usr/bin/env sh", "#!/usr/bin/env -S sh -e", "#!/usr/bin/env A=b sh"]
)
def test_a_file_that_can_start_has_no_problem(tmp_path: Path, line: str) -> None:
    (tmp_path / "tool").write_text(f"{line}\necho ok\n")
    (tmp_path / "tool").chmod(0o755)
    assert make(tmp_path, "exec", ["./tool"]).problem() is None


def test_a_program_of_a_kind_we_do_not_know_is_left_to_the_system(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"ODD\0\0")
    (tmp_path / "odd").chmod(0o755)
    handler = make(tmp_path, "exec", ["./odd"])
    assert handler.problem() is None
    assert str(handler.run({}, CONTEXT).outcome.error).startswith("cannot start ./odd: ")


@pytest.mark.parametrize(
    ("command", "keys", "told"),
    [
        (["no-such-program-xyz"], {}, "no-such-program-xyz was not found on PATH"),
        (["cat", "a\0b"], {}, "holds a NUL character"),
        (["cat"], {"cwd": "none"}, "there is no folder"),
        (["./"], {}, "is a folder"),
    ],
)
def test_a_command_that_cannot_start_is_told(
    tmp_path: Path, command: list[str], keys: dict[str, Any], told: str
) -> None:
    handler = make(tmp_path, "exec", command, **keys)
    assert told in str(handler.problem())
    assert told in str(handler.run({}, CONTEXT).outcome.error)
