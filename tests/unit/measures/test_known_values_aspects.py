"""Values of the measures of one kind of question worked by hand, each with its arithmetic, and what no class allows."""

from dataclasses import replace

import numpy as np
import pytest

from cranfield.evaluation.margins import bounds, tie_bounds, why_untied
from cranfield.measures import CATALOGUE, compute, parse
from cranfield.measures.families.aspects import form_wins
from cranfield.model import (
    QUERY_CLASSES,
    Answer,
    Criteria,
    Hit,
    Legacy,
    Negative,
    Outcome,
    Pattern,
    Query,
    Run,
    Source,
    TestSet,
    convention_named,
)
from cranfield.ranking import rank_run

TREC = convention_named("trec")
SOURCES = (Source("api", "^api/"), Source("guide", "^guide/"), Source("forum", "^forum/"))


def score(measure, testset, docs, *, outcome=Outcome.ANSWERED, scores=None, fields=None, convention=TREC, query="q"):
    hits = tuple(Hit(doc, None if scores is None else scores[i]) for i, doc in enumerate(docs))
    ranking = rank_run(testset, Run("run", {query: Answer(outcome, hits, fields=fields or {})}), convention)
    values, scored, reasons = compute(parse(measure), ranking)
    place = ranking.query_ids.index(query)
    return float(values[place]) if scored[place] else reasons[query]


def one(grades=None, *, query=None, **more):
    targets = more.pop("targets", None)
    return TestSet(
        "one",
        (query or Query("q"),),
        {} if grades is None else {"q": grades},
        {"q": targets} if targets else {},
        **more,
    )


GRADED = {"a": 2, "b": 1, "c": 0}


@pytest.mark.parametrize(
    ("measure", "docs", "expected"),
    [
        ("AllFound@2", ["a", "b"], 1),
        ("AllFound@2", ["a", "x", "b"], 0),  # b is at rank 3
        ("AllFound@3", ["a", "x", "b"], 1),
        ("AllFound", ["x", "x2", "x3", "b", "a"], 1),
        ("AllFound", ["a"], 0),
        ("AllFound(rel=2)@1", ["a"], 1),  # b is of grade 1
        ("AllFound(rel=3)@1", ["a"], 0),  # nothing of grade 3 is expected
        ("AllFound@5", [], 0),
    ],
)
def test_all_found(measure, docs, expected):
    assert score(measure, one(GRADED), docs) == expected


def test_all_found_asks_for_every_match_of_a_pattern_that_is_paid_for_each():
    two_of_api = one(targets=(Pattern("^api/", credit="every", expected_count=2),))
    assert score("AllFound@5", two_of_api, ["api/1"]) == 0  # 1 of 2
    assert score("AllFound@5", two_of_api, ["api/1", "x", "api/2"]) == 1  # 2 of 2
    unknown = one(targets=(Pattern("^api/", credit="every"),))
    assert "expected_count" in score("AllFound@5", unknown, ["api/1"])


@pytest.mark.parametrize(
    ("measure", "docs", "expected"),
    [
        ("FileCoverage@1", ["src/a.py:3-9", "src/b.py:1-2"], 1 / 3),
        ("FileCoverage@2", ["src/a.py:3-9", "src/b.py:1-2"], 2 / 3),
        ("FileCoverage", ["src/a.py:3-9", "src/a.py:10-12", "./src/b.py", "src/c.py::Thing.go::4"], 3 / 3),
        ("FileCoverage@5", [], 0),
        ("FileCoverage@5", ["src/abc.py"], 0),  # not a.py, b.py or c.py
    ],
)
def test_file_coverage(measure, docs, expected):
    files = one({"x": 1}, files={"q": ("src/a.py", "src/b.py", "src\\c.py", "./src/a.py")})  # a.py twice counts once
    assert score(measure, files, docs) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("docs", "value", "win"),
    [
        (["new", "old"], 1, 1),
        (["old", "new"], 0, -1),
        (["x", "new"], 1, 1),  # legacy absent, modern present
        (["x", "old"], 0, -1),  # modern absent, legacy present
        (["x"], 0, 0),  # both absent
        ([], 0, 0),
        (["unjudged", "old", "new"], 0, -1),  # what is not relevant is not modern
        (["new2", "old"], 1, 1),
        (["old/too", "new"], 0, -1),  # legacy by pattern
    ],
)
def test_modern_first(docs, value, win):
    forms = one({"new": 1, "new2": 2, "old": 1}, legacy={"q": Legacy(("old",), ("^old/",))})
    assert score("ModernFirst", forms, docs) == value
    ranking = rank_run(forms, Run("run", {"q": Answer(Outcome.ANSWERED, tuple(map(Hit, docs)))}), TREC)
    assert form_wins(ranking).tolist() == [win]


