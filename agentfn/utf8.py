"""Bytes from outside as text: UTF-8, or a finding that names the first byte which is none."""

from __future__ import annotations

from agentfn.errors import Finding, InvalidFileError


def decode(data: bytes, source: str) -> str:
    """Return the bytes as text, unchanged; raise InvalidFileError with line and column (in bytes) where they are none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        message = f"byte 0x{data[exc.start]:02x} is not UTF-8"
        raise InvalidFileError([Finding(source, line, column, "not-utf-8", message)]) from exc
