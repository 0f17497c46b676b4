"""The test set that a result is of, as records have it."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.model.note import Note, NoteKind
from cranfield.model.testset import OtherJudgments, TestSet


@dataclass(frozen=True, slots=True)
class TestSetRecord:
    """What identifies a test set, and what is to be known of it beside its queries."""

    __test__ = False

    name: str
    version: str
    digest: str
    n_queries: int
    review: str = ""
    """Free text of its metadata: `agent curated, pending human review`."""
    other_judgments: OtherJudgments | None = None
    """Judgments that took the place of its own."""
    notes: tuple[Note, ...] = ()
    uncommitted: str = ""
    """A sentence on changes of the repository that no commit has; of the set as it is stored where it was not read again."""

    @classmethod
    def of(cls, testset: TestSet) -> TestSetRecord:
        """The record of a test set."""
        uncommitted = (note.text.removesuffix(".") for note in testset.notes if note.kind is NoteKind.UNCOMMITTED)
        return cls(
            testset.name,
            testset.version,
            testset.digest,
            len(testset.queries),
            testset.meta.review,
            testset.other_judgments,
            testset.notes,
            next(uncommitted, testset.meta.uncommitted),
        )
