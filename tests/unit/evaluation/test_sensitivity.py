"""Variations of a comparison: which are tried, what each says, and how many agree."""

from __future__ import annotations

import random

import pytest

from cranfield import Comparison, Query, TestSet, compare, evaluate, parse
from cranfield.app.sensitivity import NO_RUN
from cranfield.app.sensitivity import sensitivity as of_project
from cranfield.evaluation.sensitivity import CUTOFFS, MEASURES, sensitivity
from cranfield.model import Rating
from cranfield.stats.consensus import CONSENSUS
from cranfield.stats.table import TESTS


def set_of(n: int, **more: object) -> TestSet:
    queries = tuple(Query(f"q{i}", strata={"type": "even" if i % 2 == 0 else "odd"}) for i in range(n))
    return TestSet("set", queries, {query.id: {"hit": 1, "zero": 0} for query in queries}, **more)  # type: ignore[arg-type]


def lists_of(ranks: list[int | None], judged: str = "zero") -> dict[str, list[str]]:
    """Lists of 20 with the relevant document at each rank; None: not there."""
    found = {}
    for i, rank in enumerate(ranks):
        ids = [f"x{j}" if judged != "all" else f"n{j}" for j in range(20)]
        if rank:
            ids[rank - 1] = "hit"
        found[f"q{i}"] = ids
    return found


def compared(before: list[int | None], after: list[int | None], **options: object) -> Comparison:
    testset = set_of(len(before))
    old, new = (
        evaluate(testset, lists_of(ranks), measures=["nDCG@10"], name=name)
        for name, ranks in (("old", before), ("new", after))
    )
    return compare(old, new, **options)  # type: ignore[arg-type]


def clear() -> Comparison:
    draw = random.Random(1)
    return compared([draw.randrange(4, 10) for _ in range(40)], [draw.randrange(1, 4) for _ in range(40)])


def test_every_family_that_applies_is_tried_and_the_rest_is_said() -> None:
    found = sensitivity(clear())
    families = {one.family for one in found.variations}
    assert families == {"measure", "cutoff", "test", "without a stratum", "unjudged documents"}
    assert {one.name for one in found.variations if one.family == "test"} == {
        name for name, spec in TESTS.items() if spec.can_declare and name != "permutation"
    }
    named = {one.name for one in found.variations} | {said.partition(":")[0] for said in found.left_out}
    declared = {str(parse(name)) for name in MEASURES} | {f"nDCG@{cutoff}" for cutoff in CUTOFFS}
    assert declared - {"nDCG@10"} <= named
    assert "nDCG@50: no list is that long" in found.left_out


def test_what_gives_the_same_values_is_counted_once() -> None:
    found = sensitivity(clear())
    # one relevant document at rank 10 or above: AP, RR and their cuts at 10 are one number
    assert {"RR: the same as AP on these lists", "RR@10: the same as AP on these lists"} <= set(found.left_out)
    assert "AP" in {one.name for one in found.variations}


def test_a_primary_measure_that_looks_deeper_than_every_list_is_compared_with_too() -> None:
    testset = set_of(20)
    old, new = (
        evaluate(testset, {query: ids[:5] for query, ids in lists_of(ranks).items()}, measures=["nDCG@10"], name=name)
        for name, ranks in (("old", [3] * 20), ("new", [1, 2, 3, 4] * 5))
    )
    found = sensitivity(compare(old, new))
    assert "nDCG@5: the same as nDCG@10 on these lists" in found.left_out
    assert {variation.name for variation in found.variations if variation.family == "cutoff"} == {"nDCG@3"}


def test_the_line_counts_those_that_say_the_same() -> None:
    found = sensitivity(clear())
    assert found.verdict == "better"
    agreeing = [one for one in found.variations if one.verdict == "better"]
    assert found.n_agree == len(agreeing)
    more = len(found.left_out)
    said = f"{len(agreeing)} of {len(found.variations)} alternative analyses also favour B; {more} not applicable"
    assert found.line == said
    assert len(found.disagreeing) == len(found.variations) - len(agreeing)


