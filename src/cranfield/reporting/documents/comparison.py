"""Evaluations, or a comparison of two or many, in; a Document out. `SECTIONS` says which sections a report has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from cranfield.errors import Problem
from cranfield.evaluation.classes import by_class, compare_classes
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.result import result_of
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.strata import ContrastSpec
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import TestSet, query_strata
from cranfield.numbers import format_count
from cranfield.plugins import plugins
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    VOID_STAMP,
    Bullets,
    Cell,
    Document,
    QueryView,
    Section,
    Table,
    tidy_table,
    without_tones,
)
from cranfield.reporting.query_data import QueryData
from cranfield.reporting.sections.answers import answers, by_query
from cranfield.reporting.sections.brief import brief_of
from cranfield.reporting.sections.class_verdict import class_verdicts
from cranfield.reporting.sections.classes import classes
from cranfield.reporting.sections.collection import collection, warnings
from cranfield.reporting.sections.confusion import confusion
from cranfield.reporting.sections.labels import lettered, testset_label
from cranfield.reporting.sections.latency import latencies
from cranfield.reporting.sections.leaderboard import leaderboard
from cranfield.reporting.sections.many import against_baseline, measure_agreement, pairs, ranks
from cranfield.reporting.sections.measures import measures
from cranfield.reporting.sections.movement import bucket_of, movement, query_differences
from cranfield.reporting.sections.provenance import provenance
from cranfield.reporting.sections.strata import breakdown, find_contrasts, strata_contrasts
from cranfield.reporting.sections.subject import Preflight, Subject
from cranfield.reporting.sections.verdict import paired_tests, sensitivity_section, verdict_block
from cranfield.results import to_jsonable
from cranfield.words import and_list

MEASURED = ("value", "baseline", "candidate", "delta")
"""Columns of the tidy rows that are numbers."""
MOST_LISTED = 12
"""Systems that are listed under the title."""
EXPECTED_OF_PLUGINS = "a function of a Subject that returns a Section or None"

SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    class_verdicts,
    leaderboard,
    measures,
    query_differences,
    against_baseline,
    strata_contrasts,
    warnings,
    sensitivity_section,
    classes,
    pairs,
    ranks,
    movement,
    breakdown,
    measure_agreement,
    answers,
    paired_tests,
    latencies,
    confusion,
    collection,
    by_query,
    provenance,
)
"""Every section of our own, in the order of a report: where systems differ, what to doubt, then the details, which a page
shows closed. A builder returns None for a subject that it does not apply to."""


def comparison_document(
    result: Comparison | ManyComparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
    sensitivity: Sensitivity | None = None,
    sort: str = "mean",
    show_pairs: bool = False,
) -> Document:
    """The report of a comparison of two systems or many, verdict first.

    Args:
        result: what `compare` or `compare_many` found.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast; within each of many systems on its first measure.
        today: to say when the test set is overdue for new queries; None does not say.
        sensitivity: the verdicts of alternative analyses of two systems, where requested.
        sort: order of the leaderboard of many systems: mean, name, given, rank (mean rank) or a measure.
        show_pairs: list all pairs of many systems, however many.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    evaluations = result.evaluations
    if isinstance(result, Comparison):
        found = find_contrasts(result, contrasts)
        roles = ["baseline", "candidate"]
    else:
        found = find_contrasts(evaluations, contrasts)
        roles = ["baseline" if name == result.baseline else "" for name in result.names]
    systems = tuple(zip(lettered(evaluations), evaluations, strict=True))
    subject = Subject(systems, result, found, sensitivity, preflight, today, sort=sort, show_pairs=show_pairs)
    return _document(subject, title_of(result), roles)


def title_of(result: Comparison | ManyComparison) -> str:
    """The question that a comparison answers."""
    if isinstance(result, Comparison):
        return f"Is {result.candidate.name} better than {result.baseline.name}?"
    return f"Which of {len(result.evaluations)} systems is best?"


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


def _document(subject: Subject, title: str, roles: Sequence[str] | None = None) -> Document:
    """The report of a subject; systems with a role, or compared, are listed under the title."""
    labels = () if roles is None else zip(subject.labels, roles, strict=True)
    result = subject.result or subject.evaluations
    sections = (
        *sections_of(subject, SECTIONS[:-1]),
        *plugin_sections(subject),
        *sections_of(subject, SECTIONS[-1:]),
    )
    if subject.is_void:
        sections = tuple(replace(section, blocks=without_tones(section.blocks)) for section in sections)
    return Document(
        title=title,
        subtitle=(
            *_listed(list(labels)),
            test_set_line(subject.evaluations[0]),
        ),
        sections=sections,
        tidy=partial(tidy_comparison, subject.pair) if subject.pair else partial(tidy_evaluations, subject.evaluations),
        payload=lambda: to_jsonable(result_of(result, subject.contrasts, subject.sensitivity)),
        record=lambda: to_jsonable(result_of(result, subject.contrasts, subject.sensitivity, with_answers=True)),
        verdict=verdict_block(subject),
        stamps=((PILOT_STAMP,) if subject.pilot else ()) + ((VOID_STAMP,) if subject.is_void else ()),
        made_by=MADE_BY,
        queries=QueryView(lambda: QueryData(result).index(), lambda: QueryData(result).details()),
        brief=partial(brief_of, subject),
    )


