"""All the ways in which a service says "wait", and when waiting ends."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.backends.retry import MOST_RETRIES, MOST_SECONDS, Patience, asked_wait
from agentfn.errors import ServiceError

NOW = parsedate_to_datetime("Wed, 21 Oct 2026 07:28:00 GMT").timestamp()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "2"}, 2),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:05 GMT"}, 5),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, 0),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1),
        ({}, None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers, NOW) == seconds


class Waits:
    """Takes the place of sleeping, and of whoever hears of a retry."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.told: list[str] = []

    def patience(self) -> Patience:
        return Patience(lambda reason, _: self.told.append(reason), sleep=self.slept.append, clock=lambda: NOW)


def test_what_is_asked_for_is_waited_with_jitter_upwards_only() -> None:
    waits = Waits()
    waits.patience().wait("busy", {"retry-after": "2"}, ValueError())
    assert 2 <= waits.slept[0] <= 2.2
    assert waits.told == ["busy"]


def test_without_a_word_from_the_service_the_pauses_grow() -> None:
    waits, patience = Waits(), None
    patience = waits.patience()
    for _ in range(3):
        patience.wait("busy", {}, ValueError())
    assert waits.slept[0] < waits.slept[1] < waits.slept[2]


def test_attempts_and_time_are_bounded() -> None:
    waits = Waits()
    patience = waits.patience()
    last = ServiceError("down")
    for _ in range(MOST_RETRIES):
        patience.wait("busy", {"retry-after": "0"}, last)
    with pytest.raises(ServiceError, match="down"):
        patience.wait("busy", {"retry-after": "0"}, last)
    assert sum(waits.slept) <= MOST_SECONDS * 1.1


def test_a_wait_beyond_the_budget_is_refused_with_its_length() -> None:
    with pytest.raises(ServiceError, match="86400 s"):
        Waits().patience().wait("busy", {"retry-after": "86400"}, ValueError())


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_any_header_is_survived_and_never_asks_for_less_than_nothing(text: str, now: float) -> None:
    for name in ("retry-after", "retry-after-ms"):
        seconds = asked_wait({name: text}, now)
        assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    "text", ["Wed, 21 Oct 2026 07:28:05 -0000", "21 Oct 2026 07:28:05", "Wed, 21 Oct 2026 09:28:05 +0200"]
)
def test_a_date_without_a_zone_is_greenwichs(text: str) -> None:
    assert asked_wait({"retry-after": text}, NOW) == 5


@pytest.mark.parametrize("text", ["Wed, 21 Oct 99999 07:28:05 GMT", "Wed, 99 Oct 2026 07:28:05 GMT", "1e999", "inf"])
def test_what_is_no_time_asks_for_nothing(text: str) -> None:
    assert asked_wait({"retry-after": text}, NOW) is None