def test_a_variation_has_the_numbers_of_a_comparison_that_declares_it() -> None:
    comparison = clear()
    evaluations = [
        evaluate(
            set_of(40),
            {query: [hit.id for hit in side.ranking.top[query]] for query in side.query_ids},
            measures=["RR@10", "P@5"],
        )
        for side in (comparison.baseline, comparison.candidate)
    ]
    declared = compare(*evaluations, primary="P@5", test="t")
    varied = sensitivity(compare(comparison.baseline, comparison.candidate, test="t"))
    (p5,) = [one for one in varied.variations if one.name == "P@5"]
    about = declared.measures[parse("P@5")]
    assert (p5.delta, p5.ci_low, p5.ci_high) == pytest.approx((about.delta, about.ci_low, about.ci_high))
    assert p5.verdict is declared.verdict.code


def test_a_verdict_that_rests_on_one_stratum_does_not_survive_without_it() -> None:
    before: list[int | None] = [5] * 40
    after: list[int | None] = [1 if i % 2 == 0 else (4, 6)[i // 2 % 2] for i in range(40)]
    found = sensitivity(compared(before, after))
    verdicts = {one.name: (one.verdict, one.n) for one in found.variations if one.family == "without a stratum"}
    assert found.verdict == "better"
    assert verdicts["without type: odd"] == ("better", 20)
    assert verdicts["without type: even"] == ("not_significant", 20)


def test_judging_could_turn_it_round_where_much_is_unjudged() -> None:
    found = sensitivity(clear())
    verdicts = {one.name: one for one in found.variations if one.family == "unjudged documents"}
    best, worst = (verdicts[name] for name in ("best case for the candidate", "best case for the baseline"))
    assert (best.verdict, worst.verdict) == ("better", "worse")
    assert worst.delta < 0 < best.delta


def test_a_document_of_both_lists_has_one_grade() -> None:
    # u is unjudged and at rank 1 of both lists: whatever its grade, P@1 of both is the same
    queries = tuple(Query(f"q{i}") for i in range(12))
    testset = TestSet("both", queries, {query.id: {"hit": 1} for query in queries})
    clear: dict[str, list[str]] = {f"q{i}": ["hit", "u"] for i in range(6)}
    runs = ({query.id: ids for query in queries} | clear for ids in (["u", "hit"], ["u", "x"]))
    comparison = compare(*(evaluate(testset, run, measures=["P@1"]) for run in runs))
    rows = [one for one in sensitivity(comparison).variations if one.family == "unjudged documents"]
    assert [(row.name, row.delta) for row in rows] == [
        ("best case for the candidate", 0.0),
        ("best case for the baseline", 0.0),
    ]


def test_without_exact_extremes_each_list_has_grades_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.evaluation.joint.MAX_GRADES", 0)
    names = [one.name for one in sensitivity(clear()).variations if one.family == "unjudged documents"]
    assert names == ["only the candidate's relevant", "only the baseline's relevant"]


def test_where_all_that_counts_is_judged_nothing_is_supposed() -> None:
    queries = tuple(Query(f"q{i}") for i in range(12))
    testset = TestSet("judged", queries, {query.id: {"hit": 1, "miss": 0} for query in queries})
    old, new = ({query.id: ids for query in queries} for ids in (["miss", "hit"], ["hit", "miss"]))
    comparison = compare(*(evaluate(testset, run, measures=["nDCG@10"]) for run in (old, new)))
    found = sensitivity(comparison)
    assert "unjudged documents: every result that affects the measure is judged" in found.left_out
    assert "unjudged documents" not in {one.family for one in found.variations}


def test_a_margin_holds_for_every_variation_but_tests_of_something_else() -> None:
    same: list[int | None] = [1, 2, 3, 4] * 10
    found = sensitivity(compared(same, same, margin=0.05))
    assert found.verdict == "equivalent"
    verdicts = {one.name: one.verdict for one in found.variations}
    assert verdicts["t"] == verdicts["nDCG@3"] == "equivalent"
    assert verdicts["wilcoxon"] == verdicts["sign"] == "not_significant"


def test_a_comparison_that_does_not_count_is_not_varied() -> None:
    whole = evaluate(set_of(12), lists_of([1] * 12), measures=["nDCG@10"])
    few = evaluate(set_of(12), {f"q{i}": ["hit"] for i in range(3)}, measures=["nDCG@10"], missing="skip")
    invalid = compare(whole, few)
    assert invalid.verdict.name == "invalid"
    found = sensitivity(invalid)
    assert (found.variations, found.line) == ((), "No alternative analysis is possible: invalid")
    assert "does not count" in found.left_out[0]


def test_too_few_queries_left_are_said() -> None:
    found = sensitivity(compared([2] * 8, [1] * 8))
    assert "without type: even: 4 queries are too few" in found.left_out


def rated(n: int) -> TestSet:
    """Two raters say relevant of `hit`, one of three says so of `other`."""
    queries = tuple(Query(f"q{i}") for i in range(n))
    said = {"hit": (1, 1, 0), "other": (1, 0, 0)}
    ratings = {
        query.id: tuple(Rating(doc, f"r{k}", grade) for doc, grades in said.items() for k, grade in enumerate(grades))
        for query in queries
    }
    return TestSet(
        "rated", queries, {query.id: {"hit": 1, "other": 0} for query in queries}, ratings=ratings, consensus="median"
    )


def test_other_consensus_rules_are_tried_where_there_are_ratings() -> None:
    testset = rated(12)
    runs = tuple({f"q{i}": ids for i in range(12)} for ids in (["other", "x", "hit"], ["hit", "x", "other"]))
    comparison = compare(*(evaluate(testset, run, measures=["nDCG@10"]) for run in runs))
    found = of_project(comparison, runs=runs)
    tried = {one.name: one for one in found.variations if one.family == "consensus rule"}
    left = {said.removeprefix("rule ").partition(":")[0] for said in found.left_out if said.startswith("rule ")}
    assert set(tried) | left == set(CONSENSUS) - {"median"}
    # By the mean `hit` is worth 2/3 and `other` 1/3, and they change places between ranks 1 and 3, whose discounts are 1
    # and 1/2: (2/3 + 1/6 - 1/3 - 2/6) over the ideal 2/3 + 1/3 * .6309.
    assert tried["mean"].delta == pytest.approx((2 / 3 + 1 / 6 - 1 / 3 - 2 / 6) / (2 / 3 + 1 / 3 * 0.6309297535714575))


def test_other_consensus_rules_read_the_runs_as_the_comparison_did() -> None:
    testset = rated(12)
    runs = tuple({f"q{i}": ids for i in range(8)} for ids in (["other", "hit"], ["hit", "other"]))
    found = of_project(compare(*(evaluate(testset, run, measures=["P@1"], missing="skip") for run in runs)), runs=runs)
    tried = {one.name: one for one in found.variations if one.family == "consensus rule"}
    assert tried["majority"].delta == 1  # over the 8 queries that are answered


def test_without_the_runs_no_rule_is_tried_and_that_is_said() -> None:
    testset = rated(12)
    comparison = compare(
        *(
            evaluate(testset, {f"q{i}": {"hit": 2.0, "other": 1.0} for i in range(12)}, measures=["nDCG@10"])
            for _ in "ab"
        )
    )
    found = of_project(comparison)
    assert f"rule mean: {NO_RUN}" in found.left_out


def test_fewer_draws_than_the_verdict_had_are_said() -> None:
    assert sensitivity(clear()).n_draws == 10_000
    assert sensitivity(clear(), n_draws=500).n_draws == 500
