"""The journal's file: what it keeps, what it refuses, and that two processes lose nothing."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agentfn.journal.calls import Calls
from agentfn.journal.ledger import Ledger, endpoints
from agentfn.journal.store import Journal, JournalError
from agentfn.journal.turns import Conversation, Turns
from agentfn.model import AgentRef, Call, Outcome, Stamp, Step, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / "home")
    yield opened
    opened.close()


def conversation(identity: str = "conv_1", endpoint: str = "https://a") -> Conversation:
    return Conversation("foundry", endpoint, identity, "bot", "3", "/a/agent.yaml", "d1", {"f": "x"}, "run_1", 1.0)


def opened(journal: Journal, turn: str = "turn_1", where: Conversation | None = None) -> Conversation:
    where = where or conversation()
    turns = Turns(journal)
    turns.begin(where._replace(id=""), turn, "hello", Stamp("run_1", f"token_{turn}"))
    turns.opened(where, turn, f"token_{turn}")
    return where


def step(*calls: Call, identity: str = "resp_1") -> Step:
    return Step(identity, 100.0, 101.0, calls)


def test_the_file_is_readable_by_its_owner_alone(journal: Journal) -> None:
    journal.version()
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.home.stat().st_mode) == 0o700


def test_a_newer_file_is_refused_by_name(journal: Journal) -> None:
    journal.version()
    journal.close()
    with sqlite3.connect(journal.path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(JournalError, match=r"journal\.db was written by a newer agentfn \(version 99"):
        journal.version()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "journal.db").write_text("this is not a database, but a note of some length" * 50)
    with pytest.raises(JournalError, match=r"journal\.db cannot be read"):
        Journal(home).version()


def test_a_conversation_remembers_its_agent_and_definition(journal: Journal) -> None:
    opened(journal)
    assert Turns(journal).find_conversation("conv_1") == [conversation()]


def test_one_conversation_id_at_two_endpoints_is_two_conversations(journal: Journal) -> None:
    opened(journal, "turn_1", conversation(endpoint="https://a"))
    opened(journal, "turn_2", conversation(endpoint="https://b"))
    assert [c.endpoint for c in Turns(journal).find_conversation("conv_1")] == ["https://a", "https://b"]
    assert endpoints(journal) == [("foundry", "https://a"), ("foundry", "https://b")]


def test_a_call_goes_from_waiting_to_accepted(journal: Journal) -> None:
    where = opened(journal)
    calls = Calls(journal, where, "turn_1")
    calls.asked(step(Call("c1", "f", "{}"), Call("c2", "g", "{}")), {"c2": "no such function"}, Usage(1, 2, 3))
    assert [(row.id, row.state, row.problem) for row in calls.unsettled()] == [
        ("c1", "waiting", None),
        ("c2", "waiting", "no such function"),
    ]
    calls.started(["c1"])
    calls.finished([("c1", Outcome(output="")), ("c2", Outcome(error="no"))])
    assert [row.outcome for row in calls.unsettled()] == [Outcome(output=""), Outcome(error="no")]
    calls.set_state(["c1", "c2"], "sent")
    Turns(journal).ended("turn_1", step(identity="resp_2")._replace(answer="done"), Usage(2, 4, 6))
    assert calls.unsettled() == []
    assert {row.state for row in calls.all()} == {"accepted"}
    assert Turns(journal).open() == []
    assert Turns(journal).of(where)[0].usage == Usage(2, 4, 6)


def test_asking_again_keeps_an_outcome_that_is_stored(journal: Journal) -> None:
    where = opened(journal)
    calls = Calls(journal, where, "turn_1")
    calls.asked(step(Call("c1", "f", "{}")), {}, Usage())
    calls.finished([("c1", Outcome(output="42"))])
    calls.asked(step(Call("c1", "f", "{}")), {}, Usage())
    assert calls.unsettled()[0].outcome == Outcome(output="42")


def test_call_ids_that_come_back_in_a_later_turn_are_other_calls(journal: Journal) -> None:
    where = opened(journal)
    Calls(journal, where, "turn_1").asked(step(Call("c1", "f", "{}")), {}, Usage())
    Turns(journal).begin(where, "turn_2", "again", None)
    Calls(journal, where, "turn_2").asked(step(Call("c1", "f", '{"x": 1}')), {}, Usage())
    assert Calls(journal, where, "turn_1").all()[0].arguments == "{}"
    assert Calls(journal, where, "turn_2").all()[0].arguments == '{"x": 1}'


def test_the_ledger_knows_what_was_intended_and_what_became_of_it(journal: Journal) -> None:
    ledger = Ledger(journal, "foundry", "https://a")
    ledger.intend_agent(Stamp("run_1", "t1", "d1"), "bot", None)
    assert [(r.label, r.state) for r in ledger.live()] == [("bot", "intended")]
    assert ledger.agent_with_digest("bot", "d1") is None
    ledger.agent_created("t1", AgentRef("bot", "7", "guid"))
    found = ledger.agent_with_digest("bot", "d1")
    assert found is not None
    assert found.ref == AgentRef("bot", "7", "guid")
    assert Ledger(journal, "foundry", "https://b").live() == []
    ledger.end("t1", "deleted")
    assert ledger.live() == []


def test_removing_a_conversation_ends_its_turns(journal: Journal) -> None:
    where = opened(journal)
    Calls(journal, where, "turn_1").asked(step(Call("c1", "f", "{}")), {}, Usage())
    ledger = Ledger(journal, where.backend, where.endpoint)
    row = ledger.conversation("conv_1")
    assert row is not None
    ledger.conversation_ended(row, "deleted")
    assert Turns(journal).open() == []
    assert Calls(journal, where, "turn_1").all()[0].state == "superseded"


def test_an_agent_that_anothers_conversation_uses_is_known(journal: Journal) -> None:
    where = opened(journal)
    ledger = Ledger(journal, where.backend, where.endpoint)
    ledger.intend_agent(Stamp("run_2", "t2", "d1"), "bot", None)
    ledger.agent_created("t2", AgentRef("bot", "3"))
    row = ledger.latest_agent("bot")
    assert row is not None
    assert ledger.used_by_others(row)
    conversation_row = ledger.conversation("conv_1")
    assert conversation_row is not None
    ledger.conversation_ended(conversation_row, "deleted")
    assert not ledger.used_by_others(row)


def test_a_failed_write_leaves_nothing_behind(journal: Journal) -> None:
    def half() -> None:
        with journal.writing() as db:
            db.execute(
                "INSERT INTO turn (id, backend, endpoint, message, state, run, at)"
                " VALUES ('t', 'b', 'e', 'm', 'open', 'r', 1.0)",
            )
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert journal.connection.execute("SELECT count(*) FROM turn").fetchone()[0] == 0


WRITER = """
import sys
from pathlib import Path
from agentfn.journal.ledger import Ledger
from agentfn.journal.store import Journal
from agentfn.model import Stamp
ledger = Ledger(Journal(Path(sys.argv[1])), "foundry", "https://a")
for i in range(50):
    ledger.intend_agent(Stamp("run", f"{sys.argv[2]}-{i}", "d"), "bot", None)
"""


def test_processes_that_write_at_the_same_time_lose_nothing(journal: Journal) -> None:
    command = [sys.executable, "-c", WRITER, str(journal.home)]
    writers = [subprocess.Popen([*command, name], stderr=subprocess.PIPE) for name in "abc"]
    for writer in writers:
        _, complaint = writer.communicate(timeout=60)
        assert writer.returncode == 0, complaint
    assert len(Ledger(journal, "foundry", "https://a").live()) == 150
