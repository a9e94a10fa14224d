"""Kills a command at every point it passes, then goes on as a user would; prints what was found as one JSON line a point.

Arguments: a folder, the protocol, and the command: ``chat``, or ``respond`` to a call that waits. A point is each statement that writes to a database, each request before it is carried
out and after it was, and the start and the end of the handler's process. Each chat runs in a process of its own, forked
from this one, which has everything imported.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer.main  # noqa: F401  # imported once, before the forks

import agentfn.backends.kept
import agentfn.backends.openai
import agentfn.backends.responses
import agentfn.cli._checkup
import agentfn.cli._responding
import agentfn.emulator.models.scenario
import agentfn.emulator.responses
import agentfn.emulator.sessions  # noqa: F401
from agentfn.__main__ import main
from agentfn.backends.local import InProcess

folder, protocol, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
AGENT = """
name: bot
model: m
tools:
  - name: pay
    description: Pays somebody.
    parameters: {type: object, properties: {to: {type: string}}}
    handler: {exec: [/bin/sh, effect.sh]}
"""
SCENARIO = """
- when: {message: first}
  call: [{name: pay, arguments: {to: Kim}}]
- when: {output: paid}
  say: It is done.
- when: {output: checked}
  say: It is done.
- when: {message: second}
  say: Good bye.
"""

points = 0
fatal = 0


def passed() -> None:
    global points  # noqa: PLW0603  # a program of one purpose
    points += 1
    if points == fatal:
        os.kill(os.getpid(), signal.SIGKILL)


def trap(number: int) -> None:
    """Let this process die at that point."""
    global fatal  # noqa: PLW0603
    fatal = number
    connect, handle, start = sqlite3.connect, InProcess.handle_request, subprocess.Popen.__init__
    wait = subprocess.Popen.communicate

    def traced(*args, **options):
        connection = connect(*args, **options)
        reads = ("SELECT", "PRAGMA", "CREATE", "--")
        connection.set_trace_callback(lambda statement: None if statement.startswith(reads) else passed())
        return connection

    def handled(self, request):
        passed()
        response = handle(self, request)
        passed()
        return response

    def started(self, *args, **options):
        passed()
        start(self, *args, **options)
        passed()

    def waited(self, *args, **options):
        found = wait(self, *args, **options)
        passed()
        return found

    patched: Any = (sqlite3, InProcess, subprocess.Popen)
    patched[0].connect, patched[1].handle_request = traced, handled
    patched[2].__init__, patched[2].communicate = started, waited


def cli(*args: str) -> tuple[int, Any]:
    """Run a command in this process and return its exit code and its document."""
    sys.argv = ["agentfn", *args, "--json"]
    out = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main()
        except SystemExit as exc:
            code = int(exc.code or 0)
    return code, json.loads(out.getvalue())


def child(work) -> int:
    """Run work in a forked process and return how it ended."""
    sys.stdout.flush()
    identity = os.fork()
    if identity == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(identity, 0)[1])


def prepare(home: Path) -> None:
    home.mkdir()
    (home / "agent.yaml").write_text(AGENT)
    (home / "scenario.yaml").write_text(SCENARIO)
    (home / "effect.sh").write_text("echo ran >> effects\necho paid\n")


def enter(home: Path) -> None:
    os.chdir(home)
    os.environ["AGENTFN_HOME"] = str(home / "state")


def chat(home: Path, *more: str) -> None:
    enter(home)
    cli("chat", "agent.yaml", "first", "--protocol", protocol, "--scenario", "scenario.yaml", *more)


def run_trapped(home: Path, number: int) -> None:
    trap(number)
    if command == "chat":
        chat(home)
    else:
        enter(home)
        cli("respond", "--run")


def recover(home: Path, number: int) -> None:
    """Go on as a user would, and tell what was found on the way."""
    enter(home)
    found: dict[str, Any] = {"point": number, "steps": [], "doubt": False}
    for _ in range(8):
        code, document = cli("pending")
        found["steps"].append([code, [call["state"] for call in document["data"] or []]])
        if not document["data"]:
            break
        call = document["data"][0]
        where = call["conversation"]
        if call["state"] == "in_doubt":
            found["doubt"] = True
            found["refused"] = cli("respond", where, "--run")[0]
            found["decided"] = cli("respond", where, "--call", call["call"], "--output", "checked")[0]
        elif call["state"] == "answered":
            found["sent"] = cli("respond", where)[0]
        elif call["state"] == "waiting":
            found["ran"] = cli("respond", where, "--run")[0]
    listed = cli("list", "--protocol", protocol)[1]["data"]
    found["conversations"] = []
    for conversation in listed["conversations"]:
        if conversation["conversation"] is None:
            continue
        code, document = cli("log", conversation["conversation"])
        kinds = [[entry["kind"], entry["text"]] for entry in document["data"]["entries"]] if code == 0 else code
        again = cli("chat", "agent.yaml", "second", "-c", conversation["conversation"], "--scenario", "scenario.yaml")
        found["conversations"].append({"entries": kinds, "again": [again[0], (again[1]["data"] or {}).get("answer")]})
    found["left"] = rows(home / "state" / "journal.db")
    found["cleanup"] = cli("cleanup", "--all", "--yes", "--protocol", protocol)[0]
    remote = cli("list", "--remote", "--protocol", protocol)[1]["data"]
    found["remote"] = [len(remote["agents"]), len(remote["conversations"])]
    effects = home / "effects"
    found["effects"] = len(effects.read_text().splitlines()) if effects.exists() else 0
    print(json.dumps(found))


def rows(journal: Path) -> list[Any]:
    """Return the rows that are in a state which is not their last."""
    if not journal.exists():
        return []
    with contextlib.closing(sqlite3.connect(journal)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'turn'").fetchone():
            return []
        turns = db.execute("SELECT 'turn', state FROM turn WHERE state NOT IN ('ended', 'failed')").fetchall()
        calls = db.execute("SELECT 'call', state FROM call WHERE state NOT IN ('accepted', 'superseded', 'expired')")
        return [*turns, *calls.fetchall()]


for number in range(1, 400):
    home = folder / str(number)
    prepare(home)
    if command == "respond" and child(lambda home=home: chat(home, "--no-run")) != 0:
        sys.exit("the chat before failed")
    killed = child(lambda home=home, number=number: run_trapped(home, number))
    if child(lambda home=home, number=number: recover(home, number)) != 0:
        sys.exit(f"the recovery after point {number} failed")
    shutil.rmtree(home)
    if killed == 0:
        break
    if killed != -signal.SIGKILL:
        sys.exit(f"the chat of point {number} ended with {killed}")
