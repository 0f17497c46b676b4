"""What the history keeps of an evaluation besides its line: the values by query, and the report.

Both are in `.cranfield/history/`, next to the config: values are named by their content, reports by their time. The oldest
are removed where there are too many; the line of an evaluation stays, and its report or its values are then not there.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.errors import UsageError
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import refusal, write_bytes, write_text
from cranfield.formats.io.own_folder import check_inside, folder_inside, open_inside, read_inside
from cranfield.measures import parse
from cranfield.words import and_list

if TYPE_CHECKING:
    from cranfield.evaluation.history import HistoryPoint

FOLDER = ".cranfield"
"""Next to a config, kept on this machine: cached answers, the history."""
FILE = "history.jsonl"
KEPT = "history"
"""Folder of these files, in `.cranfield/`."""
MAX_REPORTS, MAX_REPORT_BYTES = 200, 256 * 1024**2
MAX_VALUES, MAX_VALUES_BYTES = 5_000, 128 * 1024**2
VALUES_VERSION = 1
FAILED_QUERIES = "failed-queries"
"""The evidence check of failures."""
_REPORT, _VALUES = ".html", ".json.gz"


_IGNORE = ".gitignore"


def local_folder(folder_of_config: Path) -> Path:
    """`.cranfield/` in the folder of a config, made where it is not there; git does not look into it.

    Raises:
        UsageError: it cannot be made, or a link is in its place.
    """
    folder = folder_of_config / FOLDER
    try:
        folder_of_config.mkdir(parents=True, exist_ok=True)
        with folder_inside(folder_of_config, folder, make=0o777) as opened:
            names = opened.names()
        if _IGNORE not in names:
            write_text(folder / _IGNORE, ["*\n"], root=folder_of_config)
    except OSError as error:
        raise UsageError(refusal(folder, error)) from error
    return folder


def check_local(folder_of_config: Path) -> None:
    """Refuse links in the place of the history, before anything else is done.

    Raises:
        UsageError: there is one.
    """
    folder = folder_of_config / FOLDER
    for path in (folder, folder / KEPT):
        check_inside(folder_of_config, path, is_folder=True)
    check_inside(folder_of_config, folder / FILE)


def keep_values(folder: Path, evaluation: Evaluation) -> str:
    """Keep the values by query of an evaluation; the name of the file. Raises `OSError`.

    Args:
        folder: `.cranfield/`.
        evaluation: of one system.
    """
    values = {
        measure.canonical: [
            float(value) if is_scored else None
            for value, is_scored in zip(column.tolist(), evaluation.scored[measure].tolist(), strict=True)
        ]
        for measure, column in evaluation.values.items()
    }
    record = {"cranfield_values": VALUES_VERSION, "queries": list(evaluation.query_ids), "measures": values}
    data = json.dumps(record, separators=(",", ":")).encode()
    path = folder / KEPT / f"{sha256(data).hexdigest()[:32]}{_VALUES}"
    try:
        with os.fdopen(open_inside(folder.parent, path, os.O_RDONLY)) as found:
            os.utime(found.fileno())
    except FileNotFoundError:
        write_bytes(path, [data], root=folder.parent)
        _remove_oldest(folder, _VALUES, MAX_VALUES, MAX_VALUES_BYTES)
    return f"{KEPT}/{path.name}"


def keep_report(folder: Path, report: Path, when: datetime) -> str:
    """Keep a copy of a report; the name of the file. Raises `OSError`.

    Args:
        folder: `.cranfield/`.
        report: an HTML file.
        when: time of the evaluation, UTC.
    """
    kept = folder / KEPT
    stem, number = f"{when:%Y-%m-%d-%H%M%S}", 1
    path = kept / f"{stem}{_REPORT}"
    while os.path.lexists(path):
        number += 1
        path = kept / f"{stem}-{number}{_REPORT}"
    write_bytes(path, [report.read_bytes()], root=folder.parent)
    _remove_oldest(folder, _REPORT, MAX_REPORTS, MAX_REPORT_BYTES)
    return f"{KEPT}/{path.name}"


class KeptValues:
    """Reads the kept values of points."""

    def __init__(self, folder: Path) -> None:
        """Read from the folder `.cranfield/`."""
        self._folder = folder
        self._read: dict[str, Mapping[str, Mapping[str, float]] | None] = {}

    def __call__(self, point: HistoryPoint, measure: str) -> Mapping[str, float] | None:
        """The values of a measure by query id; None where they are not kept."""
        found = self.all_of(point)
        return None if found is None else found.get(measure)

    def all_of(self, point: HistoryPoint) -> Mapping[str, Mapping[str, float]] | None:
        """Measure to values by query id; None where they are not kept."""
        if point.values is None:
            return None
        if point.values not in self._read:
            self._read[point.values] = _read_values(self._folder, inside(self._folder, point.values))
        return self._read[point.values]


def report_places(folder: Path, page: Path) -> Callable[[HistoryPoint], str | None]:
    """Where the kept report of a point is, for a page in another folder; None where there is none any more.

    Args:
        folder: `.cranfield/`.
        page: folder of the page.
    """

    def place(point: HistoryPoint) -> str | None:
        path = inside(folder, point.report)
        return None if path is None else Path(os.path.relpath(path, page)).as_posix()

    return place


def inside(folder: Path, name: str | None) -> Path | None:
    """The file of a name in a line of the history; None where it is not there, or the name leads elsewhere."""
    if name is None:
        return None
    path = folder / name
    return path if Path(name).parts[:-1] == (KEPT,) and path.is_file() else None


def _read_values(folder: Path, path: Path | None) -> Mapping[str, Mapping[str, float]] | None:
    if path is None:
        return None
    try:
        record = json.loads(gzip.decompress(read_inside(folder.parent, path)))
        queries: Sequence[str] = record["queries"]
        return {
            str(parse(measure)): {
                query_id: float(value) for query_id, value in zip(queries, column, strict=True) if value is not None
            }
            for measure, column in record["measures"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def _remove_oldest(folder: Path, suffix: str, most: int, most_bytes: int) -> None:
    """Remove the oldest kept files of a kind beyond a number or a size; the latest stays, whatever its size."""
    found = []
    with folder_inside(folder.parent, folder / KEPT) as kept:
        for name in kept.names():
            with suppress(OSError):  # another process may be removing them too
                if name.endswith(suffix) and not name.startswith("."):
                    facts = kept.facts(name)
                    found.append((facts.st_mtime_ns, name, facts.st_size))
        total = 0
        for place, (_, name, size) in enumerate(sorted(found, reverse=True)):
            total += size
            if place and (place >= most or total > most_bytes):
                with suppress(OSError):
                    kept.unlink(name)


def without_void(evaluations: Sequence[Evaluation]) -> tuple[list[Evaluation], str | None]:
    """The evaluations without those that evidence checks found void, and a note on these; failures are a result of a system."""
    void = [
        each.name
        for each in evaluations
        if any(finding.is_void and finding.check != FAILED_QUERIES for finding in each.evidence)
    ]
    note = f"not added to the history, as the scores do not count: {and_list(void)}" if void else None
    return [each for each in evaluations if each.name not in void], note
