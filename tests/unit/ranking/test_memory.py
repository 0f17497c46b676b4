"""Runs without a file are ranked as a TREC run file of the same lines is, whatever they come in and whatever counts."""

import dataclasses
import math
from collections import OrderedDict
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield import evaluate, load
from cranfield.base.errors import NoCommonQueryError, RunFormatError, UsageError
from cranfield.measures import compute, parse
from cranfield.model import Convention, Outcome, Pattern, Query, TestSet, convention_named
from cranfield.model.convention import CONVENTIONS
from cranfield.ranking.collected import read_run_file
from cranfield.ranking.file import rank_file
from cranfield.ranking.memory import rank_arrays, rank_frame, rank_mapping
from cranfield.ranking.prepared import PreparedJudgments

TREC = convention_named("trec")
NARROW = dataclasses.replace(TREC, name="narrow", score_width=32)
GIVEN = Convention("as given", "the order of the rows", file_order="given")
BY_RANK = Convention("by rank", "the order of the rank column", file_order="rank")
TESTSET = TestSet("two", (Query("q1"), Query("q2")), {"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}})
COLUMNS = ("query", "rank", "gain", "level", "state", "item", "tie_first", "tie_last", "n_returned", "n_duplicates")

COLUMN_NAMES = ["query_id", "doc_id", "score"]


@pytest.fixture
def engine_asked(monkeypatch, request):
    monkeypatch.setenv("CRANFIELD_ENGINE", request.param)


def both_engines(test):
    return pytest.mark.parametrize("engine_asked", ["native", "python"], indirect=True)(
        pytest.mark.usefixtures("engine_asked")(test)
    )


def rows_of(run):
    return [(query_id, doc_id, score) for query_id, docs in run.items() for doc_id, score in docs.items()]


def pandas_of(run):
    return pd.DataFrame(rows_of(run), columns=["query_id", "doc_id", "score"])


def polars_of(run):
    return pl.DataFrame(rows_of(run), schema=["query_id", "doc_id", "score"], orient="row")


def arrow_of(run):
    return pa.table(dict(zip(["query_id", "doc_id", "score"], map(list, zip(*rows_of(run), strict=True)), strict=True)))


FRAMES = {
    "pandas": pandas_of,
    "pandas objects": lambda run: pandas_of(run).astype({"query_id": object, "doc_id": object}),
    "pandas categories": lambda run: pandas_of(run).astype({"query_id": "category", "doc_id": "category"}),
    "Polars": polars_of,
    "lazy Polars": lambda run: polars_of(run).lazy(),
    "Arrow": arrow_of,
    "Arrow batches": lambda run: pa.RecordBatchReader.from_batches(arrow_of(run).schema, arrow_of(run).to_batches()),
}


def same_ranking(ours, theirs):
    for column in COLUMNS:
        assert getattr(ours, column).tolist() == getattr(theirs, column).tolist(), column
    assert ours.query_ids == theirs.query_ids
    assert ours.outcomes == theirs.outcomes
    assert {q: tuple(ours.top[q]) for q in ours.query_ids} == {q: tuple(theirs.top[q]) for q in theirs.query_ids}


SCORES = st.sampled_from([0.0, -0.0, 1.0, 1.00000001, 2.5, -3.0, 1e300, 1e-300, 7.0])
# Among them ids whose order as text and as bytes would differ if surrogates were not taken for the bytes they stand for.
DOCUMENTS = ["d1", "d2", "d10", "é", "漢", "\U0001f600", "\udcff", "D", "d", "dd"]
answers = st.dictionaries(st.sampled_from(DOCUMENTS), SCORES, min_size=1)
runs = st.dictionaries(st.sampled_from(["q1", "q2", "q3", "other"]), answers, min_size=1)
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-2, 3))
judgments = st.fixed_dictionaries({"q1": grades, "q2": grades, "q3": grades})
choices = st.fixed_dictionaries(
    {
        "convention": st.builds(
            Convention,
            st.just("some"),
            st.just("made up"),
            file_order=st.sampled_from(["score", "given"]),
            ties=st.sampled_from(["descending", "ascending", "given"]),
            score_width=st.sampled_from([64, 32]),
        ),
        "missing": st.sampled_from(["zero", "skip"]),
        "depth": st.sampled_from([None, 1, 3]),
        "keep": st.sampled_from([0, 2, 10]),
    }
)


