"""A run over several test sets: what is done already, and one short summary on top."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.formats.io.files import write_text
from cranfield.formats.runs.jsonl import read_run
from cranfield.model import Run, Scalar
from cranfield.reporting.document import PILOT_STAMP, Bullets, Cell, Column, Document, Link, Section, Table, Toned
from cranfield.systems.collect.collection import PARTIAL, RUNS

if TYPE_CHECKING:
    from cranfield.project.job import Job

DONE = "done.json"
"""In the partial folder of the whole: set to what it was collected with. The whole is not done before the last set."""


@dataclass(frozen=True)
class Done:
    """What an interrupted run over several test sets has collected."""

    folder: Path
    """The output folder of the whole."""

    def runs(self, name: str, same: Mapping[str, Any], systems: Sequence[str]) -> dict[str, Run] | None:
        """The runs of a set that was collected before, with the same of everything; None where there are none."""
        if self._read().get(name) != same:
            return None
        paths = {system: self.folder / name / RUNS / f"{system}.jsonl" for system in systems}
        if not all(path.is_file() for path in paths.values()):
            return None
        return {system: read_run(path) for system, path in paths.items()}

    def add(self, name: str, same: Mapping[str, Any]) -> None:
        """Note that a set is collected."""
        (self.folder / PARTIAL).mkdir(parents=True, exist_ok=True)
        write_text(self.folder / PARTIAL / DONE, [json.dumps({**self._read(), name: same}, indent=1) + "\n"])

    def forget(self) -> None:
        """The whole is done: the next call asks anew."""
        (self.folder / PARTIAL / DONE).unlink(missing_ok=True)
        if (self.folder / PARTIAL).is_dir() and not any((self.folder / PARTIAL).iterdir()):
            (self.folder / PARTIAL).rmdir()

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / PARTIAL / DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def summary(jobs: Mapping[str, Job], params: Mapping[str, Mapping[str, Scalar]]) -> Document:
    """A line for each test set: what came out, and where its own report is.

    Args:
        jobs: by name of the set, in their order.
        params: what each set gives with every query.
    """
    documents = [job.document for job in jobs.values()]
    said = tuple(
        f"{name}: {job.document.verdict.sentence if job.document.verdict else job.document.title}"
        for name, job in jobs.items()
    )
    return Document(
        title=f"{len(jobs)} test sets: {', '.join(jobs)}",
        subtitle=tuple(dict.fromkeys(document.title for document in documents)),
        sections=(Section("sets", "Test sets", (_verdicts(jobs, params), Bullets(said))),),
        tidy=lambda: _tidy(jobs),
        payload=lambda: {"testsets": {name: job.document.payload() for name, job in jobs.items()}},
        stamp=PILOT_STAMP if any(document.stamp for document in documents) else "",
        made_by=documents[0].made_by,
    )


def _verdicts(jobs: Mapping[str, Job], params: Mapping[str, Mapping[str, Scalar]]) -> Table:
    columns = (
        Column("test set"),
        Column("params"),
        Column("queries", "count"),
        Column("measure"),
        Column("A", "value"),
        Column("B", "value"),
        Column("difference", "delta"),
        Column("verdict"),
    )
    rows = [
        (Link(name, f"{name}/{job.report.name}"), _said(params.get(name, {})), *_numbers(job))
        for name, job in jobs.items()
    ]
    report = next(iter(jobs.values())).report.name
    return Table(
        columns, rows, f"Each test set has its own report, in the folder of its name: NAME/{report}", shown=None
    )


def _said(params: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in params.items())


def _numbers(job: Job) -> tuple[Cell, ...]:
    """Queries, measure, both means, difference and verdict; of one system alone its mean."""
    measure = job.primary or job.evaluations[0].measures[0]
    if job.many is not None:
        verdict = job.document.verdict
        named: Cell = Toned(verdict.name, verdict.tone) if verdict is not None else ""
        return len(job.many.query_ids), str(measure), None, None, None, named
    if job.comparison is None:
        summary = job.evaluations[0].summaries[measure]
        broken = VerdictCode.INVALID.text if job.broken_limits else "one system, nothing to compare"
        return summary.n, str(measure), summary.mean, None, None, broken
    compared, verdict = job.comparison.measures[measure], job.document.verdict
    said: Cell = Toned(verdict.name, verdict.tone) if verdict is not None else ""
    return compared.n, str(measure), compared.baseline.mean, compared.candidate.mean, compared.delta, said


def _tidy(jobs: Mapping[str, Job]) -> Table:
    tables = {name: job.document.tidy() for name, job in jobs.items()}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    rows = []
    for name, table in tables.items():
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            rows.append((name, *(cells.get(column) for column in columns)))
    return Table((Column("test set"), *columns), rows, "Every value", shown=None)
