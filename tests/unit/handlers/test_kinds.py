"""Python functions, canned outputs and scripts, run as a turn runs them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agentfn.handlers import script_handler
from agentfn.handlers.python import CHILD
from agentfn.masking import Masker
from agentfn.model import Outcome
from tests.unit.handlers.making import CONTEXT, ENV, make

if TYPE_CHECKING:
    from agentfn.handlers.protocol import Result


@pytest.fixture
def python(tmp_path: Path):
    """Run a function of a Python file of this text."""

    def run(text: str, arguments: dict[str, Any] | None = None, function: str = "f", **keys: Any) -> Result:
        (tmp_path / "tool.py").write_text(text)
        handler = make(tmp_path, "python", f"tool.py:{function}", **keys)
        assert handler.problem() is None
        return handler.run(arguments or {}, CONTEXT)

    return run


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("return a", "x"),
        ("return 'line\\n'", "line\n"),
        ("return {'é': [1, None, True]}", '{"é": [1, null, true]}'),
        ("return None", "null"),
        ("return 0", "0"),
        ("import datetime; return datetime.date(2024, 1, 31)", '"2024-01-31"'),
        ("import decimal; return {'t': decimal.Decimal('10.50')}", '{"t": 10.50}'),
        ("print('chatter'); import os; os.system('echo more'); return 'quiet'", "quiet"),
    ],
)
def test_a_python_function_gives_its_result(python, body: str, output: str) -> None:
    assert python(f"def f(a):\n    {body}\n", {"a": "x"}).outcome == Outcome(output=output)


def test_what_a_python_function_prints_goes_to_stderr(python) -> None:
    result = python("def f():\n    print('hello')\n    return 1\n")
    assert result.outcome.output == "1"
    assert "hello" in result.stderr


def test_a_coroutine_is_awaited(python) -> None:
    assert python("async def f():\n    return 'later'\n").outcome.output == "later"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f():\n    raise ValueError('no such city')\n", "ValueError: no such city"),
        ("def f():\n    return float('nan')\n", "ValueError: "),
        ("def f():\n    return b'x'\n", "TypeError: the function returned bytes"),
        ("def f():\n    return '\\ud83d'\n", "UnicodeEncodeError: "),
        ("def f(a):\n    return a\n", "TypeError: f() missing 1 required"),
        ("def g():\n    return 1\n", "AttributeError: "),
        ("import nothing_of_that_name\n", "ModuleNotFoundError: "),
        ("def f():\n    raise SystemExit(0)\n", "the function ended the process"),
        ("def f(:\n", "SyntaxError: "),
    ],
)
def test_an_exception_is_a_failure_that_names_it(python, text: str, error: str) -> None:
    result = python(text)
    assert str(result.outcome.error).startswith(error)
    assert "Traceback" not in str(result.outcome.error)


def test_a_module_by_name_and_imports_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "module.py").write_text("import helper\ndef f():\n    return helper.VALUE\n")
    assert make(tmp_path, "python", "module:f").run({}, CONTEXT).outcome.output == "7"


def test_the_interpreter_may_be_named(python, tmp_path: Path) -> None:
    fake = tmp_path / "mypython"
    fake.write_text(f'#!/bin/sh\nexport CHOSEN=mine\nexec {sys.executable} "$@"\n')
    fake.chmod(0o755)
    assert (
        python("import os\ndef f():\n    return os.environ['CHOSEN']\n", interpreter=str(fake)).outcome.output == "mine"
    )


def test_what_the_schema_of_returns_refuses_is_told_to_the_agent(tmp_path: Path) -> None:
    returns = {"type": "object", "required": ["mm"]}
    good = make(tmp_path, "output", {"mm": 3}, returns=returns).run({}, CONTEXT)
    bad = make(tmp_path, "output", {"cm": 3}, returns=returns).run({}, CONTEXT)
    assert good.outcome.output == '{"mm": 3}'
    assert bad.outcome.error == "the output does not match returns: missing required property mm"


def test_known_secrets_are_masked_and_likely_ones_named(tmp_path: Path) -> None:
    result = make(tmp_path, "output", "a known-secret here").run({}, CONTEXT)
    assert result.outcome.output == "a *** here"
    assert "masked" in result.warnings[0]
    result = make(tmp_path, "output", "ghp_" + "a" * 36).run({}, CONTEXT)
    assert result.outcome.output == "ghp_" + "a" * 36
    assert "looks like a GitHub token" in result.warnings[0]


def test_content_parts_are_an_outcome_of_their_own(tmp_path: Path) -> None:
    parts = [{"type": "input_text", "text": "rain"}]
    assert make(tmp_path, "output", parts, result="content").run({}, CONTEXT).outcome == Outcome(content=parts)
    assert "no array of content parts" in str(
        make(tmp_path, "output", "rain", result="content").run({}, CONTEXT).outcome.error
    )


def test_a_script_without_the_execute_bit_runs_under_python(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text("import json, sys\nprint(json.load(sys.stdin)['a'])\n")
    handler = script_handler(Path("answer.py"), cwd=tmp_path, env=ENV, masker=Masker([]))
    assert handler.problem() is None
    assert handler.run({"a": "é"}, CONTEXT).outcome.output == "é"


def test_a_missing_script_is_told_before_it_is_needed(tmp_path: Path) -> None:
    handler = script_handler(Path("gone.py"), cwd=tmp_path, env=ENV, masker=Masker([]))
    assert handler.problem() == f"there is no file {tmp_path / 'gone.py'}"


def test_the_standard_library_is_in_reach_and_agentfn_is_not(python) -> None:
    """The child's own folder came first on the path, where agentfn's http.py hid the library's from every function."""
    text = "import http.client, sys, urllib.request\nimport concurrent.futures.process\ndef f():\n    return sorted(m for m in sys.modules if 'agentfn' in m)\n"
    assert python(text).outcome == Outcome(output="[]")
    missing = python("import arguments\n").outcome.error
    assert missing == "ModuleNotFoundError: No module named 'arguments'"


def test_the_child_is_written_for_older_pythons() -> None:
    tree = ast.parse(CHILD.read_text(), feature_version=(3, 8))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert "json" in imported
    assert "agentfn" not in imported


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("import os; os._exit(3)", "exit 3"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9 (SIGKILL)"),
        ("import sys; sys.exit('disk full')", "the function ended the process: disk full"),
        ("raise ValueError('half \\ud83d')", "ValueError: half \\ud83d"),
        ("raise KeyboardInterrupt('no')", "KeyboardInterrupt: no"),
        ("raise ValueError('known-secret')", "ValueError: ***"),
    ],
)
def test_every_way_to_fail_is_told(python, body: str, error: str) -> None:
    assert python(f"def f():\n    {body}\n").outcome.error == error


def test_of_a_long_reason_the_start_is_told(python) -> None:
    error = python("def f():\n    raise ValueError('x' * 1990 + 'known-secret' + 'y' * 100_000)\n").outcome.error
    assert error is not None
    assert len(error) == 2000
    assert "known" not in error, "half of a secret would not have been recognised"


def test_the_traceback_is_for_the_user_alone(python) -> None:
    result = python("def f():\n    raise ValueError('no such city')\n")
    assert result.outcome.error == "ValueError: no such city"
    assert "Traceback" in result.stderr


def test_what_writes_to_descriptor_1_does_not_reach_the_result(python) -> None:
    result = python("import os\ndef f():\n    os.write(1, b'noise')\n    return 'signal'\n")
    assert result.outcome.output == "signal"
    assert "noise" in result.stderr


def test_a_file_in_a_folder_below_finds_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "shared.py").write_text("MORE = 1\n")
    (tmp_path / "below" / "tool.py").write_text(
        "import helper, shared\ndef f():\n    return helper.VALUE + shared.MORE\n"
    )
    assert make(tmp_path, "python", "below/tool.py:f").run({}, CONTEXT).outcome.output == "8"


def test_keys_that_are_no_texts_become_texts(python) -> None:
    text = "import datetime, decimal\ndef f():\n    return {1: decimal.Decimal('0.10'), datetime.date(2024, 1, 31): (True,)}\n"
    assert python(text).outcome.output == '{"1": 0.10, "2024-01-31": [true]}'


def test_a_text_may_look_like_a_number_where_a_text_is_promised(tmp_path: Path) -> None:
    assert make(tmp_path, "output", "42", returns={"type": "string"}).run({}, CONTEXT).outcome.output == "42"
    wrong = make(tmp_path, "output", "42", returns={"type": "string", "maxLength": 1}).run({}, CONTEXT).outcome
    assert str(wrong.error).startswith("the output does not match returns: ")
    deep = make(tmp_path, "output", "[" * 100_000, returns={"type": "array"}).run({}, CONTEXT).outcome
    assert "expects array, got string" in str(deep.error)


def test_a_complaint_about_an_output_does_not_quote_half_a_secret(tmp_path: Path) -> None:
    returns = {"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}}
    result = make(tmp_path, "output", {"a": "x" * 50 + "known-secret"}, returns=returns).run({}, CONTEXT)
    assert "must be one of" in str(result.outcome.error)
    assert "known" not in str(result.outcome.error)
    assert "a known secret in the output was masked" in result.warnings


def test_canned_content_that_cannot_be_sent_is_told_before_the_turn(tmp_path: Path) -> None:
    assert "no-such" in str(make(tmp_path, "output", [{"type": "no-such"}], result="content").problem())
    assert make(tmp_path, "output", [{"type": "input_text", "text": "a"}], result="content").problem() is None


def test_declared_values_are_masked_whatever_the_outcome(tmp_path: Path) -> None:
    env = {"TOKEN": "declared-value"}
    command = ["sh", "-c", 'echo "$TOKEN"; echo "$TOKEN" >&2; exit $1', "sh"]
    for status in ("0", "1"):
        result = make(tmp_path, "exec", [*command, status], env=env, declared=("TOKEN",)).run({}, CONTEXT)
        assert "declared-value" not in f"{result}"
        assert "a known secret in the output was masked" in result.warnings
