"""The arithmetic of fusion: worked examples, a slow plain oracle, and what must hold of any lists."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.config.systems import Fusion
from cranfield.model import Hit
from cranfield.systems.kinds.fusion import ResultList, UnusableScoreError, fuse, normalised


def part(name: str, *ids: str, scores: tuple[float, ...] | None = None, **settings) -> ResultList:
    return ResultList(name, [Hit(i, scores[at] if scores else None) for at, i in enumerate(ids)], **settings)


def how(**settings) -> Fusion:
    return Fusion.model_validate({"of": ["a", "b"], **settings})


def fused(parts: list[ResultList], fusion: Fusion, *, depth: int = 100, k: int = 100) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in fuse(parts, fusion, depth=depth, k=k)]


def test_reciprocal_ranks_are_added() -> None:
    found = fused([part("a", "x", "y", "z"), part("b", "z", "w")], how(method="rrf", rrf_k=60))
    assert found == [
        ("z", pytest.approx(1 / 63 + 1 / 61)),
        ("x", pytest.approx(1 / 61)),
        ("y", 1 / 62),  # equal to w's
        ("w", 1 / 62),
    ]


def test_a_weight_multiplies_the_reciprocal_rank() -> None:
    # x: 2/(1+1) = 1; y: 2/(1+2) + 1/(1+1) = 7/6
    found = fused([part("a", "x", "y", weight=2.0), part("b", "y")], how(rrf_k=1))
    assert found == [("y", pytest.approx(7 / 6)), ("x", 1.0)]


@pytest.mark.parametrize(
    ("normalise", "expected"),
    [
        # a: 10, 6, 2 -> 1, .5, 0; b: .9, .8 -> 1, 0
        ("min-max", {"x": 1.0, "y": 0.5 + 1.0, "z": 0.0, "w": 0.0}),
        # a: mean 6, spread sqrt(32/3): +-4/spread = +-1.224745, 0; b: mean .85, spread .05: 1, -1.
        # What a list lacks counts as its lowest: -1.224745 in a, -1 in b.
        ("z", {"x": 1.224745 - 1, "y": 0 + 1, "z": -1.224745 - 1, "w": -1.224745 - 1}),
        ("none", {"x": 10.0, "y": 6.9, "z": 2.0, "w": 0.8}),
    ],
)
def test_normalised_scores_are_added(normalise: str, expected: dict[str, float]) -> None:
    lists = [part("a", "x", "y", "z", scores=(10, 6, 2)), part("b", "y", "w", scores=(0.9, 0.8))]
    found = dict(fused(lists, how(method="sum", normalise=normalise)))
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("min-max", ([1.0, 1.0], 0.0)), ("z", ([0.0, 0.0], -1.0)), ("none", ([3.0, 3.0], 0.0))],
)
def test_equal_scores_of_a_list_are_normalised_as_documented(kind, expected) -> None:
    assert normalised([3.0, 3.0], kind) == expected


def test_scores_under_0_are_no_worse_than_to_be_lacking() -> None:
    """Logarithms of chances, as they are: `y` is in both lists and `x` in one."""
    lists = [part("a", "x", "y", scores=(-1, -3)), part("b", "y", "z", scores=(-2, -6))]
    found = dict(fused(lists, how(method="sum", normalise="none")))
    assert found == {"x": -1.0 - 6, "y": -3.0 - 2, "z": -3.0 - 6}  # what a list lacks counts as its lowest
    assert normalised([5.0, -1.0], "none") == ([5.0, -1.0], -1.0)


@pytest.mark.parametrize("normalise", ["min-max", "z"])
def test_the_only_result_of_a_list_is_not_lost(normalise: str) -> None:
    """`v` and `w` are alike in the long list; the short one names `v` alone."""
    lists = [part("a", "x", "v", "w", scores=(9, 5, 5)), part("b", "v", scores=(7,))]
    found = dict(fused(lists, how(method="sum", normalise=normalise)))
    assert found["v"] - found["w"] == pytest.approx(1)


def test_a_list_where_lower_is_better_is_turned_round() -> None:
    # distances .1, .3, .5 -> 1, .5, 0
    lists = [part("a", "far", "near", "mid", scores=(0.5, 0.1, 0.3), order="ascending"), part("b", "far", scores=(1,))]
    assert fused(lists, how(method="sum")) == [("near", 1.0), ("far", 1.0), ("mid", pytest.approx(0.5))]


def test_a_list_sorted_by_score_has_its_ranks_from_there_and_ties_fall_to_the_larger_id() -> None:
    lists = [part("a", "d1", "d9", "d2", scores=(1, 2, 2), order="descending"), part("b", "other")]
    # d9 rank 1, d2 rank 2, d1 rank 3; other rank 1 of b: the larger id of the two with 1/61 is "other"
    assert [doc for doc, _ in fused(lists, how())] == ["other", "d9", "d2", "d1"]


def test_a_result_given_twice_counts_at_its_first_place_and_takes_no_rank() -> None:
    lists = [part("a", "x", "x", "y"), part("b", "q")]
    assert dict(fused(lists, how(rrf_k=0)))["y"] == 1 / 2


def test_only_the_first_results_of_a_list_count() -> None:
    assert [doc for doc, _ in fused([part("a", "x", "x", "y", "z"), part("b", "b1")], how(), depth=2)] == [
        "x",
        "b1",
        "y",
    ]


def test_results_of_one_document_stay_apart_where_every_result_has_its_span() -> None:
    first = ResultList("a", [Hit("f", span="1-9"), Hit("f", span="20-29")])
    second = ResultList("b", [Hit("f", span="20-29")])
    assert [hit.span for hit in fuse([first, second], how(), depth=10, k=10)] == ["20-29", "1-9"]
    third = ResultList("b", [Hit("f")])
    assert [hit.span for hit in fuse([first, third], how(), depth=10, k=10)] == ["1-9"]


def test_what_one_list_does_not_say_of_a_result_another_may() -> None:
    lists = [
        ResultList("a", [Hit("x", title=None, tokens=4.0)]),
        ResultList("b", [Hit("x", title="X", span="1-2", tokens=9.0)]),
    ]
    assert fuse(lists, how(), depth=5, k=5) == [Hit("x", 2 / 61, "X", "1-2", 4.0)]


def test_one_list_alone_keeps_its_order_and_a_weight_of_nothing_leaves_a_list_out() -> None:
    lists = [part("a", "x", "y", "z", scores=(1, 3, 3)), part("b", "q", weight=0.0)]
    assert [doc for doc, _ in fused(lists, how(method="sum"))] == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("score", "said"), [(None, "b: a result without a score"), (math.inf, "b: a score that cannot be added")]
)
def test_a_sum_without_scores_names_the_part(score, said: str) -> None:
    with pytest.raises(UnusableScoreError, match=said):
        fuse([part("a", "x", scores=(1,)), ResultList("b", [Hit("x", score)])], how(method="sum"), depth=10, k=10)


RANX = {
    "rrf": {
        "y": 0.03252247488101534,
        "z": 0.031746031746031744,
        "x": 0.01639344262295082,
        "w": 0.016129032258064516,
        "v": 0.015625,
        "u": 0.015625,
    },
    "min-max": {"y": 2.5294117647058822, "w": 1.75, "z": 1.1838235294117647, "x": 1.0, "v": 0.0, "u": 0.0},
    "none": {"x": 10.0, "y": 7.8, "z": 3.1, "w": 1.6, "v": 1.5, "u": 0.2},
}
"""Printed by ranx 0.3.21: `fuse(method="rrf", params={"k": 60})`, and `wsum` with weights 1 and 2."""


@pytest.mark.parametrize("name", sorted(RANX))
def test_the_scores_are_those_of_ranx(name: str) -> None:
    b_weight = 1.0 if name == "rrf" else 2.0
    lists = [
        part("a", "x", "y", "z", "v", scores=(10, 6, 2, 1.5)),
        part("b", "y", "w", "z", "u", scores=(0.9, 0.8, 0.55, 0.1), weight=b_weight),
    ]
    fusion = how(method="rrf") if name == "rrf" else how(method="sum", normalise=name)
    assert dict(fused(lists, fusion)) == pytest.approx(RANX[name], rel=1e-14)


# What must hold of any lists -------------------------------------------------------------------------------------------

IDS = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8)
SCORES = st.lists(st.integers(-20, 20).map(float), min_size=8, max_size=8)
LISTS = st.lists(st.tuples(IDS, SCORES, st.sampled_from([0.5, 1.0, 2.0, 3.0])), min_size=2, max_size=4)
METHODS = st.sampled_from([("rrf", "min-max"), ("sum", "min-max"), ("sum", "z"), ("sum", "none")])


def parts_of(lists) -> list[ResultList]:
    return [
        part(f"p{at}", *ids, scores=tuple(sorted(scores, reverse=True)), weight=weight)
        for at, (ids, scores, weight) in enumerate(lists)
    ]


def slow(parts: list[ResultList], method: str, normalise: str, k: float) -> list[tuple[str, float]]:
    """The same by plain loops, written from the definition."""
    scores: dict[str, float] = {}
    for doc in {hit.id for one in parts for hit in one.hits}:
        total = 0.0
        for one in parts:
            ids = [hit.id for hit in one.hits]
            if method == "rrf":
                total += one.weight / (k + ids.index(doc) + 1) if doc in ids else 0.0
                continue
            values = [hit.score for hit in one.hits]
            if not values:
                continue
            value = values[ids.index(doc)] if doc in ids else None
            if normalise == "none":
                total += one.weight * (min(0.0, *values) if value is None else value)
            elif normalise == "min-max" and value is not None:
                low, high = min(values), max(values)
                total += one.weight * (1.0 if low == high else (value - low) / (high - low))
            elif normalise == "z":
                mean = sum(values) / len(values)
                spread = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
                if spread:
                    total += one.weight * ((min(values) if value is None else value) - mean) / spread
                elif value is None:
                    total -= one.weight
        scores[doc] = total
    return sorted(scores.items(), key=lambda item: item[0])


@given(LISTS, METHODS)
def test_fusion_is_what_plain_loops_give(lists, method: tuple[str, str]) -> None:
    parts = parts_of(lists)
    found = fused(parts, how(method=method[0], normalise=method[1]))
    expected = slow(parts, *method, 60)
    assert [(doc, pytest.approx(score, abs=1e-9)) for doc, score in expected] == sorted(found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@given(LISTS, METHODS, st.randoms())
def test_the_order_of_the_parts_changes_nothing(lists, method: tuple[str, str], random) -> None:
    parts = parts_of(lists)
    other = list(parts)
    random.shuffle(other)
    fusion = how(method=method[0], normalise=method[1])
    assert fused(parts, fusion) == fused(other, fusion)


@given(LISTS, st.sampled_from([0.25, 2.0, 8.0]))
def test_only_the_ratio_of_weights_orders_reciprocal_ranks(lists, factor: float) -> None:
    parts = parts_of(lists)
    scaled = [ResultList(one.name, one.hits, one.order, one.weight * factor) for one in parts]
    assert [doc for doc, _ in fused(parts, how())] == [doc for doc, _ in fused(scaled, how())]


@given(LISTS, METHODS)
def test_a_document_that_every_list_puts_higher_stands_higher(lists, method: tuple[str, str]) -> None:
    parts = [one for one in parts_of(lists) if {"a", "b"} <= {hit.id for hit in one.hits}]
    ranks = [[hit.id for hit in one.hits] for one in parts]
    if len(parts) < 2 or not all(ids.index("a") > ids.index("b") for ids in ranks):
        return
    order = dict(fused(parts, how(method=method[0], normalise=method[1])))
    assert order["b"] >= order["a"]


@given(st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=8), st.sampled_from(["min-max", "z", "none"]))
def test_to_be_found_is_never_worse_than_to_be_lacking(scores: list[float], normalise) -> None:
    found, absent = normalised(scores, normalise)
    assert absent <= min(found)
    assert [found[at] > found[at + 1] for at in range(len(found) - 1)] == [
        scores[at] > scores[at + 1] for at in range(len(scores) - 1)
    ]
