"""Arrays of results are ranked as the mapping of the same ids and scores is, and what cannot be read is named by its place."""

import dataclasses
import threading
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cranfield
from cranfield import Query, Run, TestSet, evaluate, evaluate_checkpoints
from cranfield.base.errors import NoCommonQueryError, RunFormatError, UsageError
from cranfield.model import Convention, Outcome, Pattern, convention_named
from cranfield.model.arrays import ResultArrays
from cranfield.ranking.arrays import rank_result_arrays
from cranfield.ranking.memory import rank_mapping

TREC = convention_named("trec")
NARROW = dataclasses.replace(TREC, name="narrow", score_width=32)
RISING_TIES = dataclasses.replace(TREC, name="rising ties", ties="ascending")
JUDGED = {"1": {"7": 1, "5": 2}, "2": {"5": 1}, "3": {"10": 1}}
TESTSET = TestSet("three", tuple(map(Query, JUDGED)), JUDGED)
COLUMNS = ("query", "rank", "gain", "level", "state", "item", "tie_first", "tie_last", "n_returned", "n_duplicates")
MEASURES = ("nDCG@10", "AP", "RR", "P@2")


@pytest.fixture(params=["native", "python"], autouse=True)
def engine(request, monkeypatch):
    monkeypatch.setenv("CRANFIELD_ENGINE", request.param)
    return request.param


def same_ranking(ours, theirs):
    for column in COLUMNS:
        assert getattr(ours, column).tolist() == getattr(theirs, column).tolist(), column
    assert ours.outcomes == theirs.outcomes


def test_values_of_a_small_array_are_those_of_the_arithmetic():
    # Query 1: document 7 (grade 1) at 2 and 5 (grade 2) at 3; query 2: 5 at 1; query 3: 10 is missing.
    found = evaluate(TESTSET, ids=[[9, 7, 5], [5, 9, -1], [1, 2, 3]], measures=["AP", "RR", "nDCG@3"])
    assert found.value("AP", "1") == pytest.approx((1 / 2 + 2 / 3) / 2)
    ideal = 2 + 1 / np.log2(3)
    assert found.value("nDCG@3", "1") == pytest.approx((1 / np.log2(3) + 2 / 2) / ideal)
    assert [found.value("RR", query) for query in "123"] == [0.5, 1.0, 0.0]
    assert found.ranking.n_returned.tolist() == [3, 2, 3]


@st.composite
def tables(draw):
    """Rows of distinct ids with scores that tie, padded to one width."""
    width = draw(st.integers(1, 6))
    rows = []
    for _ in JUDGED:
        ids = draw(st.lists(st.integers(0, 12), max_size=width, unique=True))
        scores = draw(
            st.lists(st.sampled_from([2.0, 1.0, 1.0 + 1e-9, 0.5, -3.0]), min_size=len(ids), max_size=len(ids))
        )
        rows.append(
            sorted(zip(scores, ids, strict=True), key=lambda pair: -pair[0])
            if draw(st.booleans())
            else list(zip(scores, ids, strict=True))
        )
    ids = np.array([[each for _, each in row] + [-1] * (width - len(row)) for row in rows])
    scores = np.array([[score for score, _ in row] + [0.0] * (width - len(row)) for row in rows])
    return (
        ids,
        scores,
        {query: {str(each): score for score, each in row} for query, row in zip(JUDGED, rows, strict=True)},
    )


@pytest.mark.parametrize("convention", [TREC, NARROW, RISING_TIES], ids=lambda each: each.name)
@given(table=tables(), depth=st.sampled_from([None, 1, 3]))
def test_an_array_with_scores_is_ranked_as_the_mapping_of_its_ids(convention, table, depth):
    ids, scores, mapping = table
    arrays = ResultArrays.of(ids, scores)
    kept = [row[row_ids >= 0] for row, row_ids in zip(scores, ids, strict=True)]
    width = np.float32 if convention is NARROW else np.float64
    steps = np.concatenate([np.diff(row.astype(width)) for row in kept])
    if (steps > 0).any() and not (steps < 0).any():
        with pytest.raises(RunFormatError, match="rise"):
            rank_result_arrays(TESTSET, arrays, convention, depth=depth)
        return
    ours = rank_result_arrays(TESTSET, arrays, convention, depth=depth)
    theirs = rank_mapping(TESTSET, mapping, convention, depth=depth)
    same_ranking(ours.ranking, theirs.ranking)
    assert ours.n_tied == theirs.n_tied
    for query in JUDGED:
        shown = [[(hit.rank, hit.id, hit.score) for hit in each.ranking.top[query]] for each in (ours, theirs)]
        assert shown[0] == shown[1]


