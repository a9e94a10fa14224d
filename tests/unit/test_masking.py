"""Known secrets are masked in every form in which they are written."""

from __future__ import annotations

import json
from urllib.parse import quote

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
