"""Measures in the spellings of other tools have the values that these tools give."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from cranfield import TestSet, evaluate, load

RANX = {
    "mrr-l3": 0.198958610834,
    "map-l2": 0.166192292549,
    "map@5-l2": 0.052622023810,
    "ndcg-l3": 0.295404284296,
    "ndcg@10-l2": 0.196936050156,
    "ndcg_burges@10-l2": 0.190390185213,
    "precision@2-l2": 0.125,
    "recall@10-l3": 0.296726190476,
    "rbp.95": 0.386877137377,
    "rbp.80-l2": 0.381105204713,
    "hits@5-l2": 0.65,
    "hit_rate@3-l3": 0.2,
    "f1@5-l2": 0.122275641026,
    "r-precision-l2": 0.148809523810,
    "bpref-l2": 0.337561011905,
    "dcg@10-l2": 1.742761105977,
}
"""Printed by ranx 0.3.21 for the queries of `made`; it is not installed with the tests, because it takes a compiler of its own."""


@pytest.fixture(scope="module")
def made() -> tuple[TestSet, dict[str, dict[str, float]]]:
    """Forty queries of graded judgments, and a run of twenty results each."""
    draw = random.Random(1)
    qrels, run = dict[str, dict[str, int]](), dict[str, dict[str, float]]()
    for number in range(40):
        ids = [f"d{place}" for place in range(30)]
        draw.shuffle(ids)
        qrels[f"q{number}"] = {doc_id: draw.choice([0, 1, 1, 2, 3]) for doc_id in ids[:12]}
        qrels[f"q{number}"][ids[0]] = 3
        draw.shuffle(ids)
        run[f"q{number}"] = {doc_id: float(100 - place) for place, doc_id in enumerate(ids[:20])}
    return load(qrels), run


@pytest.mark.parametrize("name", RANX)
def test_names_of_ranx(name: str, made: tuple[TestSet, dict[str, dict[str, float]]]) -> None:
    testset, run = made
    assert evaluate(testset, run, measures=[name]).mean(name) == pytest.approx(RANX[name], abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(0, 6), st.integers(1, 14))
def test_the_divisors_of_average_precision(found: list[bool], n_missed: int, k: int) -> None:
    relevant = {f"d{place}": 1 for place, is_relevant in enumerate(found) if is_relevant}
    judged = relevant | {f"missed{number}": 1 for number in range(n_missed)} | {"other": 0}
    run = {"q": {f"d{place}": float(-place) for place in range(len(found))}}
    names = {divisor: f"AP(divisor='{divisor}')@{k}" for divisor in ("relevant", "reachable", "retrieved")}
    evaluation = evaluate(load({"q": judged}), run, measures=list(names.values()))
    values = {divisor: evaluation.value(name, "q") for divisor, name in names.items()}
    n_relevant, first = len(relevant) + n_missed, np.array(found[:k])
    expected = (
        average_precision_score(first, -np.arange(len(first))) if first.any() else 0.0
    )  # divides by what is in the list
    assert values["retrieved"] == pytest.approx(expected)
    total = expected * first.sum()
    assert values["relevant"] == pytest.approx(total / max(n_relevant, 1))
    assert values["reachable"] == pytest.approx(total / max(min(n_relevant, k), 1))
