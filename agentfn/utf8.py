"""Bytes and arguments from outside as text: UTF-8, or an error that names the first byte which is none."""

from __future__ import annotations

from agentfn.errors import Finding, InvalidFileError, UsageError


def decode(data: bytes, source: str) -> str:
    """Return the bytes as text, unchanged; raise InvalidFileError with line and column (in bytes) where they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        message = f"byte 0x{data[exc.start]:02x} is not UTF-8"
        raise InvalidFileError([Finding(source, line, column, "not-utf-8", message)]) from exc


def require_text(argument: str, what: str) -> str:
    """Return a word of the command line; raise UsageError where the shell passed bytes that are no UTF-8."""
    try:
        argument.encode("utf-8")
    except UnicodeEncodeError as exc:
        message = f"{what} is not UTF-8 text: byte 0x{ord(argument[exc.start]) & 0xFF:02x} at character {exc.start + 1}"
        raise UsageError(message, code="not-utf-8") from exc
    return argument
