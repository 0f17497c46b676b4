"""Refresh: which queries come and leave, and the next version once two raters agree."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from cranfield.base.errors import TestSetError, UsageError
from cranfield.evaluation.testset.check_queries import same_form
from cranfield.formats.testsets.query_log import QueryLog, read_query_log
from cranfield.judging.refresh.files import Labels, RatedDocument, read_sheet, write_sheet
from cranfield.judging.refresh.refresh import plan_refresh, renew
from cranfield.model import Meta, Query, Rating, TestSet

TODAY = date(2026, 11, 21)
KINDS = ["exact_term"] * 20 + ["paraphrase"] * 15 + ["complex_clinical"] * 15
CLINIC = TestSet(
    "clinic",
    tuple(Query(f"q{place:02}", f"finding number{place}", {"kind": kind}) for place, kind in enumerate(KINDS)),
    {f"q{place:02}": {"d": 2} for place in range(50)},
    version="v1",
    meta=Meta(scale=(0, 1, 2, 3)),
)
LOG = QueryLog({f"dose of drug{place}": float(60 - place) for place in range(60)}, 60)


def labels_for(plan, grades):
    """A sheet with three documents a query, the two raters' grades in turn."""
    rows = [(query.id, f"doc{place}") for query in plan.new for place in range(3)]
    graded = (
        RatedDocument(n + 2, query_id, doc_id, grades[n % len(grades)]) for n, (query_id, doc_id) in enumerate(rows)
    )
    return Labels("sheet.csv", ("ann", "bob"), tuple(graded))


AGREED = ((2, 2), (1, 1), (0, 0), (2, 2), (0, 0), (1, 2), (0, 0), (1, 1), (2, 2))


def test_twenty_of_fifty_queries_are_replaced_and_the_next_version_says_so():
    plan = plan_refresh(CLINIC, LOG, 20)
    kinds = [CLINIC.by_id[query_id].strata["kind"] for query_id in plan.leaving]
    assert {kind: kinds.count(kind) for kind in kinds} == {"exact_term": 8, "paraphrase": 6, "complex_clinical": 6}
    renewal = renew(plan, labels_for(plan, AGREED), today=TODAY)
    new = renewal.testset
    assert (len(new.queries), new.version, new.meta.made) == (50, "v2", "2026-11-21")
    assert new.query_ids == (*(q for q in CLINIC.query_ids if q not in plan.leaving), *(q.id for q in plan.new))
    assert new.meta.previous == CLINIC.digest != new.digest
    assert new.meta.counts == {"queries": 50, "kind=complex_clinical": 9, "kind=exact_term": 12, "kind=paraphrase": 9}
    assert "replaced 20 of 50 queries" in new.meta.history[-1]
    assert "ann and bob" in new.meta.history[-1]
    assert renewal.kappa.n == 60
    assert renewal.agreement.exceeds(0.6)
    assert renewal.kappa.ci_low < renewal.kappa.value < renewal.kappa.ci_high
    interval = f"{renewal.kappa.ci_low:.4f} to {renewal.kappa.ci_high:.4f}"
    assert f"Cohen's kappa {renewal.kappa.value:.4f}, 95 % CI {interval}, n=60" in new.meta.history[-1]


def test_grades_follow_from_the_ratings_which_are_kept():
    """Grades 1 and 2 have the mean 1.5."""
    plan = plan_refresh(CLINIC, LOG, 1)
    labels = labels_for(plan, ((1, 2), (0, 0), (3, 3)))
    new = renew(plan, labels, today=TODAY).testset
    (query,) = plan.new
    assert new.grades[query.id] == {"doc0": 1.5, "doc1": 0, "doc2": 3}
    assert new.ratings[query.id][:2] == (Rating("doc0", "ann", 1), Rating("doc0", "bob", 2))
    assert new.consensus == "mean"


