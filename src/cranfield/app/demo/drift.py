"""Fit the demo's test set to the running Python: judgments of objects that it does not have are removed and listed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from cranfield.app.demo.entity import Corpus
from cranfield.base.words import count_noun
from cranfield.model import Criteria, Entity, File, Legacy, Passage, Pattern, Predicate, Span, Target, TestSet


@dataclass(frozen=True)
class Drift:
    """What a test set expects and this Python does not have."""

    python: str
    """Version of the running interpreter: `3.11.7`."""
    ids: tuple[tuple[str, str], ...] = ()
    """(query id, document id): judgments that were left out."""
    targets: tuple[tuple[str, str], ...] = ()
    """(query id, label): patterns, places and predicates that no document fits; left out too."""
    queries: tuple[str, ...] = ()
    """Queries without any relevant document left; removed."""
    legacy: tuple[str, ...] = ()
    """Queries whose legacy form does not exist any more; kept without a class."""

    def sentences(self) -> list[str]:
        """Sentences about what was left out, one for each kind."""
        sentences = []
        if self.ids:
            names = sorted({entity_id for _, entity_id in self.ids})
            sentences.append(f"Python {self.python} lacks {count_noun(len(names), 'judged entities')}, left out: ")
            sentences[-1] += ", ".join(names) + "."
        if self.targets:
            names = [label for _, label in self.targets]
            sentences.append(f"Nothing in Python {self.python} matches {', '.join(names)}; left out.")
        if self.queries:
            count = count_noun(len(self.queries), "queries")
            sentences.append(f"{count} left out, with nothing relevant here: {', '.join(self.queries)}.")
        if self.legacy:
            count = count_noun(len(self.legacy), "queries")
            sentences.append(f"{count} of no class, with no legacy form here: {', '.join(self.legacy)}.")
        return sentences


def fit_to_corpus(
    testset: TestSet, corpus: Corpus, *, python: str, gives: Callable[[Predicate], bool] = lambda _: True
) -> tuple[TestSet, Drift]:
    """Remove from a test set what a corpus does not contain.

    A query stays as long as one document of a grade above 0, or one target that fits something, is left; one where
    nothing should be found stays anyhow.

    Args:
        testset: for the versions of Python it was written for.
        corpus: of this Python.
        python: its version.
        gives: whether a predicate names anything here.
    """
    ids: list[tuple[str, str]] = []
    missed: list[tuple[str, str]] = []
    gone: list[str] = []
    grades, targets = {}, {}
    for query in testset.queries:
        judged = testset.grades.get(query.id, {})
        grades[query.id] = {entity_id: grade for entity_id, grade in judged.items() if entity_id in corpus}
        ids += [(query.id, entity_id) for entity_id in judged if entity_id not in corpus]
        wanted = testset.targets.get(query.id, ())
        targets[query.id] = tuple(target for target in wanted if _fits(target, corpus, gives))
        missed += [(query.id, target.label) for target in wanted if target not in targets[query.id]]
        relevant = targets[query.id] or any(grade > 0 for grade in grades[query.id].values())
        if not relevant and query.negative is None:
            gone.append(query.id)
    kept = [query for query in testset.queries if query.id not in gone]
    legacy = {query.id: _here(testset.legacy[query.id], corpus) for query in kept if query.id in testset.legacy}
    without = tuple(query_id for query_id, forms in legacy.items() if forms is None)
    fitted = replace(
        testset,
        queries=tuple(replace(query, query_class="") if query.id in without else query for query in kept),
        grades={query.id: grades[query.id] for query in kept if grades[query.id]},
        targets={query.id: targets[query.id] for query in kept if targets[query.id]},
        legacy={query_id: forms for query_id, forms in legacy.items() if forms is not None},
    )
    return fitted, Drift(python, tuple(ids), tuple(missed), tuple(gone), without)


def _fits(target: Target, corpus: Corpus, gives: Callable[[Predicate], bool]) -> bool:
    match target:
        case Pattern():
            return _matches_any(target.regex, corpus)
        case Entity():
            return target.id in corpus
        case Span() | File():
            return any(entity.path == target.path for entity in corpus)
        case Predicate():
            return gives(target)
        case Criteria() | Passage():
            return True


def _matches_any(regex: str, corpus: Corpus) -> bool:
    compiled = re.compile(regex)
    return any(compiled.search(entity.id) for entity in corpus)


def _here(legacy: Legacy, corpus: Corpus) -> Legacy | None:
    """The spellings of a legacy form that this Python has; None when it has none."""
    ids = tuple(entity_id for entity_id in legacy.ids if entity_id in corpus)
    patterns = tuple(regex for regex in legacy.patterns if _matches_any(regex, corpus))
    return Legacy(ids, patterns) if ids or patterns else None
