"""A test file's text, read as `agentfn test` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentfn.cases.case import BrokenCase
from agentfn.cases.read import Sources, read_cases
from agentfn.definition.load import load_agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentfn.cases.case import Case

AGENT = """\
name: demo
model: m
instructions: You help.
tools:
  - name: get_weather
    description: The weather.
    parameters:
      type: object
      properties:
        city: {type: string, description: A city}
        days: {type: array, items: {type: integer}}
        type: {type: string}
      required: [city]
      additionalProperties: false
  - name: get_time
    description: The time.
    parameters: {type: object, properties: {}, additionalProperties: false}
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], list[Case | BrokenCase]]:
    """Read a test file's text beside an agent with the functions get_weather and get_time."""
    (tmp_path / "agent.yaml").write_text(AGENT)

    def cases(text: str) -> list[Case | BrokenCase]:
        path = tmp_path / "test_demo.yaml"
        path.write_text(text)
        return read_cases(path, Sources({}, lambda agent: load_agent(agent, {})))

    return cases


@pytest.fixture
def problems(read) -> Callable[[str], list[str]]:
    """Return what is wrong with a test file, as ``line:column message``."""

    def found(text: str) -> list[str]:
        broken = [case for case in read(text) if isinstance(case, BrokenCase)]
        return [
            f"{finding.line}:{finding.column} {finding.message}"
            for case in broken
            for finding in getattr(case.error, "findings", [])
        ]

    return found
