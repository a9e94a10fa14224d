"""Our clients and the embedded service, readings of the same wires: one suite over all faces, in process and by socket."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.errors import NegativeError, PendingError
from agentfn.model import AgentRef, Call, Outcome, Step
from tests.contract.clients import ASK, FACES, SAY, STAMP, Listener, Talk, agent, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentfn.backends.protocol import Backend

WAYS = [
    (face, way)
    for face in FACES
    for way in ("in process", "over a socket")
    if way != "in process" or not FACES[face].lacks
]


#: Faces without a conversation: what is sent again there is a new branch, for which the scenario goes on.
BRANCHING = ("chained", "forgetful")


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]} {way[1]}")
def way(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def face(way: tuple[str, str]) -> str:
    return way[0]


@pytest.fixture
def connect(way: tuple[str, str], tmp_path: Any) -> Iterator[Callable[..., Backend]]:
    with ExitStack() as stack:

        def begin(*steps: Any) -> Backend:
            return connected(FACES[way[0]], *steps, home=tmp_path, stack=stack, socket=way[1] != "in process")

        yield begin


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def talk(request: pytest.FixtureRequest, connect: Any) -> Callable[..., Talk]:
    def begin(*steps: Any) -> Talk:
        backend = connect(*steps)
        return Talk(backend, backend.create_agent(agent(), STAMP), Listener(), request.param)

    return begin


# Turns ---------------------------------------------------------------------------------------------------------------


def test_a_turn_with_parallel_calls(talk, face):
    two = {"call": [{"get_weather": {"city": "Oslo"}}, {"get_weather": {"city": "Bergen"}}]}
    here = talk(two, {"say": "It said {{output.get_weather}}."})
    asked = here.say()
    assert [json.loads(call.arguments)["city"] for call in asked.calls] == ["Oslo", "Bergen"]
    assert asked.calls[0].id != asked.calls[1].id
    assert asked.answer is None
    assert 0 <= asked.service_now - asked.created_at < 60
    done = here.answer(asked, Outcome(output="sunny"), Outcome(error="no wörd"))
    # Only sessions have a flag for failure; elsewhere the text says so.
    said = "It said no wörd." if face == "openai" else 'It said {"error": "no wörd"}.'
    assert (done.answer, done.calls, done.failure) == (said, (), None)
    # A session counts its tokens when the turn is long over.
    assert (done.usage is None) == (face == "openai")
    assert here.listener.turns == ([asked.id] if face == "openai" else [])
    assert here.listener.calls == ([call.id for call in asked.calls] if here.stream or face == "openai" else [])
    assert here.kinds() == ["user", "call", "call", "output", "output", "agent"]
    assert "".join(here.listener.pieces) == (done.answer if here.stream or face == "openai" else "")


def test_text_beside_a_call_and_content_parts_as_output(talk, face):
    here = talk({**ASK, "say": "Let me see."}, SAY)
    parts = [{"type": "input_text", "text": "sunny"}]
    assert here.answer(here.say(), Outcome(content=parts)).answer == SAY["say"]
    (output,) = [entry for entry in here.backend.transcript(here.id) if entry.kind == "output"]
    # On sessions a text comes back as such an array, so nothing tells the two apart (openai-agents.md §4.4).
    assert output.text == "sunny" if face == "openai" else json.loads(output.text) == parts


@pytest.mark.parametrize("raw", ['{"city": "Osl', "", "null", "half \\ud83d"])
def test_arguments_come_as_the_model_wrote_them(talk, face, raw):
    here = talk({"call": [{"name": "get_weather", "raw": raw}]})
    # A session has arguments as a value; a missing one is an empty object.
    assert here.say().calls[0].arguments == ("{}" if (face, raw) == ("openai", "null") else raw)


def test_a_turn_may_end_in_failure(talk, face):
    here = talk({"fail": {"code": "server_error", "message": "oh"}}, {"incomplete": "max_output_tokens", "say": "Sun"})
    assert here.say().failure == "oh (server_error)"
    if face in BRANCHING:
        return  # a turn that failed leaves nothing to go on from, so the scenario begins anew
    step = here.say("again")
    assert step.failure is not None
    assert "max_output_tokens" in step.failure
    assert step.answer == (None if face == "openai" else "Sun")


CUTS = ["before", "mid", "after"]


def cut_steps(face: str, step: Any, cut: str) -> list[Any]:
    """Return the steps in which the connection breaks around `step`, and the same again where it comes to that."""
    if cut == "before":
        return [{"cut": "before"}, step]
    return [{**step, "cut": cut}, *([step] if face in BRANCHING else [])]


def shown(face: str, *kinds: str) -> list[str]:
    """Return what a transcript shows while calls wait: a session lists no call before it is answered."""
    return [kind for kind in kinds if kind != "call" or face != "openai"]


@pytest.mark.parametrize("cut", CUTS)
def test_a_message_is_said_once_wherever_the_connection_breaks(talk, face, cut):
    here = talk(*cut_steps(face, ASK, cut), SAY)
    asked = here.say()
    assert asked.calls[0].function == "get_weather"
    assert here.kinds() == shown(face, "user", "call")
    assert here.listener.retries
    assert here.answer(asked, Outcome(output="sunny")).answer == SAY["say"]
    assert here.kinds() == ["user", "call", "output", "agent"]


@pytest.mark.parametrize("cut", CUTS)
def test_outputs_are_sent_once_wherever_the_connection_breaks(talk, face, cut):
    here = talk(ASK, *cut_steps(face, SAY, cut))
    assert here.answer(here.say(), Outcome(output="sunny")).answer == SAY["say"]
    assert here.kinds() == ["user", "call", "output", "agent"]


def test_the_same_message_twice_is_two_messages_also_when_a_reply_is_lost(talk, face):
    here = talk({"say": "one"}, *cut_steps(face, {"say": "two"}, "after"))
    assert here.say("hi").answer == "one"
    assert here.say("hi", earlier_same=1).answer == "two"
    assert here.kinds() == ["user", "agent", "user", "agent"]


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_service_in_trouble_is_waited_for(talk, status):
    trouble = {"error": {"status": status, "headers": {"retry-after": "1"}}}
    here = talk(trouble, ASK, trouble, SAY)
    assert here.answer(here.say(), Outcome(output="sunny")).answer == SAY["say"]
    assert here.kinds() == ["user", "call", "output", "agent"]
    assert len(here.listener.retries) >= 2


def test_a_message_while_a_call_waits_is_refused_and_the_call_can_still_be_answered(talk):
    here = talk(ASK, SAY)
    asked = here.say()
    with pytest.raises(PendingError) as caught:
        here.say("hello?")
    assert asked.calls[0].id in caught.value.message
    assert here.answer(asked, Outcome(output="sunny")).answer == SAY["say"]


def test_what_does_not_wait_cannot_be_answered(talk):
    here = talk(SAY)
    here.say()
    stranger = Step("resp_x", 0, 0, (Call("call_unknown", "get_weather", "{}"),))
    with pytest.raises(NegativeError) as caught:
        here.answer(stranger, Outcome(output="x"))
    assert caught.value.code == "call_not_waiting"


# Looking -------------------------------------------------------------------------------------------------------------


def test_looking_gives_the_step_that_waits_and_later_the_answer(talk, face):
    here = talk(ASK, SAY, ASK)
    asked = here.say()
    look = here.backend.look(here.id)
    assert (look.exists, look.waiting, look.answered) == (True, asked.calls, frozenset())
    assert look.step is not None
    if face != "responses":  # whose items do not say which response they came from
        assert (look.step.id, look.step.created_at) == (asked.id, asked.created_at)
    if face == "foundry":
        assert look.step.usage == asked.usage
    if face != "responses":
        assert look.agent is not None
        assert look.agent[:2] == here.agent[:2]
    here.answer(asked, Outcome(output="sunny"))
    look = here.backend.look(here.id)
    assert look.step is not None
    assert (look.waiting, look.step.answer) == ((), SAY["say"])
    again = here.say("Weather again?")
    assert here.backend.look(here.id).waiting == again.calls


def test_looking_at_a_conversation_without_end_asks_for_its_end_alone(connect, face):
    backend = connect(*[{"say": "yes"}] * 60, ASK)
    here = Talk(backend, backend.create_agent(agent(), STAMP), Listener(), stream=False)
    for number in range(60):
        here.say(f"{number}?")
    asked = here.say()
    assert backend.look(here.id).waiting == asked.calls
    assert len(backend.transcript(here.id)) == 121 + len(shown(face, "call"))


# Agents and conversations --------------------------------------------------------------------------------------------


def test_what_does_not_exist_is_named(talk, face):
    here = talk(SAY)
    here.say()
    if face != "openai":  # a session has its agent for good
        with pytest.raises(NegativeError) as caught:
            here._replace(agent=AgentRef("nobody", "1")).say()
        assert caught.value.code == "agent_not_found"
    assert here.backend.delete_conversation(here.id) is True
    if face != "openai":  # deleting a session twice is the same as once (openai-agents.md §3)
        assert here.backend.delete_conversation(here.id) is False
    assert here.backend.look(here.id).exists is False
    invented = {"openai": "sess_invented", **dict.fromkeys(BRANCHING, "chain_invented")}.get(face, "conv_invented")
    for conversation in (here.id, invented):
        here.listener.opened[:] = [conversation]
        with pytest.raises(NegativeError) as caught:
            here.say()
        assert caught.value.code == "conversation_not_found"
    with pytest.raises(NegativeError):
        here.backend.transcript(invented)


def test_a_probe_tells_what_the_service_has(connect, face):
    found = connect().probe()
    if face == "openai":
        assert found["sessions"] == "yes"
    elif face != "foundry":
        has = "no" if FACES[face].lacks else "yes"
        assert (found["responses"], found["conversations"]) == ("yes", has)
    else:
        assert found == {"agents": "yes", "conversations": "yes"}
