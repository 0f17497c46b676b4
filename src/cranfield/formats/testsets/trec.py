"""TREC qrels, and the builder that every reader of judgments fills.

Plain qrels ignore column 2. The others keep it as a group: `groups` of the test set hold the judgments, and `grades` the
highest value that any group gave a document.

The builder takes queries, judgments and ratings, each with its place in the source. A pair that is judged twice with one grade counts
once. Judged twice with different grades it is a problem that names both places; so is a query id that is used twice.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.delimited import check_column, column_line, id_bytes, id_text, number_of, short
from cranfield.formats.io.files import MAX_LINE_BYTES, MAX_PROBLEMS, bounded_lines, opened, shown, stem, write_bytes
from cranfield.formats.registry import NO_SUBGROUP
from cranfield.formats.testsets.preferences import preference_problems
from cranfield.model import GroupedJudgment, Grouping, Note, Query, Rating, Target, TestSet
from cranfield.model.kinds import source_text
from cranfield.model.note import info, not_carried
from cranfield.model.query_ids import id_of, question_of

Mark = Callable[[Any], tuple[int | None, int | None]]
"""A place, as a reader names it, to its line and column, as far as known."""
HINT_RULES = "a YAML test set can store patterns, spans and other rules"
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
            self.problem(f"query id {shorten(query.id)} is used twice; it also occurs {self.where(first, at)}", at)
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
        return info(f"{count_noun(n, 'repeated judgments')} with the same grade, counted once") if n else ()

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
                    f"the question {question} is the same for queries {join_first(map(str, same))}",
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
        lost = [f"{count_noun(n, 'values')} of {key!r}, all different" for key, n in alone.items()]
        lost += [f"{count_noun(n, 'values')} of {key!r}: lists or keys" for key, n in self.others.items()]
        return (
            *info(
                *(
                    f"kept as stratum {key!r}: {count_noun(len(set(values_by_query.values())), 'values')}"
                    f" in {count_noun(len(values_by_query), 'queries')}"
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


HEADER_WORDS: tuple[frozenset[bytes], ...] = (
    frozenset({b"qid", b"query_id", b"queryid", b"query-id", b"query", b"topic", b"topic_id", b"q_id"}),
    frozenset({b"0", b"q0", b"iteration", b"iter", b"it", b"subtopic", b"subtopic_id", b"unused", b"dummy"}),
    frozenset(
        {b"docid", b"doc_id", b"docno", b"document", b"document_id", b"doc", b"corpus-id", b"corpus_id", b"did", b"url"}
    ),
    frozenset({b"relevance", b"rel", b"grade", b"label", b"judgment", b"judgement", b"qrel", b"score", b"relevant"}),
)
"""Usual words of a header row over qrels, by column."""
KEEP_EITHER = "keep one of the two lines"
SEVERAL_GROUPS = (
    "column 2 has several values, such as several raters or subtopics in one file: keep one of them, or read them "
    "all with {format=judges} or {format=subtopics}"
)


@dataclass(frozen=True, slots=True)
class LineLayout:
    """The columns of a line, and what its group is."""

    grouping: Grouping | None
    columns: str
    """The name of each column, in order."""
    group: str = ""
    """What messages call the group."""

    @property
    def n_columns(self) -> int:
        """How many columns a line has."""
        return len(self.columns.split())


PLAIN = LineLayout(None, "query iteration document grade")
JUDGES = LineLayout("judge", "query judge document grade", "judge")
SUBTOPICS = LineLayout("subtopic", "query subtopic document grade", "subtopic")
PREFERENCES = LineLayout("preference", "query group subgroup document value", "group")
GRADES_AS_PREFERENCES = LineLayout("preference", "query group document value", "group")


def read_qrels(path: Path | str) -> TestSet:
    """Read TREC qrels as a test set named after the file; its queries have no text.

    Args:
        path: four columns a line (query, iteration, document, grade), ASCII white space between; blank lines and lines
            that start with `#` are skipped, and so is a first line that names the columns, which is noted; gzip and
            Zstandard are recognised, and `-` is standard input. The iteration is ignored.

    Ids that are not UTF-8 keep their bytes, as lone surrogates. A grade is any finite number.

    Raises:
        TestSetError: with every bad line found, and with both lines where a pair is judged twice, differently.
    """
    builder = TestSetBuilder(Path(path), hint=KEEP_EITHER)
    builder.judge_rows(judgment_rows(Path(path), builder))
    return builder.testset(expected=f"lines `{PLAIN.columns}`")


def read_judge_qrels(path: Path | str) -> TestSet:
    """Read qrels of several judges: `query judge document grade`. trec_eval calls this format `qrels_jg`.

    Blank lines and lines that start with `#` are skipped; gzip and Zstandard are recognised, and `-` is standard input; a
    repeated judgment counts once.

    Raises:
        TestSetError: with every bad line found, and with both lines where one judge graded a document twice, differently.
    """
    return _read_groups(Path(path), JUDGES)


def read_subtopic_qrels(path: Path | str) -> TestSet:
    """Read qrels by subtopic: `query subtopic document grade`. Otherwise as `read_judge_qrels`."""
    return _read_groups(Path(path), SUBTOPICS)


def read_preferences(path: Path | str) -> TestSet:
    """Read preferences: `query group subgroup document value`. trec_eval calls this format `prefs`.

    Within a subgroup the document with the higher value is preferred; a document of value 0 is not relevant. The subgroups
    of a group belong to one opinion: what follows from several of them together is preferred too, so they must agree.

    Raises:
        TestSetError: as `read_judge_qrels`; and where a value is negative, a document is relevant in one subgroup and not
            in another of its group, or the preferences of a group form a cycle.
    """
    return _read_groups(Path(path), PREFERENCES)


def read_qrels_as_preferences(path: Path | str) -> TestSet:
    """Read qrels, `query group document value`, as preferences: within a group the higher value is preferred.

    trec_eval calls this format `qrels_prefs`. Otherwise as `read_preferences`.
    """
    return _read_groups(Path(path), GRADES_AS_PREFERENCES)


def judgment_rows(path: Path, builder: TestSetBuilder) -> Iterator[tuple[str, str, float, int]]:
    """Query, document, grade and line of every judgment of plain qrels; faults and notes go to the builder."""
    query_bytes, query_id = b"", ""
    iteration: bytes | None = None
    for line, columns, grade in _rows(path, PLAIN, builder):
        if columns[0] != query_bytes:
            query_bytes = columns[0]
            query_id = id_text(query_bytes)
        if columns[1] != iteration:
            builder.hint = KEEP_EITHER if iteration is None else SEVERAL_GROUPS
            iteration = columns[1]
        yield query_id, columns[2].decode("utf-8", "surrogateescape"), grade, line


def _read_groups(path: Path, layout: LineLayout) -> TestSet:
    builder = TestSetBuilder(path, grouping=layout.grouping, hint=KEEP_EITHER)
    has_subgroup = layout is PREFERENCES
    for line, columns, value in _rows(path, layout, builder):
        query_id, group, *subgroup, document, _ = map(id_text, columns)
        if query_id not in builder.queries:
            builder.queries[query_id] = Query(query_id)
        builder.judge_in_group(query_id, (document, group, subgroup[0] if has_subgroup else ""), value, line)
        if builder.is_full:
            break
    if layout.grouping == "preference":
        for key in builder.queries:
            values = builder.groups.values[key]
            found = preference_problems(str(key), values, partial(builder.groups.place, key))
            builder.problems.problems += [replace(problem, path=shown(path)) for problem in found]
    return builder.testset(expected=f"lines `{layout.columns}`")


def _rows(path: Path, layout: LineLayout, builder: TestSetBuilder) -> Iterator[tuple[int, list[bytes], float]]:
    with opened(path, TestSetError) as stream:
        yield from column_rows(bounded_lines(stream, path, TestSetError, MAX_LINE_BYTES), layout, builder)


def column_rows(
    lines: Iterable[bytes], layout: LineLayout, builder: TestSetBuilder, *, first: int = 1
) -> Iterator[tuple[int, list[bytes], float]]:
    """Number, columns and value of every line that has as many columns as it should, and a number in the last one.

    Args:
        lines: of the file, or of a part of it.
        layout: of each line.
        builder: what faults and notes go to.
        first: number of the first of the lines.
    """
    numbers: dict[bytes, float] = {}  # by their text: a file holds few different ones
    n_columns = layout.n_columns
    for number, line in enumerate(lines, start=first):
        columns = line.split()
        if not columns or line.startswith(b"#"):
            continue
        value = numbers.get(columns[-1])
        if value is None or len(columns) != n_columns:
            if number == 1 and layout is PLAIN and is_header(columns):
                names = shorten(" ".join(map(id_text, columns)))
                builder.notes += info(f"line 1 is a header row and was skipped: {names}")
                continue
            value = _checked(number, columns, layout, builder)
            if builder.is_full:
                return
            if value is None:
                continue
            numbers[columns[-1]] = value
        yield number, columns, value


def _checked(line: int, columns: Sequence[bytes], layout: LineLayout, builder: TestSetBuilder) -> float | None:
    """The value of a line; None, and a problem, where it has none."""
    names = layout.columns.split()
    if len(columns) != len(names):
        got = shorten(b" ".join(columns).decode("utf-8", "replace"))
        expected = f"{len(names)}: {layout.columns}"
        builder.problem(f"{len(columns)} columns", line, expected=expected, got=got)
        return None
    value = number_of(columns[-1])
    if value is None:
        got = shorten(columns[-1].decode("utf-8", "replace"))
        message = f"the {names[-1]} is not a finite number"
        builder.problem(message, line, expected=f"a number in column {len(names)}", got=got)
    return value


def is_header(columns: Sequence[bytes]) -> bool:
    """Whether a first line names the columns of qrels; a line whose last column is a number never does."""
    if len(columns) != PLAIN.n_columns or number_of(columns[3]) is not None:
        return False
    return all(column.lower() in words for column, words in zip(columns, HEADER_WORDS, strict=True))


def write_qrels(testset: TestSet, path: Path | str) -> None:
    """Write the graded ids of a test set as TREC qrels, query by query in its order.

    Raises:
        TestSetError: when it holds patterns, or ids that a line of columns cannot.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    lines: list[bytes] = []
    for query in testset.queries:
        if testset.targets.get(query.id):
            problems.add(
                f"not written: query {query.id!r} is judged by a rule",
                path=str(path),
                expected="graded document ids",
                hint=HINT_RULES,
            )
        check_column(problems, path, "query", query.id)
        for doc_id, grade in testset.grades.get(query.id, {}).items():
            check_column(problems, path, "document", doc_id)
            if not math.isfinite(grade):
                message = f"not written: query {query.id!r}, document {doc_id!r} has the grade {grade}"
                problems.add(message, path=str(path), expected="a finite number")
                continue
            lines.append(column_line(query.id, "0", doc_id, short(grade)))
    problems.raise_if_any()
    write_bytes(path, lines)


