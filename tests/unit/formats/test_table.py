"""Tables: which columns are taken, which values are refused, and where the message says they are."""

import math
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cranfield.base.errors import MissingExtraError, RunFormatError, UsageError
from cranfield.formats.io.delimited import COLUMN_NAMES
from cranfield.formats.io.table import is_frame, is_parquet, read_arrays, read_table

RUN = ("query_id", "doc_id", "score")
GOOD = {"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [2.0, 1.0]}
KINDS = {"pandas": pd.DataFrame, "Polars": pl.DataFrame, "Arrow": pa.table}

each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def problems_of(caught):
    return [str(problem) for problem in caught.value.problems]


@each_kind
def test_ids_and_numbers_come_out_of_every_kind_of_table(make):
    table = read_table(make(GOOD), RUN, RunFormatError)
    assert table.ids["doc_id"].text(0, 2) == ["d1", "d2"]
    assert table.numbers["score"].tolist() == [2.0, 1.0]
    assert table.n_rows == 2
    assert table.ids["query_id"].run_starts().tolist() == [0]
    assert table.ids["doc_id"].run_starts().tolist() == [0, 1]
    assert table.ids["doc_id"].take(np.array([1, 0])).text(0, 2) == ["d2", "d1"]


@pytest.mark.parametrize("role", RUN)
def test_every_usual_name_of_a_column_is_known(role):
    for name in COLUMN_NAMES[role]:
        table = read_table(pl.DataFrame(GOOD).rename({role: name}), RUN, RunFormatError)
        assert table.taken[role] == name


def test_of_several_usual_names_the_first_of_the_list_is_taken():
    both = pl.DataFrame(GOOD).with_columns(query=pl.lit("words"), docid=pl.lit(7), did=pl.lit(8))
    assert read_table(both, RUN, RunFormatError).taken == {name: name for name in RUN}


def test_each_missing_column_is_named_with_what_is_there():
    with pytest.raises(RunFormatError) as caught:
        read_table(pl.DataFrame({"topic": ["q1"], "doc_id": ["d1"], "sim": [1.0]}), RUN, RunFormatError, name="run")
    there = "got columns 'topic, doc_id, sim'"
    hints = [f'Hint: rename it to {role}, or name it: columns={{"{role}": …}}.' for role in ("query_id", "score")]
    assert problems_of(caught) == [
        f"run: no column query_id; expected query_id or q_id or qid or query, {there}.\n{hints[0]}",
        f"run: no column score; expected score, {there}.\n{hints[1]}",
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"score": "bn25"}, "run: unknown column 'bn25'; expected bm25, doc_id, query_id.\nHint: did you mean bm25?"),
        (
            {"scores": "bm25"},
            "unknown column role 'scores'; expected doc_id, query_id, score.\nHint: did you mean score?",
        ),
    ],
)
def test_a_name_of_no_column_is_an_error_of_the_call(columns, message):
    frame = pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "bm25": [1.0]})
    with pytest.raises(UsageError) as caught:
        read_table(frame, RUN, RunFormatError, columns=columns, name="run")
    assert str(caught.value) == message


@each_kind
@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_a_missing_id_is_an_error_that_names_its_row(make, column):
    with pytest.raises(RunFormatError) as caught:
        read_table(make(GOOD | {column: ["x", None]}), RUN, RunFormatError, name="run")
    assert problems_of(caught) == [f"run: row 1: no {column}; expected an id in each row, got nothing there."]


@each_kind
def test_a_missing_score_is_an_error_that_names_its_row(make):
    with pytest.raises(RunFormatError) as caught:
        read_table(make(GOOD | {"score": [1.0, None]}), RUN, RunFormatError, name="run")
    assert problems_of(caught)[0].startswith("run: row 1: score is not a finite number; expected a number, got ")


@each_kind
@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_an_error_that_names_its_row(make, score):
    with pytest.raises(
        RunFormatError, match=r"row 0: score is not a finite number; expected a number, got (nan|-?inf|None)"
    ):
        read_table(make(GOOD | {"score": [score, 1.0]}), RUN, RunFormatError)


