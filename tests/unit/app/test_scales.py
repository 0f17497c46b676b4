"""Each measure on its own scale: the rules that SearchTweak's documentation states, one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log2

import pytest

from cranfield.app.evaluate import compare, evaluate, evaluate_on_scales, scales_of, with_measure
from cranfield.base.errors import MeasureError, TestSetError, UsageError
from cranfield.evaluation.classes import by_class
from cranfield.evaluation.values import NOT_ON_ITS_SCALE
from cranfield.formats.convert import write_testset
from cranfield.gate.use_cases.gate import run_gate
from cranfield.measures import parse
from cranfield.model import Query, Rating, TestSet
from cranfield.reporting import evaluation_document, render


def rated(*slots_by_query):
    """Queries q1, q2, ...; each a list of slots in the order of the results d1, d2, ..."""
    ratings = {
        f"q{number}": tuple(
            Rating(f"d{rank}", f"r{slot}", grade)
            for rank, said in enumerate(slots, start=1)
            for slot, grade in enumerate(said)
        )
        for number, slots in enumerate(slots_by_query, start=1)
    }
    return TestSet("s", tuple(Query(query_id) for query_id in ratings), ratings=ratings)


def scored(slots, spelling, *, scale=None, retrieved=None):
    """One query's value under the convention; None where it has none."""
    testset = rated(slots)
    found = retrieved if retrieved is not None else [f"d{rank}" for rank in range(1, len(slots) + 1)]
    evaluation = evaluate_on_scales(testset, {"q1": found}, [spelling], scale=scale)
    return evaluation.value(evaluation.measures[0], "q1")


def single(*grades):
    return [[grade] for grade in grades]


@pytest.mark.parametrize(
    ("slots", "spelling", "expected"),
    [
        (single(1, 0, 1, 0, 1), "AP@5", (1 + 2 / 3 + 3 / 5) / 3),  # .7556
        (single(3, 2, 1, 0), "DCG@4", 3 + 2 / log2(3) + 1 / 2),  # 4.7619
        (single(3, 2, 1, 0), "CG@4", 6.0),
        # chances 7/8, 3/8, 1/8: 7/8 + 1/8 * 3/8 / 2 + 1/8 * 5/8 * 1/8 / 3 = .9017
        (single(3, 2, 1, 0), "ERR(max_rel=3)@4", 7 / 8 + (1 / 8) * (3 / 8) / 2 + (1 / 8) * (5 / 8) * (1 / 8) / 3),
        # the majorities are 1, 0 and a tie: 1 of 2 graded positions
        ([[1, 1, 0], [0, 0, 1], [1, 0, None]], "P@3", 1 / 2),
    ],
)
def test_known_values(slots, spelling, expected):
    scale = "binary" if spelling[0] in "AP" else "graded"
    assert scored(slots, spelling, scale=scale) == pytest.approx(expected, abs=1e-12)


def test_precision_divides_by_the_graded_positions():
    assert scored(single(1, None, 0, 1), "P@4") == pytest.approx(2 / 3)
    assert scored(single(1, None, None, None), "P@10") == 1.0


def test_average_precision_counts_ranks_strictly_and_an_ungraded_position_as_not_relevant():
    # relevant at ranks 1 and 3, nothing known of 2: (1/1 + 2/3) / 2, where the graded positions alone would give 1
    assert scored(single(1, None, 1), "AP@3") == pytest.approx((1 + 2 / 3) / 2)


def test_average_precision_divides_by_the_relevant_ones_within_the_cutoff():
    assert scored(single(1, 0, 0, 1), "AP@2") == 1.0


@pytest.mark.parametrize(
    ("slots", "expected"),
    [(single(1, 0), 1.0), (single(0, 1), 1 / 2), (single(None, 0, 1), 1 / 3), (single(0, 0), 0.0)],
)
def test_reciprocal_rank(slots, expected):
    assert scored(slots, "RR@3") == pytest.approx(expected)


EVERY = ("P@3", "AP@3", "RR@3", "CG@3", "DCG@3", "nDCG@3", "ERR@3")


@pytest.mark.parametrize("spelling", EVERY)
def test_nothing_graded_is_no_value(spelling):
    assert both(single(None, None, None), spelling) is None


@pytest.mark.parametrize("spelling", EVERY)
def test_nothing_graded_within_the_cutoff_is_no_value(spelling):
    assert both(single(None, None, None, 1), spelling) is None


@pytest.mark.parametrize("spelling", EVERY)
def test_something_graded_and_nothing_relevant_is_0(spelling):
    assert both(single(0, None, 0), spelling) == 0.0


