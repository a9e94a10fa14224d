"""How long to wait before a request is sent again, and when to stop: bounded in attempts and in time."""

from __future__ import annotations

import email.utils
import math
import random
import time
from typing import TYPE_CHECKING

from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Requests after the first.
MOST_RETRIES = 4
#: Seconds of waiting in all; a service that asks for more is not waited for, and the message names the time.
MOST_SECONDS = 60.0

_FIRST, _FACTOR, _LARGEST = 0.5, 2.0, 8.0


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the service asks to wait, or None where it asks for nothing that can be understood.

    `headers` have lower-case names; `now` is unix seconds. A date in the past means "at once".
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _number(headers.get(name))
        if milliseconds is not None and milliseconds >= 0:
            return milliseconds / 1000
    text = headers.get("retry-after")
    if text is None:
        return None
    seconds = _number(text)
    if seconds is not None:
        return seconds if seconds >= 0 else None
    try:
        date = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, date.timestamp() - now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


class Patience:
    """The retries of one operation. `told` hears of each; `sleep` and `clock` are the machine's unless a test says so."""

    def __init__(
        self,
        told: Callable[[str, float], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._told = told
        self._sleep = sleep
        self._clock = clock
        self._retries = 0
        self._waited = 0.0

    def wait(self, reason: str, headers: Mapping[str, str], last: Exception) -> None:
        """Wait before the next attempt; raise `last` where there is none left."""
        asked = asked_wait(headers, self._clock())
        if self._retries >= MOST_RETRIES:
            raise last
        if asked is not None and self._waited + asked > MOST_SECONDS:
            message = f"{reason}; the service asks to wait {asked:g} s, which is longer than agentfn waits"
            raise ServiceError(message, code="throttled", hint=f"try again in {asked:g} s")
        # Jitter goes upwards only: earlier than asked would be refused again.
        seconds = asked if asked is not None else min(_LARGEST, _FIRST * _FACTOR**self._retries)
        seconds *= 1 + random.random() * 0.1
        if self._waited + seconds > MOST_SECONDS * 1.1:
            raise last
        self._retries += 1
        self._waited += seconds
        self._told(reason, seconds)
        self._sleep(seconds)
