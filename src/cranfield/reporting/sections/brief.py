"""What the short form of a report says of evaluations and comparisons: one table, the queries that changed most, what to doubt."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.result import ComparisonResult, ManyResult, SystemResult
from cranfield.evaluation.values import ClassRow
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_count, format_delta, format_level, format_p, format_percent
from cranfield.reporting.document import Brief, Bullets, Cell, Column, Table, TonedCell
from cranfield.reporting.sections.collection import moved_latencies, warnings
from cranfield.reporting.sections.many import board_lines
from cranfield.reporting.sections.measures import class_means, has_classes
from cranfield.reporting.sections.subject import Subject, interval_tone, mean_cells, query_text
from cranfield.reporting.sections.verdict import verdict_block
from cranfield.stats.table import TESTS
from cranfield.words import capitalised, n_of, shorten_to

QUERY_COLUMNS = 26
"""Of the text of a query that changed most: two of them are on a line."""
OTHER_MEASURES = 2
"""Of several systems side by side, besides the first measure."""
TOO_FEW = "too few"
CODES_FIRST = (VerdictCode.WORSE, VerdictCode.BETTER)
"""Classes that changed are the first rows."""


def brief_of(subject: Subject) -> Brief:
    """The short form of a subject."""
    doubts = _doubts(subject)
    if subject.is_void:  # figures that do not count have no place on the first screen
        return Brief(doubts=doubts)
    if subject.pair is not None:
        pair = subject.pair
        table = _measures(pair) if pair.verdict_by_class is None else _classes(pair)
        counts, *most = _changes(pair)
        return Brief(table, (counts, *moved_latencies(subject), *most), doubts, _findings(subject))
    if subject.many is not None:
        return Brief(_board(subject.many, subject.sort), moved_latencies(subject), doubts, _findings(subject))
    systems = subject.record.systems
    if has_classes(systems[0]):
        return Brief(class_means(systems), (_reliability(systems),), doubts)
    table = _one(systems[0]) if len(systems) == 1 or not subject.measures else _side_by_side(subject)
    return Brief(table, (_reliability(systems),) if len(systems) == 1 else (), doubts)


def _doubts(subject: Subject) -> tuple[str, ...]:
    """Evidence first, then failures and other warnings, what contradicts the verdict, and what it could not have found."""
    block, section = verdict_block(subject), warnings(subject)
    cautions = (
        [] if section is None else [i for each in section.blocks if isinstance(each, Bullets) for i in each.items]
    )
    if block is None:
        return tuple(cautions)
    limits = dict.fromkeys(block.limits(*cautions))
    return tuple(each for each in limits if block.tone == "void" or not _is_finding(each))


def _findings(subject: Subject) -> tuple[str, ...]:
    """Reasons of the verdict that are results and nothing to doubt."""
    block = verdict_block(subject)
    reasons = () if block is None else block.reasons
    findings = tuple(capitalised(reason) for reason in reasons if _is_finding(reason))
    by_class = None if subject.pair is None else subject.pair.verdict_by_class
    apart = [
        f"{row.name} (adjusted p {format_p(row.result.p_adjusted)})"
        for row in (() if by_class is None else by_class.rows)
        if row.result is not None and row.result.p_adjusted is not None
        if row.code is VerdictCode.NOT_SIGNIFICANT and row.ci_low is not None and row.ci_high is not None
        if row.ci_low > 0 or row.ci_high < 0
    ]
    if apart:
        text = "Not significant although its interval excludes zero, because p is adjusted for the number of classes"
        findings += (f"{text if len(apart) == 1 else text.replace('its', 'their')}: {', '.join(apart)}",)
    return findings


def _is_finding(reason: str) -> bool:
    """Whether it says that a loss of the margin is ruled out, or how each of many systems did against the baseline."""
    return isinstance(reason, Caveat) and reason.kind == (CaveatKind.FINDING,)


def _measures(comparison: ComparisonResult) -> Table:
    """Both sides of each measure, the primary first."""
    spec = TESTS[comparison.test]
    columns = (
        *(Column("measure"), Column("A", "value"), Column("B", "value")),
        *(
            (Column("difference", "delta"),)
            if spec.is_of_mean
            else (Column("mean diff.", "delta"), Column(spec.estimate, "delta"))
        ),
        Column(f"{format_level(comparison.alpha)} CI", "delta interval"),
        *(Column("p", "p"), Column("n", "count")),
    )
    rows: list[tuple[Cell, ...]] = []
    for measure, about in comparison.comparisons.items():
        declared, star = about.tests.get(comparison.test), "* " if measure == comparison.primary else ""
        shown = TonedCell(about.delta if spec.is_of_mean else about.estimate, interval_tone(about, measure))
        cells = (about.baseline.mean, about.candidate.mean, *(() if spec.is_of_mean else (about.delta,)), shown)
        p = declared.p_two_sided if declared else None
        rows.append((f"{star}{measure}", *cells, (about.ci_low, about.ci_high), p, about.n))
    return Table(columns, sorted(rows, key=lambda row: not str(row[0]).startswith("* ")), "Measures")


def _classes(comparison: ComparisonResult) -> Table | None:
    """The verdict of each class, those that changed first."""
    found = comparison.verdict_by_class
    if found is None:
        return None
    columns = (
        *(Column(found.key), Column("verdict"), Column("measure"), Column("difference", "delta")),
        *(Column(f"{format_level(comparison.alpha)} CI", "delta interval"), Column("n", "count")),
    )
    rank = {code: place for place, code in enumerate(CODES_FIRST)}
    ordered = sorted(found.rows, key=lambda row: (rank.get(row.code, len(rank)), row.move != "falls"))
    return Table(columns, [_class_row(row) for row in ordered], f"By {found.key}, B minus A")


def _class_row(row: ClassRow) -> tuple[Cell, ...]:
    verdict = row.code.value.replace("_", " ") if row.can_decide else TOO_FEW
    cell = TonedCell(verdict, row.code.tone if row.can_decide else "open")
    return (row.name, cell, str(row.measure), row.shown, (row.ci_low, row.ci_high), row.n)


def _changes(comparison: ComparisonResult) -> tuple[str, ...]:
    """How many queries got better and worse on the primary measure, failed and were judged; and those that changed most."""
    found, sign = comparison.comparisons[comparison.primary].differences, sign_of(comparison.primary)
    counts, named = [], []
    for word, way in (("better", sign), ("worse", -sign)):
        moved = [query for query in found if found[query] * way > 0]
        counts.append(
            f"{n_of(len(moved), 'queries', format_count) if way == sign else format_count(len(moved))} {word}"
        )
        if moved:
            most = max(moved, key=lambda query: abs(found[query]))
            named.append(
                f"{format_delta(found[most])} {shorten_to(query_text(comparison, most) or most, QUERY_COLUMNS)}"
            )
    line = f"{', '.join(counts)}; {_reliability(comparison.systems)}"
    return (line, f"Most: {'; '.join(named)}") if named else (line,)


def _reliability(systems: Sequence[SystemResult]) -> str:
    """`0 failed; Judged@10 46.7 %`, of several systems in their order."""
    failed = " and ".join(format_count(each.n_failed) for each in systems)
    judged = " and ".join(format_percent(each.judged.mean) for each in systems)
    return f"{failed} failed; {systems[0].judged.measure} {judged}"


def _board(many: ManyResult, sort: str) -> Table:
    """The systems with their means, the best first."""
    columns = (
        *(Column("#", "count"), Column("system"), Column("group"), Column(str(many.primary), "value")),
        Column(f"{format_level(many.alpha)} CI", "interval"),
        *(Column("better than", "count"), Column("worse than", "count")),
    )
    rows: list[tuple[Cell, ...]] = []
    for _, line, summary in board_lines(many, sort):
        name = f"{line.system} (baseline)" if line.system == many.baseline else line.system
        mean = TonedCell(summary.mean, "good" if line.system in many.best else "")
        rows.append(
            (line.rank, name, line.group, mean, (summary.ci_low, summary.ci_high), line.better_than, line.worse_than)
        )
    return Table(columns, rows, f"{many.primary}")


def _one(system: SystemResult) -> Table:
    """The measures of one system."""
    summaries = system.measures
    level = format_level(1 - next(iter(summaries.values())).ci_level) if summaries else ""
    columns = (
        *(Column("measure"), Column("mean", "value"), Column(f"{level} CI", "interval")),
        *(Column("median", "value"), Column("n", "count")),
    )
    rows: list[tuple[Cell, ...]] = [
        (str(measure), found.mean, (found.ci_low, found.ci_high), found.median, found.n)
        for measure, found in summaries.items()
    ]
    return Table(columns, rows, system.name)


def _side_by_side(subject: Subject) -> Table:
    """The first measure of each of several systems with its interval, and the means of two others."""
    systems, (first, *others) = subject.record.systems, subject.measures[: 1 + OTHER_MEASURES]
    summaries = [each.measures.get(first) for each in systems]
    level = next((format_level(1 - each.ci_level) for each in summaries if each is not None), "")
    means = [[None if (s := each.measures.get(m)) is None else s.mean for each in systems] for m in others]
    other_cells = [mean_cells(of_measure, measure) for of_measure, measure in zip(means, others, strict=True)]
    own = mean_cells([None if each is None else each.mean for each in summaries], first)
    rows: list[tuple[Cell, ...]] = []
    for place, (each, summary) in enumerate(zip(systems, summaries, strict=True)):
        interval = (None, None) if summary is None else (summary.ci_low, summary.ci_high)
        counts = (0 if summary is None else summary.n, each.n_failed, each.judged.mean)
        rows.append((each.name, own[place], interval, *(cells[place] for cells in other_cells), *counts))
    columns = (
        *(Column("system"), Column(str(first), "value"), Column(f"{level} CI", "interval")),
        *(Column(str(measure), "value") for measure in others),
        *(Column("n", "count"), Column("failed", "count"), Column("judged", "percent")),
    )
    return Table(columns, rows, "Means")
