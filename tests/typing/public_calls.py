"""Calls of the public functions as a type checker sees them: `make check` reads this file, nothing runs it.

A line with `type: ignore` is a call that has to be refused: under `--strict` an ignore that is not needed is an error.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa

import cranfield
from cranfield import Comparison, Evaluation, ManyComparison, Run, TestSet
from cranfield.base.display import QueryDisplay


def accepted(testset: TestSet, run: Run, frame: pl.DataFrame, lazy: pl.LazyFrame, table: pa.Table) -> list[Evaluation]:
    return [
        cranfield.evaluate(testset, run),
        cranfield.evaluate("qrels.txt", Path("bm25.run"), measures=["nDCG@10"], convention="trec"),
        cranfield.evaluate({"q1": {"d1": 2}}, {"q1": ["d1", "d2"]}),
        cranfield.evaluate({"q1": {"d1": 2.5}}, {"q1": {"d1": 0.5}}, depth=10),
        cranfield.evaluate(frame, lazy),
        cranfield.evaluate(cranfield.load(frame), table, missing="skip"),
    ]


def shown(result: Comparison, many: ManyComparison, testset: TestSet, run: Run) -> tuple[QueryDisplay, ...]:
    _pandas: tuple[pd.DataFrame, ...] = (result.to_pandas(), many.to_pandas(), testset.to_pandas(), run.to_pandas())
    _polars: pl.DataFrame = result.candidate.to_polars()
    _arrow: pa.Table = run.to_arrow()
    return result.show("q57"), many.show("q57"), result.baseline.show("the text of it")


def refused(testset: TestSet, run: Run) -> None:
    cranfield.evaluate(12.5, run)  # type: ignore[arg-type]  # a number is no test set
    cranfield.evaluate(testset, object())  # type: ignore[arg-type]  # an object without columns is no run
    cranfield.evaluate(testset, run, missing="never")  # type: ignore[arg-type]  # one of two words
    cranfield.load(testset)  # type: ignore[arg-type]  # a test set is loaded already
    result = cranfield.evaluate(testset, run)
    result.show(57)  # type: ignore[arg-type]  # an id is text
    run.show("q57")  # type: ignore[attr-defined]  # a run alone has no values
    cranfield.compare(run, run)  # type: ignore[arg-type]  # evaluations are compared, not runs
