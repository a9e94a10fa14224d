"""`doctor`: what is configured and from where; with a file, the three checks that an agent's functions work."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest

from tests.conftest import SAMPLES


def checks(ran) -> dict[str, dict[str, Any]]:
    return {check["name"]: check for check in ran.data["checks"]}


def test_every_setting_says_where_it_comes_from(run, write):
    write("agentfn.toml", 'model = "big"\n')
    found = checks(run("doctor", "--json", env={"AGENTFN_BACKEND": "local"}))
    assert found["backend"] == {"name": "backend", "value": "local", "origin": "AGENTFN_BACKEND", "ok": True}
    assert found["model"]["origin"].endswith("agentfn.toml")
    assert found["home"]["origin"] == "AGENTFN_HOME"
    assert "no language model" in found["service"]["origin"]


def token(expires_at: float) -> str:
    parts = [{"alg": "none"}, {"upn": "kim@example.com", "exp": int(expires_at)}]
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts), "sig"])


def test_a_token_says_whose_it_is_and_until_when(run, serve):
    flags = ["--backend", "foundry", "--endpoint", serve().endpoint]
    good = checks(run("doctor", *flags, "--json", env={"AGENT_TOKEN": token(time.time() + 3600)}))
    assert good["token"]["value"].startswith("for kim@example.com, until ")
    assert good["service"]["ok"] is True
    ran = run("doctor", *flags, "--json", env={"AGENT_TOKEN": token(1.0)}, exit=4)
    assert checks(ran)["token"]["ok"] is False
    assert "expired" in ran.json["errors"][0]["message"]


def test_a_service_that_does_not_answer_fails_its_check(run):
    ran = run("doctor", "--backend", "foundry", "--endpoint", "http://127.0.0.1:9/api/projects/p", exit=5)
    assert "FAILS service" in ran.stdout


@pytest.mark.parametrize("sample", ["horoscope", "weather", "by-hand"])
def test_the_three_checks_pass_for_each_sample_and_leave_nothing(run, sample):
    ran = run("doctor", SAMPLES / sample / "agent.yaml", "--json")
    assert [check["ok"] for check in ran.data["checks"]] == [True, True, True]
    assert run("list", "--json").data["agents"] == []
    assert run("list", "--json").data["conversations"] == []


@pytest.mark.parametrize(
    ("scenario", "handler", "failing", "remedy"),
    [
        ("- say: hello\n", "{output: rain}", "asks for a call", "agentfn validate"),
        (
            "- call: {get_weather: {city: Oslo}}\n- say: done\n",
            "{exec: [python3, -c, 'exit(3)']}",
            "the function runs",
            "agentfn call",
        ),
        ("- call: {get_weather: {}}\n- say: done\n", "{output: rain}", "the function runs", "agentfn call"),
        (
            "- call: {get_weather: {city: Oslo}}\n- fail: {code: x, message: no luck}\n",
            "{output: rain}",
            "an answer follows",
            "instructions",
        ),
    ],
)
def test_the_check_that_fails_is_named_with_what_to_do(run, agent, write, scenario, handler, failing, remedy):
    write("s.yaml", scenario)
    path = agent(handler, extra="local: s.yaml\n")
    ran = run("doctor", path, "--json", exit=1)
    assert ran.data["checks"][-1]["name"] == failing
    assert ran.data["checks"][-1]["ok"] is False
    assert remedy in ran.json["errors"][0]["hint"]
    assert run("list", "--json").data["agents"] == []
