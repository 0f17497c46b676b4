"""What is looked for in a list of results besides the expected items: files to cover, a legacy form, sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cranfield.matching.place import path_of, place_of
from cranfield.model import Hit, Source, TestSet


@dataclass(frozen=True, slots=True)
class Lookout:
    """What one query looks for; empty where it looks for nothing."""

    files: tuple[str, ...] = ()
    """Paths, in the one form."""
    file_of: Callable[[Hit], str] = lambda hit: hit.id
    """The path a result lies in, in the one form."""
    is_legacy: Callable[[str], bool] | None = None
    """Whether an id is of the legacy form; None where there is none."""
    sources: tuple[re.Pattern[str], ...] = ()
    """Of each source, the highest authority first."""
    answered_by: frozenset[int] = frozenset()
    """Sources that an expected document is of; none where the truth is no list of documents."""

    def __bool__(self) -> bool:
        """Whether anything is looked for."""
        return bool(self.files or self.is_legacy or self.sources)

    def source_of(self, doc_id: str) -> int | None:
        """Place of the first source that fits an id; None where none does."""
        return next((place for place, pattern in enumerate(self.sources) if pattern.search(doc_id)), None)


def looks_for(testset: TestSet, query_id: str) -> Lookout:
    """What is looked for besides the expected items of a query."""
    rules = testset.matching
    sources = compiled_sources(testset.sources)
    answered_by: frozenset[int] = frozenset()
    if sources and query_id not in testset.targets:
        relevant = [doc_id for doc_id, grade in testset.grades.get(query_id, {}).items() if grade >= 1]
        found = (Lookout(sources=sources).source_of(doc_id) for doc_id in relevant)
        answered_by = frozenset(place for place in found if place is not None)
    return Lookout(
        files=tuple(dict.fromkeys(path_of(path, rules) for path in testset.files.get(query_id, ()))),
        file_of=lambda hit: place_of(hit, rules).path,
        is_legacy=_legacy(testset, query_id),
        sources=sources,
        answered_by=answered_by,
    )


def compiled_sources(sources: tuple[Source, ...]) -> tuple[re.Pattern[str], ...]:
    """The pattern of each source, compiled."""
    return tuple(re.compile(source.pattern) for source in sources)


def _legacy(testset: TestSet, query_id: str) -> Callable[[str], bool] | None:
    legacy = testset.legacy.get(query_id)
    if legacy is None:
        return None
    ids, patterns = frozenset(legacy.ids), [re.compile(pattern) for pattern in legacy.patterns]
    return lambda doc_id: doc_id in ids or any(pattern.search(doc_id) for pattern in patterns)
