"""What the bodies of the Agents API may hold (openai-agents.md §2, §3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentfn.emulator.sessions.errors import invalid, missing, wrong_type, wrong_value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agentfn.emulator.http import Request

Body = dict[str, Any]

LONGEST_TEXT = 1_048_576
LARGEST_TOOLS = 3_145_728
MOST_TOOLS = 2000
_NAME, _PAIRS, _KEY, _VALUE = 128, 16, 64, 512
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARIES = ("concise", "detailed", "auto")
_TIERS = ("auto", "default", "flex", "priority", "fast", "ultrafast")
_VERBOSITIES = ("low", "medium", "high")
_FORMATS = ("text", "json_schema")
#: The kinds of tools; only the first two do anything here.
_TOOLS = ("function", "tool_search", "programmatic_tool_calling", "mcp", "web_search", "computer_use", "automations")
_FUNCTION = ("type", "name", "description", "parameters", "defer_loading", "async")

#: What configures an agent, saved or of one session.
CONFIGURATION = (
    "model",
    "instructions",
    "tools",
    "reasoning",
    "service_tier",
    "text",
    "multi_agent",
    "compaction",
    "experimental",
)


def body_of(request: Request) -> Body:
    """Return a request's body as an object; nothing and null count as an empty one (openai-agents.md §1)."""
    if request.raw.strip() in (b"", b"null"):
        return {}
    try:
        value = json.loads(request.raw.decode("utf-8"), object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as exc:
        raise invalid(f"Invalid body: {exc}") from exc
    if not isinstance(value, dict):
        raise invalid("Invalid body: expected an object.")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> Body:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        key = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise ValueError(f"duplicate JSON key '{key}'")
    return found


def require_known(body: Body, known: Collection[str], at: str = "") -> None:
    """Refuse a member that the API does not know."""
    for key in body:
        if key not in known:
            raise invalid(f"Unknown parameter: '{at}{key}'.", f"{at}{key}")


def check_configuration(body: Body, at: str = "") -> None:
    """Check the members of an agent's configuration that are there; null counts as not there."""
    for key, check in _CHECKS.items():
        if body.get(key) is not None:
            check(body[key], f"{at}{key}")


def require_model(body: Body, at: str = "") -> None:
    """Refuse a configuration that names no model."""
    if body.get("model") is None:
        raise missing(f"{at}model")


def completed(body: Body) -> Body:
    """Return a configuration with the defaults that every answer shows."""
    reasoning, text, multi = (body.get(key) or {} for key in ("reasoning", "text", "multi_agent"))
    shown: Body = {
        "model": body["model"],
        "instructions": body.get("instructions"),
        "tools": [_shown_tool(tool) for tool in body.get("tools") or []],
        "reasoning": {"effort": reasoning.get("effort") or "medium", "summary": reasoning.get("summary")},
        "service_tier": body.get("service_tier") or "auto",
        "text": {
            "format": text.get("format") or {"type": "text"},
            "verbosity": text.get("verbosity") or "medium",
        },
        "multi_agent": {
            "enabled": multi.get("enabled", False),
            "max_concurrent_subagents": multi.get("max_concurrent_subagents"),
        },
    }
    return shown | {key: body[key] for key in ("compaction", "experimental") if body.get(key) is not None}


def metadata_of(body: Body) -> dict[str, str]:
    """Return a body's metadata."""
    metadata = body.get("metadata")
    if metadata is None:
        return {}
    _object(metadata, "metadata")
    for key, value in metadata.items():
        _text(value, f"metadata.{key}", _VALUE)
        if len(key) > _KEY:
            raise invalid(f"Invalid 'metadata': keys have at most {_KEY} characters.", "metadata")
    if len(metadata) > _PAIRS:
        raise invalid(f"Invalid 'metadata': at most {_PAIRS} pairs are allowed.", "metadata")
    return dict(metadata)


def messages_of(given: Any, param: str) -> list[Body]:
    """Return the user's messages of an input: a text, or an array of messages with content parts."""
    if isinstance(given, str):
        _text(given, param, LONGEST_TEXT)
        if not given:
            raise invalid(f"Invalid '{param}': empty string.", param)
        return [{"role": "user", "content": [{"type": "input_text", "text": given}]}]
    return message_list(given, param)


def message_list(given: Any, param: str) -> list[Body]:
    """Return the messages of an array; a text is refused (openai-agents.md §4.1)."""
    if not isinstance(given, list):
        raise wrong_type(param, "an array", given)
    if not given:
        raise invalid(f"Invalid '{param}': empty array.", param)
    messages = []
    for index, message in enumerate(given):
        at = f"{param}[{index}]"
        _object(message, at)
        require_known(message, ("role", "type", "content"), f"{at}.")
        for key in ("role", "content"):
            if message.get(key) is None:
                raise missing(f"{at}.{key}")
        check_choice(message["role"], f"{at}.role", ("user",))
        check_choice(message.get("type"), f"{at}.type", ("message",))
        messages.append({"role": "user", "content": content_of(message["content"], f"{at}.content")})
    return messages


def content_of(content: Any, param: str) -> list[Body]:
    """Return content parts: texts and images."""
    if not isinstance(content, list):
        raise wrong_type(param, "an array", content)
    for index, part in enumerate(content):
        at = f"{param}[{index}]"
        _object(part, at)
        field = {"input_text": "text", "input_image": "image_url"}.get(str(part.get("type")))
        if field is None:
            raise wrong_value(f"{at}.type", part.get("type"), ("input_text", "input_image"))
        if part.get(field) is None:
            raise missing(f"{at}.{field}")
        _text(part[field], f"{at}.{field}", None)
    return content


def _text(value: Any, param: str, longest: int | None) -> None:
    if not isinstance(value, str):
        raise wrong_type(param, "a string", value)
    if longest is not None and len(value) > longest:
        raise invalid(
            f"Invalid '{param}': string too long. Expected a string with maximum length {longest}, but got a string"
            f" with length {len(value)} instead.",
            param,
        )


def _object(value: Any, param: str) -> None:
    if not isinstance(value, dict):
        raise wrong_type(param, "an object", value)


def _flag(value: Any, param: str) -> None:
    if value is not None and not isinstance(value, bool):
        raise wrong_type(param, "a boolean", value)


def check_choice(value: Any, param: str, allowed: tuple[str, ...]) -> None:
    """Check a value that is one of a few words; null counts as not there."""
    if value is not None and value not in allowed:
        raise wrong_value(param, value, allowed)


def _check_switch(name: str) -> Callable[[Any, str], None]:
    """Return the check of an object whose one member is a flag."""

    def check(value: Any, param: str) -> None:
        _object(value, param)
        require_known(value, (name,), f"{param}.")
        _flag(value.get(name), f"{param}.{name}")

    return check


def _check_multi_agent(value: Any, param: str) -> None:
    _object(value, param)
    require_known(value, ("enabled", "max_concurrent_subagents"), f"{param}.")
    if value.get("enabled") is None:
        raise missing(f"{param}.enabled")
    _flag(value["enabled"], f"{param}.enabled")
    most = value.get("max_concurrent_subagents")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int)):
        raise wrong_type(f"{param}.max_concurrent_subagents", "an integer", most)


