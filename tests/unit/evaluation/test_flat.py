"""`to_dict()`: flat keys that every dashboard takes, what has no value is named, and nothing is overwritten."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Limits, compare, compare_many, evaluate, load
from cranfield.evaluation.flat import flat, key_of, measure_keys, unique_keys
from cranfield.measures import parse

QUERIES = [f"q{n}" for n in range(12)]
TESTSET = load({query: {"d": 1} for query in QUERIES})
KEY = re.compile(r"[a-z_][a-z0-9_]*")
"""What W&B can sort by is the strictest of the three."""


def system(name, ranks, testset=TESTSET, **options):
    run = {query: [*(f"x{n}" for n in range(1, rank)), "d"] for query, rank in zip(QUERIES, ranks, strict=False)}
    return evaluate(testset, run, measures=["nDCG@10", "RR(rel=2)", "RR"], name=name, **options)


def test_an_evaluation_has_its_means_intervals_and_counts():
    found = system("fair", [1, 2] * 6).to_dict()
    # RR: (1 + 1/2) / 2 = .75; every second list has one unjudged result: (6 * 1 + 6 * 1/2) / 12 = .75
    assert found["rr"] == pytest.approx(0.75)
    assert found["rr_ci_low"] < 0.75 < found["rr_ci_high"]
    assert found["rr_n"] == 12
    assert found["judged_at_10"] == pytest.approx(0.75)
    assert (found["n_queries"], found["n_failed"], found["system"], found["testset"]) == (12, 0, "fair", "qrels")
    assert "undefined" not in found


def test_what_has_no_value_is_left_out_and_named():
    found = system("one", [2], load({"q0": {"d": 1}})).to_dict()
    assert found["rr"] == 0.5
    assert "rr_ci_low" not in found
    assert {"rr_ci_low", "rr_ci_high", "ndcg_at_10_ci_low"} <= set(found["undefined"].split())


def test_a_comparison_has_the_verdict_and_both_sides():
    comparison = compare(system("poor", [4] * 12), system("good", [1] * 12))
    found, about = comparison.to_dict(), comparison.measures[comparison.primary]
    assert (found["verdict"], found["primary"], found["baseline"], found["candidate"]) == (
        "better",
        "nDCG@10",
        "poor",
        "good",
    )
    assert found["ndcg_at_10"] == 1.0
    assert found["ndcg_at_10_difference"] == found["ndcg_at_10"] - found["ndcg_at_10_baseline"]
    assert found["ndcg_at_10_difference_ci_low"] == about.ci_low
    assert found["ndcg_at_10_p"] == about.tests["permutation"].p_two_sided
    assert "ndcg_at_10_estimate" not in found
    assert (found["n_queries"], found["n_failed_baseline"]) == (12, 0)
    shifted = compare(system("poor", [3, 4] * 6), system("good", [1] * 12), test="wilcoxon")
    assert shifted.to_dict()["ndcg_at_10_estimate"] == shifted.measures[shifted.primary].estimate


def test_scores_that_do_not_count_say_why():
    limits = Limits(min_judged_share=0.9)
    found = compare(system("a", [4] * 12, limits=limits), system("b", [1] * 12, limits=limits), limits=limits).to_dict()
    assert found["verdict"] == "invalid"
    assert "judged" in found["void"].lower()
    assert "void" in system("a", [4] * 12, limits=limits).to_dict()
    assert "void" not in system("a", [4] * 12).to_dict()


def test_many_systems_have_keys_of_their_own():
    found = compare_many([system("Poor!", [4] * 12), system("good", [1] * 12), system("日本", [2] * 12)]).to_dict()
    assert (found["verdict"], found["best"]) == ("one_best", "good")
    assert (found["poor_rr"], found["good_rr"], found["system_rr"]) == (0.25, 1.0, 0.5)
    assert (found["good_better_than"], found["poor_better_than"]) == (2, 0)


@pytest.mark.parametrize(
    "make", [lambda a, b, c: a, lambda a, b, c: compare(a, b), lambda a, b, c: compare_many([a, b, c])]
)
def test_keys_are_valid_everywhere_and_values_are_numbers_or_texts(make):
    result = make(system("a b", [1] * 12), system("A-B", [2] * 12), system("n", [3, 1] * 6))
    found = result.to_dict()
    assert all(KEY.fullmatch(key) for key in found)
    assert all(type(value) in {int, float, str} for value in found.values())


@given(st.lists(st.text(max_size=12), max_size=8))
def test_names_get_different_valid_keys(names):
    keys = unique_keys(names)
    assert len(set(keys)) == len(names)
    assert all(KEY.fullmatch(key) for key in keys)


def test_measures_that_look_alike_get_different_keys():
    measures = [parse(text) for text in ("RBP(p=0.7)", "P@5", "nDCG(dcg='exp-log2')@10")]
    assert list(measure_keys(measures).values()) == ["rbp_p_0_7", "p_at_5", "ndcg_dcg_exp_log2_at_10"]
    assert unique_keys(["a.b", "a-b", "a_b_2"]) == ["a_b", "a_b_2", "a_b_2_2"]
    assert key_of("@10") == "at_10"


def test_a_key_is_never_overwritten():
    assert flat([("a", 1), ("a", 2), ("a", 1), ("b", float("nan")), ("c", None)]) == {
        "a": 1,
        "a_2": 2,
        "undefined": "b c",
    }
