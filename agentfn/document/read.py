"""Reads YAML and JSON into plain values that know where each of them stands. The one home of yaml.

YAML is read by the core rules of version 1.2, from the parser's events: the package's own constructors follow 1.1, where
``NO`` is false, ``0777`` is 511 and a key written twice is lost. Events also let nesting be bounded without recursion.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from agentfn.errors import Finding, InvalidFileError, UsageError
from agentfn.utf8 import decode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path as File

    from agentfn.model import Json

Path = tuple[str | int, ...]
"""The way to a value: keys of mappings and indexes of lists, from the document's root."""

Place = tuple[int, int]
"""Line and column, both counted from 1."""

#: Deeper nesting is a mistake or an attack, and would exhaust the stack of whatever walks the value later.
DEEPEST = 64
#: Values of a document, aliases expanded: a few lines of aliases can stand for billions.
LARGEST = 200_000

#: What a plain scalar means. A leading zero keeps it text, unlike in the core rules: whoever writes 01701 means those five
#: characters.
_SCALAR = re.compile(
    r"(?P<null>~|null|Null|NULL|)|(?P<true>true|True|TRUE)|(?P<false>false|False|FALSE)"
    r"|(?P<int>[-+]?(?:0|[1-9][0-9]*))|(?P<based>0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<none>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
    r"|(?P<float>[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)",
)
#: More digits than Python turns into a number.
_MOST_DIGITS = 4000
_TAG = "tag:yaml.org,2002:"
#: YAML 1.2 §5.1: everything but what may stand in a text.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SWALLOWED = re.compile(r"\s#\S")

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document:
    """A read file: its plain `value`, where everything stands, and warnings about its text."""

    def __init__(self, source: str, value: Json, places: dict[Path, Place], keys: dict[Path, Place]) -> None:
        self.source = source
        self.value = value
        self.warnings: list[Finding] = []
        self._places = places
        self._keys = keys
        self._texts: dict[Path, str] = {}

    def position(self, path: Path) -> Place:
        """Return where the value at `path` starts, or the nearest value around it that has a place."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path, (0, 0))

    def key_position(self, path: Path) -> Place:
        """Return where the key of the value at `path` starts; the value's place where it has no key."""
        return self._keys.get(path) or self.position(path)

    def text(self, path: Path) -> str | None:
        """Return a plain scalar as it was written, such as ``1.10``; None for everything else."""
        return self._texts.get(path)

    def finding(self, path: Path, rule: str, message: str, severity: str = "error") -> Finding:
        """Return a finding at the value of `path`."""
        return Finding(self.source, *self.position(path), rule, message, severity)

    def key_finding(self, path: Path, rule: str, message: str, severity: str = "error") -> Finding:
        """Return a finding at the key of `path`."""
        return Finding(self.source, *self.key_position(path), rule, message, severity)


def read_document(path: File) -> Document:
    """Read a file; raise UsageError where it cannot be opened, InvalidFileError where its text is wrong."""
    try:
        data = path.read_bytes()
    except IsADirectoryError as exc:
        raise UsageError(f"{path} is a folder, not a file") from exc
    except FileNotFoundError as exc:
        raise UsageError(f"there is no file {path}", code="file_not_found") from exc
    except (OSError, ValueError) as exc:
        raise UsageError(f"{path} cannot be read: {exc}") from exc
    return parse_document(data, str(path))


def parse_document(text: str | bytes, source: str) -> Document:
    """Read a text: as JSON where the source's name ends in .json, else as YAML (of which JSON is a part)."""
    if isinstance(text, bytes):
        text = decode(text, source)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if source.endswith(".json"):
        return _json_document(text, source)
    return _Reader(text, source).read()


def _json_document(text: str, source: str) -> Document:
    def fail(line: int, column: int, rule: str, message: str) -> InvalidFileError:
        return InvalidFileError([Finding(source, line, column, rule, message)])

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        found = dict(items)
        if len(found) < len(items):
            twice = next(key for key in found if sum(key == other for other, _ in items) > 1)
            raise fail(0, 0, "duplicate-key", f'key "{twice}" is written twice')
        return found

    def constant(name: str) -> Json:
        raise fail(0, 0, "json-number", f"{name} is no JSON number")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as exc:
        raise fail(exc.lineno, exc.colno, "json-syntax", exc.msg) from exc
    except (RecursionError, ValueError) as exc:
        raise fail(0, 0, "json-syntax", f"cannot be read: {exc}") from exc
    return Document(source, value, {(): (1, 1)}, {})


