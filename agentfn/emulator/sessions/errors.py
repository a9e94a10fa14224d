"""Refusals of the Agents API: always the four members (openai-agents.md §1)."""

from __future__ import annotations

from typing import Any

from agentfn.emulator.http import ApiError

_TYPES = {400: "invalid_request_error", 404: "not_found_error", 409: "conflict_error"}


def error_body(status: int, message: str, *, param: str | None = None, type_: str | None = None) -> dict[str, Any]:
    """Return the body of a refusal; type and code are the same word but for 401, which has no code."""
    name = type_ or _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")  # noqa: PLR2004
    code = None if status == 401 else name  # noqa: PLR2004  # HTTP's own numbers
    return {"error": {"type": name, "code": code, "message": message, "param": param}}


def invalid(message: str, param: str | None = None) -> ApiError:
    """Return a 400."""
    return ApiError(400, error_body(400, message, param=param))


def missing(param: str) -> ApiError:
    """Return the 400 for something required that is not there."""
    return invalid(f"Missing required parameter: '{param}'.", param)


def wrong_type(param: str, expected: str, value: Any) -> ApiError:
    """Return the 400 for a value of another type."""
    return invalid(f"Invalid type for '{param}': expected {expected}, but got {_kind(value)} instead.", param)


def wrong_value(param: str, value: Any, allowed: tuple[str, ...]) -> ApiError:
    """Return the 400 for a value that is none of those allowed."""
    listed = ", ".join(f"'{choice}'" for choice in allowed)
    return invalid(f"Invalid value: '{value}'. Supported values are: {listed}.", param)


def conflict(message: str) -> ApiError:
    """Return a 409."""
    return ApiError(409, error_body(409, message))


def absent(what: str) -> ApiError:
    """Return the 404; unknown, malformed and deleted cannot be told apart."""
    return ApiError(404, error_body(404, f"{what} not found."))


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {int: "an integer", float: "a decimal", str: "a string", list: "an array", dict: "an object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "something else")
