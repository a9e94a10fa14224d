"""`log --as-case`: what was really said and asked for becomes a test file, which passes as it is and notices changes."""

from __future__ import annotations

import pytest

from agentfn.settings import PROTOCOLS
from tests.cli.cases.conftest import TRAVEL, WEATHER

SCENARIO = """\
- {when: {message: Oslo}, call: {get_weather: {city: Oslo}}}
- {when: {output: rain in Oslo}, call: {get_weather: {city: Bergen}, get_time: {city: Bergen}}}
- {when: {output: rain in Bergen}, say: 'Rain: #1, everywhere.'}
- {when: {message: Rome}, call: {get_weather: {city: Rome}}}
- {when: {output: no station}, say: Nobody knows.}
- {when: {message: leave}, call: {get_time: {city: Oslo}, decide: {}}}
- {when: {output: approved}, say: Enjoy.}
- {say: 'NO', repeat: forever}
"""


@pytest.fixture(params=PROTOCOLS)
def face(request: pytest.FixtureRequest) -> list[str]:
    return ["--protocol", request.param]


@pytest.fixture
def talk(run, write):
    """Say things in one conversation and return its id; the last may leave calls that wait."""

    def say(*messages: str, flags: list[str], exit: int = 0, scenario: str = SCENARIO) -> str:  # noqa: A002  # as for `run`
        write("demo.yaml", TRAVEL)
        write("weather.py", WEATHER)
        write("s.yaml", scenario)
        more: list[str] = ["--scenario", "s.yaml"]
        for number, message in enumerate(messages, 1):
            code = exit if number == len(messages) else 0
            ran = run("chat", "demo.yaml", message, "--json", *more, *flags, exit=code)
            more = ["-c", str(ran.data["conversation"])]
        return more[1]

    return say


@pytest.fixture
def as_case(run, write):
    """Write a conversation's test file and return its case's data from a run, and the file's text."""

    def test(conversation: str, *flags: str):
        text = run("log", conversation, "--as-case").stdout
        write("test_made.yaml", text)
        (case,) = run("test", "test_made.yaml", "--json", *flags).data["cases"]
        return case, text

    return test


def turns_of(case) -> list[tuple[str, str, list[object]]]:
    (attempt,) = case["attempts"]
    return [
        (
            turn["message"],
            turn["answer"],
            [(c["function"], c["arguments"], c["step"], c["output"] or c["error"]) for c in turn["calls"]],
        )
        for turn in attempt["turns"]
    ]


OSLO = (
    "Oslo?",
    "Rain: #1, everywhere.",
    [
        ("get_weather", {"city": "Oslo"}, 1, "rain in Oslo"),
        ("get_weather", {"city": "Bergen"}, 2, "rain in Bergen"),
        ("get_time", {"city": "Bergen"}, 2, "10:00"),
    ],
)


def test_one_turn_happens_again_without_its_handlers(run, talk, as_case, face) -> None:
    conversation = talk("Oslo?", flags=face)
    ran = (run.folder / "ran.txt").read_text()
    case, text = as_case(conversation, *face)
    assert turns_of(case) == [OSLO]
    assert conversation in text.splitlines()[0]
    assert (run.folder / "ran.txt").read_text() == ran


def test_many_turns_happen_again_with_the_handler_that_failed(talk, as_case, face) -> None:
    case, _ = as_case(talk("no: 1.10", "Oslo?", "And Rome?", "no: 1.10", flags=face), *face)
    said: tuple[str, str, list[object]] = ("no: 1.10", "NO", [])
    failed = ("get_weather", {"city": "Rome"}, 1, "exit 1: no station")
    assert turns_of(case) == [said, OSLO, ("And Rome?", "Nobody knows.", [failed]), said]
    assert case["attempts"][0]["turns"][2]["calls"][0]["state"] == "failed"


def test_a_call_that_waits_is_expected_to_wait(talk, as_case, face) -> None:
    case, _ = as_case(talk("hello", "May I leave?", flags=face, exit=8), *face)
    (attempt,) = case["attempts"]
    assert [turn["state"] for turn in attempt["turns"]] == ["ended", "pending"]
    last = attempt["turns"][1]["calls"]
    assert [call["function"] for call in last] == ["get_time", "decide"]
    assert last[1]["state"] == "pending"


def test_a_call_that_a_person_answered_is_answered_so(run, talk, as_case, face) -> None:
    conversation = talk("May I leave?", flags=face, exit=8)
    run("respond", conversation, "--output", "approved by Lee")
    case, _ = as_case(conversation, *face)
    calls = [("get_time", {"city": "Oslo"}, 1, "10:00"), ("decide", {}, 1, "approved by Lee")]
    assert turns_of(case) == [("May I leave?", "Enjoy.", calls)]


def test_a_case_of_one_kind_of_service_passes_on_the_others(talk, as_case, face) -> None:
    conversation = talk("Oslo?", "And Rome?", flags=face)
    seen = [turns_of(as_case(conversation, "--protocol", protocol)[0]) for protocol in PROTOCOLS]
    assert seen[0] == seen[1] == seen[2]


