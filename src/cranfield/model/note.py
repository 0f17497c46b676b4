"""Notes: what a reader or a step that changed a test set reports about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class NoteKind(StrEnum):
    """What a note is about. Programs decide by the kind, never by the text."""

    INFO = "info"
    """How the set was read or changed."""
    NOT_CARRIED = "not carried"
    """Content of the source that the test set does not hold: writing the set over its source would delete it."""
    UNUSED = "not used"
    """Content of another file, given beside the set, that has no place in it: texts of queries without judgments."""
    CONSENSUS = "consensus"
    """Grades were made from ratings."""
    INTACT = "intact"
    """Queries were left out because a place that they expect is not as it was."""
    DRIFT = "drift"
    """Queries stay although a place that they expect is not as it was."""
    UNCOMMITTED = "uncommitted"
    """The repository has, or had, changes that no commit has; `total` counts them where that is known."""


@dataclass(frozen=True, slots=True)
class Note:
    """One note on a test set; `str(note)` is its text."""

    kind: NoteKind
    text: str
    query_ids: tuple[str, ...] = ()
    """Queries that were left out, or that stay in spite of drift."""
    total: int = 0
    """Queries before that."""

    def __str__(self) -> str:
        """The text."""
        return self.text


def info(*texts: str) -> tuple[Note, ...]:
    """Notes of the kind `INFO`."""
    return tuple(Note(NoteKind.INFO, text) for text in texts)


def not_carried(texts: Iterable[str]) -> tuple[Note, ...]:
    """Notes of the kind `NOT_CARRIED`, with `not carried over: ` before each text."""
    return tuple(Note(NoteKind.NOT_CARRIED, f"not carried over: {text}") for text in texts)
