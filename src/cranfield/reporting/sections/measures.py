"""Sections on measures: means with intervals, strata, classes.

The primary measure within each stratum is a table for each key, and a picture where systems are compared. A contrast of two strata
has a warning where one of them cannot show an improvement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_value,
)
from cranfield.base.words import and_list, capitalised, count_noun, join_first
from cranfield.evaluation.absence import effect_text, in_brackets
from cranfield.evaluation.classes import ClassComparison, ClassDifference, ClassResult, FormWins, smallest_n
from cranfield.evaluation.evaluate import ContrastSpec, StrataContrast, contrast_gain, contrast_strata
from cranfield.evaluation.many import StratumRow
from cranfield.evaluation.result import ComparisonResult, ManyResult, SystemResult
from cranfield.evaluation.values import WITHOUT, Comparison, Evaluation, MeasureComparison, StratumComparison, Summary
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model import QueryClass
from cranfield.model.query import NEGATIVE
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.charts.systems import HeatRow, heat_map
from cranfield.reporting.document import (
    MARKS,
    Block,
    Bullets,
    Chart,
    Details,
    Paragraph,
    Section,
    Swatch,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.subject import Subject, best_places, interval_tone, lettered, letters, mean_cells
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, interval
from cranfield.stats.table import TESTS

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
    keys = list(dict.fromkeys(key for of_system in found for key in of_system))
    columns: Columns[tuple[str, Measure]] = (
        Col("class", lambda key: key[0] or UNCLASSED),
        Col("measure", lambda key: str(key[1])),
        Cols(
            range(len(systems)),
            lambda key, place: found[place][key].mean if key in found[place] else None,
            "value",
            lambda place: "mean" if alone else systems[place].name,
        ),
        Col(f"{level} CI", lambda key: interval(found[0][key]), "interval", when=alone),
        Col("n", lambda key: max(of_system[key].n for of_system in found if key in of_system), "count"),
    )
    return TableSpec("By class", keys, columns).table(shown=20)


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
    key_figure = f"{count_noun(len(compared), 'classes', format_count)}, each on its own measures"
    return Section("classes", TITLE, tuple(blocks), key_figure)


def _measured(query_class: QueryClass, systems: Sequence[tuple[str, ClassResult]]) -> list[Block]:
    level, several = format_level(1 - systems[0][1].measures[0].summary.ci_level), len(systems) > 1
    rows = [
        (name, result, result.measures[place]) for place in range(len(query_class.measures)) for name, result in systems
    ]
    table = TableSpec(
        _caption(query_class, systems[0][1]),
        rows,
        (
            Col("measure", lambda row: str(row[2].measure)),
            Col("system", lambda row: row[0], when=several),
            Col("mean", lambda row: row[2].summary.mean, "value"),
            Col(f"{level} CI", lambda row: interval(row[2].summary), "interval"),
            Col("n", lambda row: row[2].summary.n, "count"),
            Col("failed", lambda row: TonedCell(n, "bad") if (n := len(row[1].failed)) else 0, "count"),
        ),
    ).table()
    notes: list[str] = []
    for name, result in systems:
        lead = f"{name}: " if several else ""
        if result.forms is not None:
            notes.append(lead + _forms(result.forms))
        notes += [lead + sentence for sentence in _unscored(result)]
    return [table, *([Bullets(tuple(notes))] if notes else [])]


def _compared(compared: ClassComparison, comparison: ComparisonResult) -> list[Block]:
    first, test = compared.measures[0] if compared.measures else None, compared.test
    columns: Columns[ClassDifference] = (
        Col("measure", lambda row: str(row.measure)),
        Col("A", lambda row: row.baseline.mean, "value"),
        Col("B", lambda row: row.candidate.mean, "value"),
        Col("difference", lambda row: TonedCell(row.delta, interval_tone(row, row.measure)), "delta"),
        Col(f"{format_level(comparison.alpha)} CI", interval, "delta interval"),
        Col("n", lambda row: row.n, "count"),
        Col("differ", lambda row: row.n_nonzero, "count"),
        Col("test", lambda row: "" if test is None or row is not first else compared.query_class.test),
        Col("p", lambda row: "" if test is None or row is not first else test.p_two_sided, "p"),
        Col("p Holm", lambda row: "" if test is None or row is not first else test.p_adjusted, "p"),
    )
    table = TableSpec(_caption(compared.query_class, compared.sides[0]), compared.measures, columns).table()
    notes = [f"{capitalised(compared.too_few)}."] if compared.too_few else []
    for name, side in zip(lettered(comparison.names), compared.sides, strict=True):
        if side.forms is not None:
            notes.append(f"{name}: {_forms(side.forms, with_note=not compared.too_few)}")
        if side.failed:
            effect = effect_text(
                (m.measure, [m.values.get(query_id) for query_id in side.failed]) for m in side.measures
            )
            notes.append(f"{name}: {len(side.failed)} failed{in_brackets(effect)}: {join_first(side.failed)}.")
        notes += [f"{name}: {sentence}" for sentence in _unscored(side)]
    return [table, *([Bullets(tuple(notes))] if notes else [])]


def _caption(query_class: QueryClass, result: ClassResult) -> str:
    n = len(result.query_ids)
    queries = count_noun(n, "queries", format_count)
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
            f"{measure.measure} has no value for {len(queries)} of {len(result.query_ids)} ({why}): {join_first(queries)}."
            for why, queries in reasons.items()
        ]
    return sentences


CLAIMS: tuple[tuple[Swatch, str], ...] = (("good", "better"), ("bad", "worse"))
HOW_TO_READ = (
    (
        "Difference: mean of B minus A, paired by query; with the tests wilcoxon and sign, whose CI is not of the mean, "
        "their own estimate follows it."
    ),
    "p: two-sided, of the declared test. p Holm: the same, adjusted for the number of other measures looked at.",
    "d_z: the mean difference over the standard deviation of the differences. 0.2 is small, 0.5 medium, 0.8 large.",
    "MDE: minimum detectable effect, the true difference found with 80 % power at this n and spread.",
)


def measures(subject: Subject) -> Section | None:
    """Every measure of every system, of a pair with differences.

    None for many systems, which have a leaderboard, and of systems side by side where classes have measures of their own.
    """
    if subject.pair is not None:
        return compared_measures(subject.pair)
    if subject.many is not None or has_classes(subject.record.systems[0]):
        return None
    return _side_by_side(subject.record.systems, subject.measures)


def compared_measures(comparison: ComparisonResult) -> Section:
    """Both sides of a pair: difference, interval, p-values, effect size and minimum detectable effect."""
    spec = TESTS[comparison.test]
    caption = (
        f"B against A. * primary measure, decided by the {comparison.test} test. "
        f"CI of the {spec.estimates} ({spec.interval})" + why_mean_differs(comparison.test)
    )
    sides = [
        (str(about.measure), label, summary)
        for about in comparison.comparisons.values()
        for label, summary in zip(lettered(comparison.names), (about.baseline, about.candidate), strict=True)
    ]
    of_sides = "Mean, interval of the mean, median and spread over the queries both sides have a value for"
    each_side = summaries("measure", sides, of_sides, comparison.alpha, several=True).table(shown=20)
    blocks: tuple[Block, ...] = (
        *_interval_figure(comparison),
        differences(comparison, tuple(comparison.comparisons.values()), caption).table(),
        Details("Each system separately", (each_side,), in_text=True),
        Details("How to read this table", (Bullets((*HOW_TO_READ, *_sentences(comparison.comparisons))),)),
    )
    return Section("measures", "Measures", blocks)


def differences(
    comparison: ComparisonResult, rows: Sequence[MeasureComparison], caption: str
) -> TableSpec[MeasureComparison]:
    """Measures of a pair: the mean difference, and after it the estimate that the interval is about, where that is another."""
    spec = TESTS[comparison.test]

    def name(about: MeasureComparison) -> str:
        return f"* {about.measure}" if about.measure == comparison.primary else str(about.measure)

    columns: Columns[MeasureComparison] = (
        Col("measure", name),
        Col("A", lambda row: row.baseline.mean, "value"),
        Col("B", lambda row: row.candidate.mean, "value"),
        Col("mean diff.", lambda row: row.delta, "delta", when=not spec.is_of_mean),
        Col(
            "difference" if spec.is_of_mean else spec.estimate,
            lambda row: TonedCell(row.delta if spec.is_of_mean else row.estimate, interval_tone(row, row.measure)),
            "delta",
        ),
        Col(f"{format_level(comparison.alpha)} CI", interval, "delta interval"),
        Col("p", lambda row: test.p_two_sided if (test := row.tests.get(comparison.test)) else None, "p"),
        Col("p Holm", lambda row: test.p_adjusted if (test := row.tests.get(comparison.test)) else None, "p"),
        Col("d_z", lambda row: row.effect_size, "effect"),
        Col("MDE", lambda row: row.mde, "value"),
        Col("n", lambda row: row.n, "count"),
    )
    return TableSpec(caption, rows, columns)


def why_mean_differs(test: str) -> str:
    """Why a mean difference can lie outside the interval of a test; empty where the interval is of the mean."""
    if TESTS[test].is_of_mean:
        return ""
    return (
        ". The mean difference can lie outside it: the mean includes queries that do not differ, and is sensitive to large "
        "differences"
    )


def _interval_figure(comparison: ComparisonResult) -> tuple[Chart, ...]:
    rows = [
        about
        for about in comparison.comparisons.values()
        if about.delta is not None and not CATALOGUE[about.measure.name].diagnostic
    ]
    if not rows:
        return ()
    intervals = "; ".join(
        f"{about.measure} {format_delta(about.shown)} ({format_delta_interval(interval(about))})" for about in rows
    )
    spec, level = TESTS[comparison.test], format_level(comparison.alpha)
    is_void = any(finding.is_void for finding in comparison.evidence)
    marks = [
        Whisker(
            str(about.measure), about.shown, *interval(about), "" if is_void else interval_tone(about, about.measure)
        )
        for about in rows
    ]
    table = differences(comparison, rows, "Differences and their CIs" + why_mean_differs(comparison.test))
    figure = interval_figure(
        "intervals",
        f"{level} CIs of the {spec.estimates}" + why_mean_differs(comparison.test),
        marks,
        table.without("A", "B", "p", "p Holm", "d_z", "MDE", "n").table(shown=20),
        alt=f"Differences with CIs: {intervals}.",
        axis=f"{'difference' if spec.is_of_mean else spec.estimate}, B minus A",
        legend=(*CLAIMS, ("same", "the CI contains zero"), *margin_legend(comparison.margin)),
        margin=comparison.margin,
    )
    return (figure,)


def _side_by_side(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> Section:
    """One system's measures as rows, several systems as rows over measures."""
    if not measures:
        return Section("measures", "Measures", (Bullets(("No measure has a value for any query.",)),))
    alpha = 1 - next(summary.ci_level for each in systems for summary in each.measures.values())
    found = [
        (measure, system.name, system.measures[measure])
        for measure in measures
        for system in systems
        if measure in system.measures
    ]
    several, weighted = len(systems) > 1, any(summary.weighted_mean is not None for _, _, summary in found)
    means = [
        (str(measure) if summary.aggregate == "mean" else f"{measure} ({summary.aggregate})", name, summary)
        for measure, name, summary in found
    ]
    others: Columns[tuple[Measure, str, Summary]] = (
        Col("measure", lambda row: str(row[0])),
        Col("system", lambda row: row[1], when=several),
        Col("geometric mean", lambda row: row[2].geometric_mean, "value"),
        Col("sum", lambda row: row[2].total, "value"),
        Col("weighted mean", lambda row: row[2].weighted_mean, "value", when=weighted),
    )
    note = "Values below 0.00001 count as 0.00001 in the geometric mean"
    note += "; weights are query frequencies" if weighted else ""
    blocks = (
        *((_matrix(systems, measures),) if several else ()),
        summaries("measure", means, f"Means, {format_level(alpha)} t intervals", alpha, several=several).table(),
        Details("Other means and sums", (TableSpec(note, found, others).table(shown=20),)),
        Details("Definitions of the measures", (Bullets(_sentences(measures)),)),
    )
    return Section("measures", "Measures", blocks)