def test_an_agent_that_asks_for_something_else_fails_it(run, write, talk, as_case, serve) -> None:
    as_case(talk("Oslo?", flags=[]))
    for other, told in (
        (SCENARIO.replace("get_weather: {city: Bergen}", "get_weather: {city: Voss}"), "Voss"),
        (SCENARIO.replace(", get_time: {city: Bergen}}", "}"), "get_time was not asked for"),
        ("- {say: It will rain.}\n", "get_weather was not asked for"),
    ):
        served = serve("--scenario", write("other.yaml", other))
        ran = run("test", "test_made.yaml", "--backend", "foundry", env=served.env, exit=1)
        assert told in ran.stdout


def test_a_file_in_another_folder_still_names_the_agent(run, talk, tmp_path) -> None:
    conversation = talk("Oslo?", flags=[])
    folder = tmp_path / "cases" / "made"
    folder.mkdir(parents=True)
    text = run("log", conversation, "--as-case", cwd=folder).stdout
    assert "\nagent: ../../demo.yaml\n" in text
    (folder / "test_made.yaml").write_text(text)
    for place in (folder, tmp_path, tmp_path / "cases"):
        assert "1 passed in" in run("test", ".", cwd=place).stdout


@pytest.mark.parametrize(
    "message",
    ["NO", "1.10", "a: b # c", "'x' \"y\"", "{{message}} ${HOME}", "two\n  lines\n\n", "é ✅ \u202e!", " blank "],
    ids=ascii,
)
def test_a_message_is_said_again_to_the_letter(talk, as_case, message) -> None:
    case, _ = as_case(talk(message, flags=[]))
    assert [turn["message"] for turn in case["attempts"][0]["turns"]] == [message]


def test_a_secret_that_was_said_is_not_in_the_file(run, talk, as_case) -> None:
    token = "agtok-0123456789abcdef"
    run.env["AGENT_TOKEN"] = token
    conversation = talk(f"My token is {token}, and I go to Oslo.", flags=[])
    case, text = as_case(conversation)
    assert "agtok" not in text
    assert case["verdict"] == "passed"


def test_a_turn_that_failed_is_expected_to_fail_and_a_parameter_called_like_a_word_is_meant(run, write) -> None:
    parameters = "{type: object, properties: {equals: {type: string}, regex: {type: string}}}"
    tool = f"{{name: look, description: Looks., parameters: {parameters}, handler: {{output: ok}}}}"
    write("demo.yaml", f"name: demo\nmodel: m\ninstructions: You help.\ntools: [{tool}]\n")
    write("s.yaml", "- call: {look: {equals: x, regex: y}}\n- fail: {code: server_error, message: no luck (today)}\n")
    conversation = run("chat", "demo.yaml", "hi", "--scenario", "s.yaml", "--json", exit=1).data["conversation"]
    text = run("log", conversation, "--as-case").stdout
    write("test_made.yaml", text)
    run("test", "test_made.yaml")
    for old, new in (("no luck", "bad luck"), ("regex: y", "regex: z")):
        assert text.count(old) == 2
        write("test_made.yaml", new.join(text.rsplit(old, 1)))
        run("test", "test_made.yaml", exit=1)


def test_what_came_in_one_response_and_what_never_ran_happen_again(run, write, talk, as_case, face) -> None:
    """A text beside a call, arguments that do not fit, and arguments that look like a scenario's place."""
    scenario = """\
- {say: Let me see., call: {get_weather: {town: nowhere}}}
- {call: [{name: get_weather, raw: '{"city": "{{message}}"}'}]}
- {say: 'Done.'}
"""
    conversation = talk("hi", flags=face, scenario=scenario)
    case, text = as_case(conversation, *face)
    assert text.count("say:") == 2
    (turn,) = case["attempts"][0]["turns"]
    assert [(call["function"], call["arguments"]) for call in turn["calls"]] == [
        ("get_weather", {"town": "nowhere"}),
        ("get_weather", {"city": "{{message}}"}),
    ]


def test_an_answer_that_came_only_in_part_is_expected_to_fail(talk, as_case, face) -> None:
    scenario = "- {call: {get_time: {city: Oslo}}}\n- {incomplete: max_output_tokens, say: half}\n"
    case, _ = as_case(talk("hi", flags=face, scenario=scenario, exit=1), *face)
    assert case["attempts"][0]["turns"][0]["failure"]


def test_what_makes_no_case_is_told(run, write) -> None:
    write("demo.yaml", TRAVEL)
    write("s.yaml", "- fail: {code: server_error, message: no luck}\n- {say: fine, repeat: forever}\n")
    conversation = run("chat", "demo.yaml", "hi", "--scenario", "s.yaml", "--json", exit=1).data["conversation"]
    run("chat", "demo.yaml", "again", "-c", conversation)
    ran = run("log", conversation, "--as-case", "--json", exit=1)
    assert ran.json["errors"][0]["code"] == "no_case"
    assert "no answer came to 'hi'" in ran.json["errors"][0]["message"]
    run("log", "conv_nowhere", "--as-case", exit=1)
