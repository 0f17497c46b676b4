"""Evaluations, or a comparison of two or many, in; a Document out. `SECTIONS` says which sections a report has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial

from cranfield.evaluation.contrast import ContrastSpec
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.numbers import format_count
from cranfield.reporting.document import PILOT_STAMP, Document, Section
from cranfield.reporting.payload import payload_of, results_payload
from cranfield.reporting.sections.answers import answers, by_query
from cranfield.reporting.sections.classes import classes
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.contrast import find_contrasts, strata_contrasts
from cranfield.reporting.sections.labels import lettered
from cranfield.reporting.sections.latency import latencies
from cranfield.reporting.sections.many import against_baseline, measure_agreement, pairs, ranks
from cranfield.reporting.sections.measures import measures
from cranfield.reporting.sections.movement import movement, query_differences
from cranfield.reporting.sections.paired_tests import paired_tests
from cranfield.reporting.sections.plugins import plugin_sections
from cranfield.reporting.sections.provenance import provenance
from cranfield.reporting.sections.sensitivity import sensitivity_section
from cranfield.reporting.sections.strata import breakdown
from cranfield.reporting.sections.subject import Preflight, Subject
from cranfield.reporting.sections.verdict import verdict_block
from cranfield.reporting.tidy import tidy_comparison, tidy_evaluations
from cranfield.version import __version__
from cranfield.words import and_list

MADE_BY = f"Cranfield {__version__}"

SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    measures,
    warnings,
    sensitivity_section,
    against_baseline,
    pairs,
    ranks,
    classes,
    query_differences,
    movement,
    breakdown,
    strata_contrasts,
    measure_agreement,
    answers,
    paired_tests,
    latencies,
    collection,
    by_query,
    provenance,
)
"""Every section of our own, in the order of a report. A builder returns None for a subject that it does not apply to."""


def comparison_document(
    comparison: Comparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
    sensitivity: Sensitivity | None = None,
) -> Document:
    """The report of a comparison, verdict first.

    Args:
        comparison: baseline against candidate.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast.
        today: to say when the test set is overdue for new queries; None does not say.
        sensitivity: the verdicts of alternative analyses, where requested.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    baseline, candidate = comparison.baseline, comparison.candidate
    found = find_contrasts(comparison, contrasts)
    systems = _labelled((baseline, candidate))
    return _document(
        Subject(systems, comparison, found, sensitivity, preflight, today),
        f"Is {candidate.name} better than {baseline.name}?",
        ("baseline", "candidate"),
    )


def many_document(
    many: ManyComparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
) -> Document:
    """The report of many systems, verdict first.

    Args:
        many: what `compare_many` found.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast within each system, on its first measure.
        today: to say when the test set is overdue for new queries; None does not say.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    found = find_contrasts(many.evaluations, contrasts)
    return _document(
        Subject(_labelled(many.evaluations), many, found, None, preflight, today),
        f"Which of {len(many.names)} systems is best?",
        ["baseline" if name == many.baseline else "" for name in many.names],
    )


def evaluation_document(
    evaluations: Sequence[Evaluation],
    *,
    by_query: bool = False,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
) -> Document:
    """The report of one system or several, side by side and without a verdict.

    Args:
        evaluations: on one test set; at least one.
        by_query: add a row for every query.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast, on the first measure.
        today: to say when the test set is overdue for new queries; None does not say.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    names = [evaluation.name for evaluation in evaluations]
    systems = tuple(zip(names, evaluations, strict=True))
    found = find_contrasts(evaluations, contrasts)
    return _document(Subject(systems, None, found, None, preflight, today, by_query=by_query), and_list(names))


def _labelled(evaluations: Sequence[Evaluation]) -> tuple[tuple[str, Evaluation], ...]:
    return tuple(zip(lettered([evaluation.name for evaluation in evaluations]), evaluations, strict=True))


def _document(subject: Subject, title: str, roles: Sequence[str] | None = None) -> Document:
    """The report of a subject; systems with a role, or compared, are listed under the title."""
    labels = () if roles is None else zip(subject.labels, roles, strict=True)
    result = subject.result or subject.evaluations
    return Document(
        title=title,
        subtitle=(
            *(f"{label} ({role})" if role else label for label, role in labels),
            test_set_line(subject.evaluations[0]),
        ),
        sections=(
            *sections_of(subject, SECTIONS[:-1]),
            *plugin_sections(subject),
            *sections_of(subject, SECTIONS[-1:]),
        ),
        tidy=partial(tidy_comparison, subject.pair) if subject.pair else partial(tidy_evaluations, subject.evaluations),
        payload=partial(payload_of, result, subject.contrasts, subject.sensitivity),
        record=partial(results_payload, result, subject.contrasts, subject.sensitivity),
        verdict=verdict_block(subject),
        stamp=PILOT_STAMP if subject.pilot else "",
        made_by=MADE_BY,
    )


def sections_of(subject: Subject, builders: Sequence[Callable[[Subject], Section | None]]) -> tuple[Section, ...]:
    """The sections that apply to a subject, in order."""
    return tuple(section for build in builders if (section := build(subject)) is not None)


def test_set_line(evaluation: Evaluation) -> str:
    """Test set and convention: the line under the title."""
    testset = evaluation.testset
    version = f" {testset.version}" if testset.version else ""
    queries = format_count(len(testset.queries))
    review = f", {testset.meta.review}" if testset.meta.review else ""
    return (
        f"test set {testset.name}{version}, {queries} queries{review}, convention {evaluation.ranking.convention.name}"
    )
