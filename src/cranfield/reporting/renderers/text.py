"""A Document as plain text: columns lined up, no colour, no control character, about 100 columns wide.

Made for pasting into a ticket. Pictures, details and hit lists are left to the other forms; where a picture's numbers
belong in a ticket, its table stands for it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from cranfield.reporting.document import (
    Block,
    Bullets,
    Code,
    Column,
    Details,
    Document,
    Figure,
    KeyValues,
    Paragraph,
    Section,
    Table,
    VerdictBlock,
)
from cranfield.words import printable, shorten_to, width

LINE = 100
MOST_HEADING_LINES = 8
NARROWEST = 12
"""A column of text is not cut below this."""
NARROWEST_WRAPPED = 24
"""A column of text that folds is not narrowed below this while headings can fold."""
NARROWEST_FIRST = 36
"""The first column is cut last."""
GAP = "  "
LEFT_OUT = "Figures, result lists and details are in the HTML report."


def render_text(document: Document) -> str:
    """Verdict first, then the sections in order."""
    lines = [*_underlined(printable(document.title), "=")]
    lines += [part for line in document.subtitle for part in _wrapped(line)]
    if document.stamp:
        lines += ["", f"*** {document.stamp} ***"]
    if document.verdict is not None:
        lines += ["", *_verdict(document.verdict)]
    for section in document.sections:
        lines += _section(section)
    if any(not _block(block) for section in document.sections for block in section.blocks):
        lines += ["", *_wrapped(LEFT_OUT)]
    if document.stamp:
        lines += ["", f"*** {document.stamp} ***"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _verdict(verdict: VerdictBlock) -> Iterator[str]:
    yield f"VERDICT: {verdict.name}"
    yield from _wrapped(verdict.sentence)
    for reason in verdict.reasons:
        yield from _wrapped(reason, "- ")
    if verdict.caveats:
        yield "Caveats:"
        for caveat in verdict.caveats:
            yield from _wrapped(caveat, "- ")
    if verdict.disagreements:
        yield "But:"
        for sentence in verdict.disagreements:
            yield from _wrapped(sentence, "- ")


def _section(section: Section) -> list[str]:
    """Heading and blocks; nothing at all where all blocks are left out."""
    lines: list[str] = []
    for block in section.blocks:
        if written := _block(block):
            lines += ["", *written]
    return ["", *_underlined(printable(section.title), "-"), *lines[1:]] if lines else []


def _block(block: Block) -> list[str]:
    if isinstance(block, Details):
        if not block.in_text:
            return []
        return [line for inner in block.blocks for line in ("", *_block(inner))][1:]
    write = _WRITERS.get(block.kind)
    return [] if write is None else list(write(block))


def _paragraph(block: Paragraph) -> Iterator[str]:
    yield from _wrapped(block.text)


def _bullets(block: Bullets) -> Iterator[str]:
    for item in block.items:
        yield from _wrapped(item, "- ")


def _key_values(block: KeyValues) -> Iterator[str]:
    if block.title:
        yield f"{printable(block.title)}:"
    labels = [printable(label) for label, _ in block.items]
    room = min(max(map(width, labels), default=0), LINE // 2)
    for label, (_, value) in zip(labels, block.items, strict=True):
        yield from _wrapped(value, _padded(shorten_to(label, room), room) + GAP)


def _table(table: Table) -> Iterator[str]:
    shown = table.rows if table.shown is None else table.rows[: table.shown]
    rows = [[column.text(cell) for column, cell in zip(table.columns, row, strict=True)] for row in shown]
    footer = None
    if table.footer is not None:
        footer = [column.text(cell) for column, cell in zip(table.columns, table.footer, strict=True)]
    everything = [*rows, *([footer] if footer else [])]
    widths = _widths(table.columns, everything, wrap=table.wrap)
    if not table.wrap and _are_cut_alike(rows, widths):
        yield from _table(replace(table, wrap=True))
        return
    yield from _wrapped(table.caption + ":")
    headings = [_folded_heading(column, room) for column, room in zip(table.columns, widths, strict=True)]
    for part in _parts(table.columns, widths):
        yield from _lines(table, headings, rows, footer, widths, part)
    if len(shown) < len(table.rows):
        yield f"... and {len(table.rows) - len(shown)} more"


def _folded_heading(column: Column, room: int) -> list[str]:
    return textwrap.wrap(column.title, max(room, 1), break_long_words=False) or [""]


def _are_cut_alike(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> bool:
    """Whether different cells of a column would be the same text once they are cut."""
    columns = [{row[place] for row in rows} for place in range(len(widths))]
    return any(
        len({shorten_to(cell, room) for cell in cells}) < len(cells)
        for cells, room in zip(columns, widths, strict=True)
    )


def _figure(figure: Figure) -> Iterator[str]:
    if figure.in_text:
        yield from _table(figure.table)


def _code(block: Code) -> Iterator[str]:
    if not block.in_text:
        return
    if block.caption:
        yield from _wrapped(block.caption + ":")
    yield from (f"  {printable(line)}" for line in block.text.splitlines())


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, wrap: bool = False) -> list[int]:
    """Room of each column; where a line would be too long, headings fold, then columns of text give way.

    Args:
        columns: of the table.
        rows: cells as text.
        wrap: cells of text fold; they give way before headings do, down to `NARROWEST_WRAPPED`.
    """
    cells = [max((width(row[place]) for row in rows), default=0) for place in range(len(columns))]
    widths = [max(width(column.title), room) for column, room in zip(columns, cells, strict=True)]
    if wrap:
        _narrow_texts(columns, widths, NARROWEST_WRAPPED)
    for most_lines in range(2, MOST_HEADING_LINES + 1):
        _fold_headings(columns, cells, widths, most_lines)
    _narrow_texts(columns, widths, NARROWEST)
    return widths


def _fold_headings(columns: Sequence[Column], cells: Sequence[int], widths: list[int], most_lines: int) -> None:
    """Fold headings until the line fits, those first that give most room; none to more than `most_lines` lines."""
    if _excess(widths) <= 0:
        return
    words = [max(room, *map(width, column.title.split() or [""])) for column, room in zip(columns, cells, strict=True)]
    folded = [
        next((room for room in range(least, now) if len(_folded_heading(column, room)) <= most_lines), now)
        for column, least, now in zip(columns, words, widths, strict=True)
    ]
    for place in sorted(range(len(columns)), key=lambda place: folded[place] - widths[place]):
        room = max(folded[place], widths[place] - max(0, _excess(widths)))
        lines = map(width, _folded_heading(columns[place], room))
        widths[place] = min(room, max(cells[place], *lines))


def _excess(widths: Sequence[int]) -> int:
    """Columns by which a line is too long."""
    return sum(widths) + len(GAP) * (len(widths) - 1) - LINE


def _narrow_texts(columns: Sequence[Column], widths: list[int], narrowest: int) -> None:
    """Narrow the widest columns of text until the line fits, none below `narrowest`."""
    for place, column in enumerate(columns):
        if not column.is_numeric:
            widths[place] = min(widths[place], LINE)  # at once: a name may be a megabyte long
    while _excess(widths) > 0:
        can_give = [
            place
            for place, column in enumerate(columns)
            if not column.is_numeric and widths[place] > (narrowest if place else NARROWEST_FIRST)
        ]
        if not can_give:
            break
        widths[max(can_give, key=lambda place: widths[place])] -= 1


def _parts(columns: Sequence[Column], widths: Sequence[int]) -> list[list[int]]:
    """Columns that fit in a line; those that do not follow below, behind the columns of text that come first again."""
    names = next((place for place, column in enumerate(columns) if column.is_numeric), 1) or 1
    while names > 1 and sum(widths[:names]) > LINE // 2:
        names -= 1
    first = list(range(names))
    room = sum(widths[:names]) + len(GAP) * (names - 1)
    parts, used = [list(first)], room
    for place in range(names, len(widths)):
        if used + len(GAP) + widths[place] > LINE and len(parts[-1]) > names:
            parts.append(list(first))
            used = room
        parts[-1].append(place)
        used += len(GAP) + widths[place]
    return parts


def _lines(
    table: Table,
    headings: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    footer: Sequence[str] | None,
    widths: Sequence[int],
    part: Sequence[int],
) -> Iterator[str]:
    def line(cells: Sequence[str]) -> str:
        return GAP.join(
            _padded(shorten_to(cells[place], widths[place]), widths[place], at_right=table.columns[place].is_numeric)
            for place in part
        )

    rule = "-" * (sum(widths[place] for place in part) + len(GAP) * (len(part) - 1))
    tallest = max(len(headings[place]) for place in part)
    stacked = [[""] * (tallest - len(words)) + list(words) for words in headings]
    for level in range(tallest):
        yield line([words[level] if level < len(words) else "" for words in stacked])
    yield rule
    for row in rows:
        yield from map(line, _folded(row, widths) if table.wrap else [row])
    if footer is not None:
        yield rule
        yield line(footer)


def _folded(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row over as many lines as its longest cell takes."""
    cells = [textwrap.wrap(cell, room, break_on_hyphens=False) for cell, room in zip(row, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def _padded(text: str, room: int, *, at_right: bool = False) -> str:
    blank = " " * (room - width(text))
    return blank + text if at_right else text + blank


def _wrapped(text: str, lead: str = "") -> list[str]:
    return textwrap.wrap(
        printable(text),
        LINE,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [lead]


def _underlined(title: str, mark: str) -> tuple[str, str]:
    return title, mark * width(title)


_WRITERS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    Paragraph.kind: _paragraph,
    Bullets.kind: _bullets,
    KeyValues.kind: _key_values,
    Table.kind: _table,
    Figure.kind: _figure,
    Code.kind: _code,
}
"""Writers of the blocks in plain text; other blocks are left out."""
