"""The tools of an agent file: functions in three spellings, everything else passed through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentfn.definition.agent import FunctionTool, HandlerSpec
from agentfn.definition.handler import read_handler
from agentfn.definition.parameters import check_parameters
from agentfn.document.check import schema_problems
from agentfn.model import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentfn.definition.reader import Reader
    from agentfn.document.read import Document, Path

#: foundry.md §8: 64 is safe on every service.
FUNCTION_NAME = r"^[a-zA-Z0-9_-]{1,64}$"

_WIRE_EXTRA = ("defer_loading", "async", "output_schema", "allowed_callers")
_OURS = ("handler", "ask", "idempotent", "verify", "returns", "secrets")
_KEYS = ("type", "name", "description", "parameters", "strict", *_WIRE_EXTRA, *_OURS)

Tools = tuple[tuple[FunctionTool, ...], tuple[dict[str, Json], ...], tuple[str | int, ...]]


def read_tools(reader: Reader, value: Mapping[str, Json]) -> Tools:
    """Return the functions, the other tools, and the order of all of them."""
    tools = value.get("tools")
    if tools is None:
        return (), (), ()
    if not isinstance(tools, list):
        reader.error(("tools",), "type", "tools must be a list")
        return (), (), ()
    functions: list[FunctionTool] = []
    others: list[dict[str, Json]] = []
    order: list[str | int] = []
    for index, tool in enumerate(tools):
        path: Path = ("tools", index)
        if not isinstance(tool, dict):
            reader.error(path, "type", "a tool must be a mapping")
        elif tool.get("type", "function") == "function":
            function = _function(reader, tool, path)
            if function is not None:
                functions.append(function)
                order.append(function.name)
        else:
            order.append(len(others))
            others.append(tool)
    _check_many(reader, functions)
    return tuple(functions), tuple(others), tuple(order)


def _check_many(reader: Reader, functions: list[FunctionTool]) -> None:
    first: dict[str, FunctionTool] = {}
    for tool in functions:
        known = first.setdefault(tool.name, tool)
        if known is not tool:
            message = f"function {tool.name} is defined twice (lines {known.line} and {tool.line})"
            reader.findings.append(reader.document.finding((), "duplicate-function", message)._replace(
                line=tool.line, column=tool.column,
            ))  # fmt: skip


def _function(reader: Reader, tool: Mapping[str, Json], path: Path) -> FunctionTool | None:
    body, place = dict(tool), path
    if "function" in tool:
        nested = tool["function"]
        if not isinstance(nested, dict):
            reader.error((*path, "function"), "type", "function must be a mapping with name and parameters")
            return None
        clash = next((key for key in nested if key in tool), None)
        if clash is not None:
            reader.key_error((*path, clash), "duplicate-key", f"{clash} stands both beside and under function")
        place = (*path, "function")
        reader.unknown_keys(nested, _KEYS, place, "a function")
        reader.unknown_keys({k: v for k, v in tool.items() if k != "function"}, (*_KEYS, "function"), path, "a tool")
        body = {k: v for k, v in tool.items() if k != "function"} | nested
    else:
        reader.unknown_keys(tool, _KEYS, path, "a function tool")
    line, column = reader.document.position((*place, "name") if "name" in body else path)
    name = _name(reader, body, place)
    description = reader.text(body, "description", place) if body.get("description") is not None else None
    parameters = _parameters(reader, body, place)
    strict = reader.flag(body, "strict", place)
    check_parameters(reader, parameters, (*place, "parameters"), strict=bool(strict))
    return FunctionTool(
        name=name or "",
        description=description,
        parameters=parameters,
        strict=strict,
        extra={key: body[key] for key in _WIRE_EXTRA if key in body},
        handler=read_handler(reader, body["handler"], _where(tool, path, place, "handler"))
        if "handler" in body
        else HandlerSpec(kind="manual"),
        ask=_ask(reader, body, _where(tool, path, place, "ask")),
        idempotent=bool(reader.flag(body, "idempotent", path if "idempotent" in tool else place)),
        verify=_verify(reader, body, _where(tool, path, place, "verify")),
        refuse_secrets=_secrets(reader, body, _where(tool, path, place, "secrets")),
        returns=_returns(reader, body, _where(tool, path, place, "returns")),
        is_asking="ask" in body,
        line=line,
        column=column,
    )


def _where(tool: Mapping[str, Json], path: Path, place: Path, key: str) -> Path:
    """Return where a key of ours stands: beside or under `function`."""
    return (*(path if key in tool else place), key)


def _name(reader: Reader, body: Mapping[str, Json], place: Path) -> str | None:
    if "name" not in body:
        reader.error(place, "function-name", "a function needs a name")
        return None
    name = reader.text(body, "name", place)
    if name is not None and not re.fullmatch(FUNCTION_NAME, name):
        message = f'"{name}" is no function name: 1 to 64 letters, digits, _ and - ({FUNCTION_NAME})'
        reader.error((*place, "name"), "function-name", message)
    return name


def _parameters(reader: Reader, body: Mapping[str, Json], place: Path) -> dict[str, Json]:
    parameters = body.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        reader.error((*place, "parameters"), "type", "parameters must be a JSON Schema (a mapping)")
        return {}
    return _as_written(reader, parameters, (*place, "parameters"))


def _as_written(reader: Reader, schema: dict[str, Json], path: Path) -> dict[str, Json]:
    """Return a schema in which the values of text parameters stand as the author wrote them.

    ``enum: [1.10, 0x1F]`` of a ``type: string`` means these texts; read as numbers they would become 1.1 and 31.
    """
    document = reader.document
    types = schema.get("type")
    texts = types == "string" or (isinstance(types, list) and "string" in types)
    copy: dict[str, Json] = {}
    for key, value in schema.items():
        at = (*path, key)
        if texts and key in {"enum", "examples"} and isinstance(value, list):
            copy[key] = [_text_or(document, (*at, i), item, types) for i, item in enumerate(value)]
        elif texts and key in {"const", "default"}:
            copy[key] = _text_or(document, at, value, types)
        elif isinstance(value, dict):
            copy[key] = _as_written(reader, value, at)
        elif isinstance(value, list):
            copy[key] = [
                _as_written(reader, item, (*at, i)) if isinstance(item, dict) else item for i, item in enumerate(value)
            ]
        else:
            copy[key] = value
    return copy


def _text_or(document: Document, path: Path, value: Json, types: Json) -> Json:
    allowed = types if isinstance(types, list) else [types]
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if numeric and not {"number", "integer"} & set(allowed):
        return document.text(path) or value
    return value


def _ask(reader: Reader, body: Mapping[str, Json], path: Path) -> Json:
    ask = body.get("ask", "never")
    if ask in ("never", "always"):
        return ask
    if isinstance(ask, dict) and set(ask) == {"unless"} and isinstance(ask["unless"], dict):
        for problem in schema_problems(ask["unless"]):
            reader.error((*path, "unless", *problem.path), "ask", problem.message)
        return ask
    reader.error(path, "ask", "ask is never, always, or {unless: a JSON Schema that harmless arguments meet}")
    return "always"


def _verify(reader: Reader, body: Mapping[str, Json], path: Path) -> HandlerSpec | None:
    verify = body.get("verify")
    if verify is None:
        return None
    if isinstance(verify, list):
        return read_handler(reader, {"exec": verify}, path)
    if isinstance(verify, dict) and "exec" in verify:
        return read_handler(reader, verify, path)
    reader.error(path, "verify", "verify is a command: a list such as [python3, check.py], or a mapping with exec")
    return None


def _secrets(reader: Reader, body: Mapping[str, Json], path: Path) -> bool:
    secrets = body.get("secrets", "warn")
    if secrets not in ("warn", "refuse"):
        reader.error(path, "secrets", "secrets is warn (what looks like one is told of) or refuse (it is not sent)")
    return bool(secrets == "refuse")


def _returns(reader: Reader, body: Mapping[str, Json], path: Path) -> dict[str, Json] | None:
    returns = body.get("returns")
    if returns is None:
        return None
    if not isinstance(returns, dict):
        reader.error(path, "type", "returns must be a JSON Schema (a mapping)")
        return None
    for problem in schema_problems(returns):
        reader.error((*path, *problem.path), "returns", problem.message)
    return returns
