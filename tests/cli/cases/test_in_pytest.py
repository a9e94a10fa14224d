"""pytest collects test files of agents, tells failed from could not run, and gives tests the embedded service."""

from __future__ import annotations

import subprocess
import sys

import pytest

FILE = """\
agent: demo.yaml
cases:
  - {name: good, input: hi, local: [{say: hello}], expect: {calls: []}}
  - {name: bad, input: hi, local: [{say: hello}], expect: {answer: bye}}
  - {name: wrong, input: hi, repeat: 0}
"""
PROGRAM = """\
from openai import OpenAI
from agentfn.testing import assert_calls

def test_asks(agentfn_service):
    agentfn_service.play([{"call": {"f": {"x": 1}}}])
    function = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    response = OpenAI().responses.create(model="m", input="hi", tools=[function])
    assert_calls(response.output, [{"name": "f", "arguments": {"x": 1}}], order="exact")
    assert agentfn_service.requests[-1]["path"] == "/v1/responses"
"""


@pytest.fixture
def pytest_run(run, tmp_path):
    def go(*args: str) -> str:
        command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", *args]
        done = subprocess.run(
            command, capture_output=True, text=True, env=run.env, cwd=tmp_path, timeout=60, check=False
        )
        return done.stdout + done.stderr

    return go


@pytest.mark.parametrize("flags", [("-n0",), ("-n2",)])
def test_pytest_tells_passed_failed_and_could_not_run_apart(pytest_run, write, agent, flags, run) -> None:
    agent()
    write("test_demo.yaml", FILE)
    told = pytest_run(*flags, ".")
    assert "1 failed, 1 passed, 1 error" in told
    assert 'expected  "bye"' in told
    assert "repeat is a number from 1 on" in told
    assert not list((run.home / "runs").glob("*"))


def test_files_of_other_tools_are_left_alone(pytest_run, write) -> None:
    write("test_other.yaml", "cases: [1, 2]\n")
    write("test_more.yaml", "stages: [{name: x}]\n")
    assert "no tests ran" in pytest_run("-n0", ".")


def test_tests_in_python_are_given_the_service(pytest_run, write) -> None:
    write("test_program.py", PROGRAM)
    assert "1 passed" in pytest_run("-n0", "-W", "error", ".")
