"""What a server of the Responses API can do beyond answering, found out by the first request that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.backends.http import Reply
    from agentfn.backends.kept import Kept
    from agentfn.backends.protocol import Listener

_FOUND = {
    ("conversations", True): "this server keeps conversations",
    ("conversations", False): "this server keeps no conversations: each response goes on from the one before it",
    ("previous", True): "this server goes on from an earlier response",
    ("previous", False): "this server does not go on from an earlier response: the whole history is sent each time",
}


class Dialect:
    """What is known of one server; None means that it was not tried yet."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._known: dict[str, bool] = kept.get("dialect", "") or {}

    @property
    def conversations(self) -> bool | None:
        """Tell whether the server has conversations."""
        return self._known.get("conversations")

    @property
    def previous(self) -> bool | None:
        """Tell whether the server goes on from a response (``previous_response_id``)."""
        return self._known.get("previous")

    def learn(self, what: str, *, known: bool, listener: Listener) -> None:
        """Remember what was found, and say so the first time."""
        if self._known.get(what) == known:
            return
        self._known[what] = known
        self._kept.put("dialect", "", self._known)
        listener.noticed(_FOUND[what, known])


def has_route(reply: Reply) -> bool:
    """Tell whether a refusal comes from the route that was asked for, rather than from a server that has no such route.

    A route's own 404 names what is missing in an error object; a web framework's says "Not Found", or nothing.
    """
    if reply.status in (405, 501):  # HTTP's own numbers
        return False
    if reply.status != 404:  # noqa: PLR2004  # HTTP's own number
        return True
    body = reply.body if isinstance(reply.body, dict) else {}
    error = body.get("error")
    told = str(error.get("message") or "") if isinstance(error, dict) else ""
    lowered = told.lower()
    return "conv" in lowered or "resp" in lowered if told and "route" not in lowered and "url" not in lowered else False
