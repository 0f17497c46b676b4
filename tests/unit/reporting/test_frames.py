"""Results as data frames: the rows of the CSV form, typed, in the frame that was asked for."""

from __future__ import annotations

import io
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield import Answer, Hit, Outcome, Query, Run, TestSet, compare_many, evaluate, load, report
from cranfield.base.errors import MissingExtraError
from cranfield.evaluation.testset.expected import queries_of
from cranfield.evaluation.values import Comparison
from cranfield.model.query import Negative
from cranfield.testsets.reports.testset import queries_document


@pytest.mark.parametrize("of", ["comparison", "evaluation"])
def test_a_frame_of_results_is_their_csv_as_pandas_reads_it(comparison: Comparison, of: str) -> None:
    value = {"comparison": comparison, "evaluation": comparison.candidate}[of]
    expected = pd.read_csv(io.StringIO(report(value, format="csv")))
    pd.testing.assert_frame_equal(value.to_pandas().replace("", None), expected, check_dtype=False)


def test_a_frame_of_many_systems_has_the_rows_of_each(comparison: Comparison) -> None:
    third = evaluate(comparison.baseline.testset, comparison.baseline.run, name="third")
    many = compare_many([*comparison.evaluations, third])
    frames = [each.to_polars() for each in many.evaluations]
    assert many.to_polars().equals(pl.concat(frames))


def test_a_frame_has_the_values_that_the_result_has(comparison: Comparison) -> None:
    frame = comparison.to_pandas()
    of_primary = frame[frame["measure"] == str(comparison.primary)].set_index("query")
    about = comparison.measures[comparison.primary]
    assert of_primary["delta"].mean() == pytest.approx(about.delta)
    assert dict(of_primary["delta"]) == pytest.approx(dict(about.differences))
    means = comparison.baseline.to_polars().group_by("measure").agg(pl.col("value").mean()).rows()
    for measure, mean in means:
        assert mean == pytest.approx(comparison.baseline.mean(measure))


def test_the_three_frames_agree(comparison: Comparison, runs: tuple[Run, Run], testset: TestSet) -> None:
    for value in (comparison, comparison.baseline, runs[1], testset):
        arrow = value.to_arrow()
        assert value.to_polars().equals(pl.from_arrow(arrow))
        pd.testing.assert_frame_equal(value.to_pandas(), arrow.to_pandas(), check_dtype=False)


def test_numbers_are_numbers_where_there_is_none_of_them() -> None:
    nothing = Run("nothing", {"q": Answer(Outcome.EMPTY)})
    assert nothing.to_polars().schema["score"] == pl.Float64
    assert nothing.to_pandas()["doc_id"].isna().all()
    empty = Run("empty", {})
    assert (empty.to_polars().schema["score"], empty.to_polars().schema["query"]) == (pl.Float64, pl.String)
    assert empty.to_pandas().columns.tolist() == empty.to_arrow().column_names


def test_a_run_says_what_came_back_of_every_query(runs: tuple[Run, Run]) -> None:
    frame = runs[1].to_polars()
    assert frame.columns == ["query", "rank", "doc_id", "score", "title", "outcome", "latency_ms"]
    assert frame.filter(query="q8").rows() == [("q8", None, None, None, "", "timeout", 30_000.0)]
    assert frame.filter(query="q1").select("rank", "doc_id").rows() == [(1, "q1-a"), (2, "q1-b")]


Ids = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and text
)


@settings(deadline=None, max_examples=min(30, settings().max_examples))
@given(
    lists=st.dictionaries(Ids, st.lists(Ids, unique=True, min_size=1, max_size=6), min_size=1, max_size=4),
    data=st.data(),
)
def test_the_frames_of_a_run_and_a_test_set_are_evaluated_as_they_are(lists: dict[str, list[str]], data) -> None:
    answers = {
        query_id: Answer(Outcome.ANSWERED, tuple(Hit(doc_id, score=float(-rank)) for rank, doc_id in enumerate(ids)))
        for query_id, ids in lists.items()
    }
    grades = {query_id: {data.draw(st.sampled_from(ids)): 2, "another": 1} for query_id, ids in lists.items()}
    testset = TestSet("set", tuple(map(Query, lists)), grades)
    run = Run("run", answers, order="descending")
    direct = evaluate(testset, run, measures=["nDCG@10", "AP"])
    judged = load(testset.to_polars(), columns={"doc_id": "expected"})
    again = evaluate(judged, run.to_pandas(), measures=["nDCG@10", "AP"])
    for measure in direct.measures:
        for query_id in lists:
            assert again.value(measure, query_id) == direct.value(measure, query_id)


def test_text_that_is_not_unicode_is_written_as_in_a_report(evil: Comparison) -> None:
    for value in (evil, evil.baseline, evil.baseline.run, evil.baseline.testset):
        assert value.to_polars().height == len(value.to_pandas()) == value.to_arrow().num_rows
    assert any("\\x80" in each for each in evil.to_polars()["query"])


def test_a_frame_keeps_text_as_it_is() -> None:
    ids = ["=1+1", "tab\there", "<b>", "日本語"]
    run = Run("run", {"q": Answer(Outcome.ANSWERED, tuple(map(Hit, ids)))})
    assert run.to_polars()["doc_id"].to_list() == run.to_pandas()["doc_id"].tolist() == ids


@pytest.mark.parametrize(
    ("method", "module", "install"),
    [
        ("to_pandas", "pandas", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_arrow", "pyarrow", "'cranfield[parquet]'"),
    ],
)
def test_a_library_that_is_missing_is_named(comparison, monkeypatch, method: str, module: str, install: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=f"{module}, which is not installed") as raised:
        getattr(comparison, method)()
    assert raised.value.problems[0].hint == f"run `pip install {install}`"
    assert str(raised.value).startswith(f"{method}() needs")


def test_judgments_are_rows_of_a_test_set(testset: TestSet) -> None:
    frame = testset.to_pandas()
    assert frame.columns.tolist() == [column.title for column in queries_document(queries_of(testset)).tidy().columns]
    assert len(frame) == 16
    assert pa.types.is_floating(testset.to_arrow().schema.field("grade").type)


def test_an_unscored_value_is_missing_in_a_frame() -> None:
    queries = (Query("q1"), Query("q2", negative=Negative()))
    scored = evaluate(TestSet("set", queries, {"q1": {"a": 1}}), {"q1": ["a"], "q2": ["x"]}, measures=["AP"])
    assert scored.value("AP", "q2") is None
    assert scored.to_polars().filter(measure="AP").select("query", "value").rows() == [("q1", 1.0), ("q2", None)]
    frame = scored.to_pandas()
    assert frame[frame["measure"] == "AP"]["value"].isna().tolist() == [False, True]