def write_trec(path, run):
    with path.open("w", encoding="utf-8", errors="surrogateescape") as stream:
        for query_id, doc_id, score in rows_of(run):
            stream.write(f"{query_id} Q0 {doc_id} 1 {score!r} tag\n")


@both_engines
@given(run=runs, qrels=judgments, chosen=choices)
@settings(max_examples=int(1.5 * settings().max_examples))
def test_a_mapping_a_frame_and_arrays_rank_as_the_file_of_the_same_lines(tmp_path_factory, run, qrels, chosen):
    testset = TestSet("set", tuple(map(Query, qrels)), qrels)
    path = tmp_path_factory.mktemp("run") / "run.trec"
    write_trec(path, run)
    convention, options = chosen["convention"], {name: chosen[name] for name in ("missing", "depth", "keep")}
    columns = [np.array(column, dtype=object) for column in zip(*rows_of(run), strict=True)]
    ranked = [
        lambda: rank_mapping(testset, run, convention, **options),
        lambda: rank_arrays(testset, *columns, convention, **options),
        lambda: rank_frame(
            testset, pd.DataFrame(rows_of(run), columns=COLUMN_NAMES, dtype=object), convention, **options
        ),
    ]
    if not set(run) & set(qrels):
        for rank in ranked:
            with pytest.raises(NoCommonQueryError):
                rank()
        return
    theirs = rank_file(testset, path, convention, **options)
    for rank in ranked:
        ours = rank()
        same_ranking(ours.ranking, theirs.ranking)
        assert (ours.n_tied, ours.extra_queries) == (theirs.n_tied, theirs.extra_queries)


@both_engines
@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_ranks_as_the_mapping_does(kind):
    run = {"q1": {"d2": 1.5, "d1": 2.5, "d0": 2.5}, "q2": {"x": 9.0, "d3": 1.0}, "zz": {"d1": 1.0}}
    ours, theirs = rank_frame(TESTSET, FRAMES[kind](run), TREC), rank_mapping(TESTSET, run, TREC)
    same_ranking(ours.ranking, theirs.ranking)
    assert ours.columns == {"query_id": "query_id", "doc_id": "doc_id", "score": "score"}
    assert ours.digest == theirs.digest
    assert ours.extra_queries == ("zz",)
    assert ours.ranking.rank.tolist() == [1, 3, 2]  # q1: d1 before d0, the larger id; then d2. q2: d3 behind x.


@both_engines
def test_the_engine_that_counted_is_named(engine_asked, request):
    ranked = rank_mapping(TESTSET, {"q1": {"d1": 1.0}}, TREC)
    assert ranked.engine == request.node.callspec.params["engine_asked"]


@both_engines
def test_scores_that_differ_beyond_32_bits_tie_where_the_convention_says_so():
    run = {"q1": {"d1": 1.00000001, "d2": 1.0}}
    assert compute(parse("RR(rel=2)"), rank_mapping(TESTSET, run, TREC).ranking)[0][0] == 1 / 2
    assert compute(parse("RR(rel=2)"), rank_mapping(TESTSET, run, NARROW).ranking)[0][0] == 1  # d2 > d1


@both_engines
def test_whole_numbers_stand_for_their_decimal_digits():
    testset = TestSet("numbers", (Query("7"),), {"7": {"12": 1, "5": 1}})
    mapping = rank_mapping(testset, {7: {5: 1, 12: 3, np.int64(9): 2}}, TREC)
    assert mapping.ranking.rank.tolist() == [1, 3]
    for frame in (
        pd.DataFrame({"query_id": [7, 7, 7], "doc_id": [5, 12, 9], "score": [1, 3, 2]}),
        pd.DataFrame({"query_id": ["7", 7, 7], "doc_id": pd.Series([5, "12", 9], dtype=object), "score": [1, 3, 2]}),
        pl.DataFrame({"query_id": [7, 7, 7], "doc_id": [5, 12, 9], "score": [1, 3, 2]}),
    ):
        same_ranking(rank_frame(testset, frame, TREC).ranking, mapping.ranking)
    arrays = rank_arrays(testset, [7, 7, 7], np.array([5, 12, 9]), [1, 3, 2], TREC)
    same_ranking(arrays.ranking, mapping.ranking)
    assert arrays.digest == mapping.digest


