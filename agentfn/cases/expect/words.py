"""Reads matchers as people write them: a mapping whose keys are all matcher words, else a value that stands for itself.

``{sign: Aquarius}`` is a value, ``{regex: "^Aqua"}`` a matcher. Where a function has a parameter that is called like a
matcher word (`type`, `schema`), the parameter is meant.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.expect import matchers as m
from agentfn.document.check import schema_problems
from agentfn.document.walk import resolve_pointer

if TYPE_CHECKING:
    from agentfn.cases.expect.matchers import Matcher
    from agentfn.definition.reader import Reader
    from agentfn.document.walk import Path
    from agentfn.model import Json

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


class Known(NamedTuple):
    """What a function's schema says of the value at hand; `root` is the whole, for references."""

    schema: Json = None
    root: Json = None

    def _resolved(self) -> dict[str, Json]:
        schema = self.schema
        for _ in range(10):  # a reference may point to another one
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                break
            schema = resolve_pointer(self.root, schema["$ref"])
        return schema if isinstance(schema, dict) else {}

    @property
    def properties(self) -> dict[str, Json]:
        """Return the members that the schema names."""
        found = self._resolved().get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def is_closed(self) -> bool:
        """Tell whether no other members are allowed."""
        return self._resolved().get("additionalProperties") is False

    def member(self, name: str) -> Known:
        """Return what is known of a member."""
        return Known(self.properties.get(name), self.root)

    def item(self) -> Known:
        """Return what is known of an array's items."""
        return Known(self._resolved().get("items"), self.root)


def word(key: str) -> str:
    """Return a key in its plain form: ``one of`` and ``one-of`` mean ``one_of``."""
    return key.strip().replace(" ", "_").replace("-", "_")


