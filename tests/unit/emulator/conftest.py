"""The embedded service in process: an application over a file of its own, with a clock that tests move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario
from tests.unit.emulator.in_process import Clock, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make_service(tmp_path: Path, clock: Clock) -> Iterator[Callable[..., Service]]:
    """Make the service over one and the same file each time, with the steps of a scenario where they are given."""
    apps: list[Application] = []

    def make(*steps: dict[str, Any], **options: Any) -> Service:
        scenario = parse_scenario(list(steps), "scenario.yaml") if steps else None
        app = Application(tmp_path / "state.db", scenario=scenario, clock=clock, sleep=clock.sleep, **options)
        apps.append(app)
        return Service(app, clock)

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def service(make_service: Callable[..., Service]) -> Service:
    """Return the service with its stand-in model and one agent."""
    made = make_service()
    made.make_agent()
    return made


@pytest.fixture
def play(make_service: Callable[..., Service]) -> Callable[..., Service]:
    """Return the service with a scenario's steps and one agent."""

    def make(*steps: dict[str, Any], **options: Any) -> Service:
        made = make_service(*steps, **options)
        if made.agents("GET", "/bot").status == 404:
            made.make_agent()
        return made

    return make
