"""Asking before a call runs: on a terminal, by a file of rules, and what a stop in between leaves behind."""

from __future__ import annotations

import json
import sqlite3

import pytest

AGENT = """
name: bank
model: m
tools:
  - name: pay
    description: Pays somebody an amount.
    parameters: {{type: object, properties: {{amount: {{type: integer}}}}, required: [amount]}}
    handler: {{exec: [python3, pay.py]}}
    ask: {ask}
"""
PAY = "import json, sys\namount = json.load(sys.stdin)['amount']\nopen('PAID', 'a').write(f'{amount} ')\nprint(f'paid {amount}')\n"
SCENARIO = "- call: {pay: {amount: 50}}\n- say: 'The bank: {{output}}'\n"


@pytest.fixture
def bank(run, write):
    """Write an agent that asks, and return the arguments of a chat with it."""

    def make(ask: str = "always") -> list[str]:
        write("pay.py", PAY)
        return [
            "chat",
            str(write("bank.yaml", AGENT.format(ask=ask))),
            "pay",
            "--scenario",
            str(write("s.yaml", SCENARIO)),
        ]

    return make


@pytest.fixture
def paid(run):
    def read() -> str:
        path = run.folder / "PAID"
        return path.read_text().strip() if path.exists() else ""

    return read


@pytest.mark.parametrize(
    ("rules", "code", "payments", "told"),
    [
        ("pay: yes\n", 0, "50", "The bank: paid 50"),
        ("pay: no\n", 0, "", "says no to pay"),
        ("pay: {if: {properties: {amount: {maximum: 100}}}}\n", 0, "50", "paid 50"),
        ("pay: {if: {properties: {amount: {maximum: 10}}}}\n", 8, "", None),
        ("refund: yes\n", 8, "", None),
        ("{}\n", 8, "", None),
    ],
)
def test_a_file_decides_where_nobody_is_there(run, write, bank, paid, *, rules, code, payments, told):
    ran = run(*bank(), "--approve", write("rules.yaml", rules), "--json", exit=code)
    assert paid() == payments
    if told is None:
        assert ran.data["calls"][0]["state"] == "waiting"
    else:
        assert told in ran.data["answer"]


@pytest.mark.parametrize("rules", ["- pay\n", "pay: maybe\n", "pay: {if: 3}\n", "pay: {if: {type: intger}}\n"])
def test_a_file_that_is_wrong_is_refused_before_anything_happens(run, write, bank, paid, rules):
    ran = run(*bank(), "--approve", write("rules.yaml", rules), "--json", exit=3)
    assert (
        ran.json["errors"][0]["location"].startswith("rules.yaml") or "rules.yaml" in ran.json["errors"][0]["location"]
    )
    assert paid() == ""


def test_arguments_that_are_harmless_need_no_approval(run, bank, paid):
    run(*bank("{unless: {properties: {amount: {maximum: 100}}}}"))
    assert paid() == "50"


def test_the_question_shows_what_will_run_and_takes_other_arguments(run, bank, paid):
    seen = run.on_terminal(*bank(), answers='e\n{"amount": "x"}\ne\n{"amount": 7}\n')
    assert "exec: 'python3' 'pay.py'" in seen
    assert '{"amount": 50}' in seen
    assert "these arguments are wrong" in seen
    assert paid() == "7"
    assert "The bank: paid 7" in seen


def test_a_decision_is_kept_and_bound_to_the_arguments_it_was_made_for(run, write, bank, paid):
    run(*bank(), exit=8)
    with sqlite3.connect(run.home / "journal.db") as db:
        from agentfn.journal.calls import decision_hash

        row = db.execute("SELECT function, arguments FROM call").fetchone()
        decision = {"verdict": "yes", "hash": decision_hash("pay", '{"amount": 5}'), "by": "terminal"}
        db.execute("UPDATE call SET state = 'approved', decision = ?", (json.dumps(decision),))
    db.close()
    run("respond", "--run", exit=8)  # it was made for another amount
    assert paid() == ""
    with sqlite3.connect(run.home / "journal.db") as db:
        decision["hash"] = decision_hash(*row)
        db.execute("UPDATE call SET decision = ?", (json.dumps(decision),))
    db.close()
    assert run("respond", "--run").stdout == "The bank: paid 50\n"
    assert paid() == "50"


# In doubt ------------------------------------------------------------------------------------------------------------

VERIFY = """
name: bank
model: m
tools:
  - name: pay
    description: Pays somebody an amount.
    parameters: {{type: object, properties: {{amount: {{type: integer}}}}, required: [amount]}}
    handler: {{exec: [python3, pay.py]}}
    verify: [python3, verify.py]
"""


@pytest.mark.parametrize(
    ("verify", "code", "payments", "told"),
    [
        ("print('it was paid')", 0, "", "it was paid"),
        ("import sys; sys.exit(3)", 0, "50", "paid 50"),
        ("import sys; sys.exit('no idea')", 8, "", "stays in doubt: verify did not tell: exit 1: no idea"),
    ],
)
def test_a_verify_command_settles_a_doubt(run, write, paid, verify, code, payments, told):
    write("pay.py", PAY)
    write("verify.py", f"import json, sys\nassert json.load(sys.stdin) == {{'amount': 50}}\n{verify}\n")
    run("chat", write("bank.yaml", VERIFY.format()), "pay", "--scenario", write("s.yaml", SCENARIO), "--no-run", exit=8)
    with sqlite3.connect(run.home / "journal.db") as db:
        db.execute("UPDATE call SET state = 'started', started_at = 1.0")
    db.close()
    assert run("pending", "--json").data[0]["state"] == "in_doubt"
    ran = run("respond", "--run", exit=code)
    assert told in ran.stdout + ran.stderr
    assert paid() == payments


def test_an_output_that_looks_like_a_secret_is_held_back_where_the_tool_says_so(run, write):
    key = "sk-" + "a1B2" * 8
    text = VERIFY.format().replace("verify: [python3, verify.py]", "secrets: refuse")
    write("pay.py", f"print('key {key}')\n")
    ran = run("chat", write("bank.yaml", text), "pay", "--scenario", write("s.yaml", SCENARIO), "--json")
    assert "held back" in ran.data["calls"][0]["error"]
    assert key not in ran.stdout + ran.stderr
    assert key.encode() not in (run.home / "journal.db").read_bytes()