def test_modern_first_is_0_where_the_system_failed_and_unscored_where_no_legacy_is_named():
    forms = TestSet("two", (Query("q"), Query("p")), {"q": {"new": 1}, "p": {"new": 1}}, legacy={"q": Legacy(("old",))})
    assert score("ModernFirst", forms, ["new"], outcome=Outcome.TIMEOUT) == 0
    assert score("ModernFirst", forms, ["new"], query="p") == "it names no legacy form"


@pytest.mark.parametrize(
    ("docs", "at_2", "whole", "first"),
    [
        (["a", "old", "b", "other/x"], 1, 2, 1 / 2),  # rank 2, and rank 4 beyond the cutoff
        (["other/x", "other/y"], 2, 2, 1),  # each result counts, also of one condition
        (["a", "b"], 0, 0, 0),
        ([], 0, 0, 0),
    ],
)
def test_forbidden_results_are_counted_and_are_no_part_of_the_grades(docs, at_2, whole, first):
    testset = one({"a": 1, "old": 1}, forbidden={"q": (Criteria({"id": "old"}), Criteria({"path glob": "other/*"}))})
    assert score("Forbidden@2", testset, docs) == at_2
    assert score("Forbidden", testset, docs) == whole
    assert score("ForbiddenRR", testset, docs) == first
    plain = one({"a": 1, "old": 1})
    assert score("nDCG", testset, docs) == score("nDCG", plain, docs)


def test_a_failure_shows_nothing_forbidden_and_has_no_value():
    testset = TestSet("two", (Query("q"), Query("p")), {"q": {"a": 1}}, forbidden={"q": (Criteria({"id": "old"}),)})
    why = "it forbids no result, or has no answer"
    assert score("Forbidden@5", testset, ["old"], outcome=Outcome.TIMEOUT) == why
    assert score("Forbidden@5", testset, ["old"], query="p") == why


def test_where_judgments_are_complete_every_result_is_judged():
    graded = one({"a": 1}, query=Query("q", exhaustive=True))
    assert score("Judged@2", graded, ["x", "a"]) == 1
    assert score("Judged@2", one({"a": 1}), ["x", "a"]) == 1 / 2
    assert score("RR", graded, ["x", "a"]) == 1 / 2
    assert score("bpref", graded, ["x", "a"]) == "it is judged by a rule, so no result is unjudged"


def test_a_modern_result_is_seen_although_a_legacy_one_was_paid_for_the_pattern_they_share():
    shared = one(targets=(Pattern("URLSession"),), legacy={"q": Legacy(patterns=("^NS",))})
    run = Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("NSURLSession"), Hit("URLSession")))})
    aspects = rank_run(shared, run, TREC).aspects
    assert list(zip(aspects.kind.tolist(), aspects.rank.tolist(), strict=True)) == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("docs", "top", "reciprocal"),
    [
        # api and guide hold expected documents, forum none: the mean is over two sources
        (["api/1", "guide/1"], 1, (1 / 1 + 1 / 2) / 2),
        (["guide/1", "api/1"], 0, (1 / 1 + 1 / 2) / 2),  # api has an answer, and guide leads
        (["guide/1"], 1, (0 + 1 / 1) / 2),  # of those with an answer in the list, guide is the highest
        (["forum/1", "x"], 0, 0),  # no source has a relevant result
        (["api/no", "guide/1"], 0, (0 + 1 / 2) / 2),  # api has a result, but no relevant one
        (["api/no", "api/1"], 1, (1 / 2 + 0) / 2),  # the first result is from the source that has the answer
        (["x", "api/1"], 0, (1 / 2 + 0) / 2),
        ([], 0, 0),
    ],
)
def test_sources(docs, top, reciprocal):
    testset = one({"api/1": 2, "guide/1": 1, "forum/1": 0}, sources=SOURCES)
    assert score("TopSource", testset, docs) == top
    assert score("SourceRR", testset, docs) == pytest.approx(reciprocal)


