"""A document made out of parts of another one, which still knows where each of them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentfn.document.read import Document, Path, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.model import Json


class Derived(Document):
    """A value put together from a document; `origins` says where the parts come from.

    It maps the path of a part in `value` to its path in `base`; everything below a part lies below its origin. The root
    must be among them.
    """

    def __init__(self, base: Document, value: Json, origins: Mapping[Path, Path]) -> None:
        super().__init__(base.source, value, {}, {})
        self._base = base
        self._origins = origins

    def position(self, path: Path) -> Place:
        """Return where the value at `path` starts."""
        return self._base.position(self._of_base(path))

    def key_position(self, path: Path) -> Place:
        """Return where the key of the value at `path` starts."""
        return self._base.key_position(self._of_base(path))

    def text(self, path: Path) -> str | None:
        """Return a plain scalar as it was written."""
        return self._base.text(self._of_base(path))

    def _of_base(self, path: Path) -> Path:
        for length in range(len(path), -1, -1):
            found = self._origins.get(path[:length])
            if found is not None:
                return found + path[length:]
        return path


def part(document: Document, path: Path) -> Derived:
    """Return the value at `path` as a document of its own; a path that is not there is an error of the caller."""
    value = document.value
    for key in path:
        value = value[key]
    return Derived(document, value, {(): path})
