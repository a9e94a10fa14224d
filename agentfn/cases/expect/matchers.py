"""Matchers of JSON values: each says in what a value differs from what was expected, place by place.

A value that is no matcher stands for itself: a mapping for one that has at least these keys, a list for one of the same
length, everything else for what is equal to it.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agentfn.document.bounded import bounded
from agentfn.document.check import instance_problems
from agentfn.document.walk import Path, pointer
from agentfn.visible import short

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentfn.model import Json


class _Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()

#: Characters of a value that a difference shows.
_WIDTH = 200


class Difference(NamedTuple):
    """One place in which a value is not what was expected. `path` is a JSON pointer, empty for the value itself."""

    path: str
    expected: str
    actual: str

    def __str__(self) -> str:
        """Return the difference on one line."""
        return f"{self.path + ': ' if self.path else ''}expected {self.expected}, got {self.actual}"


def shown(value: Json) -> str:
    """Return a value as short JSON, or the word for one that is not there."""
    if value is MISSING:
        return repr(value)
    return short(json.dumps(value, ensure_ascii=False, default=str), _WIDTH)


class Matcher(Protocol):
    """Compares values with what is expected of them."""

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Return where the value is not as expected; empty where it is."""

    def __str__(self) -> str:
        """Return what is expected, in words."""


def equal(one: Json, other: Json) -> bool:
    """Tell whether two JSON values are equal: 1 is 1.0 and is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return (type(one) in (int, float) and type(other) in (int, float) and one == other) or (
        type(one) is type(other) and bool(one == other)
    )


def _one(path: Path, expected: object, actual: Json) -> list[Difference]:
    return [Difference(pointer(path), str(expected), shown(actual))]


class Equal(NamedTuple):
    """A value that is exactly this one."""

    value: Json

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Compare as JSON does."""
        return [] if equal(self.value, actual) else _one(path, self, actual)

    def __str__(self) -> str:
        """Return the value."""
        return shown(self.value)


class Keys(NamedTuple):
    """An object with at least these members; where `closed`, with no others."""

    members: Mapping[str, Matcher]
    closed: bool = False

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Compare member by member."""
        if not isinstance(actual, dict):
            return _one(path, self, actual)
        found = []
        for name, matcher in self.members.items():
            found += matcher.differences(actual.get(name, MISSING), (*path, name))
        if self.closed:
            for name in actual:
                if name not in self.members:
                    found += _one((*path, name), MISSING, actual[name])
        return found

    def __str__(self) -> str:
        """Return the members."""
        return "{" + ", ".join(f"{name}: {matcher}" for name, matcher in self.members.items()) + "}"


class Items(NamedTuple):
    """An array with these items, in this order or, where `unordered`, in any."""

    items: Sequence[Matcher]
    unordered: bool = False

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Compare item by item; without order, by the assignment that fits best."""
        if not isinstance(actual, list) or len(actual) != len(self.items):
            return _one(path, self, actual)
        if not self.unordered:
            pairs = zip(self.items, actual, strict=True)
            return [d for index, (matcher, item) in enumerate(pairs) for d in matcher.differences(item, (*path, index))]
        from agentfn.cases.expect.assign import best_matching

        taken = best_matching(
            [[not matcher.differences(item) for item in actual] for matcher in self.items],
        )
        return [
            d for index, matcher in enumerate(self.items) if index not in taken for d in _one(path, matcher, actual)
        ]

    def __str__(self) -> str:
        """Return the items."""
        return "[" + ", ".join(map(str, self.items)) + "]" + (" in any order" if self.unordered else "")


class OneOf(NamedTuple):
    """A value that one of these matches."""

    choices: Sequence[Matcher]

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Try each."""
        return [] if any(not choice.differences(actual, path) for choice in self.choices) else _one(path, self, actual)

    def __str__(self) -> str:
        """Return the choices."""
        return "one of " + ", ".join(map(str, self.choices))


class AllOf(NamedTuple):
    """A value that all of these match."""

    parts: Sequence[Matcher]

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Collect what any of them finds."""
        return [difference for part in self.parts for difference in part.differences(actual, path)]

    def __str__(self) -> str:
        """Return the parts."""
        return " and ".join(map(str, self.parts))


class Not(NamedTuple):
    """A value that is there and that this does not match."""

    matcher: Matcher

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Find a difference too where the value is missing: what is not there satisfies nothing."""
        if actual is MISSING or not self.matcher.differences(actual, path):
            return _one(path, self, actual)
        return []

    def __str__(self) -> str:
        """Return what it must not be."""
        return f"not {self.matcher}"


class Regex(NamedTuple):
    """A text in which a regular expression is found."""

    pattern: str

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Search; a search that takes for ever counts as a difference."""
        if not isinstance(actual, str):
            return _one(path, self, actual)
        try:
            found = bounded(lambda: re.search(self.pattern, actual))
        except TimeoutError:
            return _one(path, f"{self}, in a time that ends", actual)
        return [] if found else _one(path, self, actual)

    def __str__(self) -> str:
        """Return the pattern."""
        return f"a text with /{self.pattern}/"