class _Node(NamedTuple):
    """A value of the YAML text: a scalar's value, the items of a sequence, or the pairs of a mapping."""

    kind: str
    value: Any
    line: int
    column: int
    text: str | None = None


class _Open:
    """A sequence or mapping whose end has not come yet."""

    def __init__(self, kind: str, event: Any) -> None:
        self.kind = kind
        self.items: list[_Node] = []
        self.place = (event.start_mark.line + 1, event.start_mark.column + 1)
        self.anchor: str | None = event.anchor


class _Reader:
    """Builds a document from the events of one YAML text."""

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._source = source
        self._findings: list[Finding] = []
        self._warnings: list[Finding] = []
        self._anchors: dict[str, _Node | None] = {}
        self._places: dict[Path, Place] = {}
        self._keys: dict[Path, Place] = {}
        self._texts: dict[Path, str] = {}
        self._size = 0

    def read(self) -> Document:
        root = self._compose()
        if root is None:
            self._fail(1, 1, "empty", "the file is empty")
            raise InvalidFileError(self._findings)
        value = self._plain(root, ())
        if self._findings:
            raise InvalidFileError(sorted(self._findings, key=lambda f: (f.line, f.column)))
        document = Document(self._source, value, self._places, self._keys)
        document.warnings = self._warnings
        document._texts = self._texts  # noqa: SLF001  # the reader makes the document
        return document

    def _fail(self, line: int, column: int, rule: str, message: str) -> None:
        self._findings.append(Finding(self._source, line, column, rule, message))

    def _events(self) -> Iterator[Any]:
        # Looked for here, since the parser counts in bytes where it says at all.
        forbidden = _FORBIDDEN.search(self._text)
        if forbidden is not None:
            at = forbidden.start()
            line, column = self._text.count("\n", 0, at) + 1, at - (self._text.rfind("\n", 0, at) + 1) + 1
            self._fail(line, column, "yaml-character", f"character U+{ord(forbidden[0]):04X} is not allowed")
            raise InvalidFileError(self._findings)
        try:
            yield from yaml.parse(self._text, Loader=_Loader)
        except yaml.MarkedYAMLError as exc:
            self._syntax(exc)
        if self._findings:
            raise InvalidFileError(self._findings)

    def _syntax(self, exc: yaml.MarkedYAMLError) -> None:
        mark: Any = exc.problem_mark or exc.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = " ".join(part for part in (exc.context, exc.problem) if part)
        here = self._lines[line - 1] if line <= len(self._lines) else ""
        indent = here[: len(here) - len(here.lstrip())]
        if "\t" in indent or here[column - 1 : column] == "\t":
            where = "for indentation" if "\t" in indent else "after a value"
            self._fail(line, here.index("\t") + 1, "yaml-tab", f"tab character used {where}; use spaces")
            return
        context: Any = exc.context_mark
        first = context.line if context is not None else line - 1
        for number in range(max(0, min(first, line - 1) - 1), min(line, len(self._lines))):
            swallowed = _SWALLOWED.search(self._lines[number])
            if swallowed:
                problem += f'; on line {number + 1} the text from " #" on was taken as a comment, quote it'
                line, column = number + 1, swallowed.start() + 2
                break
        if "{{" in here or "{%" in here:
            problem += "; looks like a template, quote it"
        self._fail(line, column, "yaml-syntax", problem)

    def _compose(self) -> _Node | None:
        stack: list[_Open] = []
        root: _Node | None = None
        for event in self._events():
            node: _Node | None = None
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                mark: Any = event.start_mark
                self._fail(mark.line + 1, 1, "yaml-documents", "a second document; one file holds one")
                raise InvalidFileError(self._findings)
            if isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
                self._open(event, stack)
            elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
                done = stack.pop()
                node = _Node(done.kind, done.items, *done.place)
                self._anchor(done.anchor, node)
            elif isinstance(event, yaml.ScalarEvent):
                node = self._scalar(event)
                self._anchor(event.anchor, node)
            elif isinstance(event, yaml.AliasEvent):
                node = self._alias(event)
            if node is not None and stack:
                stack[-1].items.append(node)
            elif node is not None:
                root = node
        return root

    def _open(self, event: Any, stack: list[_Open]) -> None:
        kind = "list" if isinstance(event, yaml.SequenceStartEvent) else "map"
        opened = _Open(kind, event)
        if len(stack) >= DEEPEST:
            self._fail(*opened.place, "yaml-depth", f"nested deeper than {DEEPEST} levels")
            raise InvalidFileError(self._findings)
        if event.tag not in (None, "!", f"{_TAG}seq", f"{_TAG}map"):
            self._fail(*opened.place, "yaml-tag", f"the tag {event.tag} is not allowed")
        if opened.anchor:
            self._anchors[opened.anchor] = None  # open: an alias to it from inside would never end
        stack.append(opened)

    def _anchor(self, name: str | None, node: _Node) -> None:
        if name:
            self._anchors[name] = node

    def _alias(self, event: Any) -> _Node:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        target = self._anchors.get(event.anchor)
        if target is None:
            inside = event.anchor in self._anchors
            why = "refers to itself" if inside else "has no anchor before it"
            self._fail(line, column, "yaml-alias", f"*{event.anchor} {why}")
            return _Node("scalar", None, line, column)
        return target._replace(line=line, column=column)

    def _scalar(self, event: Any) -> _Node:
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        plain = not event.style
        text: str = event.value
        if event.tag not in (None, "!") and not self._known_tag(event.tag):
            self._fail(line, column, "yaml-tag", f"the tag {event.tag} is not allowed")
        if not plain or event.tag in ("!", f"{_TAG}str"):
            return _Node("scalar", text, line, column)
        self._warn_comment(event, text)
        value = resolve(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._fail(line, column, "yaml-number", f"{text} is no number that JSON has; quote it to have the text")
        return _Node("scalar", value, line, column, None if isinstance(value, str) else text)

    def _known_tag(self, tag: str) -> bool:
        return tag in {f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null")}

    def _warn_comment(self, event: Any, text: str) -> None:
        """Warn where a word that starts with # was cut off as a comment: "ticket #12" becomes "ticket"."""
        line = self._lines[event.end_mark.line] if event.end_mark.line < len(self._lines) else ""
        swallowed = _SWALLOWED.match(line[event.end_mark.column :])
        if text and swallowed and event.end_mark.line == event.start_mark.line:
            message = f'the text after " #" was taken as a comment; quote it if "{line.strip()}" is meant whole'
            place = (event.start_mark.line + 1, event.end_mark.column + 2)
            self._warnings.append(Finding(self._source, *place, "yaml-comment", message, "warning"))

    def _plain(self, node: _Node, path: Path) -> Json:
        self._size += 1
        if self._size > LARGEST or len(path) > DEEPEST:
            self._fail(node.line, node.column, "yaml-size", "too large once its aliases are expanded")
            raise InvalidFileError(self._findings)
        self._places[path] = (node.line, node.column)
        if node.kind == "list":
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.value)]
        if node.kind == "map":
            return self._mapping(node, path)
        if node.text is not None:
            self._texts[path] = node.text
        return node.value

    def _mapping(self, node: _Node, path: Path) -> dict[str, Json]:
        merged: dict[str, Json] = {}
        own: dict[str, Json] = {}
        lines: dict[str, int] = {}
        pairs = list(zip(node.value[::2], node.value[1::2], strict=True))
        for key, value in pairs:
            if key.kind != "scalar":
                self._fail(key.line, key.column, "yaml-key", "looks like a template ({{ … }}); quote it")
                continue
            name = key.text if key.text is not None else key.value
            if name == "<<" and value.kind in {"map", "list"}:
                merged = self._merge(value, path) | merged
                continue
            if name is None:
                name = ""
            if name in lines:
                message = f'key "{name}" at lines {lines[name]} and {key.line}; the first would be lost'
                self._fail(key.line, key.column, "duplicate-key", message)
            lines[name] = key.line
            self._keys[(*path, name)] = (key.line, key.column)
            own[name] = self._plain(value, (*path, name))
        return merged | own

    def _merge(self, node: _Node, path: Path) -> dict[str, Json]:
        found: dict[str, Json] = {}
        place = self._places[path]
        for item in node.value if node.kind == "list" else [node]:
            value = self._plain(item, path)
            self._places[path] = place
            if isinstance(value, dict):
                found = value | found
            else:
                self._fail(item.line, item.column, "yaml-merge", "<< takes a mapping, or a list of mappings")
        return found


def resolve(text: str) -> bool | int | float | str | None:
    """Return what a plain scalar means by YAML 1.2's core rules; NaN where it is no number that JSON has."""
    match = _SCALAR.fullmatch(text)
    kind = match.lastgroup if match is not None else None
    if kind == "null":
        return None
    if kind in ("true", "false"):
        return kind == "true"
    if kind == "int":
        return int(text) if len(text) < _MOST_DIGITS else text
    if kind == "based":
        return int(text, 0)
    if kind == "none":
        return math.nan
    return float(text) if kind == "float" else text
