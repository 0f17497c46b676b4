"""Saved runs that are older than their config: a warning on stderr, and a stamp on every form of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.app.command import note
from cranfield.words import and_list, first_of

if TYPE_CHECKING:
    from cranfield.reporting.document import Document

MOST_NAMED = 3
"""Systems in the stamp."""
_STALE: ContextVar[tuple[str, ...]] = ContextVar("stale", default=())


@contextmanager
def collecting_stale() -> Iterator[None]:
    """One command: what is noted inside is stamped on its report."""
    token = _STALE.set(())
    try:
        yield
    finally:
        _STALE.reset(token)


def note_stale(system: str, changed: Sequence[str]) -> None:
    """Say on stderr what changed since the run of a system was saved, and keep it for the report."""
    what = f"the saved run of {system} is stale: {and_list(changed)} changed since"
    note(f"warning: {what}; `cranfield run` makes it again")
    _STALE.set((*_STALE.get(), system))


def stamped(document: Document) -> Document:
    """The document with a stamp where a run of it is stale."""
    systems = _STALE.get()
    if not systems:
        return document
    stamp = f"STALE: saved before the config or test set changed: {first_of(systems, MOST_NAMED)}"
    return replace(document, stamps=(*document.stamps, stamp))
