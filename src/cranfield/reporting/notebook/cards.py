"""The cards of notebooks: the top of each report, as a Document of a verdict, a picture and a table or two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from cranfield.base.numbers import format_count, format_ms, format_percent
from cranfield.base.words import count_noun
from cranfield.model import Hit, Run
from cranfield.reporting.document import (
    PILOT_STAMP,
    VOID_STAMP,
    Block,
    Bullets,
    Chart,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    without_tones,
)
from cranfield.reporting.table_spec import Col, Columns, TableSpec

if TYPE_CHECKING:
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.result import ComparisonResult
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.reporting.sections.subject import Subject

MAX_MEASURES = 10
"""Measures in the picture of a comparison."""
MAX_WARNINGS = 5
"""Most warnings of an evaluation, on its card."""
FIRST_SECTIONS = 2
"""Sections of a report that its card has, where none is named."""


def comparison_card(result: Comparison) -> Document:
    """The verdict, and the interval of every measure."""
    from cranfield.reporting.documents.comparison import test_set_line, title_of
    from cranfield.reporting.sections.measures import compared_measures
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.of(result)
    few = dict([*result.measures.items()][:MAX_MEASURES]) | {result.primary: result.measures[result.primary]}
    section = compared_measures(replace(cast("ComparisonResult", subject.record), comparisons=few))
    blocks = [each for each in section.blocks if isinstance(each, Chart)]
    left_out = len(result.measures) - len(few)
    note = [Paragraph(f"{format_count(left_out)} more measures are in the report.", "note")] if left_out else []
    about = (*subject.labels, test_set_line(subject.record))
    return _card(
        title_of(subject), about, [Section("measures", "Measures", (*blocks, *note))] if blocks else [], subject
    )


def many_card(result: ManyComparison) -> Document:
    """The verdict, the best systems, and the mean ranks of all."""
    from cranfield.reporting.documents.comparison import test_set_line, title_of
    from cranfield.reporting.sections.many import leaderboard, ranks
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.of(result)
    sections = []
    for build, kind in ((leaderboard, Table), (ranks, Chart)):
        section = build(subject)
        if section is not None and (block := _first(section.blocks, kind)):
            sections.append(replace(section, blocks=(block,)))
    return _card(title_of(subject), (test_set_line(subject.record),), sections, subject)


def evaluation_card(result: Evaluation) -> Document:
    """Counts, the means with their intervals, of each class where there are classes, and the warnings."""
    from cranfield.evaluation.values import failed_text
    from cranfield.reporting.documents.comparison import test_set_line
    from cranfield.reporting.sections.measures import class_means, has_classes, measures
    from cranfield.reporting.sections.subject import Subject

    subject = Subject.of(result)
    (system,) = subject.record.systems
    share = system.judged
    judged = (
        "not known: " + share.why
        if share.mean is None
        else f"{format_percent(share.mean)} of the first {share.measure.depth}"
    )
    facts = [
        ("queries", format_count(len(result.query_ids))),
        ("failed", failed_text(result).replace(" failed", "", 1)),
    ]
    facts.append(("judged", judged))
    section = measures(subject)
    means = [block for block in section.blocks if not isinstance(block, Details)] if section is not None else []
    if has_classes(system):
        means = [class_means((system,))]
    sections = [Section("counts", "Counts", (KeyValues(tuple(facts)),)), Section("measures", "Measures", tuple(means))]
    if result.warnings:
        shown = result.warnings[:MAX_WARNINGS]
        left = len(result.warnings) - len(shown)
        more = [f"{count_noun(left, 'warnings')} more in the report"] if left else []
        sections.append(Section("warnings", "Warnings", (Bullets((*map(str, shown), *more)),)))
    return _card(result.name, (test_set_line(subject.record),), sections, subject)


def _card(title: str, about: Sequence[str], sections: Sequence[Section], subject: Subject) -> Document:
    from cranfield.reporting.sections.verdict import verdict_block

    if subject.is_void:
        sections = [replace(section, blocks=without_tones(section.blocks)) for section in sections]
    stamps = ((PILOT_STAMP,) if subject.pilot else ()) + ((VOID_STAMP,) if subject.is_void else ())
    return replace(plain_card(title, about, sections), verdict=verdict_block(subject), stamps=stamps)


def plain_card(title: str, about: Sequence[str], sections: Sequence[Section]) -> Document:
    """A Document that is only shown: its rows and its data are those of the value."""
    return Document(title, tuple(about), tuple(sections), tidy=lambda: Table((), (), ""), payload=dict)


def _first(blocks: Sequence[Block], kind: type[Block]) -> Block | None:
    return next((block for block in blocks if isinstance(block, kind)), None)


def part_of(report: Document, names: Sequence[str] = ()) -> Document:
    """A report with its verdict and some of its sections: those of these names, or else the first."""
    named = tuple(section for section in report.sections if section.name in names)
    return replace(report, sections=named if names else report.sections[:FIRST_SECTIONS], queries=None)


def run_card(run: Run) -> Document:
    """Counts of answers, results and outcomes, and the median latency."""
    n_hits = sum(len(answer.hits) for answer in run.answers.values())
    facts = [("queries", format_count(len(run.answers))), ("results", format_count(n_hits))]
    facts += [("results per query, at most", format_count(run.depth))] if run.depth is not None else []
    facts += [("order", "as given" if run.order == "given" else f"by score, {run.order}")]
    if run.logs:
        facts.append(("median latency", format_ms(median(log.latency_ms for log in run.logs.values()))))
    columns: Columns[tuple[str, int]] = (
        Col("outcome", lambda row: row[0]),
        Col("queries", lambda row: row[1], "count"),
        Col("share", lambda row: row[1] / len(run.answers), "percent"),
    )
    counts = Counter(str(answer.outcome) for answer in run.answers.values()).most_common()
    table = TableSpec("Queries by outcome", counts, columns).table(shown=20)
    section = Section("counts", "Counts", (KeyValues(tuple(facts)), *((table,) if counts else ())))
    return replace(plain_card(run.name, (), [section]), stamps=(PILOT_STAMP,) if run.pilot else ())


def run_table(run: Run) -> Table:
    """A row a result, with the columns by which `evaluate` reads a frame; a query without results has a row without a document."""
    rows: list[tuple[str, int | None, Hit | None]] = [
        (query_id, rank, hit)
        for query_id, answer in run.answers.items()
        for rank, hit in (tuple(enumerate(answer.hits, start=1)) or ((None, None),))
    ]
    columns: Columns[tuple[str, int | None, Hit | None]] = (
        Col("query", lambda row: row[0]),
        Col("rank", lambda row: row[1]),
        Col("doc_id", lambda row: row[2].public_id if row[2] else None),
        Col("score", lambda row: row[2].score if row[2] else None, "value"),
        Col("title", lambda row: (row[2].title if row[2] else None) or ""),
        Col("outcome", lambda row: str(run.answers[row[0]].outcome)),
        Col("latency_ms", lambda row: run.logs[row[0]].latency_ms if row[0] in run.logs else None, "value"),
    )
    return TableSpec("", rows, columns).tidy()


def power_report(value: Any) -> Document:
    """The report of `cranfield power`."""
    from cranfield.reporting.documents.power import power_document

    return power_document(value)


def history_report(value: Any) -> Document:
    """The report of `cranfield history`."""
    from cranfield.reporting.documents.history import history_document

    return history_document(value)
