"""A run over several test sets: which of them are collected, and a summary of their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.formats.io.files import write_text
from cranfield.formats.runs.jsonl import read_run, write_run
from cranfield.model import Run, Scalar
from cranfield.reporting.document import PILOT_STAMP, Bullets, Cell, Column, Document, Link, Section, Table
from cranfield.systems.collect.collection import PARTIAL, RUNS
from cranfield.systems.collect.journal import with_ages

DONE = "done.json"
"""In the partial folder of the output: name of each collected test set to what it was collected with."""


@dataclass(frozen=True)
class CollectedSets:
    """The test sets that an interrupted run has collected."""

    folder: Path
    """The output folder."""

    def runs(self, name: str, inputs: Mapping[str, Any], systems: Sequence[str]) -> dict[str, Run] | None:
        """The runs of a test set that was collected with the same inputs; None where there are none."""
        if self._read().get(name) != inputs:
            return None
        paths = {system: self.folder / name / RUNS / f"{system}.jsonl" for system in systems}
        if not all(path.is_file() for path in paths.values()):
            return None
        runs = {system: with_ages(read_run(path)) for system, path in paths.items()}
        for system, run in runs.items():
            write_run(run, paths[system])
        return runs

    def add(self, name: str, inputs: Mapping[str, Any]) -> None:
        """Record that a test set is collected."""
        (self.folder / PARTIAL).mkdir(parents=True, exist_ok=True)
        write_text(self.folder / PARTIAL / DONE, [json.dumps({**self._read(), name: inputs}, indent=1) + "\n"])

    def clear(self) -> None:
        """Forget all of them: every test set is done."""
        (self.folder / PARTIAL / DONE).unlink(missing_ok=True)
        if (self.folder / PARTIAL).is_dir() and not any((self.folder / PARTIAL).iterdir()):
            (self.folder / PARTIAL).rmdir()

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / PARTIAL / DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class SetResult:
    """The result of one test set, as the summary shows it."""

    name: str
    params: Mapping[str, Scalar]
    document: Document
    report: str
    """File name of its report, in the folder of its name."""
    measure: str
    n: int
    means: tuple[float | None, float | None, float | None] = (None, None, None)
    """Of A, of B, and their difference, on the measure."""
    verdict: Cell = ""


def summary_document(results: Sequence[SetResult]) -> Document:
    """A row for each test set, with a link to its own report."""
    documents = [result.document for result in results]
    sentences = tuple(
        f"{result.name}: {result.document.verdict.sentence if result.document.verdict else result.document.title}"
        for result in results
    )
    return Document(
        title=f"{len(results)} test sets: {', '.join(result.name for result in results)}",
        subtitle=tuple(dict.fromkeys(document.title for document in documents)),
        sections=(Section("sets", "Test sets", (_table(results), Bullets(sentences))),),
        tidy=lambda: _tidy(results),
        payload=lambda: {"testsets": {result.name: result.document.payload() for result in results}},
        stamps=tuple(
            dict.fromkeys(stamp for document in documents for stamp in document.stamps if stamp == PILOT_STAMP)
        ),
        made_by=documents[0].made_by,
    )


def _table(results: Sequence[SetResult]) -> Table:
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
        (
            Link(result.name, f"{result.name}/{result.report}"),
            ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in result.params.items()),
            result.n,
            result.measure,
            *result.means,
            result.verdict,
        )
        for result in results
    ]
    caption = f"Each test set has its own report, in the folder of its name: NAME/{results[0].report}"
    return Table(columns, rows, caption, shown=None)


def _tidy(results: Sequence[SetResult]) -> Table:
    tables = {result.name: result.document.tidy() for result in results}
    columns = list(dict.fromkeys(column for table in tables.values() for column in table.columns))
    rows = []
    for name, table in tables.items():
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            rows.append((name, *(cells.get(column) for column in columns)))
    return Table((Column("test set"), *columns), rows, "Every value", shown=None)
