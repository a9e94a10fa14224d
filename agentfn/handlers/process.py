"""Runs one program to its end, or to the end of its time; never through a shell.

Each program is the leader of a session of its own: it has no terminal to ask on, a Ctrl-C reaches agentfn alone, and all
that it started can be ended with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from agentfn.handlers.running import stoppable
from agentfn.handlers.windows_job import close_job, open_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: How long a program that is told to end may take before it is killed, in seconds.
GRACE_SECONDS = 2.0

#: How long a program's output is waited for after the program itself has ended, in seconds: something it left behind
#: holds its stdout open and may never close it.
LINGER_SECONDS = 1.0

#: How often a running program is looked at, in seconds.
LOOK_SECONDS = 0.1

#: The most bytes that one program may write; no service takes a tenth of it, and agentfn has to hold it in memory.
MOST_BYTES = 128 * 1024 * 1024


class Finished(NamedTuple):
    """How a program ended. `status` is its exit status, negative for a signal (POSIX), None where it was ended by us.

    `flooded` says that it was ended for writing too much, and not for taking too long.
    """

    status: int | None
    stdout: bytes
    stderr: bytes
    flooded: bool = False


def run_program(
    command: Sequence[str],
    *,
    stdin: bytes,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    inherit: tuple[int, ...] = (),
) -> Finished:
    """Run a program; raise OSError where it cannot be started. `inherit` are descriptors it keeps open."""
    with (
        subprocess.Popen(  # noqa: S603  # an argument list of the user's own definition; arguments never reach it
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            pass_fds=inherit if os.name == "posix" else (),
            start_new_session=os.name == "posix",
            creationflags=0 if os.name == "posix" else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        ) as process,
        stoppable(lambda: _end(process)),
    ):
        # On POSIX the session is the group that is ended whole.
        job = open_job(process) if os.name == "nt" else None
        try:
            return _communicate(process, stdin, timeout)
        except BaseException:
            _end(process)
            raise
        finally:
            if job is not None:
                close_job(job)


def _communicate(process: subprocess.Popen[bytes], stdin: bytes, timeout: float) -> Finished:
    last = time.monotonic() + timeout
    given: bytes | None = stdin
    gone_at: float | None = None
    while True:
        now = time.monotonic()
        try:
            stdout, stderr = process.communicate(given, min(LOOK_SECONDS, max(0.0, last - now)))
            return Finished(process.returncode, stdout, stderr)
        except subprocess.TimeoutExpired as late:
            given, now = None, time.monotonic()
            flooded = len(late.stdout or b"") + len(late.stderr or b"") > MOST_BYTES
            if gone_at is None and process.poll() is not None:
                gone_at = now
            lingered = gone_at is not None and now - gone_at >= LINGER_SECONDS
            if flooded or lingered or now >= last:
                return _cut_off(process, late, flooded=flooded)


def _cut_off(process: subprocess.Popen[bytes], late: subprocess.TimeoutExpired, *, flooded: bool) -> Finished:
    """End a program whose output has not ended; whatever it did write is kept."""
    status = process.poll()
    _end(process)
    stdout, stderr = late.stdout or b"", late.stderr or b""
    if not flooded:
        # Whoever held the pipes was in the group and is gone, or has left the group and is not waited for.
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError, OSError):
            stdout, stderr = process.communicate(timeout=LINGER_SECONDS)
    return Finished(None if flooded else status, stdout, stderr, flooded)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started: politely, then for good, also where a second Ctrl-C comes meanwhile."""
    _signal_group(process, signal.SIGTERM)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    finally:
        _signal_group(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()
