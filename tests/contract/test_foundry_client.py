"""Our client and the embedded service, two readings of one wire: the same suite in process and over a socket."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from agentfn.backends import BackendOptions, open_backend
from agentfn.backends.protocol import Start, Submit
from agentfn.definition.agent import Agent, FunctionTool
from agentfn.emulator.app import Application
from agentfn.emulator.models.scenario import parse_scenario
from agentfn.emulator.server import Server
from agentfn.errors import NegativeError, PendingError, ServiceError
from agentfn.model import AgentRef, Call, Outcome, Stamp, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentfn.backends.protocol import Backend

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
STAMP = Stamp("run_1", "rsc_1", "d" * 32)
ASK = {"call": {"get_weather": {"city": "Oslo"}}}
SAY = {"say": "Sunny in Oslo ✅."}


def agent(name: str = "demo", *, parameters: Any = SCHEMA, strict: bool | None = None) -> Agent:
    tool = FunctionTool(name="get_weather", description="Weather in a city.", parameters=parameters, strict=strict)
    return Agent(name=name, model="m", instructions="Help.", functions=(tool,), tool_order=("get_weather",))


class Listener:
    """Writes down what a backend reports."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.pieces: list[str] = []
        self.retries: list[str] = []

    def turn_opened(self, turn: str) -> None: ...

    def noticed(self, told: str) -> None: ...

    def call_asked(self, call: object) -> None: ...

    def conversation_opened(self, conversation: str) -> None:
        self.opened.append(conversation)

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def retrying(self, reason: str, seconds: float) -> None:
        self.retries.append(reason)


class Talk(NamedTuple):
    """A conversation with the agent, whole or streamed."""

    backend: Backend
    agent: AgentRef
    listener: Listener
    stream: bool

    @property
    def id(self) -> str:
        return self.listener.opened[0]

    def say(self, message: str = "Weather in Oslo?", *, earlier_same: int = 0) -> Step:
        conversation = self.id if self.listener.opened else None
        request = Start(self.agent, message, "turn_1", conversation, STAMP, earlier_same, self.stream)
        return self.backend.start(request, self.listener)

    def answer(self, step: Step, *outcomes: Outcome) -> Step:
        pairs = tuple(zip(step.calls, outcomes, strict=True))
        return self.backend.submit(Submit(self.agent, self.id, "turn_1", step.id, pairs, self.stream), self.listener)

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.backend.transcript(self.id)]


@pytest.fixture(params=["in process", "over a socket"])
def connect(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Callable[..., Backend]]:
    """Open the service with a scenario's steps; nobody sleeps."""
    with ExitStack() as stack:

        def begin(*steps: Any) -> Backend:
            scenario = parse_scenario(list(steps), "test") if steps else None
            options = BackendOptions(home=tmp_path, scenario=scenario, sleep=lambda _: None)
            if request.param == "in process":
                backend = open_backend("local", "local/foundry", env={}, options=options)
            else:
                app = Application(tmp_path / "s.db", scenario=scenario, sleep=lambda _: None)
                served = stack.enter_context(Server(app))
                endpoint = f"http://127.0.0.1:{served.port}/api/projects/p"
                backend = open_backend("foundry", endpoint, env={}, options=options._replace(scenario=None))
            stack.callback(backend.close)
            return backend

        yield begin


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def talk(request: pytest.FixtureRequest, connect: Any) -> Callable[..., Talk]:
    def begin(*steps: Any) -> Talk:
        backend = connect(*steps)
        return Talk(backend, backend.create_agent(agent(), STAMP), Listener(), request.param)

    return begin


# Turns ---------------------------------------------------------------------------------------------------------------


def test_a_turn_with_parallel_calls(talk):
    two = {"call": [{"get_weather": {"city": "Oslo"}}, {"get_weather": {"city": "Bergen"}}]}
    here = talk(two, {"say": "It said {{output.get_weather}}."})
    asked = here.say()
    assert [json.loads(call.arguments)["city"] for call in asked.calls] == ["Oslo", "Bergen"]
    assert asked.calls[0].id != asked.calls[1].id
    assert (asked.answer, asked.version) == (None, here.agent.version)
    assert 0 <= asked.service_now - asked.created_at < 60
    done = here.answer(asked, Outcome(output="sunny"), Outcome(error="no wörd"))
    assert (done.answer, done.calls, done.failure) == ('It said {"error": "no wörd"}.', (), None)
    assert done.usage is not None
    assert here.kinds() == ["user", "call", "call", "output", "output", "agent"]
    assert "".join(here.listener.pieces) == (done.answer if here.stream else "")


def test_text_beside_a_call_and_content_parts_as_output(talk):
    here = talk({**ASK, "say": "Let me see."}, SAY)
    parts = [{"type": "input_text", "text": "sunny"}]
    assert here.answer(here.say(), Outcome(content=parts)).answer == SAY["say"]
    (output,) = [entry for entry in here.backend.transcript(here.id) if entry.kind == "output"]
    assert json.loads(output.text) == parts


@pytest.mark.parametrize("raw", ['{"city": "Osl', "", "null", "half \\ud83d"])
def test_arguments_come_as_the_model_wrote_them(talk, raw):
    here = talk({"call": [{"name": "get_weather", "raw": raw}]})
    assert here.say().calls[0].arguments == raw


