"""Assigns expected to actual calls so that as many as possible fit: optimal, since the first that fits may be wrong.

Rows are what is expected, columns the actual calls in their order. `Block`s are rows that stand together: a single one, or
several that are wanted in one step, in whatever order. `steps` has each column's step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Fits = Sequence[Sequence[bool]]
    Steps = Sequence[tuple[int, int]]

#: Ways to spread blocks over steps that are tried: finding the best is hard in general, and easy for what people write.
MOST_WAYS = 50_000


class Block(NamedTuple):
    """Rows that stand together. `least` and `most` say how often a single row comes one after the other; None: no end."""

    rows: tuple[int, ...]
    least: int = 1
    most: int | None = 1


class TooManyWaysError(Exception):
    """More ways would have to be tried than can be."""


def best_matching(fits: Fits) -> dict[int, int]:
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


def grouped_matching(blocks: Sequence[Block], fits: Fits, steps: Steps) -> dict[int, int]:
    """Return expected → actual with as many pairs as there can be, each block in one step, in any order otherwise.

    Raises TooManyWaysError.
    """
    groups = sorted((block for block in blocks if len(block.rows) > 1), key=lambda block: _key(block, fits))
    each = sorted(set(steps))
    left = MOST_WAYS
    found: dict[int, int] = {}

    def narrowed(where: dict[int, tuple[int, int] | None]) -> dict[int, int]:
        """Match where groups have steps (None: left out), those first; a row without an entry is a single one."""
        rows = sorted(range(len(fits)), key=lambda row: row not in where)
        pairs = best_matching(
            [
                [good and where.get(row, step) == step for good, step in zip(fits[row], steps, strict=True)]
                for row in rows
            ]
        )
        return {rows[at]: column for at, column in pairs.items()}

    def spread(number: int, where: dict[int, tuple[int, int] | None], last: int) -> bool:
        nonlocal left, found
        if not left:
            raise TooManyWaysError
        left -= 1
        if len(narrowed(where)) <= len(found):
            return False  # not even where the others might stand anywhere
        tried = narrowed({**where, **{row: None for group in groups[number:] for row in group.rows}})
        if any(step is not None and row not in tried for row, step in where.items()):
            return False  # these groups cannot all be there
        if len(tried) > len(found):
            found = tried
        if number == len(groups):
            return len(found) == len(fits)
        group = groups[number]
        # Of groups that are alike only the order in which they stand is tried.
        alike = number > 0 and _key(groups[number - 1], fits) == _key(group, fits)
        for at in range(last if alike else 0, len(each)):
            if spread(number + 1, {**where, **dict.fromkeys(group.rows, each[at])}, at):
                return True
        return spread(number + 1, {**where, **dict.fromkeys(group.rows, None)}, len(each))

    spread(0, {}, 0)
    return found


def _key(block: Block, fits: Fits) -> list[list[bool]]:
    return [list(fits[row]) for row in block.rows]


def ordered_matching(blocks: Sequence[Block], fits: Fits, steps: Steps) -> dict[int, int]:
    """Return expected → actual with as many pairs as there can be, in their given order; a block's rows all or none."""
    firsts = [_firsts(block, fits, steps) for block in blocks]
    # most[i][j]: pairs among the blocks from i and the columns from j on.
    most = [[0] * (len(steps) + 1) for _ in range(len(blocks) + 1)]
    for i in range(len(blocks) - 1, -1, -1):
        for j in range(len(steps), -1, -1):
            pairs = firsts[i][j]
            taken = len(pairs) + most[i + 1][max(pairs.values()) + 1] if pairs else 0
            most[i][j] = max(most[i + 1][j], taken)
    found: dict[int, int] = {}
    j = 0
    for i in range(len(blocks)):
        pairs = firsts[i][j]
        if pairs and len(pairs) + most[i + 1][max(pairs.values()) + 1] == most[i][j]:
            found |= pairs
            j = max(pairs.values()) + 1
    return found


def _firsts(block: Block, fits: Fits, steps: Steps) -> list[dict[int, int] | None]:
    """Return for each column where the block fits from there on so that it ends as early as it can; None for nowhere."""
    found: list[dict[int, int] | None] = [None] * (len(steps) + 1)
    for begin in range(len(steps) - 1, -1, -1):
        found[begin] = found[begin + 1]
        if not any(fits[row][begin] for row in block.rows):
            continue
        if len(block.rows) == 1:
            found[begin] = {block.rows[0]: begin}
            continue
        ends = range(begin + len(block.rows), len(steps) + 1)
        here = (_within(block.rows, fits, steps, begin, end) for end in ends if steps[end - 1] == steps[begin])
        found[begin] = next((pairs for pairs in here if pairs is not None), found[begin])
    return found


def _within(rows: tuple[int, ...], fits: Fits, steps: Steps, begin: int, end: int) -> dict[int, int] | None:
    """Match all rows to columns of the last column's step within [begin, end), or return None."""
    columns = [column for column in range(begin, end) if steps[column] == steps[end - 1]]
    if len(columns) < len(rows):
        return None
    pairs = best_matching([[fits[row][column] for column in columns] for row in rows])
    return {rows[row]: columns[at] for row, at in pairs.items()} if len(pairs) == len(rows) else None


def follow_exactly(blocks: Sequence[Block], fits: Fits, steps: Steps) -> bool:
    """Tell whether all columns are the blocks one after another, each as often as it may be, and nothing else."""
    reached = {0}
    for block in blocks:
        reached = {end for begin in reached for end in _ends(block, fits, steps, begin)}
    return len(steps) in reached


def _ends(block: Block, fits: Fits, steps: Steps, begin: int) -> Iterator[int]:
    """Yield where a block may end that begins at a column."""
    if len(block.rows) > 1:
        end = begin + len(block.rows)
        if end <= len(steps) and _within(block.rows, fits, steps, begin, end) is not None:
            yield end
        return
    for end in range(begin, len(steps) + 1):
        if block.most is not None and end - begin > block.most:
            return
        if end - begin >= block.least:
            yield end
        if end == len(steps) or not fits[block.rows[0]][end]:
            return
