"""Calls of the public functions as a type checker sees them: `make check` reads this file, nothing runs it.

A line with `type: ignore` is a call that has to be refused: under `--strict` an ignore that is not needed is an error.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa

import cranfield
from cranfield import Evaluation, Run, TestSet


def accepted(testset: TestSet, run: Run, frame: pl.DataFrame, lazy: pl.LazyFrame, table: pa.Table) -> list[Evaluation]:
    return [
        cranfield.evaluate(testset, run),
        cranfield.evaluate("qrels.txt", Path("bm25.run"), measures=["nDCG@10"], convention="trec"),
        cranfield.evaluate({"q1": {"d1": 2}}, {"q1": ["d1", "d2"]}),
        cranfield.evaluate({"q1": {"d1": 2.5}}, {"q1": {"d1": 0.5}}, depth=10),
        cranfield.evaluate(frame, lazy),
        cranfield.evaluate(cranfield.load(frame), table, missing="skip"),
    ]


def refused(testset: TestSet, run: Run) -> None:
    cranfield.evaluate(12.5, run)  # type: ignore[arg-type]  # a number is no test set
    cranfield.evaluate(testset, object())  # type: ignore[arg-type]  # an object without columns is no run
    cranfield.evaluate(testset, run, missing="never")  # type: ignore[arg-type]  # one of two words
    cranfield.load(testset)  # type: ignore[arg-type]  # a test set is loaded already
    cranfield.compare(run, run)  # type: ignore[arg-type]  # evaluations are compared, not runs
