"""`cranfield view`: a report in the browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from cranfield.app.command import say
from cranfield.base.errors import UsageError
from cranfield.evaluation.options.declaration import Argument, Option

RESULTS, REPORT = "results.json", "report.html"
DEFAULT_FOLDERS = "cranfield-*"
"""Folders that commands write to where the call names none."""
DEPTHS = ("*.html", "*/*.html", "*/*/*.html")
"""Where reports are looked for in a folder: those of test sets, and of cases in these, lie in folders of their own."""
HEAD_BYTES = 4000
"""Mark and title are in these."""
MARK = r"<html\b[^>]*\bclass=\"report\""
"""Pattern found in every page that Cranfield writes into a file."""
TITLE = r"(?s)<title>(.*?)</title>"
HINT = "`cranfield run` writes a report, and `cranfield demo` too; so does --html of commands that evaluate or compare."


class FoundReport(NamedTuple):
    """A report, with what identifies it."""

    path: Path
    title: str
    written_s: float

    def __str__(self) -> str:
        written = datetime.fromtimestamp(self.written_s)  # noqa: DTZ006 - local time
        return f"{written:%Y-%m-%d %H:%M}  {self.path}  {self.title}"


def view_command(
    target: Annotated[
        Path | None,
        Argument(
            "Report, the results.json next to it, or a folder of reports; default: the folders cranfield-* in this folder.",
            metavar="PATH",
        ),
    ] = None,
    *,
    list_reports: Annotated[
        bool, Option("List the reports, newest first, without opening one.", flag="--list")
    ] = False,
    no_browser: Annotated[bool, Option("Only print the path.")] = False,
) -> None:
    """Open the newest report in the browser, and print its path.

    For a folder, its report.html is opened, or else the newest report in it. If no browser is found, for example over ssh,
    only the path is printed.
    """
    found = reports_at(target)
    if list_reports:
        for report in found:
            say(str(report))
        return
    own = [report for report in found if target is not None and report.path == target / REPORT]
    path = (own or found)[0].path
    say(str(path))
    if not no_browser:
        from cranfield.cli.ending import open_in_browser

        open_in_browser(path)


def reports_at(target: Path | None) -> list[FoundReport]:
    """The reports that a path stands for, the newest first; at least one.

    Args:
        target: a report, results, or a folder; None: the folders that commands write to.

    Raises:
        UsageError: there is none.
    """
    if target is not None and not target.is_dir():
        return [_of_file(target)]
    folders = sorted(Path().glob(DEFAULT_FOLDERS)) if target is None else [target]
    found = sorted((each for folder in folders for each in _in_folder(folder)), key=lambda each: -each.written_s)
    if not found:
        raise UsageError("no report", path=str(target or DEFAULT_FOLDERS), hint=HINT)
    return found


def _of_file(path: Path) -> FoundReport:
    path = path.with_name(REPORT) if path.name == RESULTS else path
    if not path.is_file():
        raise UsageError("no report", path=str(path), hint=HINT)
    report = _read(path)
    if report is None:
        expected = f"a folder, a report (.html), or the {RESULTS} next to it"
        raise UsageError("this is not a report", path=str(path), expected=expected)
    return report


def _in_folder(folder: Path) -> Iterator[FoundReport]:
    """Reports below a folder, without hidden ones."""
    for path in (path for pattern in DEPTHS for path in folder.glob(pattern)):
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        with suppress(OSError):  # of a file that is not for this user
            if path.is_file() and (report := _read(path)) is not None:
                yield report


def _read(path: Path) -> FoundReport | None:
    """A page that Cranfield wrote; None for another file."""
    import html

    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES).decode("utf-8", "replace")
    title = re.search(TITLE, head)
    if title is None or re.search(MARK, head) is None:
        return None
    return FoundReport(path, " ".join(html.unescape(title[1]).split()), path.stat().st_mtime)
