"""A service that throttles: every case passes in the end, nothing happens twice, and fewer run at the same time."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import pytest

THROTTLED = "error: {status: 429, code: rate_limit_exceeded, headers: {retry-after-ms: '1'}}"
CALL = "call: {get_weather: {city: Oslo}}"
#: Where a request meets trouble, by words of the message; a message without such words meets none.
SCENARIO = f"""\
- {{when: {{message: throttled}}, {THROTTLED}}}
- {{when: {{message: Bergen}}, {CALL}, cut: after}}
- {{when: {{message: Oslo}}, {CALL}}}
- {{when: {{message: outputs}}, {THROTTLED}}}
- {{when: {{output: rain}}, say: It rains.}}
"""
COUNTED = "open('ran.txt', 'a').write('ran\\n')\nprint('rain')\n"
#: On the end of lines that a terminal shows: how many have ended, how many run, and how many may.
PROGRESS = re.compile(r"(\d+) of \d+, (\d+) running \(at most (\d+)\)")
PLACES = ["local", "foundry", "openai", "responses"]


class Moment(NamedTuple):
    """One line of the progress."""

    ended: int
    running: int
    allowed: int


@pytest.fixture
def loaded(run, write, agent, serve):
    """Write cases whose messages begin as given and are all different, and return the flags of a place where the scenario answers them."""

    def begin(place: str, messages: list[str], handler: str = "{output: rain}") -> list[str]:
        agent(handler)
        write("counted.py", COUNTED)
        scenario = write("s.yaml", SCENARIO)
        cases = "".join(
            f"  - {{name: case {number}, input: '{message} {number}', local: s.yaml, expect: {{calls: [get_weather], answer: It rains.}}}}\n"
            for number, message in enumerate(messages)
        )
        write("test_demo.yaml", f"agent: demo.yaml\ncases:\n{cases}")
        if place != "local":
            run.env |= serve("--scenario", scenario).env
        return ["--backend", place]

    return begin


def moments(shown: str) -> list[Moment]:
    return [Moment(*map(int, found)) for found in PROGRESS.findall(shown)]


@pytest.mark.parametrize("place", PLACES)
def test_all_pass_though_requests_are_refused_or_lost_and_no_handler_runs_twice(run, loaded, place) -> None:
    messages = ["Oslo? throttled", "Oslo? outputs", "Bergen? throttled", "Oslo? throttled outputs", "Oslo?"] * 3
    flags = loaded(place, messages, "{exec: [python3, counted.py]}")
    ran = run("test", "test_demo.yaml", "--json", *flags)
    assert (ran.data["passed"], ran.data["left"]) == (15, [])
    assert (run.folder / "ran.txt").read_text() == "ran\n" * 15
    there = run("list", "--remote", "--json", *flags).data
    assert there["agents"] == there["conversations"] == []


@pytest.mark.parametrize("place", ["local", "foundry"])
def test_fewer_run_while_the_service_throttles_and_more_again_once_it_is_calm(run, loaded, place) -> None:
    flags = loaded(place, ["Oslo? throttled"] * 8 + ["Oslo?"] * 72)
    shown = run.on_terminal("test", "test_demo.yaml", "-j", "8", *flags, answers="")
    assert "80 passed in" in shown
    seen = moments(shown)
    allowed = [moment.allowed for moment in seen]
    assert seen[0] == Moment(0, 8, 8)
    first = next(moment for moment in seen if moment.ended)
    assert first.allowed == 4, "the first that ended had been refused"
    for before, now in itertools.pairwise(seen):
        assert now.running <= max(now.allowed, before.running - 1), "nothing begins beyond what is allowed"
        assert now.allowed in (before.allowed, before.allowed + 1, max(1, before.allowed // 2))
    assert max(allowed[allowed.index(min(allowed)) :]) == 8, "it grows again"


@pytest.mark.parametrize("place", ["local", "foundry"])
def test_a_calm_service_is_given_as_many_as_were_asked_for_and_no_more(run, loaded, place) -> None:
    flags = loaded(place, ["Oslo?"] * 12)
    seen = moments(run.on_terminal("test", "test_demo.yaml", "-j", "3", *flags, answers=""))
    assert {moment.allowed for moment in seen} == {3}
    assert [moment.running for moment in seen][:10] == [3] * 10


@pytest.mark.parametrize("place", PLACES)
def test_a_case_that_is_refused_beyond_the_retries_could_not_run_and_the_others_pass(
    run, loaded, write, serve, place
) -> None:
    flags = loaded(place, ["Oslo?", "Oslo? throttled", "Oslo?"], "{exec: [python3, counted.py]}")
    scenario = write("s.yaml", SCENARIO.replace(THROTTLED, f"{THROTTLED}, repeat: forever", 1))
    if place != "local":
        run.env |= serve("--scenario", scenario).env
    ran = run("test", "test_demo.yaml", "--json", *flags, exit=5)
    assert [case["verdict"] for case in ran.data["cases"]] == ["passed", "could_not_run", "passed"]
    assert ran.data["cases"][1]["error"]["code"] == "throttled"
    assert (run.folder / "ran.txt").read_text() == "ran\n" * 2