def both(slots, spelling):
    """The value of a query beside another one that has a value for certain: a measure needs one."""
    evaluation = evaluate_on_scales(
        rated(slots, single(1, 0, 1)),
        {"q1": [f"d{rank}" for rank in range(1, len(slots) + 1)], "q2": ["d1", "d2", "d3"]},
        [spelling],
        scale="binary" if spelling[0] in "PAR" else "graded",
    )
    return evaluation.value(evaluation.measures[0], "q1")


def test_a_tie_is_no_grade():
    assert both([[1, 0], [0, 1, None]], "P@2") is None
    assert both([[1, 0], [1, 1]], "P@2") == 1.0  # of the one position that has a grade
    assert both([[1, 0], [1, 1]], "AP@2") == 1 / 2  # at rank 2, after what counts as 0
    assert both([[1, 0], [1, 1]], "RR@2") == 1 / 2


def test_sums_count_an_ungraded_position_as_0():
    assert scored(single(3, None, 2), "CG@3", scale="graded") == 5.0
    assert scored(single(3, None, 2), "DCG@3", scale="graded") == pytest.approx(3 + 2 / 2)


def test_the_ideal_is_the_same_results_in_their_best_order():
    # 1, 3: (1 + 3/log2(3)) over (3 + 1/log2(3)); d3, graded 3 and not retrieved, does not count
    value = scored(single(1, 3, 3), "nDCG@2", scale="graded", retrieved=["d1", "d2"])
    assert value == pytest.approx((1 + 3 / log2(3)) / (3 + 1 / log2(3)))


def test_the_mean_is_over_queries_with_a_value():
    evaluation = evaluate_on_scales(
        rated(single(1, 1), single(None, None), single(0, 1)),
        {f"q{n}": ["d1", "d2"] for n in (1, 2, 3)},
        ["P@2"],
    )
    summary = evaluation.summaries[evaluation.measures[0]]
    assert (summary.mean, summary.n) == (0.75, 2)  # (1 + 1/2) / 2


def test_graded_slots_are_averaged():
    # means 2 and 1.5: 2 + 1.5 / log2(3)
    assert scored([[3, 2, 1], [3, None, 0]], "DCG@2", scale="graded") == pytest.approx(2 + 1.5 / log2(3))


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("P@2", 1.0),  # 1, 5, 8 are 0, 1, 1: relevant; 1, 2 are 0, 1: a tie, so one position is graded
        ("CG@2", 5 / 3 + 0.5),  # 0, 2, 3 and 0, 1
        ("CG(d)@2", 14 / 3 + 1.5),  # as they are
    ],
)
def test_detail_ratings_are_mapped_slot_by_slot_to_the_scale_of_the_measure(spelling, expected):
    assert scored([[1, 5, 8], [1, 2]], spelling, scale="detail") == pytest.approx(expected)


def test_binary_ratings_are_worth_3_on_the_graded_scale():
    assert scored(single(1, 0), "CG@2") == 3.0


def test_one_evaluation_holds_the_measures_of_all_scales():
    evaluation = evaluate_on_scales(
        rated([[3, 2], [1, 0], [0, 0]]), {"q1": ["d1", "d2", "d3"]}, ["nDCG@3", "P@3", "DCG@3", "Judged@3"]
    )
    assert list(map(str, evaluation.measures)) == ["nDCG@3", "P@3", "DCG@3", "Judged@3"]
    values = {str(measure): evaluation.value(measure, "q1") for measure in evaluation.measures}
    assert values["DCG@3"] == pytest.approx(2.5 + 0.5 / log2(3))
    assert values["P@3"] == 1 / 2  # 1 and 0 graded, a tie between them
    assert values["Judged@3"] == 1.0  # beside the first measure, on the graded scale
    assert evaluation.ranking.convention.name == "searchtweak"
    assert any(line.startswith("on the binary scale: P@3; ") and "even" in line for line in evaluation.warnings)
    assert any(line.startswith("on the graded scale: nDCG@3, DCG@3, Judged@3; ") for line in evaluation.warnings)


def test_a_judgment_without_ratings_is_the_only_rating():
    testset = TestSet(
        "s", (Query("q1"),), {"q1": {"d2": 2.0}}, ratings={"q1": (Rating("d1", "ann", 3), Rating("d1", "bob", 0))}
    )
    evaluation = evaluate_on_scales(testset, {"q1": ["d1", "d2"]}, ["CG@2", "P@2"])
    assert [evaluation.value(measure, "q1") for measure in evaluation.measures] == [3.5, 1.0]


def test_the_scale_of_each_measure():
    scales = scales_of(["P@5", "AP", "RR@10", "Success@5", "R@5", "CG@5", "DCG@5", "nDCG@5", "ERR@5", "Judged@5"])
    assert list(scales.values()) == ["binary"] * 5 + ["graded"] * 4 + [None]
    assert list(scales_of(["nDCG(d)@10", "DCG(d)@5"]).values()) == ["detail", "detail"]


