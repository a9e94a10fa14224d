"""Assigns expected to actual calls so that as many as possible fit: optimal, since the first that fits may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def best_matching(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return expected → actual with as many pairs as there can be, in any order (augmenting paths).

    Earlier rows are never given up for later ones.
    """
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column, good in enumerate(fits[row]):
            if good and column not in tried:
                tried.add(column)
                if column not in owner or place(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    for row in range(len(fits)):
        place(row, set())
    return {row: column for column, row in owner.items()}


def ordered_matching(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Return expected → actual with as many pairs as there can be, both in their given order."""
    rows, columns = len(fits), len(fits[0]) if fits else 0
    # most[i][j]: pairs among the rows from i and the columns from j on.
    most = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            most[i][j] = max(most[i + 1][j], most[i][j + 1], most[i + 1][j + 1] + 1 if fits[i][j] else 0)
    pairs, i, j = {}, 0, 0
    while i < rows and j < columns:
        if fits[i][j] and most[i][j] == most[i + 1][j + 1] + 1:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif most[i + 1][j] >= most[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs
