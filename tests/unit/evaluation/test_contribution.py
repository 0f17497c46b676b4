"""What components bring: differences to all-but-one, Holm over the components, and the queries that hang on one alone."""

from __future__ import annotations

import pytest

from cranfield import evaluate
from cranfield.base.errors import UsageError
from cranfield.evaluation.contribution import contributions
from cranfield.evaluation.grid import ScoredPoint, choose_point
from cranfield.evaluation.options.blocks import CompareOptions, Limits
from cranfield.evaluation.testset.split import only
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet

N = 12
TESTSET = TestSet("t", tuple(Query(f"q{i}") for i in range(N)), {f"q{i}": {"yes": 1} for i in range(N)})
RIGHT, WRONG = ["yes"], ["no"]


def scored(name: str, right: set[int], testset: TestSet = TESTSET):
    """An evaluation by P@1: 1 on the queries in `right`, 0 on the others."""
    run = {f"q{i}": RIGHT if i in right else WRONG for i in range(N) if f"q{i}" in testset.by_id}
    return evaluate(testset, run, measures=["P@1", "Success@5"], name=name)


def of(ids: range | set[int]) -> set[int]:
    return set(ids)


OPTIONS = CompareOptions(primary="P@1", limits=Limits(max_failed_share=None))


def test_a_component_brings_what_is_lost_without_it() -> None:
    # Without a: wrong on 0..7. Without b: wrong on 6..8. Without c: nothing changes.
    found = contributions(
        "s",
        scored("s.all", of(range(12))),
        {"a": scored("s.only-a", of(range(6))), "b": scored("s.only-b", {8}), "c": scored("s.only-c", set())},
        {
            "a": scored("s.without-a", of(range(8, 12))),
            "b": scored("s.without-b", of(range(12)) - {6, 7, 8}),
            "c": scored("s.without-c", of(range(12))),
        },
        OPTIONS,
    )
    a, b, c = found.components
    assert [row.effect.delta for row in found.components] == pytest.approx([8 / 12, 3 / 12, 0])
    # The permutation test over n non-zero differences of one sign: p = 2 / 2^n.
    assert [row.p for row in found.components] == pytest.approx([2 / 2**8, 2 / 2**3, 1.0])
    # Holm over three: 3 x 2/256; 2 x 2/8; 1.
    assert [row.p_adjusted for row in found.components] == pytest.approx([6 / 256, 0.5, 1.0])
    assert [row.verdict.text for row in found.components] == [
        "helps",
        "no significant difference",
        "no significant difference",
    ]
    assert [(row.n_gained, row.n_lost) for row in found.components] == [(8, 0), (3, 0), (0, 0)]
    # Beside each verdict of 12 queries; p = 1 - .05^(1/12) = .220922. b is worth 3/12: L = .779078 * .25 / .220922
    assert [(row.unseen.of, row.unseen.rests_on) for row in found.components] == [
        ("a", "interval"),
        ("b", "mean"),
        ("c", None),
    ]
    assert b.unseen.size == pytest.approx(0.881620, abs=1e-5)
    # 0..5 hang on a alone, 8 on b alone; 6 and 7 on both.
    assert [row.n_only for row in found.components] == [6, 1, 0]
    assert [*found.names] == [
        "s.all",
        "s.only-a",
        "s.only-b",
        "s.only-c",
        "s.without-a",
        "s.without-b",
        "s.without-c",
    ]
    assert (a.alone, b.without, c.component) == ("s.only-a", "s.without-b", "c")


def test_significance_that_holm_takes_away_is_not_claimed() -> None:
    # Each is worth 6 queries: p = 2/64 = .03125, and after Holm over two .0625.
    whole = scored("s.all", of(range(12)))
    one, other = scored("s.only-a", of(range(6))), scored("s.only-b", of(range(6, 12)))
    found = contributions("s", whole, {"a": one, "b": other}, {"a": other, "b": one}, OPTIONS)
    assert [row.p for row in found.components] == pytest.approx([2 / 64, 2 / 64])
    assert [row.p_adjusted for row in found.components] == pytest.approx([4 / 64, 4 / 64])
    assert [row.verdict.text for row in found.components] == ["no significant difference", "no significant difference"]
    assert [*found.names] == ["s.all", "s.only-a", "s.only-b"]


def test_a_component_can_hurt_and_a_variant_that_fails_says_nothing() -> None:
    failed = Run("s.without-b", {f"q{i}": Answer(Outcome.TIMEOUT) for i in range(N)})
    whole = scored("s.all", of(range(3)))
    found = contributions(
        "s",
        whole,
        {"a": whole, "b": whole},
        {"a": scored("s.without-a", of(range(12))), "b": evaluate(TESTSET, failed, measures=["P@1", "Success@5"])},
        CompareOptions(primary="P@1", limits=Limits(max_failed_share=0.1)),
    )
    assert [row.verdict.text for row in found.components] == ["hurts", "invalid"]
    assert found.components[0].n_lost == 9


