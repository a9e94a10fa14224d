"""Where the token comes from, in which order, and what is said where there is none."""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.backends.credentials import Credential, foundry_credential, token_facts
from agentfn.errors import NotAuthorisedError

if TYPE_CHECKING:
    from pathlib import Path

AZ = """\
#!{python}
import json, pathlib, sys
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
{does}
"""


@pytest.fixture
def az(tmp_path: Path) -> Any:
    """Put a program `az` on a PATH of its own; returns its folder."""

    def make(does: str) -> Path:
        program = tmp_path / "az"
        program.write_text(AZ.format(python=sys.executable, does=does))
        program.chmod(0o755)
        return tmp_path

    return make


def test_agent_token_comes_first_and_az_is_not_asked(az):
    folder = az("print('from-az')")
    credential = foundry_credential({"AGENT_TOKEN": " tok-1\n", "PATH": str(folder)}, loopback=False)
    assert (credential.token(), credential.origin) == ("tok-1", "AGENT_TOKEN")
    assert credential.secrets() == ["tok-1"]
    assert credential.renew() is False
    assert not (folder / "calls").exists()


def test_this_machine_needs_no_account(az):
    folder = az("print('from-az')")
    assert foundry_credential({"PATH": str(folder)}, loopback=True).token() == "local"
    assert foundry_credential({"AGENT_TOKEN": "tok-1"}, loopback=True).token() == "tok-1"
    assert not (folder / "calls").exists()


def test_az_is_asked_as_the_documentation_says_and_once(az):
    folder = az("print('from-az')")
    credential = foundry_credential({"AGENT_TOKEN": "  ", "PATH": str(folder)}, loopback=False)
    assert [credential.token(), credential.token()] == ["from-az"] * 2
    assert credential.origin == "az account get-access-token"
    (call,) = (folder / "calls").read_text().splitlines()
    scope = ["--scope", "https://ai.azure.com/.default"]
    assert json.loads(call) == ["account", "get-access-token", *scope, "--query", "accessToken", "-o", "tsv"]
    assert credential.renew() is False, "the same token again is no new one"


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("sys.exit('ERROR: Please run az login to setup account.')", "Please run az login"),
        ("sys.exit(3)", "exit 3"),
        ("", "exit 0"),
        ("sys.stderr.buffer.write(b'\\xff kaputt'); sys.exit(1)", "kaputt"),
        ("print('two words')", "holds blanks"),
    ],
)
def test_an_az_that_gives_no_token_is_quoted_with_what_to_do(az, does, told, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)  # as where the extra is not installed
    credential = foundry_credential({"PATH": str(az(does))}, loopback=False)
    with pytest.raises(NotAuthorisedError, match=told) as caught:
        credential.token()
    assert "az login" in (caught.value.hint or "")


def test_an_az_that_cannot_be_started_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    program = tmp_path / "az"
    program.write_text("#!/nowhere/at/all\n")
    program.chmod(0o755)
    with pytest.raises(NotAuthorisedError, match="the Azure CLI gave no token"):
        foundry_credential({"PATH": str(tmp_path)}, loopback=False).token()


def test_without_anything_the_three_ways_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(NotAuthorisedError) as caught:
        foundry_credential({"PATH": str(tmp_path)}, loopback=False).token()
    assert caught.value.code == "no_token"
    for way in ("AGENT_TOKEN", "Azure CLI", "agentfn[azure]"):
        assert way in (caught.value.hint or "")


def test_the_next_source_is_asked_where_the_first_has_nothing():
    def nothing() -> str:
        raise NotAuthorisedError("not signed in")

    credential = Credential(("one", nothing), ("two", lambda: "tok-2"))
    assert (credential.token(), credential.origin) == ("tok-2", "two")


@pytest.mark.parametrize("token", ["Bearer x", "a\nb", "tök", '{"accessToken": "x"}', "\x00"])
def test_what_cannot_be_a_token_is_refused_without_showing_it(token):
    with pytest.raises(NotAuthorisedError, match="the token from AGENT_TOKEN holds") as caught:
        foundry_credential({"AGENT_TOKEN": token}, loopback=False).token()
    assert token not in caught.value.message


def jwt(claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.sig"


def test_a_token_tells_who_it_is_for_and_until_when():
    assert token_facts(jwt({"upn": "a@b.c", "exp": 5, "aud": "x"})) == ("a@b.c", 5.0, "x")
    assert token_facts(jwt({"appid": "app-1", "exp": "soon"})) == ("app-1", None, None)


@pytest.mark.parametrize("token", ["", "opaque", "a.b", "a.%%.c", "a.bnVsbA.c", jwt([1])])
def test_what_is_no_json_web_token_tells_nothing(token):
    assert token_facts(token) == (None, None, None)


claims = st.dictionaries(st.sampled_from(["upn", "exp", "aud"]), st.none() | st.integers() | st.lists(st.text()))


@given(st.text() | claims.map(jwt))
def test_any_token_is_survived(token):
    token_facts(token)
