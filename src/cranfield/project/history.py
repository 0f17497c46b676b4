"""The local history: a line for every evaluation, in `.cranfield/history.jsonl` beside the config.

Lines are only ever added, each under a lock and in one piece. What cannot be read is counted and said, and the rest is
read all the same: a history outlives versions, crashes and editors.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cranfield.errors import UsageError
from cranfield.evaluation.history import FirstBad, Past, Score
from cranfield.evaluation.latency import latency_summary
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import refusal
from cranfield.measures import Measure
from cranfield.project.local import FOLDER, local_folder
from cranfield.repo.commits import Standing, commits_between, standing
from cranfield.reporting.facts import judged_share

FILE = "history.jsonl"
VERSION = 1


@dataclass(frozen=True, slots=True)
class History:
    """What is written down, and what of it could not be read."""

    path: Path
    points: tuple[Past, ...]
    """In the order of the file."""
    damaged: tuple[tuple[int, str], ...] = ()
    """Number of each line that could not be read, and why."""


def record_of(
    evaluation: Evaluation, *, when: datetime, commit: Standing | None = None, primary: Measure | None = None
) -> dict[str, Any]:
    """What is written down of an evaluation.

    Args:
        evaluation: of one system on one test set.
        when: it was made; with a time zone.
        commit: where the repository of the config stood; None outside of one. See `cranfield.repo.commits.standing`.
        primary: the measure that decides.
    """
    run, testset = evaluation.run, evaluation.testset
    took = latency_summary(evaluation)
    judged = judged_share(evaluation, primary.depth if primary is not None else None)
    return {
        "cranfield_history": VERSION,
        "time": when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "commit": None if commit is None else commit.commit,
        "dirty": commit is not None and commit.dirty,
        "testset": {"name": testset.name, "version": testset.version, "digest": testset.digest},
        "system": evaluation.name,
        "config_digest": None if run is None else run.config_digest,
        "run_digest": evaluation.run_digest,
        "convention": evaluation.ranking.convention.name,
        "k": None if run is None else run.depth,
        "primary": None if primary is None else str(primary),
        "measures": {
            str(measure): {"mean": found.mean, "n": found.n, "ci_low": found.ci_low, "ci_high": found.ci_high}
            for measure, found in evaluation.summaries.items()
        },
        "queries": len(evaluation.query_ids),
        "failures": len(evaluation.failures),
        "judged": judged.mean,
        "latency_ms": None if took is None else {"p50": took.p50_ms, "p95": took.p95_ms},
        "pilot": evaluation.pilot,
    }


def remember(folder: Path, evaluations: Sequence[Evaluation], primary: Measure | None = None) -> str | None:
    """Add evaluations that were made just now to the history beside a config; why not, where that is not possible.

    A history that cannot be written is no reason to lose the results.

    Args:
        folder: the config's.
        evaluations: all on one test set.
        primary: the measure that decides.
    """
    when, commit = datetime.now(UTC), standing(folder)
    try:
        append(folder, *(record_of(one, when=when, commit=commit, primary=primary) for one in evaluations))
    except UsageError as error:
        return f"the history was not written: {error}"
    return None


def append(folder: Path, *records: Mapping[str, Any]) -> Path:
    """Add a line for each record to the history beside a config.

    Several processes may do so at once: each holds a lock while it writes. A last line that a crash left without its end
    gets one, so that it spoils no other.

    Args:
        folder: the config's.
        records: what `record_of` makes.

    Raises:
        UsageError: it cannot be written.
    """
    path = local_folder(folder) / FILE
    lines = "".join(json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n" for record in records).encode()
    try:
        with path.open("a+b", buffering=0) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            size = stream.seek(0, os.SEEK_END)
            if size:
                stream.seek(size - 1)
                if stream.read(1) != b"\n":
                    lines = b"\n" + lines
            while lines:
                lines = lines[stream.write(lines) :]
            os.fsync(stream.fileno())
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    return path


def read_history(folder: Path) -> History:
    """The history beside a config.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    path = folder / FOLDER / FILE
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            "there is no history here", path=str(path), hint="`cranfield run` writes a line for every evaluation"
        ) from None
    except OSError as error:
        raise UsageError(refusal(path, error)) from error
    points: list[Past] = []
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
    """The same with the commits between the last good point and the first bad one, where git knows both."""
    if found.good is None or found.bad is None or found.good.commit is None or found.bad.commit is None:
        return found
    return replace(found, commits=commits_between(folder, found.good.commit, found.bad.commit))


class _DamagedError(Exception):
    """A line that is JSON, and no record of ours."""


def _no_number(name: str) -> float:
    raise ValueError(name)


def _past(record: object) -> Past:
    if not isinstance(record, dict):
        raise _DamagedError("not a record")
    if record.get("cranfield_history") != VERSION:
        raise _DamagedError(f"not a record of version {VERSION}")
    testset, took = _mapping(record, "testset"), record.get("latency_ms")
    took = took if isinstance(took, dict) else {}
    scores = _mapping(record, "measures")
    measures = {name: _score(_mapping(scores, name)) for name in scores}
    return Past(
        time=_time(record),
        testset=_text(testset, "name"),
        version=_text(testset, "version"),
        digest=_text(testset, "digest"),
        system=_text(record, "system"),
        convention=_text(record, "convention"),
        measures=measures,
        commit=_text_or_none(record, "commit"),
        dirty=record.get("dirty") is True,
        primary=_text_or_none(record, "primary"),
        config_digest=_text_or_none(record, "config_digest"),
        run_digest=_text_or_none(record, "run_digest"),
        k=_whole(record, "k"),
        n_queries=_whole(record, "queries") or 0,
        n_failed=_whole(record, "failures") or 0,
        judged=_number(record, "judged"),
        p50_ms=_number(took, "p50"),
        p95_ms=_number(took, "p95"),
        pilot=record.get("pilot") is True,
    )


def _score(one: Mapping[str, Any]) -> Score:
    return Score(_number(one, "mean"), _whole(one, "n") or 0, _number(one, "ci_low"), _number(one, "ci_high"))


def _mapping(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = record.get(name)
    if not isinstance(found, dict):
        raise _DamagedError(f"no {name}")
    return found


def _text(record: Mapping[str, Any], name: str) -> str:
    found = record.get(name)
    if not isinstance(found, str):
        raise _DamagedError(f"no {name}")
    return found


def _text_or_none(record: Mapping[str, Any], name: str) -> str | None:
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
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise _DamagedError(f"{name} is no whole number")
    return found


def _time(record: Mapping[str, Any]) -> datetime:
    try:
        found = datetime.fromisoformat(_text(record, "time"))
    except ValueError:
        raise _DamagedError("no time") from None
    if found.tzinfo is None:
        raise _DamagedError("a time without its zone")
    return found.astimezone(UTC)
