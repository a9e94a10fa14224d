"""A test file beside an agent, run by the real command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Ran

CALL = "[{call: {get_weather: {city: Oslo}}}, {say: It rains in Oslo.}]"


@pytest.fixture
def check(run, write, agent) -> Callable[..., Ran]:
    """Run cases that are written as a list; the agent's handler is one line of YAML."""

    def go(cases: str, *flags: Any, handler: str = "{output: rain}", **options: Any) -> Ran:
        agent(handler)
        write("test_demo.yaml", f"agent: demo.yaml\ncases:\n{cases}")
        ran: Ran = run("test", "test_demo.yaml", *flags, **options)
        return ran

    return go