def _listed(labels: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """A line for each system with its role; of many one line with their number and the baseline."""
    lines = [f"{label} ({role})" if role else label for label, role in labels]
    if len(labels) <= MOST_LISTED:
        return tuple(lines)
    baselines = [line for line, (_, role) in zip(lines, labels, strict=True) if role == "baseline"]
    return (", ".join([f"{format_count(len(labels))} systems", *baselines]),)


def sections_of(subject: Subject, builders: Sequence[Callable[[Subject], Section | None]]) -> tuple[Section, ...]:
    """The sections that apply to a subject, in order."""
    return tuple(section for build in builders if (section := build(subject)) is not None)


def test_set_line(evaluation: Evaluation) -> str:
    """Test set and convention: the line under the title."""
    testset = evaluation.testset
    review = f", {testset.meta.review}" if testset.meta.review else ""
    return f"test set {testset_label(testset)}{review}, convention {evaluation.ranking.convention.name}"


def plugin_sections(subject: Subject) -> Iterator[Section]:
    """The sections that installed packages add to a subject; last, a section that names the packages that failed.

    A report is the end of a long collection: a package that fails is reported and does not end it.
    """
    problems: list[Problem] = []
    for plugin in plugins("cranfield.report_sections"):
        try:
            build = plugin.load()
            section = build(subject) if callable(build) else build
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(plugin.problem(error))
            continue
        if isinstance(section, Section):
            yield section
        elif section is not None:
            problems.append(plugin.wrong_type(section, EXPECTED_OF_PLUGINS))
    if problems:
        yield Section("plugins", "Sections left out", (Bullets(tuple(map(str, problems)), "warning"),))


def tidy_evaluations(evaluations: Sequence[Evaluation]) -> Table:
    """`system, query, measure, value, outcome`, and the strata; an unscored value is empty. Pilots have a column that says so."""
    pilot = any(evaluation.pilot for evaluation in evaluations)
    rows: list[tuple[Cell, ...]] = []
    for evaluation in evaluations:
        stamp = ((PILOT_STAMP if evaluation.pilot else ""),) if pilot else ()
        names = [measure.canonical for measure in evaluation.measures]
        columns = [
            [value if scored else None for value, scored in zip(values.tolist(), known.tolist(), strict=True)]
            for values, known in ((evaluation.values[m], evaluation.scored[m]) for m in evaluation.measures)
        ]
        for i, (query_id, outcome) in enumerate(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True)):
            for name, column in zip(names, columns, strict=True):
                rows.append((evaluation.name, query_id, name, column[i], outcome.value, *stamp))
        rows += [(*row, *stamp) for row in _class_rows(evaluation)]
    header = ("system", "query", "measure", "value", "outcome", *(("stamp",) if pilot else ()))
    return _with_strata(header, rows, evaluations[0].testset)


def _with_strata(names: Sequence[str], rows: Sequence[tuple[Cell, ...]], testset: TestSet) -> Table:
    """The rows with a column for each key of strata, `stratum.class` for the class of a query."""
    strata = {query.id: query_strata(query) for query in testset.queries}
    keys = list(dict.fromkeys(key for of_query in strata.values() for key in of_query))
    place = list(names).index("query")
    more = [(*row, *(strata[str(row[place])].get(key, "") for key in keys)) for row in rows]
    return tidy_table((*names, *(f"stratum.{key}" for key in keys)), more, numbers=MEASURED)


def _class_rows(evaluation: Evaluation) -> Iterator[tuple[Cell, ...]]:
    """A row for each query and measure of its class, for measures that were not evaluated on all queries."""
    outcomes = dict(zip(evaluation.query_ids, evaluation.ranking.outcomes, strict=True))
    for result in by_class(evaluation):
        for about in result.measures:
            if about.measure not in evaluation.values:
                for query_id in result.query_ids:
                    value = about.values.get(query_id)
                    yield (evaluation.name, query_id, about.measure.canonical, value, outcomes[query_id].value)


def tidy_comparison(comparison: Comparison) -> Table:
    """A row for each query and measure: both values, `delta`, the bucket on the primary measure, both outcomes, the strata."""
    buckets = bucket_of(comparison)
    stamp = (PILOT_STAMP,) if comparison.pilot else ()
    outcomes = [
        dict(zip(side.query_ids, (outcome.value for outcome in side.ranking.outcomes), strict=True))
        for side in comparison.evaluations
    ]
    rows: list[tuple[Cell, ...]] = []
    for measure, about in comparison.measures.items():
        for query_id, delta in about.differences.items():
            before, after = (side.value(measure, query_id) for side in comparison.evaluations)
            ends = (side[query_id] for side in outcomes)
            rows.append((query_id, measure.canonical, before, after, delta, buckets.get(query_id, ""), *ends, *stamp))
    for of_class in compare_classes(comparison):
        for difference in of_class.measures:
            if difference.measure in comparison.measures:
                continue
            for query_id, delta in difference.differences.items():
                before, after = (side[query_id] for side in difference.values)
                ends = (side[query_id] for side in outcomes)
                name, bucket = str(difference.measure), buckets.get(query_id, "")
                rows.append((query_id, name, before, after, delta, bucket, *ends, *stamp))
    names = ("query", "measure", "baseline", "candidate", "delta", "bucket", "baseline_outcome", "candidate_outcome")
    return _with_strata((*names, *(("stamp",) if stamp else ())), rows, comparison.baseline.testset)