def test_one_measure_on_two_scales_is_two_measures():
    scales = scales_of(["nDCG@10", "nDCG(d)@10", "CG(d)@3"])
    assert {str(measure): scale for measure, scale in scales.items()} == {
        "nDCG@10": "graded",
        "nDCG(d)@10": "detail",
        "CG(d)@3": "detail",
    }


def test_both_scales_are_in_one_evaluation():
    both = evaluate_on_scales(TWO_SCALES, LISTS, ["nDCG@3", "nDCG(d)@3", "CG(d)@3", "CG@3"], scale="detail")
    for spelling in ("nDCG@3", "nDCG(d)@3", "CG(d)@3", "CG@3"):
        alone = evaluate_on_scales(TWO_SCALES, LISTS, [spelling], scale="detail")
        assert [both.value(spelling, query_id) for query_id in ("q1", "q2")] == [
            alone.value(spelling, query_id) for query_id in ("q1", "q2")
        ]
    # q1 begins d2 (mean of 4, 5, 5), d1 (10, 9, 1) and x; a detail rating of 5 is a graded 2, of 8 or more 3
    assert both.value("CG(d)@3", "q1") == pytest.approx(14 / 3 + 20 / 3)
    assert both.value("CG@3", "q1") == pytest.approx((1 + 2 + 2) / 3 + (3 + 3 + 0) / 3)


def test_measures_are_printed_as_their_users_know_them():
    evaluation = evaluate(TWO_SCALES, LISTS, measures=["AP@3", "RR@3", "CG(d)@3", "P@3"], convention="searchtweak")
    assert list(map(str, evaluation.measures)) == ["MAP@3", "MRR@3", "CG(d)@3", "P@3"]
    assert evaluation.value("AP@3", "q1") == evaluation.value("MAP@3", "q1")
    assert "MAP@3" in render(evaluation_document([evaluation]), "text")
    keys = json.loads(render(evaluation_document([evaluation]), "json"))["systems"][0]["measures"]
    assert list(keys) == ["AP@3", "RR@3", "CG(d)@3", "P@3"]  # files have one spelling under every convention
    result = compare(evaluation, evaluation, primary="AP@3")
    assert str(result.primary) == "MAP@3"
    assert str(evaluate({"q1": {"d1": 1}}, LISTS, measures=["AP@3"]).measures[0]) == "AP@3"


def test_classes_strata_and_a_gate_print_them_too_and_json_has_one_spelling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = [f"q{n}" for n in range(6)]
    queries = tuple(Query(each, text=each, query_class="canonical", strata={"kind": "a"}) for each in ids)
    write_testset(TestSet("t", queries, {each: {"d": 1} for each in ids}), tmp_path / "t.yaml")
    (tmp_path / "s.run").write_text("".join(f"{each} Q0 d 1 1 s\n" for each in ids))
    rules = "gate: {rules: [floor: {measure: AP@3, at_least: 0}]}"
    (tmp_path / "cranfield.yaml").write_text(
        f"testset: t.yaml\nconvention: searchtweak\nmeasures: [MAP@3]\nsystems: {{s: {{run: s.run}}}}\n{rules}\n"
    )
    gate = render(run_gate(tmp_path / "cranfield.yaml", out=tmp_path / "gate").document, "text")
    assert "MAP@3 in each stratum" in gate
    found = evaluate(tmp_path / "t.yaml", tmp_path / "s.run", measures=["AP@3"], convention="searchtweak")
    report = evaluation_document([found])
    assert "MRR@10" in render(report, "text")
    (system,) = json.loads(render(report, "json"))["systems"]
    # Kind a has one class alone: the measures of this class, too.
    assert list(system["by_stratum"][0]["measures"]) == ["AP@3", "RR@10", "P@1"]
    assert {name for each in system["classes"] for name in [one["measure"] for one in each["measures"]]} >= {"RR@10"}
    assert "MRR@10" not in render(report, "csv")


def test_caveats_name_measures_as_tables_do():
    unjudged = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    found = evaluate(unjudged, {"q1": ["d1"], "q2": ["x"]}, measures=["AP@3", "RR@3"], convention="searchtweak")
    assert "MAP@3, MRR@3 have no value for 1 of 2 queries (nothing within the cutoff is judged): q2" in found.warnings
    rated = evaluate(TWO_SCALES, LISTS, measures=["AP@3", "P@3"], convention="searchtweak")
    assert rated.warnings[0].startswith("on the binary scale: MAP@3, P@3; ")


