"""The errors that agentfn tells a user, and the exit code of each.

::

    AgentfnError
    ├── UsageError        2    the command line asks for something impossible; the user retypes it
    ├── InvalidFileError  3    a definition, script or config file is wrong; the user edits it
    ├── NotAuthorisedError 4   no token, an expired one, or a missing role; the user signs in
    ├── ServiceError      5    the service cannot be reached, refuses, or is throttled beyond the retries
    ├── BusyError         5    another process holds the conversation
    ├── NegativeError     1    the answer is no: not found, declined, turn failed, limit hit, clean-up incomplete
    ├── PendingError      8    calls wait for outputs; not a failure
    └── InterruptedRunError 130 Ctrl-C ended a run of cases; what came of the others is told all the same

Whatever else escapes is a bug of agentfn (70). Only the command-line layer turns an error into text and an exit code;
everything below raises. Wording lives beside the place that knows the cause; `code` is a stable identifier for scripts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable


class ExitCode(IntEnum):
    """Exit codes, the same for every command; README.md holds the same table and a test compares both."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    INVALID_FILE = 3
    NOT_AUTHORISED = 4
    SERVICE = 5
    PENDING = 8
    BUG = 70
    INTERRUPTED = 130


class Finding(NamedTuple):
    """One thing wrong, or doubtful, at one place of a file.

    `line` and `column` count from 1; 0 means "the file as a whole". `severity` is ``error`` or ``warning``.
    """

    source: str
    line: int
    column: int
    rule: str
    message: str
    severity: str = "error"

    def __str__(self) -> str:
        """Return the finding as ``file:line:column: rule: message``."""
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        label = "warning: " if self.severity == "warning" else ""
        return f"{place}: {label}{self.rule}: {self.message}"


class AgentfnError(Exception):
    """Something a user can understand and act on.

    `message` says what is wrong and where; `hint` is the next thing to do, a command where there is one; `location`
    is ``file:line:column`` or None. `data` is what a command has found all the same, for its document.
    """

    exit_code: ExitCode = ExitCode.NEGATIVE
    default_code = "failed"
    data: dict[str, object] | None = None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        location: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint
        self.location = location

    def rewritten(self, change: Callable[[str], str]) -> Self:
        """Return the same error with `change` made to everything that it says."""
        found = type(self).__new__(type(self))  # not by copy, which would call a subclass's __init__ with a message
        found.__dict__.update(self.__dict__)
        found.args = (change(self.message),)
        found.message = change(self.message)
        found.hint = None if self.hint is None else change(self.hint)
        return found


class UsageError(AgentfnError):
    """The command line cannot be carried out as typed."""

    exit_code = ExitCode.USAGE
    default_code = "usage"


class InvalidFileError(AgentfnError):
    """A file agentfn read is wrong; `findings` holds every problem, errors first."""

    exit_code = ExitCode.INVALID_FILE
    default_code = "invalid_file"

    def __init__(self, findings: list[Finding], *, hint: str | None = None) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        location = f"{first.source}:{first.line}:{first.column}" if first.line else first.source
        super().__init__(f"{first}{more}", code=first.rule, hint=hint, location=location)
        self.findings = findings

    def rewritten(self, change: Callable[[str], str]) -> Self:
        """Return the same error with `change` made to everything that it and its findings say."""
        found = super().rewritten(change)
        found.findings = [finding._replace(message=change(finding.message)) for finding in self.findings]
        return found


class InterruptedRunError(AgentfnError):
    """Ctrl-C ended a run of cases; `data` has what came of those that ended before."""

    exit_code = ExitCode.INTERRUPTED
    default_code = "interrupted"


class NotAuthorisedError(AgentfnError):
    """The service does not accept who we are, or we have no token to say so."""

    exit_code = ExitCode.NOT_AUTHORISED
    default_code = "not_authorised"


class ServiceError(AgentfnError):
    """The service is unreachable, refused the request, or throttled it beyond the retries.

    `status` is the HTTP status, None where there was no answer; `request_id` is the service's own, for its support.
    """

    exit_code = ExitCode.SERVICE
    default_code = "service"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.request_id = request_id


class BusyError(AgentfnError):
    """Another process works on this conversation and did not finish while we waited."""

    exit_code = ExitCode.SERVICE
    default_code = "busy"


class NegativeError(AgentfnError):
    """The command ran and its answer is no."""

    exit_code = ExitCode.NEGATIVE


class PendingError(AgentfnError):
    """Calls wait for outputs, so what was asked for cannot go on."""

    exit_code = ExitCode.PENDING
    default_code = "pending"
