"""The turn where the server keeps no conversations: agentfn keeps the items, each request goes on from the last response.

Whether a server heeds ``previous_response_id`` shows in its answer, which names the response that it went on from. One that
refuses or ignores it gets the whole history with each request. The same bytes sent again are a new branch, which repeats
nothing: no function runs on the server's side.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from agentfn.backends.http import RefusedError
from agentfn.backends.protocol import Listener, Look, Start, Submit
from agentfn.backends.service import Item, Service, segment
from agentfn.backends.steps import history, items
from agentfn.backends.steps.asking import Asker, Asking
from agentfn.backends.steps.turn import TURN_IN_METADATA
from agentfn.errors import AgentfnError, NegativeError
from agentfn.model import AgentRef, RemoteConversation, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentfn.backends.kept import Kept
    from agentfn.backends.steps.dialect import Dialect

_PREFIX = "chain_"
#: What a refusal says where it is about the response to go on from.
_SIGNS = ("previous_response", "previous response", "no tool call found", "no function call found")


def is_chain(conversation: str) -> bool:
    """Tell whether a conversation is one of ours."""
    return conversation.startswith(_PREFIX)


class ChainClient:
    """Messages, outputs and the state of the chains at one server."""

    def __init__(
        self,
        service: Service,
        path: str,
        agent: Callable[[AgentRef], Item],
        dialect: Dialect,
        kept: Kept,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._path = path
        self._agent = agent
        self._dialect = dialect
        self._kept = kept
        self._clock = clock
        self._asker = Asker(service, path)

    def start(self, request: Start, listener: Listener) -> Step:
        """Send a message; begin a chain where there is none."""
        if request.conversation is None:
            chain: Item = {
                "id": _PREFIX + uuid.uuid4().hex,
                "created_at": self._clock(),
                "metadata": request.stamp.metadata(),
                "agent": [request.agent.name, request.agent.version],
                "items": [],
                "responses": [],
            }
            self._kept.put("chain", chain["id"], chain)
            listener.conversation_opened(str(chain["id"]))
        else:
            chain = self._require(request.conversation)
        given: list[Item] = [{"type": "message", "role": "user", "content": request.message}]
        chain["agent"] = [request.agent.name, request.agent.version]
        return self._ask(chain, given, request, listener)

    def submit(self, request: Submit, listener: Listener) -> Step:
        """Send all outcomes of one step."""
        chain = self._require(request.conversation)
        sent = tuple(call.id for call, _ in request.outcomes)
        if history.answered(chain["items"]).issuperset(sent):
            step = self._standing(chain)  # the answer came, and whoever asked for it was stopped
            if step is not None:
                return step
        given = [items.output_item(call, outcome) for call, outcome in request.outcomes]
        return self._ask(chain, given, request, listener, sent)

    def look(self, conversation: str, message: str | None = None, earlier_same: int = 0) -> Look:
        """Read a chain as it is kept; the server has nothing to add."""
        chain = self._kept.get("chain", conversation)
        if chain is None:
            return Look(exists=False)
        step = self._standing(chain)
        found = chain["items"]
        return Look(
            exists=True,
            waiting=step.calls if step is not None else (),
            answered=frozenset(history.answered(found)),
            step=step,
            agent=AgentRef(*chain["agent"]),
            arrived=message is None or history.times_said(found, message) > earlier_same,
        )

    def items(self, conversation: str) -> list[Item] | None:
        """Return a chain's items, oldest first; None where there is no such chain."""
        chain = self._kept.get("chain", conversation)
        return None if chain is None else chain["items"]

    def all(self) -> Iterator[RemoteConversation]:
        """Yield all chains."""
        return (RemoteConversation(c["id"], c["created_at"], c["metadata"]) for c in self._kept.all("chain"))

    def delete(self, conversation: str) -> bool:
        """Forget a chain, and delete what the server stored of it; one that stores nothing has no such route."""
        chain = self._kept.get("chain", conversation)
        if chain is None:
            return False
        if self._dialect.previous:
            for response in reversed(chain["responses"]):
                self._service.delete(f"{self._path}/{segment(response)}", f"response {response}")
        return self._kept.remove("chain", conversation)

    # Asking ----------------------------------------------------------------------------------------------------------

    def _ask(
        self,
        chain: Item,
        given: list[Item],
        request: Start | Submit,
        listener: Listener,
        sent: tuple[str, ...] = (),
    ) -> Step:
        last = chain["responses"][-1] if chain["responses"] else None
        if last is not None and self._dialect.previous is not False:
            step = self._ask_linked(chain, last, given, request, listener, sent)
            if step is not None:
                return step
        return self._send(chain, {"input": [*chain["items"], *given]}, given, request, listener, sent)[0]

    def _ask_linked(
        self,
        chain: Item,
        last: str,
        given: list[Item],
        request: Start | Submit,
        listener: Listener,
        sent: tuple[str, ...],
    ) -> Step | None:
        """Go on from the last response; return None where the server does not do that."""
        before = self._kept.get("chain", chain["id"])
        members = {"previous_response_id": last, "input": given}
        try:
            step, response = self._send(chain, members, given, request, listener, sent)
        except AgentfnError as exc:
            if not _is_about_link(exc):
                raise
        else:
            if self._dialect.previous or response.get("previous_response_id") == last:
                self._dialect.learn("previous", known=True, listener=listener)
                return step
            # It was ignored: what came is an answer to a question without its past.
            chain.update(before)
            self._kept.put("chain", chain["id"], before)
        self._dialect.learn("previous", known=False, listener=listener)
        return None

    def _send(
        self,
        chain: Item,
        members: Item,
        given: list[Item],
        request: Start | Submit,
        listener: Listener,
        sent: tuple[str, ...],
    ) -> tuple[Step, Item]:
        """Send a request and keep what came of it."""
        seen: list[Item] = []
        body = {**self._agent(request.agent), **members}
        if TURN_IN_METADATA:
            body["metadata"] = {"agentfn-turn": request.turn}
        if request.stream:
            body["stream"] = True
        step = self._asker.ask(Asking(body, None, chain["id"], sent, take=seen.append), listener)
        response = seen[-1]
        if step.failure is None:
            output = items.objects(response.get("output"))
            chain["items"] = [*chain["items"], *given, *map(items.replayable, output)]
            chain["responses"] = [*chain["responses"], step.id] if step.id else []
            chain["asked_at"] = step.created_at
            self._kept.put("chain", chain["id"], chain)
        return step, response

    def _standing(self, chain: Item) -> Step | None:
        last = history.last_step(chain["items"])
        if last is None:
            return None
        identity = str(chain["responses"][-1]) if chain["responses"] else last.item
        at, now = float(chain.get("asked_at") or chain["created_at"]), self._clock()
        return Step(identity, at, now, last.calls, last.answer, actions=last.actions)

    def _require(self, conversation: str) -> Any:
        chain = self._kept.get("chain", conversation)
        if chain is None:
            raise NegativeError(f"there is no conversation {conversation} here", code="conversation_not_found")
        return chain


def _is_about_link(error: AgentfnError) -> bool:
    """Tell whether a refusal means that the server does not go on from an earlier response."""
    cause = error.__cause__
    if not isinstance(cause, RefusedError) or cause.reply.status not in (400, 404, 405, 422, 501):  # HTTP's own numbers
        return False
    told = f"{cause.reply.error().get('param')} {cause.reply.error().get('code')} {cause.reply.text}".lower()
    return any(sign in told for sign in _SIGNS)
