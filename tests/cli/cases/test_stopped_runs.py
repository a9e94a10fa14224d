"""A run that is stopped while handlers run: what it made is removed, by itself or by `cleanup`, and nothing else is."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import signal
import xml.etree.ElementTree as ET

import httpx
import pytest

from tests.conftest import eventually

#: Says that it runs, holds a lock for as long as it does, and waits for a word; by itself it ends after a minute.
BLOCKED = """\
import fcntl, os, sys, time
from pathlib import Path

lock = open('alive', 'a')
fcntl.flock(lock, fcntl.LOCK_SH)
Path('started-' + os.environ['AGENTFN_CALL_ID']).touch()
last = time.monotonic() + 60
while not Path('go').exists() and time.monotonic() < last:
    time.sleep(0.01)
print('rain')
"""
CALL = "[{when: {message: Oslo}, call: {get_weather: {city: Oslo}}}, {when: {output: rain}, say: It rains.}]"
SCENARIO = """\
- {when: {message: hi}, say: hello}
- {when: {message: Oslo}, call: {get_weather: {city: Oslo}}}
- {when: {output: rain}, say: It rains.}
"""
CASES = f"""\
agent: demo.yaml
cases:
  - {{name: quick, input: hi, local: [{{say: hello}}]}}
  - {{name: first, input: Oslo?, local: {CALL}, expect: {{answer: It rains.}}}}
  - {{name: second, input: Oslo!, local: {CALL}, expect: {{answer: It rains.}}}}
"""


@pytest.fixture(params=["local", "foundry"])
def flags(request, run, write, agent, serve) -> list[str]:
    """Return the flags of the place that runs take place on, where somebody has made another agent already."""
    write("blocked.py", BLOCKED)
    agent("{exec: [python3, blocked.py], timeout: 120s}")
    write("test_demo.yaml", CASES)
    if request.param == "foundry":
        run.env |= serve("--scenario", write("s.yaml", SCENARIO)).env
    flags = ["--backend", request.param]
    run("create", agent(name="by-hand"), *flags)
    return flags


@pytest.fixture
def start(run, flags, tmp_path):
    """Start a run of which one case ends and two handlers block; return it and its name once all of that is so."""
    processes = []

    def begin(*more: str):
        for path in tmp_path.glob("started-*"):
            path.unlink()
        process = run.start("test", "test_demo.yaml", *flags, *more)
        processes.append(process)
        told = process.stderr.readline()
        name = re.search(r"run (run_\w+)$", told)
        assert name, told + process.communicate()[1]
        assert "quick" in process.stderr.readline()
        eventually(lambda: len(list(tmp_path.glob("started-*"))) == 2)
        return process, name[1]

    yield begin
    (tmp_path / "go").touch()
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


@pytest.fixture
def no_handler_runs(tmp_path):
    """Tell whether every handler is gone."""

    def gone() -> bool:
        with (tmp_path / "alive").open("a") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    return gone


@pytest.fixture
def there(run, flags):
    """Return the agents and the number of conversations that the ledger, or the service, has."""

    def look(*more: str) -> tuple[list[str], int]:
        data = run("list", "--json", *flags, *more).data
        return sorted(row["agent"] for row in data["agents"]), len(data["conversations"])

    return look


def stop(process, number: int = signal.SIGINT) -> tuple[str, str]:
    """Signal a run, wait for its end, and return what it told since."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stdout + stderr
    return stdout, stderr


def left_of_runs(run) -> list[str]:
    return [path.name for path in (run.home / "runs").glob("*")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_run_ends_its_handlers_and_removes_what_it_made(
    start, run, there, no_handler_runs, number
) -> None:
    process, _ = start()
    stdout, stderr = stop(process, number)
    assert "1 passed, 2 not run in" in stdout
    assert "Traceback" not in stderr
    assert "not removed" not in stderr
    eventually(no_handler_runs)
    assert there() == there("--remote") == (["by-hand:1"], 0)
    assert left_of_runs(run) == []


def test_what_was_interrupted_is_neither_passed_nor_failed_in_the_reports(start, run, tmp_path, flags) -> None:
    process, _ = start("--junit", "out.xml", "--html", "out.html")
    stop(process)
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "out.xml").getroot().iter("testcase")}  # noqa: S314  # ours
    verdicts = ("failure", "error", "skipped")
    assert {name: [child.tag for child in case if child.tag in verdicts] for name, case in cases.items()} == {
        "quick": [],
        "first": ["skipped"],
        "second": ["skipped"],
    }
    assert "not run" in (tmp_path / "out.html").read_text()
    (tmp_path / "go").touch()
    assert run("test", "test_demo.yaml", "--json", *flags).data["passed"] == 3


