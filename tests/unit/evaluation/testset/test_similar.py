"""Near duplicates: the index finds what comparing each with each finds."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.evaluation.testset.check_queries import MAX_COMPARED, Lookup, near, near_duplicates, words_of

TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7).map(" ".join), max_size=12)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Rotate the log files", "rotate THE log, files!", True),  # the same words
        ("a b c d", "a b c d e", True),  # 4 of 5
        ("a b c", "a b c d", False),  # 3 of 4
        ("a b c d e", "a b c d f", False),  # 4 of 6
        ("Straße", "strasse", True),  # case folded
        ("+ +", "- -", False),  # no words: the texts themselves
    ],
)
def test_near_duplicates_share_four_of_five_words(one, other, expected):
    assert near(words_of(one), words_of(other)) is expected
    assert near_duplicates([("1", one), ("2", other)]) == ([("1", "2")] if expected else [], 0)


@given(TEXTS)
@settings(max_examples=min(200, 2 * settings().max_examples))
def test_the_index_finds_a_near_duplicate_exactly_where_there_is_one(texts):
    keyed = [(str(place), text) for place, text in enumerate(texts)]
    pairs, _ = near_duplicates(keyed)
    repeated = {later for _, later in pairs}
    kept = [place for place, _ in keyed if place not in repeated]
    words = {key: words_of(text) for key, text in keyed}
    assert all(near(words[earlier], words[later]) and int(earlier) < int(later) for earlier, later in pairs)
    assert not any(near(words[one], words[other]) for one, other in combinations(kept, 2))


def test_blank_texts_are_no_duplicates():
    assert near_duplicates([("1", ""), ("2", " ")]) == ([], 0)


def test_texts_that_meet_too_many_others_are_counted():
    """Without frequencies the words count as rare in the order of the alphabet, so that all of these meet at `a`."""
    lookup = Lookup({})
    for n in range(MAX_COMPARED):
        lookup.add(str(n), f"a b{n} c{n} d{n} e{n}")
    assert lookup.nearest("a z1 z2 z3 z4") is None
    assert lookup.n_cut == 0
    lookup.add("last", "a y1 y2 y3 y4")
    assert lookup.nearest("a z1 z2 z3 z4") is None
    assert lookup.n_cut == 1
