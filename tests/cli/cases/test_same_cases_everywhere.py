"""One test file on the embedded service and on every kind of service over a socket: the same verdicts and calls."""

from __future__ import annotations

import json

import pytest

from tests.cli.cases.conftest import TRAVEL, WEATHER

SCENARIO = """\
- {when: {message: Oslo}, call: {get_weather: {city: Oslo}}}
- {when: {output: rain in Oslo}, say: It rains in Oslo.}
- {when: {message: Bergen}, call: {get_weather: {city: Bergen}, get_time: {city: Bergen}}}
- {when: {output: rain in Bergen}, say: Rain at ten.}
- {when: {message: round}, call: {get_weather: {city: Voss}}}
- {when: {output: rain in Voss}, call: {get_time: {city: Voss}}}
- {when: {output: '10:00'}, say: Went round.}
- {when: {message: Rome}, call: {get_weather: {city: Rome}}}
- {when: {output: no station}, say: Nobody knows.}
- {when: {message: nowhere}, call: {get_weather: {town: nowhere}}}
- {when: {output: city}, say: Which city?}
- {when: {message: fail}, fail: {code: server_error, message: out of order}}
"""
CASES = """\
agent: demo.yaml
defaults: {local: s.yaml}
cases:
  - name: one call
    input: Oslo?
    expect: {calls: [{name: get_weather, arguments: {city: Oslo}, output: rain in Oslo}], nothing_else: true, answer: It rains in Oslo.}
  - name: two turns
    turns:
      - {input: Oslo?, expect: {calls: [get_weather], answer: {contains: Oslo}}}
      - {input: And Bergen?, expect: {calls: [{together: [get_weather, get_time]}], steps: 2}}
    expect: {answer: Rain at ten., steps: 4}
  - name: two rounds
    input: Go round
    expect: {calls: [get_weather, get_time], order: exact, steps: 3}
  - name: a handler that fails
    input: Rome?
    expect: {calls: [{name: get_weather, state: failed, error: {contains: no station}}], answer: Nobody knows.}
  - name: arguments that do not fit
    input: The weather nowhere?
    expect: {calls: [{name: get_weather, state: failed}], answer: Which city?}
  - name: an output of the case
    input: Oslo?
    outputs: {get_weather: rain in Oslo and snow}
    expect: {calls: [{name: get_weather, output: {contains: snow}}]}
  - name: a call that waits
    input: Bergen?
    handlers: false
    outputs: {get_time: noon}
    expect: {pending: [get_weather], calls: [{name: get_time, output: noon}]}
  - name: a turn that fails
    input: fail!
    expect: {failure: {contains: out of order}, calls: []}
  - name: a wrong expectation
    input: Oslo?
    expect: {calls: [{name: get_weather, arguments: {city: Rome}}], never: get_weather, answer: It snows.}
"""
OSLO = ("get_weather", {"city": "Oslo"}, 1, "answered")
#: Of each case: its verdict, and of each turn how it ended, the answer and the calls.
EXPECTED = {
    "one call": ("passed", [("ended", "It rains in Oslo.", [OSLO])]),
    "two turns": (
        "passed",
        [
            ("ended", "It rains in Oslo.", [OSLO]),
            (
                "ended",
                "Rain at ten.",
                [
                    ("get_weather", {"city": "Bergen"}, 1, "answered"),
                    ("get_time", {"city": "Bergen"}, 1, "answered"),
                ],
            ),
        ],
    ),
    "two rounds": (
        "passed",
        [
            (
                "ended",
                "Went round.",
                [("get_weather", {"city": "Voss"}, 1, "answered"), ("get_time", {"city": "Voss"}, 2, "answered")],
            )
        ],
    ),
    "a handler that fails": ("passed", [("ended", "Nobody knows.", [("get_weather", {"city": "Rome"}, 1, "failed")])]),
    "arguments that do not fit": (
        "passed",
        [("ended", "Which city?", [("get_weather", {"town": "nowhere"}, 1, "failed")])],
    ),
    "an output of the case": ("passed", [("ended", "It rains in Oslo.", [OSLO])]),
    "a call that waits": (
        "passed",
        [
            (
                "pending",
                None,
                [
                    ("get_weather", {"city": "Bergen"}, 1, "pending"),
                    ("get_time", {"city": "Bergen"}, 1, "answered"),
                ],
            )
        ],
    ),
    "a turn that fails": ("passed", [("failed", None, [])]),
    "a wrong expectation": ("failed", [("ended", "It rains in Oslo.", [OSLO])]),
}
PLACES = ["local foundry", "local openai", "local responses", "served foundry", "served openai", "served responses"]


@pytest.fixture
def place(run, write, serve):
    """Return the flags of a place, over a socket with a service of its own; which variables are set is the same for all."""

    scenario = write("s.yaml", SCENARIO)

    def flags(name: str) -> list[str]:
        kind, service = name.split()
        if kind == "local":
            return ["--protocol", service]
        run.env |= serve("--scenario", scenario).env
        return ["--backend", service]

    write("demo.yaml", TRAVEL)
    write("weather.py", WEATHER)
    write("test_demo.yaml", CASES)
    return flags


def shapes(data) -> dict[str, tuple[str, list[object]]]:
    return {
        case["name"]: (
            case["verdict"],
            [
                (
                    turn["state"],
                    turn["answer"],
                    [(call["function"], call["arguments"], call["step"], call["state"]) for call in turn["calls"]],
                )
                for attempt in case["attempts"]
                for turn in attempt["turns"]
            ],
        )
        for case in data["cases"]
    }


@pytest.mark.parametrize("name", PLACES)
def test_verdicts_turns_and_calls_are_the_same_and_nothing_is_left(run, place, name) -> None:
    flags = place(name)
    ran = run("test", "test_demo.yaml", "--json", *flags, exit=1)
    assert shapes(ran.data) == EXPECTED
    assert ran.data["left"] == []
    there = run("list", "--remote", "--json", *flags).data
    assert there["agents"] == there["conversations"] == []


def test_what_was_sent_back_and_why_a_case_failed_are_told_alike(run, place) -> None:
    """What the service makes of an output is its own affair; what the report says of it is not."""

    def told(name: str):
        cases = run("test", "test_demo.yaml", "--json", *place(name), exit=1).data["cases"]
        attempts = [attempt for case in cases for attempt in case["attempts"]]
        calls = [call for attempt in attempts for turn in attempt["turns"] for call in turn["calls"]]
        told = [(call["output"], call["error"], call["problem"]) for call in calls]
        text = json.dumps([told, [attempt["failures"] for attempt in attempts]])
        for call in calls:
            text = text.replace(call["id"], "CALL")
        return json.loads(text)

    outputs, failures = told(PLACES[0])
    assert ["rain in Oslo", None, None] in outputs
    assert len([error for _, error, _ in outputs if error]) == 2
    assert [len(found) for found in failures] == [0] * 8 + [3]
    for name in PLACES[1:]:
        assert told(name) == [outputs, failures], name


@pytest.mark.parametrize("service", ["foundry", "openai", "responses"])
def test_a_recording_made_on_a_service_is_played_without_it(run, place, service) -> None:
    flags = place(f"served {service}")
    run("test", "test_demo.yaml", "--record", "rec", *flags, exit=1)
    for name in list(run.env):
        if name.startswith(("FOUNDRY_", "OPENAI_", "AGENT_TOKEN")):
            del run.env[name]
    for handlers in ("real", "recorded"):
        played = run("test", "test_demo.yaml", "--replay", "rec", "--handlers", handlers, "--json", exit=1)
        assert shapes(played.data) == EXPECTED
