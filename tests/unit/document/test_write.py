"""What is written as YAML is read back as the same value, whatever it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentfn.document.read import parse_document
from agentfn.document.write import to_yaml

#: Surrogates are no text, and cannot be written to a file.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    [
        "NO",
        "on",
        "1.10",
        "0777",
        "2024-01-01",
        "~",
        "",
        " ",
        "a: b",
        "- x",
        "# no",
        "'",
        '"',
        "{{x}}",
        "line\nline\n",
        "\n x",
        "\t",
        "0x1F",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@given(VALUES)
def test_a_value_survives(value) -> None:
    assert repr(parse_document(to_yaml(value), "written.yaml").value) == repr(value)
