"""TREC qrels, read and written: plain, by judge, by subtopic, and as preferences between documents.

Plain qrels ignore column 2. The others keep it as a group: `groups` of the test set hold the judgments, and `grades` the
highest value that any group gave a document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import check_column, column_line, id_text, number_of, short
from cranfield.formats.io.files import MOST_LINE_BYTES, bounded_lines, opened, shown, write_bytes
from cranfield.formats.registry import NO_SUBGROUP
from cranfield.formats.testsets.builder import HINT_RULES, TestSetBuilder
from cranfield.formats.testsets.preferences import preference_problems
from cranfield.model import GroupedJudgment, Grouping, Query, TestSet
from cranfield.model.note import info

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
    "column 2 has several values, as where several raters or subtopics are in one file: keep one of them, or read them "
    "all with {format=judges} or {format=subtopics}"
)


@dataclass(frozen=True, slots=True)
class Layout:
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


PLAIN = Layout(None, "query iteration document grade")
JUDGES = Layout("judge", "query judge document grade", "judge")
SUBTOPICS = Layout("subtopic", "query subtopic document grade", "subtopic")
PREFERENCES = Layout("preference", "query group subgroup document value", "group")
GRADES_AS_PREFERENCES = Layout("preference", "query group document value", "group")


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


def _read_groups(path: Path, layout: Layout) -> TestSet:
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


def _rows(path: Path, layout: Layout, builder: TestSetBuilder) -> Iterator[tuple[int, list[bytes], float]]:
    with opened(path, TestSetError) as stream:
        yield from column_rows(bounded_lines(stream, path, TestSetError, MOST_LINE_BYTES), layout, builder)


def column_rows(
    lines: Iterable[bytes], layout: Layout, builder: TestSetBuilder, *, first: int = 1
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


def _checked(line: int, columns: Sequence[bytes], layout: Layout, builder: TestSetBuilder) -> float | None:
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
        TestSetError: the groups are no judges, a query has judgments outside of groups, or an id cannot stand in a column.
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


def _write_groups(testset: TestSet, path: Path, layout: Layout) -> None:
    problems = ProblemList(TestSetError)
    if testset.grouping != layout.grouping:
        got = "no groups" if testset.grouping is None else f"judgments by {testset.grouping}"
        problems.add(f"not written: judgments by {layout.grouping} are asked for", path=str(path), got=got)
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
