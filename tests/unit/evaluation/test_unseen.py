"""What stands beside a verdict of fewer than 50 queries; the arithmetic is beside each value."""

import pytest

from cranfield import Query, TestSet, compare, compare_many, evaluate, parse
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.unseen import (
    FEW,
    ObservedEffect,
    UnseenChange,
    UnseenKind,
    largest_difference,
    unseen_queries,
)
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.documents.comparison import comparison_document
from cranfield.reporting.renderers.html import render_html
from cranfield.reporting.renderers.markdown import render_markdown
from cranfield.reporting.renderers.text import render_text

RR = parse("RR")
P12 = 0.220922  # 1 - .05^(1/12)


def set_of(n, strata=None):
    queries = tuple(Query(f"q{i}", strata=strata(i) if strata else {}) for i in range(n))
    return TestSet("set", queries, {query.id: {"hit": 1} for query in queries})


def lists_of(ranks):
    return {f"q{i}": [f"x{j}" for j in range(1, rank)] + ["hit"] for i, rank in enumerate(ranks)}


def scored(ranks, name, strata=None, convention="trec"):
    return evaluate(set_of(len(ranks), strata), lists_of(ranks), measures=("RR",), name=name, convention=convention)


def compared(before, after, *, strata=None, convention="trec", **options):
    sides = [scored(ranks, name, strata, convention) for ranks, name in ((before, "old"), (after, "new"))]
    return compare(*sides, **options)


def found(n, low, high, *, delta=None, sign=1, largest=1.0):
    return ObservedEffect(n, (low + high) / 2 if delta is None else delta, low, high, sign, largest)


@pytest.mark.parametrize(
    ("code", "low", "high", "margin", "change", "size", "rests_on"),
    [
        # better: (1 - p) low - p L = 0, so L = .779078 * .1 / .220922
        ("better", 0.1, 0.3, None, "loss", 0.352648, "interval"),
        # worse: the mirror image
        ("worse", -0.3, -0.1, None, "gain", 0.352648, "interval"),
        # equivalent: (1 - p) low - p L = -margin, so L = (.05 + .779078 * -.01) / .220922
        ("equivalent", -0.01, 0.02, 0.05, "loss", 0.191059, "interval"),
        # no significant difference: the mean, .1, comes to 0
        ("not_significant", -0.1, 0.3, None, "loss", 0.352648, "mean"),
        ("not_significant", -0.3, 0.1, None, "gain", 0.352648, "mean"),
    ],
)
def test_what_turns_each_verdict(code, low, high, margin, change, size, rests_on):
    unseen = unseen_queries(VerdictCode(code), found(12, low, high), 0.05, margin)
    assert unseen.share == pytest.approx(P12, abs=1e-6)
    assert (unseen.kind, unseen.change, unseen.rests_on) == (UnseenKind.CAN_TURN, change, rests_on)
    assert unseen.size == pytest.approx(size, abs=1e-5)
    moved = {"better": low, "worse": high, "equivalent": low}.get(code, (low + high) / 2)
    sign = -1 if change == "loss" else 1
    assert (1 - unseen.share) * moved + sign * unseen.share * unseen.size == pytest.approx(-(margin or 0.0))


def test_where_lower_is_better_a_loss_is_a_higher_value():
    mirrored = unseen_queries(VerdictCode.BETTER, found(12, -0.3, -0.1, sign=-1), 0.05)
    assert mirrored == unseen_queries(VerdictCode.BETTER, found(12, 0.1, 0.3), 0.05)
    assert mirrored.change is UnseenChange.LOSS


def test_no_loss_turns_a_verdict_only_where_the_measure_has_none_as_large():
    # 1 - p = .904968 at n = 30; L = .904968 * low / .095032 is 1 at low = .105011
    within = unseen_queries(VerdictCode.BETTER, found(30, 0.105, 0.3), 0.05)
    beyond = unseen_queries(VerdictCode.BETTER, found(30, 0.1051, 0.3), 0.05)
    unbounded = unseen_queries(VerdictCode.BETTER, found(30, 0.1051, 0.3, largest=None), 0.05)
    assert [each.kind for each in (within, beyond, unbounded)] == ["can_turn", "cannot_turn", "can_turn"]
    assert within.size < 1 < beyond.size == unbounded.size
    assert beyond.sentence.endswith(
        "no loss on them can change the verdict: a mean of 1.0008 would be needed, and 1 is the maximum"
    )


@pytest.mark.parametrize("n", [0, FEW, 1000])
def test_from_50_queries_on_and_without_any_nothing_stands_beside(n):
    assert unseen_queries(VerdictCode.BETTER, found(n, 0.1, 0.2), 0.05) is None


@pytest.mark.parametrize(
    ("code", "numbers"),
    [
        ("mixed", found(12, -0.1, 0.3)),
        ("not_significant", found(12, -0.1, 0.1, delta=0.0)),
        ("not_significant", ObservedEffect(12, None, None, None, 1)),
        ("better", ObservedEffect(12, -0.1, None, None, 1)),  # a test of ranks, and the mean points the other way
    ],
)
def test_without_a_mean_to_turn_the_share_stands_alone(code, numbers):
    unseen = unseen_queries(VerdictCode(code), numbers, 0.05)
    assert (unseen.kind, unseen.size) == (UnseenKind.UNKNOWN, None)
    assert unseen.sentence == (
        "query types not in this sample may be up to 22.1 % of all queries (95 % confidence, n = 12); "
        "the results do not cover them"
    )