@pytest.mark.parametrize(
    ("grades", "value"),
    [
        # Observed 1/2; chance 1/2 * 1/2 + 1/2 * 1/2 = 1/2: no better than chance.
        (((1, 1), (1, 0), (0, 1), (0, 0)), 0.0),
        # Observed 3/4; chance 1/2 * 1/4 + 1/2 * 3/4 = 1/2: (3/4 - 1/2) / (1 - 1/2).
        (((1, 1), (1, 0), (0, 0), (0, 0)), 0.5),
    ],
)
def test_raters_who_do_not_agree_beyond_the_bound_do_not_exceed_it(grades, value):
    plan = plan_refresh(CLINIC, LOG, 4)
    renewal = renew(plan, labels_for(plan, grades), rule="mean", today=TODAY)
    assert renewal.kappa.value == pytest.approx(value)
    assert not renewal.agreement.exceeds(0.6)
    assert not renewal.agreement.exceeds(renewal.kappa.value)  # above the bound, not at it


def test_kappa_that_is_not_defined_exceeds_nothing():
    plan = plan_refresh(CLINIC, LOG, 4)
    renewal = renew(plan, labels_for(plan, ((1, 1),)), today=TODAY)
    assert renewal.kappa.value is None
    assert not renewal.agreement.exceeds(-1)
    assert "not defined" in renewal.agreement.sentence


def test_the_same_seed_makes_the_same_plan_and_ids_follow_from_the_text():
    plan, again, other = (plan_refresh(CLINIC, LOG, 20, seed=seed) for seed in (3, 3, 4))
    assert plan == again
    assert plan.new != other.new
    both = {q.text: q.id for q in plan.new}.items() & {q.text: q.id for q in other.new}.items()
    assert {text for text, _ in both} == {q.text for q in plan.new} & {q.text for q in other.new}


def test_the_most_frequent_come_first_where_they_are_asked_for():
    plan = plan_refresh(CLINIC, LOG, 3, sample="top")
    assert [(query.text, query.weight) for query in plan.new] == [
        ("dose of drug0", 60.0),
        ("dose of drug1", 59.0),
        ("dose of drug2", 58.0),
    ]


def test_what_the_set_has_or_nearly_has_is_passed_over_and_counted():
    log = QueryLog({"Finding  NUMBER3": 9, "number3 finding": 8, "a b c d": 7, "a b c d e": 6, "new one": 5}, 5)
    plan = plan_refresh(CLINIC, log, 2, sample="top")
    assert [query.text for query in plan.new] == ["a b c d", "new one"]
    assert plan.n_known == 3


def test_those_who_leave_may_be_named():
    plan = plan_refresh(CLINIC, LOG, 2, drop=["q07", "q03"])
    assert plan.leaving == ("q03", "q07")


@pytest.mark.parametrize(
    ("n", "more", "message"),
    [
        (51, {}, "51 queries to be replaced"),
        (0, {}, "0 queries to be replaced"),
        (2, {"drop": ["q01"]}, "1 query to be dropped"),
        (1, {"drop": ["q99"]}, "not in the test set: q99"),
        (1, {"sample": "best"}, "sample is 'best'"),
    ],
)
def test_a_plan_that_cannot_be_made_is_refused(n, more, message):
    with pytest.raises(UsageError, match=message):
        plan_refresh(CLINIC, LOG, n, **more)


def test_a_log_with_too_few_new_queries_is_refused():
    with pytest.raises(UsageError, match="the log has 1 query not in the test set"):
        plan_refresh(CLINIC, QueryLog({"finding number1": 1, "other": 1}, 2), 2)


def test_labels_of_another_plan_are_refused_with_every_row_and_query():
    plan, other = (plan_refresh(CLINIC, LOG, 2, seed=seed) for seed in (0, 1))
    assert not {q.id for q in plan.new} & {q.id for q in other.new}
    with pytest.raises(TestSetError) as caught:
        renew(plan, labels_for(other, AGREED), today=TODAY)
    messages = [problem.message for problem in caught.value.problems]
    assert sum("is not in the sample" in message for message in messages) == 6
    assert sum("has no label" in message for message in messages) == 2


