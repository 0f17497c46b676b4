"""One is counted in the singular."""

from __future__ import annotations

import pytest

from cranfield.formats.counting import n_of


@pytest.mark.parametrize(
    ("things", "one"),
    [
        ("spans of lines", "1 span of lines"),
        ("graded document ids", "1 graded document id"),
        ("negative queries", "1 negative query"),
        ("strata", "1 stratum"),
        ("query classes", "1 query class"),
        ("entities", "1 entity"),
        ("expected files", "1 expected file"),
        ("line ranges of records that expect entities", "1 line range of records that expect entities"),
    ],
)
def test_one_thing_is_in_the_singular_and_more_are_as_they_stand(things: str, one: str) -> None:
    assert n_of(1, things) == one
    assert n_of(2, things) == f"2 {things}"
    assert n_of(0, things) == f"0 {things}"
