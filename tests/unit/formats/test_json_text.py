"""JSON at full speed gives what the tree with places gives, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.io.json_text import json_values, parse_json
from cranfield.formats.io.located import load_located
from cranfield.formats.io.tree import sourced
from cranfield.model.kinds import SourceFloat, SourceInt

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def spelled(value: Any) -> Any:
    """Every number with how it was written."""
    if isinstance(value, dict):
        return {key: spelled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [spelled(inner) for inner in value]
    return ("number", value.source) if isinstance(value, SourceInt | SourceFloat) else value


@given(value=st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_values_are_those_of_the_tree(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert spelled(json_values(text)) == spelled(sourced(parse_json(text)))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1',
        '{"a": ' + "9" * 301 + "}",
        '{"a": 0.' + "9" * 300 + "}",
        '{"a": ' + "[" * 64 + "]" * 64 + "}",
        '{"a": ' + "[" * 100_000,
    ],
    ids=["key twice", "NaN", "infinity", "cut", "long number", "long fraction", "deep", "too deep"],
)
def test_what_is_not_plainly_right_is_left_to_the_tree(text: str) -> None:
    assert json_values(text) is None


def test_places_are_found_when_a_problem_asks_for_them(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1,\n "b": [1, "x"]}')
    located = load_located(tmp_path / "a.json", TestSetError)
    assert located.sourced == {"a": 1, "b": [1, "x"]}
    assert sourced(located.root) == {"a": 1, "b": [1, "x"]}
    assert located.mark(("b", 1)) == (2, 11)
