"""The folder of an experiment: plan and tasks as they were when it began, cells, preflights, scores, transcripts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from cranfield.agents.recording import PLAN, RecordFolder, TreeRecord, manifest_of
from cranfield.base.errors import InputError, ProblemList
from cranfield.benefit.plan import BenefitPlan, load_plan
from cranfield.benefit.records import SCHEMA_VERSION, CellKey, CellRecord, PreflightRecord, ScoreRecord
from cranfield.benefit.tasks import TaskSet, load_tasks
from cranfield.formats.io.files import read_bytes, shown, write_text
from cranfield.formats.io.validation import ClosedModel, Filled

TRANSCRIPTS = "transcripts"
TASKS = "tasks"
"""Folder of the copy of the tasks."""


class ExperimentFile(StrEnum):
    """An append-only file of the folder, by its name."""

    PREFLIGHT = "preflight.jsonl"
    BEGUN = "begun.jsonl"
    CELLS = "cells.jsonl"
    SCORES = "scores.jsonl"
    TREES = "trees.jsonl"


class ExperimentManifest(ClosedModel):
    """What an experiment is of. Everything but the times is the same when it is resumed."""

    name: Filled
    created_at: str
    cranfield_version: str
    plan_digest: str
    labels_digest: str = ""
    commit: str = ""
    snapshot_digest: str = ""
    """Digest of the paths and contents of all files of the repository; empty: the tasks need none."""
    tree: TreeRecord = TreeRecord()
    """State of the folder of the repository, which a tool under test may read."""
    notes: tuple[str, ...] = ()
    schema_version: str = SCHEMA_VERSION


class BegunRecord(ClosedModel):
    """A run of a cell that was begun. Without a `CellRecord` of the same attempt it was interrupted."""

    schema_version: str = SCHEMA_VERSION
    key: CellKey
    attempt: int
    at: str


class ExperimentFolder(RecordFolder[ExperimentManifest]):
    """The files of an experiment."""

    files = ExperimentFile
    schema_version = SCHEMA_VERSION

    @classmethod
    def read_manifest(cls, path: Path) -> ExperimentManifest:
        """What the experiment is of."""
        hint = "give the folder printed by `cranfield benefit run`"
        return manifest_of(path, ExperimentManifest, SCHEMA_VERSION, missing="no experiment", hint=hint)

    @property
    def plan(self) -> BenefitPlan:
        """As it was when the experiment began, but for budget and addresses."""
        return load_plan(self.path / PLAN)

    def tasks(self) -> TaskSet:
        """The tasks, from their copy."""
        return load_tasks(self.plan, self.path)

    def cells(self) -> list[CellRecord]:
        """Every run of a cell, in the order in which they ended.

        Raises:
            InputError: lines are damaged, or a cell is scored twice.
        """
        found = self.read(ExperimentFile.CELLS, CellRecord)
        problems, seen = ProblemList(InputError), set[CellKey]()
        for line, cell in enumerate(found, start=1):
            if cell.end.is_scored and cell.key in seen:
                problems.add(f"{cell.key} ended twice", path=shown(self.path / ExperimentFile.CELLS), line=line)
            if cell.end.is_scored:
                seen.add(cell.key)
        problems.raise_if_any()
        return found

    def scored_cells(self) -> dict[CellKey, CellRecord]:
        """Scored run of every cell that ended."""
        return {cell.key: cell for cell in self.cells() if cell.end.is_scored}

    def n_interrupted(self) -> int:
        """Runs that were begun and did not end."""
        begun = Counter((each.key, each.attempt) for each in self.read(ExperimentFile.BEGUN, BegunRecord))
        begun.subtract((each.key, each.attempt) for each in self.cells())
        return sum(begun.values())

    def preflights(self) -> list[PreflightRecord]:
        """Records of the preflights of every time the experiment was run."""
        return self.read(ExperimentFile.PREFLIGHT, PreflightRecord)

    def scores(self) -> list[ScoreRecord]:
        """Scores, in their order."""
        return self.read(ExperimentFile.SCORES, ScoreRecord)

    def keep_transcript(self, transcript: Mapping[str, Any]) -> str:
        """Write a transcript; the same one is written once.

        Returns:
            Its name: `sha256-....json`.
        """
        text = json.dumps(transcript, ensure_ascii=True, sort_keys=True)
        name = f"sha256-{hashlib.sha256(text.encode()).hexdigest()}.json"
        folder = self.path / TRANSCRIPTS
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            write_text(folder / name, [text])
        return name

    def transcript(self, name: str) -> dict[str, Any]:
        """A transcript by its name.

        Raises:
            InputError: it is not there, or its content is not what its name says.
        """
        path = self.path / TRANSCRIPTS / Path(name).name
        data = read_bytes(path, InputError)
        if f"sha256-{hashlib.sha256(data).hexdigest()}.json" != path.name:
            raise InputError("a transcript has been changed", path=shown(path))
        found: dict[str, Any] = json.loads(data)
        return found