@both_engines
@pytest.mark.parametrize("score", [3, np.float32(2.5), np.int16(4), Decimal("2.5"), 2**70])
def test_every_kind_of_number_is_a_score(score):
    assert rank_mapping(TESTSET, {"q1": {"d1": score, "d2": 1}}, TREC).ranking.rank.tolist() == [1, 2]


@both_engines
@pytest.mark.parametrize(
    "run",
    [
        MappingProxyType({"q1": MappingProxyType({"d2": 1.0, "d1": 2.0})}),
        OrderedDict(q1=OrderedDict(d2=1.0, d1=2.0)),
        {np.str_("q1"): {np.str_("d2"): 1.0, np.str_("d1"): 2.0}},
    ],
)
def test_any_mapping_will_do(run):
    assert rank_mapping(TESTSET, run, TREC).ranking.rank.tolist() == [1, 2]


@both_engines
def test_an_empty_mapping_is_an_answer_with_nothing():
    ranking = rank_mapping(TESTSET, {"q1": {}, "q2": {"d3": 1.0}}, TREC, missing="skip").ranking
    assert ranking.query_ids == ("q1", "q2")
    assert ranking.outcomes == (Outcome.EMPTY, Outcome.ANSWERED)
    assert rank_mapping(TESTSET, {"q1": {"d1": 1.0}}, TREC).ranking.outcomes == (Outcome.ANSWERED, Outcome.MISSING)


@both_engines
def test_patterns_see_every_result_of_a_mapping():
    patterns = {"q1": (Pattern("^src/a"), Pattern("b$", 2))}
    testset = TestSet("patterns", (Query("q1"),), targets=patterns)
    run = {"q1": {f"x{i}": 50.0 - i for i in range(20)} | {"src/b": 1.0, "src/a": 2.0}}
    ranking = rank_mapping(testset, run, TREC).ranking
    assert ranking.rank.tolist() == [21, 22]
    assert ranking.level.tolist() == [1, 2]


@both_engines
def test_many_ties_of_one_query_are_ranked_by_the_bytes_of_their_ids():
    names = [f"d{i}" for i in range(300)]
    testset = TestSet("ties", (Query("q"),), {"q": dict.fromkeys(names, 1)})
    ranking = rank_mapping(testset, {"q": dict.fromkeys(names, 1.0)}, TREC).ranking
    in_order = [name for _, name in sorted(zip(ranking.rank.tolist(), np.array(names)[ranking.item], strict=True))]
    assert in_order == sorted(names, reverse=True)
    assert (set(ranking.tie_first.tolist()), set(ranking.tie_last.tolist())) == ({1}, {300})


def test_a_test_set_that_is_laid_out_serves_many_runs():
    judged = PreparedJudgments(TESTSET, TREC)
    for run in ({"q1": {"d1": 1.0}}, {"q2": {"d3": 1.0, "d1": 2.0}}):
        same_ranking(rank_mapping(judged, run, TREC).ranking, rank_mapping(TESTSET, run, TREC).ranking)


def test_the_columns_that_other_tools_write_are_found_and_told():
    frame = pl.DataFrame({"qid": ["q1"], "query": ["some words"], "docid": [3], "docno": ["d1"], "score": [1.0]})
    assert rank_frame(TESTSET, frame, TREC).columns == {"query_id": "qid", "doc_id": "docno", "score": "score"}


