"""Evaluations or a comparison in, a Document out: which sections a report has, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import partial

from cranfield.evaluation.contrast import Asked
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.numbers import format_count
from cranfield.reporting.document import PILOT_STAMP, Document, Section
from cranfield.reporting.payload import comparison_payload, evaluation_payload, results_payload
from cranfield.reporting.sections.answers import by_query as every_query
from cranfield.reporting.sections.answers import lowest, worst_and_best
from cranfield.reporting.sections.classes import classes_compared, classes_measured
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.contrast import contrasts_compared, contrasts_measured, strata_contrasts
from cranfield.reporting.sections.latency import latencies
from cranfield.reporting.sections.measures import compared_measures, measured_systems
from cranfield.reporting.sections.movement import differences, movement
from cranfield.reporting.sections.naming import side_names
from cranfield.reporting.sections.paired_tests import paired_tests
from cranfield.reporting.sections.provenance import Preflight, overdue, provenance
from cranfield.reporting.sections.sensitivity import sensitivity_section
from cranfield.reporting.sections.strata import breakdown, means_by_stratum
from cranfield.reporting.sections.verdict import verdict_block
from cranfield.reporting.tidy import tidy_comparison, tidy_evaluations
from cranfield.version import __version__
from cranfield.words import and_list

MADE_BY = f"Cranfield {__version__}"


def comparison_document(
    comparison: Comparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[Asked] = (),
    today: date | None = None,
    sensitivity: Sensitivity | None = None,
) -> Document:
    """The report of a comparison, verdict first.

    Args:
        comparison: baseline against candidate.
        preflight: (system, check, found) of every check that held before the first query.
        contrasts: (key, value, value) of strata to contrast.
        today: to say when the test set is overdue for new queries; None does not say.
        sensitivity: what variations of it would claim, where that was asked for.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    contrasted = contrasts_compared(comparison, contrasts)
    names = side_names(comparison)
    systems = list(zip(names, (comparison.baseline, comparison.candidate), strict=True))
    sections: list[Section | None] = [
        compared_measures(comparison),
        warnings(systems, overdue(comparison.baseline.testset, today)),
        sensitivity_section(sensitivity) if sensitivity is not None else None,
        classes_compared(comparison),
        differences(comparison),
        movement(comparison),
        breakdown(comparison),
        strata_contrasts(contrasted),
        worst_and_best(comparison),
        paired_tests(comparison),
        latencies(systems, comparison),
        collection(systems, comparison.primary.depth, comparison),
        provenance(systems, preflight, comparison),
    ]
    return Document(
        title=f"Is {comparison.candidate.name} better than {comparison.baseline.name}?",
        subtitle=(f"{names[0]} (baseline)", f"{names[1]} (candidate)", rules_of(comparison.baseline)),
        sections=tuple(section for section in sections if section is not None),
        tidy=partial(tidy_comparison, comparison),
        payload=partial(comparison_payload, comparison, contrasted, sensitivity),
        record=partial(results_payload, comparison, contrasted, sensitivity),
        verdict=verdict_block(comparison, sensitivity),
        stamp=PILOT_STAMP if comparison.pilot else "",
        made_by=MADE_BY,
    )


def evaluation_document(
    evaluations: Sequence[Evaluation],
    *,
    by_query: bool = False,
    preflight: Preflight = (),
    contrasts: Sequence[Asked] = (),
    today: date | None = None,
) -> Document:
    """The report of one system or several, side by side and without a verdict.

    Args:
        evaluations: on one test set; at least one.
        by_query: add a row for every query.
        preflight: (system, check, found) of every check that held before the first query.
        contrasts: (key, value, value) of strata to contrast, on the first measure.
        today: to say when the test set is overdue for new queries; None does not say.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    contrasted = contrasts_measured(evaluations, contrasts)
    systems = [(evaluation.name, evaluation) for evaluation in evaluations]
    depth = evaluations[0].measures[0].depth if evaluations[0].measures else None
    sections: list[Section | None] = [
        measured_systems(evaluations),
        warnings(systems, overdue(evaluations[0].testset, today)),
        classes_measured(evaluations),
        means_by_stratum(evaluations),
        strata_contrasts(contrasted),
        lowest(evaluations[0]) if len(evaluations) == 1 else None,
        latencies(systems),
        collection(systems, depth),
        every_query(evaluations) if by_query else None,
        provenance(systems, preflight),
    ]
    return Document(
        title=and_list([evaluation.name for evaluation in evaluations]),
        subtitle=(rules_of(evaluations[0]),),
        sections=tuple(section for section in sections if section is not None),
        tidy=partial(tidy_evaluations, evaluations),
        payload=partial(evaluation_payload, evaluations, contrasted),
        record=partial(results_payload, tuple(evaluations), contrasted),
        stamp=PILOT_STAMP if any(evaluation.pilot for evaluation in evaluations) else "",
        made_by=MADE_BY,
    )


def rules_of(evaluation: Evaluation) -> str:
    """What was scored, and by whose rules: the line under the title."""
    testset = evaluation.testset
    version = f" {testset.version}" if testset.version else ""
    queries = format_count(len(testset.queries))
    review = f", {testset.meta.review}" if testset.meta.review else ""
    return (
        f"test set {testset.name}{version}, {queries} queries{review}, convention {evaluation.ranking.convention.name}"
    )