def write_judge_qrels(testset: TestSet, path: Path | str) -> None:
    """Write judgments by judge as `read_judge_qrels` reads them.

    Raises:
        TestSetError: the groups are no judges, a query has judgments outside of groups, or an id cannot be written to a column.
    """
    _write_groups(testset, Path(path), JUDGES)


def write_subtopic_qrels(testset: TestSet, path: Path | str) -> None:
    """Write judgments by subtopic as `read_subtopic_qrels` reads them. Otherwise as `write_judge_qrels`."""
    _write_groups(testset, Path(path), SUBTOPICS)


def write_preferences(testset: TestSet, path: Path | str) -> None:
    """Write preferences as `read_preferences` reads them. Otherwise as `write_judge_qrels`."""
    _write_groups(testset, Path(path), PREFERENCES)


def _check_subgroups(problems: ProblemList, path: Path, query_id: str, judgments: Iterable[GroupedJudgment]) -> None:
    """Preferences without a subgroup would become comparable with those of the subgroup that they are written under."""
    subgroups: dict[str, set[str]] = {}
    for judgment in judgments:
        subgroups.setdefault(judgment.group, set()).add(judgment.subgroup)
    for group in (group for group, names in subgroups.items() if {"", NO_SUBGROUP} <= names):
        message = (
            f"not written: query {query_id!r}, group {group!r} has a subgroup {NO_SUBGROUP!r} and one without a name"
        )
        problems.add(message, path=str(path), expected="a name for each")