def test_an_invalid_comparison_has_none():
    assert unseen_queries(VerdictCode.INVALID, found(12, 0.1, 0.2), 0.05) is None


def test_the_bound_is_known_only_where_the_convention_keeps_it():
    by = {name: scored([1, 2], "a", convention=name).ranking for name in ("trec", "cupertino")}
    assert largest_difference(RR, by["trec"]) == 1
    assert largest_difference(RR, by["trec"], [0.5, -1.2]) is None
    assert largest_difference(parse("DCG@10"), by["trec"]) is None
    assert largest_difference(RR, by["cupertino"]) is None  # every match gets credit: values above 1 occur


def test_a_comparison_has_it_beside_its_verdict_in_every_form():
    # RR .5 to 1 on 12 queries: the interval is [.5, .5]; L = .779078 * .5 / .220922 = 1.7632, more than the measure has
    result = compared([2] * 12, [1] * 12)
    unseen = result.verdict.unseen
    assert (result.verdict.code, unseen.kind, unseen.largest) == (VerdictCode.BETTER, UnseenKind.CANNOT_TURN, 1.0)
    assert unseen.size == pytest.approx(1.7632, abs=1e-4)
    document = comparison_document(result)
    assert document.verdict.reasons[-1] == unseen.sentence
    for form in (render_text, render_markdown, render_html):
        assert "query types not in this sample may be" in form(document).replace("\n  ", " ")
    record = document.payload()["unseen"]
    assert (record["kind"], record["n"], record["rests_on"]) == ("cannot_turn", 12, "interval")
    assert record["sentence"] == unseen.sentence


def test_50_queries_have_none_and_the_verdict_is_the_same():
    many = compared([2] * 50, [1] * 50)
    assert many.verdict.unseen is None
    assert many.verdict.name == compared([2] * 49, [1] * 49).verdict.name == "better"
    assert "of a kind" not in render_text(comparison_document(many))


@pytest.mark.parametrize("test", ["wilcoxon", "sign"])
def test_a_test_that_is_not_of_the_mean_has_what_brings_the_mean_to_zero(test):
    unseen = compared([2] * 12, [1] * 12, test=test).verdict.unseen
    assert (unseen.rests_on, unseen.change) == ("mean", UnseenChange.LOSS)
    assert "can bring the mean difference to zero" in unseen.sentence


def test_each_class_that_decides_has_its_own():
    halves = [2] * 30 + [1] * 10, [1] * 30 + [2] * 10
    result = compared(*halves, strata=lambda i: {"kind": "name" if i < 30 else "question"})
    assert result.by_class is None  # nothing is declared
    sides = [
        scored(ranks, name, lambda i: {"kind": "name" if i < 30 else "question"})
        for ranks, name in zip(halves, ("old", "new"), strict=True)
    ]
    result = compare(*sides, strata="kind")
    rows = {row.name: row.unseen for row in result.by_class.rows}
    assert result.verdict.code is VerdictCode.MIXED
    assert result.verdict.unseen.size is None
    assert (rows["name"].n, rows["name"].change) == (30, UnseenChange.LOSS)
    assert (rows["question"].n, rows["question"].change) == (10, UnseenChange.GAIN)
    text = render_text(comparison_document(result)).replace("\n  ", " ")
    assert "- question: query types not in this sample may be up to 25.9 % of its queries" in text
    of_classes = comparison_document(result).payload()["verdict_by_class"]["rows"]
    assert [row["unseen"]["of"] for row in of_classes] == ["name", "question"]


def test_of_many_systems_the_pair_that_turns_first_stands_beside_the_verdict():
    ranks = {"a": [4] * 12, "b": [2] * 12, "c": [1] * 12}  # RR .25, .5, 1: c is best, and b is next
    many = compare_many([scored(of, name) for name, of in ranks.items()])
    assert many.verdict.code is VerdictCode.ONE_BEST
    assert many.verdict.unseen.of == "c against b"
    assert many.verdict.unseen.size == pytest.approx(1.7632, abs=1e-4)  # .5 as above
    document = comparison_document(many)
    assert document.verdict.reasons[-1] == many.verdict.unseen.sentence
    payload = document.payload()
    assert payload["unseen"]["of"] == "c against b"
    assert payload["pairs"][2]["unseen"]["size"] == many.verdict.unseen.size


def test_many_systems_without_a_difference_have_the_share_alone():
    rng = [1, 2] * 6
    many = compare_many([scored(of, name) for name, of in {"a": rng, "b": rng[::-1], "c": rng}.items()])
    assert many.verdict.code is VerdictCode.NOT_SIGNIFICANT
    assert many.verdict.unseen.sentence.endswith("; the results do not cover them")


def test_the_share_goes_with_the_declared_level():
    unseen = compared([2] * 12, [1] * 12, alpha=0.01).verdict.unseen
    assert unseen.share == pytest.approx(0.318708, abs=1e-6)  # 1 - .01^(1/12)
    assert "(99 % confidence, n = 12)" in unseen.sentence


def test_the_options_do_not_change_it():
    first, second = (compared([2] * 12 + [1], [1] * 13, seed=seed).verdict.unseen for seed in (0, 1))
    assert first == second
    assert CompareOptions().alpha == 0.05
