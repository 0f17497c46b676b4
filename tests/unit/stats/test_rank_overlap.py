"""Overlap, Jaccard and rank-biased overlap: by hand, against the package rbo, and what holds for all lists."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.stats.rank_overlap import jaccard, overlap, rank_biased_overlap, tied_ranks

ORACLE = json.loads(Path(__file__).with_name("rbo_oracle.json").read_text())
lists = st.lists(st.integers(0, 12), unique=True, max_size=10)
persistence = st.sampled_from([0.1, 0.5, 0.9, 0.99])


def test_it_equals_the_package_rbo():
    assert len(ORACLE) == 150
    for first, second, p, expected in ORACLE:
        assert rank_biased_overlap(first, second, p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("abc", "bac", 0.9),  # A = 0, 1, 1: .1/.9 (.81 + .729) + .729
        ("ab", "ab", 1.0),
        ("ab", "xy", 0.0),
        ("", "", 1.0),
        ("ab", "", 0.0),
        ("a", "ab", 1.0),  # A_1 = 1; at 2 the short list goes on with its agreement: (1 + 1 * 1/1) / 2 = 1
        ("ax", "abc", 0.1 / 0.9 * (0.9 + 0.5 * 0.81 + 0.5 * 0.729) + 0.5 * 0.729),  # A = 1, 1/2, (1 + .5) / 3
    ],
)
def test_by_hand(first, second, expected):
    assert rank_biased_overlap(first, second) == pytest.approx(expected, abs=1e-12)


def test_tied_results_are_all_there_at_the_first_of_their_ranks():
    # Ranks 1, 1 and 1, 2: at 1 the first list has a and b, the second b: A_1 = 2 * 1 / (2 + 1); A_2 = 1.
    found = rank_biased_overlap("ab", "ba", 0.5, first_ranks=[1, 1])
    assert found == pytest.approx(0.5 / 0.5 * (2 / 3 * 0.5 + 1 * 0.25) + 0.25)
    assert rank_biased_overlap("ab", "ba", 0.5, first_ranks=[1, 1], second_ranks=[1, 1]) == pytest.approx(1.0)
    assert tied_ranks([3.0, 2.0, 2.0, 1.0, 1.0, 1.0]) == [1, 2, 2, 4, 4, 4]


@given(lists, lists, persistence)
def test_it_is_between_0_and_1_and_the_same_both_ways(first, second, p):
    found = rank_biased_overlap(first, second, p)
    assert 0 <= found <= 1
    assert found == pytest.approx(rank_biased_overlap(second, first, p), abs=1e-12)
    assert 0 <= jaccard(first, second) <= overlap(first, second) <= 1


@given(lists, persistence)
def test_a_list_is_like_itself_and_only_lists_without_a_common_result_are_unlike(names, p):
    assert rank_biased_overlap(names, names, p) == pytest.approx(1.0)
    assert overlap(names, names) == jaccard(names, names) == 1.0
    others = [name + 100 for name in names]
    if names:
        assert rank_biased_overlap(names, others, p) == overlap(names, others) == jaccard(names, others) == 0.0


@given(st.lists(st.integers(0, 30), unique=True, min_size=3, max_size=12), st.data())
def test_a_swap_further_down_changes_less(names, data):
    place = data.draw(st.integers(0, len(names) - 3))

    def swapped(at):
        return [*names[:at], names[at + 1], names[at], *names[at + 2 :]]

    upper, lower = (rank_biased_overlap(names, swapped(at)) for at in (place, place + 1))
    assert upper < lower < 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_biased_overlap("ab", "ab", 1.0), "p of rank-biased overlap is 1"),
        (lambda: rank_biased_overlap("aa", "ab"), "a result stands twice"),
        (lambda: rank_biased_overlap("ab", "ab", first_ranks=[1]), "ranks do not pair"),
        (lambda: rank_biased_overlap("ab", "ab", first_ranks=[2, 1]), "ranks do not pair"),
        (lambda: rank_biased_overlap("ab", "ab", second_ranks=[1, 3]), "ranks do not pair"),
    ],
)
def test_what_is_no_ranking_is_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()