def test_a_document_of_a_grade_under_1_makes_no_source_expected():
    assert score("SourceRR", one({"api/1": 1, "guide/1": 0.5}, sources=SOURCES), ["api/1"]) == 1


def test_source_rr_is_unscored_where_nobody_knows_the_documents():
    testset = one(targets=(Pattern("1$"),), sources=SOURCES)
    assert score("SourceRR", testset, ["api/1"]) == "no expected document has a known source"
    assert score("TopSource", testset, ["guide/1", "api/1"]) == 0  # paid for the guide, and api has an answer too


@pytest.mark.parametrize(
    ("negative", "docs", "scores", "fields", "expected"),
    [
        (Negative(), [], None, {}, 1),
        (Negative(), ["a"], None, {}, 0),
        (Negative(below=0.5), ["a", "b"], [0.4, 0.1], {}, 1),
        (Negative(below=0.5), ["a"], [0.5], {}, 0),  # not under the bound
        (Negative(below=0.5), ["a"], None, {}, 0),  # no score: nobody said that it is unsure
        (Negative(below=0.5), ["a"], [float("nan")], {}, 0),
        (Negative(0.5, "confidence"), ["a"], [9.0], {"confidence": 0.2}, 1),
        (Negative(0.5, "confidence"), ["a"], [0.1], {"confidence": 0.7}, 0),
        (Negative(0.5, "confidence"), ["a"], [0.1], {}, 0),
        (Negative(0.5, "confidence"), ["a"], [0.1], {"confidence": "low"}, 0),
        (Negative(0.5, "confidence"), [], None, {}, 1),
    ],
)
def test_silence(negative, docs, scores, fields, expected):
    testset = one(query=Query("q", negative=negative))
    outcome = Outcome.ANSWERED if docs else Outcome.EMPTY
    assert score("Silence", testset, docs, outcome=outcome, scores=scores, fields=fields) == expected


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.NONZERO_EXIT, Outcome.UNPARSABLE])
def test_a_failure_is_no_silence(outcome):
    assert score("Silence", one(query=Query("q", negative=Negative())), [], outcome=outcome) == 0


def test_where_scores_rise_from_best_to_worst_those_over_the_bound_do_not_count():
    testset = one(query=Query("q", negative=Negative(below=0.5)))
    for distance, expected in ((0.9, 1), (0.2, 0)):
        run = Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("a", distance),))}, order="ascending")
        values, _, _ = compute(parse("Silence"), rank_run(testset, run, TREC))
        assert values.tolist() == [expected]


def test_a_query_of_the_negative_class_is_negative_without_saying_so_twice():
    assert score("Silence", one(query=Query("q", query_class="N")), ["a"]) == 0


def test_an_empty_answer_keeps_its_silence_under_a_convention_that_skips_empty_answers():
    testset = one(query=Query("q", negative=Negative()))
    assert score("Silence", testset, [], outcome=Outcome.EMPTY, convention=convention_named("searchtweak")) == 1


NEGATIVE_AND_NOT = TestSet(
    "two", (Query("n", negative=Negative()), Query("q")), {"q": {"a": 1}, "n": {"a": 0}}, legacy={"n": Legacy(("x",))}
)


