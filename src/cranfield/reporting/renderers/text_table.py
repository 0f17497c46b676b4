"""A table as plain text: columns lined up in lines of so many columns of the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from cranfield.reporting.document import Column, Table, Tone, TonedCell
from cranfield.words import shorten_to, width

MOST_HEADING_LINES = 8
NARROWEST = 12
"""A column of text is not cut below this."""
NARROWEST_WRAPPED = 24
"""A column of text that folds is not narrowed below this while headings can fold."""
NARROWEST_FIRST = 36
"""The first column is cut last."""
GAP = "  "
Paint = Callable[[str, Tone], str]
"""Text in the colour of a tone, as many columns wide."""


def no_colour(text: str, tone: Tone) -> str:  # noqa: ARG001 - a Paint
    """Text as it is."""
    return text


def table_lines(table: Table, line: int, paint: Paint = no_colour, *, compact: bool = False) -> Iterator[str]:
    """Headings, rule, rows and footer, and the number of rows left out; without the caption.

    Args:
        table: to write.
        line: columns of a line.
        paint: gives cells with a tone their colour.
        compact: without the rule, a line a row: no cell folds, and columns that do not fit are left out.
    """
    shown = table.rows if table.shown is None else table.rows[: table.shown]
    rows = [[column.text(cell) for column, cell in zip(table.columns, row, strict=True)] for row in shown]
    footer = None
    if table.footer is not None:
        footer = [column.text(cell) for column, cell in zip(table.columns, table.footer, strict=True)]
    everything = [*rows, *([footer] if footer else [])]
    widths = _widths(table.columns, everything, line, wrap=table.wrap)
    if not table.wrap and not compact and _are_cut_alike(rows, widths):
        yield from table_lines(replace(table, wrap=True), line, paint)
        return
    headings = [_folded_heading(column, room) for column, room in zip(table.columns, widths, strict=True)]
    tones = [[cell.tone if isinstance(cell, TonedCell) else "" for cell in row] for row in shown]
    parts = _parts(table.columns, widths, line)
    for part in parts[:1] if compact else parts:
        written = _lines(table, headings, rows, tones, footer, widths, part, paint)
        yield from (each for each in written if not compact or each.strip("-"))
    if len(shown) < len(table.rows):
        yield f"... and {len(table.rows) - len(shown)} more"


def columns_left_out(table: Table, line: int) -> int:
    """How many columns of a compact table do not fit in a line."""
    rows = [[column.text(cell) for column, cell in zip(table.columns, row, strict=True)] for row in table.rows]
    widths = _widths(table.columns, rows, line, wrap=table.wrap)
    return len(table.columns) - len(_parts(table.columns, widths, line)[0])


def _folded_heading(column: Column, room: int) -> list[str]:
    return textwrap.wrap(column.title, max(room, 1), break_long_words=False) or [""]


def _are_cut_alike(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> bool:
    """Whether different cells of a column would be the same text once they are cut."""
    columns = [{row[place] for row in rows} for place in range(len(widths))]
    return any(
        len({shorten_to(cell, room) for cell in cells}) < len(cells)
        for cells, room in zip(columns, widths, strict=True)
    )


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], line: int, *, wrap: bool = False) -> list[int]:
    """Room of each column; where a line would be too long, headings fold, then columns of text give way.

    Args:
        columns: of the table.
        rows: cells as text.
        line: columns of a line.
        wrap: cells of text fold; they give way before headings do, down to `NARROWEST_WRAPPED`.
    """
    cells = [max((width(row[place]) for row in rows), default=0) for place in range(len(columns))]
    widths = [max(width(column.title), room) for column, room in zip(columns, cells, strict=True)]
    if wrap:
        _narrow_texts(columns, widths, NARROWEST_WRAPPED, line)
    for most_lines in range(2, MOST_HEADING_LINES + 1):
        _fold_headings(columns, cells, widths, most_lines, line)
    _narrow_texts(columns, widths, NARROWEST, line)
    return widths


def _fold_headings(
    columns: Sequence[Column], cells: Sequence[int], widths: list[int], most_lines: int, line: int
) -> None:
    """Fold headings until the line fits, those first that give most room; none to more than `most_lines` lines."""
    if _excess(widths, line) <= 0:
        return
    words = [max(room, *map(width, column.title.split() or [""])) for column, room in zip(columns, cells, strict=True)]
    folded = [
        next((room for room in range(least, now) if len(_folded_heading(column, room)) <= most_lines), now)
        for column, least, now in zip(columns, words, widths, strict=True)
    ]
    for place in sorted(range(len(columns)), key=lambda place: folded[place] - widths[place]):
        room = max(folded[place], widths[place] - max(0, _excess(widths, line)))
        lines = map(width, _folded_heading(columns[place], room))
        widths[place] = min(room, max(cells[place], *lines))


def _excess(widths: Sequence[int], line: int) -> int:
    """Columns by which a line is too long."""
    return sum(widths) + len(GAP) * (len(widths) - 1) - line


def _narrow_texts(columns: Sequence[Column], widths: list[int], narrowest: int, line: int) -> None:
    """Narrow the widest columns of text until the line fits, none below `narrowest`."""
    for place, column in enumerate(columns):
        if not column.is_numeric:
            widths[place] = min(widths[place], line)  # at once: a name may be a megabyte long
    while _excess(widths, line) > 0:
        can_give = [
            place
            for place, column in enumerate(columns)
            if not column.is_numeric and widths[place] > (narrowest if place else NARROWEST_FIRST)
        ]
        if not can_give:
            break
        widths[max(can_give, key=lambda place: widths[place])] -= 1


def _parts(columns: Sequence[Column], widths: Sequence[int], line: int) -> list[list[int]]:
    """Columns that fit in a line; those that do not follow below, behind the columns of text that come first again."""
    names = next((place for place, column in enumerate(columns) if column.is_numeric), 1) or 1
    while names > 1 and sum(widths[:names]) > line // 2:
        names -= 1
    first = list(range(names))
    room = sum(widths[:names]) + len(GAP) * (names - 1)
    parts, used = [list(first)], room
    for place in range(names, len(widths)):
        if used + len(GAP) + widths[place] > line and len(parts[-1]) > names:
            parts.append(list(first))
            used = room
        parts[-1].append(place)
        used += len(GAP) + widths[place]
    return parts


def _lines(
    table: Table,
    headings: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    tones: Sequence[Sequence[Tone]],
    footer: Sequence[str] | None,
    widths: Sequence[int],
    part: Sequence[int],
    paint: Paint,
) -> Iterator[str]:
    def line(cells: Sequence[str], tones: Sequence[Tone] | None = None) -> str:
        texts = [
            padded(shorten_to(cells[place], widths[place]), widths[place], at_right=table.columns[place].is_numeric)
            for place in part
        ]
        if tones is not None:
            texts = [paint(text, tones[place]) for text, place in zip(texts, part, strict=True)]
        return GAP.join(texts)

    rule = "-" * (sum(widths[place] for place in part) + len(GAP) * (len(part) - 1))
    tallest = max(len(headings[place]) for place in part)
    stacked = [[""] * (tallest - len(words)) + list(words) for words in headings]
    for level in range(tallest):
        yield line([words[level] if level < len(words) else "" for words in stacked])
    yield rule
    for row, of_row in zip(rows, tones, strict=True):
        for cells in _folded(row, widths) if table.wrap else [row]:
            yield line(cells, of_row)
    if footer is not None:
        yield rule
        yield line(footer)


def _folded(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    """A row over as many lines as its longest cell takes."""
    cells = [textwrap.wrap(cell, room, break_on_hyphens=False) for cell, room in zip(row, widths, strict=True)]
    yield from zip_longest(*cells, fillvalue="")


def padded(text: str, room: int, *, at_right: bool = False) -> str:
    """Text with blanks up to so many columns."""
    blank = " " * (room - width(text))
    return blank + text if at_right else text + blank
