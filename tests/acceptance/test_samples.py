"""Every sample works as its first lines say, and as it is, over each face of the embedded service."""

from __future__ import annotations

import re
import shlex

import pytest

from agentfn.settings import PROTOCOLS
from tests.conftest import ROOT, SAMPLES

AGENTS = sorted(SAMPLES.glob("*/agent.yaml"))


@pytest.fixture(params=PROTOCOLS)
def face(request: pytest.FixtureRequest) -> list[str]:
    return ["--protocol", request.param]


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_a_sample_is_valid_with_no_warning_but_what_the_service_lacks(run, path, face) -> None:
    findings = run("validate", path, "--json", *face).data["files"][0]["findings"]
    assert [f for f in findings if f["rule"] not in ("openai-strict", "openai-setting")] == []
    assert not findings or face[1] == "openai"


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_the_command_in_a_sample_works(run, path, face) -> None:
    command = re.search(r"^# Try: agentfn (.+?)(?: --protocol openai)?$", path.read_text(), re.MULTILINE)
    assert command is not None
    manual = "handler: manual" in path.read_text()
    ran = run(*shlex.split(command[1]), *face, cwd=ROOT, exit=8 if manual else 0)
    assert bool(ran.stdout) != manual


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_the_command_in_a_sample_works_over_a_socket(run, serve, path, face) -> None:
    """The same, with a client and a service that share nothing but the wire."""
    command = re.search(r"^# Try: agentfn (.+?)(?: --protocol openai)?$", path.read_text(), re.MULTILINE)
    assert command is not None
    scenario = path.with_name("scenario.yaml")
    served = serve(*(["--scenario", scenario] if scenario.is_file() else []))
    endpoint = served.env["FOUNDRY_PROJECT_ENDPOINT" if face[1] == "foundry" else "OPENAI_BASE_URL"]
    manual = "handler: manual" in path.read_text()
    flags = ["--backend", face[1], "--endpoint", endpoint]
    ran = run(*shlex.split(command[1]), *flags, "--json", cwd=ROOT, exit=8 if manual else 0)
    assert ran.data["calls"]
    assert (ran.data["answer"] is None) == manual


def test_the_weather_assistant_chains_three_functions(run, face) -> None:
    question = "How is the weather in my favourite city?"
    ran = run("chat", SAMPLES / "weather" / "agent.yaml", question, "--json", *face)
    assert [call["function"] for call in ran.data["calls"]] == ["get_favorite_city", "get_city_nickname", "get_weather"]
    assert "The Emerald City" in ran.data["answer"]
    assert '{"temperature": 70, "unit": "f"}' in ran.data["answer"]


def test_a_function_that_fails_for_an_unknown_city_is_told_to_the_agent(run, face) -> None:
    question = "What is the nickname of Springfield?"
    ran = run("chat", SAMPLES / "weather" / "agent.yaml", question, "--json", *face)
    assert ran.data["calls"][0]["error"] == "LookupError: no nickname is known for Springfield, OR"
    assert "nobody has told me" in ran.data["answer"]


def test_a_deferred_function_is_found_by_searching(run, face) -> None:
    question = "Does the printer on floor 2 work?"
    ran = run("chat", SAMPLES / "many-functions" / "agent.yaml", question, "--json", *face)
    (call,) = ran.data["calls"]
    assert (call["function"], call["arguments"]) == ("printer_status", {"floor": 2})
    log = run("log", ran.data["conversation"]).stdout
    assert ("tool_search_call" in log) == (face[1] != "openai")  # a session keeps no trace of the search


def test_the_leave_desk_is_answered_from_another_process(run, face) -> None:
    question = "May Kim have 12 days of leave from 2026-07-06?"
    run("chat", SAMPLES / "by-hand" / "agent.yaml", question, *face, exit=8)
    (call,) = run("pending", "--json").data
    assert call["arguments"] == {"employee": "Kim", "days": 12, "first_day": "2026-07-06"}
    assert "approved by Lee" in run("respond", "--output", "approved by Lee").stdout


def test_the_readmes_tour_works(run, face) -> None:
    run("create", SAMPLES / "by-hand" / "agent.yaml", *face)
    run("chat", SAMPLES / "by-hand" / "agent.yaml", "May Kim have 12 days of leave from 2026-07-06?", *face, exit=8)
    conversation = run("pending", "--json").data[0]["conversation"]
    run("respond", "--output", "approved by Lee")
    for form in ("text", "json", "jsonl", "md", "html"):
        text = run("log", conversation, "--format", form).stdout
        assert "approved by Lee" in text
    run("cleanup", "--all", "--yes", *face)
    assert run("list", "--remote", "--json", *face).data["agents"] == []


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/test_*.yaml")), ids=lambda path: path.parent.name)
def test_the_test_files_of_a_sample_pass(run, path, face) -> None:
    data = run("test", path, "--json", *face, cwd=ROOT).data
    assert data["passed"] == len(data["cases"]) >= 2
