"""Known secrets are masked in every form in which they are written."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.masking import Masker, looks_secret

SECRET = 'tok-"SECRET"/0123'


def test_every_way_of_writing_a_secret_is_masked() -> None:
    masker = Masker([SECRET])
    for text in (SECRET, json.dumps({"key": SECRET}), quote(SECRET, safe=""), f"a{SECRET}b{SECRET}c"):
        assert "SECRET" not in masker.mask(text)
    assert masker.mask_json({"a": [SECRET], SECRET: 1}) == {"a": ["***"], "***": 1}
    assert masker.found(f"x {SECRET}")


def test_short_values_are_no_secrets() -> None:
    assert Masker(["1", "short", ""]).mask("1 short") == "1 short"


def test_a_secret_inside_another_leaves_nothing_behind() -> None:
    assert Masker(["password", "password-long"]).mask("password-long") == "***"


def test_what_merely_looks_like_a_secret_is_named_and_not_changed() -> None:
    assert looks_secret("token ghp_" + "a" * 36) == ["a GitHub token"]
    assert looks_secret("AccountKey=" + "a" * 40) == ["a storage account key"]
    assert looks_secret("nothing here") == []


@given(st.text(min_size=8), st.text(), st.text())
def test_no_text_around_it_hides_a_secret(secret: str, before: str, after: str) -> None:
    masked = Masker([secret]).mask(before + secret + after)
    assert masked != before + secret + after or "***" in secret


@given(st.text(st.characters(max_codepoint=126, min_codepoint=33), min_size=8), st.binary(), st.binary())
def test_base64_of_whatever_holds_a_secret_does_not_show_it(secret: str, before: bytes, after: bytes) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        masked = Masker([secret]).mask(text)
        assert "***" in masked
        shown = base64.b64decode(text.replace("-", "+").replace("_", "/"))
        assert secret.encode() in shown, "the test itself must have had something to find"


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(json.dumps({"key": SECRET})),
        quote(SECRET),
        quote_plus(SECRET),
        quote(SECRET, safe="").replace("%2F", "%2f"),
        f"Basic {base64.b64encode(b'user:' + SECRET.encode()).decode()}",
    ],
)
def test_further_ways_of_writing_a_secret_are_masked(written: str) -> None:
    masked = Masker([SECRET]).mask(written)
    assert "SECRET" not in masked
    assert "***" in masked


def test_a_secret_is_found_without_the_line_end_that_its_variable_has() -> None:
    assert Masker(["0123456789\n"]).mask("<0123456789>") == "<***>"
    assert Masker(["  short \n"]).mask("short") == "short"


def test_a_variable_that_is_no_text_breaks_nothing() -> None:
    assert Masker(["secret-\udcff-bytes"]).mask("a secret-\udcff-bytes") == "a ***"


def test_more_secrets_make_another_masker() -> None:
    one = Masker(["first-secret"])
    both = one.with_more(["second-secret"])
    assert both.mask("first-secret second-secret") == "*** ***"
    assert one.mask("second-secret") == "second-secret"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sk-proj-" + "a" * 30, "an OpenAI key"),
        ("AKIA" + "A" * 16, "an AWS access key"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "a JSON web token"),
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("github_pat_" + "a" * 40, "a fine-grained GitHub token"),
        ("xoxb-" + "1" * 12, "a Slack token"),
        ('{"Password": "hunter22"}', "a password"),
    ],
)
def test_each_likely_form_is_named(text: str, name: str) -> None:
    assert looks_secret(f"x {text} y") == [name]
