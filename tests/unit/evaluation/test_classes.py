"""Each class of question in its own terms, for one system and for two."""

from dataclasses import replace

import numpy as np
import pytest

from cranfield.app.evaluate import compare, evaluate, with_measure
from cranfield.base.errors import MeasureError, UnknownNameError
from cranfield.evaluation.classes import by_class, class_measures_by_stratum, compare_classes, smallest_n
from cranfield.evaluation.margins import unjudged_margin
from cranfield.measures import parse
from cranfield.model import QUERY_CLASSES, Answer, Hit, Legacy, Negative, Outcome, Pattern, Query, Run, Source, TestSet
from cranfield.stats.paired import mcnemar, sign_test

FORMS = tuple(f"e{i}" for i in range(8))
QUIET = tuple(f"n{i}" for i in range(4))
SET = TestSet(
    "set",
    (
        *(Query(q, query_class="E") for q in FORMS),
        *(Query(q, negative=Negative()) for q in QUIET),
        Query("h", query_class="attribute"),
        Query("plain"),
    ),
    {**{q: {"new": 1} for q in FORMS}, "h": {"a": 1, "b": 1}, "plain": {"a": 1}},
    legacy={q: Legacy(("old",)) for q in FORMS},
)


def answers(lists, failed=()):
    return {
        q: Answer(
            Outcome.TIMEOUT if q in failed else Outcome.ANSWERED if docs else Outcome.EMPTY, tuple(map(Hit, docs))
        )
        for q, docs in lists.items()
    }


BASE = {
    **{q: ["old", "new"] for q in FORMS},
    "n0": ["x"],
    "n1": ["x"],
    "n2": [],
    "n3": ["x"],
    "h": ["x", "a"],
    "plain": ["a"],
}
BETTER = {**{q: ["new", "old"] for q in FORMS}, "e0": [], **{q: [] for q in QUIET}, "h": ["a", "b"], "plain": ["a"]}


@pytest.fixture(scope="module")
def sides():
    return evaluate(SET, Run("base", answers(BASE))), evaluate(SET, Run("better", answers(BETTER, failed=("n3",))))


def test_every_class_of_the_test_set_has_its_own_measures_in_the_order_of_the_table(sides):
    found = by_class(sides[0])
    assert [one.query_class.name for one in found] == ["deprecation", "attribute", "negative"]
    for one in found:
        assert [str(about.measure) for about in one.measures] == list(one.query_class.measures)
    assert found[1].query_ids == ("h",)
    assert found[1].measures[0].values == {"h": pytest.approx(1 / 5)}


def test_the_mean_of_a_class_is_over_its_queries_alone(sides):
    forms, _, quiet = by_class(sides[1])
    assert forms.measures[0].summary.mean == pytest.approx(7 / 8)  # e0 came back empty
    assert quiet.measures[0].summary.mean == pytest.approx(3 / 4)  # a failure is no silence
    assert quiet.measures[0].summary.n == 4
    assert quiet.failed == ("n3",)


def test_a_stratum_of_one_class_has_the_measures_of_that_class(sides):
    found = class_measures_by_stratum(sides[1])
    [silence] = [strata for measure, strata in found.items() if measure.canonical == "Silence"]
    assert [(each.key, each.value, each.summary.n, each.summary.mean) for each in silence] == [
        ("class", "negative", 4, pytest.approx(3 / 4))
    ]


def test_a_stratum_of_several_classes_has_the_measures_of_none(sides):
    hard = {"n0", "n1", "e1"}
    queries = (
        replace(query, strata={"level": "hard"} if query.id in hard else {"level": "none"} if query.id in QUIET else {})
        for query in SET.queries
    )
    found = class_measures_by_stratum(evaluate(replace(SET, queries=tuple(queries)), Run("better", answers(BETTER))))
    levels = {
        str(measure): {each.value: each.summary.n for each in strata if each.key == "level"}
        for measure, strata in found.items()
    }
    assert levels["Silence"] == {"none": 2}
    assert not any("hard" in values for values in levels.values())


def test_a_measure_that_all_queries_have_is_not_computed_again(sides):
    requested = evaluate(SET, Run("better", answers(BETTER)), measures=["Silence", "P@5", "P@10"])
    assert {str(measure) for measure in class_measures_by_stratum(requested)} == {"ModernFirst"}


