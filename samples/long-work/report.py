"""A report that takes a while: started in a process of its own, its state kept in a file beside nothing of ours."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(tempfile.gettempdir()) / f"agentfn-reports-{os.environ.get('USER', 'somebody')}"


def start_report(kind):
    """Start the work once; a report that was started already goes on."""
    FOLDER.mkdir(exist_ok=True)
    state = FOLDER / f"{kind}-report.json"
    subprocess.Popen(
        [sys.executable, __file__, "work", str(state)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it outlives this call
    )
    return {"report": f"{kind}-report", "state": "started"}


def report_status(report):
    """Wait a moment for news, then tell how far it is: a quick question would only be asked again."""
    state = FOLDER / f"{report}.json"
    for _ in range(20):
        if state.exists():
            found = json.loads(state.read_text())
            if time.time() - found["at"] < 60:
                return found
        time.sleep(0.05)
    return {"report": report, "state": "working"}


def work(state):
    """The work itself; a real one would take half an hour."""
    time.sleep(0.5)
    found = {"report": state.stem, "state": "done", "text": "It was a good year.", "at": time.time()}
    state.with_suffix(".new").write_text(json.dumps(found))
    state.with_suffix(".new").replace(state)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(Path(sys.argv[2]))
    else:
        # As the verify command: was the report of these arguments started? 3 says that it was not.
        kind = json.load(sys.stdin)["kind"]
        if not (FOLDER / f"{kind}-report.json").exists():
            sys.exit(3)
        print(json.dumps({"report": f"{kind}-report", "state": "started"}))
