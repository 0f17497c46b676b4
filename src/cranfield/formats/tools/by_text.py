"""Test sets of tools that know a query by what is typed, and not by an id."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.tree import plain_number
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.model import Note, Query, Scalar, TestSet
from cranfield.model.kinds import PARAM_NAME, whole
from cranfield.model.note import not_carried

NO_UNICODE = re.compile("[\ud800-\udfff]")


class TextBuilder(TestSetBuilder):
    """Builds a test set whose queries get their ids from their texts."""

    makes_ids = True

    def query(self, key: Hashable, query: Query) -> None:
        """Add a query under what identifies it; the first of a key stays."""
        self.queries.setdefault(key, query)

    def testset(self, notes: Iterable[Note] = (), **fields: Any) -> TestSet:
        """Make the test set, with a note on repeated judgments before the others."""
        return super().testset((*self.repeated(), *notes), noun="query", **fields)


def counted(counts: Mapping[str, int]) -> tuple[Note, ...]:
    """Notes on what a file holds and a test set does not."""
    return not_carried(count_noun(n, noun) for noun, n in counts.items() if n)


def params_of(values: Mapping[str, Any], lost: Counter[str]) -> dict[str, Scalar]:
    """Those of the values that can be parameters of a query; the others are counted in `lost`."""
    fit = {
        name: plain_number(value)
        for name, value in values.items()
        if PARAM_NAME.fullmatch(name) and isinstance(value, str | int | float)
    }
    lost["parameters whose name is not a word, or whose value is not a text or number"] += len(values) - len(fit)
    return fit


def written_texts(testset: TestSet, path: Path, key: Callable[[Query], Hashable] = lambda query: query.text) -> None:
    """Refuse to write a test set whose queries have no text, or the text of another query.

    Raises:
        TestSetError: with every query without a text, and every text that several queries have.
    """
    problems = ProblemList(TestSetError)
    hint = "this format identifies a query by its text"
    for query in testset.queries:
        if not query.text.strip():
            problems.add(f"not written: query {shorten(query.id)} has no text", path=str(path), hint=hint)
    counts = Counter(key(query) for query in testset.queries if query.text.strip())
    for query in testset.queries:
        if counts.pop(key(query), 1) > 1:
            ids = ", ".join(shorten(other.id) for other in testset.queries if key(other) == key(query))
            problems.add(f"not written: queries {ids} have the same text", path=str(path), hint=hint)
    problems.raise_if_any()
    if not testset.queries:
        raise TestSetError("not written: no query", path=str(path))


def written_cells(testset: TestSet, path: Path) -> None:
    """Refuse what cells of a table cannot say, where their readers strip blanks; see `written_texts`.

    Raises:
        TestSetError: as `written_texts` does; with every document id that a blank begins or ends.
    """
    written_texts(testset, path, lambda query: query.text.strip())
    problems = ProblemList(TestSetError)
    for text in dict.fromkeys(query.text for query in testset.queries):
        if NO_UNICODE.search(text):
            problems.add(f"not written: {shorten(text)} is not valid Unicode", path=str(path))
    for doc_id in dict.fromkeys(doc_id for graded in testset.grades.values() for doc_id in graded):
        if doc_id.strip() != doc_id or not doc_id:
            problems.add(f"not written: document id {shorten(doc_id)} begins or ends with a blank", path=str(path))
        elif NO_UNICODE.search(doc_id):
            problems.add(f"not written: document id {shorten(doc_id)} is not valid Unicode", path=str(path))
    problems.raise_if_any()


def judged(testset: TestSet, query: Query, *, fractions: bool = True) -> dict[str, float]:
    """What these formats can say of a query's documents: grades of 0 and more; fractions where they are taken."""
    grades = testset.grades.get(query.id, {})
    return {doc_id: whole(grade) for doc_id, grade in grades.items() if grade >= 0 and (fractions or not grade % 1)}
