"""The error bodies of Foundry's two planes (foundry.md §5)."""

from __future__ import annotations

from typing import Any

from agentfn.emulator.http import ApiError


def foundry_error(
    code: str,
    message: str,
    *,
    request: str = "",
    param: str | None = None,
    details: list[dict[str, Any]] | None = None,
    type_: str = "error",
) -> dict[str, Any]:
    """Return an error of Foundry's own layer (foundry.md §5.1)."""
    error: dict[str, Any] = {"code": code, "message": message, "type": type_}
    if param is not None:
        error["param"] = param
    return {"error": error | {"details": details or [], "additionalInfo": {"request_id": request}}}


def not_found(message: str) -> ApiError:
    """Return a 404."""
    return ApiError(404, foundry_error("not_found", message))


def invalid(message: str, *, param: str | None = None) -> ApiError:
    """Return a 400 for a parameter that breaks a rule."""
    return ApiError(400, foundry_error("invalid_parameters", message, param=param))


def payload(message: str, *, param: str | None = None, details: list[dict[str, Any]] | None = None) -> ApiError:
    """Return a 400 for a body that breaks a rule."""
    return ApiError(400, foundry_error("invalid_payload", message, param=param, details=details))
