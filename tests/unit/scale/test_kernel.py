"""The kernel over whole queries: the contract, and parity with the path of runs in memory."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scale_contract import CASES, check

import cranfield
from cranfield.base.errors import MeasureError, UsageError
from cranfield.model import convention_named
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import result_schema, score_queries
from cranfield.scale.scoring import Scoring

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "R@3", "Judged@5", "RBP", "Bpref", "infAP", "Success@1"]
DOCUMENTS = st.sampled_from(["", "a", "b", "bb", "ä", "doc-0001", "doc-0002", "0" * 17, "0" * 33])
QUERIES = st.sampled_from(["q", "q1", "q2", "é"])
ASCENDING = replace(convention_named("trec"), name="ascending", ties="ascending")
GIVEN = replace(convention_named("trec"), name="given", ties="given")
SCORES = st.sampled_from([-0.0, 0.0, 1.0, 1.0 + 1e-12, 2.5, -3.0])


@pytest.fixture(params=["native", "python"], autouse=True)
def engine(request, monkeypatch):
    monkeypatch.setenv("CRANFIELD_ENGINE", request.param)
    return request.param


def score(table, judgments, scoring, rows=7):
    batches = table.to_batches(max_chunksize=rows)
    return pa.Table.from_batches(list(score_queries(lambda: batches, judgments, scoring)), result_schema(scoring))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_contract(case):
    results = score(case.table(), case.judgments, case.scoring)
    check(case, results)
    keys = results.filter(results["query_id"].is_valid()).select(["query_id", "system"]).to_pylist()
    in_order = [(q, s) for q in case.judgments.query_ids.to_pylist() for s in case.systems]
    assert [(row["query_id"], row["system"]) for row in keys] == in_order  # all systems of a query, one after another


@given(
    st.dictionaries(QUERIES, st.dictionaries(DOCUMENTS, st.integers(-2, 3), min_size=1), min_size=1),
    st.dictionaries(QUERIES, st.dictionaries(DOCUMENTS, SCORES, min_size=1), min_size=1),
    st.sampled_from(["trec", "trec9", "ranx", "opensearch", ASCENDING, GIVEN]),
    st.sampled_from([None, 1, 3]),
    st.randoms(use_true_random=False),
)
def test_as_runs_in_memory(qrels, run, convention, depth, shuffled):
    if not qrels.keys() & run.keys():
        return
    testset = cranfield.load(qrels)
    options = {"convention": convention, "depth": depth, "missing": "zero"}
    measures = [each for each in MEASURES if depth is None or int(each.partition("@")[2] or 0) <= depth]
    expected = cranfield.evaluate(testset, run, measures=measures, **options)
    rows = [(query, doc, score) for query, answer in run.items() for doc, score in answer.items()]
    if expected.ranking.convention.ties != "given":
        shuffled.shuffle(rows)
    table = pa.table(dict(zip(("query_id", "doc_id", "score"), map(list, zip(*rows, strict=True)), strict=True)))
    scoring = Scoring.of(["s"], measures, **options)
    results = score(table, JudgmentTable.of_testset(testset), scoring, 3).to_pylist()
    assert sum(row["n_rows"] for row in results) == len(rows)
    found = {row["query_id"]: row for row in results if row["query_id"] is not None}
    for query_id in testset.query_ids:
        for ours, theirs in zip(scoring.measures, expected.measures, strict=True):
            assert found[query_id][str(ours)] == expected.value(theirs, query_id)


def test_a_cutoff_deeper_than_the_depth_is_refused_and_no_default_measure_is_asked_for_it():
    """In memory such a measure has no value; here nothing would say why in each of a million rows."""
    with pytest.raises(UsageError, match=r"depth is 3, and the cutoff of nDCG@10, R@5 is deeper"):
        Scoring.of(["s"], ["nDCG@10", "R@5", "P@3", "AP"], depth=3)
    assert all((measure.depth or 0) <= 3 for measure in Scoring.of(["s"], depth=3).measures)


def qrels_table(qrels):
    return JudgmentTable.of_testset(cranfield.load(qrels))


def columns(rows):
    query, doc, number = zip(*rows, strict=True)
    return pa.table({"query_id": query, "doc_id": doc, "score": number})


def test_a_repeated_document_is_a_problem_or_the_better_row_counts():
    qrels = qrels_table({"q": {"a": 1, "b": 2}})
    table = columns(
        [("q", "b", 1.0), ("q", "x", 5.0), ("q", "a", 3.0), ("q", "x", 2.0), ("q", "b", 4.0), ("q", "b", 4.0)]
    )
    problems = score(table, qrels, Scoring.of(["s"], ["AP"]), 2).to_pylist()
    assert [row["problem"] for row in problems] == [
        "query 'q' lists document 'b' twice",
        "query 'q' lists document 'x' twice",
        "query 'q' lists document 'b' twice",
    ]
    assert {row["query_id"] for row in problems} == {None}
    kept = score(table, qrels, Scoring.of(["s"], ["AP", "RR"], duplicates="first"), 2).to_pylist()
    # By score: x 5, b 4, a 3; the worse rows of x and b are gone. AP = (1/2 + 2/3) / 2.
    assert kept[0]["AP"] == pytest.approx((1 / 2 + 2 / 3) / 2, abs=1e-15)
    assert (kept[0]["n_rows"], kept[0]["n_returned"], kept[0]["n_duplicates"]) == (6, 3, 3)


@given(st.lists(st.tuples(QUERIES, DOCUMENTS, SCORES), min_size=1, max_size=30))
def test_repeated_documents_count_as_in_a_table_in_memory(rows):
    qrels = {query: {"a": 1, "bb": 2, "ä": 0} for query, _, _ in rows}
    expected = cranfield.evaluate(qrels, columns(rows), measures=["AP", "RR"], duplicates="first")
    results = score(
        columns(rows), qrels_table(qrels), Scoring.of(["s"], ["AP", "RR"], duplicates="first"), 4
    ).to_pylist()
    for row in results:
        assert row["AP"] == expected.value("AP", row["query_id"])
        assert row["RR"] == expected.value("RR", row["query_id"])
    assert [row["n_duplicates"] for row in results] == expected.ranking.n_duplicates.tolist()


def test_rows_without_an_id_or_a_finite_score_are_named_each():
    table = pa.table({"query_id": ["q", None, "q"], "doc_id": ["a", "b", None], "score": [float("nan"), 1.0, 2.0]})
    problems = score(table, qrels_table({"q": {"a": 1}}), Scoring.of(["s"], ["AP"])).to_pylist()
    assert [row["problem"] for row in problems] == [
        "the score is nan, which is not a finite number",
        "no query_id",
        "no doc_id",
    ]


def test_a_missing_query_is_scored_or_has_no_value():
    table, qrels = columns([("q", "a", 1.0)]), qrels_table({"q": {"a": 1}, "other": {"a": 1}})
    zero, skipped = (
        score(table, qrels, Scoring.of(["s"], ["AP"], missing=rule)).to_pylist() for rule in ("zero", "skip")
    )
    assert [(row["outcome"], row["AP"]) for row in zero] == [("answered", 1.0), ("missing", 0.0)]
    assert [(row["outcome"], row["AP"]) for row in skipped] == [("answered", 1.0), ("missing", None)]


def test_a_query_without_a_judgment_has_no_value():
    judgments = JudgmentTable.from_rows(pa.array(["q", "bare"]), pa.array(["a", None]), [1, 0], name="t", digest="")
    found = score(columns([("q", "a", 1.0), ("bare", "a", 1.0)]), judgments, Scoring.of(["s"], ["AP"])).to_pylist()
    assert [(row["query_id"], row["AP"]) for row in found] == [("q", 1.0), ("bare", None)]
    assert JudgmentTable.from_rows(*judgments.rows().columns, name="t", digest="").rows() == judgments.rows()


def test_whole_numbers_dictionaries_and_other_types_of_columns():
    plain = columns([("7", "3", 1.0), ("7", "12", 2.0), ("8", "3", 1.0)])
    typed = pa.table(
        {
            "query_id": pa.array([7, 7, 8], pa.int32()),
            "doc_id": pa.array(["3", "12", "3"], pa.large_string()).dictionary_encode(),
            "score": pa.array([1, 2, 1], pa.int8()).cast(pa.float64()),
        }
    )
    qrels, scoring = qrels_table({"7": {"3": 1}, "8": {"3": 1}}), Scoring.of(["s"], ["RR"])
    assert score(typed, qrels, scoring, 2) == score(plain, qrels, scoring, 2)


def test_nothing_at_all():
    qrels, scoring = qrels_table({"q": {"a": 1}}), Scoring.of(["s"], ["RR"])
    assert [row["outcome"] for row in score(columns([("x", "a", 1.0)]).slice(0, 0), qrels, scoring).to_pylist()] == [
        "missing"
    ]


@pytest.mark.parametrize(("ties", "expected"), [("trec", 1 / 2), (ASCENDING, 1.0), (GIVEN, 1.0)])
def test_ties_fall_as_the_convention_has_them(ties, expected):
    table = columns([("q", "a", 1.0), ("q", "b", 1.0)])
    found = score(table, qrels_table({"q": {"a": 1}}), Scoring.of(["s"], ["RR"], convention=ties), 1).to_pylist()
    assert found[0]["RR"] == expected


def test_the_rank_column_orders_where_the_convention_says_so():
    ranked = replace(convention_named("trec"), name="ranked", file_order="rank")
    table = pa.table({"query_id": ["q", "q", "q"], "doc_id": ["a", "b", "c"], "rank": [3, 1, 2]})
    found = score(table, qrels_table({"q": {"a": 1}}), Scoring.of(["s"], ["RR"], convention=ranked), 1).to_pylist()
    assert found[0]["RR"] == 1 / 3


@pytest.mark.parametrize("convention", ["searchtweak", "ir_measures"])
def test_a_convention_that_needs_more_than_one_order_is_refused(convention):
    with pytest.raises(UsageError, match="read in parts cannot follow"):
        Scoring.of(["s"], ["AP"], convention=convention)


def test_a_measure_that_needs_more_than_grades_is_refused():
    with pytest.raises(MeasureError, match="needs more than ranks and grades"):
        Scoring.of(["s"], ["alpha_nDCG@10", "AP"])


def test_a_test_set_of_patterns_is_refused():
    testset = cranfield.TestSet("t", (cranfield.Query("q"),), targets={"q": (cranfield.Pattern("a*"),)})
    with pytest.raises(cranfield.CranfieldError, match="expects more than document ids"):
        JudgmentTable.of_testset(testset)


def test_systems_need_names_of_their_own():
    with pytest.raises(UsageError, match="no distinct names"):
        Scoring.of(["a", "a"], ["AP"])


def test_many_threads_count_as_one(engine):
    from concurrent.futures import ThreadPoolExecutor

    from cranfield.scale.kernel import Passes

    case = CASES[2]
    judgments, scoring = case.judgments, case.scoring
    batches = case.table().to_batches(max_chunksize=5) * 1
    one = score(case.table(), judgments, scoring, 5)
    passes = Passes(judgments, scoring, len(case.rows))
    starts = [5 * number for number in range(len(batches))]
    for look in (passes.find, passes.count):
        order = list(zip(batches, starts, strict=True))
        random.Random(engine).shuffle(order)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda each: look(*each), order))  # noqa: B023 - done before the next
        if look == passes.find:
            passes.turn()
    assert passes.finish() == []
    assert pa.Table.from_batches([*passes.results(), *passes.unjudged_rows()]) == one
