"""The `handler` of a tool: the word manual, or exactly one way to answer a call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentfn.definition.agent import HandlerSpec
from agentfn.network import is_loopback

if TYPE_CHECKING:
    from agentfn.definition.reader import Reader
    from agentfn.document.read import Path
    from agentfn.model import Json

KINDS = ("exec", "python", "http", "output")
_OPTIONS = ("timeout", "env", "cwd", "interpreter", "encoding", "result")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_PYTHON = re.compile(r".+\.py:[A-Za-z_]\w*|[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def read_handler(reader: Reader, value: Json, path: Path) -> HandlerSpec:
    """Return the handler at `path`; a wrong one becomes manual, beside its findings."""
    manual = HandlerSpec(kind="manual")
    if value in ("manual", None):
        return manual
    if not isinstance(value, dict):
        reader.error(path, "handler", f"handler is the word manual, or a mapping with one of {', '.join(KINDS)}")
        return manual
    reader.unknown_keys(value, (*KINDS, *_OPTIONS), path, "a handler")
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        reader.error(path, "handler", f"a handler has exactly one of {', '.join(KINDS)}; this one has {found}")
        return manual
    kind = kinds[0]
    given = value[kind] if kind == "output" else reader.expanded_deep(value[kind], (*path, kind))
    _CHECKS[kind](reader, given, (*path, kind))
    return HandlerSpec(
        kind=kind,
        value=reader.expanded_deep(given, (*path, kind)) if kind == "output" else given,
        timeout=_timeout(reader, value, path),
        env=_env(reader, value, path),
        cwd=_cwd(reader, value, path),
        interpreter=reader.text(value, "interpreter", path, expand=True) if "interpreter" in value else None,
        encoding=_encoding(reader, value, path),
        result=_result(reader, value, path),
    )


def _cwd(reader: Reader, value: Mapping[str, Json], path: Path) -> str | None:
    from pathlib import Path as File

    cwd = reader.text(value, "cwd", path, expand=True) if "cwd" in value else None
    if cwd is not None and not (File(reader.document.source).parent / cwd).is_dir():
        reader.warn((*path, "cwd"), "handler-file-missing", f"there is no folder {cwd}")
    return cwd


def _check_exec(reader: Reader, value: Json, path: Path) -> None:
    if isinstance(value, str):
        words = ", ".join(value.split())
        reader.error(path, "handler", f"exec is a list, since there is no shell: [{words}]")
    elif not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        reader.error(path, "handler", "exec must be a list of texts, the program first; quote numbers")
    else:
        _warn_missing(reader, value, path)


def _warn_missing(reader: Reader, words: list[str], path: Path) -> None:
    """Warn where a word that looks like a file beside the agent file is not there."""
    from pathlib import Path as File

    base = File(reader.document.source).parent
    for index, word in enumerate(words):
        is_file = word.endswith((".py", ".sh", ".js")) or (index == 0 and word.startswith(("./", "../")))
        if is_file and not word.startswith("-") and not (base / word).exists():
            reader.warn((*path, index), "handler-file-missing", f"there is no file {word} in {base}")


def _check_python(reader: Reader, value: Json, path: Path) -> None:
    if not isinstance(value, str) or not _PYTHON.fullmatch(value):
        reader.error(path, "handler", "python is file.py:function or module:function")
        return
    file, _, _ = value.rpartition(":")
    if file.endswith(".py"):
        _warn_missing(reader, [file], path[:-1])


def _check_http(reader: Reader, value: Json, path: Path) -> None:
    url = value.get("url") if isinstance(value, dict) else None
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        reader.error(path, "handler", "http is a mapping with url: https://… (or http:// to this machine)")
    elif url.startswith("http://") and not is_loopback(urlsplit(url).hostname):
        reader.error((*path, "url"), "handler", f"{url}: plain http is for this machine only; use https")
    elif isinstance(value, Mapping):
        reader.unknown_keys(value, ("url", "headers"), path, "http")


def _check_output(reader: Reader, value: Json, path: Path) -> None:
    """Accept anything: a canned output is a text, or any other value as JSON."""


_CHECKS = {"exec": _check_exec, "python": _check_python, "http": _check_http, "output": _check_output}


def _timeout(reader: Reader, value: Mapping[str, Json], path: Path) -> float:
    timeout = value.get("timeout")
    if timeout is None:
        return HandlerSpec(kind="manual").timeout
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
        return float(timeout)
    match = _SPAN.fullmatch(timeout.strip()) if isinstance(timeout, str) else None
    if match is None or float(match[1]) <= 0:
        reader.error((*path, "timeout"), "timeout", f"timeout is a span such as 30s, 500ms or 2m, got {timeout!r}")
        return HandlerSpec(kind="manual").timeout
    return float(match[1]) * _UNITS[match[2]]


def _env(reader: Reader, value: Mapping[str, Json], path: Path) -> tuple[str, ...]:
    env = value.get("env")
    if env is None:
        return ()
    if isinstance(env, list) and all(isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name) for name in env):
        return tuple(env)
    reader.error((*path, "env"), "handler", "env is a list of the variables' names; their values stay outside the file")
    return ()


def _encoding(reader: Reader, value: Mapping[str, Json], path: Path) -> str:
    encoding = value.get("encoding", "utf-8")
    try:
        # Decoding says whether it is one of text: "base64" is a codec too.
        b"a".decode(encoding, "replace")
    except (LookupError, TypeError):
        reader.error((*path, "encoding"), "handler", f"there is no encoding {encoding!r}")
        return "utf-8"
    return str(encoding)


def _result(reader: Reader, value: Mapping[str, Json], path: Path) -> str:
    result = value.get("result", "text")
    if result in ("text", "content"):
        return str(result)
    reader.error((*path, "result"), "handler", f"result is text or content, got {result!r}")
    return "text"
