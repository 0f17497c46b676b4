"""The result as one tidy table, a row for each query and measure, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.evaluation.classes import by_class, compare_classes
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.reporting.document import PILOT_STAMP, Cell, Column, Table

STAMP = Column("stamp")


def tidy_evaluations(evaluations: Sequence[Evaluation]) -> Table:
    """`system, query, measure, value, outcome`; an unscored value is empty. Pilots have a column that says so."""
    pilot = any(evaluation.pilot for evaluation in evaluations)
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        stamp = ((PILOT_STAMP if evaluation.pilot else ""),) if pilot else ()
        names = [str(measure) for measure in evaluation.measures]
        columns = [
            [value if scored else None for value, scored in zip(values.tolist(), known.tolist(), strict=True)]
            for values, known in ((evaluation.values[m], evaluation.scored[m]) for m in evaluation.measures)
        ]
        for i, (query_id, outcome) in enumerate(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True)):
            for name, column in zip(names, columns, strict=True):
                rows.append((evaluation.name, query_id, name, column[i], outcome.value, *stamp))
        rows += [(*row, *stamp) for row in _class_rows(evaluation)]
    headings = (Column("system"), Column("query"), Column("measure"), Column("value", "value"), Column("outcome"))
    return Table((*headings, STAMP) if pilot else headings, rows, "Every value", shown=None)


def _class_rows(evaluation: Evaluation) -> Iterator[tuple[Cell, ...]]:
    """A row for each query and measure of its class, for measures that were not evaluated on all queries."""
    outcomes = dict(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True))
    for result in by_class(evaluation):
        for about in result.measures:
            if about.measure not in evaluation.values:
                for query_id in result.query_ids:
                    value = about.values.get(query_id)
                    yield (evaluation.name, query_id, str(about.measure), value, outcomes[query_id].value)


def tidy_comparison(comparison: Comparison) -> Table:
    """A row for each query and measure: both values, `delta`, the bucket on the primary measure, and both outcomes."""
    buckets = {query_id: name for name, query_ids in comparison.buckets.items() for query_id in query_ids}
    stamp = (PILOT_STAMP,) if comparison.pilot else ()
    outcomes = [
        dict(zip(side.query_ids, (outcome.value for outcome in side.ranking.outcomes), strict=True))
        for side in (comparison.baseline, comparison.candidate)
    ]
    rows: list[tuple[Cell, ...]] = []
    for measure, about in comparison.measures.items():
        for query_id, delta in about.differences.items():
            before, after = (side.value(measure, query_id) for side in (comparison.baseline, comparison.candidate))
            ends = (side[query_id] for side in outcomes)
            rows.append((query_id, str(measure), before, after, delta, buckets.get(query_id, ""), *ends, *stamp))
    for of_class in compare_classes(comparison):
        for difference in of_class.measures:
            if difference.measure in comparison.measures:
                continue
            for query_id, delta in difference.differences.items():
                before, after = (side[query_id] for side in difference.values)
                ends = (side[query_id] for side in outcomes)
                name, bucket = str(difference.measure), buckets.get(query_id, "")
                rows.append((query_id, name, before, after, delta, bucket, *ends, *stamp))
    names = (
        Column("query"),
        Column("measure"),
        Column("baseline", "value"),
        Column("candidate", "value"),
        Column("delta", "delta"),
        Column("bucket"),
        Column("baseline_outcome"),
        Column("candidate_outcome"),
    )
    return Table((*names, STAMP) if stamp else names, rows, "Every pair", shown=None)
