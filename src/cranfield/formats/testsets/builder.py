"""One builder for every reader of test sets: queries, judgments and ratings, each with its place in the source.

A pair that is judged twice with one grade counts once. Judged twice with different grades it is a problem, which names
both places; so is a query id that is used twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import id_bytes, short
from cranfield.formats.io.files import MAX_PROBLEMS, shown, stem
from cranfield.model import GroupedJudgment, Grouping, Note, Query, Rating, Target, TestSet
from cranfield.model.kinds import source_text
from cranfield.model.note import info, not_carried
from cranfield.model.query_ids import id_of, question_of
from cranfield.words import first_of, n_of

Mark = Callable[[Any], tuple[int | None, int | None]]
"""A place, as a reader names it, to its line and column, as far as known."""
HINT_RULES = "a YAML test set holds patterns, spans and other rules"
MADE_IDS = "the file has no ids of queries: an id is words of the question and a short hash of it"
GroupedItem = tuple[str, str, str]
"""Document, group and subgroup."""


def by_line(line: int) -> tuple[int, None]:
    """The mark of readers whose places are lines."""
    return line, None


@dataclass
class Entries:
    """Values of one kind, by query and item. The places of a query stand in the order of its items."""

    values: dict[Hashable, dict[Any, Any]] = field(default_factory=dict)
    places: dict[Hashable, list[Any]] = field(default_factory=dict)

    def of(self, key: Hashable) -> tuple[dict[Any, Any], list[Any]]:
        """The values and places of a query, to be added to together."""
        return self.values.setdefault(key, {}), self.places.setdefault(key, [])

    def place(self, key: Hashable, item: object) -> Any:
        """Where an item was met first."""
        return self.places[key][list(self.values[key]).index(item)]


class RatingMore(TypedDict, total=False):
    """What some formats say of a rating beside its grade; see `Rating`."""

    final: bool
    reason: str
    at: int | None


class TestSetBuilder:
    """Collects what a reader finds and makes a test set of it.

    Args:
        source: path of a file, or the name of a table in memory.
        mark: line and column of a place; None where places are the rows of a table in memory.
        problems: problems of the reader, which the builder adds to.
        grouping: what the groups of grouped judgments are.
        hint: what to do about a pair that is judged twice; it may name the parameter `format`.
    """

    __test__ = False  # pytest: not a test class
    makes_ids = False
    """Whether the source has no ids of queries: they are made from the questions."""

    def __init__(
        self,
        source: Path | str,
        mark: Mark | None = by_line,
        problems: ProblemList | None = None,
        *,
        grouping: Grouping | None = None,
        hint: str | None = None,
    ) -> None:
        self.source = shown(source) if isinstance(source, Path) else source
        self.name = stem(source) if isinstance(source, Path) else source
        self.mark = mark
        self.problems = ProblemList(TestSetError) if problems is None else problems
        self.grouping = grouping
        self.hint = hint
        self.queries: dict[Hashable, Query] = {}
        """By whatever identifies a query in its format, in the order of the source."""
        self.grades = Entries()
        """Document to grade."""
        self.ratings = Entries()
        """Document and rater to grade; None where the slot is not filled."""
        self.groups = Entries()
        """`GroupedItem` to value."""
        self.targets: dict[Hashable, Sequence[Target]] = {}
        self.notes: list[Note] = []
        self.n_repeated = 0
        """Judgments met again with the same grade."""
        self._id_places: dict[str, Any] = {}
        self._rating_more: dict[tuple[Hashable, str, str], RatingMore] = {}

    @property
    def is_full(self) -> bool:
        """Whether so many problems were found that reading stops."""
        return len(self.problems.problems) >= MAX_PROBLEMS

    def problem(self, message: str, at: Any, **fields: Any) -> None:
        """Add a problem at a place; `fields` are `expected`, `got` and `hint`."""
        if self.mark is None:
            self.problems.add(f"row {at}: {message}", path=self.source, **fields)
            return
        line, column = self.mark(at)
        self.problems.add(message, path=self.source, line=line, column=column, **fields)

    def where(self, first: Any, at: Any) -> str:
        """An earlier place in words, for a problem at a later one."""
        if self.mark is None:
            return f"in row {first}"
        line, column = self.mark(first)
        return f"on line {line}" + (f", column {column}" if column and self.mark(at)[0] == line else "")

    def new_query(self, query: Query, at: Any) -> bool:
        """Add a query whose id may be used once; False, and a problem, where it was used before."""
        first = self._id_places.setdefault(query.id, at)
        if query.id in self.queries:
            self.problem(f"query id {shorten(query.id)} is used twice; it also stands {self.where(first, at)}", at)
            return False
        self.queries[query.id] = query
        return True

    def judge(self, key: Hashable, doc_id: str, grade: float, at: Any) -> None:
        """Add a judgment."""
        self._put(self.grades, key, doc_id, grade + 0.0, at)

    def rate(
        self, key: Hashable, doc_id: str, rater: str, grade: float | None, at: Any, more: RatingMore | None = None
    ) -> None:
        """Add a rating; a grade of None is a slot that is not filled."""
        self._put(self.ratings, key, (doc_id, rater), grade, at)
        if more:
            self._rating_more[key, doc_id, rater] = more

    def judge_in_group(self, key: Hashable, item: GroupedItem, value: float, at: Any) -> None:
        """Add a judgment that holds in a group alone."""
        self._put(self.groups, key, item, value, at)

    def judge_rows(self, rows: Iterable[tuple[str, str, float, Any]]) -> None:
        """Add judgments by query id: as `judge` does, fast for a million rows, until there are too many problems.

        Args:
            rows: query id, document id, grade and place.
        """
        last: str | None = None
        judged: dict[str, float] = {}
        places: list[Any] = []
        for query_id, doc_id, grade, at in rows:
            if query_id != last:
                last = query_id
                if query_id not in self.queries:
                    self.queries[query_id] = Query(query_id)
                judged, places = self.grades.of(query_id)
            known = len(judged)
            earlier = judged.setdefault(doc_id, grade)
            if len(judged) > known:
                places.append(at)
            else:
                self._again(self.grades, query_id, doc_id, (earlier, grade), at)
                if self.is_full:
                    return

    def _put(self, entries: Entries, key: Hashable, item: Any, value: float | None, at: Any) -> None:
        values, places = entries.of(key)
        known = len(values)
        earlier = values.setdefault(item, value)
        if len(values) > known:
            places.append(at)
        else:
            self._again(entries, key, item, (earlier, value), at)

    def _again(
        self, entries: Entries, key: Hashable, item: Any, values: tuple[float | None, float | None], at: Any
    ) -> None:
        """Count what is judged twice alike; report what is judged twice differently."""
        earlier, later = values
        if earlier == later:
            self.n_repeated += 1
            return
        document, group, rater = item, "", ""
        if entries is self.groups:
            document, group, _ = item
        elif entries is self.ratings:
            document, rater = item
        message = f"{self.subject(key, document, group)} is judged twice" + (f" by {shorten(rater)}" if rater else "")
        expected = f"{_grade(earlier)}, as {self.where(entries.place(key, item), at)}"
        self.problem(message, at, expected=expected, got=_grade(later), hint=self.hint, parameters=("format",))

    def subject(self, key: Hashable, document: str = "", group: str = "") -> str:
        """A query, and a group and document of it, in words."""
        query = self.queries.get(key)
        parts = [f"query {shorten((query.id or query.text) if query is not None else key)}"]
        noun = "group" if self.grouping == "preference" else self.grouping
        parts += [f"{noun} {shorten(group)}"] if group else []
        parts += [f"document {shorten(document)}"] if document else []
        return ", ".join(parts)

    def repeated(self) -> tuple[Note, ...]:
        """A note on judgments that were met again with the same grade; none where there are none."""
        n = self.n_repeated
        return info(f"{n_of(n, 'repeated judgments')} with the same grade, counted once") if n else ()

    def query_ids(self) -> Sequence[str]:
        """Ids of the queries, in their order."""
        return [query.id for query in self.queries.values()]

    def _made_ids(self) -> Sequence[str]:
        """Ids from the questions.

        Raises:
            TestSetError: with a problem for each question that several queries have.
        """
        ids = [id_of(query) for query in self.queries.values()]
        rows: dict[str, list[int]] = {}
        for row, query_id in enumerate(ids, start=1):
            rows.setdefault(query_id, []).append(row)
        queries = list(self.queries.values())
        for same in rows.values():
            if len(same) > 1:
                question = shorten(question_of(queries[same[0] - 1].text))
                self.problems.add(
                    f"the question {question} is that of queries {first_of(map(str, same))}",
                    path=self.source,
                    expected="each question once: an id is made from it",
                    hint="write them as one query, or give the file a column of ids where its format has one",
                )
        self.problems.raise_if_any()
        return ids

    def testset(
        self,
        notes: Iterable[Note] = (),
        *,
        expected: str = "queries with judgments",
        noun: str = "judgment",
        **fields: Any,
    ) -> TestSet:
        """Make the test set.

        Args:
            notes: further notes on the set.
            expected: what a source without a query should have held.
            noun: what such a source lacks, in the message.
            fields: further fields of the test set.

        Raises:
            TestSetError: with every problem; or there is no query.
        """
        self.problems.raise_if_any()
        if not self.queries:
            where = "here" if self.mark is None else "in this file"
            raise TestSetError(f"no {noun} {where}", path=self.source, expected=expected)
        ids = self._made_ids() if self.makes_ids else self.query_ids()
        made = info(MADE_IDS) if self.makes_ids else ()
        key_to_id = dict(zip(self.queries, ids, strict=True))
        groups = {key_to_id[key]: _grouped(values) for key, values in self.groups.values.items()}
        more, nothing = self._rating_more, RatingMore()
        grades = {key_to_id[key]: judged for key, judged in self.grades.values.items() if judged}
        return TestSet(
            name=fields.pop("name", "") or self.name,
            queries=tuple(
                query if query.id == query_id else replace(query, id=query_id)
                for query, query_id in zip(self.queries.values(), ids, strict=True)
            ),
            grades=grades | {query_id: highest(judgments) for query_id, judgments in groups.items()},
            targets={key_to_id[key]: tuple(targets) for key, targets in self.targets.items() if targets},
            groups=groups,
            grouping=self.grouping if groups else None,
            ratings={
                key_to_id[key]: tuple(
                    Rating(doc_id, rater, grade, **more.get((key, doc_id, rater), nothing))
                    for (doc_id, rater), grade in values.items()
                )
                for key, values in self.ratings.values.items()
            },
            notes=(*made, *self.notes, *notes),
            made_ids=tuple(ids) if self.makes_ids else (),
            **fields,
        )


@dataclass
class UnknownFields:
    """Keys that a format does not know, gathered query by query."""

    values: dict[str, dict[str, str]] = field(default_factory=dict)
    """Key to query id to the value, where it is text, a number or true/false."""
    others: Counter[str] = field(default_factory=Counter)
    """Key to how many lists and mappings stand under it."""

    def take(self, query_id: str, values_by_query: Mapping[str, Any] | None) -> None:
        """Take what one query says; nothing and empty text say nothing."""
        for key, value in (values_by_query or {}).items():
            text = source_text(value)
            if isinstance(text, str):
                if text:
                    self.values.setdefault(key, {})[query_id] = text
            elif value:
                self.others[key] += 1

    def strata(self, query_id: str) -> dict[str, str]:
        """What became strata of one query."""
        return {
            key: values_by_query[query_id]
            for key, values_by_query in self._grouping().items()
            if query_id in values_by_query
        }

    def _grouping(self) -> dict[str, dict[str, str]]:
        """Keys by which queries group: two of them say the same."""
        return {
            key: values_by_query
            for key, values_by_query in self.values.items()
            if len(set(values_by_query.values())) < len(values_by_query)
        }

    def notes(self) -> tuple[Note, ...]:
        """What was done with each, in sentences."""
        kept = self._grouping()
        alone = {key: len(values_by_query) for key, values_by_query in self.values.items() if key not in kept}
        lost = [f"{n_of(n, 'values')} of {key!r}, no two of them the same" for key, n in alone.items()]
        lost += [f"{n_of(n, 'values')} of {key!r}: lists or keys" for key, n in self.others.items()]
        return (
            *info(
                *(
                    f"kept as stratum {key!r}: {n_of(len(set(values_by_query.values())), 'values')}"
                    f" in {n_of(len(values_by_query), 'queries')}"
                    for key, values_by_query in kept.items()
                )
            ),
            *not_carried(lost),
        )


def _grouped(values: dict[GroupedItem, float]) -> tuple[GroupedJudgment, ...]:
    """Judgments in the order of `group_order`."""
    items = sorted(values, key=lambda item: tuple(map(id_bytes, item)))
    return tuple(GroupedJudgment(doc, group, values[doc, group, subgroup], subgroup) for doc, group, subgroup in items)


def group_order(judgment: GroupedJudgment) -> tuple[bytes, bytes, bytes]:
    """Sort key of grouped judgments: by the bytes of the document, where measures need an order of documents."""
    return id_bytes(judgment.doc_id), id_bytes(judgment.group), id_bytes(judgment.subgroup)


def highest(judgments: Sequence[GroupedJudgment]) -> dict[str, float]:
    """Document id to the highest value that any group gave it."""
    grades: dict[str, float] = {}
    for judgment in judgments:
        grades[judgment.doc_id] = max(judgment.value, grades.get(judgment.doc_id, judgment.value))
    return grades


def check_graded(testset: TestSet, path: Path, problems: ProblemList) -> None:
    """Report every query that graded ids do not describe, for formats that hold nothing else."""
    for query in testset.queries:
        if testset.targets.get(query.id) or query.negative is not None:
            message = f"not written: query {query.id!r} is judged by a rule"
            problems.add(message, path=str(path), expected="graded document ids", hint=HINT_RULES)


def _grade(grade: float | None) -> str:
    return "no grade" if grade is None else short(grade)
