"""Held-out queries: the right number, from every stratum, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError, UsageError
from cranfield.evaluation.testset.split import (
    allot,
    only,
    part,
    share_of,
    shuffled,
    shuffled_by_weight,
    split,
    with_split,
)
from cranfield.model import Anchor, Entity, Fact, Label, Lines, Meta, Query, Split, TestSet
from cranfield.model.query_ids import renamed


def numbered(**sizes):
    """A set with so many queries of each kind."""
    kinds = [kind for kind, size in sizes.items() for _ in range(size)]
    queries = tuple(Query(f"q{place:02}", f"text {place}", {"kind": kind}) for place, kind in enumerate(kinds))
    return TestSet("set", queries, {query.id: {"d": 1} for query in queries})


CLINIC = numbered(exact_term=20, paraphrase=15, complex_clinical=15)


def test_fifty_queries_are_forty_and_ten_of_every_type_its_fifth():
    drawn = split(CLINIC)
    kinds = [CLINIC.by_id[query_id].strata["kind"] for query_id in drawn.held_out]
    assert {kind: kinds.count(kind) for kind in kinds} == {"exact_term": 4, "paraphrase": 3, "complex_clinical": 3}
    stored = with_split(CLINIC, drawn, date(2026, 11, 21))
    assert (len(part(stored, "evaluated").queries), len(part(stored, "held-out").queries)) == (40, 10)
    assert stored.digest == CLINIC.digest  # a split is no content
    assert stored.meta.history == ("2026-11-21: held out 10 of 50 queries within kind, seed 0",)


def test_the_same_seed_draws_the_same_in_whatever_order_the_queries_stand():
    again = split(replace(CLINIC, queries=CLINIC.queries[::-1]))
    assert set(again.held_out) == set(split(CLINIC).held_out)
    assert set(split(CLINIC, seed=1).held_out) != set(split(CLINIC).held_out)


def test_a_draw_is_the_same_on_every_machine():
    """SHA-256 of "7, draw, a" on three lines begins with 7f65, of b with 79e7, of c with ec0f."""
    assert shuffled("abc", 7, "draw") == ["b", "a", "c"]


def test_a_set_without_strata_is_split_too():
    plain = replace(CLINIC, queries=tuple(replace(query, strata={}) for query in CLINIC.queries))
    drawn = split(plain)
    assert (len(drawn.held_out), drawn.by) == (10, ())


@pytest.mark.parametrize(
    ("n", "share", "held_out"), [(50, 0.2, 10), (5, 0.5, 3), (7, 0.2, 1), (8, 0.2, 2), (3, 0.29, 1)]
)
def test_a_share_is_the_nearest_whole_number_halves_up(n, share, held_out):
    assert share_of(n, share) == held_out  # 2.5 is 3, 1.4 is 1, 1.6 is 2, .87 is 1


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 30), min_size=1), st.data())
@settings(max_examples=min(100, settings().max_examples))
def test_largest_remainders_give_the_total_and_no_cell_is_off_by_a_whole(sizes, data):
    whole = sum(sizes.values())
    total = data.draw(st.integers(0, whole))
    given_out = allot(sizes, total, seed=0)
    assert sum(given_out.values()) == (total if whole else 0)
    for cell, n in given_out.items():
        assert 0 <= n <= sizes[cell]
        assert abs(n * whole - sizes[cell] * total) < max(whole, 1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"share": 0.0}, "share is 0"),
        ({"share": 1.0}, "share is 1"),
        ({"share": 0.001}, "of 50 queries is 0"),
        ({"by": ["colour"]}, "no query has the stratum 'colour'"),
        ({"by": ["clas"]}, "no query has the stratum 'clas'.*\nHint: did you mean class?"),
    ],
)
def test_what_cannot_be_drawn_is_refused(asked, message):
    with pytest.raises(UsageError, match=message):
        split(CLINIC, **asked)


def test_a_part_is_refused_without_a_split_and_with_one_that_lost_its_queries():
    with pytest.raises(TestSetError, match="no held-out part"):
        part(CLINIC, "held-out")
    with pytest.raises(TestSetError, match="not in the set: q99"):
        part(replace(CLINIC, meta=Meta(split=Split(0, 0.2, ("q99",)))), "evaluated")


def test_some_queries_of_a_set_take_with_them_only_what_is_known_of_them():
    places = {"a.py::F": Anchor("a.py::F", "x"), "b.py::G": Anchor("b.py::G", "y")}
    meta = Meta(review="reviewed", counts={"queries": 2}, anchors=places, source_files={"a.py": "1", "b.py": "2"})
    targets = {"q1": (Entity("a.py::F"),), "q2": (Entity("b.py::G"),)}
    testset = TestSet("t", (Query("q1", "one"), Query("q2", "two")), targets=targets, meta=meta)
    smaller = only(testset, {"q2"})
    assert (smaller.query_ids, list(smaller.targets)) == (("q2",), ["q2"])
    assert smaller.meta == Meta(review="reviewed", anchors={"b.py::G": places["b.py::G"]}, source_files={"b.py": "2"})


def test_a_label_goes_with_its_query_and_takes_the_anchors_of_its_places_along():
    anchors = {"a.py:1-2": Anchor("a.py", "x", 0, 2), "b.py:3-4": Anchor("b.py", "y", 2, 2)}
    meta = Meta(anchors=anchors, source_files={"a.py": "1", "b.py": "2"})
    labels = {
        "q1": Label(line_ranges=(Lines("a.py", 1, 2),)),
        "q2": Label(must_mention=(Fact("It is so.", (Lines("b.py", 3, 4),)),)),
    }
    testset = TestSet("t", (Query("q1", "one"), Query("q2", "two")), {"q1": {"d": 1}, "q2": {"d": 1}}, labels=labels)
    smaller = only(replace(testset, meta=meta), {"q2"})
    assert smaller.labels == {"q2": labels["q2"]}
    assert smaller.meta == Meta(anchors={"b.py:3-4": anchors["b.py:3-4"]}, source_files={"b.py": "2"})
    assert list(renamed(testset, {"q1": "q7"}).labels) == ["q7", "q2"]


def test_frequent_queries_come_first_as_often_as_they_are_asked():
    """Of weights 3 and 1, the first comes first in 3 of 4 draws."""
    first = [shuffled_by_weight({"a": 3.0, "b": 1.0}, seed, "log")[0] for seed in range(4000)]
    share = np.mean([key == "a" for key in first])
    assert abs(share - 0.75) < 4 * (0.75 * 0.25 / 4000) ** 0.5