class Contains(NamedTuple):
    """A text that holds all of these, whatever their case and spacing."""

    texts: Sequence[str]

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Look for each."""
        if not isinstance(actual, str):
            return _one(path, self, actual)
        folded = _folded(actual)
        return [d for text in self.texts if _folded(text) not in folded for d in _one(path, Contains([text]), actual)]

    def __str__(self) -> str:
        """Return the texts."""
        return "a text with " + " and ".join(json.dumps(text, ensure_ascii=False) for text in self.texts)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


class Fits(NamedTuple):
    """A value that fits a JSON Schema; `word` is how a short form called it."""

    schema: dict[str, Json] | bool
    word: str = ""

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Return each of the schema's complaints."""
        if actual is MISSING:
            return _one(path, self, actual)
        found = []
        for problem in instance_problems(actual, self.schema):
            value = actual
            for key in problem.path:
                value = value[key]
            expected = self.word or f"what fits the schema ({problem.message})"
            found += _one((*path, *problem.path), expected, value)
        return found

    def __str__(self) -> str:
        """Return the short form, or the schema."""
        return self.word or f"what fits {shown(self.schema)}"


class Ignored(NamedTuple):
    """Any value, or none."""

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Find nothing."""
        del actual, path
        return []

    def __str__(self) -> str:
        """Return the word."""
        return "anything"


class Absent(NamedTuple):
    """No value at all."""

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Want nothing there."""
        return [] if actual is MISSING else _one(path, self, actual)

    def __str__(self) -> str:
        """Return the word."""
        return "nothing"


def _no_json(word: str) -> Json:
    raise ValueError(word)


class AsJson(NamedTuple):
    """A text that is read as JSON and then compared; one that is no JSON is compared as it is."""

    matcher: Matcher

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Read and compare."""
        if isinstance(actual, str):
            with contextlib.suppress(ValueError, RecursionError):
                # Python takes NaN and Infinity for JSON; as numbers they would lie within every range.
                actual = json.loads(actual, parse_constant=_no_json)
        return self.matcher.differences(actual, path)

    def __str__(self) -> str:
        """Return what is expected of the value."""
        return str(self.matcher)


class AtPath(NamedTuple):
    """A value in which a JSON path (RFC 9535) finds something, all of which matches."""

    query: str
    matcher: Matcher

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Find the nodes and compare each."""
        import jsonpath

        if not isinstance(actual, (dict, list)):
            return self._nothing(actual, path)
        try:
            nodes = bounded(lambda: list(jsonpath.finditer(self.query, actual)))
        except TimeoutError:
            return _one(path, f"{self}, in a time that ends", actual)
        if not nodes:
            return self._nothing(actual, path)
        return [d for node in nodes for d in self.matcher.differences(node.obj, (*path, *node.parts))]

    def _nothing(self, actual: Json, path: Path) -> list[Difference]:
        return [] if isinstance(self.matcher, Absent) else _one(path, self, actual)

    def __str__(self) -> str:
        """Return the path and what is expected there."""
        return f"{self.query}: {self.matcher}"


class AsTextOrJson(NamedTuple):
    """A text that matches as it is, or as the JSON that it holds: ``42`` is a text, and a number."""

    matcher: Matcher

    def differences(self, actual: Json, path: Path = ()) -> list[Difference]:
        """Compare the text, then what it holds."""
        return self.matcher.differences(actual, path) and AsJson(self.matcher).differences(actual, path)

    def __str__(self) -> str:
        """Return what is expected of the value."""
        return str(self.matcher)


def for_text(matcher: Matcher) -> Matcher:
    """Return a matcher for what always arrives as text: an answer, an output. It is read as JSON where that is meant."""
    if isinstance(matcher, Fits):
        return AsTextOrJson(matcher)
    if isinstance(matcher, Equal) and not isinstance(matcher.value, str):
        return AsJson(matcher)
    return _within(matcher, for_text)


def for_structure(matcher: Matcher) -> Matcher:
    """Return a matcher for a value that may be text, which is read as JSON only where an object or array is expected."""
    return _within(matcher, for_structure)


def _within(matcher: Matcher, change: Callable[[Matcher], Matcher]) -> Matcher:
    if isinstance(matcher, OneOf):
        return OneOf([change(choice) for choice in matcher.choices])
    if isinstance(matcher, AllOf):
        return AllOf([change(part) for part in matcher.parts])
    if isinstance(matcher, Not):
        return Not(change(matcher.matcher))
    return AsJson(matcher) if isinstance(matcher, (Keys, Items, AtPath)) else matcher


def exactly(value: Json) -> Matcher:
    """Return a matcher for a value and nothing else, which says at which places another one differs."""
    if isinstance(value, dict):
        return Keys({name: exactly(item) for name, item in value.items()}, closed=True)
    if isinstance(value, list):
        return Items([exactly(item) for item in value])
    return Equal(value)
