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
ODD = """\
cases:
  - {name: tagged, tags: [skip, "@smoke"], agent: demo.yaml, input: hi, local: [{say: hello}], expect: {answer: bye}}
  - {name: down, agent: demo.yaml, input: my agtok-0123456789, local: [{error: {status: 400, code: bad}}]}
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


def test_no_tag_changes_a_verdict_and_no_secret_is_shown(pytest_run, write, agent, run) -> None:
    agent()
    write("test_odd.yaml", ODD)
    run.env["AGENT_TOKEN"] = "agtok-0123456789"
    told = pytest_run("-n0", ".")
    assert "1 failed, 1 error" in told
    assert "run it alone: agentfn test" in told
    assert "agtok-0123456789" not in told
    assert "Traceback" not in told
    assert "pytest_plugin" not in told
    assert "1 failed, 1 deselected" in pytest_run("-n0", "-k", "skip", ".")


@pytest.mark.parametrize(
    "text", ["agnet: demo.yaml\ncases: [{name: a, input: hi}]\n", "cases:\n  - name: [\n    input: hi\n"]
)
def test_a_file_with_mistakes_is_an_error_rather_than_left_out(pytest_run, write, agent, text) -> None:
    agent()
    write("test_wrong.yaml", text)
    assert "1 error" in pytest_run("-n0", ".")


@pytest.mark.parametrize(
    "text",
    [
        "agent: demo.yaml\ndefaults: {input: hello}\ncases: [{name: a, local: [{say: no}]}]\n",
        "agent: demo.yaml\ncases: [{name: a, inptu: hello}]\n",
    ],
)
def test_the_files_that_pytest_takes_are_those_that_the_command_takes(pytest_run, write, agent, text) -> None:
    agent()
    write("test_one.yaml", text)
    assert "no tests ran" not in pytest_run("-n0", ".")
    write("smoke.yaml", text)
    assert "no tests ran" not in pytest_run("-n0", "smoke.yaml")


def test_files_of_other_tools_are_left_alone(pytest_run, write) -> None:
    write("test_other.yaml", "cases: [1, 2]\n")
    write("test_more.yaml", "stages: [{name: x}]\n")
    write("test_curl.yaml", "agent: Mozilla/5.0\ncases: [{url: x}]\n")
    assert "no tests ran" in pytest_run("-n0", ".")


def test_tests_in_python_are_given_the_service(pytest_run, write) -> None:
    write("test_program.py", PROGRAM)
    assert "1 passed" in pytest_run("-n0", "-W", "error", ".")
