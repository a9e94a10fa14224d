"""A lock that dies with its holder: an operating-system lock on a file, never a row with a process id."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Self

#: How often a waiting process tries again, in seconds.
POLL_SECONDS = 0.05

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            # flock, not lockf: it belongs to the open file, so a child that inherits the descriptor holds it too.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FileLock:
    """An exclusive lock on a file, which is created where it is missing.

    A child process that is given `fileno()` keeps the lock held until it ends too (POSIX), so that a handler left behind
    by a killed parent still counts as running.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, timeout: float = 0.0) -> bool:
        """Take the lock, waiting at most `timeout` seconds; tell whether it is ours now."""
        descriptor = self._opened()
        deadline = time.monotonic() + timeout
        try:
            while not _try_lock(descriptor):
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return False
                time.sleep(POLL_SECONDS)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def holder(self) -> str:
        """Say which process has the lock's file open, such as ``process 71 (python3)``; where nobody knows, another."""
        for found in Path("/proc").glob("[0-9]*"):  # Linux alone
            with contextlib.suppress(OSError):
                opened = {link.readlink() for link in (found / "fd").iterdir()}
                if int(found.name) != os.getpid() and self.path.resolve() in opened:
                    return f"process {found.name} ({(found / 'comm').read_text().strip()})"
        return "another process"

    def _opened(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, flags, 0o600)

    def fileno(self) -> int:
        """Return the descriptor of the held lock."""
        if self._descriptor is None:
            msg = "the lock is not held"
            raise ValueError(msg)
        return self._descriptor

    def release(self) -> None:
        """Let go of the lock; the file stays, since removing it would let two processes hold "the" lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def discard(self) -> None:
        """Let go of the lock and remove its file, where whoever gets hold of it finds that there is nothing to do."""
        with contextlib.suppress(OSError):  # where an open file cannot be removed, it stays
            self.path.unlink()
        self.release()

    def __enter__(self) -> Self:
        """Return the lock, held or not: `acquire` says whether it could be had."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Let go."""
        self.release()
