"""How long to wait before a request is sent again, and when to stop: bounded in attempts and in time."""

from __future__ import annotations

import email.utils
import math
import random
import time
from datetime import UTC
from typing import TYPE_CHECKING

from agentfn.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Requests after the first.
MOST_RETRIES = 4
#: Seconds of waiting in all, jitter aside; a service that asks for more is not waited for, and the message names the time.
MOST_SECONDS = 60.0
#: Jitter goes upwards only, by this much at most: earlier than asked would be refused again.
JITTER = 0.1

_FIRST, _FACTOR, _LARGEST = 0.5, 2.0, 8.0


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the service asks to wait, or None where it asks for nothing that can be understood.

    `headers` have lower-case names; `now` is unix seconds. A date in the past means "at once".
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _number(headers.get(name))
        if milliseconds is not None and milliseconds >= 0:
            return milliseconds / 1000
    seconds = _number(headers.get("retry-after"))
    if seconds is not None:
        return seconds if seconds >= 0 else None
    date = http_date(headers.get("retry-after"))
    return None if date is None else max(0.0, date - now)


def http_date(text: str | None) -> float | None:
    """Return the unix seconds of a header's date, or None where there is none that can be understood."""
    try:
        date = email.utils.parsedate_to_datetime(text or "")
        # Headers give Greenwich's time, also where they leave that open.
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


class Patience:
    """The retries of one operation. `told` hears of each; `sleep`, `clock` and `chance` are the machine's unless given."""

    def __init__(
        self,
        told: Callable[[str, float], None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._told = told
        self._sleep = sleep
        self._clock = clock
        self._chance = chance
        self._retries = 0
        self._waited = 0.0

    def wait(
        self,
        reason: str,
        headers: Mapping[str, str],
        last: Exception,
        *,
        most: int | None = MOST_RETRIES,
        status: int | None = None,
    ) -> None:
        """Wait before the next attempt; raise `last` where there is none left.

        `most` None bounds by time alone. `status` is the HTTP status of a refusal, which proves that nothing was done.
        """
        if most is not None and self._retries >= most:
            raise last
        asked = asked_wait(headers, self._clock())
        if asked is not None and self._waited + asked > MOST_SECONDS:
            message = f"{reason}; the service asks to wait {asked:.10g} s, which is longer than agentfn waits"
            hint = f"try again in {math.ceil(asked)} s"
            raise ServiceError(message, code="throttled", hint=hint, status=status) from last
        due = asked if asked is not None else min(_LARGEST, _FIRST * _FACTOR**self._retries)
        if self._waited + due > MOST_SECONDS:
            raise last
        self._retries += 1
        self._waited += due
        seconds = due * (1 + self._chance() * JITTER)
        self._told(reason, seconds)
        self._sleep(seconds)
