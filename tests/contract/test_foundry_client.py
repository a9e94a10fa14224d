"""What of Foundry's client no other has: versions, times to answer, lists, strict schemas."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.errors import NegativeError, ServiceError
from agentfn.model import Outcome
from tests.contract.clients import ASK, FACES, STAMP, Listener, Talk, agent, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentfn.backends.protocol import Backend


@pytest.fixture(params=["in process", "over a socket"])
def connect(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Callable[..., Backend]]:
    with ExitStack() as stack:
        yield lambda *steps: connected(
            FACES["foundry"], *steps, home=tmp_path, stack=stack, socket=request.param != "in process"
        )


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def talk(request: pytest.FixtureRequest, connect: Any) -> Callable[..., Talk]:
    def begin(*steps: Any) -> Talk:
        backend = connect(*steps)
        return Talk(backend, backend.create_agent(agent(), STAMP), Listener(), request.param)

    return begin


def test_an_output_that_comes_too_late_is_told_with_its_times(talk):
    here = talk({**ASK, "advance": "11m"})
    with pytest.raises(NegativeError, match=r"asked for at 20.* UTC") as caught:
        here.answer(here.say(), Outcome(output="sunny"))
    assert caught.value.code == "expired"


def test_versions_are_made_found_and_deleted(connect):
    backend = connect()
    first = backend.create_agent(agent(), STAMP)
    second = backend.create_agent(agent(strict=True), STAMP._replace(token="rsc_2"))
    assert [ref.version for ref in (first, second)] == ["1", "2"]
    assert [version.ref for version in backend.versions("demo")] == [second, first]
    found = backend.find_agent("demo")
    assert found is not None
    assert found.ref == second
    assert found.metadata["agentfn-id"] == "rsc_2"
    assert found.definition["tools"][0]["strict"] is True
    old = backend.find_agent("demo", "1")
    assert old is not None
    assert old.definition == backend.preview(agent(), STAMP)["definition"]
    assert backend.find_agent("demo", "9") is None
    assert backend.find_agent("nobody") is None
    assert list(backend.versions("nobody")) == []
    assert [backend.delete_agent_version(first), backend.delete_agent_version(first)] == [True, False]
    assert [backend.delete_agent("demo", []), backend.delete_agent("demo", [])] == [True, False]
    assert list(backend.agents()) == []


def test_lists_are_read_to_their_last_page(connect):
    backend = connect({"say": "hi", "repeat": "forever"})
    refs = [backend.create_agent(agent(f"ci-{number}"), STAMP._replace(token=f"rsc_{number}")) for number in range(103)]
    assert sorted(found.ref for found in backend.agents()) == sorted(refs)
    opened = set()
    for number in range(103):
        here = Talk(backend, refs[number], Listener(), stream=False)
        here.say()
        opened.add(here.id)
    listed = list(backend.conversations())
    assert {conversation.id for conversation in listed} == opened
    assert listed[0].metadata == STAMP.metadata()
    assert all(backend.delete_conversation(conversation.id) for conversation in listed)
    assert list(backend.conversations()) == []


def test_a_schema_that_strict_mode_refuses_is_refused_with_what_finds_it(connect):
    backend = connect(ASK)
    loose = {"type": "object", "properties": {"city": {"type": "string"}}}
    here = Talk(backend, backend.create_agent(agent(parameters=loose, strict=True), STAMP), Listener(), stream=False)
    with pytest.raises(ServiceError) as caught:
        here.say()
    assert caught.value.code == "invalid_function_parameters"
    assert "agentfn validate" in (caught.value.hint or "")
