"""Lets one attempt compute at a time where service, client and journal all run in this process."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentfn.turn.events import Event


class Baton:
    """Lets one attempt compute at a time, the others wait for a delay or a handler.

    Service, client and journal all compute in this one process: side by side they would mostly fight for Python's own
    lock, which takes longer than one after another. Each worker has its own `Hold`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def hold(self) -> Hold:
        """Return a worker's hold, not held yet."""
        return Hold(self._lock)


class Hold:
    """One worker's hold of the baton; used on its thread alone."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._is_held = False
        self._handlers = 0

    def take(self) -> None:
        """Wait for the baton."""
        if not self._is_held:
            self._lock.acquire()
            self._is_held = True

    def give(self) -> None:
        """Let another worker have it."""
        if self._is_held:
            self._is_held = False
            self._lock.release()

    def sleep(self, seconds: float) -> None:
        """Wait for a time without it."""
        if seconds > 0:
            self.give()
            time.sleep(seconds)
            self.take()

    def heard(self, event: Event) -> None:
        """Do without it while handlers run."""
        if event.type == "call.started":
            self._handlers += 1
            self.give()
        elif event.type == "call.finished" and self._handlers:
            self._handlers -= 1
            if not self._handlers:
                self.take()

    def end(self) -> None:
        """Let go, however the attempt ended."""
        self._handlers = 0
        self.give()
