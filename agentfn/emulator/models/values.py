"""Chooses arguments for a function from its schema and the user's message.

For each parameter, in this order: a word of the message that is in the enum, or in the examples or the description; a
number, date, address or quoted text of the message that fits; a default; the first enum value; the smallest valid
value. Optional parameters are left out unless the message gives them a value; where null is how they are left out, null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentfn.emulator.models.fitting import fits, resolved, types_of
from agentfn.emulator.models.message import Message, has_format, split_name, words
from agentfn.emulator.models.smallest import smallest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Objects inside objects are looked into this deep; a schema may contain itself.
DEEPEST = 5


def arguments_for(tool: dict[str, Any], text: str) -> dict[str, Any]:
    """Return valid arguments for a function, given the user's message; {} where the schema allows none."""
    return _Chooser(tool, Message(text)).choose()


class _Chooser:
    """Fills the parameters of one function from one message."""

    def __init__(self, tool: dict[str, Any], message: Message) -> None:
        self._root: dict[str, Any] = tool.get("parameters") or {}
        self._message = message
        self._own = _words_of(str(tool.get("name", "")))

    def choose(self) -> dict[str, Any]:
        schema = resolved(self._root, self._root)
        chosen = self._filled(schema, 0)
        if fits(chosen, self._root, self._root):
            return chosen
        whole = smallest(self._root, self._root)
        return whole if isinstance(whole, dict) else {}

    def _filled(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return an object with what the message gives, and with what is required."""
        properties, required = _properties(schema), _list(schema, "required")
        chosen: dict[str, Any] = {}
        for name, part in properties.items():
            given = self._given(name, part, depth)
            if given is not None:
                chosen[name] = given[0]
            elif name in required:
                chosen[name] = self._fallback(part)
        for name in required:
            if name not in chosen:
                chosen[name] = self._fallback(schema.get("additionalProperties", True))
        return chosen

    def _given(self, name: str, part: Any, depth: int) -> tuple[Any] | None:
        """Return the value that the message gives a parameter, as a tuple of one; None where it gives none."""
        for branch in self._branches(part):
            for candidate in self._candidates(name, branch, depth):
                if self._is_good(candidate, branch, part):
                    self._message.take(candidate)
                    return (candidate,)
        return None

    def _is_good(self, value: Any, branch: dict[str, Any], part: Any) -> bool:
        return has_format(value, branch.get("format")) and fits(value, part, self._root)

    def _candidates(self, name: str, part: dict[str, Any], depth: int) -> Iterator[Any]:
        """Yield what the message offers, in the pinned order."""
        message, types = self._message, types_of(part)
        for key in ("enum", "examples"):
            values = _list(part, key)
            yield from (value for value in values if isinstance(value, str) and message.holds(value))
            yield from (value for value in values if _is_number(value) and value in message.numbers)
        if "string" in types and "enum" not in part:
            yield from message.shared_with(str(part.get("description") or ""), self._own | _words_of(name))
        if {"integer", "number"} & set(types):
            yield from list(message.numbers)
        if "string" in types:
            yield from [*message.dates, *message.addresses, *message.quoted]
        if depth < DEEPEST:
            yield from self._inside(name, part, depth)

    def _inside(self, name: str, part: dict[str, Any], depth: int) -> Iterator[Any]:
        """Yield objects and arrays that the message gives something for."""
        types = types_of(part)
        if "object" in types and any(
            self._offers(inner, value, depth + 1) for inner, value in _properties(part).items()
        ):
            yield self._filled(part, depth + 1)
        if "array" in types and isinstance(part.get("items"), dict):
            for branch in self._branches(part["items"]):
                for value in self._candidates(name, branch, depth + 1):
                    if self._is_good(value, branch, part["items"]):
                        yield [value]

    def _offers(self, name: str, part: Any, depth: int) -> bool:
        """Tell whether the message has something for a parameter, and take nothing."""
        return any(
            self._is_good(candidate, branch, part)
            for branch in self._branches(part)
            for candidate in self._candidates(name, branch, depth)
        )

    def _fallback(self, part: Any) -> Any:
        """Return the value of a required parameter that the message says nothing of."""
        schema = resolved(part, self._root)
        if "default" in schema and fits(schema["default"], part, self._root):
            return schema["default"]
        # Under strict mode every parameter is required, and null is how an optional one is left out.
        is_nullable = "null" in types_of(schema) or any("null" in types_of(b) for b in self._branches(part))
        if is_nullable and fits(None, part, self._root):
            return None
        return smallest(part, self._root)

    def _branches(self, part: Any) -> Iterator[dict[str, Any]]:
        """Yield a schema and its alternatives, which inherit its description."""
        schema = resolved(part, self._root)
        yield schema
        for key in ("anyOf", "oneOf"):
            for branch in _list(schema, key):
                inherited = {"description": schema["description"]} if "description" in schema else {}
                yield {**inherited, **resolved(branch, self._root)}


def _words_of(name: str) -> set[str]:
    return set(words(split_name(name))) | {split_name(name).casefold()}


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _list(schema: dict[str, Any], key: str) -> list[Any]:
    values = schema.get(key)
    return values if isinstance(values, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
