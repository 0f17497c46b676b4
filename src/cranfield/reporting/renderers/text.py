"""A document as plain text, whole or in its short form, with tables as wide as the terminal.

Made for pasting into a ticket. Pictures, details and hit lists are left to the other forms; where a picture's numbers
belong in a ticket, its table stands for it.

The short form is the answer on one screen of a terminal, or in a few lines of Markdown: verdict, primary figures, where it changed
and what to doubt. What does not fit is counted, with the way to see it: nothing is left out without a word.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, ClassVar

from cranfield.base.words import capitalised, count_noun, printable, shorten_to, width
from cranfield.reporting.document import (
    VOID_STAMP,
    Block,
    Brief,
    Bullets,
    Chart,
    Code,
    Column,
    Details,
    Document,
    KeyValues,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.renderers.markdown import escape, paragraph, table_markdown

MAX_HEADING_LINES = 8
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
    for most_lines in range(2, MAX_HEADING_LINES + 1):
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


LINE = 100
LEFT_OUT = "Figures, result lists and details are in the HTML report."


def render_text(document: Document, line: int = LINE) -> str:
    """Verdict first, then the sections in order.

    Args:
        document: the report.
        line: columns of a line.
    """
    return "\n".join(each.rstrip() for each in _Writer(line).document(document)) + "\n"


_COMMAND = re.compile(r"`cranfield [^`]*`")
_KEPT = "\ue000"
"""For a space at which no line ends."""


def wrapped(text: str, line: int, lead: str = "") -> list[str]:
    """Text in lines of so many columns, the first behind a lead, the others indented as far. A command stays in one line."""
    lines = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT), printable(text)),
        line,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [each.replace(_KEPT, " ") for each in lines] or [lead]


class _Writer:
    """Writes lines of a number of columns."""

    def __init__(self, line: int) -> None:
        self.line = line

    def document(self, document: Document) -> Iterator[str]:
        yield from _underlined(printable(document.title), "=")
        for each in document.subtitle:
            yield from self._wrapped(each)
        if document.stamp:
            yield from ("", f"*** {document.stamp} ***")
        if document.verdict is not None:
            yield from ("", *self._verdict(document.verdict))
        for section in document.sections:
            yield from self._section(section)
        if any(not self._block(block) for section in document.sections for block in section.blocks):
            yield from ("", *self._wrapped(LEFT_OUT))
        if document.stamp:
            yield from ("", f"*** {document.stamp} ***")

    def _wrapped(self, text: str, lead: str = "") -> list[str]:
        return wrapped(text, self.line, lead)

    def _verdict(self, verdict: VerdictBlock) -> Iterator[str]:
        yield f"VERDICT: {verdict.name}"
        yield from self._wrapped(verdict.sentence)
        for reason in verdict.reasons:
            yield from self._wrapped(reason, "- ")
        if verdict.caveats:
            yield "Caveats:"
            for caveat in verdict.caveats:
                yield from self._wrapped(caveat, "- ")
        if verdict.disagreements:
            yield "But:"
            for sentence in verdict.disagreements:
                yield from self._wrapped(sentence, "- ")

    def _section(self, section: Section) -> list[str]:
        """Heading and blocks; nothing at all where all blocks are left out."""
        lines: list[str] = []
        for block in section.blocks:
            if written := self._block(block):
                lines += ["", *written]
        return ["", *_underlined(printable(section.title), "-"), *lines[1:]] if lines else []

    def _block(self, block: Block) -> list[str]:
        if isinstance(block, Details):
            if not block.in_text:
                return []
            return [line for inner in block.blocks for line in ("", *self._block(inner))][1:]
        write = self.WRITERS.get(block.kind)
        return [] if write is None else list(write(self, block))

    def _paragraph(self, block: Paragraph) -> Iterator[str]:
        yield from self._wrapped(block.text)

    def _bullets(self, block: Bullets) -> Iterator[str]:
        for item in block.items:
            yield from self._wrapped(item, "- ")

    def _key_values(self, block: KeyValues) -> Iterator[str]:
        if block.title:
            yield f"{printable(block.title)}:"
        labels = [printable(label) for label, _ in block.items]
        room = min(max(map(width, labels), default=0), self.line // 2)
        for label, (_, value) in zip(labels, block.items, strict=True):
            yield from self._wrapped(value, padded(shorten_to(label, room), room) + GAP)

    def _table(self, table: Table) -> Iterator[str]:
        yield from self._wrapped(table.caption + ":")
        yield from table_lines(table, self.line)

    def _figure(self, figure: Chart) -> Iterator[str]:
        if figure.in_text:
            yield from self._table(figure.table)

    def _code(self, block: Code) -> Iterator[str]:
        if not block.in_text:
            return
        if block.caption:
            yield from self._wrapped(block.caption + ":")
        yield from (f"  {printable(line)}" for line in block.text.splitlines())

    WRITERS: ClassVar[Mapping[str, Callable[[Any, Any], Iterator[str]]]] = {
        Paragraph.kind: _paragraph,
        Bullets.kind: _bullets,
        KeyValues.kind: _key_values,
        Table.kind: _table,
        Chart.kind: _figure,
        Code.kind: _code,
    }
    """Writers of the blocks in plain text; other blocks are left out."""


def _underlined(title: str, mark: str) -> tuple[str, str]:
    return title, mark * width(title)


COLUMNS = 80
MAX_LINES = 20
"""A terminal of 24 lines holds them with the names of the files written, the next step and the prompt."""
MAX_ROWS = 10
MIN_ROWS = 6
"""Where lines do not suffice: rows of the table that stay."""
MAX_SENTENCE_LINES, MAX_DOUBT_LINES, MAX_FINDING_LINES = 5, 3, 3
"""Most lines of the verdict's sentence, of a caveat, and of a finding."""
MAX_DOUBTS = 5
"""Caveats in Markdown."""


