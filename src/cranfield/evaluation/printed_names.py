"""The names of measures that a convention prints."""

from __future__ import annotations

from dataclasses import replace

from cranfield.evaluation.values import ByMeasure, Evaluation


def with_printed_names(evaluation: Evaluation) -> Evaluation:
    """The evaluation with the names of measures that its convention prints."""
    names = dict(evaluation.ranking.convention.names)
    if not names:
        return evaluation
    shown = {measure: replace(measure, shown=names.get(measure.name, "")) for measure in evaluation.measures}
    return replace(
        evaluation,
        measures=tuple(shown.values()),
        values={measure: evaluation.values[measure] for measure in shown.values()},
        scored={measure: evaluation.scored[measure] for measure in shown.values()},
        unscored={measure: evaluation.unscored[measure] for measure in shown.values()},
        summaries=ByMeasure({measure: evaluation.summaries[measure] for measure in shown.values()}),
    )
