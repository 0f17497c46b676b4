"""JSON files are read fast, and their places found only where something is wrong: both readers say the same."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.io.json_text import parse_json
from cranfield.formats.io.records import indexed_objects, load_json
from cranfield.formats.io.tree import sourced
from cranfield.formats.tools.by_text import params_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "x.json").write_text(text)
        return tmp_path / "x.json"

    return write


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
def test_both_readers_say_the_same(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("j") / "x.json"
    path.write_text(json.dumps(data))
    read = load_json(path)
    slow = sourced(parse_json(path.read_text()))
    assert read.sourced == slow == sourced(read.root)
    assert repr(read.sourced) == repr(slow)
    assert read.sourced == data


def test_numbers_remember_how_they_were_written(file):
    assert load_json(file('{"a": 1.10}')).sourced["a"].source == "1.10"


def test_places_are_found_within_a_part_too(file):
    read = load_json(file('{"a": [\n {"b": 3}]}'))
    assert read.mark(("a", 0, "b")) == (2, 8)
    assert read.within("a", 0).mark(("b",)) == (2, 8)
    assert read.within("a", 0).sourced == {"b": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', r"x.json:1:7: not valid JSON: no value here"),
        ('{"a": 1,\n "a": 2}', r"x.json:2:2: duplicate key 'a'; it also occurs on line 1"),
        ('{"a": ' + "1" * 301 + "}", r"x.json:1:7: not valid JSON: a number of more than 300 characters"),
        ('{"a": 1', r"x.json:1:8: not valid JSON: a comma or bracket is missing"),
        ('{"a": ' + "[" * 100_000, r"nested more than 64 levels deep"),
        ("", r"x.json: the file is empty"),
        ('"a"', r"x.json:1: no object at the top of the file; expected `{…}`"),
    ],
    ids=["nan", "duplicate", "long", "cut", "deep", "empty", "text"],
)
def test_what_is_wrong_is_said_with_its_place(file, text, message):
    with pytest.raises(TestSetError, match=message):
        load_json(file(text))


def test_what_is_no_object_of_a_list_is_passed_over():
    assert indexed_objects([{"a": 1}, 2, {"b": 3}]) == [(0, {"a": 1}), (2, {"b": 3})]
    assert indexed_objects({"a": 1}) == []


def test_parameters_that_no_command_could_name_are_counted():
    lost = Counter()
    assert params_of({"size": 5, "a-b": 1, "tags": [], "none": None, "on": True}, lost) == {"size": 5, "on": True}
    assert list(lost.values()) == [3]
