"""Checks that take for ever end, on whichever thread they are asked for."""

from __future__ import annotations

import re
import signal
import threading

import pytest

from agentfn.document.bounded import Inbox, bounded


def endless() -> re.Match[str] | None:
    return re.search("^(a+)+$", "a" * 40 + "!")


def told(seconds: float) -> str:
    try:
        bounded(endless, seconds)
    except TimeoutError:
        return "ended"
    return "found"


def test_a_check_ends_on_the_main_thread() -> None:
    assert told(0.05) == "ended"


def test_the_checks_of_another_thread_end_while_the_main_thread_waits_for_it() -> None:
    with Inbox[str]() as inbox:
        threading.Thread(target=lambda: inbox.put(told(0.05))).start()
        assert inbox.get() == "ended"


def test_what_a_check_raises_is_raised_where_it_was_asked_for() -> None:
    def wrong() -> str:
        with pytest.raises(ZeroDivisionError):
            bounded(lambda: 1 / 0)
        return "raised"

    with Inbox[str]() as inbox:
        threading.Thread(target=lambda: inbox.put(wrong())).start()
        assert inbox.get() == "raised"


def test_nobody_waits_for_a_check_once_the_main_thread_went_on() -> None:
    answers: list[str] = []
    asker = threading.Thread(target=lambda: answers.append(told(60)))
    with Inbox[str]() as inbox:
        asker.start()
        while inbox._queue.empty():  # the check has come, and is never done
            pass
    asker.join(20)
    assert answers == ["ended"]


def test_a_timer_that_runs_already_runs_on() -> None:
    rang: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rang.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 30)
        assert bounded(lambda: 5) == 5
        assert 20 < signal.getitimer(signal.ITIMER_REAL)[0] <= 30
        assert not rang
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
