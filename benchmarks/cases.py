"""What running cases costs beyond the service: 100 cases at 50 ms a request, 8 at a time, and their CPU without latency.

Usage: python benchmarks/cases.py [ROUNDS]. Prints medians for the embedded service in process and for one over the
loopback; nothing here is a test. The ideal is the critical path: the rounds of 8 cases, each as long as its two answers.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
CASES, JOBS, LATENCY = 100, 8, 0.05
AGENT = """
name: bench
model: m
tools:
  - name: f
    description: Does something small.
    parameters: {type: object, properties: {n: {type: integer}}}
    handler: {output: ok}
"""
EXPECT = "expect: {calls: [{name: f, arguments: {n: 1}}], answer: done}"


def steps(delay):
    """Return a case's scenario, each of its two answers late by `delay` seconds."""
    late = f", delay: {delay}s" if delay else ""
    return f"[{{call: {{f: {{n: 1}}}}{late}}}, {{say: done{late}}}]"


def write_cases(folder, name, count, delay):
    """Write a test file and return its path."""
    path = folder / f"test_{name}.yaml"
    lines = [f"  - {{name: c{n}, input: go, local: {steps(delay)}, {EXPECT}}}" for n in range(count)]
    path.write_text("agent: agent.yaml\ncases:\n" + "\n".join(lines) + "\n")
    return path


def measured(command, env, folder):
    """Return the seconds and the CPU seconds that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run(command, env=env, cwd=folder, check=True, capture_output=True)
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def medians(commands, env, folder):
    """Run all commands in turn, round by round, and return each one's median seconds and CPU seconds."""
    found = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, command in commands.items():
            figures = measured(command, env, folder)
            if number:  # the first round warms up
                found[name].append(figures)
    return {
        name: [statistics.median(column) for column in zip(*figures, strict=True)] for name, figures in found.items()
    }


def report(label, found):
    """Print what a place costs."""
    ideal = math.ceil(CASES / JOBS) * 2 * LATENCY
    start_up = found["one"][0]
    net = found["late"][0] - start_up
    print(
        f"{label}: {CASES} cases at {LATENCY * 1000:g} ms, {JOBS} at a time: {found['late'][0]:.2f} s, start-up "
        f"{start_up:.2f} s, ideal {ideal:.2f} s: ratio {net / ideal:.2f}"
    )
    cpu = (found["fast"][1] - found["one"][1]) / (CASES - 1)
    print(f"{label}: without latency {cpu * 1000:.1f} ms of CPU a case")


def in_process(folder):
    """Measure the embedded service in process."""
    test = [sys.executable, "-m", "agentfn", "test", "-j", str(JOBS)]
    commands = {
        "late": [*test, write_cases(folder, "late", CASES, LATENCY)],
        "fast": [*test, write_cases(folder, "fast", CASES, 0)],
        "one": [*test, write_cases(folder, "one", 1, 0)],
    }
    report("in process", medians(commands, {**os.environ, "AGENTFN_HOME": str(folder / "home")}, folder))


def over_loopback(folder):
    """Measure a service of another process; its own CPU is not counted."""
    found = {}
    for name, count, delay in (("late", CASES, LATENCY), ("fast", CASES, 0), ("one", 1, 0)):
        path = write_cases(folder, name, count, delay)
        scenario = folder / f"{name}.yaml"
        scenario.write_text(steps(delay))
        env = {**os.environ, "AGENTFN_HOME": str(folder / f"served-{name}")}
        server = subprocess.Popen(
            [sys.executable, "-m", "agentfn", "serve", "--scenario", str(scenario), "--json"],
            env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            values = json.loads(server.stdout.readline())["data"]["env"]
            command = [sys.executable, "-m", "agentfn", "test", "-j", str(JOBS), "--backend", "foundry", path]
            env = {**os.environ, **values, "AGENTFN_HOME": str(folder / f"client-{name}")}
            found |= medians({name: command}, env, folder)
        finally:
            server.terminate()
            server.wait()
    report("over the loopback", found)


with tempfile.TemporaryDirectory() as name:
    root = Path(name)
    (root / "agent.yaml").write_text(AGENT)
    in_process(root)
    over_loopback(root)
