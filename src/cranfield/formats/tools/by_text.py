"""Test sets of tools that know a query by what is typed, and not by an id.

One rule for all of them: the text is the id, because those tools pair by text, and so will runs that come from them. A
text with line breaks or control characters is no id: its query is numbered by its place in the file (`q3`). Where two
queries have one text, the second is `text (2)`. Writing goes the other way: the text is written, and no id.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.files import shown, stem
from cranfield.formats.io.grades import whole
from cranfield.model import Note, Query, TestSet
from cranfield.model.note import info, not_carried
from cranfield.words import n_of

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no id has."""
NO_UNICODE = re.compile("[\ud800-\udfff]")

Mark = Callable[[Any], tuple[int, int | None]]
"""A place, as a reader has it, to its line and column; no column where it is a line."""


def text_ids(texts: Sequence[str]) -> list[str]:
    """Ids of queries, by their texts, in order; each one once."""
    ids: dict[int, str] = {}
    taken: set[str] = set()
    for number, text in enumerate(texts):
        if text not in taken and not _UNFIT.search(text):
            ids[number] = text
            taken.add(text)
    for number, text in enumerate(texts):
        if number not in ids:
            base = f"q{number + 1}" if _UNFIT.search(text) else text
            names = itertools.chain([base], (f"{base} ({n})" for n in itertools.count(2)))
            ids[number] = next(name for name in names if name not in taken)
            taken.add(ids[number])
    return [ids[number] for number in range(len(texts))]


def by_line(line: int) -> tuple[int, None]:
    """The mark of readers that go by lines."""
    return line, None


@dataclass
class Gathered:
    """Queries in the order in which they come, and what is said of their documents, with the places of both."""

    path: Path
    mark: Mark
    problems: ProblemList = field(default_factory=lambda: ProblemList(TestSetError))
    queries: dict[Hashable, Query] = field(default_factory=dict)
    """By whatever makes a query one query in this format; without an id where the format has none."""
    grades: dict[Hashable, dict[str, float]] = field(default_factory=dict)
    repeated: int = 0
    """Judgments that stand twice, with one grade."""
    _places: dict[tuple[Hashable, str], Any] = field(default_factory=dict)

    def query(self, key: Hashable, query: Query) -> None:
        """Take a query; the first of its key stays."""
        self.queries.setdefault(key, query)

    def judge(self, key: Hashable, doc_id: str, grade: float, at: Any) -> None:
        """Take a judgment of a query that was taken; one that says otherwise than an earlier one is a problem."""
        judged = self.grades.setdefault(key, {})
        if doc_id not in judged:
            judged[doc_id] = grade + 0.0
            self._places[key, doc_id] = at
        elif judged[doc_id] == grade:
            self.repeated += 1
        else:
            self.add(
                f"query {shorten(self.queries[key].text)}: document {shorten(doc_id)} is judged twice",
                at,
                expected=f"{judged[doc_id]:g}, as {self.where(self._places[key, doc_id])}",
                got=f"{grade:g}",
            )

    def where(self, at: Any) -> str:
        """A place in words."""
        line, column = self.mark(at)
        return f"on line {line}" + (f", column {column}" if column else "")

    def add(self, message: str, at: Any, **fields: str | None) -> None:
        """A problem at a place."""
        line, column = self.mark(at)
        self.problems.add(message, path=shown(self.path), line=line, column=column, **fields)

    def testset(self, notes: Iterable[Note] = (), *, has_ids: bool = False, **fields: Any) -> TestSet:
        """The test set.

        Args:
            notes: what the reader has to say.
            has_ids: the queries have ids already.
            fields: of the test set, over what is gathered here; `ratings` by key.

        Raises:
            TestSetError: with every problem; or there is no query.
        """
        self.problems.raise_if_any()
        if not self.queries:
            raise TestSetError("no query here", path=shown(self.path), expected="queries with judgments")
        queries = list(self.queries.values())
        ids = [query.id for query in queries] if has_ids else text_ids([query.text for query in queries])
        id_of = dict(zip(self.queries, ids, strict=True))
        if "ratings" in fields:
            fields["ratings"] = {id_of[key]: tuple(said) for key, said in fields["ratings"].items()}
        return TestSet(
            name=fields.pop("name", "") or stem(self.path),
            queries=tuple(replace(query, id=name) for query, name in zip(queries, ids, strict=True)),
            grades={id_of[key]: judged for key, judged in self.grades.items() if judged},
            notes=(*info(*self._notes(ids, has_ids=has_ids)), *notes),
            **fields,
        )

    def _notes(self, ids: Sequence[str], *, has_ids: bool) -> Iterator[str]:
        if not has_ids:
            yield "queries have no ids here: the text of each is its id"
            numbered = sum(bool(_UNFIT.search(query.text)) for query in self.queries.values())
            if numbered:
                yield f"{n_of(numbered, 'queries')} with line breaks or control characters in the text: numbered, as `q3`"
            again = len(ids) - numbered - len({q.text for q in self.queries.values() if not _UNFIT.search(q.text)})
            if again:
                yield f"{n_of(again, 'queries')} with the text of an earlier one: the id ends in a number, as `text (2)`"
        if self.repeated:
            yield f"said again: {n_of(self.repeated, 'judgments')}, with the same grade"