def render_brief(document: Document, *, line: int = COLUMNS, most: int = MAX_LINES, paint: Paint = no_colour) -> str:
    """The short form for a terminal.

    Args:
        document: the report.
        line: columns of a line.
        most: number of lines.
        paint: colours what has a tone.
    """
    brief = brief_of(document) or Brief()
    stamps = [each for each in document.stamps if each != VOID_STAMP or brief.table is not None]
    head = _head(document, stamps, line, paint)
    is_void = document.verdict is not None and document.verdict.tone == "void"
    most_each = MAX_SENTENCE_LINES if is_void else MAX_DOUBT_LINES
    wanted = len(_doubt(brief.doubts[0], line, most_each)) if brief.doubts else 0
    fitted, rows = _fitted(brief, line, most - len(head) - 1, wanted)
    body = _body(fitted, rows, line, paint)
    doubts, n_doubts = _doubts(brief.doubts, most - len(head) - len(body) - 1, line, most_each)
    lines = [*head, *body, *doubts, _rest(document, brief, fitted, rows, n_doubts, line)]
    return "\n".join(each.rstrip() for each in lines) + "\n"


def _fitted(brief: Brief, line: int, room: int, wanted: int) -> tuple[Brief, int]:
    """What is left beside `wanted` lines for the gravest caveat, and the number of rows: first rows give way, then changes.

    Args:
        brief: everything there is to say.
        line: columns of a line.
        room: lines of table, changes and caveats.
        wanted: lines of the gravest caveat.
    """
    rows = 0 if brief.table is None else min(len(brief.table.rows), MAX_ROWS)
    least = min(rows, MIN_ROWS)
    while rows > least and len(_body(brief, rows, line, no_colour)) + wanted > room:
        rows -= 1
    while len(brief.changes) > 1 and len(_body(brief, rows, line, no_colour)) + wanted > room:
        brief = replace(brief, changes=brief.changes[:-1])
    if len(_body(brief, rows, line, no_colour)) > room:
        brief = replace(brief, changes=())
    return brief, rows


def brief_of(document: Document) -> Brief | None:
    """What the short form says: the document's own; of another one with a verdict its first table and what limits the verdict."""
    if document.brief is not None:
        return document.brief()
    verdict = document.verdict
    return None if verdict is None else Brief(_first_table(document), doubts=verdict.limits())


def _first_table(document: Document) -> Table | None:
    return next((block for section in document.sections for block in section.blocks if isinstance(block, Table)), None)


def _head(document: Document, stamps: Sequence[str], line: int, paint: Paint) -> list[str]:
    """Title, what was measured, and the verdict."""
    about = printable("; ".join(document.subtitle))
    lines = [shorten_to(printable(document.title), line), *([shorten_to(about, line)] if about else [])]
    if stamps:
        lines += [paint(each, "void") for each in folded(f"*** {' · '.join(stamps)} ***", line)]
    if document.verdict is not None:
        verdict = document.verdict
        lines.append(paint(f"VERDICT: {verdict.name}", verdict.tone or "open"))
        lines += _cut(folded(verdict.sentence, line), MAX_SENTENCE_LINES, line)
    return lines