def test_labels_off_the_scale_and_queries_without_a_relevant_document_are_refused():
    plan = plan_refresh(CLINIC, LOG, 1)
    with pytest.raises(TestSetError, match="grade 7 by bob is not on the scale"):
        renew(plan, labels_for(plan, ((2, 7), (1, 1), (0, 0))), today=TODAY)
    with pytest.raises(TestSetError, match="no document is relevant to the new query"):
        renew(plan, labels_for(plan, ((0, 0),)), today=TODAY)


def test_a_set_whose_ratings_follow_another_rule_is_not_mixed():
    rated = TestSet("t", CLINIC.queries, CLINIC.grades, ratings={"q00": (Rating("d", "x", 1),)}, consensus="median")
    plan = plan_refresh(rated, LOG, 1, drop=["q01"])
    with pytest.raises(UsageError, match="converted to grades by median"):
        renew(plan, labels_for(plan, AGREED), today=TODAY)


def test_a_sheet_is_written_filled_in_and_read(tmp_path):
    path = tmp_path / "sheet.csv"
    queries = (Query("n1", "=one, two"), Query("n2", "three"))
    assert write_sheet(path, queries, {"n1": ["-d", "e"]}, ("ann", "bob")) == 3
    text = path.read_text()
    assert text == 'query_id,query,doc_id,ann,bob\nn1,"\'=one, two",\'-d,,\nn1,"\'=one, two",e,,\nn2,three,,,\n'
    path.write_text(text.replace("-d,,", "-d,1,2").replace("e,,\n", "e,0,0\n", 1).replace("three,,,", "three,f,3,3"))
    labels = read_sheet(path)
    assert labels.raters == ("ann", "bob")
    assert [(row.query_id, row.doc_id, row.grades) for row in labels.rows] == [
        ("n1", "-d", (1, 2)),
        ("n1", "e", (0, 0)),
        ("n2", "f", (3, 3)),
    ]


def test_everything_missing_in_a_sheet_is_told_with_its_line(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("query_id,query,doc_id,ann,bob\nn1,x,,1,1\nn1,x,d,,many\nn1,x,e,1,-1\nn1,x,f,1,1\nn1,x,f,2,2\n")
    with pytest.raises(TestSetError) as caught:
        read_sheet(path)
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "no doc_id"),
        (3, "no grade by ann"),
        (3, "the grade by bob is not valid"),
        (4, "the grade by bob is not valid"),
        (6, "f is labelled twice for n1; it also occurs on line 5"),
    ]


@pytest.mark.parametrize(
    "header", ["query_id,doc_id,ann", "query_id,doc_id,ann,bob,cat", "query_id,ann,bob", "query_id,doc_id,ann,ann", ""]
)
def test_a_sheet_without_two_raters_is_none(tmp_path, header):
    path = tmp_path / "sheet.csv"
    path.write_text(f"{header}\n")
    with pytest.raises(TestSetError, match="not a labelling sheet for two raters"):
        read_sheet(path)


