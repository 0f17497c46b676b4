"""Three systems and more: what is compared, what is adjusted, and what is said of it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cranfield import Limits, Query, TestSet, compare, compare_many, evaluate, parse
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.many import compare_many as compared
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.values import Evaluation
from cranfield.stats.result import holm

RR, P1 = parse("RR"), parse("P@1")


def set_of(n: int) -> TestSet:
    queries = tuple(Query(f"q{i}", strata={"type": "even" if i % 2 == 0 else "odd"}) for i in range(n))
    return TestSet("set", queries, {query.id: {"hit": 1} for query in queries})


def lists_of(ranks: list[int | None]) -> dict[str, list[str]]:
    """A list whose relevant document is at each rank; None: not there."""
    return {
        f"q{i}": [f"x{j}" for j in range(1, rank or 11)] + (["hit"] if rank else []) for i, rank in enumerate(ranks)
    }


def systems(measures: tuple[str, ...] = ("RR", "P@1"), **ranks: list[int | None]) -> list[Evaluation]:
    testset = set_of(len(next(iter(ranks.values()))))
    return [evaluate(testset, lists_of(some), measures=measures, name=name) for name, some in ranks.items()]


def random_ranks(seed: int, n: int, best: int) -> list[int | None]:
    draw = random.Random(seed)
    return [draw.randrange(best, 9) for _ in range(n)]


def four() -> list[Evaluation]:
    return systems(
        old=random_ranks(1, 40, 2), same=random_ranks(2, 40, 2), new=random_ranks(3, 40, 1), top=[1] * 36 + [2] * 4
    )


@pytest.fixture(scope="module")
def many() -> ManyComparison:
    return compare_many(four(), baseline="old", test="t")


def test_every_pair_is_compared_once_in_the_order_given(many: ManyComparison) -> None:
    assert [(pair.first, pair.second) for pair in many.pairs] == [
        ("old", "same"),
        ("old", "new"),
        ("old", "top"),
        ("same", "new"),
        ("same", "top"),
        ("new", "top"),
    ]


def test_a_pair_has_the_numbers_of_comparing_the_two_alone(many: ManyComparison) -> None:
    evaluations = {evaluation.name: evaluation for evaluation in many.evaluations}
    for pair in many.pairs:
        alone = compare(evaluations[pair.first], evaluations[pair.second], test="t").measures[RR]
        assert pair.delta == pytest.approx(alone.delta, abs=1e-15)
        assert pair.result.p_two_sided == alone.tests["t"].p_two_sided
        assert (pair.result.ci_low, pair.result.ci_high) == (alone.ci_low, alone.ci_high)


@pytest.mark.parametrize("test", ["permutation", "wilcoxon", "t", "sign", "bootstrap"])
def test_each_test_that_can_be_declared_gives_the_p_of_comparing_two(test: str) -> None:
    evaluations = four()
    pair = compare_many(evaluations, test=test, adjust="holm").pairs[0]
    alone = compare(evaluations[0], evaluations[1], test=test).measures[RR].tests[test]
    assert pair.result.p_two_sided == alone.p_two_sided
    assert pair.result.ci_low == alone.ci_low


def test_the_statistics_are_those_of_scipy(many: ManyComparison) -> None:
    columns = [evaluation.values[RR] for evaluation in many.evaluations]
    for pair in many.pairs:
        first, second = (columns[many.names.index(name)] for name in (pair.first, pair.second))
        assert pair.result.p_two_sided == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-9)
    friedman = stats.friedmanchisquare(*columns)
    assert many.omnibus["friedman"].statistic == pytest.approx(friedman.statistic, rel=1e-12)
    assert many.omnibus["friedman"].p_two_sided == pytest.approx(friedman.pvalue, rel=1e-9)
    (agreement,) = many.agreements
    means = [[float(evaluation.values[measure].mean()) for evaluation in many.evaluations] for measure in (RR, P1)]
    assert agreement.tau == pytest.approx(stats.kendalltau(*means).statistic, abs=1e-12)
    ranks = np.mean([stats.rankdata(-row) for row in np.column_stack(columns)], axis=0)
    assert many.ranks is not None
    assert list(many.ranks.means.values()) == pytest.approx(ranks.tolist(), abs=1e-12)


def test_p_is_adjusted_over_all_pairs_and_against_the_baseline_over_those_alone(many: ManyComparison) -> None:
    p_values = [pair.result.p_two_sided for pair in many.pairs]
    assert [pair.result.p_adjusted for pair in many.pairs] == holm(p_values)
    assert [pair.second for pair in many.against] == ["same", "new", "top"]
    assert {pair.first for pair in many.against} == {"old"}
    assert [pair.result.p_adjusted for pair in many.against] == holm(p_values[:3])
    assert [pair.p_tukey for pair in many.against] == [pair.p_tukey for pair in many.pairs[:3]]


def test_a_pair_is_told_apart_by_its_adjusted_p_alone() -> None:
    # 12 queries; b rises on 8 and falls on 1 of 12: sign test on 9, p = 2 * (1 + 9) / 2**9 = .0391; three pairs: 3 * p > .05
    a = [2] * 12
    b = [1] * 8 + [3] + [2] * 3
    found = compare_many(systems(a=a, b=b, c=a), test="sign")
    first = found.pairs[0]
    assert first.result.p_two_sided == pytest.approx(2 * (1 + 9) / 2**9)
    assert first.result.p_adjusted == pytest.approx(3 * 2 * (1 + 9) / 2**9)
    assert first.verdict == "not_significant"


def test_wins_ties_and_losses_add_up_to_the_queries() -> None:
    found = compare_many(systems(a=[1, 2, 3, 4], b=[2, 2, 1, 1], c=[1, 2, 3, 4]))
    assert [(pair.wins, pair.ties, pair.losses) for pair in found.pairs] == [(2, 1, 1), (0, 4, 0), (1, 1, 2)]


def test_one_system_is_best() -> None:
    found = compare_many(systems(a=[3] * 12, b=[2] * 12, c=[1] * 12))
    assert found.verdict.name == "one best"
    assert found.verdict.best == ("c",)
    assert found.verdict.sentence == (
        "c (1.0000) is best of 3 systems: better than each of the others (RR, n = 12, permutation, 3 pairs, max-T)."
    )


def test_two_systems_are_best_without_a_significant_difference_between_them() -> None:
    found = compare_many(systems(a=[3] * 12, b=[1, 2] * 6, c=[2, 1] * 6), baseline="a")
    assert found.verdict.name == "several best"
    assert found.verdict.best == ("b", "c")
    assert found.verdict.sentence.startswith(
        "b (0.7500) is best of 3 systems; c (0.7500) is not shown to be worse (RR,"
    )
    assert found.verdict.reasons == ("against a, better: b, c",)


def test_none_is_distinguished_where_all_are_the_same() -> None:
    same = [1, 2, 3, None, 1, 2] * 2
    found = compare_many(systems(a=same, b=same, c=same))
    assert (found.verdict.name, found.verdict.best) == ("no significant difference", ())
    assert {pair.result.p_adjusted for pair in found.pairs} == {1.0}
    assert found.omnibus["friedman"].p_two_sided == 1.0
    assert found.agreements[0].tau is None


@pytest.mark.parametrize(
    ("n", "options", "why"),
    [
        (1, {}, "fewer than two queries have a value for every system: nothing can be tested"),
        # 2 of 2^5 sign patterns are as extreme as the most extreme one: .0625; with 6 queries .0313
        (5, {}, "5 queries cannot make any of 3 pairs significant at alpha 0.05: the smallest p"),
        (5, {}, "p that permutation with single-step max-T can reach is 0.0625; use the test t"),
        (6, {}, None),
        # Holm: 3 * 2 / 2^6 is .0938, and 3 * 2 / 2^7 is .0469
        (6, {"adjust": "holm"}, "can reach is 0.09375; use the test permutation with the adjustment max-t"),
        (7, {"adjust": "holm"}, None),
        (24, {"adjust": "holm", "draws": 40}, "24 queries and 40 draws cannot make any of 3 pairs significant at alpha 0.05"),
        (24, {"adjust": "holm", "draws": 40}, "use 120 draws or the test permutation with the adjustment max-t"),
        (24, {"adjust": "holm", "draws": 120}, None),  # 3 * 2 / 120 is .05
        (24, {"draws": 40}, None),  # 2 / 40, whatever the number of pairs
        (24, {"draws": 38}, "use 40 draws"),
        (6, {"test": "sign"}, "the smallest p that sign with Holm's adjustment can reach is 0.09375"),
        (5, {"test": "wilcoxon"}, "the smallest p that wilcoxon with Holm's adjustment can reach is 1"),
        (24, {"test": "bootstrap", "draws": 100}, "24 queries and 100 draws cannot make any of 3 pairs"),
        (2, {"test": "t"}, None),
    ],
)  # fmt: skip
def test_where_no_pair_could_have_been_found_the_verdict_is_invalid(
    n: int, options: dict[str, Any], why: str | None
) -> None:
    three = systems(a=[1] * n, b=[1] * n, c=[2] * n)
    found = compared(three, CompareOptions(**options))
    if why is None:
        assert found.verdict.best == ("a", "b")
        return
    assert found.verdict.name == "invalid"
    assert why in found.verdict.reasons[0]
    assert {pair.verdict for pair in found.pairs} <= {"invalid"}
    assert all(pair.result.p_adjusted is None for pair in found.pairs)
    assert found.groups == ()
    assert found.claims == ("invalid",)


def test_the_suggested_number_of_draws_is_enough() -> None:
    three = systems(a=[1] * 24, b=[1] * 24, c=[2] * 24)
    for draws in (118, 120):
        options = CompareOptions(adjust="holm", draws=draws)
        assert (compared(three, options).verdict.name == "invalid") == (draws < 120)


def test_max_t_and_holm_are_declared_and_in_the_sentence() -> None:
    assert "permutation, 6 pairs, max-T, 2000 draws)" in compare_many(four(), draws=2000).verdict.sentence
    assert "permutation, 6 pairs, Holm, 2000 draws)" in compare_many(four(), draws=2000, adjust="holm").verdict.sentence
    assert "t, 6 pairs, Holm)" in compare_many(four(), test="t").verdict.sentence
    with pytest.raises(UsageError, match="adjustment max-t cannot be used with the test t"):
        compare_many(four(), test="t", adjust="max-t")
    with pytest.raises(UnknownNameError, match="unknown adjustment 'hulm'"):
        compare_many(four(), adjust="hulm")
    with pytest.raises(UsageError, match="draws is 1; expected a whole number of 2 or more"):
        compare_many(four(), draws=1)


def test_an_adjusted_interval_excludes_zero_exactly_where_its_pair_is_significant() -> None:
    for seed in range(4):
        ranks = {name: random_ranks(7 * seed + place, 30, place % 3 + 1) for place, name in enumerate("abcd")}
        for pair in compare_many(systems(**ranks), draws=2000).pairs:
            low, high = pair.result.ci_low, pair.result.ci_high
            assert low is not None
            assert high is not None
            assert pair.is_significant == (low > 0 or high < 0)
            assert low <= pair.estimate == pair.delta <= high


def test_two_systems_share_a_group_exactly_where_their_pair_is_not_significant() -> None:
    draw = random.Random(5)
    ranks = {f"s{place:02}": [draw.randrange(1, 3 + place // 3) for _ in range(40)] for place in range(15)}
    found = compare_many(systems(**ranks), draws=2000)
    apart = {frozenset((pair.first, pair.second)) for pair in found.pairs if pair.is_significant}
    assert 1 < len(found.groups) < 15
    for two in combinations(found.names, 2):
        assert any(set(two) <= set(group) for group in found.groups) == (frozenset(two) not in apart)
    order = [found.names[place] for place in found.best_first]
    assert all([name for name in order if name in group] == list(group) for group in found.groups)
    assert sum(better for better, _ in found.wins.values()) == len(apart)
    assert sum(worse for _, worse in found.wins.values()) == len(apart)


def small_and_noisy() -> list[Evaluation]:
    """`small` gains a rank on every fourth query, `noisy` is unrelated: its mean is the lowest, and in doubt."""
    ranks = np.random.default_rng(3).integers(2, 6, 60).tolist()
    small = [max(1, rank - (i % 4 == 0)) for i, rank in enumerate(ranks)]
    noisy = [int(np.random.default_rng(i).integers(1, 9)) for i in range(60)]
    return systems(base=ranks, small=small, noisy=noisy)


def test_the_sentence_names_a_better_mean_that_is_not_among_the_best_and_what_it_is_worse_than() -> None:
    found = compare_many(small_and_noisy())
    assert found.verdict.best == ("small", "noisy")
    assert found.verdict.sentence == (
        "small (0.3897) is best of 3 systems; noisy (0.3292) is not shown to be worse (RR, n = 60, permutation, 3 pairs, "
        "max-T, 100,000 draws). base (0.3322) has a better mean than noisy, but is significantly worse than small."
    )
    assert found.groups == (("small", "noisy"), ("base", "noisy"))  # base b, small a, noisy ab


def test_several_better_means_that_are_left_out_are_named_with_what_all_are_worse_than() -> None:
    base, small, noisy = small_and_noisy()
    found = compare_many([base, replace(base, name="copy"), small, noisy])
    assert found.verdict.sentence.endswith(
        ". base (0.3322) and copy (0.3322) have a better mean than noisy, but are significantly worse than small."
    )


def test_a_test_of_signs_can_put_a_lower_mean_first_and_the_sentence_says_so() -> None:
    # b wins 29 queries of 40 by 1/12 and loses 11 by 1/2: means (11 + 29 / 4) / 40 and (11 / 2 + 29 / 3) / 40
    found = compare_many(systems(a=[1] * 11 + [4] * 29, b=[2] * 11 + [3] * 29, c=[9] * 40), test="sign")
    assert found.verdict.sentence == (
        "b (0.3792) is best of 3 systems: better than each of the others (RR, n = 40, sign, 3 pairs, Holm). "
        "a (0.4562) has a better mean than b, but is significantly worse than b."
    )


def test_no_lower_mean_is_among_the_best_and_a_better_one_outside_without_a_word() -> None:
    for seed in (0, 23, 28, 29):  # the last three have such a system
        draw = random.Random(seed)
        ranks = {name: [draw.randrange(1, 3 + draw.randrange(1, 8)) for _ in range(30)] for name in "abcdef"}
        for name in "bc":  # a little better than another on some queries: significant, and close in the mean
            ranks[name] = [max(1, rank - (draw.random() < 0.4)) for rank in ranks["a" if name == "b" else "d"]]
        found = compare_many(systems(("RR",), **ranks), test="t")
        means = dict(zip(found.names, found.summaries[RR], strict=True))
        best = [name for name in found.names if not found.wins[name][1]]
        if found.verdict.code == "not_significant":
            continue
        assert found.verdict.best == tuple(sorted(best, key=lambda name: -(means[name].mean or 0)))
        sentence, _, left = found.verdict.sentence.partition("). ")
        for name in best:
            assert f"{name} ({means[name].mean:.4f})" in sentence
        for name in set(found.names) - set(best):
            outside = any((means[name].mean or 0) > (means[other].mean or 0) for other in best)
            assert outside == (f"{name} ({means[name].mean:.4f})" in left)


def test_a_best_system_is_never_beaten_and_the_best_are_not_told_apart() -> None:
    for seed in range(5):
        found = compare_many(
            systems(**{name: random_ranks(10 * seed + place, 30, place % 3 + 1) for place, name in enumerate("abcde")}),
            test="t",
            draws=2000,
        )
        for pair in found.pairs:
            loser = {"better": pair.first, "worse": pair.second}.get(pair.verdict)
            assert loser not in found.verdict.best
            if {pair.first, pair.second} <= set(found.verdict.best):
                assert pair.verdict == "not_significant"


def test_where_less_is_better_the_lowest_mean_is_best() -> None:
    found = compare_many(systems(("RankOfFirst",), a=[3] * 12, b=[2] * 12, c=[1] * 12))
    assert found.verdict.best == ("c",)
    assert [found.names[place] for place in found.best_first] == ["c", "b", "a"]
    assert [pair.verdict for pair in found.pairs] == ["better"] * 3
    assert [(pair.delta, pair.wins) for pair in found.pairs] == [(-1.0, 12), (-2.0, 12), (-1.0, 12)]
    assert found.ranks is not None
    assert found.ranks.means == {"a": 3.0, "b": 2.0, "c": 1.0}


def test_a_measure_that_puts_another_system_first_is_named_also_where_less_is_better() -> None:
    measures = ("RR", "RankOfFirst")
    agreed = compare_many(systems(measures, a=[3] * 40, b=[2] * 40, c=[1] * 40))
    assert agreed.verdict.disagreements == ()
    # RR of c: (36 + 4 / 15) / 40 against 1/2; its mean rank: (36 + 4 * 15) / 40 = 2.4 against 2
    found = compare_many(systems(measures, a=[3] * 40, b=[2] * 40, c=[1] * 36 + [15] * 4))
    assert found.verdict.best == ("c",)
    assert found.verdict.disagreements == ("RankOfFirst puts b first, and c is first by RR",)


def test_queries_that_one_system_lacks_are_dropped_for_all_and_counted() -> None:
    testset = set_of(12)
    runs = {name: lists_of([rank] * 12) for name, rank in (("a", 1), ("b", 2), ("c", 3))}
    del runs["b"]["q5"]
    found = compare_many(
        [evaluate(testset, run, measures=["RR"], name=name, missing="skip") for name, run in runs.items()]
    )
    assert found.dropped == {"q5": "b has no answer for it"}
    assert {summary.n for summary in found.summaries[RR]} == {11}
    assert "1 query is left out: not every system has a value of RR" in " ".join(found.verdict.disagreements)


def test_queries_that_nobody_has_a_value_for_are_no_disagreement() -> None:
    judged = {f"q{i}": {"hit": 1} for i in range(9)}
    testset = replace(set_of(12), grades=judged)
    runs = {name: lists_of([rank] * 12) for name, rank in (("a", 1), ("b", 2), ("c", 3))}
    found = compare_many([evaluate(testset, run, measures=["RR"], name=name) for name, run in runs.items()])
    assert set(found.dropped) == {"q9", "q10", "q11"}
    assert "not every system" not in " ".join(found.verdict.disagreements)


def test_too_many_dropped_queries_make_it_invalid() -> None:
    testset = set_of(12)
    runs = {name: lists_of([rank] * 12) for name, rank in (("a", 1), ("b", 2), ("c", 3))}
    runs["b"] = {query: found for query, found in runs["b"].items() if query in {"q0", "q1", "q2"}}
    evaluations = [evaluate(testset, run, measures=["RR"], name=name, missing="skip") for name, run in runs.items()]
    found = compare_many(evaluations, draws=2000)
    assert found.verdict.name == "invalid"
    assert "9 of 12 queries have a value of RR for some systems only (75.0 %)" in found.verdict.reasons[0]
    assert compare_many(evaluations, test="t", limits=Limits(max_failed_share=None)).verdict.name != "invalid"


def test_strata_are_means_of_every_system(many: ManyComparison) -> None:
    even, odd = many.strata
    assert (even.value, even.n, odd.value, odd.n) == ("even", 20, "odd", 20)
    for evaluation in many.evaluations:
        assert even.summaries[evaluation.name].mean == pytest.approx(float(evaluation.values[RR][0::2].mean()))


def test_systems_within_the_critical_difference_share_a_group(many: ManyComparison) -> None:
    assert many.ranks is not None
    # Nemenyi: q(.95; 4, inf) = 3.633; 3.633 / sqrt(2) * sqrt(4 * 5 / (6 * 40))
    assert many.ranks.critical_difference == pytest.approx(3.633 / math.sqrt(2) * math.sqrt(20 / 240), abs=1e-3)
    rank = many.ranks.means
    for group in many.ranks.groups:
        assert max(rank[name] for name in group) - min(rank[name] for name in group) <= many.ranks.critical_difference


def test_the_omnibus_test_is_named_where_it_says_otherwise_than_the_pairs() -> None:
    found = compare_many(
        systems(a=random_ranks(5, 30, 1), b=random_ranks(6, 30, 1), c=random_ranks(7, 30, 1)), draws=2000
    )
    assert found.verdict.name == "no significant difference"
    p = found.omnibus["permutation"].p_two_sided
    assert p is not None
    assert bool([said for said in found.verdict.disagreements if said.startswith("Permutation test")]) == (p <= 0.05)


def test_the_order_of_the_systems_changes_no_number() -> None:
    forward, backward = compare_many(four(), draws=2000), compare_many(four()[::-1], draws=2000)
    assert set(forward.verdict.best) == set(backward.verdict.best)
    mirrored = {(pair.second, pair.first): pair for pair in backward.pairs}
    for pair in forward.pairs:
        other = mirrored[pair.first, pair.second]
        assert other.delta == pytest.approx(-pair.delta)
        assert other.result.p_adjusted == pair.result.p_adjusted


def test_what_does_not_belong_together_is_refused() -> None:
    one, two, three, _ = four()
    with pytest.raises(UsageError, match=r"2 systems; expected three or more"):
        compare_many([one, two])
    with pytest.raises(UsageError, match="more than one system is called old"):
        compare_many([one, two, replace(three, name="old")])
    with pytest.raises(UnknownNameError, match=r"unknown system 'olt'; expected new, old, same"):
        compare_many([one, two, three], baseline="olt")
    with pytest.raises(UsageError, match="different test sets"):
        compare_many([one, two, *systems(other=[1] * 8)])
    with pytest.raises(UsageError, match="primary measure AP was not evaluated on every system"):
        compare_many([one, two, three], primary="AP")
    with pytest.raises(UsageError, match="compare_many takes evaluations"):
        compare_many([one, two, "three"])  # type: ignore[list-item]