def test_columns_of_any_name_can_be_named():
    frame = pl.DataFrame({"q1?": ["q1"], "doc_id": ["d1"], "score": [1.0], "bm25": [2.0]})
    ranked = rank_frame(TESTSET, frame, TREC, columns={"query_id": "q1?", "score": "bm25"})
    assert ranked.columns == {"query_id": "q1?", "doc_id": "doc_id", "score": "bm25"}
    assert next(iter(ranked.ranking.top["q1"])).score == 2.0


@both_engines
def test_rows_of_a_query_may_stand_anywhere():
    run = {"q1": {"d1": 1.0, "d2": 2.0, "x": 3.0}, "q2": {"d3": 1.0, "y": 3.0}}
    frame = polars_of(run)
    for order in ([0, 3, 1, 4, 2], [3, 0, 4, 1, 2]):
        same_ranking(rank_frame(TESTSET, frame[order], TREC).ranking, rank_mapping(TESTSET, run, TREC).ranking)
        arrays = [np.array(column)[order] for column in zip(*rows_of(run), strict=True)]
        assert rank_arrays(TESTSET, arrays[0], arrays[1], arrays[2].astype(float), TREC).ranking.rank.tolist() == [
            2,
            3,
            2,
        ]


@both_engines
def test_the_rank_column_orders_a_frame_where_the_convention_says_so():
    frame = pl.DataFrame(
        {"query_id": ["q1"] * 3, "doc_id": ["d1", "d2", "x"], "score": [9.0, 8.0, 7.0], "rank": [3, 1, 2]}
    )
    assert rank_frame(TESTSET, frame, BY_RANK).ranking.level.tolist() == [2, 1]
    assert rank_frame(TESTSET, frame, BY_RANK).ranking.rank.tolist() == [1, 3]
    assert rank_frame(TESTSET, frame, GIVEN).ranking.rank.tolist() == [1, 2]


@both_engines
@pytest.mark.parametrize(
    ("ranks", "misranked"),
    [
        ([1, 2, 3], ()),
        ([0, 1, 2], ()),
        ([3, 2, 1], ("q1",)),
        ([1, 3, 2], ("q1",)),
        (["a", "b", "c"], ()),
        ([1.0, 1.5, 0.0], ()),
    ],
)
def test_a_rank_column_that_disagrees_is_noticed_and_ignored(ranks, misranked):
    frame = pl.DataFrame({"query_id": ["q1"] * 3, "doc_id": ["d1", "d2", "x"], "score": [9.0, 8.0, 7.0], "rank": ranks})
    ranked = rank_frame(TESTSET, frame, TREC)
    assert ranked.misranked == misranked
    assert ranked.ranking.rank.tolist() == [1, 2]


@both_engines
def test_within_a_tie_ranks_may_stand_as_they_like():
    frame = pl.DataFrame({"query_id": ["q1"] * 2, "doc_id": ["d1", "d2"], "score": [9.0, 9.0], "rank": [2, 1]})
    assert rank_frame(TESTSET, frame, TREC).misranked == ()
    assert rank_frame(TESTSET, frame.with_columns(rank=pl.Series([1, 2])), TREC).misranked == ()


@both_engines
def test_a_document_twice_is_an_error_naming_both_rows_or_its_best_rank_is_kept():
    rows = [("q2", "d3", 1.0), ("q1", "d1", 1.0), ("q1", "x", 2.0), ("q1", "d1", 3.0), ("q1", "d2", 2.0)]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")
    with pytest.raises(RunFormatError, match="rows 1 and 3: query 'q1' lists document 'd1' twice"):
        rank_frame(TESTSET, frame, TREC)
    ranked = rank_frame(TESTSET, frame, TREC, duplicates="first")
    assert ranked.ranking.rank.tolist() == [1, 3, 1]  # q1: d1 at 3.0; x before d2, the larger id
    assert ranked.ranking.n_duplicates.tolist() == [1, 0]
    assert (ranked.n_lines, ranked.n_tied) == (5, 1)
    assert rank_frame(TESTSET, frame, GIVEN, duplicates="first").ranking.rank.tolist() == [1, 3, 1]


