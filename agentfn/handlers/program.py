"""Sees before a run why a program could not be started; runs nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What to write before a script that cannot start by itself.
_INTERPRETERS = {".py": "python3", ".js": "node", ".mjs": "node", ".sh": "sh", ".rb": "ruby", ".pl": "perl"}


def has_folder(program: str) -> bool:
    """Tell whether a program is named by a path, which PATH has no say in."""
    return "/" in program or os.sep in program


def program_problem(program: str, base: Path, env: Mapping[str, str]) -> str | None:
    """Say why a program cannot be started, or None. `base` is where a relative path starts."""
    if "\0" in program:
        return "the program's name holds a NUL character"
    try:
        if has_folder(program):
            return _file_problem(base / program, env)
        found = shutil.which(program, path=env.get("PATH", os.defpath))
        return _file_problem(Path(found), env) if found else f"{program} was not found on PATH"
    except OSError as exc:
        return f"{program} cannot be looked at: {exc.strerror or exc}"


def _file_problem(path: Path, env: Mapping[str, str]) -> str | None:
    if not path.exists():
        return f"there is no file {path}"
    if path.is_dir():
        return f"{path} is a folder"
    if os.name != "posix":
        return None
    if not os.access(path, os.X_OK):
        return f"{path} is not executable (chmod +x, or {_named_first(path)})"
    if not os.access(path, os.R_OK):
        return None  # a program need not be readable; a script that is not says so when it starts
    with path.open("rb") as file:
        start = file.read(256)
    if start.startswith(b"#!"):
        return _interpreter_problem(path, start[2:].split(b"\n", 1)[0], env)
    # Programs hold zero bytes early on, whatever their format; a text without a first line of that kind starts nowhere.
    return None if b"\0" in start else f"{path} is no program: it has no #! line ({_named_first(path)})"


def _interpreter_problem(path: Path, line: bytes, env: Mapping[str, str]) -> str | None:
    if line.endswith(b"\r"):
        return f"{path} has Windows line ends, which become part of its #! line: save it with LF alone"
    words = line.decode("utf-8", "replace").split()
    if not words or not Path(words[0]).is_file() or not os.access(words[0], os.X_OK):
        return f"{path} asks for the interpreter {words[0] if words else '(none)'}, which is not there"
    through_env = words[0].endswith("/env") and len(words) > 1 and not words[1].startswith("-") and "=" not in words[1]
    if through_env and shutil.which(words[1], path=env.get("PATH", os.defpath)) is None:
        return f"{path} asks for {words[1]}, which was not found on PATH"
    return None


def _named_first(path: Path) -> str:
    interpreter = _INTERPRETERS.get(path.suffix, "INTERPRETER")
    return f"name its interpreter first: [{interpreter}, {path.name}]"
