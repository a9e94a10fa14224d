"""A handler sees what a process needs to start, what it declares, where it is called from, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agentfn.handlers.environment import handler_environment
from agentfn.model import Call
from tests.unit.handlers.making import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

TOLD = {
    "AGENTFN_FUNCTION": "f",
    "AGENTFN_CALL_ID": "call_A",
    "AGENTFN_CONVERSATION_ID": "conv_1",
    "AGENTFN_TURN_ID": "turn_1",
    "AGENTFN_BACKEND": "local",
}
STARTS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C",
    "LANGUAGE": "en",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "TMPDIR": "/scratch",
    "USER": "me",
    "LOGNAME": "me",
    "SHELL": "/bin/sh",
}
SECRETS = {"AGENT_TOKEN": "tok-SECRET", "OPENAI_API_KEY": "sk-SECRET", "AZURE_CLIENT_SECRET": "s", "AGENTFN_HOME": "/h"}


def seen(env: Mapping[str, str], *declared: str, windows: bool = False) -> dict[str, str]:
    return handler_environment(env, declared, CONTEXT, windows=windows)


def test_credentials_stay_out_and_what_starts_a_process_comes_in() -> None:
    assert seen(STARTS | SECRETS) == STARTS | TOLD


def test_a_declared_variable_comes_in_a_credential_too() -> None:
    assert seen(SECRETS, "AGENT_TOKEN", "NOT_SET") == {"AGENT_TOKEN": "tok-SECRET"} | TOLD


def test_case_counts_but_on_windows() -> None:
    env = {"my_token": "other", "MY_TOKEN": "declared", "Path": "x", "SystemRoot": "C:\\Windows"}
    assert seen(env, "MY_TOKEN") == {"MY_TOKEN": "declared"} | TOLD
    assert seen(env, "My_Token", windows=True) == env | TOLD


def test_a_variable_of_the_same_name_does_not_replace_what_we_tell() -> None:
    assert seen({"AGENTFN_CALL_ID": "forged"}, "AGENTFN_CALL_ID")["AGENTFN_CALL_ID"] == "call_A"


def test_ids_that_no_process_can_be_given_are_made_fit() -> None:
    context = CONTEXT._replace(call=Call("a\0b\ud83d", "f", "{}"))
    assert handler_environment({}, (), context)["AGENTFN_CALL_ID"] == "a\ufffdb\ufffd"


@given(st.dictionaries(st.text(min_size=1), st.text()), st.lists(st.text(min_size=1)), st.booleans())
def test_nothing_comes_in_that_is_neither_needed_nor_declared(
    env: dict[str, str], declared: list[str], windows: bool
) -> None:
    extra = set(seen(env, *declared, windows=windows)) - set(TOLD)
    if not windows:
        assert all(name in STARTS or name.startswith("LC_") or name in declared for name in extra)
    assert all(env[name] == seen(env, *declared, windows=windows)[name] for name in extra)
