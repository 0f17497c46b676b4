"""A table for each class of question: its measures, its test, and its definition of a correct answer."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.absence import effect_text, in_brackets
from cranfield.evaluation.class_values import WITHOUT
from cranfield.evaluation.classes import (
    ClassComparison,
    ClassResult,
    FormWins,
    smallest_n,
)
from cranfield.evaluation.result import ComparisonResult, SystemResult
from cranfield.evaluation.values import Summary
from cranfield.measures import Measure
from cranfield.model import QueryClass
from cranfield.model.query import NEGATIVE
from cranfield.numbers import format_count, format_level, format_p
from cranfield.reporting.document import Block, Bullets, Cell, Column, Paragraph, Section, Table, TonedCell
from cranfield.reporting.sections.labels import interval_tone, lettered
from cranfield.reporting.sections.subject import Subject
from cranfield.words import capitalised, first_of, n_of

TITLE = "By class of question"
OWN_TERMS = "Each class has its own measures, and its own definition of a correct answer"
UNCLASSED = "queries without a class"
NO_MEAN = f"{OWN_TERMS}: no mean is taken over classes."


def classes(subject: Subject) -> Section | None:
    """A table for each class of question; None where no query has a class."""
    if subject.many is not None:
        return None
    return _classes_compared(subject.pair) if subject.pair is not None else _classes_measured(subject.record.systems)


def has_classes(system: SystemResult) -> bool:
    """Whether the queries have several query classes, so that a mean over all of them is of different things."""
    names = {result.query_class.name for result in system.classes} - {NEGATIVE}
    return len(names) + (system.unclassed is not None) > 1


def class_means(systems: Sequence[SystemResult]) -> Table:
    """Every class with its measures, and queries without a class with the first: the mean of each system, and of one its interval."""
    found = [_summaries_by_class(system) for system in systems]
    alone = len(systems) == 1
    level = format_level(1 - next(each.ci_level for of_system in found for each in of_system.values()))
    columns = (
        *(Column("class"), Column("measure")),
        *(Column("mean" if alone else each.name, "value") for each in systems),
        *((Column(f"{level} CI", "interval"),) if alone else ()),
        Column("n", "count"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, measure in dict.fromkeys(key for of_system in found for key in of_system):
        known = [of_system.get((name, measure)) for of_system in found]
        means = (None if each is None else each.mean for each in known)
        intervals = [(each.ci_low, each.ci_high) for each in known if each is not None]
        n = max(each.n for each in known if each is not None)
        rows.append((name or UNCLASSED, str(measure), *means, *(intervals if alone else ()), n))
    return Table(columns, rows, "By class")


def _summaries_by_class(system: SystemResult) -> dict[tuple[str, Measure], Summary]:
    found = {
        (result.query_class.name, about.measure): about.summary
        for result in system.classes
        for about in result.measures
    }
    if system.unclassed is not None:
        found[WITHOUT, next(iter(system.measures))] = system.unclassed
    return found


def _classes_measured(results: Sequence[SystemResult]) -> Section | None:
    """Systems side by side."""
    systems = [(system.name, {result.query_class.name: result for result in system.classes}) for system in results]
    classes = {name: result.query_class for _, found in systems for name, result in found.items()}
    if not classes:
        return None
    blocks: list[Block] = [Paragraph(NO_MEAN if has_classes(results[0]) else f"{OWN_TERMS}.")]
    for name, query_class in classes.items():
        found = [(system, results[name]) for system, results in systems if name in results]
        blocks += _measured(query_class, found)
    return Section("classes", TITLE, tuple(blocks))


def _classes_compared(comparison: ComparisonResult) -> Section | None:
    """B against A, each class with its own test."""
    compared = comparison.classes
    if not compared:
        return None
    needed = smallest_n(comparison.alpha)
    n_tested = sum(each.test is not None and each.test.p_adjusted is not None for each in compared)
    many = f" p Holm is adjusted for the {n_tested} classes of {needed} queries or more." if n_tested > 1 else ""
    blocks: list[Block] = [Paragraph(f"{OWN_TERMS}. Each class is tested on its first measure.{many}")]
    for of_class in compared:
        blocks += _compared(of_class, comparison)
    key_figure = f"{n_of(len(compared), 'classes', format_count)}, each on its own measures"
    return Section("classes", TITLE, tuple(blocks), key_figure)


def _measured(query_class: QueryClass, systems: Sequence[tuple[str, ClassResult]]) -> list[Block]:
    several = (Column("system"),) if len(systems) > 1 else ()
    level = format_level(1 - systems[0][1].measures[0].summary.ci_level)
    columns = (
        Column("measure"),
        *several,
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        Column("n", "count"),
        Column("failed", "count"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place in range(len(query_class.measures)):
        for name, result in systems:
            about = result.measures[place].summary
            cells: list[Cell] = [str(result.measures[place].measure), *((name,) if several else ()), about.mean]
            failed: Cell = TonedCell(len(result.failed), "bad") if result.failed else 0
            rows.append((*cells, (about.ci_low, about.ci_high), about.n, failed))
    blocks: list[Block] = [Table(columns, rows, _caption(query_class, systems[0][1]), shown=None)]
    notes: list[str] = []
    for name, result in systems:
        lead = f"{name}: " if several else ""
        if result.forms is not None:
            notes.append(lead + _forms(result.forms))
        notes += [lead + sentence for sentence in _unscored(result)]
    if notes:
        blocks.append(Bullets(tuple(notes)))
    return blocks


def _compared(compared: ClassComparison, comparison: ComparisonResult) -> list[Block]:
    level = format_level(comparison.alpha)
    columns = (
        Column("measure"),
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column(f"{level} CI", "delta interval"),
        Column("n", "count"),
        Column("differ", "count"),
        Column("test"),
        Column("p", "p"),
        Column("p Holm", "p"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place, about in enumerate(compared.measures):
        test = compared.test if place == 0 else None
        tone = interval_tone(about, about.measure)
        rows.append(
            (
                str(about.measure),
                about.baseline.mean,
                about.candidate.mean,
                TonedCell(about.delta, tone),
                (about.ci_low, about.ci_high),
                about.n,
                about.n_nonzero,
                compared.query_class.test if test is not None else "",
                test.p_two_sided if test is not None else "",
                test.p_adjusted if test is not None else "",
            )
        )
    blocks: list[Block] = [Table(columns, rows, _caption(compared.query_class, compared.sides[0]), shown=None)]
    notes = [f"{capitalised(compared.too_few)}."] if compared.too_few else []
    for name, side in zip(lettered(comparison.names), compared.sides, strict=True):
        if side.forms is not None:
            notes.append(f"{name}: {_forms(side.forms, with_note=not compared.too_few)}")
        if side.failed:
            effect = effect_text(
                (m.measure, [m.values.get(query_id) for query_id in side.failed]) for m in side.measures
            )
            notes.append(f"{name}: {len(side.failed)} failed{in_brackets(effect)}: {first_of(side.failed)}.")
        notes += [f"{name}: {sentence}" for sentence in _unscored(side)]
    if notes:
        blocks.append(Bullets(tuple(notes)))
    return blocks


def _caption(query_class: QueryClass, result: ClassResult) -> str:
    n = len(result.query_ids)
    queries = n_of(n, "queries", format_count)
    return f"{query_class.letter}, {query_class.title}, {queries}. {query_class.sentence.rstrip('.')}"


def _forms(forms: FormWins, *, with_note: bool = True) -> str:
    """Wins and losses of the modern form; and a note where they are too few."""
    notes = (
        f"modern leads in {forms.wins}, legacy in {forms.losses}, neither was found in {forms.neither} "
        f"(sign test, p {format_p(forms.test.p_two_sided)})."
    )
    return f"{notes} {capitalised(forms.too_few)}." if forms.too_few and with_note else notes


def _unscored(result: ClassResult) -> list[str]:
    """Why some queries of the class have no value, a sentence for each measure and reason."""
    sentences = []
    for measure in result.measures:
        reasons: dict[str, list[str]] = {}
        for query_id, why in measure.unscored.items():
            reasons.setdefault(why, []).append(query_id)
        sentences += [
            f"{measure.measure} has no value for {len(queries)} of {len(result.query_ids)} ({why}): {first_of(queries)}."
            for why, queries in reasons.items()
        ]
    return sentences
