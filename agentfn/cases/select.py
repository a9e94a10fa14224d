"""Chooses cases: by path, by name, by tag, by shard, by what failed the last time."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentfn.cases.case import SEPARATOR, BrokenCase, Case
from agentfn.cases.read import read_cases
from agentfn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agentfn.cases.read import Sources
    from agentfn.cases.results import CaseResult

AnyCase = Case | BrokenCase

#: How test files are called where a folder is named.
_PATTERN = re.compile(r"(test_.+|.+_test|tests?)\.ya?ml")
_FAILED_FILE = "last-failed.json"
_WORD = re.compile(r"\s*(\(|\)|\"[^\"]*\"|'[^']*'|[^\s()]+)")


class Selection(NamedTuple):
    """What was asked for; `shard` is (number from 1, how many)."""

    keyword: str | None = None
    tags: tuple[str, ...] = ()
    shard: tuple[int, int] | None = None
    last_failed: bool = False


def is_test_file(path: Path) -> bool:
    """Tell whether a file is called like a test file."""
    return _PATTERN.fullmatch(path.name) is not None


def collect(paths: Iterable[str], sources: Sources) -> list[AnyCase]:
    """Return the cases of files, of ``file::name``, and of all test files in folders, each once.

    Raises UsageError where a path is not there.
    """
    found: dict[str, AnyCase] = {}
    files: dict[Path, list[AnyCase]] = {}
    for text in paths:
        name, path = "", Path(text)
        if not path.exists() and SEPARATOR in text:
            before, _, name = text.partition(SEPARATOR)
            path = Path(before)
        if not path.exists():
            raise UsageError(f"there is no file or folder {text}", code="file_not_found")
        for file in _files(path):
            real = file.resolve()
            if real not in files:
                files[real] = read_cases(file, sources)
            chosen = [case for case in files[real] if not name or case.name in (name, "")]
            if not chosen:
                known = ", ".join(case.name for case in files[real])
                raise UsageError(f"{file} has no case {name}", code="case_not_found", hint=f"it has: {known}")
            found |= {case.id: case for case in chosen}
    return list(found.values())


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(file for file in path.rglob("*") if file.is_file() and is_test_file(file))
    return [file for file in inside if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def select(cases: Sequence[AnyCase], selection: Selection, home: Path) -> list[AnyCase]:
    """Return the cases that a selection leaves. A broken file, whose cases are unknown, is never left out by name."""
    chosen = list(cases)
    if selection.keyword is not None:
        holds = keyword(selection.keyword)
        chosen = [case for case in chosen if not case.name or case.tags is None or holds(_searched(case))]
    if selection.tags:
        wanted = set(selection.tags)
        chosen = [case for case in chosen if not case.name or case.tags is None or wanted & set(case.tags)]
    if selection.last_failed:
        failed = _read_failed(home)
        # A file that could not be read may have any cases, once it can; a matrix any rows.
        chosen = [case for case in chosen if {_key(case), _key(case, case.entry), _key(case, "")} & failed]
    if selection.shard is not None:
        number, of = selection.shard
        chosen = [case for case in chosen if shard_of(case, of) == number]
    return chosen


def shard_of(case: AnyCase, of: int) -> int:
    """Return the shard, from 1 on, that a case belongs to: by its file's name and its own, so other cases move nothing."""
    text = f"{case.file.name}{SEPARATOR}{case.name}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") % of + 1


def read_shard(text: str) -> tuple[int, int]:
    """Return ``2/5`` as numbers; raise UsageError where it is none."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text} is no part of a whole", hint="such as 2/5: the second of five")
    return int(match[1]), int(match[2])


def _searched(case: AnyCase) -> str:
    return " ".join([str(case.file), case.name, *(case.tags or ())]).casefold()


def keyword(expression: str) -> Callable[[str], bool]:
    """Return what tells whether a text holds words joined by and, or, not and brackets; raise UsageError.

    Words that follow each other are one: ``right sign`` is looked for as it is written.
    """
    words = [match[1] for match in _WORD.finditer(expression)]
    if not words:
        raise UsageError("-k is empty", hint="was a variable not set?")
    parser = _Keywords(words, expression)
    holds = parser.any_of()
    parser.require_end()
    return holds


class _Keywords:
    """Reads an expression of words."""

    def __init__(self, words: list[str], expression: str) -> None:
        self._words = words
        self._expression = expression

    def _peek(self) -> str:
        return self._words[0] if self._words else ""

    def _wrong(self) -> UsageError:
        return UsageError(f"-k {self._expression} cannot be read", hint='such as -k "weather and not slow"')

    def require_end(self) -> None:
        if self._words:
            raise self._wrong()

    def any_of(self) -> Callable[[str], bool]:
        parts = [self._all_of()]
        while self._peek() == "or":
            self._words.pop(0)
            parts.append(self._all_of())
        return lambda text: any(part(text) for part in parts)

    def _all_of(self) -> Callable[[str], bool]:
        parts = [self._one()]
        while self._peek() == "and":
            self._words.pop(0)
            parts.append(self._one())
        return lambda text: all(part(text) for part in parts)

    def _one(self) -> Callable[[str], bool]:
        if self._peek() == "not":
            self._words.pop(0)
            inner = self._one()
            return lambda text: not inner(text)
        if self._peek() == "(":
            self._words.pop(0)
            inside = self.any_of()
            if self._peek() != ")":
                raise self._wrong()
            self._words.pop(0)
            return inside
        words = []
        while self._words and self._peek() not in ("and", "or", "not", "(", ")"):
            words.append(self._words.pop(0).strip("\"'"))
        if not words:
            raise self._wrong()
        wanted = " ".join(words).casefold()
        return lambda text: wanted in text


def remember(results: Iterable[CaseResult], home: Path) -> None:
    """Write down which cases failed or could not run; what did not run stays as it was."""
    failed = _read_failed(home)
    ran = [result for result in results if result.verdict != "not_run"]
    for case in (result.case for result in ran):
        failed -= {_key(case, ""), _key(case, case.entry), _key(case)}
    bad = [result.case for result in ran if result.verdict != "passed"]
    failed |= {_key(case, case.entry if isinstance(case, BrokenCase) else None) for case in bad}
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / _FAILED_FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps(sorted(failed)), "utf-8")


def _read_failed(home: Path) -> set[str]:
    try:
        return set(json.loads((home / _FAILED_FILE).read_text("utf-8")))
    except (OSError, ValueError):
        return set()  # nothing failed yet, as far as anybody knows


def _key(case: AnyCase, name: str | None = None) -> str:
    return f"{case.file.resolve()}{SEPARATOR}{case.name if name is None else name}"