def test_a_log_adds_up_what_differs_in_case_and_blanks_alone(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text('query\tcount\nRotate logs\t3\nrotate  logs\t5\nother\n{"query": "third", "count": 2}\n\n')
    log = read_query_log(path, same_form)
    assert (dict(log.counts), log.n_lines) == ({"rotate logs": 8.0, "third": 2.0, "other": 1.0}, 4)
    assert list(log.counts) == ["rotate logs", "third", "other"]
    assert log.notes == ("the first line of the log is read as a header: query\tcount",)


def test_bad_lines_of_a_log_are_told_with_their_numbers(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text('one\tmany\n\t3\n{"query": 3}\n{"query": "x", "count": -1}\n{broken\nfine\t2\ntwo\tnan\n')
    with pytest.raises(TestSetError) as caught:
        read_query_log(path)
    assert [problem.line for problem in caught.value.problems] == [1, 2, 3, 4, 5, 7]


def test_a_log_without_a_query_is_refused(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("query\tcount\n")
    with pytest.raises(TestSetError, match="the log contains no query"):
        read_query_log(path)


def test_strata_of_new_queries_stand_in_the_sheet(tmp_path):
    path = tmp_path / "sheet.csv"
    write_sheet(
        path, (Query("n1", "one"), Query("n2", "two")), {"n1": ["d", "e"], "n2": ["d"]}, ("ann", "bob"), ("kind",)
    )
    header, *rows = path.read_text().splitlines()
    assert header == "query_id,query,doc_id,ann,bob,stratum:kind"
    filled = [row.removesuffix(",,,") + f",1,1,{kind}" for row, kind in zip(rows, ("", "paraphrase", ""), strict=True)]
    path.write_text("\n".join([header, *filled]) + "\n")
    assert read_sheet(path).strata == {"n1": {"kind": "paraphrase"}}
    path.write_text("\n".join([header, filled[0] + "exact_term", filled[1]]) + "\n")
    with pytest.raises(TestSetError, match=r"sheet.csv:3: query n1 has two values of kind; expected exact_term"):
        read_sheet(path)


def test_strata_of_the_sheet_are_those_of_the_new_queries():
    plan = plan_refresh(CLINIC, LOG, 1)
    (query,) = plan.new
    labels = replace(labels_for(plan, AGREED), strata={query.id: {"kind": "paraphrase"}})
    new = renew(plan, labels, today=TODAY).testset
    assert new.by_id[query.id].strata == {"kind": "paraphrase"}


LONG = "query_id,doc_id,rater,grade,stratum:kind\nq1,d1,ann,2,\nq1,d1,bob,1,task\nq1,d2,bob,0,\nq1,d2,ann,1,\n"


def test_a_sheet_may_have_a_row_for_each_rating(tmp_path):
    (tmp_path / "long.csv").write_text(LONG)
    (tmp_path / "wide.csv").write_text("query_id,doc_id,ann,bob,stratum:kind\nq1,d1,2,1,task\nq1,d2,1,0,\n")
    long, wide = read_sheet(tmp_path / "long.csv"), read_sheet(tmp_path / "wide.csv")
    assert [(row.query_id, row.doc_id, row.grades) for row in long.rows] == [
        ("q1", "d1", (2.0, 1.0)),
        ("q1", "d2", (1.0, 0.0)),
    ]
    assert (long.raters, long.strata) == (wide.raters, wide.strata) == (("ann", "bob"), {"q1": {"kind": "task"}})
    assert [row.line for row in long.rows] == [2, 4]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("q1,d1,ann,1,\n", "long.csv:6: ann labels d1 twice for q1"),
        ("q1,d3,ann,1,\n", "long.csv:6: no grade by bob"),
        ("q1,d3,,1,\n", "long.csv:6: no rater"),
        ("q1,d3,ann,x,\nq1,d3,bob,1,\n", "long.csv:6: the grade by ann is not valid"),
        ("q1,d1,cy,1,\nq1,d2,cy,1,\n", "not a labelling sheet for two raters"),
        ("q1,d2,ann,1,code\n", "query q1 has two values of kind"),
    ],
)
def test_what_is_wrong_with_rows_of_ratings_is_told_with_its_line(tmp_path, more, message):
    (tmp_path / "long.csv").write_text(LONG + more)
    with pytest.raises(TestSetError) as refused:
        read_sheet(tmp_path / "long.csv")
    assert message in str(refused.value)


def test_a_sheet_with_strata_and_without_queries_is_none(tmp_path):
    (tmp_path / "long.csv").write_text("doc_id,rater,grade,stratum:kind\nd1,ann,1,x\n")
    with pytest.raises(TestSetError, match="not a labelling sheet for two raters"):
        read_sheet(tmp_path / "long.csv")
