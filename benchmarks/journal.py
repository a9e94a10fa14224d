"""What the journal costs: a turn of 100 calls with and without fsync, and `pending` over many old calls.

Usage: python benchmarks/journal.py [ROUNDS]. Prints medians; nothing here is a test.
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
AGENT = """
name: bench
model: m
tools:
  - name: f
    description: Does something small.
    parameters: {type: object, properties: {n: {type: integer}}}
    handler: {output: ok}
"""
CALLS = 100
TURN = """
import os, sys, time, sqlite3
if sys.argv[2] == "off":
    connect = sqlite3.connect
    class Loose(sqlite3.Connection):
        def execute(self, sql, *values):
            return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *values)
    sqlite3.connect = lambda *a, **k: connect(*a, factory=Loose, **k)
sys.argv = ["agentfn", "chat", "agent.yaml", "go", "--scenario", "s.yaml"]
from agentfn.__main__ import main
main()
"""


def measured(command, env, folder):
    """Return the seconds that a command takes."""
    begun = time.perf_counter()
    subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - begun


def turns(folder):
    """Time a turn of many calls, five a step, with the journal's fsync and without."""
    (folder / "agent.yaml").write_text(AGENT)
    steps = [f"- call: [{', '.join(f'{{f: {{n: {s * 5 + n}}}}}' for n in range(5))}]" for s in range(CALLS // 5)]
    (folder / "s.yaml").write_text("\n".join([*steps, "- say: done"]))
    (folder / "turn.py").write_text(TURN)
    found = {"full": [], "off": []}
    for number in range(ROUNDS):
        for mode, times in found.items():
            env = {**os.environ, "AGENTFN_HOME": str(folder / f"{mode}{number}")}
            times.append(measured([sys.executable, "turn.py", "x", mode], env, folder))
    full, off = (statistics.median(found[mode]) for mode in ("full", "off"))
    print(
        f"turn of {CALLS} calls: {full:.3f} s with fsync, {off:.3f} s without: {(full - off) / CALLS * 1000:.2f} ms a call"
    )


def pending(folder):
    """Time `pending` over an empty journal and over one of 100,000 old calls."""
    times = {}
    for count in (0, 100_000):
        env = {**os.environ, "AGENTFN_HOME": str(folder / f"p{count}")}
        command = [sys.executable, "-m", "agentfn", "pending"]
        subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True)
        with sqlite3.connect(folder / f"p{count}" / "journal.db") as db:
            for number in range(count // 10):
                db.execute(
                    "INSERT INTO turn (id, backend, endpoint, conversation, message, state, run, at)"
                    " VALUES (?, 'local', 'local/foundry', ?, 'm', 'ended', 'r', 1.0)",
                    (f"t{number}", f"c{number}"),
                )
                db.executemany(
                    "INSERT INTO call (backend, endpoint, conversation, turn, id, asked_by, position, function, arguments,"
                    " state, output, asked_at)"
                    " VALUES ('local', 'local/foundry', ?, ?, ?, 'x', 0, 'f', '{}', 'accepted', 'o', 1.0)",
                    [(f"c{number}", f"t{number}", f"k{n}") for n in range(10)],
                )
        db.close()
        times[count] = statistics.median(measured(command, env, folder) for _ in range(ROUNDS))
    print(f"pending: {times[0]:.3f} s over nothing, {times[100_000]:.3f} s over 100,000 old calls")


with tempfile.TemporaryDirectory() as name:
    turns(Path(name))
    pending(Path(name))
