"""Ends a check that takes for ever: a pattern of a schema's author and a value of a model can be chosen so.

Python's `re` looks for signals while it backtracks and lets nothing else run meanwhile, so only the main thread can end
it. Other threads let it do their checks while it waits for them at an `Inbox`.
"""

from __future__ import annotations

import queue
import signal
import sys
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

#: How long one value may be checked, in seconds; what is not pathological takes milliseconds.
MOST_SECONDS = 2.0

Found = TypeVar("Found")
Item = TypeVar("Item")


class _Check(Generic[Found]):
    """A check that another thread waits for."""

    def __init__(self, check: Callable[[], Found], seconds: float) -> None:
        self._check = check
        self._seconds = seconds
        self.found: Future[Found] = Future()

    def run(self) -> None:
        """Do it here, and give the other thread what came of it; what is no error of the check is raised here too."""
        try:
            self.found.set_result(_timed(self._check, self._seconds))
        except Exception as exc:  # noqa: BLE001  # it belongs to the thread that waits
            self.found.set_exception(exc)
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Do it never: nobody needs it any more."""
        self.found.set_exception(TimeoutError())


class Inbox(Generic[Item]):
    """Where a thread waits for items of others. As a context manager it lets the main thread do their checks meanwhile."""

    _lock = threading.Lock()
    #: The one at which the main thread waits now.
    _of_main: Inbox[Any] | None = None

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Item | _Check[Any]] = queue.SimpleQueue()
        self._before: Inbox[Any] | None = None

    def put(self, item: Item) -> None:
        """Give the waiting thread something."""
        self._queue.put(item)

    def get(self) -> Item:
        """Wait for the next item."""
        while isinstance(heard := self._queue.get(), _Check):
            heard.run()
        return heard

    def __enter__(self) -> Inbox[Item]:
        """Take checks of others, where this is the main thread."""
        if threading.current_thread() is threading.main_thread():
            with Inbox._lock:
                self._before, Inbox._of_main = Inbox._of_main, self
        return self

    def __exit__(self, *exc: object) -> None:
        """Take no more checks, and let nobody wait for one."""
        if threading.current_thread() is not threading.main_thread():
            return
        with Inbox._lock:
            Inbox._of_main = self._before
        while not self._queue.empty():
            if isinstance(heard := self._queue.get(), _Check):
                heard.drop()

    @classmethod
    def asked(cls, check: Callable[[], Found], seconds: float) -> Future[Found] | None:
        """Hand a check to the main thread; None where it waits at no inbox."""
        asked = _Check(check, seconds)
        with cls._lock:
            if cls._of_main is None:
                return None
            cls._of_main._queue.put(asked)  # noqa: SLF001  # another of this class
        return asked.found


def bounded(check: Callable[[], Found], seconds: float = MOST_SECONDS) -> Found:
    """Return what a check finds; raise TimeoutError where that takes longer than so many seconds.

    On Windows there is no such timer, and while the main thread waits at no inbox nothing bounds the others.
    """
    if sys.platform == "win32":
        return check()
    if threading.current_thread() is threading.main_thread():
        return _timed(check, seconds)
    found = Inbox.asked(check, seconds)
    return check() if found is None else found.result()


def _timed(check: Callable[[], Found], seconds: float) -> Found:
    def end(number: int, frame: object) -> None:
        del number, frame
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    begun = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return check()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody else's timer, such as that of a test runner
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left - (time.monotonic() - begun)), interval)
