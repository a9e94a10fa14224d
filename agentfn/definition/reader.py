"""Walks a document's mappings while an agent file is read: collects every problem instead of stopping at the first."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentfn.document.read import Document, Path
    from agentfn.errors import Finding
    from agentfn.model import Json


class Reader:
    """One agent file under examination: its document, the environment, and what was found so far."""

    def __init__(self, document: Document, env: Mapping[str, str]) -> None:
        self.document = document
        self.env = env
        self.findings: list[Finding] = list(document.warnings)

    def error(self, path: Path, rule: str, message: str) -> None:
        """Note an error at a value."""
        self.findings.append(self.document.finding(path, rule, message))

    def key_error(self, path: Path, rule: str, message: str) -> None:
        """Note an error at a key."""
        self.findings.append(self.document.key_finding(path, rule, message))

    def warn(self, path: Path, rule: str, message: str) -> None:
        """Note a warning at a value."""
        self.findings.append(self.document.finding(path, rule, message, "warning"))

    def unknown_keys(self, value: Mapping[str, Json], known: Iterable[str], path: Path, what: str) -> None:
        """Note every key that is not known, with the one that may have been meant; ``x-…`` is for the author."""
        names = list(known)
        for key in value:
            if key in names or key.startswith("x-"):
                continue
            close = get_close_matches(key, names, n=1)
            meant = f" (did you mean {close[0]}?)" if close else f"; known: {', '.join(names)}"
            self.key_error((*path, key), "unknown-key", f"{what} has no key {key}{meant}")

    def text(self, value: Mapping[str, Json], key: str, path: Path, *, expand: bool = False) -> str | None:
        """Return a text, or None where it is absent or no text; a plain number stands as it was written."""
        found = value.get(key)
        place = (*path, key)
        if found is None and self.document.text(place) is None and key not in value:
            return None
        as_written = self.document.text(place)
        if not isinstance(found, str):
            if as_written and not isinstance(found, bool) and found is not None:
                found = as_written
            else:
                self.error(place, "type", f"{key} must be text, got {_what(found)}")
                return None
        return self.expanded(found, place) if expand else found

    def expanded(self, text: str, path: Path) -> str:
        """Return the text with ``${VAR}`` and ``${VAR:-default}`` replaced; an unset one without default is an error."""
        if "${" not in text:
            return text
        import re

        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            found = self.env.get(name)
            if found is None or (found == "" and default is not None):
                if default is None:
                    self.error(path, "variable", f"${{{name}}} is not set; give a default: ${{{name}:-…}}")
                    return ""
                return default
            return found

        return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}", value, text)

    def expanded_deep(self, value: Json, path: Path) -> Json:
        """Return a value with every text in it expanded."""
        if isinstance(value, str):
            return self.expanded(value, path)
        if isinstance(value, list):
            return [self.expanded_deep(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.expanded_deep(item, (*path, key)) for key, item in value.items()}
        return value

    def flag(self, value: Mapping[str, Json], key: str, path: Path) -> bool | None:
        """Return a boolean, or None where it is absent or none."""
        found = value.get(key)
        if found is None or isinstance(found, bool):
            return found
        self.error((*path, key), "type", f"{key} must be true or false, got {_what(found)}")
        return None


def _what(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None:
        return "a mapping; it looks like a template, quote it"
    names = {dict: "a mapping", list: "a list", bool: "a truth value", type(None): "nothing"}
    return names.get(type(value), f"{value!r}")