class MatcherReader:
    """Makes matchers of one document's values; what is wrong is noted with its place."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def read(self, value: Json, path: Path, known: Known = Known(), *, closed: bool = False) -> Matcher:  # noqa: B008  # it is immutable
        """Return the matcher that a value stands for; `closed` objects have no other members than those written."""
        if isinstance(value, dict):
            strange = [key for key in value if not isinstance(key, str)]
            if strange:  # of a test in Python; a file's keys are texts
                self._error(path, f"{strange[0]!r} is no key of a JSON object: those are texts")
                return m.Ignored()
            if self._is_matcher(value, known):
                parts = [self._word(word(key), value[key], (*path, key), known, closed=closed) for key in value]
                return parts[0] if len(parts) == 1 else m.AllOf(parts)
            self._require_known(value, path, known)
            members = {
                name: self.read(item, (*path, name), known.member(name), closed=closed) for name, item in value.items()
            }
            return m.Keys(members, closed)
        if isinstance(value, list):
            return m.Items(self._each(value, path, known.item(), closed=closed))
        return m.Equal(value)

    def read_text(self, value: Json, path: Path, what: str) -> Matcher:
        """Return the matcher for something that arrives as text; its mapping must be one of matcher words."""
        if isinstance(value, dict):
            for key in value:
                if word(key) not in WORDS:
                    close = get_close_matches(word(key), WORDS, n=1)
                    meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(WORDS)}"
                    self._reader.key_error((*path, key), "expect", f"{what} has no matcher {key}{meant}")
            if not value or any(word(key) not in WORDS for key in value):
                return m.Ignored()
        return m.for_text(self.read(value, path))

    def _each(self, values: list[Json], path: Path, known: Known, *, closed: bool) -> list[Matcher]:
        return [self.read(item, (*path, index), known, closed=closed) for index, item in enumerate(values)]

    def _is_matcher(self, value: dict[str, Json], known: Known) -> bool:
        return bool(value) and all(word(key) in WORDS and key not in known.properties for key in value)

    def _require_known(self, value: dict[str, Json], path: Path, known: Known) -> None:
        """Refuse a member that no call can have, which would make the expectation impossible, or a slip look right."""
        if not known.is_closed:
            return
        for name in value:
            if name not in known.properties:
                close = get_close_matches(name, known.properties, n=1)
                meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(known.properties) or 'none'}"
                self._reader.key_error((*path, name), "expect", f"the function's schema has no {name}{meant}")

    def _word(self, name: str, value: Json, path: Path, known: Known, *, closed: bool) -> Matcher:
        if name == "json":
            return m.AsJson(self.read(value, path, closed=closed))
        if name == "json_path":
            return self._json_path(value, path, closed=closed)
        if name in _METHODS:
            made: Matcher = getattr(self, f"_{name}")(value, path)
            return made
        if name == "exact":
            return self.read(value, path, known, closed=True)
        if name == "not":
            return m.Not(self.read(value, path, known, closed=closed))
        values = value if isinstance(value, list) else None
        if not values:
            self._error(path, f"{name} takes a list of values")
            return m.Ignored()
        if name == "unordered":
            return m.Items(self._each(values, path, known.item(), closed=closed), unordered=True)
        each = self._each(values, path, known, closed=closed)
        return m.OneOf(each) if name == "one_of" else m.AllOf(each)

    def _error(self, path: Path, message: str) -> None:
        self._reader.error(path, "expect", message)

    # What each word makes; a wrong value is noted, and matches anything so that nothing else is said of it.

    def _equals(self, value: Json, path: Path) -> Matcher:
        del path
        return m.Equal(value)

    def _regex(self, value: Json, path: Path) -> Matcher:
        if not isinstance(value, str):
            self._error(path, "regex is a text; quote it")
            return m.Ignored()
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as exc:
            self._error(path, f"{value} is no regular expression: {exc}")
            return m.Ignored()
        return m.Regex(value)

    def _type(self, value: Json, path: Path) -> Matcher:
        types = value if isinstance(value, list) else [value]
        if not types or not all(isinstance(name, str) and name in TYPES for name in types):
            self._error(path, f"type is one of {', '.join(TYPES)}; a parameter of that name: equals")
            return m.Ignored()
        article = "an" if str(types[0])[0] in "aeiou" else "a"
        return m.Fits({"type": types}, f"{article} {' or '.join(types)}" if types != ["null"] else "null")

    def _schema(self, value: Json, path: Path) -> Matcher:
        problems = schema_problems(value)
        for problem in problems:
            self._error((*path, *problem.path), problem.message)
        return m.Ignored() if problems else m.Fits(value)

    def _range(self, value: Json, path: Path) -> Matcher:
        found = read_range(self._reader, value, path, whole=False)
        if found is None:
            return m.Ignored()
        limits = {"minimum": found.least, "maximum": found.most}
        return m.Fits({"type": "number", **{k: v for k, v in limits.items() if v is not None}}, f"a number {found}")

    def _ignore(self, value: Json, path: Path) -> Matcher:
        if value is not True:
            self._error(path, "write ignore: true")
        return m.Ignored()

    def _absent(self, value: Json, path: Path) -> Matcher:
        if value is not True:
            self._error(path, "write absent: true")
        return m.Absent()

    def _contains(self, value: Json, path: Path) -> Matcher:
        texts = value if isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            self._error(path, "contains is a text, or a list of texts that all must be there; quote numbers")
            return m.Ignored()
        return m.Contains(texts)

    def _json_path(self, value: Json, path: Path, *, closed: bool) -> Matcher:
        import jsonpath

        if not isinstance(value, dict) or not value:
            self._error(path, "json_path is a mapping of paths to values: {$.days[0].sign: Aquarius}")
            return m.Ignored()
        parts = []
        for query, wanted in value.items():
            try:
                jsonpath.compile(query)
            except (jsonpath.JSONPathError, re.error, OverflowError, RecursionError) as exc:
                self._error((*path, query), f"{query} is no JSON path: {str(exc).splitlines()[0]}")
            parts.append(m.AsJson(m.AtPath(query, self.read(wanted, (*path, query), closed=closed))))
        return parts[0] if len(parts) == 1 else m.AllOf(parts)


#: Words whose value is read by a method of that name.
_METHODS = ("equals", "regex", "contains", "type", "schema", "range", "ignore", "absent")
WORDS = (*_METHODS, "json", "json_path", "exact", "one_of", "all_of", "not", "unordered")


class Range(NamedTuple):
    """A number's limits, both included; None is no limit."""

    least: float | None = None
    most: float | None = None

    def holds(self, number: float) -> bool:
        """Tell whether a number lies within."""
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        """Return the limits in words."""
        if self.least == self.most:
            return f"{self.least:g}"
        least = f"at least {self.least:g}" if self.least is not None else ""
        most = f"at most {self.most:g}" if self.most is not None else ""
        return " and ".join(part for part in (least, most) if part)


def read_range(reader: Reader, value: Json, path: Path, *, whole: bool) -> Range | None:
    """Return limits, written as a number, ``[least, most]`` or ``{min, max}``; `whole` wants whole numbers from 0 on."""
    least, most = value, value
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004  # least and most
        least, most = value
    elif isinstance(value, dict):
        reader.unknown_keys(value, ("min", "max"), path, "a range")
        least, most = value.get("min"), value.get("max")
    numbers = [number for number in (least, most) if number is not None]
    kinds = (int,) if whole else (int, float)
    good = all(isinstance(n, kinds) and not isinstance(n, bool) and (not whole or n >= 0) for n in numbers)
    if not numbers or not good or (len(numbers) == 2 and numbers[0] > numbers[1]):  # noqa: PLR2004  # least and most
        reader.error(path, "expect", "a range is a number, [least, most] or {min: …, max: …}")
        return None
    return Range(least, most)
