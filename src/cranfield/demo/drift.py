"""Fits the demo's test set to the Python at hand: what this Python does not have is left out, and named.

A test set is true of the versions it was written for. Scoring a system for not finding what is not there would blame it
for the calendar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cranfield.demo.entity import Corpus
from cranfield.model import Pattern, Query, TestSet

LEGACY = "legacy"
"""Stratum that names the legacy form of a thing; several spellings of one id are separated by blanks."""


@dataclass(frozen=True)
class Drift:
    """What a test set expects and this Python does not have."""

    python: str
    """Version of the running interpreter: `3.11.7`."""
    ids: tuple[tuple[str, str], ...] = ()
    """(query id, document id): judgments that were left out."""
    patterns: tuple[tuple[str, str], ...] = ()
    """(query id, regex): patterns that no document matches; left out too."""
    queries: tuple[str, ...] = ()
    """Queries of which nothing relevant is left; left out as a whole."""

    def sentences(self) -> list[str]:
        """Say what was left out, a sentence for each kind; nothing when nothing was."""
        said = []
        if self.ids:
            names = sorted({entity_id for _, entity_id in self.ids})
            said.append(f"Python {self.python} lacks {_count(names, 'judged entity', 'judged entities')}, left out: ")
            said[-1] += ", ".join(names) + "."
        if self.patterns:
            names = [regex for _, regex in self.patterns]
            said.append(f"Nothing in Python {self.python} matches {', '.join(names)}; left out.")
        if self.queries:
            count = _count(self.queries, "query", "queries")
            said.append(f"{count} left out, with nothing relevant here: {', '.join(self.queries)}.")
        return said


def _count(things: Iterable[str], one: str, many: str) -> str:
    n = len(list(things))
    return f"{n} {one if n == 1 else many}"


def fit_to_corpus(testset: TestSet, corpus: Corpus, *, python: str) -> tuple[TestSet, Drift]:
    """Leave out of a test set what a corpus does not hold.

    A query stays as long as one document of a grade above 0, or one pattern that matches something, is left.
    """
    ids: list[tuple[str, str]] = []
    patterns: list[tuple[str, str]] = []
    gone: list[str] = []
    kept: list[Query] = []
    kept_grades, kept_patterns = {}, {}
    for query in testset.queries:
        grades = testset.grades.get(query.id, {})
        here = {entity_id: grade for entity_id, grade in grades.items() if entity_id in corpus}
        ids += [(query.id, entity_id) for entity_id in grades if entity_id not in corpus]
        wanted = [target for target in testset.targets.get(query.id, ()) if isinstance(target, Pattern)]
        matching = tuple(pattern for pattern in wanted if _matches_any(pattern.regex, corpus))
        patterns += [(query.id, pattern.regex) for pattern in wanted if pattern not in matching]
        if not matching and not any(grade > 0 for grade in here.values()):
            gone.append(query.id)
            continue
        kept.append(_with_legacy_that_is_here(query, corpus))
        if here:
            kept_grades[query.id] = here
        if matching:
            kept_patterns[query.id] = matching
    fitted = replace(testset, queries=tuple(kept), grades=kept_grades, targets=kept_patterns)
    return fitted, Drift(python, tuple(ids), tuple(patterns), tuple(gone))


def _matches_any(regex: str, corpus: Corpus) -> bool:
    compiled = re.compile(regex)
    return any(compiled.search(entity.id) for entity in corpus)


def _with_legacy_that_is_here(query: Query, corpus: Corpus) -> Query:
    """The query with its legacy stratum cut to the spellings this Python has; without it when it has none."""
    if LEGACY not in query.strata:
        return query
    here = [entity_id for entity_id in query.strata[LEGACY].split() if entity_id in corpus]
    strata = {name: value for name, value in query.strata.items() if name != LEGACY}
    return replace(query, strata={**strata, LEGACY: " ".join(here)} if here else strata)
