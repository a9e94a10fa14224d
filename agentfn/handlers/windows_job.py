"""Windows' way to end a program with all that it started: a job object, which kills its processes when it is closed.

Untried: nothing of this could be run where it was written. Where a call fails, only the program itself is ended.
"""

from __future__ import annotations

import sys
from typing import Any

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _KILL_ON_CLOSE = 0x2000
    _EXTENDED_LIMITS = 9

    class _Basic(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", ctypes.c_int64),
            ("PerJobUserTimeLimit", ctypes.c_int64),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _Extended(ctypes.Structure):
        _fields_ = (
            ("Basic", _Basic),
            ("IoInfo", ctypes.c_uint64 * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    def open_job(process: Any) -> Any:
        """Put a started process into a job of its own; return the job's handle, None where that cannot be done."""
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.CreateJobObjectW.restype = wintypes.HANDLE
        job = kernel.CreateJobObjectW(None, None)
        if not job:
            return None
        limits = _Extended()
        limits.Basic.LimitFlags = _KILL_ON_CLOSE
        size = ctypes.sizeof(limits)
        is_set = kernel.SetInformationJobObject(wintypes.HANDLE(job), _EXTENDED_LIMITS, ctypes.byref(limits), size)
        handle = wintypes.HANDLE(int(process._handle))  # noqa: SLF001  # there is no public name for it
        if not is_set or not kernel.AssignProcessToJobObject(wintypes.HANDLE(job), handle):
            kernel.CloseHandle(wintypes.HANDLE(job))
            return None
        return job

    def close_job(job: Any) -> None:
        """Close a job, which ends every process in it."""
        ctypes.WinDLL("kernel32").CloseHandle(wintypes.HANDLE(job))

else:

    def open_job(process: Any) -> Any:
        """Return nothing: elsewhere a program is the leader of a session, and ended with it."""
        del process

    def close_job(job: Any) -> None:
        """Do nothing."""
        del job
