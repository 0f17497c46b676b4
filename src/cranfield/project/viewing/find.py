"""What `cranfield view` shows: the report that a path names, or the reports of a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import CranfieldError, UsageError
from cranfield.project.viewing.pages import is_report, read_page
from cranfield.project.viewing.results import REPORT, RESULTS, read_record

PAGES = frozenset({".html", ".htm"})
DEEPEST = 2
"""Folders below the one that is shown, in which reports are looked for: of test sets, and of cases in these."""
MOST_FOLDERS = 500
OLDER_S = 60.0
"""A report that was written so long before its results, in seconds, is of earlier ones."""
OUTPUTS = ("cranfield-out", "cranfield-demo", "cranfield-gate", "cranfield-grid", "cranfield-components")
"""Folders that commands write to by default."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown in a browser."""

    root: Path
    """Folder of the files; nothing outside of it is served."""
    start: str
    """The first page, from the root; empty: the list of reports."""
    warnings: tuple[str, ...] = ()
    """Reports that are not of the results beside them."""


def shown_at(target: Path) -> Shown:
    """What a path names: a report, the results beside a report, or a folder of reports.

    Raises:
        UsageError: there is no report, with the command that makes one.
    """
    try:
        kind = target.stat().st_mode
    except OSError as error:
        others = [name for name in OUTPUTS if Path(name) != target and Path(name).is_dir()]
        hint = f"cranfield view {others[0]}" if others else "`cranfield run` writes a report, and `cranfield demo` too."
        message = f"no report: {error.strerror.lower() if error.strerror else 'cannot be read'}"
        raise UsageError(message, path=str(target), hint=hint) from None
    if stat.S_ISDIR(kind):
        return _of_folder(target)
    report = _report_of_file(target)
    return Shown(report.parent, report.name, tuple(warnings_of(report)))


def _of_folder(folder: Path) -> Shown:
    found = list(report_names(folder))
    if REPORT in found:
        start = REPORT
    elif (folder / RESULTS).is_file():
        return Shown(folder, _report_of_file(folder / RESULTS).name)
    else:
        start = found[0] if len(found) == 1 else ""
    if not found:
        hint = (
            "`cranfield run` writes a report into cranfield-out, and commands with --html into a file of your choice."
        )
        raise UsageError("no report in this folder", path=str(folder), expected=REPORT, hint=hint)
    stale = (warning for name in found for warning in warnings_of(folder / name))
    return Shown(folder, start, tuple(stale))


def _report_of_file(path: Path) -> Path:
    """The report of a file that a person named, which may be a link."""
    path = path.resolve()
    if path.suffix.lower() in PAGES:
        return path
    if path.suffix.lower() != ".json":
        expected = f"a folder, a report (.html), or the {RESULTS} beside one"
        raise UsageError("this is no report", path=str(path), expected=expected)
    report = path.with_name(REPORT)
    if path.name != RESULTS or not report.exists():
        from cranfield.project.viewing.rebuild import rebuilt_report

        return rebuilt_report(path)
    return report


def report_names(root: Path) -> Iterator[str]:
    """Reports in a folder and its subfolders, from the folder: those at its top first, then by name; no link is followed."""
    left, n_seen = [(root, 0)], 0
    while left and n_seen < MOST_FOLDERS:
        folder, depth = left.pop(0)
        n_seen += 1
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: (entry.name != REPORT, entry.name))
        except OSError:
            continue
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir() and depth < DEEPEST:
                left.append((path, depth + 1))
            elif entry.is_file() and path.suffix.lower() in PAGES and _is_report(root, path):
                yield path.relative_to(root).as_posix()


def _is_report(root: Path, path: Path) -> bool:
    try:
        return is_report(root, path)
    except (OSError, CranfieldError):
        return False


def warnings_of(report: Path) -> Iterator[str]:
    """Whether a report is not of the results that lie beside it."""
    results = report.with_name(RESULTS)
    if report.name != REPORT or not results.is_file():
        return
    again = "run `cranfield run` again, or remove the report: it is made anew from the saved runs"
    if _other_inputs(report, results):
        yield f"{report} is of other inputs than {RESULTS} beside it; {again}"
    elif results.stat().st_mtime - report.stat().st_mtime > OLDER_S:
        yield f"{report} is older than {RESULTS} beside it; {again}"


def _other_inputs(report: Path, results: Path) -> bool:
    """Whether a digest of the results is not in the report, which names those of the test set and of a few runs."""
    try:
        known, record = read_page(report.parent, report).digests, read_record(results)
    except (OSError, CranfieldError):
        return False
    runs = {system.get("digest") for system in record["systems"]}
    is_named = not known.isdisjoint(runs)
    expected = {record["testset"].get("digest"), *(runs if is_named or len(runs) <= FEWEST_NAMED else ())}
    return bool(known) and not expected <= known


FEWEST_NAMED = 8
"""Runs of so many systems, or fewer, are in a report by their digests."""
