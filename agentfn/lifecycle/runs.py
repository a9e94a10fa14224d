"""The folder of one run on the embedded service: its stores lie there, and go with it.

What a stopped process left behind is recognised by its lock, which nobody holds.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from agentfn.locks import FileLock

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = "runs"


class RunFolder:
    """A folder that lives as long as its run; `discard` removes it."""

    def __init__(self, home: Path, run: str) -> None:
        self.path = home / _FOLDER / run
        self._lock = _lock_of(self.path)
        self._lock.acquire()
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def discard(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.discard()


def left_runs(home: Path) -> list[str]:
    """Return the runs whose process is gone and whose folder is still there."""
    folder = home / _FOLDER
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(folder.iterdir()):
        lock = _lock_of(path)
        if path.is_dir() and lock.acquire():
            lock.release()
            found.append(path.name)
    return found


def remove_left_run(home: Path, run: str) -> bool:
    """Remove what a stopped run left; tell whether there was anything, and nobody at work in it."""
    path = home / _FOLDER / run
    lock = _lock_of(path)
    if not path.is_dir() or not lock.acquire():
        return False
    shutil.rmtree(path, ignore_errors=True)
    lock.discard()
    return True


def _lock_of(path: Path) -> FileLock:
    return FileLock(path.with_name(path.name + ".lock"))
