"""The Document: a report as a value, before it is text, Markdown, HTML, CSV or JSON.

Renderers know what is in this file and nothing else: no evaluation, no comparison, no ranking. Text in a Document may
come from the systems measured; every renderer escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from cranfield.base.numbers import Interval, Kind, format_cell, format_count, is_numeric
from cranfield.base.version import __version__
from cranfield.base.words import printable, shorten_to
from cranfield.reporting.charts.spec import BETTER, SAME, WORSE

CALLS = "calls.json"
"""Beside a `results.json`: what differs from one collection to the next."""
PILOT_STAMP = "PILOT: not for the record"
VOID_STAMP = "invalid: the tables show scores that do not count"
MADE_BY = f"Cranfield {__version__}"

Tone = Literal["", "good", "bad", "even", "open", "void"]
"""How a value is coloured; the text always says the same."""

FARTHEST = 4
"""Shades of a cell on each side of the mean of its row."""

Swatch = Literal["good", "bad", "same", "band"]
"""The colours of the pictures."""

Mark = Literal["", "best", "second"]
"""Place of a value among those of other systems."""

MARKS = "The best value is bold, the second underlined"
"""What `Table.marks` says of cells with a `Mark`."""
WORSE_SYSTEMS = "Superscripts name the systems that are significantly worse"
"""What it says of cells with `TonedCell.better_than`."""

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TonedCell:
    """A cell with a tone: good or bad depends on the measure, not on the sign."""

    value: str | float | None
    tone: Tone
    distance: int = 0
    """How far it is on the good side of the mean of its row, or below zero on the bad side: up to `FARTHEST`."""
    mark: Mark = ""
    """Shown in a table with `marks`, in forms with bold and underlined text."""
    better_than: tuple[str, ...] = ()
    """Labels of the systems that are significantly worse; shown as a superscript where `mark` is shown."""


@dataclass(frozen=True, slots=True)
class Link:
    """A cell that links to a file relative to the report. A form without links shows its text."""

    text: str
    path: str
    """Relative to the report, parts separated by `/`."""

    @property
    def href(self) -> str:
        """The path as a relative URL in which nothing is markup, scheme or query; empty where it is not relative."""
        if not self.path or self.path.startswith("/"):
            return ""
        return quote(self.path.encode("utf-8", "replace"), safe="/")


Cell = str | int | float | None | Interval | TonedCell | Link


def cell_value(cell: Cell) -> str | int | float | Interval | None:
    """The value of a cell, without its tone or link."""
    if isinstance(cell, Link):
        return cell.text
    return cell.value if isinstance(cell, TonedCell) else cell


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its heading, and the kind of thing in it, which decides alignment and number format."""

    title: str
    kind: Kind = "text"

    @property
    def is_numeric(self) -> bool:
        """Numbers are aligned right."""
        return is_numeric(self.kind)

    @property
    def is_pinned(self) -> bool:
        """A verdict stays in view where the table is wider than the page."""
        return self.title == "verdict"

    @property
    def is_code(self) -> bool:
        """Cells are literal text."""
        return self.kind in {"code", "query id"}

    def text(self, cell: Cell) -> str:
        """A cell of this column as text, safe to print."""
        return printable(format_cell(cell_value(cell), self.kind))


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or a few."""

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: Literal["", "note", "warning"] = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: tuple[str, ...]
    tone: Literal["", "warning"] = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, rows and what they are."""

    kind: ClassVar[str] = "table"
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]
    caption: str
    footer: tuple[Cell, ...] | None = None
    """A last row that adds the others up."""
    shown: int | None = 20
    """Rows in plain text, followed by the number left out; None keeps all."""
    wrap: bool = False
    """Long words fold into more lines of plain text, and are not cut."""
    marks: str = ""
    """What bold, underlined and superscripts mean; empty: the marks of cells are not shown."""

    def marked(self, cell: Cell) -> tuple[Mark, tuple[str, ...]]:
        """The mark of a cell and what it is better than, where this table shows them."""
        return (cell.mark, cell.better_than) if self.marks and isinstance(cell, TonedCell) else ("", ())


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture as a Vega-Lite specification, and its data as a table."""

    kind: ClassVar[str] = "figure"
    name: str
    title: str
    alt: str
    """Alternative text for readers who cannot see it."""
    spec: Mapping[str, Any]
    narrow_spec: Mapping[str, Any]
    """The same for a phone: a small picture with readable words, not a shrunken one."""
    table: Table
    legend: tuple[tuple[Swatch, str], ...] = ()
    """Colours and their meanings."""
    in_text: bool = False
    """Plain text, which has no pictures, shows the table."""
    table_follows: bool = False
    """A table with the same data follows: a form without pictures leaves the figure out."""


@dataclass(frozen=True, slots=True)
class Code:
    """Verbatim text: a configuration, the output of a program."""

    kind: ClassVar[str] = "code"
    text: str
    caption: str = ""
    in_text: bool = False
    """Plain text shows it too."""


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Names and values."""

    kind: ClassVar[str] = "key values"
    items: tuple[tuple[str, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class HitLine:
    """One result in a list."""

    rank: int
    id: str
    title: str
    note: str
    """How it was judged: `expected, grade 2`, `not judged`."""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class HitList:
    """The results of one system."""

    title: str
    note: str
    """Outcome of the query: `first relevant result at rank 3`, `timeout: no answer in 30 s`."""
    hits: tuple[HitLine, ...]


@dataclass(frozen=True, slots=True)
class HitLists:
    """The answers of the systems to one query, side by side."""

    kind: ClassVar[str] = "hit lists"
    expected: str
    """Expected items of the query; empty where nothing is judged."""
    lists: tuple[HitList, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks behind a line that opens them. Plain text leaves them out, unless `in_text` is set."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: tuple[Block, ...]
    is_open: bool = False
    in_text: bool = False


Block = Paragraph | Bullets | Table | Chart | Code | KeyValues | HitLists | Details


def without_tones(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks without the colours of good and bad news, for scores that do not count."""
    return tuple(map(_without_tones, blocks))


def _without_tones(block: Block) -> Block:
    if isinstance(block, Table):
        return _table_without_tones(block)
    if isinstance(block, Chart):
        return _without_colours(block)
    return replace(block, blocks=without_tones(block.blocks)) if isinstance(block, Details) else block


def _table_without_tones(table: Table) -> Table:
    rows = [tuple(cell.value if isinstance(cell, TonedCell) else cell for cell in row) for row in table.rows]
    return replace(table, rows=rows, marks="")


def _without_colours(figure: Chart) -> Chart:
    """A figure of good and bad news with its marks in grey, and without a legend that would call each grey mark the same."""
    table = _table_without_tones(figure.table)
    if not {"good", "bad"} <= {swatch for swatch, _ in figure.legend}:
        return replace(figure, table=table)
    spec, narrow = (_grey(each) for each in (figure.spec, figure.narrow_spec))
    legend = tuple((swatch, words) for swatch, words in figure.legend if swatch == "band")
    return replace(figure, table=table, spec=spec, narrow_spec=narrow, legend=legend)


def _grey(part: Any) -> Any:
    """A specification, or a part of one, in which better and worse have the colour of no difference."""
    if isinstance(part, Mapping):
        return {key: _grey(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_grey(value) for value in part]
    return SAME if part in (BETTER, WORSE) else part


LONGEST_ID = 20
"""Characters that an id has in a list that is shortened."""


def with_fewer_rows(blocks: Iterable[Block], most: int) -> tuple[Block, ...]:
    """The blocks with at most so many rows a table, and no longer lists of ids; the caption says how many there are.

    First and last rows stay: a sorted table goes on to show both of its ends.
    """
    return tuple(_with_fewer_rows(block, most) for block in blocks)


def _with_fewer_rows(block: Block, most: int) -> Block:
    if isinstance(block, Table) and len(block.rows) > most:
        first, last = most - most // 2, most // 2
        of_all = (
            f"the first {format_count(first)} and the last {format_count(last)} of {format_count(len(block.rows))} rows"
        )
        rows = (*block.rows[:first], *block.rows[len(block.rows) - last :])
        return replace(block, rows=rows, caption=f"{block.caption} ({of_all})")
    if isinstance(block, Chart):
        table = _with_fewer_rows(block.table, most)
        return replace(block, table=table) if isinstance(table, Table) else block
    if isinstance(block, KeyValues):
        return replace(block, items=tuple((name, shorten_to(text, LONGEST_ID * most)) for name, text in block.items))
    return replace(block, blocks=with_fewer_rows(block.blocks, most)) if isinstance(block, Details) else block


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks."""

    name: str
    """For links: lower case, no blanks."""
    title: str
    blocks: tuple[Block, ...]
    key_figure: str = ""
    """What a page shows of the section while it is closed, in one line; a section without one is always open."""


@dataclass(frozen=True, slots=True)
class VerdictFact:
    """A number of the verdict, with its name."""

    label: str
    text: str
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """The verdict, at the top of a report."""

    name: str
    sentence: str
    tone: Tone
    facts: tuple[VerdictFact, ...] = ()
    reasons: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    """Facts that limit what the verdict can be used for."""

    def limits(self, *cautions: str, reasons_first: bool = False) -> tuple[str, ...]:
        """What limits the verdict, the gravest first: what the evidence lacks, what contradicts it, what it could not find.

        Args:
            cautions: more of the evidence, after the caveats.
            reasons_first: the reasons are why something does not count, as they are where the verdict is void.
        """
        rest = (*self.caveats, *cautions, *self.disagreements)
        return (*self.reasons, *rest) if reasons_first or self.tone == "void" else (*rest, *self.reasons)


@dataclass(frozen=True, slots=True)
class Brief:
    """What the short form of a report says after the verdict: the first rows of one table, and sentences."""

    table: Table | None = None
    """The primary figures, or where it changed: the most important rows first."""
    changes: tuple[str, ...] = ()
    """A line each: which queries changed most."""
    doubts: tuple[str, ...] = ()
    """What limits the verdict or the figures, the gravest first."""
    findings: tuple[str, ...] = ()
    """Results beside the verdict, such as each system against the baseline; they stand before the changes, and fold."""
    rules: Table | None = None
    """Outcomes of the floors of the call; they stand after the table."""


@dataclass(frozen=True, slots=True)
class QueryViewContent:
    """The data of the query view, which a form with a script shows: see `cranfield.reporting.query_data`."""

    index: Callable[[], Payload]
    details: Callable[[], Iterator[Payload]]
    """Every query, in the order of the index."""


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: tuple[str, ...]
    """Lines under the title: systems, test set, convention."""
    sections: tuple[Section, ...]
    tidy: Callable[[], Table]
    """The result as one plain table, for CSV: one row a query and measure."""
    payload: Callable[[], Payload]
    """The machine result: what `--format json` prints."""
    calls: Callable[[], object] | None = None
    """Record of times and outputs of the calls, which a saved .json file has beside it; None where there were none."""
    record: Callable[[], Payload] | None = None
    """Content of a saved .json file: the payload, and every query with its hits."""
    verdict: VerdictBlock | None = None
    stamps: tuple[str, ...] = ()
    """`PILOT_STAMP`, `VOID_STAMP`: shown above the verdict and at the end."""
    made_by: str = ""
    """Program and version."""
    queries: QueryViewContent | None = None
    """Every query with its results, where the report is about queries."""
    brief: Callable[[], Brief] | None = None
    """What the short form says; a Document without one is short as it is."""
    leaderboard: Callable[[], Table] | None = None
    """The systems by their measures, for a paper: LaTeX shows it in the place of every table."""
    model_card: Callable[[], Payload] | None = None
    """The systems by their measures, as metadata of a model card."""

    @property
    def stamp(self) -> str:
        """The stamps in one line."""
        return " · ".join(self.stamps)
