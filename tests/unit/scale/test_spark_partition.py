"""What a worker of Spark does with a partition, without Spark: judgments are collected, rows spooled, whole queries scored."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.ranking import counting
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import result_schema, score_queries
from cranfield.scale.scoring import Scoring
from cranfield.scale.spark.partition import RowSpool, partition_function, score_partition

SCORING = Scoring.of(["run"], ["nDCG@5", "AP"])
ROW = st.tuples(st.sampled_from("abcdé"), st.integers(0, 30), st.sampled_from([0.0, 0.5, 1.0]))


def partition(rows: list[tuple[str, str, float]], judged: list[tuple[str, str | None, float]], size: int = 7):
    """Batches of rows and judgments mixed, as a shuffle brings them."""
    marked = [(*row, False) for row in rows] + [(*row, True) for row in judged]
    order = np.random.default_rng(len(marked)).permutation(len(marked))
    names = ("query_id", "doc_id", "value", "is_judgment")
    types = (pa.string(), pa.string(), pa.float64(), pa.bool_())
    columns = [pa.array([marked[i][n] for i in order], kind) for n, kind in enumerate(types)]
    return pa.table(columns, names=names).to_batches(max_chunksize=size)


def results(batches) -> list[dict]:
    batches = list(batches)
    assert all(batch.schema.equals(result_schema(SCORING)) for batch in batches)
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["query_id"] or "")


@given(
    st.lists(ROW, max_size=60, unique_by=lambda row: row[:2]), st.lists(ROW, max_size=20, unique_by=lambda row: row[:2])
)
def test_a_partition_is_scored_as_the_kernel_scores_its_rows(rows, judged) -> None:
    rows = [(query, f"d{doc}", score) for query, doc, score in rows]
    judged = [*((query, f"d{doc}", grade * 2) for query, doc, grade in judged), ("z", None, 0.0)]
    queries, docs, grades = zip(*judged, strict=True)
    judgments = JudgmentTable.from_rows(pa.array(queries), pa.array(docs, pa.string()), grades, name="", digest="")
    columns = [
        pa.array([row[n] for row in rows], kind) for n, kind in enumerate((pa.string(), pa.string(), pa.float64()))
    ]
    table = pa.table(columns, names=["query_id", "doc_id", "score"])
    expected = results(score_queries(table.to_batches, judgments, SCORING))
    for spool_bytes in (1 << 20, 0):
        assert results(score_partition(partition(rows, judged), SCORING, spool_bytes)) == expected


def test_rows_beyond_the_limit_lie_in_a_file_of_the_executor_which_is_gone_afterwards(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"/nowhere,{tmp_path}")
    batch = pa.RecordBatch.from_pydict({"query_id": ["q"] * 100, "score": np.arange(100.0)})
    spool = RowSpool(3 * batch.nbytes)
    for number in range(5):
        spool.add(batch)
        assert spool.is_file == (number >= 3)
        assert len(list(tmp_path.iterdir())) == (number >= 3)
    spool.finish()
    assert list(tmp_path.iterdir()) == []  # also where the worker is killed
    for _ in range(2):
        assert [read.equals(batch) for read in spool.read()] == [True] * 5
    gc.collect()
    spool.close()


def test_an_error_leaves_no_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))

    def broken():
        yield from partition([("q", f"d{n}", 1.0) for n in range(50)], [])
        raise ConnectionError

    with pytest.raises(ConnectionError):
        list(score_partition(broken(), SCORING, 0))
    assert list(tmp_path.iterdir()) == []


def test_a_partition_without_a_row_gives_none() -> None:
    assert list(score_partition([], SCORING)) == []


def test_rows_without_a_judgment_in_their_partition_are_counted() -> None:
    found = results(partition_function(SCORING)(partition([("q", "d1", 1.0), ("p", "d1", 1.0)], [])))
    assert [(row["query_id"], row["system"], row["n_rows"], row["problem"]) for row in found] == [
        (None, "run", 2, None)
    ]


def test_what_is_judged_twice_is_a_problem() -> None:
    found = results(score_partition(partition([("q", "d1", 1.0)], [("q", "d1", 1.0), ("q", "d1", 2.0)]), SCORING))
    assert [row["problem"] for row in found] == ["document 'd1' of query 'q' is judged twice"]


@pytest.mark.parametrize(
    ("judged", "problem"),
    [
        (("q", "d1", None), "document 'd1' of query 'q' has no grade"),
        (("q", "d1", float("nan")), "document 'd1' of query 'q' has the grade nan, which is not a finite number"),
        ((None, "d1", 1.0), "a judgment has no query_id"),
    ],
)
def test_a_judgment_that_is_none_is_a_problem(judged, problem: str) -> None:
    found = results(score_partition(partition([("q", "d1", 1.0)], [("q", "d2", 1.0), judged]), SCORING))
    assert [row["problem"] for row in found] == [problem]


def test_rows_in_a_file_are_not_memory_of_the_process() -> None:
    """Mapped pages would count as that, and a cluster ends what has more than it was given."""
    spool = RowSpool(0)
    spool.add(pa.RecordBatch.from_pydict({"score": np.arange(100.0)}))
    spool.finish()
    assert [batch.num_rows for batch in spool.read()] == [100]
    assert "cranfield-" not in Path("/proc/self/maps").read_text()
    spool.close()


@pytest.mark.parametrize("duplicates", ["error", "first"])
def test_very_many_repeated_rows_are_a_problem(monkeypatch, duplicates) -> None:
    monkeypatch.setattr(counting, "MAX_SUSPECTS", 5)
    scoring = Scoring.of(["run"], ["nDCG@5", "AP"], duplicates=duplicates)
    rows = [("q", f"d{n % 10}", float(n)) for n in range(40)]
    found = [
        row for batch in score_partition(partition(rows, [("q", "d1", 1.0)]), scoring) for row in batch.to_pylist()
    ]
    assert {"twice" in row["problem"] for row in found} == {duplicates == "error"}
    assert {"millions of rows" in row["problem"] for row in found} == {duplicates == "first"}
