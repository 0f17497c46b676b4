"""The local history: a line for every evaluation, in `.cranfield/history.jsonl` next to the config; see `history_files`.

Lines are only appended, under a lock. A line that cannot be read is reported, and the others are read.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cranfield.errors import UsageError
from cranfield.evaluation.judged import judged_share
from cranfield.evaluation.latency import LatencySummary, latency_summary
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.formats.io.files import refusal
from cranfield.formats.io.locks import lock
from cranfield.formats.io.own_folder import flush, open_inside, read_inside
from cranfield.formats.io.pipes import refuse_device
from cranfield.measures import Measure
from cranfield.model import TestSet
from cranfield.project.history_files import (
    FILE,
    FOLDER,
    Kept,
    inside,
    keep_report,
    keep_values,
    local_folder,
    without_void,
)
from cranfield.record import Fields, plain, record_of
from cranfield.repo.git import Standing, commits_between, standing

if TYPE_CHECKING:
    from cranfield.evaluation.history import FirstBad, HistoryPoint, Score
    from cranfield.evaluation.verdict import CompareOptions


T = TypeVar("T")
VERSION = 1
IDENTITY: Fields = {
    Evaluation: "testset system=name config_digest=run.config_digest run_digest convention=ranking.convention.name k=run.depth",
    TestSet: "name version digest",
}
SCORES: Fields = {
    Evaluation: "measures=summaries queries=query_ids.__len__ failures=failures.__len__",
    Summary: "mean n ci_low ci_high",
    LatencySummary: "p50=p50_ms p95=p95_ms",
}


@dataclass(frozen=True, slots=True)
class History:
    """The evaluations of a history file, and its damaged lines."""

    path: Path
    points: tuple[HistoryPoint, ...]
    """In the order of the file."""
    damaged: tuple[tuple[int, str], ...] = ()
    """Number of each line that could not be read, and the reason."""


def history_record(
    evaluation: Evaluation,
    *,
    when: datetime,
    commit: Standing | None = None,
    primary: Measure | None = None,
    kept: Kept | None = None,
) -> dict[str, Any]:
    """The line of an evaluation.

    Args:
        evaluation: of one system on one test set.
        when: time of the evaluation, with a time zone.
        commit: of the repository of the config; None outside of one. See `cranfield.repo.git.standing`.
        primary: the measure that decides.
        kept: names of its files, and what was declared.
    """
    judged = judged_share(evaluation.ranking, primary.depth if primary is not None else None)
    return {
        "cranfield_history": VERSION,
        "time": when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "commit": None if commit is None else commit.commit,
        "dirty": commit is not None and commit.dirty,
        **_identity(evaluation),
        "primary": plain(primary),
        **record_of(evaluation, SCORES),
        "judged": judged.mean,
        "latency_ms": plain(latency_summary(evaluation), SCORES),
        "pilot": evaluation.pilot,
        **({} if kept is None else {key: value for key, value in record_of(kept).items() if value is not None}),
    }


def _identity(evaluation: Evaluation) -> dict[str, Any]:
    """Test set, system and convention."""
    identity = record_of(evaluation, IDENTITY)
    testset = evaluation.testset
    if testset.meta.judging is not None and testset.meta.judging.guideline:
        identity["testset"]["guidelines"] = testset.meta.judging.guideline
    return identity


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
    try:
        kept = _keep(folder, evaluations, report, declared, when) if evaluations else []
        records = [
            history_record(evaluation, when=when, commit=commit, primary=primary, kept=files)
            for evaluation, files in zip(evaluations, kept, strict=True)
        ]
        append(folder, *records)
    except UsageError as error:
        return f"the history was not written: {error}"
    return left_out


def _keep(
    folder: Path,
    evaluations: Sequence[Evaluation],
    report: Path | None,
    declared: CompareOptions | None,
    when: datetime,
) -> list[Kept]:
    """Keep values and report. A file that cannot be written is left out of the line: the line matters more."""
    local = local_folder(folder)
    test, alpha = (None, None) if declared is None else (declared.test, declared.alpha)
    kept = []
    for evaluation in evaluations:
        values = None
        with suppress(OSError):
            values = keep_values(local, evaluation)
        kept.append(Kept(values, None, test, alpha))
    if report is None:
        return kept
    last = _last_points(folder)
    reports = [_last_report(local, last, evaluation) for evaluation in evaluations]
    if not all(reports):
        with suppress(OSError):
            reports = [keep_report(local, report, when)] * len(evaluations)
    return [replace(files, report=name) for files, name in zip(kept, reports, strict=True)]


def _last_points(folder: Path) -> dict[tuple[str, str], HistoryPoint]:
    """Names of a test set and a system to their last point; none where the history cannot be read."""
    try:
        return {(point.testset, point.system): point for point in read_history(folder).points}
    except UsageError:
        return {}


def _last_report(local: Path, points: Mapping[tuple[str, str], HistoryPoint], evaluation: Evaluation) -> str | None:
    """The report of the last evaluation of a system, where its answers and everything else were the same."""
    run, last = evaluation.run, points.get((evaluation.testset.name, evaluation.name))
    if last is None:
        return None
    config_digest, depth = (None, None) if run is None else (run.config_digest, run.depth)
    now = (evaluation.run_digest, evaluation.testset.digest, config_digest, depth, evaluation.pilot)
    then = (last.run_digest, last.digest, last.config_digest, last.k, last.pilot)
    is_same = now == then and last.convention == evaluation.ranking.convention.name
    return last.report if is_same and inside(local, last.report) else None


def append(folder: Path, *records: Mapping[str, Any], file: str = FILE) -> Path:
    """Append a line for each record to the history next to a config.

    Several processes may append at the same time. A last line without its end, left by a crash, is ended first.

    Args:
        folder: the config's.
        records: what `history_record` makes.
        file: of the history, in `.cranfield/`.

    Raises:
        UsageError: it cannot be written.
    """
    path = local_folder(folder) / file
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    lines = "".join(json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n" for record in records).encode()
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
            "there is no history here", path=str(path), hint="`cranfield run` writes a line for every evaluation"
        ) from None
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    points: list[HistoryPoint] = []
    damaged: list[tuple[int, str]] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            points.append(_past(json.loads(line.decode("utf-8"), parse_constant=_no_number)))
        except _DamagedError as error:
            damaged.append((number, str(error)))
        except (ValueError, OverflowError, RecursionError):
            damaged.append((number, "not JSON"))
    return History(path, tuple(points), tuple(damaged))


def with_commits(found: FirstBad, folder: Path) -> FirstBad:
    """Add the commits between the last good point and the first bad one, where git has both."""
    if found.good is None or found.bad is None or found.good.commit is None or found.bad.commit is None:
        return found
    return replace(found, commits=commits_between(folder, found.good.commit, found.bad.commit))


class _DamagedError(Exception):
    """A line of JSON that is not a record of this file."""


def _no_number(name: str) -> float:
    raise ValueError(name)


def _past(record: object) -> HistoryPoint:
    from cranfield.evaluation.history import HistoryPoint

    if not isinstance(record, dict):
        raise _DamagedError("not a record")
    if record.get("cranfield_history") != VERSION:
        raise _DamagedError(f"not a record of version {VERSION}")
    testset, latency = _required(record, "testset", dict), record.get("latency_ms")
    latency = latency if isinstance(latency, dict) else {}
    scores = _required(record, "measures", dict)
    return HistoryPoint(
        time=_time(record),
        testset=_required(testset, "name", str),
        version=_required(testset, "version", str),
        digest=_required(testset, "digest", str),
        guidelines=_text(testset, "guidelines"),
        system=_required(record, "system", str),
        convention=_required(record, "convention", str),
        measures={name: _score(_required(scores, name, dict)) for name in scores},
        commit=_text(record, "commit"),
        dirty=record.get("dirty") is True,
        primary=_text(record, "primary"),
        config_digest=_text(record, "config_digest"),
        run_digest=_text(record, "run_digest"),
        k=_whole(record, "k"),
        n_queries=_whole(record, "queries") or 0,
        n_failed=_whole(record, "failures") or 0,
        judged=_number(record, "judged"),
        p50_ms=_number(latency, "p50"),
        p95_ms=_number(latency, "p95"),
        pilot=record.get("pilot") is True,
        test=_text(record, "test"),
        alpha=_number(record, "alpha"),
        values=_text(record, "values"),
        report=_text(record, "report"),
    )


def _score(record: Mapping[str, Any]) -> Score:
    from cranfield.evaluation.history import Score

    return Score(
        _number(record, "mean"), _whole(record, "n") or 0, _number(record, "ci_low"), _number(record, "ci_high")
    )


def _required(record: Mapping[str, Any], name: str, kind: type[T]) -> T:
    found = record.get(name)
    if not isinstance(found, kind):
        raise _DamagedError(f"no {name}")
    return found


def _text(record: Mapping[str, Any], name: str) -> str | None:
    found = record.get(name)
    return found if isinstance(found, str) else None


def _number(record: Mapping[str, Any], name: str) -> float | None:
    found = record.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise _DamagedError(f"{name} is no number")
    return float(found)


def _whole(record: Mapping[str, Any], name: str) -> int | None:
    found = record.get(name)
    if isinstance(found, bool) or not isinstance(found, int | None):
        raise _DamagedError(f"{name} is no whole number")
    return found


def _time(record: Mapping[str, Any]) -> datetime:
    try:
        found = datetime.fromisoformat(_required(record, "time", str))
    except ValueError:
        raise _DamagedError("no time") from None
    if found.tzinfo is None:
        raise _DamagedError("a time without its zone")
    return found.astimezone(UTC)