@each_kind
@pytest.mark.parametrize(
    ("score", "kind"), [(["2.0", "1.0"], "String"), ([True, False], "Boolean")], ids=["text", "truth values"]
)
def test_a_column_of_scores_that_are_none_is_an_error(make, score, kind):
    with pytest.raises(RunFormatError, match=f"column score cannot be used; expected numbers, got {kind}"):
        read_table(make(GOOD | {"score": score}), RUN, RunFormatError)


@each_kind
def test_ids_that_are_fractions_are_an_error_with_the_reason_pandas_makes_them(make):
    with pytest.raises(
        RunFormatError, match="column doc_id cannot be used; expected text or whole numbers, got Float64"
    ) as e:
        read_table(make(GOOD | {"doc_id": [1.0, 2.0]}), RUN, RunFormatError)
    assert "pandas turns whole numbers into fractions where one is missing" in str(e.value)


def test_ids_that_are_truth_values_or_dates_are_an_error():
    for ids in ([True, False], pd.to_datetime(["2020-01-01", "2020-01-02"])):
        with pytest.raises(RunFormatError, match="column doc_id cannot be used"):
            read_table(pd.DataFrame(GOOD | {"doc_id": ids}), RUN, RunFormatError)


def test_among_objects_each_that_is_no_id_or_number_is_named():
    frame = pd.DataFrame(
        {"query_id": ["q", "q", "q"], "doc_id": pd.Series(["d", 1.5, 3], dtype=object), "score": [Decimal(1), "2", 3]}
    )
    with pytest.raises(RunFormatError) as caught:
        read_table(frame, RUN, RunFormatError, name="run")
    assert problems_of(caught) == [
        "run: row 1: doc_id is not an id; expected text or whole numbers, got 1.5.",
        "run: row 1: score is not a finite number; expected a number, got '2'.",
    ]


def test_objects_that_are_ids_and_numbers_will_do():
    frame = pd.DataFrame(GOOD | {"doc_id": pd.Series(["d", 3], dtype=object), "score": [Decimal("1.5"), 2]})
    table = read_table(frame, RUN, RunFormatError)
    assert table.ids["doc_id"].text(0, 2) == ["d", "3"]
    assert table.numbers["score"].tolist() == [1.5, 2.0]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Decimal(10, 2)])
def test_every_type_of_number_is_a_score(dtype):
    frame = pl.DataFrame(GOOD).with_columns(pl.col("score").cast(dtype))
    assert read_table(frame, RUN, RunFormatError).numbers["score"].tolist() == [2.0, 1.0]


def test_nullable_integers_of_pandas_are_ids_and_scores():
    frame = pd.DataFrame(GOOD | {"doc_id": pd.array([1, 2], dtype="Int64"), "score": pd.array([1, 2], dtype="Int32")})
    table = read_table(frame, RUN, RunFormatError)
    assert table.ids["doc_id"].text(0, 2) == ["1", "2"]
    assert table.numbers["score"].tolist() == [1.0, 2.0]


def test_twenty_rows_are_named_and_the_rest_is_counted():
    frame = pl.DataFrame({"query_id": ["q"] * 30, "doc_id": [str(i) for i in range(30)], "score": [math.nan] * 30})
    with pytest.raises(RunFormatError) as caught:
        read_table(frame, RUN, RunFormatError, name="run")
    assert problems_of(caught)[-1] == "run: score is not a finite number in 30 rows in total; expected a number."
    assert len(caught.value.problems) == 21


def test_a_lenient_column_is_there_only_when_it_holds_numbers():
    for ranks, there in (([1, 2], True), (["a", "b"], False), ([1.0, math.nan], False)):
        frame = pl.DataFrame(GOOD | {"rank": ranks})
        assert ("rank" in read_table(frame, RUN, RunFormatError, lenient=["rank"]).numbers) is there


