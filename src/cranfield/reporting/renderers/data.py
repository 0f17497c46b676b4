"""A document as JSON and CSV, and the table of all renderers.

CSV has numbers in full, and nothing where nothing is known. A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@`
for a formula and runs it. Text from elsewhere that begins so gets an apostrophe in front, unless it is a plain number.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.words import is_formula, printable
from cranfield.formats.io.files import write_bytes
from cranfield.model.results import to_json
from cranfield.reporting.document import CALLS, Cell, Document, Table, cell_value
from cranfield.reporting.renderers.html import render_html
from cranfield.reporting.renderers.latex import render_latex
from cranfield.reporting.renderers.markdown import render_markdown
from cranfield.reporting.renderers.model_card import render_model_card
from cranfield.reporting.renderers.text import render_brief_markdown, render_text
from cranfield.reporting.renderers.xlsx import render_xlsx


def guard(text: str) -> str:
    """Text that no spreadsheet will run."""
    return "'" + text if is_formula(text) else text


def render_csv(document: Document) -> str:
    """A heading line, then a line for every row of the tidy table."""
    return csv_text(document.tidy())


def csv_text(table: Table) -> str:
    """A table as CSV: a heading line, then a line for every row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.title for column in table.columns])
    writer.writerows([_plain(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


def _plain(cell: Cell) -> str:
    value = cell_value(cell)
    if value is None:
        return ""
    return guard(printable(value)) if isinstance(value, str) else repr(value)


def render_json(document: Document) -> str:
    """What `--format json` prints."""
    return to_json(document.payload())


def render_record(document: Document) -> str:
    """What a .json file holds: the payload, and everything about every query."""
    return to_json(document.payload() if document.record is None else document.record())


@dataclass(frozen=True, slots=True)
class Renderer:
    """One form a Document can take."""

    name: str
    suffix: str
    """Suffix of the files it writes; empty where it writes none."""
    render: Callable[[Document], str] | None
    """None: it is no text."""
    save: Callable[[Document], str | bytes] | None = None
    """Where a file holds something else, or more, than what is printed."""

    def content(self, document: Document) -> bytes:
        """What a file holds."""
        made = (self.save or self.render)(document)  # type: ignore[misc]  # it has one of them
        return made if isinstance(made, bytes) else made.encode("utf-8", "backslashreplace")


RENDERERS: Mapping[str, Renderer] = {
    renderer.name: renderer
    for renderer in (
        Renderer("text", ".txt", render_text),
        Renderer("json", ".json", render_json, render_record),
        Renderer("csv", ".csv", render_csv),
        Renderer("markdown", ".md", render_markdown),
        Renderer("brief", "", render_brief_markdown),
        Renderer("latex", ".tex", render_latex),
        Renderer("model-card", "", render_model_card),
        Renderer("html", ".html", render_html),
        Renderer("xlsx", ".xlsx", None, render_xlsx),
    )
}
"""Name to renderer, in the order help lists them."""


def render(document: Document, name: str = "text") -> str:
    """A Document in the form of that name.

    Raises:
        UnknownNameError: no renderer has that name.
        UsageError: the form is no text.
    """
    if name not in RENDERERS:
        raise UnknownNameError.among("format", name, RENDERERS)
    found = RENDERERS[name]
    if found.render is None:
        raise UsageError(f"{name} is not text", expected=f"a file to write, with a name that ends in {found.suffix}")
    return found.render(document)


def save_report(document: Document, path: str | Path, *, root: Path | None = None) -> None:
    """Write a Document in the form of the path's suffix; a reader sees the old file or the new one, never a part.

    Args:
        document: the report.
        path: of the file.
        root: folder of the user's below which no link is followed; None: the user named the file.

    Raises:
        UsageError: no renderer has that suffix, or the file cannot be written.
    """
    path = Path(path)
    _write(path, renderer_of(path).content(document), root)


def renderer_of(path: Path) -> Renderer:
    """The form that the suffix of a file selects.

    Raises:
        UsageError: none has that suffix.
    """
    by_suffix = {renderer.suffix: renderer for renderer in RENDERERS.values() if renderer.suffix}
    renderer = by_suffix.get(path.suffix.lower())
    if renderer is None:
        raise UsageError(
            "the format cannot be derived from the suffix", path=str(path), expected=f"one of {', '.join(by_suffix)}"
        )
    return renderer


def save_table(table: Table, path: Path, *, root: Path | None = None) -> None:
    """Write a table as CSV; `root` as of `save_report`.

    Raises:
        UsageError: the file cannot be written.
    """
    _write(path, csv_text(table).encode("utf-8"), root)


def _write(path: Path, content: bytes, root: Path | None) -> None:
    try:
        write_bytes(path, [content], root=root, is_workbook=path.suffix.lower() == ".xlsx")
    except OSError as error:
        reason = "no such folder" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
        raise UsageError(f"the report cannot be written: {reason}", path=str(path)) from error


def save_reports(
    document: Document, folder: Path, names: Iterable[str], *, root: Path | None = None
) -> tuple[Path, ...]:
    """Write a Document into a folder, under each name in the form of its suffix; gives the paths.

    Args:
        document: the report.
        folder: of the files.
        names: of the files.
        root: the folder that the user named, where `folder` is in it; no link is followed below.

    Raises:
        UsageError: as of `save_report`.
    """
    paths = tuple(folder / name for name in names)
    for path in paths:
        save_report(document, path, root=root or folder)
    calls = document.calls() if document.calls is not None and any(path.suffix == ".json" for path in paths) else None
    if calls is None:
        return paths
    _write(folder / CALLS, to_json(calls).encode("utf-8"), root or folder)
    return (*paths, folder / CALLS)
