"""Evaluations, or a comparison of two or many, in; a Document out. `SECTIONS` says which sections a report has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from cranfield.errors import Problem
from cranfield.evaluation.evaluate import ContrastSpec
from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, QueryRecord
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.values import Comparison, Evaluation
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
from cranfield.reporting.sections.brief import brief_of
from cranfield.reporting.sections.collection import answers, by_query, collection, confusion, latencies, warnings
from cranfield.reporting.sections.many import against_baseline, leaderboard, measure_agreement, pairs, ranks
from cranfield.reporting.sections.measures import breakdown, classes, find_contrasts, measures, strata_contrasts
from cranfield.reporting.sections.subject import Preflight, Subject, provenance, testset_label
from cranfield.reporting.sections.verdict import (
    class_verdicts,
    movement,
    paired_tests,
    query_differences,
    sensitivity_section,
    verdict_block,
)
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
    found = find_contrasts(result if isinstance(result, Comparison) else result.evaluations, contrasts)
    return subject_document(
        Subject.of(*(result, found, sensitivity), preflight=preflight, today=today, sort=sort, show_pairs=show_pairs)
    )


def title_of(subject: Subject) -> str:
    """The question that a comparison answers, or the systems that stand side by side."""
    if subject.pair is not None:
        return f"Is {subject.pair.candidate} better than {subject.pair.baseline}?"
    if subject.many is not None:
        return f"Which of {len(subject.systems)} systems is best?"
    return and_list(subject.record.names)


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
    found = find_contrasts(evaluations, contrasts)
    return subject_document(Subject.of(evaluations, found, preflight=preflight, today=today, by_query=by_query))


def subject_document(subject: Subject) -> Document:
    """The report of a subject; systems that are compared are listed under the title, with their roles."""
    compared, record = subject.compared, subject.record
    roles = {} if compared is None else {compared.baseline: "baseline"}
    if subject.pair is not None:
        roles = {subject.pair.baseline: "baseline", subject.pair.candidate: "candidate"}
    listed = [(label, roles.get(system.name, "")) for label, system in subject.systems] if compared else []
    sections = (
        *sections_of(subject, SECTIONS[:-1]),
        *plugin_sections(subject),
        *sections_of(subject, SECTIONS[-1:]),
    )
    if subject.is_void:
        sections = tuple(replace(section, blocks=without_tones(section.blocks)) for section in sections)
    return Document(
        title=title_of(subject),
        subtitle=(*_listed(listed), test_set_line(record)),
        sections=sections,
        tidy=partial(tidy_comparison, subject.pair) if subject.pair else partial(tidy_evaluations, record),
        payload=lambda: to_jsonable(replace(record, queries=None)),
        record=lambda: to_jsonable(record),
        calls=lambda: subject.calls if subject.calls.were_made else None,
        verdict=verdict_block(subject),
        stamps=((PILOT_STAMP,) if subject.pilot else ()) + ((VOID_STAMP,) if subject.is_void else ()),
        made_by=MADE_BY,
        queries=QueryView(lambda: QueryData(subject).index(), lambda: QueryData(subject).details()),
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


def test_set_line(record: EvaluationResult) -> str:
    """Test set and convention: the line under the title."""
    review = f", {record.testset.review}" if record.testset.review else ""
    return f"test set {testset_label(record.testset)}{review}, convention {record.convention}"


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


def tidy_evaluations(record: EvaluationResult) -> Table:
    """`system, query, measure, value, outcome`, and the strata; an unscored value is empty. Pilots have a column that says so."""
    pilot, queries = any(system.pilot for system in record.systems), record.queries or {}
    rows: list[tuple[Cell, ...]] = []
    for place, system in enumerate(record.systems):
        stamp = ((PILOT_STAMP if system.pilot else ""),) if pilot else ()
        outcomes = {query_id: queries[query_id].sides[place].outcome for query_id in system.queries}
        for query_id, values in system.queries.items():
            for measure, value in values.items():
                rows.append((system.name, query_id, measure.canonical, value, outcomes[query_id], *stamp))
        for of_class in system.classes:
            for about in of_class.measures:
                for query_id in of_class.query_ids if about.measure not in system.measures else ():
                    value = about.values.get(query_id)
                    rows.append((system.name, query_id, about.measure.canonical, value, outcomes[query_id], *stamp))
    header = ("system", "query", "measure", "value", "outcome", *(("stamp",) if pilot else ()))
    return _with_strata(header, rows, queries)


def _with_strata(names: Sequence[str], rows: Sequence[tuple[Cell, ...]], queries: Mapping[str, QueryRecord]) -> Table:
    """The rows with a column for each key of strata, `stratum.class` for the class of a query."""
    keys = list(dict.fromkeys(key for query in queries.values() for key in query.strata))
    place = list(names).index("query")
    more = [(*row, *(queries[str(row[place])].strata.get(key, "") for key in keys)) for row in rows]
    return tidy_table((*names, *(f"stratum.{key}" for key in keys)), more, numbers=MEASURED)


def tidy_comparison(record: ComparisonResult) -> Table:
    """A row for each query and measure: both values, `delta`, the bucket on the primary measure, both outcomes, the strata."""
    queries, (first, second) = record.queries or {}, record.systems
    stamp = (PILOT_STAMP,) if first.pilot or second.pilot else ()
    rows: list[tuple[Cell, ...]] = []

    def add(query_id: str, name: str, values: Iterable[float | None], delta: float) -> None:
        query = queries[query_id]
        outcomes = (side.outcome for side in query.sides)
        rows.append((query_id, name, *values, delta, query.bucket, *outcomes, *stamp))

    for measure, about in record.comparisons.items():
        for query_id, delta in about.differences.items():
            values = [system.queries[query_id][measure] for system in record.systems]
            add(query_id, measure.canonical, values, delta)
    for of_class in record.classes:
        for difference in of_class.measures:
            for query_id, delta in (
                difference.differences.items() if difference.measure not in record.comparisons else ()
            ):
                add(query_id, str(difference.measure), [side[query_id] for side in difference.values], delta)
    names = ("query", "measure", "baseline", "candidate", "delta", "bucket", "baseline_outcome", "candidate_outcome")
    return _with_strata((*names, *(("stamp",) if stamp else ())), rows, queries)