@pytest.mark.parametrize("value", [[1, 2], 7, "text", {"a": 1}, None])
def test_what_is_no_table_is_told(value):
    assert not is_frame(value)


@pytest.mark.parametrize("make", [*KINDS.values(), lambda columns: pl.DataFrame(columns).lazy()])
def test_what_is_a_table_is_told(make):
    assert is_frame(make(GOOD))


def test_two_columns_of_one_name_are_an_error():
    frame = pd.DataFrame([["q", "d", 1.0, 2.0]], columns=["query_id", "doc_id", "score", "score"])
    with pytest.raises(UsageError, match="this frame cannot be used"):
        read_table(frame, RUN, RunFormatError)


def test_a_list_is_no_table():
    with pytest.raises(UsageError, match="a list is not a table; expected a data frame, an Arrow table, or the path"):
        read_table([1, 2], RUN, RunFormatError)


@pytest.mark.parametrize(
    ("columns", "got"),
    [
        ({"query_id": ["q", "q"], "doc_id": ["d"], "score": [1.0, 2.0]}, r"doc_id \(1,\)"),
        ({"query_id": [["q"]], "doc_id": [["d"]], "score": [[1.0]]}, r"query_id \(1, 1\)"),
    ],
)
def test_arrays_that_do_not_go_together_are_an_error(columns, got):
    with pytest.raises(UsageError, match=f"do not match in length; expected one dimension and one length, got .*{got}"):
        read_arrays(columns, RunFormatError)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("doc_id", [1.5, 2.5], "column doc_id cannot be used; expected text or whole numbers, got float64"),
        ("doc_id", [b"a", b"b"], r"column doc_id cannot be used; expected text or whole numbers, got \|S1"),
        ("score", ["1", "2"], "column score cannot be used; expected numbers, got <U1"),
        ("score", [1.0, math.nan], "row 1: score is not a finite number; expected a number, got nan"),
        ("doc_id", ["d", None], "row 1: doc_id is not an id; expected text or whole numbers, got None"),
    ],
)
def test_values_of_arrays_are_looked_at_too(column, values, message):
    with pytest.raises(RunFormatError, match=message):
        read_arrays(GOOD | {column: values}, RunFormatError)


def test_arrays_of_text_of_any_width_are_ids():
    arrays = [
        np.array(["a", "bb"]),
        np.array(["a", "bb"], dtype=np.dtypes.StringDType()),
        np.array(["a", "bb"], object),
    ]
    for array in arrays:
        assert read_arrays(GOOD | {"doc_id": array}, RunFormatError).ids["doc_id"].text(0, 2) == ["a", "bb"]


def test_a_parquet_file_is_told_by_its_first_bytes(tmp_path):
    pq.write_table(pa.table(GOOD), tmp_path / "run.bin")
    (tmp_path / "run.parquet").write_text("q1 Q0 d1 1 2.0 tag\n")
    assert is_parquet(tmp_path / "run.bin", RunFormatError)
    assert not is_parquet(tmp_path / "run.parquet", RunFormatError)
    assert read_table(tmp_path / "run.bin", RUN, RunFormatError).numbers["score"].tolist() == [2.0, 1.0]


def test_a_parquet_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path):
    path = tmp_path / "run.parquet"
    with pytest.raises(RunFormatError, match=r"run\.parquet: no such file"):
        read_table(path, RUN, RunFormatError)
    pq.write_table(pa.table(GOOD), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunFormatError, match=r"run\.parquet: this Parquet file is damaged or cut short"):
        read_table(path, RUN, RunFormatError)
    path.write_bytes(whole[:4] + bytes(len(whole[4:200])) + whole[200:])
    with pytest.raises(RunFormatError, match=r"run\.parquet: this Parquet file is damaged or cut short"):
        read_table(path, RUN, RunFormatError)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cranfield\[parquet\]'"):
        read_table(tmp_path / "run.parquet", RUN, RunFormatError)
