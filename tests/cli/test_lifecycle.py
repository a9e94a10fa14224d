"""`create`, `list`, `show`, `cleanup`: what agentfn made is known, found again after a crash, and alone removed."""

from __future__ import annotations

import json
import sqlite3

import httpx
import pytest

from tests.conftest import SAMPLES

HOROSCOPE = SAMPLES / "horoscope" / "agent.yaml"


@pytest.fixture
def foundry(serve):
    """The embedded service on a port, as a Foundry project; returns flags and a client of somebody else's."""
    served = serve()
    client = httpx.Client(base_url=served.endpoint, headers={"Authorization": "Bearer other"})
    yield ["--backend", "foundry", "--endpoint", served.endpoint], client
    client.close()


def make_version(client: httpx.Client, name: str) -> str:
    body = {"definition": {"kind": "prompt", "model": "gpt-5-mini", "instructions": "Mine."}}
    answer = client.post(f"/agents/{name}/versions?api-version=v1", json=body)
    answer.raise_for_status()
    return str(answer.json()["version"])


def versions(client: httpx.Client, name: str) -> list[str]:
    answer = client.get(f"/agents/{name}/versions?api-version=v1")
    return sorted(v["version"] for v in answer.json()["data"]) if answer.status_code == 200 else []


def test_create_makes_a_version_only_when_the_definition_changed(run, agent):
    path = agent()
    assert run("create", path).stdout == "demo:1\n"
    ran = run("create", path, "--json")
    assert ran.data["agent"] == "demo:1"
    assert ran.data["changed"] is False
    path.write_text(path.read_text().replace("You help.", "You help a lot."))
    ran = run("create", path, "--json")
    assert (ran.data["name"], ran.data["version"], ran.data["changed"]) == ("demo", "2", True)
    assert run("create", path, "--force").stdout == "demo:3\n"


def test_a_handler_is_no_part_of_what_the_service_sees(run, agent):
    run("create", agent("manual"))
    assert run("create", agent("{output: rain}")).stdout == "demo:1\n"


def test_dry_run_shows_what_would_be_sent_and_sends_nothing(run):
    body = json.loads(run("create", HOROSCOPE, "--dry-run").stdout)
    assert body["definition"]["tools"][0]["strict"] is True
    assert "handler" not in json.dumps(body)
    assert run("list", "--json").data["agents"] == []


def test_create_in_a_fresh_home_finds_the_version_that_is_there(run, foundry):
    flags, _ = foundry
    run("create", HOROSCOPE, *flags)
    (run.home / "journal.db").unlink()
    assert run("create", HOROSCOPE, *flags, "--json").data["changed"] is False


def test_list_knows_agents_and_conversations_until_they_are_removed(run):
    chat = run("chat", HOROSCOPE, "Aquarius horoscope", "--json").data
    listed = run("list", "--json").data
    assert [row["agent"] for row in listed["agents"]] == ["horoscope-bot:1"]
    assert [row["conversation"] for row in listed["conversations"]] == [chat["conversation"]]
    run("cleanup", "--all", "--yes")
    listed = run("list", "--json").data
    assert listed["agents"] == listed["conversations"] == []


def test_list_remote_adds_what_others_made(run, foundry):
    flags, client = foundry
    make_version(client, "alice")
    assert run("list", *flags, "--json").data["agents"] == []
    (row,) = run("list", *flags, "--remote", "--json").data["agents"]
    assert (row["agent"], row["owned"]) == ("alice:1", False)


def test_show_tells_who_owns_an_agent(run, foundry):
    flags, client = foundry
    make_version(client, "horoscope-bot")
    assert run("show", "horoscope-bot", *flags, "--json").data["owned"] is False
    run("create", HOROSCOPE, *flags)
    data = run("show", "horoscope-bot", *flags, "--json").data
    assert data["owned"] is True
    assert data["own_versions"] == ["2"]
    assert data["definition"]["tools"][0]["name"] == "get_horoscope"
    assert run("show", "nobody", *flags, "--json", exit=1).json["errors"][0]["code"] == "agent_not_found"


def test_cleanup_without_selector_lists_what_there_is(run):
    run("create", HOROSCOPE)
    ran = run("cleanup", exit=2)
    assert "horoscope-bot:1" in ran.stderr


def test_cleanup_needs_consent(run):
    run("create", HOROSCOPE)
    ran = run("cleanup", "--all", "--json", exit=2)
    assert ran.json["errors"][0]["code"] == "confirmation_needed"
    assert "--yes" in ran.json["errors"][0]["hint"]
    shown = run.on_terminal("cleanup", "--all", answers="n\n", exit=1)
    assert "not confirmed" in shown
    assert len(run("list", "--json").data["agents"]) == 1
    run.on_terminal("cleanup", "--all", answers="y\n")
    assert run("list", "--json").data["agents"] == []