def test_the_forms_of_one_system_are_counted_and_tested(sides):
    forms = by_class(sides[1])[0].forms
    assert (forms.wins, forms.losses, forms.neither) == (7, 0, 1)
    assert forms.test.p_two_sided == pytest.approx(2 / 2**7)  # 7 of 7, both ways
    assert forms.too_few == ""
    assert by_class(sides[1])[1].forms is None


def test_a_test_set_without_classes_has_none():
    plain = TestSet("plain", (Query("q"),), {"q": {"a": 1}})
    assert by_class(evaluate(plain, {"q": ["a"]})) == ()


def test_a_class_that_nobody_knows_is_named():
    odd = TestSet("odd", (Query("q", query_class="prosa"),), {"q": {"a": 1}})
    with pytest.raises(UnknownNameError, match="prose"):
        evaluate(odd, {"q": ["a"]})


def test_each_class_has_its_own_test_and_p_is_adjusted_across_the_classes(sides):
    forms, many, quiet = compare_classes(compare(*sides))
    went_up = np.array([1.0] * 7 + [0.0])  # e0 is 0 on both sides
    assert forms.test.p_two_sided == sign_test(went_up).p_two_sided == pytest.approx(2 / 2**7)
    assert forms.measures[0].delta == pytest.approx(7 / 8)
    # n0, n1 only on B; n2 on both; n3 on neither
    assert quiet.test.p_two_sided == mcnemar([0, 0, 1, 0], [1, 1, 1, 0]).p_two_sided == pytest.approx(2 / 4)
    assert many.test.p_two_sided == 1  # one query may as well have gone the other way
    # fewer than 6 queries cannot have a p of .05, so 1 and 4 are not in the family
    assert [one.test.p_adjusted for one in (forms, many, quiet)] == [pytest.approx(2 / 2**7), None, None]


def test_too_few_queries_for_the_test_ever_to_find_anything_are_told(sides):
    forms, many, quiet = compare_classes(compare(*sides))
    assert forms.too_few == ""
    assert many.too_few == "1 query is too few for any p of 0.05 or less: 6 must differ, all in one direction"
    assert quiet.too_few.startswith("4 queries are too few")
    same = compare_classes(compare(sides[0], sides[0]))[0]
    assert (
        same.too_few == "0 of 8 queries differ, too few for any p of 0.05 or less: 6 must differ, all in one direction"
    )


@pytest.mark.parametrize(("alpha", "n"), [(0.05, 6), (0.01, 8), (0.5, 2), (1 / 32, 6), (0.001, 11)])
def test_the_smallest_n_is_the_first_at_which_the_sign_test_can_reject(alpha, n):
    assert smallest_n(alpha) == n
    assert sign_test(np.ones(n)).p_two_sided <= alpha < sign_test(np.ones(n - 1)).p_two_sided


def test_every_class_can_be_compared():
    patterns = {"d": (Pattern("^a"), Pattern("^b"))}
    names = list(QUERY_CLASSES)
    testset = TestSet(
        "all",
        (*tuple(Query(name, query_class=name) for name in names if name != "fragment"), Query("d", query_class="D")),
        {name: {"a": 1, "b": 2} for name in names if name not in {"negative", "fragment"}},
        patterns,
        legacy={"deprecation": Legacy(("b",))},
        sources=(Source("first", "^a"), Source("second", "^b")),
    )
    lists = {query_id: ["a", "b"] for query_id in testset.query_ids}
    a, b = (
        evaluate(testset, Run(name, answers(found)))
        for name, found in (("a", lists), ("b", {key: [] for key in lists}))
    )
    compared = compare_classes(compare(a, b))
    assert [one.query_class.name for one in compared] == names
    assert all(one.measures[0].n == 1 for one in compared)
    found = {one.query_class.name: one.measures[0].delta for one in compared}
    assert found["negative"] == 1
    assert found["canonical"] == found["deprecation"] == found["cross-source"] == -1


# refusals -----------------------------------------------------------------------------------------------------------


