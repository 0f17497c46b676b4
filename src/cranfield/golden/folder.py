"""The folder of a run: a file of JSON Lines for each step."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from cranfield.agents.recording import RecordFolder, manifest_of
from cranfield.golden.outcomes import RunManifest
from cranfield.golden.records import SCHEMA_VERSION


class Step(StrEnum):
    """A file of the folder, by its name."""

    CANDIDATES = "00_candidates.jsonl"
    ANSWERS = "01_oracle_answers.jsonl"
    REPORTS = "02_adversary_reports.jsonl"
    AGREEMENTS = "02_agreements.jsonl"
    GATE_FAILURES = "03_validation_failures.jsonl"
    REVIEW_QUEUE = "04_human_review_queue.jsonl"
    REJECTED = "05_rejected.jsonl"
    REVIEW_SAMPLES = "review_samples.jsonl"
    HUMAN_REVIEWS = "human_reviews.jsonl"
    TRANSCRIPTS = "transcripts.jsonl"


FEEDBACK = "feedback.jsonl"
"""Failures that people found in an earlier batch, where there are some."""


class RunFolder(RecordFolder[RunManifest]):
    """The files of a run."""

    files = Step
    schema_version = SCHEMA_VERSION

    @classmethod
    def read_manifest(cls, path: Path) -> RunManifest:
        """What the run is of."""
        hint = "give the folder printed by `cranfield golden run`"
        return manifest_of(path, RunManifest, SCHEMA_VERSION, missing="not a golden run", hint=hint)