@given(table=tables())
@settings(max_examples=30)
def test_an_array_without_scores_is_a_run_in_the_order_of_its_columns(table):
    ids, _, _ = table
    if not (ids >= 0).any():
        return
    lists = {query: [str(each) for each in row if each >= 0] for query, row in zip(JUDGED, ids.tolist(), strict=True)}
    ours, theirs = evaluate(TESTSET, ids=ids, measures=MEASURES), evaluate(TESTSET, lists, measures=MEASURES)
    for measure in MEASURES:
        assert (
            ours.values[ours.summaries.measure(measure)].tolist()
            == theirs.values[theirs.summaries.measure(measure)].tolist()
        )
    assert ours.ranking.outcomes == theirs.ranking.outcomes


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "int16"])
@pytest.mark.parametrize("scores", ["float16", "float32", "float64", "int64"])
def test_any_type_of_whole_numbers_and_of_scores_will_do(dtype, scores):
    with np.errstate(all="ignore"):
        ids = np.array([[9, 7, 5], [5, 9, -1], [1, 2, 3]]).astype(
            dtype
        )  # -1 is the largest number where there is no sign
    found = evaluate(TESTSET, ids=ids, scores=np.array([[3, 2, 1]] * 3, dtype=scores), measures=["RR"])
    assert found.mean("RR") == 0.5


class WithArray:
    """What torch and jax have."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class WithDlpack:
    """An array that numpy reads by DLPack alone."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("use DLPack")

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("kind", [WithArray, WithDlpack])
def test_arrays_of_other_libraries_are_read(kind):
    found = evaluate(TESTSET, ids=kind([[9, 7], [5, 9], [1, 2]]), scores=kind([[2.0, 1.0]] * 3), measures=["RR"])
    assert found.mean("RR") == 0.5


def test_rows_are_named_in_any_order_and_those_of_no_query_are_counted():
    found = evaluate(TESTSET, ids=[[5], [9], [7]], query_ids=[2, 99, 1], measures=["RR"], missing="zero")
    assert [found.value("RR", query) for query in "123"] == [1.0, 1.0, 0.0]
    assert found.extra_queries == ("99",)
    assert found.ranking.outcomes == (Outcome.ANSWERED, Outcome.ANSWERED, Outcome.MISSING)
    with pytest.raises(NoCommonQueryError, match="share no query id"):
        evaluate(TESTSET, ids=[[5]], query_ids=["x"])


@pytest.mark.parametrize(
    "doc_ids",
    [["a", "b", "c"], np.array(["a", "b", "c"]), ("a", "b", "c")],
    ids=["list", "array of text", "tuple"],
)
def test_positions_stand_for_the_documents_of_a_list(doc_ids):
    testset = TestSet("text", (Query("q"),), {"q": {"c": 1}})
    found = evaluate(testset, ids=[[1, 2, 0]], query_ids=["q"], doc_ids=doc_ids, measures=["RR"])
    assert found.mean("RR") == 0.5
    assert [hit.id for hit in found.ranking.top["q"]] == ["b", "c", "a"]


def test_positions_stand_for_the_numbers_of_an_array_of_numbers():
    found = evaluate(TESTSET, ids=[[1, 0]], query_ids=["1"], doc_ids=np.array([7, 8]), measures=["RR"])
    assert found.value("RR", "1") == 0.5


def test_parts_of_one_document_are_one_document():
    """Chunks of a document have its id: the best ranked one counts."""
    testset = TestSet("chunks", (Query("q"),), {"q": {"a": 1, "b": 1}})
    chunks = ["a", "a", "b", "x"]
    with pytest.raises(RunFormatError, match="row 0, column 2: document 'a' is in column 0 too"):
        evaluate(testset, ids=[[0, 3, 1, 2]], doc_ids=chunks, measures=["AP"])
    found = evaluate(testset, ids=[[0, 3, 1, 2]], doc_ids=chunks, measures=["AP"], duplicates="first")
    assert found.mean("AP") == pytest.approx((1 + 2 / 3) / 2)  # a, x, b
    assert found.ranking.n_duplicates.tolist() == [1]
    scored = evaluate(
        testset, ids=[[0, 3, 1, 2]], scores=[[1, 3, 3, 2]], doc_ids=chunks, measures=["AP"], duplicates="first"
    )
    assert scored.mean("AP") == pytest.approx((1 / 2 + 2 / 3) / 2)  # x and a tie: x, a, b


