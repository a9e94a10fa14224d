"""A service that fails, throttles or cuts the connection: no message and no output goes out twice, nothing runs twice."""

from __future__ import annotations

import json
import re

import pytest

from tests.conftest import eventually

AGENT = """\
name: biller
model: m
tools:
  - name: create_invoice
    description: Create an invoice over an amount.
    parameters: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    handler: {exec: [python3, invoice.py]}
"""
INVOICE = "import sys\nopen('ledger.txt', 'a').write(sys.stdin.read().strip() + '\\n')\nprint('{\"ok\": true}')"
CALL = "- call: {create_invoice: {amount: 5}}\n"
SAY = "- say: Invoice created.\n"


@pytest.fixture
def bill(run, write):
    """Run the biller against a scenario; returns the run and the items of the conversation."""
    write("biller.yaml", AGENT)
    write("invoice.py", INVOICE)

    def go(scenario: str, *flags: str, exit: int = 0):  # noqa: A002
        write("scenario.yaml", scenario)
        ran = run("chat", "biller.yaml", "Bill 5", "--scenario", "scenario.yaml", *flags, exit=exit)
        (row,) = run("list", "--json").data["conversations"]
        entries = run("log", row["conversation"], "--json").data["entries"]
        return ran, entries

    return go


def assert_once(run, entries) -> None:
    assert [e["text"] for e in entries if e["kind"] == "user"] == ["Bill 5"]
    assert len([e for e in entries if e["kind"] == "output"]) == 1
    assert (run.folder / "ledger.txt").read_text() == '{"amount": 5}\n'


THROTTLED = "- error: {status: 429, code: rate_limit_exceeded, headers: {retry-after-ms: '1'}}\n"
FAILED = "- error: {status: 500, code: server_error}\n"
LOCKED = "- error: {status: 400, code: conversation_locked, headers: {retry-after-ms: '1'}}\n"


@pytest.mark.parametrize("flags", [(), ("--events",)], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "scenario",
    [
        CALL + THROTTLED + FAILED + SAY,
        THROTTLED + CALL + SAY,
        FAILED + CALL + SAY,
        CALL + LOCKED + SAY,
        "- {cut: before}\n" + CALL + SAY,
        "- {call: {create_invoice: {amount: 5}}, cut: after}\n" + SAY,
        "- {call: {create_invoice: {amount: 5}}, cut: mid}\n" + SAY,
        CALL + "- {cut: before}\n" + SAY,
        CALL + "- {say: Invoice created., cut: after}\n",
        CALL + "- {say: Invoice created., cut: mid}\n",
    ],
    ids=[
        "429 and 500 on the outputs",
        "429 on the message",
        "500 on the message",
        "locked",
        "cut before the message arrived",
        "reply to the message lost",
        "reply to the message cut",
        "cut before the outputs arrived",
        "reply to the outputs lost",
        "reply to the outputs cut",
    ],
)
def test_trouble_is_waited_out_and_nothing_happens_twice(bill, run, scenario, flags):
    ran, entries = bill(scenario, *flags)
    assert "Invoice created." in ran.stdout
    assert_once(run, entries)


def test_the_retry_is_told(bill):
    ran, _ = bill(CALL + THROTTLED + SAY)
    assert "the service answered 429 rate_limit_exceeded; trying again in" in ran.stderr


def test_outputs_are_kept_when_the_service_stays_down_and_sent_by_respond(bill, run):
    down = THROTTLED.replace("\n", "") + "\n  repeat: 5\n"
    ran, _ = bill(CALL + down + SAY, "--json", exit=5)
    assert ran.json["errors"][0]["code"] == "throttled"
    assert run("pending", "--json").data[0]["state"] == "answered"
    assert run("respond").stdout == "Invoice created.\n"
    (row,) = run("list", "--json").data["conversations"]
    assert_once(run, run("log", row["conversation"], "--json").data["entries"])


def test_a_quota_is_no_throttle(bill, run):
    ran, _ = bill("- error: {status: 429, code: insufficient_quota, message: You exceeded it.}\n", exit=5)
    assert "trying again" not in ran.stderr
    assert "quota" in ran.stderr


