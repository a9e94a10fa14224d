"""What each matcher word means, at any depth, and what a difference says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfn.testing import assert_calls, differences, matching

FITS = [
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}),
    (1, 1.0),
    ([1, {"x": 1, "y": 2}], [1, {"x": 1}]),
    ("Aquarius", {"regex": "^Aqua"}),
    ("The  OTTER\nswims", {"contains": "otter swims"}),
    ("an otter and a book", {"contains": ["book", "otter"]}),
    (3, {"one_of": [1, 2, 3]}),
    ({"n": 3}, {"n": {"one of": [{"range": [5, 6]}, 3]}}),
    (3, {"type": "integer"}),
    (None, {"type": ["string", "null"]}),
    (2.5, {"range": {"min": 2}}),
    (2.5, {"range": [2.5, 2.5]}),
    ({"a": [1, 2]}, {"schema": {"properties": {"a": {"maxItems": 2}}}}),
    ({"a": 1}, {"a": {"ignore": True}, "b": {"ignore": True}}),
    ({"a": 1}, {"b": {"absent": True}}),
    ([3, 1, 2], {"unordered": [1, 2, 3]}),
    ([{"id": 2, "x": 0}, {"id": 1}], {"unordered": [{"id": 1}, {"id": 2}]}),
    ({"a": 1, "b": {"c": 2}}, {"exact": {"a": 1, "b": {"c": {"type": "integer"}}}}),
    ({"contains": 1}, {"equals": {"contains": 1}}),
    ('{"days": [{"sign": "Leo"}]}', {"json_path": {"$.days[0].sign": "Leo"}}),
    ({"days": []}, {"json_path": {"$.days[0]": {"absent": True}}}),
    ('{"a": 1}', {"json": {"a": 1}}),
    ({"body": '{"a": 1}'}, {"body": {"json_path": {"$.a": 1}}}),
    ("42", {"type": "string"}),
    ('{"a": 1, "b": 2}', {"a": 1}),
    ("abc", {"all_of": [{"regex": "a"}, {"regex": "c"}], "not": {"regex": "d"}}),
    ("x", {"not": "y"}),
]
DIFFERS = [
    ("NaN", {"range": [1, 2]}, "expected a number at least 1 and at most 2"),
    ({"a": 1}, {"a": 2}, "/a: expected 2, got 1"),
    ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "/a/b/1: expected 3, got 2"),
    ({}, {"a": 1}, "/a: expected 1, got nothing"),
    (True, 1, "expected 1, got true"),
    (0, False, "expected false, got 0"),
    ("1", 1, 'expected 1, got "1"'),
    (None, "", 'expected "", got null'),
    ([1], [1, 2], "expected [1, 2], got [1]"),
    ("Leo", {"regex": "^Aqua"}, 'expected a text with /^Aqua/, got "Leo"'),
    (5, {"regex": "5"}, "expected a text with /5/, got 5"),
    ({"a": 1, "b": 2}, {"exact": {"a": 1}}, "/b: expected nothing, got 2"),
    ({"a": {"x": 1, "y": 1}}, {"exact": {"a": {"x": 1}}}, "/a/y: expected nothing, got 1"),
    ({"a": '{"x": 1, "y": 1}'}, {"exact": {"a": {"json": {"x": 1}}}}, "/a/y: expected nothing, got 1"),
    ({"a": {"x": 1, "y": 1}}, {"exact": {"json_path": {"$.a": {"x": 1}}}}, "/a/y: expected nothing, got 1"),
    ("5", {"type": "integer"}, 'expected an integer, got "5"'),
    ("5", {"range": [1, 10]}, "expected a number"),
    ("5", {"one_of": [5]}, "expected one of 5"),
    (7, {"range": {"max": 6}}, "expected a number at most 6, got 7"),
    (True, {"type": "integer"}, "expected an integer, got true"),
    ([1, 1, 2], {"unordered": [1, 2, 2]}, "expected 2, got [1, 1, 2]"),
    ({}, {"a": {"not": 1}}, "/a: expected not 1, got nothing"),
    ({"a": 1}, {"a": {"absent": True}}, "/a: expected nothing, got 1"),
    ({"a": "x"}, {"a": {"type": "string", "regex": "y"}}, '/a: expected a text with /y/, got "x"'),
    ({"days": []}, {"json_path": {"$.days[0].sign": "Leo"}}, '$.days[0].sign: "Leo"'),
]


@pytest.mark.parametrize(("actual", "expected"), FITS)
def test_a_value_that_fits(actual, expected) -> None:
    assert differences(actual, expected) == []
    assert actual == matching(expected)


@pytest.mark.parametrize(("actual", "expected", "told"), DIFFERS)
def test_a_value_that_does_not_and_where_it_differs(actual, expected, told) -> None:
    assert any(told in str(difference) for difference in differences(actual, expected))
    assert actual != matching(expected)


def test_a_pattern_that_takes_for_ever_differs_rather_than_hangs() -> None:
    assert "in a time that ends" in str(differences("a" * 40 + "!", {"regex": "^(a+)+$"})[0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"regex": "("},
        {"type": "text"},
        {"range": [3, 1]},
        {"one_of": []},
        {"schema": {"type": 5}},
        {"contains": ""},
        {"ignore": False},
        {"json_path": {"$[": 1}},
        {1: 2},
        {"a": {"one_of": [{1: 2}]}},
    ],
)
def test_what_is_no_sensible_expectation_is_refused(wrong) -> None:
    with pytest.raises(ValueError, match=r"."):
        matching(wrong)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab", max_size=3)
)
#: No key is a matcher word.
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("uvw"), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_fits_itself_however_it_is_written(value) -> None:
    for expected in (value, {"equals": value}, {"exact": value}, {"one_of": [value]}, {"not": {"not": value}}):
        assert matching(expected).differences(value) == []


@given(VALUES, VALUES)
def test_not_is_the_opposite(value, other) -> None:
    assert bool(differences([value], [other])) != bool(differences([value], [{"not": other}]))


@given(st.lists(VALUES, max_size=4), st.randoms())
def test_unordered_fits_every_order(values, random) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    if values:
        assert differences(shuffled, {"unordered": values}) == []


CALL = st.tuples(
    st.sampled_from(["f", "g"]), st.fixed_dictionaries({}, optional={"x": st.integers(0, 1), "y": st.integers(0, 1)})
)


@given(st.lists(CALL, max_size=4), st.lists(CALL, max_size=4))
def test_calls_are_assigned_so_that_as_many_as_possible_fit(calls, wanted) -> None:
    expected = [{"name": name, "arguments": arguments} for name, arguments in wanted]

    def fits(call, entry) -> bool:
        return call[0] == entry[0] and all(call[1].get(key) == value for key, value in entry[1].items())

    possible = len(wanted) <= len(calls) and any(
        all(fits(calls[at], entry) for at, entry in zip(chosen, wanted, strict=True))
        for chosen in itertools.permutations(range(len(calls)), len(wanted))
    )
    ordered = any(
        all(fits(calls[at], entry) for at, entry in zip(chosen, wanted, strict=True))
        for chosen in itertools.combinations(range(len(calls)), len(wanted))
    )
    if not wanted:  # no calls written down at all: none may come
        possible = ordered = not calls
    assert _holds(calls, expected) == possible
    assert _holds(calls, expected, order="in_order") == ordered
    assert _holds(calls, expected, nothing_else=True) == (possible and len(calls) == len(wanted))
    assert _holds(calls, expected, order="exact") == (ordered and len(calls) == len(wanted))


def _holds(calls, expected, **options) -> bool:
    try:
        assert_calls(calls, expected, **options)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    "call",
    [
        ("f", {"x": 1}),
        {"type": "function_call", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"function": "f", "arguments": {"x": 1}},
    ],
    ids=["pair", "responses", "chat completions", "agentfn"],
)
def test_calls_are_taken_however_they_are_written(call) -> None:
    assert_calls([call], [{"name": "f", "arguments": {"x": 1}}], order="exact")
    assert_calls([call, {"type": "mcp_call", "name": "g", "arguments": "{}"}], "f", nothing_else=True)
    with pytest.raises(AssertionError):
        assert_calls([call], [])


def test_calls_say_which_came_nearest_and_where_it_differs() -> None:
    with pytest.raises(AssertionError) as told:
        assert_calls(
            [("f", {"x": 1, "deep": {"y": 2}}), ("f", {"x": 9}), ("g", {})],
            [{"name": "f", "arguments": {"x": 1, "deep": {"y": 3}}}],
        )
    assert str(told.value).splitlines() == [
        "f was not asked for as expected",
        "  expected  f(x: 1, deep: {y: 3}, …)",
        '  nearest   f(x: 1, deep: {"y": 2})  [call 1, turn 1, step 1]',
        "    /deep/y: expected 3, got 2",
    ]
