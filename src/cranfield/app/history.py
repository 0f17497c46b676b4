"""The history of a test set: points that runs and evaluations add, and the folder that keeps them.

It is `.cranfield/` next to the config. `history.jsonl` has a line for each evaluation, is only appended to, under a lock, and a line
that cannot be read is reported. `history/` has the values by query, named by their content, and the reports, named by their time: the
oldest are removed where there are too many, and the line of their evaluation stays.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.base.errors import UsageError
from cranfield.base.words import and_list
from cranfield.evaluation.absence import judged_share
from cranfield.evaluation.history import HistoryPoint, Line, Score
from cranfield.evaluation.latency import latency_summary
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import (
    check_inside,
    flush,
    folder_inside,
    lock,
    open_inside,
    read_inside,
    refusal,
    refuse_device,
    write_bytes,
    write_text,
)
from cranfield.measures import Measure, parse
from cranfield.model.results import DamagedLine, adapter_of, to_jsonable
from cranfield.repo.git import Standing, commits_between, standing

if TYPE_CHECKING:
    from cranfield.evaluation.options.blocks import CompareOptions


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
    note = f"not added to the history, because the scores do not count: {and_list(void)}" if void else None
    return [each for each in evaluations if each.name not in void], note


@dataclass(frozen=True, slots=True)
class History:
    """The evaluations of a history file, and its damaged lines."""

    path: Path
    points: tuple[HistoryPoint, ...]
    """In the order of the file."""
    damaged: tuple[DamagedLine, ...] = ()


def history_point(
    evaluation: Evaluation,
    *,
    when: datetime,
    commit: Standing | None = None,
    primary: Measure | None = None,
    declared: CompareOptions | None = None,
) -> HistoryPoint:
    """The line of an evaluation, without the names of its files.

    Args:
        evaluation: of one system on one test set.
        when: time of the evaluation, with a time zone.
        commit: of the repository of the config; None outside of one. See `cranfield.repo.git.standing`.
        primary: the measure that decides.
        declared: the test and the significance level.
    """
    testset, run, latency = evaluation.testset, evaluation.run, latency_summary(evaluation)
    judging = testset.meta.judging
    return HistoryPoint(
        time=when.astimezone(UTC).replace(microsecond=0),
        testset=testset.name,
        version=testset.version,
        digest=testset.digest,
        guidelines=(judging.guideline or None) if judging is not None else None,
        system=evaluation.name,
        convention=evaluation.ranking.convention.name,
        measures={
            measure.canonical: Score(summary.mean, summary.n, summary.ci_low, summary.ci_high)
            for measure, summary in evaluation.summaries.items()
        },
        commit=None if commit is None else commit.commit,
        dirty=commit is not None and commit.dirty,
        primary=None if primary is None else primary.canonical,
        config_digest=None if run is None else run.config_digest,
        run_digest=evaluation.run_digest,
        k=None if run is None else run.depth,
        n_queries=len(evaluation.query_ids),
        n_failed=len(evaluation.failures),
        judged=judged_share(evaluation.ranking, primary.depth if primary is not None else None).mean,
        p50_ms=None if latency is None else latency.p50_ms,
        p95_ms=None if latency is None else latency.p95_ms,
        pilot=evaluation.pilot,
        test=None if declared is None else declared.test,
        alpha=None if declared is None else declared.alpha,
    )


def remember(
    folder: Path,
    evaluations: Sequence[Evaluation],
    primary: Measure | None = None,
    *,
    report: Path | None = None,
    declared: CompareOptions | None = None,
) -> str | None:
    """Append evaluations made now to the history next to a config, and keep their values by query and their report.

    Where the answers of all systems are those of their last evaluations, the report of these is not kept twice.

    Args:
        folder: the config's.
        evaluations: all on one test set.
        primary: the measure that decides.
        report: their report, an HTML file.
        declared: the test and the significance level.

    Returns:
        Why the history was not written, or not for every system; None where it was. Write errors do not end the run.
    """
    evaluations, left_out = without_void(evaluations)
    when, commit = datetime.now(UTC), standing(folder)
    points = [history_point(each, when=when, commit=commit, primary=primary, declared=declared) for each in evaluations]
    try:
        append(folder, *(_with_files(folder, points, evaluations, report) if points else ()))
    except UsageError as error:
        return f"the history was not written: {error}"
    return left_out


def _with_files(
    folder: Path, points: Sequence[HistoryPoint], evaluations: Sequence[Evaluation], report: Path | None
) -> list[HistoryPoint]:
    """Keep values and report. A file that cannot be written is left out of the line: the line matters more."""
    local = local_folder(folder)
    kept = []
    for point, evaluation in zip(points, evaluations, strict=True):
        values = None
        with suppress(OSError):
            values = keep_values(local, evaluation)
        kept.append(replace(point, values=values))
    if report is None:
        return kept
    last = _last_points(folder)
    reports = [_last_report(local, last.get((point.testset, point.system)), point) for point in points]
    if not all(reports):
        with suppress(OSError):
            reports = [keep_report(local, report, points[0].time)] * len(points)
    return [replace(point, report=name) for point, name in zip(kept, reports, strict=True)]


def _last_points(folder: Path) -> dict[tuple[str, str], HistoryPoint]:
    """Names of a test set and a system to their last point; none where the history cannot be read."""
    try:
        return {(point.testset, point.system): point for point in read_history(folder).points}
    except UsageError:
        return {}


def _last_report(local: Path, last: HistoryPoint | None, now: HistoryPoint) -> str | None:
    """The report of the last evaluation of a system, where its answers and everything else were the same."""
    same = ("run_digest", "digest", "config_digest", "k", "pilot", "convention")
    if last is None or any(getattr(last, name) != getattr(now, name) for name in same):
        return None
    return last.report if inside(local, last.report) else None


def append(folder: Path, *records: object, file: str = FILE) -> Path:
    """Append a line for each record to the history next to a config.

    Several processes may append at the same time. A last line without its end, left by a crash, is ended first.

    Args:
        folder: the config's.
        records: what `history_point` makes, or other records.
        file: of the history, in `.cranfield/`.

    Raises:
        UsageError: it cannot be written.
    """
    path = local_folder(folder) / file
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    lines = "".join(json.dumps(to_jsonable(record), allow_nan=False) + "\n" for record in records).encode()
    try:
        refuse_device(path, pipes=True)
        with os.fdopen(open_inside(folder, path, flags, mode=0o666), "a+b", buffering=0) as stream:
            lock(stream.fileno())
            size = stream.seek(0, os.SEEK_END)
            if size:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":
                    lines = b"\n" + lines
            try:
                while lines:
                    lines = lines[stream.write(lines) :]
            except OSError:
                stream.truncate(size)
                raise
            flush(stream.fileno())
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    return path


def read_history(folder: Path) -> History:
    """Read the history next to a config.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    path = folder / FOLDER / FILE
    try:
        refuse_device(path, pipes=True)
        text = read_inside(folder, path)
    except FileNotFoundError:
        raise UsageError(
            "no history in this folder", path=str(path), hint="`cranfield run` writes a line for every evaluation"
        ) from None
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    points: list[HistoryPoint] = []
    damaged: list[DamagedLine] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            point: HistoryPoint = adapter_of(HistoryPoint).validate_json(line)
        except ValueError as error:
            damaged.append(DamagedLine(number, _why(error)))
            continue
        if point.time.tzinfo is None:
            damaged.append(DamagedLine(number, "time: no time zone"))
            continue
        points.append(replace(point, time=point.time.astimezone(UTC)))
    return History(path, tuple(points), tuple(damaged))


def _why(error: ValueError) -> str:
    """The first thing that is wrong with a line."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "not JSON"
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def with_commits(line: Line, folder: Path) -> Line:
    """Add the commits between the last good point and the first bad one, where git has both."""
    found = line.first_bad
    ends = [None if point is None else point.commit for point in (found.good, found.bad)] if found is not None else []
    if found is None or None in ends:
        return line
    after, until = map(str, ends)
    return replace(line, first_bad=replace(found, commits=commits_between(folder, after, until)))
