"""Reads the `expect` of a case or of a turn."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from agentfn.cases.expect.expectations import Expectations, ExpectedCall, Order
from agentfn.cases.expect.matchers import for_text
from agentfn.cases.expect.words import Known, MatcherReader, Range, read_range, word

if TYPE_CHECKING:
    from agentfn.cases.expect.matchers import Matcher
    from agentfn.definition.agent import Agent
    from agentfn.definition.reader import Reader
    from agentfn.document.walk import Path
    from agentfn.model import Json

KEYS = (
    "calls",
    "order",
    "nothing_else",
    "never",
    "pending",
    "answer",
    "failure",
    "steps",
    "tokens",
    "seconds",
)
CALL_KEYS = ("name", "arguments", "output", "error", "state", "times", "together")
ORDERS: tuple[Order, ...] = ("any", "in_order", "exact")
STATES = ("answered", "failed", "denied", "pending")


def read_expectations(reader: Reader, value: Json, path: Path, agent: Agent | None) -> Expectations:
    """Return what is expected at `path`; `agent` says which functions and parameters there are, None allows any."""
    if value is None:
        return Expectations()
    if not isinstance(value, dict):
        reader.error(path, "expect", f"expect is a mapping with any of {', '.join(KEYS)}")
        return Expectations()
    return _Reading(reader, path, agent).read(value)


class _Reading:
    """One `expect` that is being read."""

    def __init__(self, reader: Reader, path: Path, agent: Agent | None) -> None:
        self._reader = reader
        self._path = path
        self._agent = agent
        self._matchers = MatcherReader(reader)
        self._groups = 0

    def read(self, value: dict[str, Json]) -> Expectations:
        self._reader.unknown_keys(value, KEYS, self._path, "expect")
        self._require_values(value, KEYS, self._path)
        calls = value.get("calls")
        order = self._order(value)
        return Expectations(
            calls=self._calls(calls, "calls"),
            order=order,
            # No calls written down at all means that none may come.
            nothing_else=bool(self._reader.flag(value, "nothing_else", self._path)) or calls == [] or order == "exact",
            never=self._calls(value.get("never"), "never", single=True),
            pending=self._pending(value),
            answer=self._text(value, "answer"),
            failure=self._text(value, "failure"),
            steps=self._range(value, "steps", whole=True),
            tokens=self._range(value, "tokens", whole=True),
            seconds=self._range(value, "seconds", whole=False),
            line=self._reader.document.position(self._path)[0],
        )

    def _error(self, path: Path, message: str) -> None:
        self._reader.error(path, "expect", message)

    def _require_values(self, value: dict[str, Json], keys: tuple[str, ...], path: Path) -> None:
        """Refuse a key without a value: taken for "anything" it would look like an expectation and be none."""
        for key in keys:
            if value.get(key, ...) is None:
                self._error((*path, key), f"{key} is empty; leave it out where anything may come")

    def _order(self, value: dict[str, Json]) -> Order:
        found = value.get("order", "any")
        plain = word(found) if isinstance(found, str) else found
        if plain not in ORDERS:
            self._error((*self._path, "order"), f"order is one of {', '.join(ORDERS)}, got {found!r}")
            return "any"
        if plain != "any" and "calls" not in value:
            self._error((*self._path, "order"), "order says how calls follow each other, and there are no calls here")
        return next(order for order in ORDERS if order == plain)

    def _text(self, value: dict[str, Json], key: str) -> Matcher | None:
        if value.get(key) is None:
            return None
        return self._matchers.read_text(value[key], (*self._path, key), key)

    def _range(self, value: dict[str, Json], key: str, *, whole: bool) -> Range | None:
        return (
            read_range(self._reader, value[key], (*self._path, key), whole=whole)
            if value.get(key) is not None
            else None
        )

    def _pending(self, value: dict[str, Json]) -> tuple[ExpectedCall, ...] | Literal[False]:
        found = value.get("pending", False)
        if found is False or found is True:
            return () if found else False
        if found == []:
            self._error((*self._path, "pending"), "pending is true, false, or the calls that wait; here are none")
        return self._calls(found, "pending")

    def _calls(self, value: Json, key: str, *, single: bool = False) -> tuple[ExpectedCall, ...]:
        path = (*self._path, key)
        if value is None:
            return ()
        if isinstance(value, (str, dict)):
            value = [value]
            paths = [path]
        elif isinstance(value, list):
            paths = [(*path, index) for index in range(len(value))]
        else:
            self._error(path, f"{key} is a list of calls, each a function's name or {{name: …, arguments: …}}")
            return ()
        found: list[ExpectedCall] = []
        for entry, at in zip(value, paths, strict=True):
            found += self._entry(entry, at, single=single)
        return tuple(found)

    def _entry(self, entry: Json, path: Path, *, single: bool) -> list[ExpectedCall]:
        if isinstance(entry, str):
            entry, at = {"name": entry}, path
        else:
            at = (*path, "name")
        if not isinstance(entry, dict):
            self._error(path, "a call is a function's name or {name: …, arguments: …}")
            return []
        if "together" in entry:
            return self._together(entry, path)
        self._reader.unknown_keys(entry, CALL_KEYS, path, "an expected call")
        self._require_values(entry, ("arguments", "state", "times"), path)
        name = entry.get("name")
        if not isinstance(name, str):
            self._error(path, "an expected call needs name, the function's name")
            return []
        self._require_function(name, at)
        if single and "times" in entry:
            self._error((*path, "times"), "never means no times at all; leave times out")
        return [self._call(name, entry, path)]

    def _together(self, entry: dict[str, Json], path: Path) -> list[ExpectedCall]:
        """Read calls that are to be asked for in the same step."""
        members = entry["together"]
        if set(entry) != {"together"} or not isinstance(members, list) or len(members) < 2:  # noqa: PLR2004  # a pair
            self._error(path, "together is a list of two or more calls, with no other key beside it")
            return []
        self._groups += 1
        group = self._groups
        found: list[ExpectedCall] = []
        for index, member in enumerate(members):
            if isinstance(member, dict) and {"times", "together"} & set(member):
                self._error((*path, "together", index), "a call in together takes no times and no together")
                continue
            found += self._entry(member, (*path, "together", index), single=False)
        return [call._replace(group=group) for call in found]

    def _call(self, name: str, entry: dict[str, Json], path: Path) -> ExpectedCall:
        tool = self._agent.function(name) if self._agent is not None else None
        schema = tool.parameters if tool is not None else None
        arguments, times = entry.get("arguments"), entry.get("times")
        state = entry.get("state")
        if state is not None and state not in STATES:
            self._error((*path, "state"), f"state is one of {', '.join(STATES)}, got {state!r}")
        return ExpectedCall(
            name=name,
            arguments=None
            if arguments is None
            else self._matchers.read(arguments, (*path, "arguments"), Known(schema, schema)),
            output=self._member(entry, "output", path),
            error=self._member(entry, "error", path),
            state=state,
            times=read_range(self._reader, times, (*path, "times"), whole=True) if times is not None else None,
            line=self._reader.document.position(path)[0],
        )

    def _member(self, entry: dict[str, Json], key: str, path: Path) -> Matcher | None:
        if key not in entry:
            return None
        return for_text(self._matchers.read(entry[key], (*path, key)))

    def _require_function(self, name: str, path: Path) -> None:
        """Refuse a name that no function has: `never` would always hold, `calls` never."""
        if self._agent is None:
            return
        known = [tool.name for tool in self._agent.functions]
        if name not in known:
            close = get_close_matches(name, known, n=1)
            meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(known) or 'none'}"
            self._error(path, f"the agent has no function {name}{meant}")
