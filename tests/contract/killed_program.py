"""Runs one turn over a state file and is killed before the Nth statement that it sends to the database.

Arguments: the file, N, the conversation. Ends with exit status 0 where there are fewer statements.
"""

import io
import json
import os
import signal
import sqlite3
import sys
from pathlib import Path

from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario

file, fatal, conversation = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
count = 0
connect = sqlite3.connect


def before(statement: str) -> None:
    global count  # noqa: PLW0603  # a program of one purpose
    if statement.startswith(("SELECT", "PRAGMA")):
        return
    count += 1
    if count == fatal:
        os.kill(os.getpid(), signal.SIGKILL)


def traced(*args, **options):
    connection = connect(*args, **options)
    connection.set_trace_callback(before)
    return connection


sqlite3.connect = traced
app = Application(file, scenario=parse_scenario([{"call": {"f": {}}}, {"say": "done"}], "s.yaml"))


def ask(given):
    body = {"agent_reference": {"type": "agent_reference", "name": "bot"}, "conversation": conversation, "input": given}
    raw = json.dumps(body).encode()
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/api/projects/p/openai/v1/responses",
        "CONTENT_LENGTH": str(len(raw)),
        "wsgi.input": io.BytesIO(raw),
        "agentfn.in_process": True,
    }
    return json.loads(b"".join(app(environ, lambda _status, _headers: None)))


(call,) = ask("hello")["output"]
ask([{"type": "function_call_output", "call_id": call["call_id"], "output": "x"}])
app.close()