def test_a_measure_that_no_query_allows_is_refused_with_the_reason():
    many = TestSet("many", (Query("h", query_class="H"), Query("n", negative=Negative())), {"h": {"a": 1}})
    with pytest.raises(MeasureError, match="the rank of the first is not meaningful") as caught:
        evaluate(many, {"h": ["a"]}, measures=["RR"])
    assert "nothing should be found" in str(caught.value)


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("FileCoverage@5", "names no files"),
        ("ModernFirst", "names no legacy form"),
        ("TopSource", "names no sources"),
        ("SourceRR", "names no sources"),
        ("Silence", "no query of the test set is negative"),
    ],
)
def test_what_the_test_set_cannot_carry_is_refused_before_anything_runs(measure, why):
    plain = TestSet("plain", (Query("q"),), {"q": {"a": 1}})
    with pytest.raises(MeasureError, match=why):
        evaluate(plain, {"q": ["a"]}, measures=[measure])


def test_what_some_query_allows_is_not_refused():
    measures = ["RR", "Silence", "ModernFirst", "nDCG@10"]
    assert (
        list(map(str, evaluate(SET, {query_id: ["a"] for query_id in SET.query_ids}, measures=measures).measures))
        == measures
    )


def test_all_reasons_are_told_at_once():
    plain = TestSet("plain", (Query("q"),), {"q": {"a": 1}})
    with pytest.raises(MeasureError) as caught:
        evaluate(plain, {"q": ["a"]}, measures=["Silence", "TopSource"])
    assert len(caught.value.problems) == 2


# what a reader of the numbers is told --------------------------------------------------------------------------------


def test_negative_queries_leave_all_means_and_are_told_of_once(sides):
    before, _ = sides
    ndcg = parse("nDCG@10")
    assert before.summaries[ndcg].n == 10
    assert set(before.unscored[ndcg]) == set(QUIET)
    told = [sentence for sentence in before.warnings if "n0" in sentence]
    assert told == [
        "nothing should be found for 4 of 14 queries (only Silence has a value): n0, n1, n2, n3; 3 returned something, or failed: n0, n1, n3"
    ]


def test_measures_that_share_queries_and_reason_share_a_sentence(sides):
    warnings = [sentence for sentence in sides[0].warnings if "the rank of the first is not meaningful" in sentence]
    assert len(warnings) == 1
    assert warnings[0].startswith("RR@10, Success@5 have no value for 1 of 14 queries (")


def test_a_negative_query_is_not_among_those_without_a_relevant_document(sides):
    assert not [sentence for sentence in sides[0].warnings if "no relevant document" in sentence]


def test_only_negative_queries_are_measured_by_silence():
    quiet = TestSet("quiet", (Query("n", negative=Negative()),))
    found = evaluate(quiet, Run("run", answers({"n": []})))
    assert [str(measure) for measure in found.measures] == ["Silence"]
    assert evaluate(quiet, Run("run", answers({"n": []})), measures=["Silence"]).value("Silence", "n") == 1


def test_the_unjudged_results_of_a_query_that_a_measure_is_refused_for_are_not_counted():
    # h is of the attribute class, for which RR is not defined, so unjudged results there cannot change RR.
    testset = TestSet("set", (Query("h", query_class="attribute"), Query("plain")), {"h": {"a": 1}, "plain": {"a": 1}})
    ranking = evaluate(testset, {"h": ["x", "a"], "plain": ["y", "z", "a"]}).ranking
    of_rr, of_precision = (unjudged_margin(parse(spelling), ranking) for spelling in ("RR", "P@5"))
    assert (of_rr.n_results, of_rr.n_queries) == (2, 1)
    assert (of_precision.n_results, of_precision.n_queries) == (3, 2)


def test_a_measure_added_later_repeats_no_sentence_about_another():
    testset = TestSet("set", (Query("h", query_class="attribute"), Query("plain")), {"h": {"a": 1}, "plain": {"a": 1}})
    added = with_measure(evaluate(testset, {"h": ["a"], "plain": ["a"]}, measures=["RR@10"]), "RR")
    refused = [sentence for sentence in added.warnings if "no value" in sentence]
    assert [sentence.partition(" has ")[0] for sentence in refused] == ["RR@10", "RR"]
