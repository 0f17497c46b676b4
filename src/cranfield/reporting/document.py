"""The Document: a report as a value, before it is text, Markdown, HTML, CSV or JSON.

Renderers know what is in this file and nothing else: no evaluation, no comparison, no ranking. Text in a Document may
come from the systems measured; every renderer escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from cranfield.numbers import Interval, Kind, format_cell, is_numeric
from cranfield.words import printable

PILOT_STAMP = "PILOT: not for the record"

Tone = Literal["", "good", "bad", "even", "open", "void"]
"""How a value is coloured; the text always says the same."""

Swatch = Literal["good", "bad", "same", "band"]
"""The colours of the pictures."""

Payload = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TonedCell:
    """A cell with a tone: good or bad depends on the measure, not on the sign."""

    value: str | float | None
    tone: Tone


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
        """Numbers stand at the right."""
        return is_numeric(self.kind)

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
    """Rows a pasted report keeps (it says how many it leaves out); None keeps all."""
    whole: bool = False
    """Long words fold into more lines of plain text, and are not cut."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture as a Vega-Lite specification, and the table that says the same."""

    kind: ClassVar[str] = "figure"
    name: str
    title: str
    alt: str
    """What a reader who cannot see it should know."""
    spec: Mapping[str, Any]
    narrow_spec: Mapping[str, Any]
    """The same for a phone: a small picture with readable words, not a shrunken one."""
    table: Table
    legend: tuple[tuple[Swatch, str], ...] = ()
    """What the colours mean, in words."""
    pasted: bool = False
    """A pasted text report, which has no pictures, shows its table."""
    table_follows: bool = False
    """The table after it says the same and more: a form without pictures leaves it out."""


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it stands: a configuration, the output of a program."""

    kind: ClassVar[str] = "code"
    text: str
    caption: str = ""
    pasted: bool = False
    """A pasted text report shows it too."""


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Names and what they are set to."""

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
    """What is known of it: `expected, grade 2`, `not judged`."""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class HitList:
    """What one system answered."""

    title: str
    note: str
    """What became of the query: `first relevant result at rank 3`, `timeout: no answer in 30 s`."""
    hits: tuple[HitLine, ...]


@dataclass(frozen=True, slots=True)
class HitLists:
    """The answers of the systems to one query, side by side."""

    kind: ClassVar[str] = "hit lists"
    expected: str
    """What the query should find."""
    lists: tuple[HitList, ...]


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks behind a line that opens them. A pasted text report leaves them out, unless they are to be pasted."""

    kind: ClassVar[str] = "details"
    summary: str
    blocks: tuple[Block, ...]
    is_open: bool = False
    pasted: bool = False


Block = Paragraph | Bullets | Table | Figure | Code | KeyValues | HitLists | Details


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    name: str
    """For links: lower case, no blanks."""
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A number of the verdict, with its name."""

    label: str
    text: str
    note: str = ""
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class VerdictBlock:
    """What the report says, first."""

    name: str
    sentence: str
    tone: Tone
    facts: tuple[Fact, ...] = ()
    reasons: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: tuple[str, ...]
    """Lines under the title: what was compared, on what, by which rules."""
    sections: tuple[Section, ...]
    tidy: Callable[[], Table]
    """The result as one plain table, for CSV: one row a query and measure."""
    payload: Callable[[], Payload]
    """The machine result: what `--format json` prints."""
    record: Callable[[], Payload] | None = None
    """Makes what a saved .json file holds: the payload, and every query with its hits. Built on demand."""
    verdict: VerdictBlock | None = None
    stamp: str = ""
    """`PILOT_STAMP`, or nothing."""
    made_by: str = ""
    """Program and version."""
