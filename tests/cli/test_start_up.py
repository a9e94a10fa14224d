"""What each start loads. If one of these fails, something heavy crept into every command's start: import it where used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from agentfn.cli._lazy import TABLE

HEAVY = ("httpx", "yaml", "jsonschema", "sqlite3", "rich", "werkzeug", "asyncio", "http.server", "pydantic", "tomllib")


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running some code."""
    report = "\nimport sys as _s; _s.stderr.write('\\n'.join(_s.modules))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=False)
    return set(done.stderr.splitlines())


def start(*args: str) -> str:
    return f"import sys\nsys.argv = {['agentfn', *args]!r}\nfrom agentfn.__main__ import main\ntry:\n    main()\nexcept SystemExit:\n    pass"


def test_version_loads_nothing_but_the_package() -> None:
    ours = {name for name in loaded_by(start("--version")) if name.startswith(("agentfn", "typer"))}
    assert ours == {"agentfn", "agentfn.__main__"}


def test_help_loads_no_command_and_nothing_heavy() -> None:
    modules = loaded_by(start("--help"))
    assert "typer" in modules
    assert not [name for name in HEAVY if name in modules]
    assert not [name for name in modules if name.startswith("agentfn.cli.commands.")]


def test_chat_over_a_socket_loads_no_server_and_the_local_one_no_werkzeug() -> None:
    modules = loaded_by("import agentfn.backends.foundry, agentfn.turn.loop")
    assert not [name for name in modules if name.startswith("agentfn.emulator")]
    assert "jsonschema" not in modules
    assert "werkzeug" not in loaded_by("import agentfn.backends.local")


@pytest.mark.parametrize("name", TABLE)
def test_the_tables_line_is_the_commands_own(name: str) -> None:
    module, _, function = TABLE[name].target.partition(":")
    command = getattr(importlib.import_module(module), function)
    assert command.__doc__.split("\n", 1)[0] == TABLE[name].help


def test_the_table_holds_every_command_module() -> None:
    from pathlib import Path

    import agentfn.cli.commands

    folder = Path(agentfn.cli.commands.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(TABLE)
    assert len(TABLE) >= 12