def test_text_in_the_array_itself_is_the_id():
    testset = TestSet("text", (Query("q"),), {"q": {"c": 1}})
    found = evaluate(testset, ids=np.array([["b", "c", ""]]), measures=["RR"])
    assert found.mean("RR") == 0.5
    assert found.ranking.n_returned.tolist() == [2]
    assert evaluate(testset, ids=[["b", "c", None]], measures=["RR"]).mean("RR") == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": [1, 2]}, r"ids has not two dimensions.*2.*ids\[None, :\]"),
        ({"ids": np.zeros((2, 3, 1), int)}, "evaluate_checkpoints"),
        ({"ids": [[0.5, 1.0]]}, "ids is an array of float64"),
        ({"ids": [[True, False]]}, "ids is an array of bool"),
        ({"ids": [[1, 2], [3]]}, "ids cannot be read as an array.*padded with -1"),
        ({"ids": [[1], [2], [3]], "scores": [[1.0], [2.0]]}, "scores and ids differ in shape.*3x1.*2x1"),
        ({"ids": [[1], [2], [3]], "scores": [["a"], ["b"], ["c"]]}, "scores is an array of <U1"),
        ({"ids": [[1], [2]], "query_ids": ["1"]}, "query_ids and ids differ in length"),
        ({"ids": [[1], [2]], "query_ids": ["1", "1"]}, "query '1' stands twice"),
        ({"ids": [[1], [2]], "query_ids": [1.5, 2]}, "query_ids has 1.5"),
        ({"ids": [[1], [2]]}, "ids has 2 rows, and the test set 3 queries"),
        ({"ids": [["a"]], "doc_ids": ["x"]}, "ids is text and doc_ids is given"),
        ({"run": {"1": ["7"]}, "ids": [[1]]}, "a run and ids"),
        ({"run": {"1": ["7"]}, "scores": [[1]]}, "arrays without ids"),
        ({}, "got no run"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_what_is_expected(arguments, message):
    with pytest.raises(UsageError, match=f"(?s){message}"):
        evaluate(TESTSET, **arguments)


def test_all_problems_of_the_arrays_are_named_at_once():
    with pytest.raises(UsageError) as caught:
        evaluate(TESTSET, ids=[[1.5], [2.5]], scores=[["a"], ["b"]], query_ids=[None, "2"])
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("ids", "scores", "message"),
    [
        ([[1, -7], [1, 2], [1, 2]], None, "row 0.*column 1: the id is -7"),
        ([[1, 2, 3], [1, -1, 3], [1, 2, 3]], None, "row 1.*column 2: a result follows padding"),
        ([[1, 2], [3, 3], [1, 2]], None, "row 1.*column 1: document '3' is in column 0 too"),
        ([[1, 2], [3, 4], [1, 2]], [[2, 1], [2, np.nan], [2, 1]], "row 1.*column 1: the score is not a finite number"),
        ([[1, 2], [3, 4], [1, 2]], [[1, 2], [0, 5], [2, 3]], "rise from the first column to the last, as distances do"),
    ],
)
def test_rows_that_cannot_be_are_named(ids, scores, message):
    with pytest.raises(RunFormatError, match=f"(?s){message}"):
        evaluate(TESTSET, ids=ids, scores=scores, name="dense")


def test_a_position_beyond_the_documents_is_named():
    with pytest.raises(RunFormatError, match="ids has 3, and doc_ids 3 documents"):
        evaluate(TESTSET, ids=[[0, 3]], query_ids=["1"], doc_ids=["a", "b", "c"])


def test_scores_of_padding_do_not_matter():
    scores = np.array([[2.0, 1.0, np.nan], [2.0, -np.inf, np.inf], [3.0, 2.0, 1.0]])
    found = evaluate(TESTSET, ids=[[9, 7, -1], [5, -1, -1], [1, 2, 3]], scores=scores, measures=["RR"])
    assert found.mean("RR") == 0.5