def test_a_wait_beyond_reason_is_refused_with_its_length(bill):
    ran, _ = bill("- error: {status: 429, headers: {retry-after: '86400'}}\n", exit=5)
    assert "86400 s" in ran.stderr


def test_a_failed_response_is_a_failed_turn(bill):
    ran, _ = bill("- fail: {code: server_error, message: no luck}\n", "--json", exit=1)
    assert ran.json["errors"][0]["message"] == "the turn failed: no luck (server_error)"
    assert ran.data["answer"] is None


def test_a_scenario_without_a_matching_step_says_so_loudly(bill):
    ran, _ = bill("- when: {message: something else}\n  say: hi\n", "--json", exit=1)
    message = ran.json["errors"][0]["message"]
    assert "has no step for model step 1" in message
    assert "the message does not hold 'something else'" in message


def test_killed_while_the_handler_runs_the_call_is_in_doubt_and_not_run_again(run, write):
    write("biller.yaml", AGENT)
    write("invoice.py", "import time\n" + INVOICE + "\nopen('started', 'w').close()\ntime.sleep(60)")
    process = run.start("chat", "biller.yaml", "Create an invoice over 5")
    eventually((run.folder / "started").exists)
    process.kill()
    process.communicate()
    (call,) = run("pending", "--json").data
    assert call["state"] == "running", "the orphan still runs and holds the conversation"
    orphan = eventually(lambda: _processes("invoice.py", run.folder))
    for pid in orphan:
        _end(pid)
    eventually(lambda: run("pending", "--json").data[0]["state"] == "in_doubt")
    run("respond", "--run", exit=8)
    assert (run.folder / "ledger.txt").read_text().count("\n") == 1
    run("respond", "--output", "it did run")
    assert run("pending", "--json").data == []


def _processes(word: str, folder) -> list[int]:
    import os

    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    line = file.read()
                if word.encode() in line and os.readlink(f"/proc/{name}/cwd") == str(folder):
                    found.append(int(name))
            except OSError:
                continue
    return found


def _end(pid: int) -> None:
    import os
    import signal

    os.kill(pid, signal.SIGKILL)


def test_a_second_process_on_one_conversation_waits_and_then_says_so(run, write):
    write("biller.yaml", AGENT)
    write("invoice.py", "import time\n" + INVOICE + "\nopen('started', 'w').close()\ntime.sleep(3)")
    process = run.start("chat", "biller.yaml", "Create an invoice over 5", "--json")
    eventually((run.folder / "started").exists)
    conversation = run("pending", "--offline", "--json").data[0]["conversation"]
    ran = run("respond", conversation, "--output", "x", "--wait", "0", exit=5)
    assert re.search(r"(process \d+ \(.+\)|another process) is at work in it", ran.stderr)
    stdout, _ = process.communicate(timeout=30)
    assert json.loads(stdout)["status"] == "ok"


def test_secrets_are_never_shown_even_when_the_service_echoes_them(run, serve, write):
    token = "tok-SECRET-0123456789abcdef"
    scenario = write("s.yaml", f"- error: {{status: 401, code: bad, message: 'Incorrect key: {token}'}}\n")
    served = serve("--scenario", scenario)
    write("biller.yaml", AGENT)
    write("invoice.py", INVOICE)
    flags = ["--backend", "foundry", "--endpoint", served.endpoint, "--debug"]
    ran = run("chat", "biller.yaml", "Create an invoice", *flags, env={"AGENT_TOKEN": token}, exit=4)
    assert "SECRET" not in ran.stderr + ran.stdout
    assert "Authorization: ***" in ran.stderr


def test_an_unreachable_service_is_5_and_a_missing_token_is_4(run, agent):
    flags = ["--backend", "foundry", "--endpoint"]
    ran = run("list", "--remote", *flags, "http://127.0.0.1:9/api/projects/p", "--json", exit=5)
    assert ran.json["errors"][0]["code"] == "unreachable"
    env = {"PATH": str(run.folder)}
    ran = run("create", agent(), *flags, "https://nowhere.invalid/api/projects/p", "--json", env=env, exit=4)
    assert ran.json["errors"][0]["hint"]
    ran = run("create", agent(), *flags, "http://example.com/api/projects/p", exit=2)
    assert "plain http" in ran.stderr