def test_dry_run_of_cleanup_removes_nothing(run):
    run("create", HOROSCOPE)
    assert run("cleanup", "--all", "--dry-run").stdout == "agent horoscope-bot:1\n"
    assert len(run("list", "--json").data["agents"]) == 1


def test_versions_of_others_stay_and_so_does_the_agent(run, foundry):
    flags, client = foundry
    theirs = [make_version(client, "horoscope-bot"), make_version(client, "horoscope-bot")]
    make_version(client, "horoscope-bot-alice")
    run("create", HOROSCOPE, *flags)
    ran = run("cleanup", "--all", "--yes", *flags, "--json")
    assert [row["label"] for row in ran.data["deleted"]] == ["horoscope-bot:3"]
    assert versions(client, "horoscope-bot") == theirs
    assert versions(client, "horoscope-bot-alice") == ["1"]


def test_the_agent_goes_when_no_foreign_version_is_left(run, foundry):
    flags, client = foundry
    run("create", HOROSCOPE, *flags)
    run("create", HOROSCOPE, "--force", *flags)
    run("cleanup", "--agent", "horoscope-bot", "--yes", *flags)
    assert client.get("/agents/horoscope-bot?api-version=v1").status_code == 404


def test_a_strangers_version_of_the_same_name_and_number_is_left_and_reported(run, foundry):
    flags, client = foundry
    run("create", HOROSCOPE, *flags)
    client.delete("/agents/horoscope-bot?api-version=v1").raise_for_status()
    assert make_version(client, "horoscope-bot") == "1"
    ran = run("cleanup", "--all", "--yes", *flags, "--json", exit=1)
    assert ran.data["deleted"] == []
    assert "another's version" in ran.data["left"][0]["why"]
    assert versions(client, "horoscope-bot") == ["1"]


def test_what_is_gone_already_counts_as_removed(run, foundry):
    flags, client = foundry
    conversation = run("chat", HOROSCOPE, "Aquarius horoscope", *flags, "--json").data["conversation"]
    client.delete(f"/openai/v1/conversations/{conversation}").raise_for_status()
    client.delete("/agents/horoscope-bot?api-version=v1").raise_for_status()
    run("cleanup", "--all", "--yes", *flags)
    assert run("list", *flags, "--json").data["conversations"] == []


def test_selectors_by_run_age_and_name(run):
    first = run("chat", HOROSCOPE, "Aquarius horoscope", "--json").data
    second = run("chat", HOROSCOPE, "Taurus horoscope", "--json").data
    run("cleanup", "--older-than", "1d", "--yes")
    run("cleanup", "--run", second["run"], "--yes")
    listed = run("list", "--json").data
    assert [row["conversation"] for row in listed["conversations"]] == [first["conversation"]]
    run("cleanup", "--conversation", first["conversation"], "--yes")
    assert run("list", "--json").data["conversations"] == []
    assert run("cleanup", "--older-than", "soon", exit=2).stderr


def test_a_lost_reply_is_found_by_its_stamp(run, foundry):
    """A crash between the create request and its reply leaves an intended row; clean-up still finds the resource."""
    flags, client = foundry
    conversation = run("chat", HOROSCOPE, "Aquarius horoscope", *flags, "--json").data["conversation"]
    with sqlite3.connect(run.home / "journal.db") as journal:
        journal.execute("UPDATE resource SET state = 'intended', version = NULL, guid = NULL WHERE kind = 'agent'")
        journal.execute("UPDATE resource SET state = 'intended', name = NULL WHERE kind = 'conversation'")
    journal.close()
    ran = run("cleanup", "--all", "--yes", *flags, "--json")
    assert len(ran.data["deleted"]) == 2
    assert client.get(f"/openai/v1/conversations/{conversation}").status_code == 404
    assert versions(client, "horoscope-bot") == []


def test_230_agents_over_three_pages_all_go(run, foundry, write):
    flags, client = foundry
    stamp = {"agentfn-run": "run_many", "agentfn-id": "unset"}
    run("create", HOROSCOPE, *flags)
    with sqlite3.connect(run.home / "journal.db") as journal:
        row = journal.execute("SELECT backend, endpoint FROM resource").fetchone()
        for number in range(230):
            body = {
                "definition": {"kind": "prompt", "model": "m"},
                "metadata": {**stamp, "agentfn-id": f"rsc_{number}"},
            }
            client.post("/agents/many/versions?api-version=v1", json=body).raise_for_status()
            journal.execute(
                "INSERT INTO resource (token, backend, endpoint, kind, name, run, state, at)"
                " VALUES (?, ?, ?, 'agent', 'many', 'run_many', 'intended', 1.0)",
                (f"rsc_{number}", *row),
            )
    journal.close()
    assert len(run("cleanup", "--run", "run_many", "--dry-run", *flags, "--json").data["would_delete"]) == 230
    assert len(run("cleanup", "--run", "run_many", "--yes", *flags, "--json").data["deleted"]) == 230
    assert versions(client, "many") == []
    assert versions(client, "horoscope-bot") == ["1"]
