"""A test file beside an agent, run by the real command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Ran

CALL = "[{call: {get_weather: {city: Oslo}}}, {say: It rains in Oslo.}]"
#: An agent with a program, a canned output and a function that a person answers.
TRAVEL = """\
name: demo
model: m
instructions: You help.
tools:
  - name: get_weather
    description: Look up the weather in a city.
    parameters: &city
      type: object
      properties: {city: {type: string}}
      required: [city]
      additionalProperties: false
    handler: {exec: [python3, weather.py]}
  - name: get_time
    description: Look up the time in a city.
    parameters: *city
    handler: {output: '10:00'}
  - name: decide
    description: A person decides.
    parameters: {type: object, properties: {}}
"""
#: Knows no weather in Rome, and tells on disk that it ran.
WEATHER = """\
import json, sys
open('ran.txt', 'a').write('ran\\n')
city = json.load(sys.stdin)['city']
sys.exit('no station') if city == 'Rome' else print('rain in ' + city)
"""


@pytest.fixture
def check(run, write, agent) -> Callable[..., Ran]:
    """Run cases that are written as a list; the agent's handler is one line of YAML."""

    def go(cases: str, *flags: Any, handler: str = "{output: rain}", **options: Any) -> Ran:
        agent(handler)
        write("test_demo.yaml", f"agent: demo.yaml\ncases:\n{cases}")
        ran: Ran = run("test", "test_demo.yaml", *flags, **options)
        return ran

    return go
