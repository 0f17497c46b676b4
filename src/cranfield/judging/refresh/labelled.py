"""New queries of a refresh in the form of the set that they join: labelled ids become symbols, lines, files or patterns."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from cranfield.formats.convert import fitted
from cranfield.formats.registry import Format
from cranfield.formats.testsets.meta_file import holds_meta
from cranfield.formats.testsets.storage import Saved, save_spliced
from cranfield.model import Entity, File, Meta, Pattern, Span, Target, TestSet
from cranfield.ranking.matching.place import ENTITY_MARK

_SPAN = re.compile(r"(?P<path>.+):(?P<start>[1-9]\d{0,8})-(?P<end>[1-9]\d{0,8})")


def save_renewed(renewed: TestSet, new: Collection[str], source: Path, out: Path, entry: Format) -> Saved | None:
    """Save the next version of a test set in the text of the old one, as far as its format holds it.

    Args:
        renewed: the next version.
        new: ids of the queries that came.
        source: file of the old version.
        out: file of the next one.
        entry: the format of both.

    Returns:
        The files, and what the format does not hold of the labels; None where a query would be lost, or the text has no
        room.
    """
    kept = renewed if "grades" in entry.holds else with_targets(renewed, new, entry.holds)
    kept, losses = fitted(kept if holds_meta(entry) else replace(kept, meta=Meta()), entry, out)
    if len(kept.queries) < len(renewed.queries):
        return None
    saved = save_spliced(replace(kept, meta=renewed.meta), source, out, entry)
    return None if saved is None else Saved(saved.files, (*saved.notes, *losses))


def with_targets(testset: TestSet, query_ids: Collection[str], holds: frozenset[str]) -> TestSet:
    """The test set with the graded ids of some queries as targets of the kinds that a format holds.

    A grade of 0 is left out: what matches no target is not relevant.
    """
    targets = {
        query_id: tuple(
            target
            for doc_id, grade in testset.grades.get(query_id, {}).items()
            if grade > 0 and (target := _target(doc_id, grade, holds)) is not None
        )
        for query_id in query_ids
    }
    grades = {query_id: judged for query_id, judged in testset.grades.items() if query_id not in targets}
    ratings = {query_id: rated for query_id, rated in testset.ratings.items() if query_id not in targets}
    return replace(
        testset,
        targets={**testset.targets, **targets},
        grades=grades,
        ratings=ratings,
        consensus=testset.consensus if ratings else "",
    )


def _target(doc_id: str, grade: float, holds: frozenset[str]) -> Target | None:
    found = _SPAN.fullmatch(doc_id)
    if found is not None and "spans" in holds and int(found["start"]) <= int(found["end"]):
        return Span(found["path"], int(found["start"]), int(found["end"]), grade)
    if ENTITY_MARK in doc_id and "entities" in holds:
        return Entity(doc_id, grade)
    if "file targets" in holds:
        return File(doc_id, grade)
    return Pattern(f"^{re.escape(doc_id)}$", grade) if "patterns" in holds else None