def test_variants_of_other_components_do_not_belong_together() -> None:
    one = scored("x", {1})
    with pytest.raises(UsageError, match="each component needs a variant alone and one without it"):
        contributions("s", one, {"a": one}, {"b": one}, OPTIONS)


# A grid's winner -------------------------------------------------------------------------------------------------------

TUNING, HELD_OUT = (only(TESTSET, [f"q{i}" for i in ids]) for ids in (range(4), range(4, 12)))


def point(name: str, right: set[int], **settings) -> ScoredPoint:
    return ScoredPoint(name, settings, scored(name, right, TUNING), scored(name, right, HELD_OUT))


def test_the_winner_of_the_tuning_queries_is_judged_on_the_others() -> None:
    written = point("s", {0, 4, 5, 6, 7, 8, 9, 10, 11}, x=1)  # tuning 1/4, held out 8/8
    lucky = point("s.p2", {0, 1, 2, 3}, x=2)  # tuning 4/4, held out 0
    found = choose_point(
        "s", [written, lucky, point("s.p3", {0, 1}, x=3)], written, OPTIONS, split="", keys=["x"]
    ).result
    assert [each.name for each in found.points] == ["s.p2", "s.p3", "s"]
    assert found.winner == "s.p2"
    assert found.optimism == pytest.approx(1.0)
    assert found.tuning_gain == pytest.approx(3 / 4)
    assert found.comparison is not None
    assert found.comparison.verdict.text == "worse"
    assert found.comparison.comparisons[found.primary].delta == pytest.approx(-1.0)
    assert found.comparison.baseline == "s"


def test_of_equal_points_the_first_is_taken_and_it_is_said() -> None:
    written = point("s", set())
    found = choose_point(
        "s", [point("s.p1", {1}), point("s.p2", {2}), written], written, OPTIONS, split="", keys=[]
    ).result
    assert found.winner == "s.p1"
    assert found.notes == (
        "2 points share the best mean on the tuning queries; the first of them in the order of the grid is chosen",
    )


def test_the_config_as_written_stays_where_nothing_is_better() -> None:
    written = point("s", {2})
    found = choose_point("s", [point("s.p1", {1}), written], written, OPTIONS, split="", keys=[]).result
    assert found.winner == "s"
    assert found.comparison is None
    assert found.notes == ("2 points share the best mean on the tuning queries; the config as written is chosen",)


def test_a_config_that_wins_as_it_is_written_is_compared_with_nothing() -> None:
    written = point("s", {0, 1, 2, 3})
    found = choose_point("s", [written, point("s.p2", {0})], written, OPTIONS, split="", keys=["x"]).result
    assert found.comparison is None
    assert found.winner == "s"


def test_a_point_that_breaks_a_limit_is_not_chosen() -> None:
    failing = Run(
        "s.p1", {f"q{i}": Answer(Outcome.TIMEOUT) if i else Answer(Outcome.ANSWERED, (Hit("yes"),)) for i in range(4)}
    )
    broken = evaluate(TUNING, failing, measures=["P@1"])
    written = point("s", set())
    bad = ScoredPoint("s.p1", {}, broken, scored("s.p1", {9}, HELD_OUT))
    options = CompareOptions(primary="P@1", limits=Limits(max_failed_share=0.5))
    found = choose_point("s", [bad, written], written, options, split="", keys=[]).result
    assert found.winner == "s"
    assert "3 of 4 queries failed" in found.points[1].broken_limits[0]
    with pytest.raises(UsageError, match="no point of the grid can be chosen"):
        choose_point("s", [bad], written, options, split="", keys=[])


def test_no_query_may_stand_in_both_parts() -> None:
    one = scored("s", {1}, TUNING)
    written = ScoredPoint("s", {}, one, one)
    with pytest.raises(UsageError, match="a query is in both parts"):
        choose_point("s", [written], written, OPTIONS, split="", keys=[])


def test_the_lucky_winner_of_many_equal_settings_is_not_better_where_it_had_no_say() -> None:
    """Forty settings that differ by chance alone: the best looks better on the tuning queries, and not on the others."""
    import random

    draw = random.Random(3)
    testset = TestSet("big", tuple(Query(f"q{i}") for i in range(200)), {f"q{i}": {"yes": 1} for i in range(200)})
    halves = [only(testset, [f"q{i}" for i in range(200) if i % 2 == half]) for half in (0, 1)]

    def chance(name: str) -> ScoredPoint:
        run = {f"q{i}": RIGHT if draw.random() < 0.5 else WRONG for i in range(200)}
        sides = [evaluate(half, {q: run[q] for q in half.query_ids}, measures=["P@1"], name=name) for half in halves]
        return ScoredPoint(name, {}, *sides)

    points = [chance(f"s.p{i}") for i in range(40)]
    found = choose_point("s", points, points[0], OPTIONS, split="", keys=[]).result
    assert found.optimism is not None
    assert found.optimism > 0.05  # the expected largest of 40 means of 100 coins is about .5 + 2.2 x .05
    assert found.comparison is not None
    assert found.comparison.verdict.text == "no significant difference"
