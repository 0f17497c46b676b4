"""Queries whose expected places are not as they were in the repository: left out, or accepted."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.model import NoteKind


def left_out_queries(system: Scored, threshold: float) -> Iterator[Found]:
    """Queries that `--intact` left out of the test set."""
    yield from _noted(system, NoteKind.INTACT, threshold)


def drifted_queries(system: Scored, threshold: float) -> Iterator[Found]:
    """Queries that `--allow-drift` kept in the test set."""
    yield from _noted(system, NoteKind.DRIFT, threshold)


def _noted(system: Scored, kind: NoteKind, threshold: float) -> Iterator[Found]:
    for note in system.testset.notes:
        if note.kind is kind and len(note.query_ids) > threshold:
            yield Found(note.text, note.query_ids, len(note.query_ids), note.total)
