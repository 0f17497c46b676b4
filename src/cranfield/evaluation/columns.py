"""Evaluations with other measures: the values of each are those that some evaluation has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def joined(measures: Sequence[Measure], parts: Sequence[Evaluation]) -> Evaluation:
    """Evaluations of one run with other measures as one, with the ranking of the first measure's and the warnings of all."""
    of = {measure: part for part in parts for measure in part.measures}
    warnings = dict.fromkeys(warning for part in parts for warning in part.warnings)
    return replace(
        with_columns(of[measures[0]], {measure: of[measure] for measure in measures}), warnings=tuple(warnings)
    )


def with_printed_names(evaluation: Evaluation) -> Evaluation:
    """The evaluation with the names of measures that its convention prints."""
    names = dict(evaluation.ranking.convention.names)
    if not names:
        return evaluation
    shown = [replace(measure, shown=names.get(measure.name, "")) for measure in evaluation.measures]
    return with_columns(evaluation, dict.fromkeys(shown, evaluation))
