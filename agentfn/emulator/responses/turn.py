"""One model step of a response: decided, waited for, and committed in one transaction.

Killed anywhere before the commit, nothing has happened; after it, everything has. Only a queued response (background)
has a second transaction, which whoever looks at it runs once its time has come, so no thread has to live until then.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.http import ApiError, ConnectionCut
from agentfn.emulator.models.thread import decide
from agentfn.emulator.responses.body import final_body, open_body, output_items
from agentfn.emulator.responses.conversations import append
from agentfn.emulator.responses.errors import foundry_error, not_found
from agentfn.emulator.responses.ids import new_id
from agentfn.emulator.store import Store, move_clock, save_thread

if TYPE_CHECKING:
    import sqlite3

    from agentfn.emulator.app import Application
    from agentfn.emulator.responses.asked import Asked

Body = dict[str, Any]

#: What a background response is until its time has come.
RUNNING = ("queued", "in_progress")


class ModelStep:
    """What the model does about one request."""

    def __init__(self, app: Application, asked: Asked) -> None:
        self._store = app.store
        self.asked = asked
        self._decision = decide(app.store, app.scenario, asked.state, asked.prompt)
        self.reply = self._decision.reply
        self.identity = new_id("resp", asked.partition)
        self.created_at = self._store.now() + self.reply.advance_first
        self.opened = open_body(asked, self.identity, self.created_at, "queued" if asked.background else "in_progress")

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Return what says who answered: none of them is a language model."""
        return (("x-agentfn-model", self._decision.model),)

    @property
    def is_fault(self) -> bool:
        """Tell whether the client gets a fault and nothing is stored."""
        return self.reply.fault is not None or self.reply.cut == "before"

    def fail(self) -> ApiError | ConnectionCut:
        """Return the fault; it is used up by that, so that a client that tries again gets the next step."""
        with self._store.writing() as db:
            self._decision.remember(db)
            save_thread(db, self.asked.thread, self._decision.after_fault)
            move_clock(db, self.reply.advance_first + self.reply.advance)
        fault = self.reply.fault
        if fault is None:
            return ConnectionCut()
        error = foundry_error(fault.code, fault.message, type_=fault.type)
        return ApiError(fault.status, error, {**dict(fault.headers), **dict(self.headers)})

    def commit(self) -> Body:
        """Store input, output, response and the scenario's position; return the finished response."""
        output = output_items(self.asked, self.identity, self.reply)
        # Now, not at the start: the model may have been slow.
        now = self._store.now() + self.reply.advance_first
        body = final_body(self.opened, self.asked, output, self.reply, now)
        with self._store.writing() as db:
            self._keep_position(db, body)
            if self.asked.conversation is not None and self.asked.stored:
                self._touch_conversation(db)
                append(db, self.asked.conversation, [*self.asked.given, *output])
            if self.asked.stored:
                self._insert(db, body, due=None, final=None)
            move_clock(db, self.reply.advance_first + self.reply.advance)
        return body

    def queue(self) -> Body:
        """Store the input and, for later, what the model will have answered; return the queued response."""
        asked = self.asked
        due = self.created_at + self.reply.delay
        output = output_items(asked, self.identity, self.reply)
        final = final_body({**self.opened, "background": True}, asked, output, self.reply, due)
        with self._store.writing() as db:
            self._keep_position(db, final)
            if asked.conversation is not None:
                self._touch_conversation(db)
                append(db, asked.conversation, asked.given)
            self._insert(db, self.opened, due=due, final=final)
            move_clock(db, self.reply.advance_first + self.reply.advance)
        return self.opened

    def _keep_position(self, db: sqlite3.Connection, body: Body) -> None:
        """Keep how far the scenario is, under the names by which the next request may come."""
        asked, after = self.asked, self._decision.after
        self._decision.remember(db)
        if asked.conversation is not None or self.reply.cut is not None:
            # After a cut the same request may come again, and is to get the following step.
            save_thread(db, asked.thread, after)
        elif not asked.thread.startswith("item:"):
            db.execute("DELETE FROM thread WHERE key = ?", (asked.thread,))
        if asked.conversation is None:
            # The client may carry the items itself; the latest of them names the thread.
            for item in body["output"][-1:]:
                save_thread(db, f"item:{item.get('call_id') or item['id']}", after)

    def _touch_conversation(self, db: sqlite3.Connection) -> None:
        agent = self.asked.agent.id if self.asked.agent else None
        changed = db.execute("UPDATE conversation SET agent = ? WHERE id = ?", (agent, self.asked.conversation))
        if not changed.rowcount:
            raise not_found(f"Conversation '{self.asked.conversation}' not found")  # deleted while the model was at it

    def _insert(self, db: sqlite3.Connection, body: Body, *, due: float | None, final: Body | None) -> None:
        asked = self.asked
        row = {
            "id": self.identity,
            "created_at": self.created_at,
            "conversation": asked.conversation,
            "previous": asked.previous,
            "agent": asked.agent.id if asked.agent else None,
            "status": body["status"],
            "background": asked.background,
            "streamed": asked.streamed,
            "body": json.dumps(body),
            "input": json.dumps(asked.given),
            "thread": json.dumps(self._decision.after),
            "due": due,
            "final": json.dumps(final) if final else None,
        }
        places = ", ".join(f":{name}" for name in row)
        db.execute(f"INSERT INTO response ({', '.join(row)}) VALUES ({places})", row)


def settle(store: Store, identity: str) -> None:
    """Move a background response on, as far as its time has come; any other is left alone."""
    row = store.one("SELECT status, due FROM response WHERE id = ?", identity)
    if row is None or row[0] not in RUNNING:
        return
    is_due = store.now() >= row[1]
    if not is_due and row[0] == "in_progress":
        return
    with store.writing() as db:
        row = store.one("SELECT status, body, final, conversation FROM response WHERE id = ?", identity)
        if row is None or row[0] not in RUNNING:
            return  # another process was faster
        body = json.loads(row[2]) if is_due else {**json.loads(row[1]), "status": "in_progress"}
        change = "UPDATE response SET status = ?, body = ? WHERE id = ?"
        db.execute(change, (body["status"], json.dumps(body), identity))
        if is_due:
            db.execute("UPDATE response SET due = NULL, final = NULL WHERE id = ?", (identity,))
            # The conversation may have been deleted meanwhile.
            if row[3] and db.execute("SELECT 1 FROM conversation WHERE id = ?", (row[3],)).fetchone():
                append(db, row[3], body["output"])
