"""Compares a whole job (`chat --rm` over loopback) with a bare httpx script that sends the same six requests.

Prints the median CPU time of both, their ratio pair by pair, and the peak memory. Usage: job.py [RUNS]. Run it with the
Python of a compiled install: without bytecode, every start pays for compiling.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def measure(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run a command to its end; return its CPU seconds (user and system) and its peak memory in MiB."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    complaint = process.stderr.read() if process.stderr else b""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} failed: {complaint.decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Serve, measure in turn, print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as home:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"AGENTFN_HOME": home}
        agentfn = [sys.executable, "-m", "agentfn"]
        server = subprocess.Popen([*agentfn, "serve", "--json"], env=env, stdout=subprocess.PIPE, text=True)
        try:
            ready = json.loads(server.stdout.readline()) if server.stdout else {}
            endpoint = ready["data"]["endpoint"]
            bare = [sys.executable, str(HERE / "bare_job.py"), endpoint]
            ours = [*agentfn, "chat", str(HERE / "job_agent.yaml"), "What is my horoscope? I am an Aquarius.", "--rm"]
            ours += ["--backend", "foundry", "--endpoint", endpoint]
            measure(bare, env)
            measure(ours, env)
            pairs = [(measure(bare, env), measure(ours, env)) for _ in range(runs)]
        finally:
            server.terminate()
            server.wait()
    print(f"bare httpx    {statistics.median(a[0] for a, _ in pairs) * 1000:6.0f} ms CPU")
    print(f"agentfn chat  {statistics.median(b[0] for _, b in pairs) * 1000:6.0f} ms CPU")
    print(f"ratio         {statistics.median(b[0] / a[0] for a, b in pairs):6.2f}  (median of pairs)")
    print(f"peak memory   {max(b[1] for _, b in pairs):6.1f} MiB (bare: {max(a[1] for a, _ in pairs):.1f})")


if __name__ == "__main__":
    main()
