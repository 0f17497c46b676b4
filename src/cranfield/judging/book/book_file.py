"""A whole book as a file: JSON Lines, a header and a line for each query, item, event, judgment and call of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cranfield.base.errors import InputError, ProblemList
from cranfield.base.words import or_list
from cranfield.books.store.book_records import KINDS, BookDump, BookHeader, BookLine
from cranfield.formats.io.files import MOST_RECORD_BYTES, bounded_lines, opened, shown, write_text
from cranfield.formats.io.json_text import json_objects

BOOK_KEY = "cranfield_book"


class BookFileError(InputError):
    """A file that is no book."""


def write_book(dump: BookDump, path: Path) -> None:
    """Write a book; the same book gives the same bytes. Readable by its owner alone."""
    lines = [_line(dump.book)]
    lines += [_line(record, kind) for kind in KINDS for record in getattr(dump, kind)]
    write_text(path, lines, errors="surrogatepass", private=True)


def _line(record: BookLine, kind: str = "") -> str:
    values = record.model_dump(mode="json", exclude_none=True)
    return json.dumps({kind: values} if kind else values, ensure_ascii=False, separators=(",", ":")) + "\n"


def is_book(path: Path) -> bool:
    """Whether the first line is that of a book."""
    with opened(path, BookFileError) as stream:
        return f'"{BOOK_KEY}"'.encode() in stream.read(100)


def read_book(path: Path) -> BookDump:
    """Read a book.

    Raises:
        BookFileError: with every line that is malformed.
    """
    problems = ProblemList(BookFileError)
    header: BookHeader | None = None
    found: dict[str, list[Any]] = {kind: [] for kind in KINDS}
    with opened(path, BookFileError) as stream:
        lines = bounded_lines(stream, path, BookFileError, MOST_RECORD_BYTES)
        for line, values in json_objects(lines, shown(path), problems):
            kind = "" if header is None else next(iter(values), "")
            if header is not None and (len(values) != 1 or kind not in KINDS):
                problems.add(
                    "not a line of a book", path=shown(path), line=line, expected=f"one of {or_list(list(KINDS))}"
                )
                continue
            model = KINDS.get(kind, BookHeader)
            try:
                record = model.model_validate(values[kind] if kind else values)
            except ValidationError as error:
                _report(problems, error, path, line)
                if header is None:
                    break
                continue
            if isinstance(record, BookHeader):
                header = record
            else:
                found[kind].append(record)
    problems.raise_if_any()
    if header is None:
        raise BookFileError(
            "not a book: the file is empty", path=shown(path), expected=f'a header with "{BOOK_KEY}": 1'
        )
    return BookDump(book=header, **found)


def _report(problems: ProblemList, error: ValidationError, path: Path, line: int) -> None:
    for each in error.errors(include_url=False):
        where = ".".join(map(str, each["loc"]))
        problems.add(f"{where}: {each['msg']}", path=shown(path), line=line)
