"""A change of a table, or of lines of columns, made in the text that it was read from."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cranfield.formats.io.delimited import STRATUM, separator_of
from cranfield.formats.splice.parts import ALIASES, Edits, UnspliceableError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_NEEDS_QUOTES = re.compile(r'["\r\n]|^\s|\s$')
_WORD = re.compile(r"\S+")
_RESULT = re.compile(r"result\d*")
_OF_ROW = frozenset({"id", "query_id", "query", "query_text", "doc_id", "docid", "rater", "pattern", "keyword", "doc"})
"""Columns by which a row is known again, and their other names."""
_IDS = frozenset({"id", "query_id"})
_WORDS = frozenset({"query", "query_text", "keyword"})
"""Columns of the words of a query, which may change where it has an id."""
_OF_QUERY = frozenset({"id", "query_id", "query", "query_text", "keyword"})
_LARGE = 1e6
Layout = Literal["table", "columns"]
Content = tuple[tuple[str, str], ...]
"""Names and texts of the cells of a row that say something."""


@dataclass(slots=True, eq=False)
class _Row:
    start: int
    end: int
    """Its line break not included."""
    stop: int
    """Its line break included."""
    cells: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Rows:
    names: list[str]
    """Names of the columns, in lower case; `0`, `1`, … where there is no header."""
    header: _Row | None
    rows: list[_Row]
    separator: str

    def contents(self) -> list[Content]:
        """Every row by the names of its columns."""
        return [
            tuple((name, cell) for name, cell in zip(self.names, row.cells, strict=False) if cell) for row in self.rows
        ]


def splice_rows(text: str, old: str, new: str, layout: Layout) -> str:
    """The text with the rows that differ between two versions as the format writes them.

    Args:
        text: the file as it stands: other columns, another order, comments and quotes stay.
        old: what the format writes of the test set in the file.
        new: what it writes of the changed one.
        layout: cells apart by a separator, below a header; or words apart by blanks.

    Raises:
        UnspliceableError: a row that changed is not found in the text, or has no room there.
    """
    return _Patch(text, _parse(text, layout), layout).change(_parse(old, layout), _parse(new, layout))


def _parse(text: str, layout: Layout) -> _Rows:
    spans: list[_Row] = []
    position = 0
    head = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    quotes = layout == "table" and separator_of(head.encode("utf-8", "surrogatepass")) != "\t"
    while position < len(text):
        stop = _stop_of_row(text, position, quotes=quotes)
        line = text[position:stop]
        spans.append(_Row(position, position + len(line.rstrip("\r\n")), stop))
        position = stop
    filled = [row for row in spans if text[row.start : row.end].strip()]
    if layout == "columns":
        for row in filled:
            row.cells = _WORD.findall(text[row.start : row.end])
        return _Rows([str(n) for n in range(64)], None, filled, " ")
    while filled and text.startswith("#", filled[0].start):
        del filled[0]
    if not filled:
        raise UnspliceableError
    header = text[filled[0].start : filled[0].end]
    separator = separator_of(header.encode("utf-8", "surrogatepass"))
    spaced = separator != "\t" and f"{separator} " in header
    for row in filled:
        row.cells = _cells(text[row.start : row.end], separator, spaced=spaced)
    names = [name.strip().lower() for name in filled[0].cells]
    return _Rows(names, filled[0], filled[1:], separator + (" " if spaced else ""))


def _stop_of_row(text: str, start: int, *, quotes: bool) -> int:
    """Where a row ends, breaks within quotes passed over."""
    position = start
    while True:
        found = _LINE.match(text, position)
        position = found.end() if found else len(text)
        if not quotes or text.count('"', start, position) % 2 == 0 or position >= len(text):
            return position


def _cells(line: str, separator: str, *, spaced: bool) -> list[str]:
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(
        io.StringIO(line, newline=""), delimiter=separator, quoting=quoting, strict=True, skipinitialspace=spaced
    )
    try:
        return next(reader)
    except (csv.Error, StopIteration):
        raise UnspliceableError from None


class _Patch:
    def __init__(self, text: str, there: _Rows, layout: Layout) -> None:
        self.text = text
        self.there = there
        self.layout = layout
        self.edits = Edits()
        self.added_names: list[str] = []
        self.spelling: Mapping[str, str] = {}
        self.width = len(there.names)
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        sample = there.rows[-1] if there.rows else there.header
        written = "" if sample is None else text[sample.start : sample.end]
        self.quotes_all = layout == "table" and bool(sample and sample.cells) and _quoted_all(written, there.separator)
        words = list(_WORD.finditer(written))
        self.blanks = [written[a.end() : b.start()] for a, b in itertools.pairwise(words)]

    def change(self, old: _Rows, new: _Rows) -> str:
        """The text with the change in it."""
        before, after = old.contents(), new.contents()
        header = new.header.cells if new.header is not None else []
        self.spelling = dict(zip(new.names, map(str.strip, header), strict=False))
        placed = self._placed(before)
        gone = Counter(before) - Counter(after)
        kept = Counter(before) & Counter(after)
        places: dict[Content, list[int]] = {}
        for content, place in zip(before, placed, strict=True):
            places.setdefault(content, []).append(place)
        left = [(content, place) for content, n in gone.items() for place in places[content][-n:]]
        self.width = self._width(old.names, new.names, [place for _, place in left])
        anchor = -1
        rewritten: list[tuple[int, Content, Content]] = []
        inserted: list[tuple[int, Content]] = []
        for content in after:
            if kept[content] > 0:
                kept[content] -= 1
                anchor = places[content].pop(0)
            elif (twin := next((pair for pair in left if _of_same_row(pair[0], content)), None)) is not None:
                left.remove(twin)
                anchor = twin[1]
                rewritten.append((anchor, twin[0], content))
            else:
                inserted.append((anchor, content))
        for place, was, content in rewritten:
            self._rewrite(place, was, content)
        for after_row, content in inserted:
            self._insert(after_row if after_row != anchor else self._last(content, anchor), content)
        self._delete_all(sorted(place for _, place in left))
        self._head()
        return self.edits.applied(self.text)

    def _delete_all(self, places: Sequence[int]) -> None:
        first = 0
        for place in places:
            row = self.there.rows[place]
            at_top = row.start == first  # nothing is left above it
            first = row.stop if at_top else first
            self._delete(row, at_top=at_top)

    def _last(self, content: Content, anchor: int) -> int:
        """Where a row goes that no old one follows: after the last of its query, else at the end."""
        wanted = _part_of(content, _OF_QUERY)
        names = self._columns(name for name, _ in wanted) if self.layout == "table" else {}
        if self.layout == "columns":
            same = anchor >= 0 and content and self.there.rows[anchor].cells[:1] == [content[0][1]]
            return anchor if same else len(self.there.rows) - 1
        found = [
            place
            for place, row in enumerate(self.there.rows)
            if wanted and all(name in names and _cell(row, names[name]) == cell for name, cell in wanted)
        ]
        return found[-1] if found else len(self.there.rows) - 1

    def _placed(self, contents: Sequence[Content]) -> list[int]:
        """The row of the text that each written row is."""
        table: dict[tuple[str, ...], list[int]] = {}
        if self.layout == "columns":
            for place, row in enumerate(self.there.rows):
                table.setdefault(tuple(map(_plain, row.cells)), []).append(place)
            keys = [tuple(_plain(cell) for _, cell in content) for content in contents]
        else:
            names = {name for content in contents for name, _ in content if name in _OF_ROW}
            columns = self._columns(sorted(names))
            wanted = [name for name in sorted(names) if name in columns]
            for place, row in enumerate(self.there.rows):
                table.setdefault(tuple(_cell(row, columns[name]) for name in wanted), []).append(place)
            keys = [tuple(dict(content).get(name, "") for name in wanted) for content in contents]
        for found in table.values():
            found.reverse()
        try:
            return [table[key].pop() for key in keys]
        except (KeyError, IndexError):
            raise UnspliceableError from None

    def _columns(self, names: Iterable[str]) -> dict[str, int]:
        """Written name of a column to its place in the text."""
        there = [*self.there.names, *self.added_names]
        found: dict[str, int] = {}
        for name in names:
            others = [name, name.removeprefix(STRATUM)]
            others += [other for group in ALIASES if name in group for other in sorted(group)]
            place = next((there.index(other) for other in others if other in there), None)
            if place is not None:
                found[name] = place
        return found

    def _room_for(self, name: str) -> int:
        """Place of a column, made at the end where there is none."""
        columns = self._columns([name])
        if name not in columns:
            self.added_names.append(name)
            return len(self.there.names) + len(self.added_names) - 1
        return columns[name]

    def _cells_of(self, content: Content) -> list[str]:
        if self.layout == "columns":
            return [cell for _, cell in content]
        placed = {self._room_for(name): cell for name, cell in content}
        n = max([self.width - 1, *placed]) + 1
        return [placed.get(place, "") for place in range(n)]

    def _row_text(self, cells: Sequence[str]) -> str:
        if self.layout == "columns":
            blanks = [*self.blanks, *[self.blanks[-1] if self.blanks else " "] * len(cells)]
            return "".join(cell + blank for cell, blank in zip(cells[:-1], blanks, strict=False)) + cells[-1]
        return self.there.separator.join(map(self._quoted, cells))

    def _quoted(self, cell: str) -> str:
        separator = self.there.separator[0]
        if separator == "\t":
            if re.search("[\t\r\n]", cell):
                raise UnspliceableError
            return cell
        if self.quotes_all or _NEEDS_QUOTES.search(cell) or separator in cell:
            return '"' + cell.replace('"', '""') + '"'
        return cell

    def _insert(self, after: int, content: Content) -> None:
        row = self.there.rows[after] if after >= 0 else self.there.header
        written = self._row_text(self._cells_of(content))
        if row is None:
            self.edits.add(0, 0, written + self.line_end)
        else:
            self.edits.add(row.end, row.end, self.line_end + written)

    def _delete(self, row: _Row, *, at_top: bool) -> None:
        if at_top:
            self.edits.add(row.start, row.stop, "")
        else:
            start = row.start - (2 if self.text.startswith("\r\n", row.start - 2) else 1)
            self.edits.add(start, row.end, "")

    def _rewrite(self, place: int, old: Content, new: Content) -> None:
        """Change the cells of a row that differ."""
        row = self.there.rows[place]
        before, after = dict(old), dict(new)
        cells = [*row.cells]
        written = self._written_cells(row)
        for name in dict.fromkeys([*before, *after]):
            if before.get(name, "") != after.get(name, ""):
                column = int(name) if self.layout == "columns" else self._room_for(name)
                while len(cells) <= column:
                    cells.append("")
                    written.append(self._quoted("") if not self.quotes_all else "")
                cells[column] = after.get(name, "")
                written[column] = cells[column] if self.layout == "columns" else self._quoted(cells[column])
        while len(written) > len(row.cells) and written[-1] == "":
            written.pop()
        self.edits.add(row.start, row.end, self._joined(row, self._cut(written)))

    def _written_cells(self, row: _Row) -> list[str]:
        """The cells of a row with their quotes."""
        line = self.text[row.start : row.end]
        if self.layout == "columns":
            return row.cells[:]
        pieces, start, quoted = [], 0, False
        for position, char in enumerate(line):
            if char == '"' and self.there.separator[0] != "\t":
                quoted = not quoted
            elif char == self.there.separator[0] and not quoted:
                pieces.append(line[start:position])
                start = position + 1
        return [*pieces, line[start:]]

    def _joined(self, row: _Row, written: Sequence[str]) -> str:
        line = self.text[row.start : row.end]
        if self.layout == "table":
            return self.there.separator[0].join(written)
        words = list(_WORD.finditer(line))
        if len(words) != len(written):
            raise UnspliceableError
        pieces, position = [], 0
        for word, cell in zip(words, written, strict=True):
            pieces += [line[position : word.start()], cell]
            position = word.end()
        return "".join([*pieces, line[position:]])

    def _head(self) -> None:
        """Add the names of new columns to the header, and take out those of columns that go."""
        header = self.there.header
        if header is not None and self.width < len(self.there.names):
            self.edits.add(header.start, header.end, self._joined(header, self._cut(self._written_cells(header))))
        if self.added_names and header is not None:
            separator = self.there.separator
            names = "".join(separator + self._quoted(self.spelling.get(name, name)) for name in self.added_names)
            self.edits.add(header.end, header.end, names)

    def _width(self, old: Sequence[str], new: Sequence[str], gone: Iterable[int]) -> int:
        """Columns that stay: a last one goes where it is not written any more, and no row that stays has a cell there."""
        width, needed = len(self.there.names), self._columns(new)
        if self.layout == "table" and len(needed) == len(set(new)):
            unused = set(self._columns(set(old) - set(new)).values()) - set(needed.values())
            places = set(gone)
            kept = max((len(row.cells) for n, row in enumerate(self.there.rows) if n not in places), default=0)
            while width - 1 in unused and width > kept:
                width -= 1
        return width

    def _cut(self, cells: list[str]) -> list[str]:
        return cells[: self.width] if self.width < len(self.there.names) else cells


def _cell(row: _Row, place: int) -> str:
    return row.cells[place] if place < len(row.cells) else ""


def _plain(cell: str) -> str:
    """A number without what does not change it."""
    try:
        number = float(cell)
    except ValueError:
        return cell
    return f"{number:g}" if cell[:1] in "+-.123456789" and abs(number) < _LARGE else cell


def _quoted_all(line: str, separator: str) -> bool:
    cells = line.split(separator)
    return all(cell.startswith('"') and cell.endswith('"') and len(cell) > 1 for cell in cells)


def _part_of(content: Content, names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, cell) for name, cell in content if name in names)


def _of_same_row(old: Content, new: Content) -> bool:
    """Whether two rows are the same one, changed."""
    if old and old[0][0] == "0":  # columns: all but the value, which is the last or the first
        return len(old) == len(new) and (old[:-1] == new[:-1] or old[1:] == new[1:])
    names = _OF_ROW - _WORDS if _part_of(old, _IDS) else _OF_ROW
    known = _part_of(old, names)
    return bool(known) and known == _part_of(new, names)
