"""Every sample works as its first lines say, and as it is."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.conftest import ROOT, SAMPLES

AGENTS = sorted(SAMPLES.glob("*/agent.yaml"))


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_a_sample_is_valid_without_a_warning(run, path) -> None:
    assert run("validate", path, "--json").data["files"][0]["findings"] == []


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_the_command_in_a_sample_works(run, path) -> None:
    command = re.search(r"^# Try: agentfn (.+)$", path.read_text(), re.MULTILINE)
    assert command is not None
    manual = "handler: manual" in path.read_text()
    ran = run(*shlex.split(command[1]), cwd=ROOT, exit=8 if manual else 0)
    assert bool(ran.stdout) != manual


def test_the_weather_assistant_chains_three_functions(run) -> None:
    ran = run("chat", SAMPLES / "weather" / "agent.yaml", "How is the weather in my favourite city?", "--json")
    assert [call["function"] for call in ran.data["calls"]] == ["get_favorite_city", "get_city_nickname", "get_weather"]
    assert "The Emerald City" in ran.data["answer"]
    assert '{"temperature": 70, "unit": "f"}' in ran.data["answer"]


def test_a_function_that_fails_for_an_unknown_city_is_told_to_the_agent(run) -> None:
    ran = run("chat", SAMPLES / "weather" / "agent.yaml", "What is the nickname of Springfield?", "--json")
    assert ran.data["calls"][0]["error"] == "LookupError: no nickname is known for Springfield, OR"
    assert "nobody has told me" in ran.data["answer"]


def test_the_leave_desk_is_answered_from_another_process(run) -> None:
    run("chat", SAMPLES / "by-hand" / "agent.yaml", "May Kim have 12 days of leave from 2026-07-06?", exit=8)
    (call,) = run("pending", "--json").data
    assert call["arguments"] == {"employee": "Kim", "days": 12, "first_day": "2026-07-06"}
    assert "approved by Lee" in run("respond", "--output", "approved by Lee").stdout


def test_the_readmes_tour_works(run) -> None:
    run("create", SAMPLES / "by-hand" / "agent.yaml")
    run("chat", SAMPLES / "by-hand" / "agent.yaml", "May Kim have 12 days of leave from 2026-07-06?", exit=8)
    conversation = run("pending", "--json").data[0]["conversation"]
    run("respond", "--output", "approved by Lee")
    for form in ("text", "json", "jsonl", "md", "html"):
        text = run("log", conversation, "--format", form).stdout
        assert "approved by Lee" in text
    run("cleanup", "--all", "--yes")
