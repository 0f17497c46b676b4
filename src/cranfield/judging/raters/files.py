"""Judgments of several files as the ratings of one test set: a rater a file, or the raters that a file names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cranfield.base.errors import TestSetError
from cranfield.base.words import n_of
from cranfield.evaluation.testset.consensus import ratings_of
from cranfield.formats.testsets.overlay import some_ids
from cranfield.model import Label, Query, Rating, TestSet
from cranfield.model.note import info


def merge_raters(files: Mapping[str, TestSet]) -> TestSet:
    """A test set with the ratings of several files.

    Args:
        files: name of a rater to the judgments; the name is not used for a file whose ratings name their raters. Raters
            of one name are one rater.

    Returns:
        A set with the queries of all files; texts, strata and labels are those of the first file that has them. Grades under 0
        are no ratings. Its notes name the queries that only some files have.

    Raises:
        TestSetError: there is a file without graded ids, or no query is in two files.
    """
    first = next(iter(files.values()))
    queries: dict[str, Query] = {}
    ratings: dict[str, list[Rating]] = {}
    places: dict[str, int] = {}
    labels: dict[str, Label] = {}
    for name, testset in files.items():
        found = _ratings(name, testset)
        labels = {**testset.labels, **labels}
        for query in testset.queries:
            known = queries.setdefault(query.id, query)
            if query.text and not known.text:
                queries[query.id] = replace(known, text=query.text)
            if found.get(query.id):
                ratings.setdefault(query.id, []).extend(found[query.id])
                places[query.id] = places.get(query.id, 0) + 1
    if not any(n > 1 for n in places.values()):
        raise TestSetError(
            f"no query is in two of the files {', '.join(files)}",
            expected="judgments of the same queries",
            got="; ".join(some_ids(testset.query_ids[:2]) for testset in files.values()),
        )
    some = [query_id for query_id, n in places.items() if n < len(files)]
    notes = [f"{n_of(len(some), 'queries')} not in every file: {some_ids(some)}"] if some else []
    return TestSet(
        name=" + ".join(files),
        queries=tuple(queries.values()),
        ratings={query_id: tuple(found) for query_id, found in ratings.items()},
        consensus=next((testset.consensus for testset in files.values() if testset.consensus), ""),
        labels=labels,
        meta=first.meta,
        notes=(*(note for testset in files.values() for note in testset.notes), *info(*notes)),
    )


def _ratings(name: str, testset: TestSet) -> dict[str, tuple[Rating, ...]]:
    """Query id to the ratings of a file, or to its judgments as ratings of one rater."""
    rated = ratings_of(testset)
    if any(rated.values()):
        return {query_id: tuple(found) for query_id, found in rated.items()}
    if not any(testset.grades.values()):
        raise TestSetError(
            f"test set {testset.name!r} has neither ratings nor graded ids", expected="grades of documents by query"
        )
    return {
        query_id: tuple(Rating(doc_id, name, grade) for doc_id, grade in judged.items())
        for query_id, judged in testset.grades.items()
    }