def counted(counts: Mapping[str, int]) -> tuple[Note, ...]:
    """Notes on what a file holds and a test set does not."""
    return not_carried(n_of(n, noun) for noun, n in counts.items() if n)


def written_texts(testset: TestSet, path: Path, key: Callable[[Query], Hashable] = lambda query: query.text) -> None:
    """Refuse to write a test set whose queries would not be told apart, or are not there, by their texts.

    Raises:
        TestSetError: with every query without a text, and every text that several queries have.
    """
    problems = ProblemList(TestSetError)
    hint = "this format knows a query by its text"
    for query in testset.queries:
        if not query.text.strip():
            problems.add(f"not written: query {shorten(query.id)} has no text", path=str(path), hint=hint)
    counts = Counter(key(query) for query in testset.queries if query.text.strip())
    for query in testset.queries:
        if counts.pop(key(query), 1) > 1:
            ids = ", ".join(shorten(other.id) for other in testset.queries if key(other) == key(query))
            problems.add(f"not written: queries {ids} have one text", path=str(path), hint=hint)
    problems.raise_if_any()
    if not testset.queries:
        raise TestSetError("not written: there is no query", path=str(path))


def written_cells(testset: TestSet, path: Path) -> None:
    """Refuse what cells of a table cannot say, where their readers strip blanks; see `written_texts`.

    Raises:
        TestSetError: as `written_texts` does; with every document id that a blank begins or ends.
    """
    written_texts(testset, path, lambda query: query.text.strip())
    problems = ProblemList(TestSetError)
    for text in dict.fromkeys(query.text for query in testset.queries):
        if NO_UNICODE.search(text):
            problems.add(f"not written: {shorten(text)} is no Unicode", path=str(path))
    for doc_id in dict.fromkeys(doc_id for graded in testset.grades.values() for doc_id in graded):
        if doc_id.strip() != doc_id or not doc_id:
            problems.add(f"not written: document id {shorten(doc_id)} begins or ends with a blank", path=str(path))
        elif NO_UNICODE.search(doc_id):
            problems.add(f"not written: document id {shorten(doc_id)} is no Unicode", path=str(path))
    problems.raise_if_any()


def judged(testset: TestSet, query: Query, *, fractions: bool = True) -> dict[str, float]:
    """What these formats can say of a query's documents: grades of 0 and more; fractions where they are taken."""
    said = testset.grades.get(query.id, {})
    return {doc_id: whole(grade) for doc_id, grade in said.items() if grade >= 0 and (fractions or not grade % 1)}