def test_the_arrays_may_be_filled_anew_after_the_call():
    ids, scores = np.array([[9, 7], [5, 9], [1, 2]]), np.array([[2.0, 1.0]] * 3)
    found = evaluate(TESTSET, ids=ids, scores=scores, measures=["RR"])
    again = evaluate(TESTSET, ids=ids.copy(), scores=scores.copy(), measures=["RR"])
    ids[:], scores[:] = 0, 0
    assert found.run_digest == again.run_digest
    assert [(hit.id, hit.score) for hit in found.ranking.top["1"]] == [("9", 2.0), ("7", 1.0)]
    other = evaluate(TESTSET, ids=again.ranking.n_returned[:, None] * 0 + 3, measures=["RR"])
    assert other.run_digest != found.run_digest


def test_expected_patterns_are_matched_by_the_text_of_the_ids():
    testset = TestSet("patterns", (Query("q"),), {}, targets={"q": (Pattern(r"^7"),)})
    found = evaluate(testset, ids=[[5, 71]], measures=["RR"])
    assert found.mean("RR") == 0.5
    by_score = evaluate(testset, ids=[[5, 71, 8]], scores=[[1.0, 3.0, 1.0]], measures=["RR"], keep=1, name="dense")
    assert by_score.mean("RR") == 1.0  # as the mapping of the same scores has it
    assert by_score.name == "dense"
    assert [(hit.id, hit.score) for hit in by_score.ranking.top["q"]] == [("71", 3.0)]


def test_a_convention_that_orders_by_rank_takes_the_columns_as_ranks():
    by_rank = Convention("by rank", "the order of the rank column", file_order="rank")
    found = evaluate(TESTSET, ids=[[9, 7], [5, 9], [1, 2]], scores=[[1, 2]] * 3, convention=by_rank, measures=["RR"])
    assert found.mean("RR") == 0.5


def test_checkpoints_are_evaluations_of_their_own(engine):
    ids = np.array([[[9, 7], [5, 9], [1, 2]], [[7, 9], [5, 9], [10, 2]]])
    found = evaluate_checkpoints(TESTSET, ids, measures=["RR"])
    assert [(each.name, each.mean("RR")) for each in found] == [("checkpoint-1", 0.5), ("checkpoint-2", 1.0)]
    assert found[0].run_digest == evaluate(TESTSET, ids=ids[0], measures=["RR"]).run_digest
    assert [each.name for each in evaluate_checkpoints(TESTSET, list(ids), names=["a", "b"])] == ["a", "b"]
    with pytest.raises(UsageError, match="names and ids differ in length"):
        evaluate_checkpoints(TESTSET, ids, names=["a"])
    assert next(iter(cranfield.compare(*found, primary="RR").measures.values())).delta == pytest.approx(0.5)


def test_threads_get_the_same_values():
    rng = np.random.default_rng(0)
    ids = np.stack([rng.permutation(500)[:100] for _ in JUDGED])
    expected, found = evaluate(TESTSET, ids=ids, measures=MEASURES), []

    def run():
        found.extend(evaluate(TESTSET, ids=ids, measures=MEASURES).mean("AP") for _ in range(5))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {expected.mean("AP")}
    assert len(found) == 20


def test_memory_is_at_most_half_of_the_arrays(engine):
    """They are read in blocks: a copy of the whole would be more."""
    if engine == "python":
        return  # the same blocks, a list of objects each
    n, k = 2000, 1000
    ids = (np.arange(n * k, dtype=np.int64) * 7919 % 1_000_003).reshape(n, k)
    judged = {str(query): {str(ids[query, 3]): 1} for query in range(n)}
    testset = cranfield.load(judged)
    evaluate(testset, ids=ids[:, :5], query_ids=range(n), measures=["RR"])
    tracemalloc.start()
    evaluate(testset, ids=ids, query_ids=range(n), measures=["RR"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < ids.nbytes / 2


def test_a_run_of_arrays_holds_every_result():
    run = Run.from_arrays([[1, 0], [2, -1]], [[0.5, 0.25], [1.0, 0.0]], query_ids=[1, 2], doc_ids=["a", "b", "c"])
    assert [(hit.id, hit.score) for hit in run.answers["1"].hits] == [("b", 0.5), ("a", 0.25)]
    assert [hit.id for hit in run.answers["2"].hits] == ["c"]
    assert (run.order, run.depth) == ("given", 2)
    empty = Run.from_arrays([[-1]], query_ids=["q"])
    assert empty.answers["q"].outcome is Outcome.EMPTY
