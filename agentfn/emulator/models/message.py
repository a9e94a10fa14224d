"""What a user's message says, as far as rules can tell: words, numbers, dates, addresses, quoted text."""

from __future__ import annotations

import re
from typing import Any

_STOP = frozenset(
    "a about an and any are as at be by can could do does e eg for from g get give given has have how i if in into is it"  # noqa: SIM905  # one word a line says no more
    " its like may me my no not of on one or other our please say should show so some such tell than that the their them"
    " then there these this to up use was we what when where which who will with would you your".split()
)
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_DATE_TIME = re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?")
_ADDRESS = re.compile(r"https?://[^\s\"'<>]+[^\s\"'<>.,;:!?)]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'(?!\w)|\u201c([^\u201d]+)\u201d|\u00ab\s*([^\u00bb]+?)\s*\u00bb")
_NUMBER = re.compile(r"(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)")
_EXAMPLES_START = re.compile(r"(?i)\b(?:like|such as|for example|e\.g\.|or)\s")
_FORMATS = {
    "date": _DATE,
    "date-time": _DATE_TIME,
    "email": re.compile(r"[^@\s]+@[^@\s]+"),
    "uri": re.compile(r"\w+://.+"),
}


def words(text: str) -> list[str]:
    """Return the words of a text that carry meaning, in lower case."""
    return [word for word in (found.casefold() for found in _WORD.findall(text)) if word not in _STOP]


def split_name(name: str) -> str:
    """Return the words of a name such as get_favorite_city or getFavoriteCity."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name)


def has_format(value: Any, form: Any) -> bool:
    """Tell whether a text has the format that its schema names, for those that a message can give."""
    return not isinstance(value, str) or form not in _FORMATS or _FORMATS[form].fullmatch(value) is not None


class Message:
    """The user's text, and what of it is not taken yet: two parameters do not get the same number."""

    def __init__(self, text: str) -> None:
        self.text = text
        times = [match.group() for match in _DATE_TIME.finditer(text)]
        self.dates = list(dict.fromkeys([*times, *_DATE.findall(text)]))
        self.addresses: list[str] = _ADDRESS.findall(text)
        self.quoted = [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]
        bare = _ADDRESS.sub(" ", _DATE.sub(" ", _DATE_TIME.sub(" ", text)))
        self.numbers = [float(n) if "." in n else int(n) for n in _NUMBER.findall(bare)]

    def holds(self, text: str) -> bool:
        """Tell whether a text stands in the message as whole words, whatever the case."""
        return _holds(self.text, text)

    def take(self, value: Any) -> None:
        """Note that a value was used."""
        for taken in value if isinstance(value, list) else [value]:
            pools: tuple[list[Any], ...] = (self.numbers, self.dates, self.addresses, self.quoted)
            for pool in pools:
                if taken in pool and not isinstance(taken, bool):
                    pool.remove(taken)

    def shared_with(self, description: str, own: set[str]) -> list[str]:
        """Return what message and description both say, the best first.

        First what the description gives as an example ("like …", "e.g. …", "or …"), then what the message writes with a
        capital, then the longer text: "San Francisco, CA" rather than "San". `own` are words that say nothing here.
        """
        start = _EXAMPLES_START.search(description)
        examples = description[start.end() :] if start else ""
        found = [run for run in self._runs(own) if _holds(description, run)]
        return sorted(
            dict.fromkeys(found), key=lambda run: (not _holds(examples, run), not run[0].isupper(), -len(run))
        )

    def _runs(self, own: set[str]) -> list[str]:
        """Return every run of words that carry meaning, as the message writes it."""
        runs: list[str] = []
        row: list[re.Match[str]] = []
        for match in _WORD.finditer(self.text):
            if match.group().casefold() in _STOP | own:
                row = []
                continue
            row.append(match)
            runs += [self.text[first.start() : match.end()] for first in row]
        return runs


def _holds(text: str, part: str) -> bool:
    return bool(part) and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None
