"""A report on the terminal: text in its colours and width, other forms as they are, the page in the browser, a stamp where runs are stale."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cranfield.app.command import Format, Output, Report, Status, note
from cranfield.errors import UsageError
from cranfield.words import and_list, first_of

if TYPE_CHECKING:
    from cranfield.reporting.document import Document, Tone


MOST_NAMED = 3
"""Systems in the stamp."""
_STALE: ContextVar[tuple[str, ...]] = ContextVar("stale", default=())


@contextmanager
def collecting_stale() -> Iterator[None]:
    """One command: what is noted inside is stamped on its report."""
    token = _STALE.set(())
    try:
        yield
    finally:
        _STALE.reset(token)


def note_stale(system: str, changed: Sequence[str]) -> None:
    """Say on stderr what changed since the run of a system was saved, and keep it for the report."""
    what = f"the saved run of {system} is stale: {and_list(changed)} changed since"
    note(f"warning: {what}; `cranfield run` makes it again")
    _STALE.set((*_STALE.get(), system))


def stamped(document: Document) -> Document:
    """The document with a stamp where a run of it is stale."""
    systems = _STALE.get()
    if not systems:
        return document
    stamp = f"STALE: saved before the config or test set changed: {first_of(systems, MOST_NAMED)}"
    return replace(document, stamps=(*document.stamps, stamp))


def present(report: Report, output: Output) -> None:
    """Print a report in its form, write it as HTML where that was requested, name the files written, and leave with its status."""
    if report.record is not None and output.format is Format.JSON and output.html is None:
        from cranfield.results import to_json

        show([to_json(report.record())])
    else:
        document = report.document() if callable(report.document) else report.document
        deliver(document, output.showing(report.full), written=report.written)
    for line in report.notes:
        note(line)
    if report.void:
        _tell_void(report.void, output)
        raise typer.Exit(Status.VOID)
    if report.status:
        raise typer.Exit(report.status)


def _tell_void(void: Mapping[str, Sequence[str]], output: Output) -> None:
    """Say on stderr that scores do not count, and why where the report on stdout does not."""
    if output.format not in {Format.JSON, Format.CSV}:
        note(f"error: void: the scores of {and_list([*void])} do not count; the report has the reason")
    else:
        for sentence in (sentence for found in void.values() for sentence in found):
            note(f"error: void: {sentence}")


def deliver(document: Document, output: Output, *, written: Sequence[Path] = ()) -> None:
    """Print the document on stdout in its form, write it as HTML where that was asked for, and name the files written.

    Args:
        document: the report.
        output: what the options say.
        written: files that the command wrote, the page of the report among them.
    """
    from cranfield.reporting import save_report

    document = stamped(document)
    if output.html is not None:
        if output.html.suffix.lower() != ".html":
            raise UsageError("--html writes HTML", path=str(output.html), expected="a file whose name ends in .html")
        save_report(document, output.html)
        written = [output.html, *written]
    show([rendered(document, output)])
    for line in _written_lines(written):
        note(line)
    page = min((path for path in written if path.suffix == ".html"), key=lambda path: len(path.parts), default=None)
    if output.open:
        _open(document, page)
    elif page is not None and page != output.html and output.format is Format.TEXT:
        from cranfield.installation import this_installation

        note(f"to see it: {this_installation().command(shlex.join(['view', str(page.parent)]))}")


def _written_lines(written: Sequence[Path]) -> Iterable[str]:
    """`wrote out/report.html`, or `wrote report.html, report.md in out`: a line for each folder."""
    folders: dict[Path, list[Path]] = {}
    for path in dict.fromkeys(written):
        folders.setdefault(path.parent, []).append(path)
    for folder, paths in folders.items():
        names = ", ".join(path.name for path in paths)
        yield f"wrote {paths[0]}" if len(paths) == 1 else f"wrote {names}" + (f" in {folder}" if folder.name else "")


def _open(document: Document, report: Path | None) -> None:
    """Show the page in the browser; one that no option named is written to a folder for temporary files."""
    import tempfile

    from cranfield.reporting import save_report

    if report is None:
        report = Path(tempfile.mkdtemp(prefix="cranfield-")) / "report.html"
        save_report(document, report)
    open_in_browser(report)


def open_in_browser(path: Path) -> None:
    """Open a file in the browser; where there is none, say so with its address."""
    import webbrowser

    address = path.resolve().as_uri()
    if not webbrowser.open(address):
        note(f"no browser was found: open {address}")


def rendered(document: Document, output: Output) -> str:
    """The document in the form that was asked for: text in colour and as wide as the terminal, where it goes to one."""
    from cranfield.reporting import render
    from cranfield.reporting.renderers.text import COLUMNS, LINE, brief_of, no_colour, render_brief, render_text

    if output.format is not Format.TEXT:
        return render(document, output.format.value)
    terminal = sys.stdout.isatty()
    line = min(max(COLUMNS, shutil.get_terminal_size().columns), LINE) if terminal else None
    if output.full or brief_of(document) is None:
        return render_text(document, line or LINE)
    return render_brief(document, line=line or COLUMNS, paint=painted if has_colour(terminal=terminal) else no_colour)


def has_colour(*, terminal: bool) -> bool:
    """Whether stdout gets colours: on a terminal; `FORCE_COLOR` asks for them elsewhere, `NO_COLOR` declines them."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (terminal and os.environ.get("TERM") != "dumb")


COLOURS: Mapping[str, str] = {"good": "green", "bad": "red", "open": "yellow", "void": "magenta"}
"""Tone to colour on a terminal; the words say the same."""


def painted(text: str, tone: Tone) -> str:
    """Text in the colour of its tone."""
    return typer.style(text, fg=COLOURS[tone], bold=True) if COLOURS.get(tone) else text


def show(parts: Iterable[str]) -> None:
    """Write the result on stdout."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 has no minus sign
    sys.stdout.writelines(parts)
    sys.stdout.flush()