def summaries(
    heading: str, rows: Sequence[tuple[str, str, Summary]], caption: str, alpha: float, *, several: bool
) -> TableSpec[tuple[str, str, Summary]]:
    """Means of measures or strata: what each is of, the system where there are several, and the summary."""
    columns: Columns[tuple[str, str, Summary]] = (
        Col(heading, lambda row: row[0]),
        Col("system", lambda row: row[1], when=several),
        Col("mean", lambda row: row[2].mean, "value"),
        Col(f"{format_level(alpha)} CI", lambda row: interval(row[2]), "interval"),
        Col("median", lambda row: row[2].median, "value"),
        Col("std. dev.", lambda row: row[2].std, "value"),
        Col("n", lambda row: row[2].n, "count"),
    )
    return TableSpec(caption, rows, columns)


def _matrix(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> Table:
    """Systems by measures; the best mean of each measure is marked. n counts queries with a value of any measure."""
    cells = means_of(systems, measures)
    columns: Columns[tuple[int, SystemResult]] = (
        Col("system", lambda row: row[1].name),
        Cols(measures, lambda row, measure: cells[measure][row[0]], "value"),
        Col("n", lambda row: max((summary.n for summary in row[1].measures.values()), default=0), "count"),
        Col("failed", lambda row: row[1].n_failed, "count"),
        Col("judged", lambda row: row[1].judged.mean, "percent"),
    )
    return TableSpec("Means of every system", list(enumerate(systems)), columns).table(marks=MARKS)


def means_of(systems: Sequence[SystemResult], measures: Sequence[Measure]) -> dict[Measure, tuple[TonedCell, ...]]:
    """The mean of every system on each measure; the best is marked."""
    found = {measure: [each.measures.get(measure) for each in systems] for measure in measures}
    return {
        measure: mean_cells([None if each is None else each.mean for each in row], measure)
        for measure, row in found.items()
    }


def _sentences(measures: Iterable[Measure]) -> tuple[str, ...]:
    names = dict.fromkeys(measure.name for measure in measures)
    return tuple(f"{CATALOGUE[name].spelling}, {CATALOGUE[name].title}: {CATALOGUE[name].sentence}" for name in names)


def interval_figure(
    name: str,
    title: str,
    marks: Sequence[Whisker],
    table: Table,
    *,
    alt: str,
    axis: str,
    legend: Sequence[tuple[Swatch, str]],
    margin: float | None = None,
) -> Chart:
    """A row for each difference.

    Args:
        name: of the figure.
        title: over it.
        marks: a dot and an interval each.
        table: the same numbers.
        alt: what the figure says, for readers who cannot see it.
        axis: what is subtracted from what.
        legend: what the colours mean.
        margin: of equivalence, drawn as a band; None draws none.
    """
    spec, narrow = (whiskers(marks, axis, screen, margin) for screen in SCREENS)
    return Chart(name, title, alt, spec, narrow, table, tuple(legend), table_follows=True)


def margin_legend(margin: float | None) -> tuple[tuple[Swatch, str], ...]:
    """The band of a margin of equivalence; nothing without a margin."""
    return () if margin is None else (("band", f"margin of ±{margin:g}"),)


MAX_ROWS_DRAWN = 30
OTHERS = "Other measures by stratum"
MAX_COLUMNS = 12
"""Systems that have a column each; of more each has a row."""
CONTRASTS = "The queries of two strata are not paired: Welch's interval, and p of a permutation test over labellings."

R = TypeVar("R", StratumComparison, StratumRow)


def breakdown(subject: Subject) -> Section | None:
    """The primary measure by stratum; None where the test set knows no strata."""
    if (pair := subject.pair) is not None:
        note = (
            f"{pair.primary} within each group. t intervals of the difference, not adjusted for multiple "
            "comparisons: exploratory, not part of the verdict."
        )
        decided = _decided(pair)
        strata = [row.measures[pair.primary] for row in pair.by_stratum if pair.primary in row.measures]
        strata = [row for row in strata if row.key not in decided]
        tables = _folded_measures(pair, decided)
        section = _section(note, strata, partial(_pair_blocks, pair))
        if section is None and tables:
            section = Section("breakdown", "Breakdown", (Paragraph(note),), f"by {and_list(sorted(decided))}")
        return _with_details(section, tables)
    if (many := subject.many) is not None:
        note = (
            f"{many.primary} of every system within each group of queries. Not tested: exploratory, not part of the "
            "verdict."
        )
        return _section(note, many.strata, partial(_many_blocks, many, subject.labels))
    return _means_by_stratum(subject.record.systems)


def _decided(pair: ComparisonResult) -> set[str]:
    """Keys that part the queries as the classes of the verdict do: these have their table, on measures of their own."""
    if pair.verdict_by_class is None:
        return set()
    class_of = {query_id: row.label for row in pair.verdict_by_class.rows for query_id in row.query_ids}
    parts: dict[str, set[tuple[str, str]]] = {}
    for query_id, query in (pair.queries or {}).items():
        for key, value in query.strata.items() if query_id in class_of else ():
            parts.setdefault(key, set()).add((class_of[query_id], value))
    return {
        key
        for key, found in parts.items()
        if len(found) == len({label for label, _ in found}) == len({value for _, value in found})
    }


def _with_details(section: Section | None, tables: Sequence[Table]) -> Section | None:
    """The section with the other measures folded at its end."""
    if section is None or not tables:
        return section
    return replace(section, blocks=(*section.blocks, Details(OTHERS, tuple(tables), in_text=True)))


def _folded_measures(pair: ComparisonResult, decided: set[str]) -> list[Table]:
    """A table for each measure, with a row for each stratum; of the primary one those that have no table above."""
    tables = []
    for measure in dict.fromkeys(measure for row in pair.by_stratum for measure in row.measures):
        strata = [row.measures[measure] for row in pair.by_stratum if measure in row.measures]
        strata = [row for row in strata if measure != pair.primary or row.key in decided]
        if strata:
            tables.append(_strata_compared(pair, measure, strata, "stratum").table())
    return tables


def _strata_compared(
    pair: ComparisonResult, measure: Measure, strata: Sequence[StratumComparison], heading: str
) -> TableSpec[StratumComparison]:
    """Both sides of each stratum, with its key where they are of several keys."""
    columns: Columns[StratumComparison] = (
        Col(heading, lambda row: f"{row.key}: {row.value}" if heading == "stratum" else row.value),
        Col("n", lambda row: row.n, "count"),
        Col("A", lambda row: row.baseline_mean, "value"),
        Col("B", lambda row: row.candidate_mean, "value"),
        Col("difference", lambda row: TonedCell(row.delta, interval_tone(row, measure)), "delta"),
        Col(f"{format_level(pair.alpha)} CI", interval, "delta interval"),
    )
    return TableSpec(f"{measure} by {heading}", strata, columns)


def _section(
    note: str, strata: Sequence[R], blocks_of: Callable[[int, str, Sequence[R]], Sequence[Block]]
) -> Section | None:
    keys = dict.fromkeys(row.key for row in strata)
    if not keys:
        return None
    blocks: list[Block] = [Paragraph(note)]
    for place, key in enumerate(keys, start=1):
        blocks += blocks_of(place, key, [row for row in strata if row.key == key])
    return Section("breakdown", "Breakdown", tuple(blocks), f"by {and_list(list(keys))}")


def _pair_blocks(pair: ComparisonResult, place: int, key: str, strata: Sequence[StratumComparison]) -> Sequence[Block]:
    """The differences of a stratum key as a table, behind a figure where they are few enough to be drawn."""
    table = _strata_compared(pair, pair.primary, strata, key).table(shown=20)
    drawn = [stratum for stratum in strata if stratum.delta is not None]
    if not 2 <= len(drawn) <= MAX_ROWS_DRAWN:
        return (table,)
    marks = [
        Whisker(f"{each.value} ({each.n})", each.delta, *interval(each), interval_tone(each, pair.primary))
        for each in drawn
    ]
    differences = "; ".join(f"{stratum.value} {format_delta(stratum.delta)}, n = {stratum.n}" for stratum in drawn)
    figure = interval_figure(
        f"stratum-{place}",
        f"Difference by {key}, with {format_level(pair.alpha)} CIs",
        marks,
        table,
        alt=f"Differences with CIs: {differences}.",
        axis=f"{pair.primary}, B minus A",
        legend=(*CLAIMS, ("same", "the CI contains zero")),
        margin=pair.margin,
    )
    return figure, table


def _many_blocks(
    many: ManyResult, labels: Sequence[str], place: int, key: str, strata: Sequence[StratumRow]
) -> Sequence[Block]:
    """The means of a stratum key as a table, behind a heat map where they are few enough to be drawn."""
    if len(labels) > MAX_COLUMNS:
        return (Details(f"By {key}", (_systems_by_stratum(many, labels, key, strata),)),)
    columns: Columns[StratumRow] = (
        Col(key, lambda row: row.value),
        Col("n", lambda row: row.n, "count"),
        Cols(
            range(len(labels)), lambda row, at: mean_cells(_means(row), many.primary)[at], "value", labels.__getitem__
        ),
    )
    table = TableSpec(f"Mean {many.primary} by {key}", strata, columns).table(shown=20)
    if not 2 <= len(strata) <= MAX_ROWS_DRAWN:
        return (table,)
    drawn = [HeatRow(f"{row.value} ({row.n})", _means(row), best_places(_means(row), many.primary)) for row in strata]
    sign = int(sign_of(many.primary))
    spec, narrow = (heat_map(drawn, labels, letters(len(labels)), screen, sign) for screen in SCREENS)
    means = "; ".join(
        f"{row.value}: "
        + ", ".join(f"{label} {format_value(mean)}" for label, mean in zip(labels, _means(row), strict=True))
        for row in strata
    )
    figure = Chart(
        f"heat-{place}",
        f"Mean {many.primary} by {key}",
        f"Means by group and system: {means}.",
        spec,
        narrow,
        table,
        (
            ("good", "better than the mean of the row"),
            ("bad", "worse; the stronger, the farther. The best of a row is bold"),
        ),
        table_follows=True,
    )
    return figure, table


def _systems_by_stratum(many: ManyResult, labels: Sequence[str], key: str, strata: Sequence[StratumRow]) -> Table:
    """A row for each system, the best first, and a column for each stratum."""
    cells = [mean_cells(_means(row), many.primary) for row in strata]
    columns: Columns[int] = (
        Col("system", labels.__getitem__),
        Cols(
            range(len(strata)),
            lambda row, stratum: cells[stratum][row],
            "value",
            lambda stratum: f"{strata[stratum].value} ({strata[stratum].n})",
        ),
    )
    order = [many.names.index(line.system) for line in many.leaderboard]
    return TableSpec(f"Mean {many.primary} by {key}", order, columns).table()


def _means(row: StratumRow) -> tuple[float | None, ...]:
    return tuple(summary.mean for summary in row.summaries.values())


def _means_by_stratum(systems: Sequence[SystemResult]) -> Section | None:
    """The first measure of every system within each stratum; the others folded."""
    if not systems[0].measures:
        return None
    first, *others = systems[0].measures
    tables = _means_tables(systems, first)
    if not tables:
        return None
    keys = dict.fromkeys(table.columns[0].title for table in tables)
    section = Section("breakdown", "Breakdown", tuple(tables), f"{first} by {and_list(list(keys))}")
    return _with_details(section, [table for measure in others for table in _means_tables(systems, measure)])


def _means_tables(systems: Sequence[SystemResult], measure: Measure) -> list[Table]:
    """One measure of every system: a table for each key of strata."""
    found = [
        (stratum, system.name, stratum.measures[measure])
        for system in systems
        for stratum in system.by_stratum
        if measure in stratum.measures
    ]
    several, alpha = len(systems) > 1, 1 - systems[0].measures[measure].ci_level
    tables = []
    for key in dict.fromkeys(stratum.key for stratum, _, _ in found):
        rows = [(stratum.value, name, summary) for stratum, name, summary in found if stratum.key == key]
        rows.sort(key=lambda row: row[0])
        spec = summaries(key, rows, f"{measure} by {key}", alpha, several=several)
        tables.append(spec.without("std. dev.").table(shown=20))
    return tables


def find_contrasts(
    result: Sequence[Evaluation] | Comparison, requested: Sequence[ContrastSpec]
) -> tuple[StrataContrast, ...]:
    """Every requested contrast within each system; of a comparison, of the difference between its sides too."""
    if not isinstance(result, Comparison):
        return tuple(contrast_strata(evaluation, *spec) for spec in requested for evaluation in result)
    found = []
    for spec in requested:
        found += [
            contrast_strata(side, *spec, result.primary, alpha=result.options.alpha, seed=result.options.seed)
            for side in result.evaluations
        ]
        found.append(contrast_gain(result, *spec))
    return tuple(found)


def strata_contrasts(subject: Subject) -> Section | None:
    """A table for each pair of strata; None where no contrast was requested."""
    contrasts = subject.record.contrasts
    if not contrasts:
        return None
    pairs: dict[tuple[str, str, str, Measure], list[StrataContrast]] = {}
    for contrast in contrasts:
        pairs.setdefault((contrast.key, contrast.a, contrast.b, contrast.measure), []).append(contrast)
    blocks: list[Block] = [Paragraph(CONTRASTS)]
    for chosen in pairs.values():
        blocks.append(_table(chosen))
        notes = [f"{contrast.what}: {contrast.groups.note}." for contrast in chosen if contrast.groups.note]
        notes += [f"{ceiling}." for contrast in chosen for ceiling in contrast.ceilings]
        if notes:
            blocks.append(Bullets(tuple(notes), "warning"))
    return Section("contrasts", "Contrasts of strata", tuple(blocks))


def _table(contrasts: Sequence[StrataContrast]) -> Table:
    first = contrasts[0]
    columns: Columns[StrataContrast] = (
        Col("system", lambda row: "B minus A" if row.what == "difference" else row.what),
        Col(first.a, lambda row: row.groups.a.mean, "value"),
        Col("n", lambda row: row.groups.a.n, "count"),
        Col(first.b, lambda row: row.groups.b.mean, "value"),
        Col("n", lambda row: row.groups.b.n, "count"),
        Col("difference", lambda row: row.groups.difference, "delta"),
        Col(f"{format_level(first.groups.alpha)} CI", lambda row: interval(row.groups), "delta interval"),
        Col("p", lambda row: row.groups.p_permutation, "p"),
        Col("g", lambda row: row.groups.hedges_g, "effect"),
    )
    caption = f"{first.measure} by {first.key}: {first.a} minus {first.b}"
    return TableSpec(caption, contrasts, columns).table()
