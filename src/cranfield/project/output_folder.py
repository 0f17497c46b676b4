"""The folder that results are written into."""

from __future__ import annotations

from pathlib import Path

from cranfield.errors import UsageError
from cranfield.formats.io.files import refusal
from cranfield.formats.io.own_folder import check_inside
from cranfield.reporting.document import CALLS
from cranfield.systems.collect.collection import PARTIAL, RUNS

REPORT_FILES = ("results.json", "report.html", "report.md")
"""Written into the output folder, next to the runs."""


def require_folder(out: Path) -> None:
    """Refuse an output folder that cannot be made or leads elsewhere, before any query is sent.

    Raises:
        UsageError: a file is in the way, or a link in the place of a file or folder in it.
    """
    try:
        in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    if in_the_way is not None:
        expected = "a folder for the results, {out}"
        raise UsageError("this is a file", path=str(in_the_way), expected=expected, parameters=("out",))
    for name in (PARTIAL, RUNS):
        check_inside(out, out / name, is_folder=True)
    for name in (*REPORT_FILES, CALLS):
        check_inside(out, out / name)
