"""Reports: complete, well-formed, without secrets, and without anything that a build service would obey."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.cli.cases.conftest import CALL

TOKEN = "agtok-0123456789abcdefghijklmnop"
KEY = "FIRSTLINEOFKEY\nSECONDLINEOFKEY  THIRDPART"
AGENT = """\
name: demo
model: m
instructions: You help.
tools:
  - name: look
    parameters: {type: object, properties: {x: {type: string}}}
    handler: {output: ok, env: [KEY]}
"""


@pytest.fixture
def reports(run, write, tmp_path):
    """Run one failing case whose agent says a text; return everything that was written anywhere."""

    def go(said: str, **env: str) -> dict[str, str]:
        write("demo.yaml", AGENT)
        steps = [{"call": {"look": {"x": said}}}, {"say": said}]
        case = {"name": "a", "input": "hi", "local": steps, "expect": {"answer": "bye", "never": "look"}}
        write("test_demo.yaml", json.dumps({"agent": "demo.yaml", "cases": [case]}))
        flags = ["--junit", "out.xml", "--html", "out.html"]
        secrets = {"AGENT_TOKEN": TOKEN, "KEY": KEY}
        shown = run("test", "test_demo.yaml", *flags, env={**secrets, **env}, exit=1)
        as_json = run("test", "test_demo.yaml", "--json", env=secrets, exit=1).stdout
        found = {"stdout": shown.stdout, "stderr": shown.stderr, "json": as_json}
        names = ["out.xml", "out.html", "summary.md"]
        return found | {name: (tmp_path / name).read_text() for name in names if (tmp_path / name).exists()}

    return go


@pytest.mark.parametrize("build", ["github", "azure"])
@pytest.mark.parametrize("said", [KEY, "x" * 390 + TOKEN, "x" * 180 + TOKEN, "a " + TOKEN])
def test_no_report_shows_a_secret_or_a_part_of_one(reports, build, said, tmp_path) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    found = reports(said, **(env if build == "github" else {"TF_BUILD": "True"}))
    assert len(found) == (6 if build == "github" else 5)
    for name, text in found.items():
        assert "FIRSTLINE" not in text, name
        assert "agtok-0" not in text, name
    assert "***" in found["out.xml"]


def test_a_wrong_case_is_told_beside_the_others_and_without_secrets(check, tmp_path) -> None:
    cases = f"  - {{name: a, input: hi, repeat: 0, {TOKEN}: 1}}\n  - {{name: b, input: hi, local: [{{say: x}}]}}\n"
    ran = check(cases, "--junit", "out.xml", env={"AGENT_TOKEN": TOKEN}, exit=3)
    for told in (ran.stdout, (tmp_path / "out.xml").read_text()):
        assert "no key ***" in told
        assert TOKEN not in told
    assert "1 passed, 1 could not run" in ran.stdout


def test_of_a_long_error_the_end_is_shown_where_it_says_what_went_wrong(check) -> None:
    failing = f"{{exec: [python3, -c, 'raise KeyError(\"Limo\")  # {'x' * 300}']}}"
    case = f"  - {{name: a, input: hi, local: {CALL}, expect: {{answer: no}}}}\n"
    assert "KeyError: 'Limo'" in check(case, handler=failing, exit=1).stdout


def test_control_characters_leave_the_junit_file_well_formed(reports) -> None:
    text = "bell \x07 null-like \ufffe \uffff end ]]> <b>"
    root = ET.fromstring(reports(text)["out.xml"])  # noqa: S314  # ours
    failure = root.find("./testsuite/testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "\\x07" in failure.text
    assert "run it alone: agentfn test test_demo.yaml::a" in failure.text


@pytest.mark.parametrize(
    "command", ["::error::gotcha", "##vso[task.complete result=Succeeded;]", "x\n::warning::gotcha"]
)
def test_what_an_agent_says_is_no_command_to_a_build_service(reports, command) -> None:
    found = reports(command, TF_BUILD="True")
    for name in ("stdout", "stderr"):
        lines = [line for line in found[name].splitlines() if not line.startswith("##vso[task.logissue type=error;")]
        assert not [line for line in lines if line.lstrip().startswith("::") or "##vso[" in line], found[name]


def test_an_annotation_names_the_file_from_the_root_of_the_repository(check, tmp_path) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path.parent)}
    ran = check("  - {name: a, input: hi, local: [{say: x}], expect: {answer: y}}\n", env=env, exit=1)
    assert f"::error file={tmp_path.name}/test_demo.yaml,line=3,title=FAILED%3A a::" in ran.stderr


def test_an_agent_cannot_write_into_the_page(reports) -> None:
    page = reports("</script><script>alert(1)</script><img src=x onerror=alert(1)>")["out.html"]
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_two_reports_do_not_share_a_file(check) -> None:
    ran = check("  - {name: a, input: hi, local: [{say: x}]}\n", "--junit", "out", "--html", "./out", exit=2)
    assert "--junit and --html both write out" in ran.stderr


@pytest.mark.parametrize("flags", [["--junit", "/dev/null/x.xml"], ["--html", "."], ["--record", "/dev/null/x"]])
def test_a_report_that_cannot_be_written_is_told_before_anything_runs(check, run, flags) -> None:
    ran = check("  - {name: a, input: hi, local: [{say: x}]}\n", *flags, exit=2)
    assert "cannot be written" in ran.stderr
    assert not (run.home / "runs").exists()


def test_a_summary_that_cannot_be_written_changes_no_verdict(check) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "/nowhere/at/all"}
    ran = check("  - {name: a, input: hi, local: [{say: x}], expect: {answer: y}}\n", env=env, exit=1)
    assert "summary cannot be written" in ran.stderr
