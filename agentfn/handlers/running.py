"""What runs for a call right now, so that an interrupted agentfn can end it from another thread."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_stops: dict[object, Callable[[], None]] = {}
_lock = threading.Lock()


@contextlib.contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """Let `stop_running` call `stop` while the block runs."""
    key = object()
    with _lock:
        _stops[key] = stop
    try:
        yield
    finally:
        with _lock:
            _stops.pop(key)


def stop_running() -> None:
    """End everything that runs for a call now, side by side; called when agentfn itself is interrupted."""
    with _lock:
        stops = list(_stops.values())
    threads = [threading.Thread(target=stop, daemon=True) for stop in stops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
