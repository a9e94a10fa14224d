"""A service's routes: requests, pages of lists and deletions, which all services have alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from agentfn.backends.http import RefusedError
from agentfn.errors import NegativeError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentfn.backends.http import Channel, Reply
    from agentfn.backends.retry import Patience
    from agentfn.errors import AgentfnError

Item = dict[str, Any]

#: The most that a page may hold (foundry.md §8, openai-agents.md §1).
_PAGE = 100
#: How often a conflict that says "please retry" is tried again: another writer was faster (foundry.md §2.6).
MOST_CONFLICTS = 3


class Page(NamedTuple):
    """A page of a list, and the service's clock when it came."""

    entries: list[Item]
    now: float


class Advice(NamedTuple):
    """What the user is told to do where the service says who-are-you, not-allowed or nothing that can be read."""

    sign_in: str
    permission: str
    endpoint: str


class Service:
    """One service's routes at one address."""

    def __init__(self, channel: Channel, endpoint: str, advice: Advice) -> None:
        self.channel = channel
        self.endpoint = endpoint
        self.advice = advice

    def address(self, path: str) -> tuple[str, Mapping[str, str] | None]:
        """Return the path as it is sent, and headers that only this route has; a service with such rules overrides it."""
        return path, None

    def send(self, method: str, path: str, *, body: Any = None, patience: Patience | None = None) -> Reply:
        """Send a request; whatever is not a POST is sent again blindly. Raises what `Channel.send` raises."""
        address, headers = self.address(path)
        return self.channel.send(
            method,
            address,
            body=body,
            patience=patience or self.channel.patience(),
            safe=method != "POST",
            headers=headers,
        )

    def get(self, path: str, doing: str, patience: Patience | None = None) -> Reply | None:
        """Return the answer to a question, or None where there is no such thing."""
        try:
            return self.send("GET", path, patience=patience)
        except RefusedError as exc:
            if is_absent(exc.reply):
                return None
            raise self.refusal(exc.reply, doing) from exc

    def refusal(
        self,
        reply: Reply,
        doing: str,
        *,
        sent: tuple[str, ...] = (),
        asked_at: float | None = None,
    ) -> AgentfnError:
        """Return the error that a refusal becomes; see `refusals.translated`, which most commands never need."""
        from agentfn.backends.refusals import translated

        return translated(reply, self.endpoint, doing, self.advice, sent=sent, asked_at=asked_at)

    def unreadable(self, reply: Reply) -> ServiceError:
        """Return the error for an answer that came whole and is none: whoever answered is not the service."""
        kind = reply.headers.get("content-type") or "nothing"
        begin = " ".join(reply.text.split())[:80]
        told = f"{self.endpoint} answered {reply.status} with {kind} in place of JSON" + (f": {begin}" if begin else "")
        return ServiceError(told, code="bad_answer", hint=self.advice.endpoint)

    def delete(self, path: str, what: str) -> bool:
        """Delete something; return False where it was already gone."""
        patience = self.channel.patience()
        while True:
            try:
                reply = self.send("DELETE", path, patience=patience)
            except RefusedError as exc:
                if is_absent(exc.reply):
                    return False
                error = self.refusal(exc.reply, f"deleting {what}")
                if not is_passing_conflict(exc.reply):
                    raise error from exc
                patience.wait("another writer was faster", {}, error, most=MOST_CONFLICTS)
            else:
                if isinstance(reply.body, dict) and reply.body.get("deleted") is False:
                    raise NegativeError(f"{self.endpoint} says that {what} was not deleted", code="not_deleted")
                return True

    def pages(
        self,
        path: str,
        doing: str,
        *,
        order: str | None = None,
        filters: tuple[str, ...] = (),
        told: Callable[[str, float], None] = lambda _reason, _seconds: None,
    ) -> Iterator[Page]:
        """Yield all pages of a list; nothing where what it belongs to does not exist.

        Each page is asked for after the last entry seen, so other entries that vanish meanwhile shift nothing; whoever
        deletes what is listed reads the list to its end first. A marker that comes twice would never end, so it is an
        error. `told` hears of retries.
        """
        after: str | None = None
        seen: set[str] = set()
        while True:
            query = [f"limit={_PAGE}", *filters]
            query += [f"order={order}"] if order else []
            query += [f"after={segment(after)}"] if after else []
            reply = self.get(f"{path}?{'&'.join(query)}", doing, self.channel.patience(told))
            if reply is None:
                return
            body = reply.body
            if not isinstance(body, dict) or not isinstance(body.get("data"), list):
                message = f"{doing}: {self.endpoint}{path} answered with no list"
                raise ServiceError(message, code="bad_answer", hint=self.advice.endpoint)
            entries = [entry for entry in body["data"] if isinstance(entry, dict)]
            yield Page(entries, reply.service_now)
            if not body.get("has_more"):
                return
            after = _marker(body, entries)
            if after is None or after in seen:
                fault = f"repeated the page marker {after}" if after else "gave no page marker"
                raise ServiceError(f"{doing}: server {fault}, so the list has no end", code="bad_answer")
            seen.add(after)


def segment(text: str) -> str:
    """Return a text as one segment of a path, or as a value in a query."""
    return quote(text, safe="")


def is_absent(reply: Reply) -> bool:
    """Tell whether a refusal says that the thing does not exist.

    A page of a web server, or a project that is not there, says nothing of the thing: the endpoint is wrong.
    """
    told = str(reply.error().get("message") or "")
    return reply.status == 404 and bool(reply.error()) and "Project not found" not in told  # noqa: PLR2004  # HTTP's


def is_passing_conflict(reply: Reply) -> bool:
    """Tell whether a refusal says that another writer was faster (foundry.md §5.2)."""
    return reply.status == 409 and "retry" in str(reply.error().get("message") or "")  # noqa: PLR2004  # HTTP's


def _marker(body: Item, entries: list[Item]) -> str | None:
    """Return what the next page comes after; a list's markers are its entries' ids (foundry.md §2.5)."""
    last = body.get("last_id") or (entries[-1].get("id") if entries else None)
    return str(last) if last else None
