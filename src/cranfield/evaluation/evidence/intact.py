"""Queries whose expected places are not as they were in the repository: left out, or accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cranfield.evaluation.evidence.values import Found, Scored
from cranfield.model import NoteKind


def uncommitted_changes(system: Scored, threshold: float) -> Iterator[Found]:
    """Changes of the repository that a note on the test set names; where it has no count, there are some."""
    for note in system.testset.notes:
        if note.kind is NoteKind.UNCOMMITTED and max(note.total, 1) > threshold:
            yield Found(note.text, (), note.total, note.total, of_testset=True)


def queries_noted(kind: NoteKind) -> Callable[[Scored, float], Iterator[Found]]:
    """The check of queries that a note on the test set names: left out by `--intact`, or kept by `--allow-drift`."""

    def check(system: Scored, threshold: float) -> Iterator[Found]:
        for note in system.testset.notes:
            if note.kind is kind and len(note.query_ids) > threshold:
                yield Found(note.text, note.query_ids, len(note.query_ids), note.total, of_testset=True)

    return check
