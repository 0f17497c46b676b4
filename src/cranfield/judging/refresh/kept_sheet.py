"""A labelling sheet that is written again: rows, labels, columns and layout that are there stay."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cranfield.base.errors import Problem, TestSetError
from cranfield.formats.io.files import BYTE_ORDER_MARK, decode, read_bytes, shown
from cranfield.formats.splice.files import splice_text
from cranfield.formats.splice.parts import UnspliceableError

_N_KEYS = 3
"""Columns before the raters: query id, query, document."""


def kept_sheet(
    path: Path, names: Sequence[str], wanted: Sequence[Sequence[str]], query_ids: Collection[str]
) -> tuple[str, int]:
    """The text of a sheet with the rows that are missing, and its number of rows.

    Args:
        path: the sheet that is there.
        names: columns of a new sheet.
        wanted: query id, query and document of each row to label.
        query_ids: queries that are drawn.

    Raises:
        TestSetError: it is no such sheet, or has labels of queries that are not drawn.
    """
    data = read_bytes(path, TestSetError)
    text = decode(data, path, TestSetError)
    header, there = _rows(text, path, ("query_id", "doc_id", *names[_N_KEYS:]))
    keys = {"query_id", "query", "doc_id"}
    named = {cells[0] for cells in wanted if cells[2].strip()}
    empty = [row for row in there if not row["doc_id"].strip() and row["query_id"].strip() in named]
    gone = [row for row in there if row["query_id"].strip() not in query_ids]
    labelled = [row for row in gone if _is_labelled(row, keys)]
    gone += [row for row in empty if not _is_labelled(row, keys)]
    if labelled:
        raise TestSetError(
            [
                Problem(
                    f"the sheet has a label of query {row['query_id']}, which is not in the sample",
                    path=shown(path),
                    hint="use the seed, the log and the number of queries of the sheet, or name another file",
                )
                for row in labelled
            ]
        )
    known = {(row["query_id"].strip(), row["doc_id"].strip()) for row in there}
    more = [cells for cells in wanted if (cells[0], cells[2].strip()) not in known]
    if not more and not gone:
        return _with_mark(data, text), len(there)
    old = _written(header, there)
    new_rows = [dict(zip(("query_id", "query", "doc_id"), cells, strict=True)) for cells in more]
    new = _written(header, [row for row in there if row not in gone] + new_rows)
    try:
        return _with_mark(data, splice_text(text, old, new, "table")), len(there) - len(gone) + len(more)
    except UnspliceableError:
        raise TestSetError("rows cannot be added to the sheet", path=shown(path), hint="name another file") from None


def _rows(text: str, path: Path, needed: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Names of the columns, and the rows."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [name for name in needed if name not in header]
    if missing:
        raise TestSetError(
            f"the existing sheet has no column {missing[0]}",
            path=shown(path),
            got=", ".join(header) or "nothing",
            hint="name another file, or use the raters of the sheet",
        )
    return header, [dict(zip(header, row, strict=False)) for row in rows[1:] if any(row)]


def _is_labelled(row: Mapping[str, str], keys: Collection[str]) -> bool:
    return any(cell.strip() for name, cell in row.items() if name not in keys)


def _with_mark(data: bytes, text: str) -> str:
    return "\ufeff" + text if data.startswith(BYTE_ORDER_MARK) else text


def _written(header: Sequence[str], rows: Sequence[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, header, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
