"""One model step of a response: what the request asks is checked, the stand-in answers, all of it is committed at once."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from agentfn.emulator.foundry.conversations import append
from agentfn.emulator.foundry.errors import foundry_error, payload
from agentfn.emulator.foundry.ids import new_call_id, new_id
from agentfn.emulator.foundry.items import Item, message_text, output_text, pending_calls
from agentfn.emulator.http import ApiError, ConnectionCut, openai_error
from agentfn.emulator.models.step import Output, Prompt, Reply
from agentfn.emulator.store import Store, save_thread

if TYPE_CHECKING:
    from agentfn.emulator.app import Application
    from agentfn.emulator.foundry.agents import Version

#: A run, waiting for outputs included, lives this long (foundry.md §8).
RUN_SECONDS = 600.0


class Asked(NamedTuple):
    """A checked request for a response.

    `history` are the items before `given`, the request's own. `thread` is the key of the scenario's position, `parent`
    its position before this step.
    """

    body: dict[str, Any]
    agent: Version | None
    conversation: str | None
    previous: str | None
    partition: str
    history: list[Item]
    given: list[Item]
    thread: str
    parent: dict[str, Any]

    @property
    def stored(self) -> bool:
        """Tell whether the response is kept."""
        return self.body.get("store") is not False

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that the model has."""
        source = self.agent.definition if self.agent else self.body
        tools: list[dict[str, Any]] = source.get("tools") or []
        return tools


def require_answered(store: Store, history: list[Item], given: list[Item]) -> None:
    """Refuse outputs for calls that do not wait, late outputs, and a request that leaves a call unanswered."""
    waiting = {item["call_id"]: item for item in pending_calls([*history, *given])}
    open_before = {item["call_id"]: item for item in pending_calls(history)}
    replayed = {item["call_id"] for item in given if item["type"] == "function_call"}
    seen: set[str] = set()
    for item in given:
        if item["type"] != "function_call_output":
            continue
        call_id = item["call_id"]
        # An output for a call that has one already is taken for one without a call: an inference, nothing is recorded.
        if (call_id not in open_before and call_id not in replayed) or call_id in seen:
            message = f"No tool call found for function call output with call_id {call_id}."
            raise ApiError(400, openai_error(message, param="input"))
        seen.add(call_id)
        if call_id in open_before:
            _require_in_time(store, open_before[call_id])
    for call_id in waiting:
        message = f"No tool output found for function call {call_id}."
        raise ApiError(400, openai_error(message, param="input"))


def _require_in_time(store: Store, call: Item) -> None:
    row = store.one("SELECT created_at FROM response WHERE id = ?", call.get("response_id"))
    if row is not None and store.now() > row[0] + RUN_SECONDS:
        # The code is the embedded service's own: no recording shows what the real one says (foundry.md §5.2).
        message = (
            f"The run that asked for {call['call_id']} has expired: runs expire {int(RUN_SECONDS // 60)} minutes after"
            " their creation and do not accept tool outputs afterwards."
        )
        raise ApiError(400, openai_error(message, param="input", code="run_expired"))


class ModelStep:
    """The stand-in's part of one response."""

    def __init__(self, app: Application, asked: Asked) -> None:
        self._app = app
        self._store = app.store
        self.asked = asked
        self._state = self._store.thread(asked.thread) or asked.parent
        self.reply, self._after = self._decide()
        self.identity = new_id("resp", asked.partition)
        self.created_at = self._store.now()

    def _decide(self) -> tuple[Reply, dict[str, Any]]:
        state = self._state
        given = self._app.scenario
        if given is not None and state.get("scenario") != given.digest:
            state = {"scenario": given.digest, "used": {}, "number": 0}
        prompt = _prompt(self.asked, state.get("number", 0) + 1)
        after = {**state, "number": prompt.number}
        if state.get("scenario") is None:
            from agentfn.emulator.models.standin import answer

            return answer(prompt), after
        from agentfn.emulator.models.scenario import Scenario, parse_scenario, take

        if given is None or given.digest != state["scenario"]:
            row = self._store.one("SELECT steps FROM scenario WHERE digest = ?", state["scenario"])
            given = parse_scenario(json.loads(row[0]), "(stored)") if row else Scenario((), "(lost)")
        reply, used = take(given, state.get("used", {}), prompt)
        return reply, {**after, "used": used}

    def faults(self) -> None:
        """Deliver what the scenario has in place of an answer; it is used up by that, so that a retry gets the next."""
        reply = self.reply
        if reply.fault is None and reply.cut != "before":
            return
        # A fault is no model step: the number stays, so that "step: 2" means the second answer.
        state = {**self._after, "number": self._after["number"] - 1}
        with self._store.writing() as db:
            self._remember_scenario(db)
            save_thread(db, self.asked.thread, state)
        if reply.advance:
            self._store.advance(reply.advance)
        if reply.fault is None:
            raise ConnectionCut
        fault = reply.fault
        raise ApiError(fault.status, foundry_error(fault.code, fault.message), dict(fault.headers))

    def _remember_scenario(self, db: Any) -> None:
        given = self._app.scenario
        if given is not None:
            db.execute(
                "INSERT OR IGNORE INTO scenario (digest, steps) VALUES (?, ?)",
                (given.digest, json.dumps(given.steps)),
            )

    def commit(self, *, status: str | None = None) -> dict[str, Any]:
        """Store the input, the output, the response and the scenario's position in one transaction."""
        asked = self.asked
        output = [] if status == "queued" else self._output()
        body = response_body(asked, self.identity, self.created_at, output, self.reply, status, self._store.now())
        if not asked.stored:
            return body
        with self._store.writing() as db:
            self._remember_scenario(db)
            if asked.conversation is not None:
                append(db, asked.conversation, [*asked.given, *output])
                save_thread(db, asked.conversation, self._after)
                agent = asked.agent.id if asked.agent else None
                db.execute("UPDATE conversation SET agent = ? WHERE id = ?", (agent, asked.conversation))
            else:
                db.execute("DELETE FROM thread WHERE key = ?", (asked.thread,))
            db.execute(
                "INSERT OR REPLACE INTO response"
                " (id, created_at, conversation, previous, agent, status, background, body, input, thread)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self.identity,
                    self.created_at,
                    asked.conversation,
                    asked.previous,
                    asked.agent.id if asked.agent else None,
                    body["status"],
                    int(bool(asked.body.get("background"))),
                    json.dumps(body),
                    json.dumps(asked.given),
                    json.dumps(self._after),
                ),
            )
        if self.reply.advance:
            self._store.advance(self.reply.advance)
        return body

    def _output(self) -> list[Item]:
        """Return the output items (foundry.md §4.5)."""
        asked, reply = self.asked, self.reply
        by = {"response_id": self.identity}
        if asked.agent is not None:
            by = {"agent_reference": reference(asked.agent), **by}  # type: ignore[dict-item]  # a mapping beside a text
        items: list[Item] = []
        if reply.text is not None:
            part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
            items.append(
                {"type": "message", "id": new_id("msg", asked.partition)}
                | by
                | {"role": "assistant", "content": [part], "status": "completed"},
            )
        for call in reply.calls:
            items.append(
                {"type": "function_call", "id": new_id("fc", asked.partition)}
                | by
                | {"call_id": call.id or new_call_id(), "name": call.function, "arguments": call.arguments}
                | {"status": "completed"},
            )
        return items


