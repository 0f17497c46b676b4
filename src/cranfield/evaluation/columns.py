"""Evaluations with other measures: the values of each are those that some evaluation has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cranfield.evaluation.values import ByMeasure, Evaluation
from cranfield.measures import Measure


def with_columns(evaluation: Evaluation, columns: Mapping[Measure, Evaluation]) -> Evaluation:
    """The evaluation with the measures of others in place of its own.

    Args:
        evaluation: the ranking, hits and failures are its.
        columns: each measure, in order, to an evaluation of the same queries that has it.
    """
    return replace(
        evaluation,
        measures=tuple(columns),
        values={measure: of.values[measure] for measure, of in columns.items()},
        scored={measure: of.scored[measure] for measure, of in columns.items()},
        unscored={measure: of.unscored.get(measure, {}) for measure, of in columns.items()},
        summaries=ByMeasure({measure: of.summaries[measure] for measure, of in columns.items()}),
    )


def with_printed_names(evaluation: Evaluation) -> Evaluation:
    """The evaluation with the names of measures that its convention prints."""
    names = dict(evaluation.ranking.convention.names)
    if not names:
        return evaluation
    shown = [replace(measure, shown=names.get(measure.name, "")) for measure in evaluation.measures]
    return with_columns(evaluation, dict.fromkeys(shown, evaluation))