def test_an_interrupted_run_leaves_earlier_recordings_as_they_were(start, run, write, flags, tmp_path) -> None:
    def recorded() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / "rec").rglob("*") if path.is_file()}

    (tmp_path / "go").touch()
    run("test", "test_demo.yaml", "--record", "rec", *flags)
    before = recorded()
    assert len(before) == 3
    (tmp_path / "go").unlink()
    write("test_demo.yaml", CASES.replace("input: hi", "input: hi there"))
    process, _ = start("--record", "rec")
    _, stderr = stop(process)
    assert "nothing was recorded: the run was interrupted" in stderr
    assert recorded() == before
    write("test_demo.yaml", CASES)
    (tmp_path / "go").touch()
    assert run("test", "test_demo.yaml", "--replay", "rec", "--json").data["passed"] == 3


def test_a_killed_run_is_removed_by_its_name_once_its_handlers_are_gone(
    start, run, flags, there, no_handler_runs, tmp_path
) -> None:
    process, name = start()
    process.kill()
    process.communicate(timeout=30)
    assert not no_handler_runs(), "handlers outlive a kill"
    if "foundry" in flags:
        kept = [f"demo-{name.removeprefix('run_')}:1"]
        assert there("--remote")[0] == sorted(["by-hand:1", *kept])
        busy = run("cleanup", "--run", name, "--yes", "--json", *flags, exit=1)
        whys = {row["why"] for row in busy.data["left"] if row["kind"] == "conversation"}
        assert len(whys) == 2
        assert all(re.fullmatch(r"process \d+ \(\w+\) is at work in it", why) for why in whys)
        assert there("--remote") == (sorted(["by-hand:1", *kept]), 2)
    (tmp_path / "go").touch()
    eventually(no_handler_runs)
    preview = run("cleanup", "--run", name, "--dry-run", *flags).stdout
    assert "by-hand" not in preview
    assert name.removeprefix("run_") in preview
    run("cleanup", "--run", name, "--yes", *flags)
    assert there() == there("--remote") == (["by-hand:1"], 0)
    assert left_of_runs(run) == []
    run("cleanup", "--all", "--yes", *flags)
    assert there("--remote") == ([], 0)


def test_a_killed_run_does_not_disturb_the_next_one(start, run, flags, there, no_handler_runs, tmp_path) -> None:
    process, name = start()
    process.kill()
    process.communicate(timeout=30)
    (tmp_path / "go").touch()
    assert run("test", "test_demo.yaml", "--json", *flags).data["passed"] == 3
    eventually(no_handler_runs)
    if "foundry" in flags:
        run("cleanup", "--run", name, "--yes", *flags)
    assert there() == there("--remote") == (["by-hand:1"], 0)
    assert left_of_runs(run) == []


@pytest.mark.parametrize("service", ["foundry", "openai", "responses"])
def test_a_run_that_waits_for_a_slow_service_is_removed_too(run, write, agent, serve, service) -> None:
    """The service answers long after the run has given up, so its own threads still hold the conversations."""
    agent()
    write("test_demo.yaml", "agent: demo.yaml\ncases: [{name: a, input: hi}, {name: b, input: ho}]\n")
    served = serve("--scenario", write("s.yaml", "- {say: hello, delay: 30s, repeat: forever}\n"))
    run.env |= served.env
    process = run.start("test", "test_demo.yaml", "--backend", service, "--json")

    def asked() -> int:
        requests = httpx.get(f"{served.url}/_agentfn/requests").json()["data"]
        return len([request for request in requests if request["path"].endswith(("/responses", "/sessions"))])

    eventually(lambda: asked() == 2)
    stdout, stderr = stop(process)
    assert json.loads(stdout)["data"]["not_run"] == 2
    assert "not removed" not in stderr
    there = run("list", "--remote", "--json", "--backend", service).data
    assert there["agents"] == there["conversations"] == []
