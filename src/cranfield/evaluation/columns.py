"""Evaluations with other measures: the values of each are those that some evaluation has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cranfield.evaluation.absence import absence_sentences
from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.values import ByMeasure, Evaluation
from cranfield.measures import Measure
from cranfield.model import Convention
from cranfield.words import and_list


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
    of = {measure: (measure, part) for part in parts for measure in part.measures}
    columns = dict(of[measure] for measure in measures)
    whole = with_columns(columns[measures[0]], columns)
    return replace(whole, warnings=tuple(dict.fromkeys(_joined_warnings(whole, parts))))


def _joined_warnings(whole: Evaluation, parts: Sequence[Evaluation]) -> Iterator[str]:
    """Warnings of evaluations of one run: with the measures that they are about, where those of another evaluation differ.

    What absent queries count as is one sentence for all measures, where the judgments are the same.
    """
    shared = set(whole.warnings).intersection(*(part.warnings for part in parts))
    is_one_set = all(part.testset.grades == whole.testset.grades for part in parts)
    for part in parts:
        names = and_list([str(measure) for measure in part.measures])
        for line in part.warnings:
            kind = line.kind if isinstance(line, Caveat) else ()
            if is_one_set and CaveatKind.ABSENT in kind:
                yield from absence_sentences(whole.testset, whole.ranking, whole.measures, whole.values, whole.scored)
            elif line in shared or CaveatKind.NO_VALUE in kind:
                yield line
            else:
                yield Caveat(f"{names}: {line}", *kind, part.measures)


def as_printed(measures: Iterable[Measure], convention: Convention) -> tuple[Measure, ...]:
    """Measures with the names that a convention prints, but for those under an alias that was written."""
    names = dict(convention.names)
    return tuple(replace(measure, shown=measure.shown or names.get(measure.name, "")) for measure in measures)
