"""Queries that were left out because the repository has changed."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.measures import Measure
from cranfield.model import NoteKind


def left_out_queries(system: Scored, measure: Measure | None, threshold: float) -> Iterator[Found]:
    """Queries that `--intact` left out of the test set."""
    del measure
    for note in system.testset.notes:
        if note.kind is NoteKind.INTACT and len(note.query_ids) > threshold:
            yield Found(note.text, note.query_ids, len(note.query_ids), note.total)