def _check_reasoning(value: Any, param: str) -> None:
    _object(value, param)
    require_known(value, ("effort", "summary"), f"{param}.")
    check_choice(value.get("effort"), f"{param}.effort", _EFFORTS)
    check_choice(value.get("summary"), f"{param}.summary", _SUMMARIES)


def _check_text(value: Any, param: str) -> None:
    _object(value, param)
    require_known(value, ("format", "verbosity"), f"{param}.")
    check_choice(value.get("verbosity"), f"{param}.verbosity", _VERBOSITIES)
    form = value.get("format")
    if form is None:
        return
    _object(form, f"{param}.format")
    if form.get("type") is None:
        raise missing(f"{param}.format.type")
    check_choice(form["type"], f"{param}.format.type", _FORMATS)
    require_known(form, ("type", "schema") if form["type"] == "json_schema" else ("type",), f"{param}.format.")
    if form["type"] == "json_schema":
        if form.get("schema") is None:
            raise missing(f"{param}.format.schema")
        _object(form["schema"], f"{param}.format.schema")
        if form["schema"].get("type") != "object":
            raise invalid("Invalid schema: its root must be of 'type: \"object\"'.", f"{param}.format.schema")


def _check_tools(tools: Any, param: str) -> None:
    if not isinstance(tools, list):
        raise wrong_type(param, "an array", tools)
    if len(tools) > MOST_TOOLS:
        raise invalid(f"Invalid '{param}': at most {MOST_TOOLS} tools are allowed.", param)
    names: set[str] = set()
    searches = 0
    for index, tool in enumerate(tools):
        at = f"{param}[{index}]"
        _object(tool, at)
        if tool.get("type") is None:
            raise missing(f"{at}.type")
        check_choice(tool["type"], f"{at}.type", _TOOLS)
        if tool["type"] == "function":
            _check_function(tool, at)
            if tool["name"] in names:
                raise invalid(f"duplicate function tool name: {tool['name']}", param)
            names.add(tool["name"])
        elif tool["type"] == "tool_search":
            require_known(tool, ("type",), f"{at}.")
            searches += 1
    if searches > 1:
        raise invalid("duplicate tool_search tool", param)
    if (
        len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        > LARGEST_TOOLS
    ):
        raise invalid(f"Invalid '{param}': the tools are larger than {LARGEST_TOOLS} bytes.", param)


def _check_function(tool: Body, at: str) -> None:
    require_known(tool, _FUNCTION, f"{at}.")
    for key in ("name", "description"):
        if tool.get(key) is None:
            raise missing(f"{at}.{key}")
        _text(tool[key], f"{at}.{key}", None)
    if tool.get("parameters") is None:
        raise missing(f"{at}.parameters")
    _object(tool["parameters"], f"{at}.parameters")
    for key in ("defer_loading", "async"):
        _flag(tool.get(key), f"{at}.{key}")
    kind = tool["parameters"].get("type")
    if isinstance(kind, str) and kind != "object":
        raise invalid(
            f"Invalid schema for function '{tool['name']}': schema must be a JSON Schema of 'type: \"object\"', got"
            f" 'type: \"{kind}\"'.",
            f"{at}.parameters",
        )


def _shown_tool(tool: Body) -> Body:
    return tool | {"defer_loading": bool(tool.get("defer_loading"))} if tool.get("type") == "function" else tool


_CHECKS = {
    "model": lambda value, param: _text(value, param, None),
    "name": lambda value, param: _text(value, param, _NAME),
    "instructions": lambda value, param: _text(value, param, LONGEST_TEXT),
    "tools": _check_tools,
    "reasoning": _check_reasoning,
    "service_tier": lambda value, param: check_choice(value, param, _TIERS),
    "text": _check_text,
    "multi_agent": _check_multi_agent,
    "compaction": _check_switch("async"),
    "experimental": _check_switch("time_awareness"),
}