def _body(brief: Brief, rows: int, line: int, paint: Paint) -> list[str]:
    """The table and the queries that changed."""
    lines: list[str] = []
    if brief.table is not None and brief.table.rows:
        lines += ["", *table_lines(_first(brief.table, rows), line, paint, compact=True)]
    if brief.rules is not None:
        lines += ["", *table_lines(_first(brief.rules, MAX_ROWS), line, paint, compact=True)]
    for finding in brief.findings:
        lines += _cut(folded(finding, line), MAX_FINDING_LINES, line)
    return [*lines, *(shorten_to(printable(change), line) for change in brief.changes)]


def _first(table: Table, rows: int) -> Table:
    return replace(table, rows=table.rows[:rows], shown=None, wrap=False, footer=None)


def _doubts(doubts: Sequence[str], room: int, line: int, most: int) -> tuple[list[str], int]:
    """As many caveats as there is room for, each of `most` lines; and how many they are."""
    lines: list[str] = []
    for n, doubt in enumerate(doubts):
        written = _doubt(doubt, line, most)
        if len(lines) + len(written) > room:
            return (lines, n) if lines or room < 1 else (_cut(written, room, line), 1)
        lines += written
    return lines, len(doubts)


def folded(text: str, line: int, lead: str = "") -> list[str]:
    """Text in lines of so many columns, the first behind a lead; a word that is longer than a line, as of Chinese, folds inside."""
    room = line - len(lead)
    lines = [""]
    for word in printable(text).split():
        joined = f"{lines[-1]} {word}".strip()
        if width(joined) <= room:
            lines[-1] = joined
            continue
        lines.append("")
        for character in word:
            if width(lines[-1] + character) > room:
                lines.append("")
            lines[-1] += character
    found = [each for each in lines if each] or [""]
    return [f"{' ' * len(lead) if place else lead}{each}" for place, each in enumerate(found)]


def _doubt(doubt: str, line: int, most: int) -> list[str]:
    return _cut(folded(doubt, line, "! "), most, line)


def _cut(lines: list[str], most: int, line: int) -> list[str]:
    """The first lines; the last of them ends in an ellipsis where others follow."""
    if len(lines) <= most:
        return lines
    last = lines[most - 1].rstrip()
    if width(last) > line - len(" …"):
        words = last.rpartition(" ")[0]
        last = words if width(words) > line // 2 else shorten_to(last, line - len(" …")).rstrip("…")
    return [*lines[: most - 1], f"{last} …"]


def _rest(document: Document, brief: Brief, fitted: Brief, rows: int, n_doubts: int, line: int) -> str:
    """The last line: what is left out, and how to see it."""
    left = []
    n_rows = len(brief.table.rows) - rows if brief.table is not None else 0
    n_rows += max(0, len(brief.rules.rows) - MAX_ROWS) if brief.rules is not None else 0
    if n_rows:
        left.append(count_noun(n_rows, "rows"))
    if brief.table is not None and (n_columns := columns_left_out(_first(brief.table, rows), line)):
        left.append(count_noun(n_columns, "columns"))
    if len(brief.changes) > len(fitted.changes):
        left.append(count_noun(len(brief.changes) - len(fitted.changes), "lines"))
    if len(brief.doubts) > n_doubts:
        left.append(count_noun(len(brief.doubts) - n_doubts, "caveats"))
    left.append(count_noun(len(document.sections), "sections"))
    return f"--full prints everything: {', '.join(left)} more"


def render_brief_markdown(document: Document) -> str:
    """The short form for a changelog or a pull request; of a Document without one, its verdict and first section."""
    verdict, brief = document.verdict, brief_of(document) or Brief(_first_table(document))
    lines = [f"**{escape(document.title)}**"]
    if document.stamp:
        lines += ["", f"> **{escape(document.stamp)}**"]
    if verdict is not None:
        lines += ["", f"**{escape(capitalised(verdict.name))}.** {escape(verdict.sentence)}"]
    if document.subtitle:
        lines += ["", paragraph("; ".join(document.subtitle))]
    for table in (brief.table, brief.rules):
        if table is not None and table.rows:
            lines += ["", *table_markdown(_first(table, MAX_ROWS))]
            if len(table.rows) > MAX_ROWS:
                lines.append(f"… and {count_noun(len(table.rows) - MAX_ROWS, 'rows')} more")
    if brief.findings or brief.changes:
        lines += ["", *(f"- {paragraph(each)}" for each in (*brief.findings, *brief.changes))]
    if brief.doubts:
        lines += ["", "Caveats:", *(f"- {paragraph(doubt)}" for doubt in brief.doubts[:MAX_DOUBTS])]
        if len(brief.doubts) > MAX_DOUBTS:
            lines.append(f"- and {count_noun(len(brief.doubts) - MAX_DOUBTS, 'caveats')} more in the report")
    return "\n".join([*lines, "", escape(document.made_by)]) + "\n"
