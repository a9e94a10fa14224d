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
import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: How long a program that is told to end may take before it is killed, in seconds.
GRACE_SECONDS = 2.0

_running: set[subprocess.Popen[bytes]] = set()
_running_lock = threading.Lock()


class Finished(NamedTuple):
    """How a program ended. `status` is its exit status, negative for a signal (POSIX), None when time ran out."""

    status: int | None
    stdout: bytes
    stderr: bytes


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
    with subprocess.Popen(  # noqa: S603  # an argument list of the user's own definition; arguments never reach it
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=dict(env),
        pass_fds=inherit if os.name == "posix" else (),
        start_new_session=os.name == "posix",
        creationflags=0 if os.name == "posix" else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    ) as process:
        with _running_lock:
            _running.add(process)
        try:
            return _communicate(process, stdin, timeout)
        except BaseException:
            _end(process)
            raise
        finally:
            with _running_lock:
                _running.discard(process)


def _communicate(process: subprocess.Popen[bytes], stdin: bytes, timeout: float) -> Finished:
    try:
        stdout, stderr = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired as late:
        stdout, stderr = late.stdout or b"", late.stderr or b""
        ended = process.poll() is not None
        _end(process)
        # Whoever still holds the pipes was in the group and is gone; what was written is there to be read.
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError, OSError):
            stdout, stderr = process.communicate(timeout=GRACE_SECONDS)
        return Finished(process.returncode if ended else None, stdout, stderr)
    return Finished(process.returncode, stdout, stderr)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started: politely, then for good."""
    _signal_group(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
    _signal_group(process, signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


def stop_running() -> None:
    """End every handler's program that runs now; called when agentfn itself is interrupted."""
    with _running_lock:
        programs = list(_running)
    for process in programs:
        _end(process)