def reference(agent: Version) -> dict[str, Any]:
    """Return how a response names its agent: always with the resolved version (foundry.md §4.2)."""
    return {"type": "agent_reference", "name": agent.name, "version": str(agent.number)}


def _prompt(asked: Asked, number: int) -> Prompt:
    """Return what the model sees of the history: the latest message and the outputs since."""
    message, names = "", {}
    earlier: list[Output] = []
    just: list[Output] = []
    for item in [*asked.history, *asked.given]:
        if item["type"] == "message" and item.get("role") == "user":
            message, earlier, just = message_text(item), [], []
        elif item["type"] == "function_call":
            names[item["call_id"]] = item["name"]
            just = []
        elif item["type"] == "function_call_output":
            output = Output(names.get(item["call_id"], ""), item["call_id"], output_text(item))
            earlier.append(output)
            just.append(output)
        elif item["type"] == "message":
            just = []
    choice = asked.agent.definition.get("tool_choice") if asked.agent else asked.body.get("tool_choice")
    return Prompt(asked.tools, choice, message, tuple(just), tuple(earlier), number)


def response_body(
    asked: Asked,
    identity: str,
    created_at: float,
    output: list[Item],
    reply: Reply,
    status: str | None,
    now: float,
) -> dict[str, Any]:
    """Return the response object (foundry.md §4.4)."""
    source = asked.agent.definition if asked.agent else asked.body
    state = status or ("failed" if reply.failure else "incomplete" if reply.incomplete else "completed")
    body: dict[str, Any] = {
        "metadata": asked.body.get("metadata") or {},
        "temperature": source.get("temperature", 1),
        "top_p": source.get("top_p", 1),
        "service_tier": "default",
        "model": source.get("model"),
        "reasoning": source.get("reasoning") or {"effort": None, "summary": None},
        "background": bool(asked.body.get("background")),
        "text": source.get("text") or {"format": {"type": "text"}},
        "tools": asked.tools,
        "tool_choice": source.get("tool_choice", "auto"),
        "truncation": "disabled",
        "id": identity,
        "object": "response",
        "status": state,
        "created_at": int(created_at),
        "completed_at": int(now) if state == "completed" else None,
        "error": {"code": reply.failure[0], "message": reply.failure[1]}
        if state == "failed" and reply.failure
        else None,
        "incomplete_details": {"reason": reply.incomplete} if state == "incomplete" else None,
        "output": output,
        "instructions": source.get("instructions"),
        "parallel_tool_calls": True,
        "agent_reference": reference(asked.agent) if asked.agent else None,
    }
    if state not in ("queued", "cancelled"):
        body["usage"] = _usage(asked, output, reply)
    if asked.conversation is not None:
        body["conversation"] = {"id": asked.conversation}
    if asked.previous is not None:
        body["previous_response_id"] = asked.previous
    return body


def _usage(asked: Asked, output: list[Item], reply: Reply) -> dict[str, Any]:
    """Return token counts: the scenario's, else a fixed guess of four characters a token."""
    told = reply.usage or {}
    read = told.get("input_tokens", len(json.dumps([asked.history, asked.given])) // 4)
    wrote = told.get("output_tokens", len(json.dumps(output)) // 4)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": wrote,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": told.get("total_tokens", read + wrote),
    }


def first_thread(agent: str, given: list[Item]) -> str:
    """Return the key of a thread that has no response yet: the same request, sent again, is the same thread."""
    texts = [{k: v for k, v in item.items() if k != "id"} for item in given]
    return f"new:{agent}:{hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:32]}"


def not_allowed(fields: list[str]) -> ApiError:
    """Return the refusal of settings next to an agent (foundry.md §5.2)."""
    details = [
        {"code": "ValidationError", "message": "Not allowed when agent is specified.", "param": f, "type": "error"}
        for f in fields
    ]
    return payload("Invalid payload", details=details)
