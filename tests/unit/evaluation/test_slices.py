"""Which kind of query changed: found where it is planted, described once, and nothing found where there is nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield import compare, evaluate
from cranfield.evaluation.query_attributes import Condition
from cranfield.evaluation.result import result_from, result_of, without_queries
from cranfield.evaluation.slices import MAX_SLICES, SliceChange, change_of, slices_of, slices_tried
from cranfield.model import Query, TestSet
from cranfield.model.results import to_jsonable

WORDS = ["flow", "layer", "wing", "shock", "heat", "plate", "body", "jet", "edge", "wave", "cone", "tube"]
N = 120


def text_of(at: int) -> str:
    """The text of a query: 1 to 6 words, a number in each fifth, a question mark in each seventh."""
    rng = random.Random(at)
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 6)))
    return f"{text}{' 2024' if at % 5 == 0 else ''}{'?' if at % 7 == 0 else ''}"


TEXTS = [text_of(at) for at in range(N)]


@cache
def equal_pair(order, measure="RR"):
    """Two systems with the same results, on queries in this order."""
    queries = tuple(Query(f"q{at:03}", TEXTS[at]) for at in order)
    testset = TestSet("set", queries, {query.id: {"d": 1} for query in queries})
    run = {query.id: {"d": 1.0} for query in queries}
    return compare(*(evaluate(testset, run, measures=[measure], name=name) for name in "AB"))


def pair(differences, *, order=None, measure="RR"):
    """The same with these differences."""
    found = equal_pair(tuple(range(len(differences))) if order is None else tuple(order), measure)
    measured = {query: float(differences[int(query[1:])]) for query in found.measures[found.primary].differences}
    return replace(found, measures={found.primary: replace(found.measures[found.primary], differences=measured)})


def noise(seed, n=N):
    return np.random.default_rng(seed).normal(0, 0.1, n)


DIGITS = np.arange(N) % 5 == 0


def test_a_planted_slice_is_found_and_described():
    differences = noise(1) - 0.3 * DIGITS
    found = slices_of(pair(differences))
    (first,) = found.found
    assert (first.text, first.attributes, first.change, first.n) == ("with a digit", ("digits",), SliceChange.WORSE, 24)
    assert first.difference == pytest.approx(differences[DIGITS].mean())
    assert first.rest == pytest.approx(differences[~DIGITS].mean())
    assert first.difference < first.shrunken < found.difference
    assert first.p <= first.p_adjusted < 0.05
    assert first.p_zero < 0.05
    assert set(first.queries) == {f"q{at:03}" for at in np.flatnonzero(DIGITS)}
    sizes = [abs(differences[int(query[1:])]) for query in first.queries]
    assert sizes == sorted(sizes, reverse=True)


def test_of_a_slice_and_its_opposite_the_side_that_changed_is_named():
    """All queries but those with a digit gain .3."""
    (first,) = slices_of(pair(noise(2) + 0.3 * ~DIGITS)).found
    assert (first.text, first.change, first.n) == ("without a digit", SliceChange.BETTER, 96)
    assert first.t > 0
    assert first.rest < first.shrunken <= first.difference


def test_an_effect_without_any_noise_is_one_finding():
    (first,) = slices_of(pair(-0.3 * DIGITS)).found
    assert (first.text, first.difference, first.rest) == ("with a digit", pytest.approx(-0.3), 0)
    assert slices_of(pair(0.1 + 0 * noise(1))).found == ()


def test_a_change_of_all_queries_alike_is_no_slice():
    found = slices_of(pair(noise(3) - 0.3))
    assert found.found == ()
    assert found.n_tried > 20


def test_a_slice_with_one_description_is_not_named_by_the_other_side():
    """A conjunction has no opposite: its queries did not gain as the others did."""
    marked = np.arange(N) % 2 == 0
    column = {f"q{at:03}": "yes" for at in np.flatnonzero(marked)}
    found = slices_of(pair(noise(9) + 0.4 * ~(DIGITS & marked)), columns={"new": column})
    assert [(each.text, each.change) for each in found.found] == [("with a digit and with new yes", SliceChange.APART)]


@pytest.mark.parametrize(
    ("gain", "rest", "is_changed", "expected"),
    [
        (0.2, 0.0, True, SliceChange.BETTER),
        (0.2, 0.4, True, SliceChange.BETTER_BY_LESS),
        (0.2, -0.4, True, SliceChange.BETTER),
        (-0.2, -0.4, True, SliceChange.WORSE_BY_LESS),
        (-0.2, 0.1, True, SliceChange.WORSE),
        (-0.2, 0.1, False, SliceChange.APART),
    ],
)
def test_the_word_for_a_change(gain, rest, is_changed, expected):
    assert change_of(gain, rest, is_changed=is_changed) is expected


def test_where_lower_is_better_a_fall_is_an_improvement():
    assert slices_of(pair(noise(1) - 0.3 * DIGITS, measure="RankOfFirst")).found[0].change is SliceChange.BETTER


@settings(max_examples=5)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_queries_changes_nothing(shuffler):
    differences = noise(5) - 0.2 * DIGITS
    order = list(range(N))
    shuffler.shuffle(order)
    assert slices_of(pair(differences, order=order)) == slices_of(pair(differences))


def test_a_slice_with_two_descriptions_is_tested_once():
    differences = noise(6) - 0.3 * DIGITS
    plain = slices_of(pair(differences))
    column = {f"q{at:03}": "yes" for at in np.flatnonzero(DIGITS)}
    twice = slices_of(pair(differences), columns={"year": column})
    assert (twice.n_tried, twice.n_single) == (plain.n_tried, plain.n_single)
    assert twice.found[0].text == "with a digit"
    assert twice.found[0].also == ("with year yes", *plain.found[0].also)
    opposite = {f"q{at:03}": "no" for at in np.flatnonzero(~DIGITS)}
    assert slices_of(pair(differences), columns={"year": opposite}).n_tried == plain.n_tried


def test_much_the_same_queries_are_one_finding_with_the_simplest_description():
    """A column that has 22 of the 24 queries with a digit and 2 others."""
    members = [*np.flatnonzero(DIGITS)[:22].tolist(), 1, 2]
    column = {f"q{at:03}": "yes" for at in members}
    found = slices_of(pair(noise(7) - 0.3 * DIGITS), columns={"year": column})
    assert [each.text for each in found.found] == ["with a digit"]
    assert "with year yes" in found.found[0].also


def test_two_causes_are_two_findings():
    marked = np.arange(N) % 6 == 1
    column = {f"q{at:03}": "yes" for at in np.flatnonzero(marked)}
    found = slices_of(pair(noise(8) - 0.3 * DIGITS + 0.3 * marked), columns={"new": column})
    assert {each.text: each.change for each in found.found} == {
        "with a digit": SliceChange.WORSE,
        "with new yes": SliceChange.BETTER,
    }


def test_a_cause_of_two_conditions_is_found_as_their_conjunction():
    marked = np.arange(N) % 2 == 0
    column = {f"q{at:03}": "yes" for at in np.flatnonzero(marked)}
    found = slices_of(pair(noise(9) - 0.4 * (DIGITS & marked)), columns={"new": column})
    assert [each.text for each in found.found] == ["with a digit and with new yes"]


def test_random_pairs_have_no_finding():
    """At .05, 7 or more of 40 have a chance of .3 %."""
    assert sum(bool(slices_of(pair(noise(100 + seed, 60))).found) for seed in range(40)) <= 6


@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.integers(1, 15))
def test_slices_tried_are_large_enough_and_each_is_one_set_of_queries(seed, n_conditions, min_size):
    rng = np.random.default_rng(seed)
    conditions = [
        Condition(f"a{at // 2}", f"c{at}", members)
        for at in range(n_conditions)
        if min_size <= (members := rng.random(50) < rng.random()).sum() <= 50 - min_size
    ]
    tried, n_left_out = slices_tried(conditions, min_size)
    sets = [each.members.tobytes() for each in tried]
    assert len({*sets, *((~each.members).tobytes() for each in tried)}) == 2 * len(sets)
    assert all(min_size <= each.members.sum() for each in tried)
    assert all(len({each.attribute for each in one.conditions}) == len(one.conditions) for one in tried)
    assert n_left_out == 0


def test_the_largest_conjunctions_are_tried_where_there_are_too_many():
    rng = np.random.default_rng(1)
    conditions = [Condition(f"a{at}", f"c{at}", rng.random(400) < 0.4) for at in range(60)]
    tried, n_left_out = slices_tried(conditions, 10)
    assert len(tried) == MAX_SLICES
    assert n_left_out == 60 * 59 // 2 - (MAX_SLICES - 60)
    sizes = [int(each.members.sum()) for each in tried[60:]]
    assert sizes == sorted(sizes, reverse=True)


def test_too_few_queries_and_equal_systems_have_no_search():
    assert slices_of(pair(noise(1)[:19])) is None
    assert slices_of(pair(np.zeros(N))) is None


def test_the_record_is_written_and_read():
    found = pair(noise(1) - 0.3 * DIGITS)
    record = result_of(found, with_answers=True)
    assert record.slices.found[0].text == "with a digit"
    assert result_from(to_jsonable(record)).slices == record.slices
    assert without_queries(record).slices is None
    assert result_of(found).slices is None