def test_at_most_twenty_duplicates_are_named():
    frame = pl.DataFrame({"query_id": ["q1"] * 90, "doc_id": [f"d{i // 2}" for i in range(90)], "score": [1.0] * 90})
    with pytest.raises(RunFormatError) as caught:
        rank_frame(TESTSET, frame, TREC)
    assert len(caught.value.problems) == 20


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            {"q1": {"d1": math.nan}},
            "query 'q1', document 'd1': the score is not a finite number; expected a number, got nan",
        ),
        ({"q1": {"d1": math.inf}}, "got inf"),
        ({"q1": {"d1": 2**2000}}, "the score is not a finite number"),
        ({"q1": {"d1": "1.5"}}, "got '1.5'"),
        ({"q1": {"d1": None}}, "got None"),
        ({"q1": {"d1": True}}, "got True"),
        ({"q1": {"x": np.True_}}, "query 'q1', document 'x': the score is not a finite number"),
        ({"q1": {None: 1.0}}, "query 'q1': None is not a document id; expected text or whole numbers"),
        ({"q1": {1.5: 1.0}}, "query 'q1': 1.5 is not a document id"),
        ({"q1": {True: 1.0}}, "query 'q1': True is not a document id"),
        ({"q1": {"1": 1.0, 1: 2.0}}, "query 'q1', document 1 occurs as text and as a number"),
        ({None: {"d1": 1.0}}, "None is not a query id"),
        ({"1": {"d1": 1.0}, 1: {"d1": 1.0}}, "query '1' occurs as text and as a number"),
        ({"q1": ["d1", "d2"]}, "the answer to query 'q1' is a list; expected document ids with their scores"),
    ],
)
@both_engines
@pytest.mark.parametrize("convention", [TREC, GIVEN], ids=["by score", "as given"])
def test_what_is_no_score_or_id_is_an_error_that_says_where(run, message, convention):
    with pytest.raises(RunFormatError) as caught:
        rank_mapping(TESTSET, run, convention, name="mine")
    assert message in str(caught.value)
    assert str(caught.value).startswith("mine: ")


@both_engines
def test_the_first_twenty_problems_of_a_mapping_are_named_together():
    with pytest.raises(RunFormatError) as caught:
        rank_mapping(TESTSET, {"q1": {f"d{i}": math.nan for i in range(50)}, "q2": {"d3": 1.0}}, TREC)
    assert len(caught.value.problems) == 20


def test_a_run_of_other_queries_is_an_error():
    with pytest.raises(NoCommonQueryError, match=r"expected ids such as 'q1', 'q2', got 'a'"):
        rank_mapping(TESTSET, {"a": {"d1": 1.0}}, TREC)
    with pytest.raises(NoCommonQueryError, match="got none"):
        rank_mapping(TESTSET, {}, TREC)


def test_an_empty_table_is_an_error():
    with pytest.raises(RunFormatError, match="no row in this run"):
        rank_frame(
            TESTSET,
            pl.DataFrame(
                {"query_id": [], "doc_id": [], "score": []}, schema_overrides={"query_id": str, "doc_id": str}
            ),
            TREC,
        )


def test_ranks_are_asked_for_where_they_order_the_run():
    with pytest.raises(UsageError, match="orders by rank, and a mapping of scores has no ranks"):
        rank_mapping(TESTSET, {"q1": {"d1": 1.0}}, BY_RANK)
    with pytest.raises(UsageError, match="orders by rank, and these arrays have no ranks"):
        rank_arrays(TESTSET, ["q1"], ["d1"], [1.0], BY_RANK)
    with pytest.raises(RunFormatError, match="no column rank"):
        rank_frame(TESTSET, polars_of({"q1": {"d1": 1.0}}), BY_RANK)
    halves = polars_of({"q1": {"d1": 1.0}}).with_columns(rank=pl.lit(1.5))
    with pytest.raises(RunFormatError, match=r"row 0: the rank is not a whole number.*got 1\.5"):
        rank_frame(TESTSET, halves, BY_RANK)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kind", ["pandas", "Polars", "Parquet", "CSV"])