def _write_groups(testset: TestSet, path: Path, layout: LineLayout) -> None:
    problems = ProblemList(TestSetError)
    if testset.grouping != layout.grouping:
        got = "no groups" if testset.grouping is None else f"judgments by {testset.grouping}"
        problems.add(f"not written: judgments by {layout.grouping} were requested", path=str(path), got=got)
        problems.raise_if_any()
    lines: list[bytes] = []
    for query in testset.queries:
        check_column(problems, path, "query", query.id)
        judgments = testset.groups.get(query.id, ())
        if not judgments and (testset.grades.get(query.id) or testset.targets.get(query.id)):
            problems.add(
                f"not written: query {query.id!r} has judgments outside of a {layout.group}",
                path=str(path),
                expected=f"judgments by {layout.grouping}",
            )
        if layout is PREFERENCES:
            _check_subgroups(problems, path, query.id, judgments)
        for judgment in judgments:
            check_column(problems, path, layout.group, judgment.group)
            check_column(problems, path, "document", judgment.doc_id)
            columns = [query.id, judgment.group, judgment.doc_id, short(judgment.value)]
            if layout is PREFERENCES:
                subgroup = judgment.subgroup or NO_SUBGROUP
                check_column(problems, path, "subgroup", subgroup)
                columns.insert(2, subgroup)
            lines.append(column_line(*columns))
    problems.raise_if_any()
    write_bytes(path, lines)
