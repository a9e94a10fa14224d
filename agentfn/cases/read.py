"""Reads a test file: every problem is found, each at its line and column, and spoils no more than the case it is in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.case import BrokenCase, Case
from agentfn.cases.compose import Layer, composed, filled, label, rows_of, unused_names
from agentfn.cases.read_case import CASE_KEYS, Own, read_case
from agentfn.definition.reader import Reader
from agentfn.document.derived import Derived
from agentfn.document.read import read_document
from agentfn.errors import Finding, InvalidFileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path as File

    from agentfn.definition.agent import Agent
    from agentfn.document.read import Document, Path
    from agentfn.model import Json

FILE_KEYS = ("agent", "defaults", "cases")
#: Keys that make a case and are no part of it.
COMPOSING_KEYS = ("extends", "matrix", "abstract")
#: What a scenario fills in itself; a matrix may not take these names from it.
_SCENARIO_NAMES = ("message", "output")
#: Stands for tags that a case would have from one that is not there.
_UNKNOWN = ["{{unknown}}"]
HINT = "docs/tests.md has the format"


class Sources(NamedTuple):
    """What reading a test file needs beside it: the environment, and how an agent file is loaded."""

    env: Mapping[str, str]
    load_agent: Callable[[File], Agent]


def read_cases(path: File, sources: Sources) -> list[Case | BrokenCase]:
    """Return the cases of a file in their order; what is wrong with one makes it a broken case.

    Raises UsageError where the file cannot be opened.
    """
    try:
        document = read_document(path)
    except InvalidFileError as exc:
        return [_broken_file(path, exc.findings)]
    return _File(path, document, sources).cases()


def _broken_file(path: File, findings: list[Finding]) -> BrokenCase:
    first = findings[0]
    return BrokenCase(path, "", first.line, first.column, InvalidFileError(findings, hint=HINT))


class _File:
    """One test file that is being read."""

    def __init__(self, path: File, document: Document, sources: Sources) -> None:
        self._path = path
        self._document = document
        self._sources = sources
        self._reader = Reader(document, sources.env)
        self._agents: dict[str, Agent | list[Finding]] = {}
        self._named: dict[str, int] = {}
        self._taken: set[str] = set()

    def cases(self) -> list[Case | BrokenCase]:
        value = self._document.value
        if not isinstance(value, dict) or not isinstance(value.get("cases"), list) or not value["cases"]:
            finding = self._document.finding((), "test-file", "a test file is a mapping with agent and a list of cases")
            return [_broken_file(self._path, [finding])]
        self._reader.unknown_keys(value, FILE_KEYS, (), "a test file")
        if "agent" in value and not isinstance(value["agent"], str):
            self._reader.error(("agent",), "test-file", "agent is the name of an agent file")
        defaults = value.get("defaults") or {}
        if not isinstance(defaults, dict):
            self._reader.error(("defaults",), "test-file", "defaults is a mapping of what cases may have")
            defaults = {}
        self._reader.unknown_keys(defaults, [key for key in CASE_KEYS if key != "name"], ("defaults",), "defaults")
        self._name_cases(value["cases"])
        errors = [finding for finding in self._reader.findings if finding.severity == "error"]
        if errors:
            return [_broken_file(self._path, errors)]
        found: list[Case | BrokenCase] = []
        for index, entry in enumerate(value["cases"]):
            found += self._case(index, entry)
        return found

    def _name_cases(self, entries: list[Json]) -> None:
        for index, entry in enumerate(entries):
            at: Path = ("cases", index)
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(name, str) or not name.strip() or "\n" in name:
                self._reader.error(at, "test-file", "a case is a mapping with a name, a text on one line")
            elif name in self._named:
                line = self._document.position(("cases", self._named[name]))[0]
                message = f'two cases are called "{name}", the other one at line {line}'
                self._reader.error((*at, "name"), "test-file", message)
            else:
                self._named[name] = index

    def _case(self, index: int, entry: dict[str, Json]) -> Iterator[Case | BrokenCase]:
        """Yield what an entry makes: a case for each row of its matrix, nothing where it is abstract."""
        reader = Reader(self._document, self._sources.env)
        reader.unknown_keys(entry, (*CASE_KEYS, *COMPOSING_KEYS), ("cases", index), "a case")
        layers = self._layers(index, reader)
        if reader.findings:
            yield self._broken(entry["name"], index, reader, _tags_of(layers))
            return
        if reader.flag(entry, "abstract", ("cases", index)):
            return
        whole = composed(self._document, layers)
        rows = self._rows(whole, reader)
        names = [str(filled(whole.value["name"], row)) for row in rows]
        is_told_apart = len(set(names)) == len(rows)
        for name, row in zip(names, rows, strict=True):
            yield self._one(
                whole, row, index, reader, self._free(name if is_told_apart else f"{name} {label(row)}", index)
            )

    def _free(self, name: str, index: int) -> str:
        """Return the name of a case where no other has it: rows may be written alike, and like another case's name."""
        found, number = name, 1
        while found in self._taken or self._named.get(found, index) != index:
            number += 1
            found = f"{name} #{number}"
        self._taken.add(found)
        return found

    def _layers(self, index: int, reader: Reader) -> list[Layer]:
        """Return defaults, what the case extends from far to near, and the case itself."""
        value = self._document.value
        chain: list[int] = []
        farthest = Layer(value.get("defaults") or {}, ("defaults",))
        while True:
            entry = value["cases"][index]
            chain.append(index)
            name = entry.get("extends")
            if name is None:
                break
            if not isinstance(name, str) or name not in self._named or self._named[name] in chain:
                known = ", ".join(other for other, at in self._named.items() if at not in chain)
                why = f"extends names another case of this file; known: {known or 'none'}"
                reader.error(("cases", index, "extends"), "test-file", why)
                farthest = Layer({"tags": _UNKNOWN}, ("cases", index))
                break
            index = self._named[name]
        layers = [farthest] if farthest.value else []
        for at in reversed(chain):
            own = {k: v for k, v in value["cases"][at].items() if k not in ("extends", "abstract")}
            if at != chain[0]:
                own.pop("name")
            layers.append(Layer(own, ("cases", at)))
        return layers

    def _rows(self, whole: Derived, reader: Reader) -> list[dict[str, Json]]:
        if "matrix" not in whole.value:
            return [{}]
        try:
            rows = rows_of(whole.value["matrix"])
        except ValueError as exc:
            reader.findings.append(whole.finding(("matrix",), "test-file", str(exc)))
            return [{}]
        rest = {key: value for key, value in whole.value.items() if key != "matrix"}
        taken = [name for name in rows[0] if name in _SCENARIO_NAMES]
        unused = unused_names(rest, rows[0])
        uneven = next((row for row in rows if row.keys() != rows[0].keys()), None)
        if uneven is not None:
            names = ", ".join(sorted(rows[0].keys() ^ uneven.keys()))
            told = f"each row of a matrix has the same names, and {names} is not in all of them"
            reader.findings.append(whole.finding(("matrix",), "test-file", told))
        elif taken:
            reader.findings.append(
                whole.finding(("matrix",), "test-file", f"{taken[0]} is a scenario's own name; call it otherwise")
            )
        elif unused:
            told = f"no text of the case has {{{{{unused[0]}}}}}, so its values make no difference"
            reader.findings.append(whole.finding(("matrix",), "test-file", told))
        return rows

    def _one(self, whole: Derived, row: dict[str, Json], index: int, outer: Reader, name: str) -> Case | BrokenCase:
        value = {key: filled(item, row) for key, item in whole.value.items() if key != "matrix"} | {"name": name}
        view = Derived(whole, value, {(): ()})
        reader = Reader(view, self._sources.env)
        reader.findings += outer.findings
        case = None
        if not reader.findings:
            agent = self._agent(view, reader)
            if agent is not None:
                case = read_case(reader, self._path, agent, self._own_outputs(index, row))
        if case is None or any(finding.severity == "error" for finding in reader.findings):
            return self._broken(name, index, reader, _read_tags(value.get("tags")))
        return case._replace(entry=self._document.value["cases"][index]["name"])

    def _own_outputs(self, index: int, row: dict[str, Json]) -> Own:
        """Return for what the case itself gives outputs, which then must be asked for."""
        entry = self._document.value["cases"][index]
        own = entry.get("outputs")
        return Own(frozenset(filled(own, row)) if isinstance(own, dict) else frozenset(), "turns" in entry)

    def _broken(self, name: str, index: int, reader: Reader, tags: tuple[str, ...] | None) -> BrokenCase:
        errors = [finding for finding in reader.findings if finding.severity == "error"]
        error = InvalidFileError(errors, hint=HINT if errors[0].source == str(self._path) else None)
        place = self._document.position(("cases", index))
        return BrokenCase(
            self._path,
            name,
            *place,
            error,
            tags,
            self._document.value["cases"][index]["name"],
        )

    def _agent(self, view: Derived, reader: Reader) -> Agent | None:
        """Return the agent of a case: its own, else the file's; loaded once."""
        own = view.value.get("agent")
        name = own if own is not None else self._document.value.get("agent")
        at: Path = ("agent",)
        if not isinstance(name, str):
            reader.error(at if own is not None else (), "test-file", "agent is missing: the name of an agent file")
            return None
        if name not in self._agents:
            self._agents[name] = self._load(name)
        found = self._agents[name]
        if isinstance(found, list):
            reader.findings += found
            return None
        return found

    def _load(self, name: str) -> Agent | list[Finding]:
        try:
            return self._sources.load_agent(self._path.parent / name)
        except InvalidFileError as exc:
            return exc.findings
        except UsageError as exc:
            return [self._document.finding(("agent",), "test-file", exc.message)]


def _tags_of(layers: list[Layer]) -> tuple[str, ...] | None:
    """Return the tags of a case that could not be put together; None where it extends a case that is not known."""
    tagged = [layer.value["tags"] for layer in reversed(layers) if "tags" in layer.value]
    return _read_tags(tagged[0]) if tagged else ()


def _read_tags(value: Json) -> tuple[str, ...] | None:
    """Return tags as far as they can be read; None where they cannot, or still lack a matrix's values."""
    tags = [value] if isinstance(value, str) else value
    if tags is None:
        return ()
    if not isinstance(tags, list) or not all(isinstance(tag, str) and "{{" not in tag for tag in tags):
        return None
    return tuple(tags)
