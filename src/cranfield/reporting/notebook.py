"""Values in notebooks: a card, the top of a report; the rows of CSV as a frame; a query with its lists side by side.

`cranfield.base.display` calls `card`, `frame` and `query`. What a value has of them is found by the name of its class: a class is
imported by those who have a value of it. Text in frames is as it is; halves of characters are escaped, which no frame can hold.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal, cast

from cranfield.base.display import Library, QueryDisplay
from cranfield.base.errors import InternalError, MissingExtraError
from cranfield.base.numbers import format_count, format_ms, format_percent
from cranfield.base.words import count_noun, printable
from cranfield.evaluation.result import ComparisonResult, evaluations_of
from cranfield.evaluation.values import failed_text
from cranfield.model import Hit, Run
from cranfield.plugins import card_of
from cranfield.reporting.document import (
    PILOT_STAMP,
    VOID_STAMP,
    Bullets,
    Cell,
    Chart,
    Column,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    cell_value,
    with_fewer_rows,
    without_tones,
)
from cranfield.reporting.documents.comparison import (
    comparison_document,
    evaluation_document,
    test_set_line,
    title_of,
)
from cranfield.reporting.documents.history import history_document
from cranfield.reporting.documents.power import power_document
from cranfield.reporting.documents.query import find_query, query_document
from cranfield.reporting.query_data import QueryData, Result
from cranfield.reporting.renderers.html import render_card
from cranfield.reporting.renderers.text import render_text
from cranfield.reporting.sections.many import leaderboard, ranks
from cranfield.reporting.sections.measures import class_means, compared_measures, has_classes, measures
from cranfield.reporting.sections.subject import Subject
from cranfield.reporting.sections.verdict import verdict_block
from cranfield.reporting.table_spec import Col, Columns, TableSpec

if TYPE_CHECKING:
    from cranfield.evaluation.many import ManyComparison
    from cranfield.evaluation.values import Comparison, Evaluation

MAX_BYTES = 100_000
"""Most bytes of a card: it is stored in the file of the notebook."""
CARD_ROWS, QUERY_ROWS = 12, 60
"""Rows of a table in a card."""
MAX_MEASURES = 10
"""Measures in the picture of a comparison."""
MAX_WARNINGS = 5
"""Most warnings of an evaluation, on its card."""
FIRST_SECTIONS = 2
"""Sections of a report that its card has, where none is named."""
FrameKind = Literal["text", "int", "float"]
Typed = Mapping[str, tuple[FrameKind, list[Any]]]
"""Name of a column to its kind and its values, None where there is none."""
INSTALLED_BY: Mapping[Library, str] = {"pandas": "pandas", "polars": "polars", "pyarrow": "'cranfield[parquet]'"}
"""Library to what is installed to have it."""


def card(value: object) -> str:
    """A value as HTML for a notebook."""
    return _card(shape_of(value).card(value), CARD_ROWS)


def frame(value: object, library: Library) -> Any:
    """The tidy rows of a value as a frame of a library.

    Raises:
        MissingExtraError: the library is not installed.
    """
    return frame_of(library, lambda: shape_of(value).rows(value))


def query(value: object, query: str) -> QueryDisplay:
    """A query of a result.

    Raises:
        UnknownNameError: there is no such query, or several have this text.
    """
    result = cast("Result", value)
    data = QueryData(Subject.of(result))
    query_id = find_query(evaluations_of(result)[0].testset, query)
    detail, is_void = data.detail(query_id), data.is_void
    return QueryDisplay(
        query_id,
        detail,
        render_text(query_document(detail, "one table", is_void=is_void)).rstrip("\n"),
        lambda: _card(query_document(detail, "side by side", is_void=is_void), QUERY_ROWS),
    )


def _card(document: Document, most_rows: int) -> str:
    """The card; one that is too large has no picture, and then fewer rows."""
    for rows in (most_rows, most_rows // 2, 2):
        # Every table with few rows; details, which are for reports, are left out.
        with_pictures = rows == most_rows
        sections = []
        for section in document.sections:
            kept = [each for each in section.blocks if not isinstance(each, Details)]
            kept = [each for each in kept if with_pictures or not isinstance(each, Chart)]
            if kept:
                sections.append(replace(section, blocks=with_fewer_rows(kept, rows)))
        shown = replace(document, sections=tuple(sections))
        html = render_card(shown)
        if len(html.encode("utf-8", "replace")) <= MAX_BYTES:
            return html
    return render_card(replace(document, sections=()))


def comparison_card(result: Comparison) -> Document:
    """The verdict, and the interval of every measure."""
    subject = Subject.of(result)
    few = dict([*result.measures.items()][:MAX_MEASURES]) | {result.primary: result.measures[result.primary]}
    section = compared_measures(replace(cast("ComparisonResult", subject.record), comparisons=few))
    blocks = [each for each in section.blocks if isinstance(each, Chart)]
    left_out = len(result.measures) - len(few)
    note = [Paragraph(f"{format_count(left_out)} more measures are in the report.", "note")] if left_out else []
    about = (*subject.labels, test_set_line(subject.record))
    return _verdict_card(
        title_of(subject), about, [Section("measures", "Measures", (*blocks, *note))] if blocks else [], subject
    )


def many_card(result: ManyComparison) -> Document:
    """The verdict, the best systems, and the mean ranks of all."""
    subject = Subject.of(result)
    sections = []
    for build, kind in ((leaderboard, Table), (ranks, Chart)):
        section = build(subject)
        blocks = () if section is None else section.blocks
        if section is not None and (found := next((each for each in blocks if isinstance(each, kind)), None)):
            sections.append(replace(section, blocks=(found,)))
    return _verdict_card(title_of(subject), (test_set_line(subject.record),), sections, subject)


def evaluation_card(result: Evaluation) -> Document:
    """Counts, the means with their intervals, of each class where there are classes, and the warnings."""
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
    return _verdict_card(result.name, (test_set_line(subject.record),), sections, subject)


def _verdict_card(title: str, about: Sequence[str], sections: Sequence[Section], subject: Subject) -> Document:
    if subject.is_void:
        sections = [replace(section, blocks=without_tones(section.blocks)) for section in sections]
    stamps = ((PILOT_STAMP,) if subject.pilot else ()) + ((VOID_STAMP,) if subject.is_void else ())
    return replace(plain_card(title, about, sections), verdict=verdict_block(subject), stamps=stamps)


def plain_card(title: str, about: Sequence[str], sections: Sequence[Section]) -> Document:
    """A Document that is only shown: its rows and its data are those of the value."""
    return Document(title, tuple(about), tuple(sections), tidy=lambda: Table((), (), ""), payload=dict)


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


@dataclass(frozen=True, slots=True)
class CardShape:
    """How a value is shown."""

    card: Callable[[Any], Document]
    rows: Callable[[Any], Table]


def shape_of_report(report: Callable[[Any], Document], *sections: str) -> CardShape:
    """The sections of that name of a report, and its tidy rows; no name: the first two."""
    return CardShape(lambda value: part_of(report(value), sections), lambda value: report(value).tidy())


SHAPES: Mapping[str, CardShape] = {
    "Comparison": CardShape(comparison_card, lambda value: comparison_document(value).tidy()),
    "Evaluation": CardShape(evaluation_card, lambda value: evaluation_document([value]).tidy()),
    "HistoryReport": shape_of_report(history_document),
    "ManyComparison": CardShape(many_card, lambda value: evaluation_document(value.evaluations).tidy()),
    "PowerPlan": shape_of_report(power_document),
    "Run": CardShape(run_card, run_table),
}


def shape_of(value: object) -> CardShape:
    """The shape of a value, or that of the class that its own derives from."""
    for each in type(value).__mro__:
        if each.__name__ in SHAPES:
            return SHAPES[each.__name__]
        found = card_of(each.__name__)
        if found is not None:
            return found if isinstance(found, CardShape) else shape_of_report(found)
    raise InternalError(f"{type(value).__name__} has no card")


def frame_of(library: Library, make: Callable[[], Table]) -> Any:
    """The rows of a table in a frame.

    Args:
        library: of the frame.
        make: the table; it is not made where there is no such library.

    Raises:
        MissingExtraError: the library is not installed.
    """
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        method = f"to_{library.removeprefix('py')}"
        raise MissingExtraError.for_package(f"{method}()", library, INSTALLED_BY[library]) from error
    return _MAKERS[library](module, typed_columns(make()))


def typed_columns(table: Table) -> Typed:
    """The columns of a table: numbers where it says so, or where they hold nothing else."""
    cells = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    return {column.title: _typed(column, of_column) for column, of_column in zip(table.columns, cells, strict=True)}


def _typed(column: Column, cells: Iterable[Cell]) -> tuple[FrameKind, list[Any]]:
    values = [cell_value(cell) for cell in cells]
    known = {type(value) for value in values if value is not None}
    if column.is_numeric or float in known or (values and not known):
        return "float", [None if value is None else float(value) for value in values]  # type: ignore[arg-type]  # no interval is in a tidy table
    if known == {int}:
        return "int", values
    return "text", [None if value is None else _unicode(str(value)) for value in values]


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return printable(text)
    return text


def _pandas(pd: Any, columns: Typed) -> Any:
    def made(kind: FrameKind, values: list[Any]) -> Any:
        if kind == "text":
            return pd.Series(values, dtype=None if values else "object")
        return pd.Series(values, dtype="int64" if kind == "int" and None not in values else "float64")

    return pd.DataFrame({name: made(*column) for name, column in columns.items()})


def _polars(pl: Any, columns: Typed) -> Any:
    types = {"text": pl.String, "int": pl.Int64, "float": pl.Float64}
    return pl.DataFrame({name: pl.Series(values, dtype=types[kind]) for name, (kind, values) in columns.items()})


def _arrow(pa: Any, columns: Typed) -> Any:
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64()}
    return pa.table({name: pa.array(values, types[kind]) for name, (kind, values) in columns.items()})


_MAKERS: Mapping[Library, Callable[[Any, Typed], Any]] = {"pandas": _pandas, "polars": _polars, "pyarrow": _arrow}
