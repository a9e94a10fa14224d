"""Chooses arguments for a function from its schema and the user's message.

For each parameter, in this order: a word of the message that is in the enum, or in the examples or the description; a
number, date, address or quoted text of the message that fits; a default; the first enum value; the smallest valid value.
Optional parameters are left out unless the message gives them a value.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentfn.document.schema import instance_problems, resolve_pointer
from agentfn.emulator.models.smallest import smallest

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOP = frozenset(
    [
        "a",
        "about",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "do",
        "does",
        "e",
        "eg",
        "for",
        "from",
        "g",
        "get",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "like",
        "may",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "one",
        "or",
        "other",
        "our",
        "please",
        "say",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "this",
        "to",
        "up",
        "use",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
        "give",
        "given",
        "tell",
        "show",
    ],
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_DATE_TIME = re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?")
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+[^\s\"'<>.,;:!?)]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'(?!\w)|\u201c([^\u201d]+)\u201d|\u00ab\s*([^\u00bb]+?)\s*\u00bb")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)")
_EXAMPLES_START = re.compile(r"(?i)\b(?:like|such as|for example|e\.g\.|or)\s")


def words(text: str) -> list[str]:
    """Return the words of a text that carry meaning, in lower case."""
    return [word for word in (w.casefold() for w in _WORD.findall(text)) if word not in _STOP]


class Message:
    """The user's text, and what has been taken from it: two parameters do not get the same number."""

    def __init__(self, text: str) -> None:
        self.text = text
        spans = [match.group() for match in _DATE_TIME.finditer(text)]
        self.dates = list(dict.fromkeys([*spans, *_DATE.findall(text)]))
        self.addresses = _ADDRESS.findall(text)
        self.quoted = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]
        bare = _ADDRESS.sub(" ", _DATE.sub(" ", _DATE_TIME.sub(" ", text)))
        self.numbers = [float(n) if "." in n else int(n) for n in _NUMBER.findall(bare)]

    def holds(self, text: str) -> bool:
        """Tell whether a text stands in the message as whole words, whatever the case."""
        return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self.text, re.IGNORECASE) is not None


def arguments_for(tool: dict[str, Any], message: Message) -> dict[str, Any]:
    """Return valid arguments for a function."""
    schema = tool.get("parameters") or {}
    return _object(schema, schema, message, str(tool.get("name", "")))


def _object(schema: dict[str, Any], root: dict[str, Any], message: Message, function: str) -> dict[str, Any]:
    schema = _resolved(schema, root)
    properties = schema.get("properties") if isinstance(schema.get("properties"), dict) else {}
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    chosen: dict[str, Any] = {}
    for name, part in properties.items():
        found = _given(name, part, root, message, function)
        if found is not None:
            chosen[name] = found[0]
        elif name in required:
            chosen[name] = _fallback(part, root)
    for name in required:
        chosen.setdefault(name, _fallback(schema.get("additionalProperties", True), root))
    if _fits(chosen, schema, root):
        return chosen
    whole = smallest(schema, root)
    return whole if isinstance(whole, dict) else {}


def _given(name: str, part: Any, root: dict[str, Any], message: Message, function: str) -> tuple[Any] | None:
    """Return the value that the message gives a parameter, as a tuple of one; None where it gives none."""
    for branch in _branches(part, root):
        if "object" in _types(branch) and branch.get("properties"):
            inner = _object_given(branch, root, message, function)
            if inner is not None:
                return inner
        for candidate in _candidates(name, branch, message, function):
            if _fits(candidate, branch, root) and _fits(candidate, part, root):
                _take(message, candidate)
                return (candidate,)
    return None


def _object_given(branch: dict[str, Any], root: dict[str, Any], message: Message, function: str) -> tuple[Any] | None:
    named = {
        name: found[0]
        for name, part in branch["properties"].items()
        if (found := _given(name, part, root, message, function)) is not None
    }
    if not named:
        return None
    whole = {name: _fallback(branch["properties"].get(name, True), root) for name in branch.get("required") or []}
    return (whole | named,) if _fits(whole | named, branch, root) else None


def _candidates(name: str, part: dict[str, Any], message: Message, function: str) -> Iterator[Any]:
    """Yield what the message offers, the pinned order first to last."""
    for key in ("enum", "examples"):
        values = part.get(key)
        yield from (value for value in values or [] if isinstance(value, str) and message.holds(value))
        yield from (value for value in values or [] if _is_number(value) and value in message.numbers)
    types = _types(part)
    if "string" in types and "enum" not in part:
        yield from _described(name, str(part.get("description") or ""), message, function)
    if {"integer", "number"} & set(types):
        yield from message.numbers
    if "string" in types:
        yield from message.dates
        yield from message.addresses
        yield from message.quoted
    if "array" in types and isinstance(part.get("items"), dict):
        yield from ([value] for value in _candidates(name, part["items"], message, function))


def _described(name: str, description: str, message: Message, function: str) -> Iterator[str]:
    """Yield words of the message that the description has, those it gives as examples first."""
    own = {word.casefold() for word in re.findall(r"[A-Za-z0-9]+", f"{name} {function}".replace("_", " "))}
    start = _EXAMPLES_START.search(description)
    examples = set(words(description[start.end() :])) if start else set()
    known = set(words(description)) - own
    spoken = [word for word in _WORD.findall(message.text) if word.casefold() in known]
    yield from sorted(spoken, key=lambda word: (word.casefold() not in examples, not word[0].isupper()))


def _fallback(part: Any, root: dict[str, Any]) -> Any:
    """Return the value of a required parameter that the message says nothing of."""
    resolved = _resolved(part, root)
    if "default" in resolved and _fits(resolved["default"], part, root):
        return resolved["default"]
    if "null" in _types(resolved) or any("null" in _types(branch) for branch in _branches(part, root)):
        return None
    values = resolved.get("enum")
    if isinstance(values, list):
        first = next((value for value in values if _fits(value, part, root)), None)
        if first is not None:
            return first
    return smallest(part, root)


def _branches(part: Any, root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    resolved = _resolved(part, root)
    yield resolved
    for key in ("anyOf", "oneOf"):
        for branch in resolved.get(key) or []:
            yield _resolved(branch, root)


def _resolved(part: Any, root: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with local references followed; at most a few, since they may run in a circle."""
    for _ in range(8):
        if not isinstance(part, dict) or "$ref" not in part:
            break
        part = resolve_pointer(root, str(part["$ref"]))
    return part if isinstance(part, dict) else {}


def _types(part: dict[str, Any]) -> list[Any]:
    types = part.get("type")
    return types if isinstance(types, list) else [types]


def _fits(value: Any, part: Any, root: dict[str, Any]) -> bool:
    if part is True or part == {}:
        return True
    if not isinstance(part, dict):
        return False
    shared = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return not instance_problems(value, {**shared, **part}) and _has_format(value, part.get("format"))


def _has_format(value: Any, form: Any) -> bool:
    """Tell whether a text has the format that its schema names, for those that the message can give."""
    if not isinstance(value, str):
        return True
    checks = {
        "date": _DATE,
        "date-time": _DATE_TIME,
        "email": re.compile(r"[^@\s]+@[^@\s]+"),
        "uri": re.compile(r"\w+://.+"),
    }
    return form not in checks or checks[form].fullmatch(value) is not None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _take(message: Message, value: Any) -> None:
    for taken in value if isinstance(value, list) else [value]:
        for pool in (message.numbers, message.dates, message.addresses, message.quoted):
            if taken in pool and not isinstance(taken, bool):
                pool.remove(taken)