def test_a_table_with_ranks_and_no_scores_is_in_the_order_of_its_ranks(kind, convention, tmp_path):
    table = pl.DataFrame({"query_id": ["q1"] * 3, "doc_id": ["d3", "d1", "d2"], "rank": [3, 1, 2]})
    path = tmp_path / {"Parquet": "run.parquet"}.get(kind, "run.csv")
    if kind == "Parquet":
        table.write_parquet(path)
    if kind == "CSV":
        table.write_csv(path)
    run = {"pandas": table.to_pandas(), "Polars": table}.get(kind, path)
    testset = load({"q1": {"d1": 1, "d2": 0}})
    found = evaluate(testset, run, measures=["RR"], convention=convention)
    assert found.mean("RR") == 1.0  # rank 1 is first
    assert [(hit.rank, hit.id, hit.score) for hit in found.ranking.top["q1"]] == [
        (1, "d1", None),
        (2, "d2", None),
        (3, "d3", None),
    ]


def test_ranks_that_come_twice_and_halves_are_errors():
    testset = load({"q1": {"d1": 1}})
    twice = pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "rank": [1, 1]})
    with pytest.raises(RunFormatError, match="rows 0 and 1: query 'q1' has two results of rank 1"):
        evaluate(testset, twice)
    with pytest.raises(RunFormatError, match="row 0: the rank is not a whole number"):
        evaluate(testset, twice.with_columns(rank=pl.lit(1.5)))
    with pytest.raises(RunFormatError, match="no row in this run"):
        evaluate(testset, twice.clear())


def test_a_run_file_of_ranks_is_read_as_answers_without_scores(tmp_path):
    pl.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["d2", "d1"], "rank": [2, 1]}).write_parquet(
        tmp_path / "run.parquet"
    )
    run = read_run_file(tmp_path / "run.parquet")
    assert run.order == "given"
    assert [(hit.id, hit.score) for hit in run.answers["q1"].hits] == [("d1", None), ("d2", None)]


@pytest.mark.parametrize("depth", [0, -3])
def test_a_depth_of_nothing_is_an_error(depth):
    with pytest.raises(UsageError, match=f"depth is {depth}"):
        rank_mapping(TESTSET, {"q1": {"d1": 1.0}}, TREC, depth=depth)


@both_engines
def test_a_parquet_file_is_named_after_its_stem_and_only_its_columns_are_read(tmp_path):
    run = {"q1": {"d1": 1.0, "x": 2.0}}
    path = tmp_path / "bm25.parquet"
    pq.write_table(arrow_of(run).append_column("text", pa.array(["a", "b"])), path)
    ranked = rank_frame(TESTSET, path, TREC)
    assert ranked.name == "bm25"
    same_ranking(ranked.ranking, rank_mapping(TESTSET, run, TREC).ranking)


def test_the_digest_is_of_the_content():
    run = {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {"d3": 1.0}}

    def digest(run):
        return rank_mapping(TESTSET, run, TREC).digest

    assert digest(run) == digest({"q2": {"d3": 1}, "q1": {"d1": 1, "d2": 2}})
    others = [
        {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {"d3": 1.5}},
        {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {"d4": 1.0}},
        {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {}},
        {"q1": {"d2": 2.0, "d1": 1.0}, "q2": {"d3": 1.0}},  # a convention may go by the order given
        {"q1": {"d1\nd2": 1.0}, "q2": {"d3": 1.0}},
        {"q1": {"d1\nd2": 1.0, "x": 2.0}, "q2": {"d3": 1.0}},
        {"q1": {"d1": 1.0, "d2\nx": 2.0}, "q2": {"d3": 1.0}},
    ]
    assert len({digest(run), *map(digest, others)}) == len(others) + 1
    assert digest(run).startswith("sha256:")


def test_the_first_hits_are_those_of_a_sort(monkeypatch):
    run = {"q1": {f"d{i}": float(i % 7) for i in range(60)}}
    top = rank_mapping(TESTSET, run, TREC, keep=12).ranking.top["q1"]
    ordered = sorted(run["q1"].items(), key=lambda hit: (hit[1], hit[0]), reverse=True)[:12]
    assert [(hit.id, hit.score) for hit in top] == ordered
