"""What of the responses client no other has: agents kept here, and servers that lack something."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.errors import NegativeError
from agentfn.model import Outcome
from tests.contract.clients import ASK, FACES, SAY, STAMP, Listener, Talk, agent, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHAINED = "this server keeps no conversations: each response goes on from the one before it"


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Talk]]:
    with ExitStack() as stack:

        def make(face: str, *steps: Any) -> Talk:
            backend = connected(FACES[face], *steps, home=tmp_path, stack=stack, socket=True)
            return Talk(backend, backend.create_agent(agent(), STAMP), Listener(), stream=False)

        yield make


def test_versions_are_kept_here_and_their_numbers_are_not_used_again(begin):
    here = begin("responses")
    backend = here.backend
    second = backend.create_agent(agent(strict=True), STAMP._replace(token="rsc_2"))
    assert (here.agent.version, second.version) == ("1", "2")
    found = backend.find_agent("demo")
    assert found is not None
    assert found.definition["tools"][0]["strict"] is True
    assert backend.delete_agent_version(second) is True
    assert backend.delete_agent_version(second) is False
    third = backend.create_agent(agent(), STAMP._replace(token="rsc_3"))
    assert third.version == "3"
    assert [version.ref for version in backend.versions("demo")] == [third, here.agent]
    assert backend.delete_agent("demo", [third, here.agent]) is True
    assert list(backend.agents()) == []


@pytest.mark.parametrize("face", ["chained", "forgetful"])
def test_what_a_server_lacks_is_found_out_said_once_and_remembered(begin, face):
    here = begin(face, ASK, SAY, ASK, SAY)
    assert here.answer(here.say(), Outcome(output="sunny")).answer == SAY["say"]
    goes_on = "this server goes on from an earlier response"
    sends_all = "this server does not go on from an earlier response: the whole history is sent each time"
    assert here.listener.notices == [CHAINED, goes_on if face == "chained" else sends_all]
    told = here.backend.probe()
    assert told["previous_response_id"] == ("yes" if face == "chained" else "no, the history is sent")
    again = here._replace(listener=Listener())
    assert again.answer(again.say(), Outcome(output="rain")).answer == SAY["say"]
    assert again.listener.notices == []


def test_a_chain_that_is_removed_takes_its_stored_responses_along(begin):
    here = begin("chained", ASK, SAY)
    here.answer(here.say(), Outcome(output="sunny"))
    assert [conversation.id for conversation in here.backend.conversations()] == [here.id]
    assert here.backend.delete_conversation(here.id) is True
    assert list(here.backend.conversations()) == []
    assert here.backend.delete_conversation(here.id) is False


def test_an_agent_that_is_not_kept_here_cannot_answer(begin):
    here = begin("responses", SAY)
    here.backend.delete_agent_version(here.agent)
    with pytest.raises(NegativeError, match="is not there") as caught:
        here.say()
    assert caught.value.code == "agent_not_found"