def test_a_turn_may_end_in_failure(talk):
    here = talk({"fail": {"code": "server_error", "message": "oh"}}, {"incomplete": "max_output_tokens", "say": "Sun"})
    assert here.say().failure == "oh (server_error)"
    step = here.say("again")
    assert (step.failure, step.answer) == ("the answer is incomplete: max_output_tokens", "Sun")


CUTS = ["before", "mid", "after"]


@pytest.mark.parametrize("cut", CUTS)
def test_a_message_is_said_once_wherever_the_connection_breaks(talk, cut):
    here = talk(*([{"cut": "before"}, ASK] if cut == "before" else [{**ASK, "cut": cut}]), SAY)
    asked = here.say()
    assert asked.calls[0].function == "get_weather"
    assert here.kinds() == ["user", "call"]
    assert len(here.listener.retries) == 1
    assert here.answer(asked, Outcome(output="sunny")).answer == SAY["say"]


@pytest.mark.parametrize("cut", CUTS)
def test_outputs_are_sent_once_wherever_the_connection_breaks(talk, cut):
    here = talk(ASK, *([{"cut": "before"}, SAY] if cut == "before" else [{**SAY, "cut": cut}]))
    assert here.answer(here.say(), Outcome(output="sunny")).answer == SAY["say"]
    assert here.kinds() == ["user", "call", "output", "agent"]


def test_the_same_message_twice_is_two_messages_also_when_a_reply_is_lost(talk):
    here = talk({"say": "one"}, {"say": "two", "cut": "after"})
    assert here.say("hi").answer == "one"
    assert here.say("hi", earlier_same=1).answer == "two"
    assert here.kinds() == ["user", "agent", "user", "agent"]


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_service_in_trouble_is_waited_for(talk, status):
    trouble = {"error": {"status": status, "headers": {"retry-after": "1"}}}
    here = talk(trouble, ASK, trouble, SAY)
    assert here.answer(here.say(), Outcome(output="sunny")).answer == SAY["say"]
    assert here.kinds() == ["user", "call", "output", "agent"]
    assert len(here.listener.retries) == 2


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


def test_an_output_that_comes_too_late_is_told_with_its_times(talk):
    here = talk({**ASK, "advance": "11m"})
    with pytest.raises(NegativeError, match=r"asked for at 20.* UTC") as caught:
        here.answer(here.say(), Outcome(output="sunny"))
    assert caught.value.code == "expired"


# Looking -------------------------------------------------------------------------------------------------------------


def test_looking_gives_the_step_that_waits_and_later_the_answer(talk):
    here = talk(ASK, SAY, ASK)
    asked = here.say()
    look = here.backend.look(here.id)
    assert (look.exists, look.waiting, look.answered) == (True, asked.calls, frozenset())
    assert look.step is not None
    assert (look.step.id, look.step.created_at, look.step.usage) == (asked.id, asked.created_at, asked.usage)
    assert look.agent == here.agent._replace(guid=None)
    here.answer(asked, Outcome(output="sunny"))
    look = here.backend.look(here.id)
    assert look.step is not None
    assert (look.waiting, look.step.answer) == ((), SAY["say"])
    again = here.say("Weather again?")
    assert here.backend.look(here.id).waiting == again.calls


def test_looking_at_a_conversation_without_end_asks_for_its_end_alone(connect):
    backend = connect(*[{"say": "yes"}] * 60, ASK)
    here = Talk(backend, backend.create_agent(agent(), STAMP), Listener(), stream=False)
    for number in range(60):
        here.say(f"{number}?")
    asked = here.say()
    assert backend.look(here.id).waiting == asked.calls
    assert len(backend.transcript(here.id)) == 122


# Agents and conversations --------------------------------------------------------------------------------------------


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
    assert [backend.delete_agent("demo"), backend.delete_agent("demo")] == [True, False]
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


def test_what_does_not_exist_is_named(talk):
    here = talk(SAY)
    here.say()
    with pytest.raises(NegativeError) as caught:
        here._replace(agent=AgentRef("nobody", "1")).say()
    assert caught.value.code == "agent_not_found"
    assert here.backend.delete_conversation(here.id) is True
    assert here.backend.delete_conversation(here.id) is False
    assert here.backend.look(here.id).exists is False
    for conversation in (here.id, "conv_invented"):
        here.listener.opened[:] = [conversation]
        with pytest.raises(NegativeError) as caught:
            here.say()
        assert caught.value.code == "conversation_not_found"


def test_a_schema_that_strict_mode_refuses_is_refused_with_what_finds_it(connect):
    backend = connect(ASK)
    loose = {"type": "object", "properties": {"city": {"type": "string"}}}
    here = Talk(backend, backend.create_agent(agent(parameters=loose, strict=True), STAMP), Listener(), stream=False)
    with pytest.raises(ServiceError) as caught:
        here.say()
    assert caught.value.code == "invalid_function_parameters"
    assert "agentfn validate" in (caught.value.hint or "")


def test_a_probe_is_answered(connect):
    assert connect().probe() == {"agents": True}
