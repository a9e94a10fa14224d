"""Ends a check that takes for ever: a pattern of a schema's author and a value of a model can be chosen so."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How long one value may be checked, in seconds; what is not pathological takes milliseconds.
MOST_SECONDS = 2.0


@contextlib.contextmanager
def bounded(seconds: float = MOST_SECONDS) -> Iterator[None]:
    """Raise TimeoutError in the block after so many seconds.

    Python's `re` looks for signals while it backtracks. Where there is no such timer (Windows, other threads), nothing is
    bounded.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        del number, frame
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
