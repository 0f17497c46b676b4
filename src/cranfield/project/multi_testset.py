"""The summary of a run over several test sets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure
from cranfield.model import Scalar, TestSet
from cranfield.reporting.document import PILOT_STAMP, Brief, Bullets, Cell, Column, Document, Link, Section, Table
from cranfield.testsets.judging_notes import guidelines_differ


@dataclass(frozen=True)
class SetResult:
    """The result of one test set, as the summary shows it."""

    name: str
    testset: TestSet
    params: Mapping[str, Scalar]
    document: Document
    report: str
    """File name of its report, in the folder of its name."""
    measure: str
    n: int
    means: tuple[float | None, float | None, float | None] = (None, None, None)
    """Of A, of B, and their difference, on the measure."""
    verdict: Cell = ""
    remark: str = ""
    """What judgments of the unjudged results, and queries of an unseen kind, can make of the verdict."""
    evaluations: tuple[Evaluation, ...] = ()
    """Of each system, in order."""


def summary_document(results: Sequence[SetResult]) -> Document:
    """A row for each test set, with a link to its own report."""
    documents = [result.document for result in results]
    guidelines = (guidelines_differ(*(each.testset for each in two)) for two in pairwise(results))
    sentences = tuple(
        f"{result.name}: {result.document.verdict.sentence}" + (f" Here {result.remark}." if result.remark else "")
        for result in results
        if result.document.verdict is not None
    )
    return Document(
        title=f"{len(results)} test sets: {', '.join(result.name for result in results)}",
        subtitle=tuple(dict.fromkeys(document.title for document in documents)),
        sections=(
            Section("sets", "Test sets", (_table(results), Bullets((*filter(None, guidelines), *sentences)))),
            Section("scores", "Scores", (_scores(results),)),
        ),
        tidy=lambda: _tidy(results),
        payload=lambda: {"testsets": {result.name: result.document.payload() for result in results}},
        stamps=tuple(
            dict.fromkeys(stamp for document in documents for stamp in document.stamps if stamp == PILOT_STAMP)
        ),
        made_by=documents[0].made_by,
        brief=lambda: Brief(_brief_table(results), doubts=tuple(sentences)),
    )


def _brief_table(results: Sequence[SetResult]) -> Table:
    """The verdict of each test set, without its link and parameters; the scores where one system ran on each."""
    if all(len(each.evaluations) == 1 for each in results):
        return _scores(results)
    columns = (
        *(Column("test set"), Column("verdict"), Column("measure"), Column("difference", "delta")),
        Column("queries", "count"),
    )
    rows = [(each.name, each.verdict, each.measure, each.means[2], each.n) for each in results]
    return Table(columns, rows, "Test sets")


def _table(results: Sequence[SetResult]) -> Table:
    columns = (
        Column("test set"),
        Column("params"),
        Column("queries", "count"),
        Column("measure"),
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column("verdict"),
    )
    rows = [
        (
            Link(result.name, f"{result.name}/{result.report}"),
            ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in result.params.items()),
            result.n,
            result.measure,
            *result.means,
            result.verdict,
        )
        for result in results
    ]
    caption = f"Each test set has its own report, in the folder of its name: NAME/{results[0].report}"
    return Table(columns, rows, caption, shown=None)


def _scores(results: Sequence[SetResult]) -> Table:
    """The mean of every measure, the primary ones first, for each test set and system."""
    scored = [(each, evaluation) for each in results for evaluation in each.evaluations]
    measures = list(dict.fromkeys(measure for _, evaluation in scored for measure in evaluation.measures))
    primary = {each.measure for each in results}
    measures.sort(key=lambda measure: str(measure) not in primary)
    rows = [
        (each.name, evaluation.name, len(evaluation.query_ids), *(_mean(evaluation, measure) for measure in measures))
        for each, evaluation in scored
    ]
    columns = (Column("test set"), Column("system"), Column("queries", "count"))
    return Table((*columns, *(Column(str(measure), "value") for measure in measures)), rows, "Mean of each measure")


def _mean(evaluation: Evaluation, measure: Measure) -> float | None:
    return evaluation.summaries[measure].mean if measure in evaluation.summaries else None


def _tidy(results: Sequence[SetResult]) -> Table:
    tables = {result.name: result.document.tidy() for result in results}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    rows = []
    for name, table in tables.items():
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            rows.append((name, *(cells.get(column) for column in columns)))
    return Table((Column("test set"), *columns), rows, "Every value", shown=None)
