"""What every command has in common: the JSON envelope, exit codes, failures before a command ran."""

from __future__ import annotations

import json
import re
import sqlite3
import sys

import pytest

from agentfn.errors import ExitCode
from tests.conftest import ROOT, SAMPLES

KEYS = ["agentfn", "command", "status", "exit_code", "data", "errors"]


@pytest.mark.parametrize(
    ("args", "exit_code", "status", "command"),
    [
        (("list",), 0, "ok", "list"),
        (("pending",), 0, "ok", "pending"),
        (("validate", str(SAMPLES / "weather" / "agent.yaml")), 0, "ok", "validate"),
        (("doctor",), 0, "ok", "doctor"),
        (("show", "nobody"), 1, "failed", "show"),
        (("log", "conv_" + "x" * 50), 1, "failed", "log"),
        (("nonsense",), 2, "error", None),
        (("list", "--no-such-option"), 2, "error", "list"),
        (("chat",), 2, "error", "chat"),
        (("list", "--backend", "openia"), 2, "error", "list"),
        (("list", "--backend", "foundry"), 2, "error", "list"),
        (("create", "missing.yaml"), 2, "error", "create"),
    ],
)
def test_json_is_one_envelope_whatever_happens(run, args, exit_code, status, command) -> None:
    ran = run(*args, "--json", exit=exit_code)
    assert list(ran.json) == KEYS
    assert ran.json["agentfn"] == 1
    assert (ran.json["command"], ran.json["status"], ran.json["exit_code"]) == (command, status, exit_code)
    for error in ran.json["errors"]:
        assert list(error) == ["code", "message", "hint", "location"]
    assert bool(ran.json["errors"]) == (exit_code != 0)


def test_usage_errors_suggest_what_was_meant(run) -> None:
    assert "did you mean pending?" in run("pendign", exit=2).stderr
    assert "--dry-run" in run("create", "a.yaml", "--dryrun", exit=2).stderr


def test_the_readmes_table_of_exit_codes_is_the_programs() -> None:
    section = (ROOT / "README.md").read_text().split("## Exit codes")[1].split("##")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)}
    assert listed == {int(code) for code in ExitCode}


def test_the_readme_names_every_command() -> None:
    from agentfn.cli._lazy import TABLE

    section = (ROOT / "README.md").read_text().split("## Commands")[1].split("##")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)", cell)} == set(TABLE)


def test_the_machines_trouble_is_no_bug(run) -> None:
    run.home.mkdir()
    (run.home / "locks").write_text("a file where a folder belongs")
    ran = run("chat", SAMPLES / "horoscope" / "agent.yaml", "Aquarius horoscope", "--json", exit=5)
    assert ran.json["errors"][0]["code"] == "machine"
    assert "locks" in ran.json["errors"][0]["message"]


def test_a_bug_is_70_and_its_traceback_is_for_debug(run, write) -> None:
    """A row that agentfn never writes stands in for a bug that nobody knows yet."""
    run("chat", SAMPLES / "horoscope" / "agent.yaml", "Aquarius horoscope")
    with sqlite3.connect(run.home / "journal.db") as journal:
        journal.execute("UPDATE conversation SET functions = 'no JSON'")
    journal.close()
    ran = run("list", "--json", exit=70)
    assert ran.json["errors"][0]["code"] == "bug"
    assert "Traceback" not in ran.stderr
    assert "Traceback" in run("list", "--debug", exit=70).stderr


def test_words_that_are_no_utf8_are_a_usage_error(run) -> None:
    if sys.platform == "win32":
        return
    message = b"Horoscope \xff".decode("utf-8", "surrogateescape")
    ran = run("chat", SAMPLES / "horoscope" / "agent.yaml", message, "--json", exit=2)
    assert "byte 0xff at character 11" in ran.json["errors"][0]["message"]


def test_version_is_the_packages(run) -> None:
    from agentfn import __version__

    assert run("--version").stdout == f"agentfn {__version__}\n"


def test_output_of_json_is_ascii(run, agent) -> None:
    ran = run("chat", agent("{output: \u2713}"), "Weather in Oslo?", "--json")
    assert ran.stdout.isascii()
    assert "\u2713" in json.loads(ran.stdout)["data"]["answer"]