def test_without_ratings_a_measure_of_the_detail_scale_says_that_it_is_not_on_it():
    plain = replace(TWO_SCALES, ratings={}, grades={"q1": {"a": 2}, "q2": {"b": 1}})
    evaluation = evaluate(plain, LISTS, measures=["nDCG(d)@3", "nDCG@3"])
    assert list(map(str, evaluation.measures)) == ["nDCG@3"]
    sentence = "nDCG(d)@3 computed on the unconverted grades, not on the detail scale: "
    assert sentence + "the test set has no ratings" in evaluation.warnings
    rated = evaluate(replace(TWO_SCALES, grades=plain.grades), LISTS, measures=["nDCG(d)@3"])
    assert sentence + "the convention is not searchtweak" in rated.warnings
    assert not [each for each in evaluate(plain, LISTS, measures=["nDCG@3"]).warnings if "detail" in each]


def test_where_nobody_rated_anything_no_measure_has_a_value():
    with pytest.raises(MeasureError, match="nothing within the cutoff is judged"):
        scored(single(None, None), "P@2")


def test_what_cannot_be_mapped_is_said():
    with pytest.raises(UsageError, match="no map from graded to detail"):
        scored(single(3, 0), "DCG(d)@2", scale="graded")
    with pytest.raises(UsageError, match="not on a known scale"):
        scored(single(30, 0), "P@2")
    with pytest.raises(TestSetError, match="has no ratings"):
        evaluate_on_scales(TestSet("s", (Query("q1"),), {"q1": {"d1": 1.0}}), {"q1": ["d1"]}, ["P@2"])


TWO_SCALES = rated([[10, 9, 1], [4, 5, 5], [1, 1, 2], [7, 8, 9]], [[4, 5, 5], [1, 1, 2]])
LISTS = {"q1": ["d2", "d1", "x", "d4", "d3"], "q2": ["d2", "d1"]}


@pytest.mark.parametrize("first", ["nDCG(d)@10", "P@3", "nDCG@10"])
def test_a_measure_added_later_is_on_its_own_scale_whatever_the_first_one_is(first):
    asked = evaluate_on_scales(TWO_SCALES, LISTS, [first, "P@5", "RR@5"], scale="detail")
    added = with_measure(evaluate_on_scales(TWO_SCALES, LISTS, [first, "P@5"], scale="detail"), "RR@5")
    assert asked.summaries[parse("RR@5")] == added.summaries[parse("RR@5")]
    assert added.summaries[parse("RR@5")].mean == pytest.approx((1 + 1 / 2) / 2)  # binary: 1 is not relevant


@pytest.mark.parametrize(
    ("measures", "primary", "why"),
    [
        (["P@3"], "nDCG(d)@10", "the run was not ranked on the detail scale"),
        (["P@3"], "nDCG@10", "the run was not ranked on the graded scale"),
    ],
)
def test_a_measure_is_not_added_on_a_scale_that_is_not_its_own(measures, primary, why):
    evaluation = evaluate_on_scales(TWO_SCALES, LISTS, measures, scale="detail")
    with pytest.raises(UsageError, match=why):
        with_measure(evaluation, primary)


def test_a_measure_is_added_on_another_scale_than_it_has():
    evaluation = with_measure(
        evaluate_on_scales(TWO_SCALES, LISTS, ["nDCG@10", "DCG(d)@5"], scale="detail"), "nDCG(d)@10"
    )
    both = evaluate_on_scales(TWO_SCALES, LISTS, ["nDCG@10", "nDCG(d)@10"], scale="detail")
    assert evaluation.mean("nDCG(d)@10") == both.mean("nDCG(d)@10") != both.mean("nDCG@10")


def test_only_measures_on_one_scale_are_compared():
    one, other = (
        evaluate_on_scales(TWO_SCALES, LISTS, ["P@3", spelling], scale="detail")
        for spelling in ("nDCG(d)@10", "nDCG@10")
    )
    assert one.testset.digest == other.testset.digest
    assert list(map(str, compare(one, other).measures)) == ["P@3"]


def test_the_table_of_a_class_has_each_measure_on_its_own_scale():
    queries = tuple(Query(query.id, query_class="canonical") for query in TWO_SCALES.queries)
    testset = replace(TWO_SCALES, queries=queries)
    (table,) = by_class(evaluate_on_scales(testset, LISTS, ["nDCG(d)@10", "P@3"], scale="detail"))
    # canonical: RR@10 and P@1, both binary
    assert [one.summary.mean for one in table.measures] == pytest.approx([(1 + 1 / 2) / 2, 1 / 2])
    (table,) = by_class(evaluate_on_scales(testset, LISTS, ["nDCG(d)@10"], scale="detail"))
    assert [one.summary.mean for one in table.measures] == [None, None]
    assert all(why == NOT_ON_ITS_SCALE for one in table.measures for why in one.unscored.values())
