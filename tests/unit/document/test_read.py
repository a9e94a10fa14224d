"""YAML by the rules of 1.2, with positions; what is wrong is a finding at its place, never another exception."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.document.read import Document, parse_document
from agentfn.errors import InvalidFileError


def read(text: str | bytes) -> Document:
    return parse_document(text, "f.yaml")


def findings(text: str | bytes) -> list[str]:
    with pytest.raises(InvalidFileError) as caught:
        read(text)
    return [str(finding) for finding in caught.value.findings]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("y", "y"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"),
        ("22:22", "22:22"),
        ("0777", "0777"),
        ("01701", "01701"),
        ("1_000", "1_000"),
        ("'1.10'", "1.10"),
        ("!!str 12", "12"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-7", -7),
        ("0o14", 12),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("7301244019558000123", 7301244019558000123),
    ],
)
def test_a_plain_scalar_is_what_its_author_sees(written: str, value: object) -> None:
    found = read(f"a: {written}\n").value["a"]
    assert found == value
    assert type(found) is type(value)


def test_a_number_keeps_the_text_it_was_written_with() -> None:
    document = read("a: [1.10, 0x1F, 'x']\n")
    assert [document.text(("a", index)) for index in range(3)] == ["1.10", "0x1F", None]


def test_everything_knows_where_it_stands() -> None:
    document = read("a:\n  - b: c\n    d:   e\n")
    assert document.position(()) == (1, 1)
    assert document.position(("a", 0, "d")) == (3, 10)
    assert document.key_position(("a", 0, "d")) == (3, 5)
    assert document.position(("a", 0, "missing")) == (2, 5), "the nearest value around it"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", 'f.yaml:3:1: duplicate-key: key "a" at lines 1 and 3'),
        ("a:\n\t- b\n", "f.yaml:2:1: yaml-tab: tab character used for indentation; use spaces"),
        ("a: [1,\nb: 2\n", "yaml-syntax"),
        ("a: {x: such as #12 or #13}\n", 'on line 1 the text from " #" on was taken as a comment, quote it'),
        ("a: {{ x }}\n", "f.yaml:1:5: yaml-key: looks like a template"),
        ("a: &x [*x]\n", "f.yaml:1:8: yaml-alias: *x refers to itself"),
        ("a: *nope\n", "yaml-alias"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: yaml-documents"),
        ("a: !!python/object:os.system x\n", "f.yaml:1:4: yaml-tag"),
        ("a: .inf\n", "f.yaml:1:4: yaml-number"),
        ("a: 1e999\n", "f.yaml:1:4: yaml-number"),
        ("", "f.yaml:1:1: empty"),
        ("# only a comment\n", "empty"),
        ("a: b\x07\n", "yaml-character: character U+0007"),
        ("[" * 100 + "]" * 100, "yaml-depth"),
        ("<<: 1\n? [a, b]\n: c\n", "yaml-key"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    assert any(told in finding for finding in findings(text)), findings(text)


def test_a_file_that_is_not_utf8_names_the_byte() -> None:
    assert findings(b"a: b\nc: caf\xe9\n") == ["f.yaml:2:7: not-utf-8: byte 0xe9 is not UTF-8"]


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert "yaml-size" in findings("\n".join(lines))[0]


def test_merge_keys_and_aliases_work() -> None:
    document = read("x-base: &base {type: string, description: A city}\nc:\n  <<: *base\n  description: Where\n")
    assert document.value["c"] == {"type": "string", "description": "Where"}
    assert document.position(("c",)) == (3, 3)


def test_a_bom_and_windows_line_ends_change_nothing() -> None:
    assert read("\ufeffa: |\r\n  one\r\n  two\r\n").value == {"a": "one\ntwo\n"}


@pytest.mark.parametrize("text", ["a: Look up ticket #12 in\n", "- queue #7\n"])
def test_a_word_that_was_cut_off_as_a_comment_is_warned_about(text: str) -> None:
    (warning,) = read(text).warnings
    assert warning.rule == "yaml-comment"
    assert warning.severity == "warning"


@pytest.mark.parametrize("text", ["a: b # a comment\n", "a: 'Look up #12'\n", "# whole line\na: b\n"])
def test_an_ordinary_comment_is_not(text: str) -> None:
    assert read(text).warnings == []


def test_json_files_are_read_as_json() -> None:
    assert parse_document('{"a":\t[1]}', "f.json").value == {"a": [1]}
    for text in ('{"a": 1, "a": 2}', '{"a": NaN}', "{'a': 1}", '{"a": 1', "[" * 100_000):
        with pytest.raises(InvalidFileError):
            parse_document(text, "f.json")


@given(st.text())
def test_any_text_is_a_document_or_findings_inside_it(text: str) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    try:
        document = read(text)
    except InvalidFileError as exc:
        for finding in exc.findings:
            assert 0 <= finding.line <= len(lines) + 1
            assert finding.column >= 0
    else:
        assert 1 <= document.position(())[0] <= len(lines) + 1


@given(st.binary())
def test_any_bytes_too(data: bytes) -> None:
    try:
        read(data)
    except InvalidFileError as exc:
        assert exc.findings


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_is_read_to_the_same_value_as_json(value: object) -> None:
    assert parse_document(json.dumps(value), "f.json").value == value
