"""Puts a case together from the file's defaults, the case it extends, its own keys, and a row of its matrix."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from agentfn.document.derived import Derived

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentfn.document.read import Document, Path
    from agentfn.model import Json

#: Keys whose members are taken one by one from each layer; of every other key the nearest layer's value is taken whole.
MERGED = ("outputs", "expect", "limits")
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")


class Layer(NamedTuple):
    """A mapping of case keys and where it stands; later layers win."""

    value: Mapping[str, Json]
    path: Path


def composed(document: Document, layers: Sequence[Layer]) -> Derived:
    """Return the case that these layers make, whose parts still know where they stand. The last layer is the case's own."""
    value: dict[str, Json] = {}
    origins: dict[Path, Path] = {(): layers[-1].path}
    for layer in layers:
        for key, given in layer.value.items():
            if key in MERGED and isinstance(given, dict) and isinstance(value.get(key), dict):
                value[key] = {**value[key], **given}
                for inner in given:
                    origins[key, inner] = (*layer.path, key, inner)
            else:
                value[key] = given
                origins = {path: origin for path, origin in origins.items() if path[:1] != (key,)}
                origins[(key,)] = (*layer.path, key)
    return Derived(document, value, origins)


def rows_of(matrix: Json) -> list[dict[str, Json]]:
    """Return the rows of a matrix: every combination of a mapping's lists, or a list of rows as they are.

    Raises ValueError in words where it is neither.
    """
    if isinstance(matrix, list):
        if not matrix or not all(isinstance(row, dict) and row for row in matrix):
            msg = "a matrix is a mapping of names to lists of values, or a list of mappings"
            raise ValueError(msg)
        return list(matrix)
    if not isinstance(matrix, dict) or not matrix:
        msg = "a matrix is a mapping of names to lists of values, or a list of mappings"
        raise ValueError(msg)
    for name, values in matrix.items():
        if not isinstance(values, list) or not values:
            msg = f"{name} of a matrix is a list of values"
            raise ValueError(msg)
    return [dict(zip(matrix, values, strict=True)) for values in product(*matrix.values())]


def label(row: Mapping[str, Json]) -> str:
    """Return the row as the end of a case's name."""
    return "[" + ", ".join(value if isinstance(value, str) else _plain(value) for value in row.values()) + "]"


def filled(value: Json, row: Mapping[str, Json]) -> Json:
    """Return a value with ``{{name}}`` replaced where the row has that name; a text that is nothing else keeps the type."""
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value.strip())
        if whole and whole[1] in row:
            return row[whole[1]]
        return _PLACE.sub(lambda match: _plain(row[match[1]]) if match[1] in row else match[0], value)
    if isinstance(value, list):
        return [filled(item, row) for item in value]
    if isinstance(value, dict):
        return {str(_key(key, row)): filled(item, row) for key, item in value.items()}
    return value


def _key(key: str, row: Mapping[str, Json]) -> str:
    return _PLACE.sub(lambda match: _plain(row[match[1]]) if match[1] in row else match[0], key)


def _plain(value: Json) -> str:
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def unused_names(value: Json, row: Mapping[str, Json]) -> list[str]:
    """Return the names of a row that no text of the case uses: every row would be the same case."""
    used = set(_names(value))
    return [name for name in row if name not in used]


def _names(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[1] for match in _PLACE.finditer(value))
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _names(key)
            yield from _names(item)