@pytest.mark.parametrize("name", sorted(set(CATALOGUE) - {"Silence"}))
def test_no_other_measure_has_a_value_where_nothing_should_be_found(name):
    measure = parse(
        CATALOGUE[name].spelling.partition(",")[0].replace("@k", "@5").replace("@share", "@0.5").replace("@x", "@0.5")
    )
    run = Run("run", {q: Answer(Outcome.ANSWERED, (Hit("a"),)) for q in ("n", "q")})
    _, scored, reasons = compute(measure, rank_run(NEGATIVE_AND_NOT, run, TREC))
    assert not scored[0]
    assert reasons["n"] == "nothing should be found" or CATALOGUE[name].needs is not None


def test_silence_has_no_value_where_something_should_be_found():
    assert score("Silence", NEGATIVE_AND_NOT, ["a"]) == "something should be found"


@pytest.mark.parametrize("measure", ["RR", "RR@10", "ERR@10", "nERR", "Success@5", "RankOfFirst"])
def test_a_class_refuses_what_says_nothing_of_it(measure):
    many = one({"a": 1, "b": 1}, query=Query("q", query_class="attribute"))
    assert score(measure, many, ["a"]) == QUERY_CLASSES["attribute"].refused[parse(measure).name]
    assert score("P@5", many, ["a"]) == pytest.approx(1 / 5)
    allowed = one({"a": 1}, query=Query("q", query_class="canonical"))
    assert score(measure, allowed, ["a"]) == (
        0.0625 if measure == "ERR@10" else 1
    )  # (2^1 - 1) / 2^4: of grades up to 4


def test_what_the_table_of_classes_names_is_in_the_catalogue():
    for entry in QUERY_CLASSES.values():
        assert all(str(parse(spelling)) == spelling for spelling in entry.measures)
        assert set(entry.refused) <= set(CATALOGUE)
        assert not any(entry.why_refused(parse(spelling).name) for spelling in entry.measures)
        binary = CATALOGUE[parse(entry.measures[0]).name].name in {"ModernFirst", "TopSource", "Silence"}
        assert (entry.test != "permutation") == binary


def test_a_measure_whose_need_nothing_carries_says_so():
    ranking = rank_run(one(GRADED), Run("run", {"q": Answer(Outcome.ANSWERED, (Hit("a"),))}), TREC)
    for name, why in (
        ("FileCoverage", "files"),
        ("ModernFirst", "legacy"),
        ("TopSource", "sources"),
        ("Silence", "neg"),
    ):
        values, scored, reasons = compute(parse(name), ranking)
        assert not scored.any()
        assert np.array_equal(values, [0.0])
        assert why in reasons["q"]


def test_what_could_be_judged_moves_no_value_that_is_refused():
    testset = TestSet(
        "three",
        (Query("h", query_class="H"), Query("n", negative=Negative()), Query("q")),
        {"h": {"a": 1}, "q": {"a": 1}},
    )
    run = Run("run", {q: Answer(Outcome.ANSWERED, (Hit("x"), Hit("a"))) for q in testset.query_ids})
    low, high = bounds(parse("RR"), rank_run(testset, run, TREC))
    assert np.isnan([*low[:2], *high[:2]]).all()
    assert (low[2], high[2]) == (0.5, 1)  # x not relevant, or relevant


def test_where_one_result_may_be_several_items_ties_have_no_bounds():
    testset = one(targets=(Pattern("a"), Pattern("ab")))
    hits = (Hit("ab", 1.0), Hit("x", 1.0))
    every = replace(TREC, name="every", credit="every")
    ranking = rank_run(testset, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}, order="descending"), every)
    assert why_untied(parse("Coverage"), ranking)
    assert "several items" in why_untied(parse("RR"), ranking)
    assert np.isnan(tie_bounds(parse("RR"), ranking)).all()


def test_the_newer_form_may_decide_where_scores_tie():
    forms = one({"new": 1}, legacy={"q": Legacy(("old",))})
    hits = (Hit("new", 1.0), Hit("old", 1.0))
    ranking = rank_run(forms, Run("run", {"q": Answer(Outcome.ANSWERED, hits)}, order="descending"), TREC)
    assert why_untied(parse("ModernFirst"), ranking) == "it may fall when a relevant result rises"
    values, _, _ = compute(parse("ModernFirst"), ranking)
    assert values.tolist() == [0]  # equal scores fall to the larger id, old
