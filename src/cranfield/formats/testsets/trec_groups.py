"""Qrels whose judgments hold within a group: by judge, by subtopic, or as preferences between documents.

Each reader makes a test set whose `groups` hold the judgments, and whose `grades` hold the highest value that any group
gave a document. Plain qrels, where column 2 means nothing, are read by `formats.trec`.
"""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.io.files import MAX_PROBLEMS, opened, shown, stem, write_bytes
from cranfield.formats.io.grades import short
from cranfield.formats.registry import NO_SUBGROUP
from cranfield.formats.testsets.trec import (
    check_column,
    column_line,
    finite_number,
    id_bytes,
    id_text,
)
from cranfield.model import GroupedJudgment, Grouping, Query, TestSet

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a line, and what its group is."""

    grouping: Grouping
    columns: str
    """The name of each column, in order."""
    group: str
    """What messages call the group."""

    @property
    def n_columns(self) -> int:
        """How many columns a line has."""
        return len(self.columns.split())


JUDGES = Layout("judge", "query judge document grade", "judge")
SUBTOPICS = Layout("subtopic", "query subtopic document grade", "subtopic")
PREFERENCES = Layout("preference", "query group subgroup document value", "group")
GRADES_AS_PREFERENCES = Layout("preference", "query group document value", "group")


def read_judge_qrels(path: Path | str) -> TestSet:
    """Read qrels of several judges: `query judge document grade`. trec_eval calls this format `qrels_jg`.

    Blank lines and lines that start with `#` are skipped; packed files are recognised, and `-` is standard input; a judgment said twice counts once.

    Raises:
        TestSetError: with every bad line found, and with both lines where one judge graded a document twice, differently.
    """
    return _read(Path(path), JUDGES)


def read_subtopic_qrels(path: Path | str) -> TestSet:
    """Read qrels by subtopic: `query subtopic document grade`. Otherwise as `read_judge_qrels`."""
    return _read(Path(path), SUBTOPICS)


def read_preferences(path: Path | str) -> TestSet:
    """Read preferences: `query group subgroup document value`. trec_eval calls this format `prefs`.

    Within a subgroup the document with the higher value is preferred; 0 says that it is not relevant. The subgroups of a
    group belong to one opinion: what follows from several of them together is preferred too, so they must agree.

    Raises:
        TestSetError: as `read_judge_qrels`; and where a value is negative, a document is relevant in one subgroup and not
            in another of its group, or the preferences of a group go round in a circle.
    """
    return _read(Path(path), PREFERENCES)


def read_qrels_as_preferences(path: Path | str) -> TestSet:
    """Read qrels, `query group document value`, as preferences: within a group the higher value is preferred.

    trec_eval calls this format `qrels_prefs`. Otherwise as `read_preferences`.
    """
    return _read(Path(path), GRADES_AS_PREFERENCES)


@dataclass(frozen=True, slots=True)
class _Said:
    """One line: what it says of a document in a subgroup of a group."""

    value: float
    line: int
    text: bytes


Place = tuple[bytes, bytes, bytes]
"""Group, subgroup and document."""


def _read(path: Path, layout: Layout) -> TestSet:
    reader = _GroupsReader(path, layout)
    reader.read()
    if layout.grouping == "preference":
        reader.check_preferences()
    reader.problems.raise_if_any()
    if not reader.queries:
        raise TestSetError("no judgment in this file", path=shown(path), expected=f"lines `{layout.columns}`")
    queries = {id_text(query_id): said for query_id, said in reader.queries.items()}
    groups = {query_id: _judgments(said) for query_id, said in queries.items()}
    return TestSet(
        name=stem(path),
        queries=tuple(Query(query_id) for query_id in queries),
        grades={query_id: highest(judgments) for query_id, judgments in groups.items()},
        groups=groups,
        grouping=layout.grouping,
    )


@dataclass
class _GroupsReader:
    """One pass over the lines."""

    path: Path
    layout: Layout
    problems: ProblemList = field(default_factory=lambda: ProblemList(TestSetError))
    queries: dict[bytes, dict[Place, _Said]] = field(default_factory=dict)

    def read(self) -> None:
        for line, columns in self._lines():
            if len(columns) != self.layout.n_columns:
                expected = f"{self.layout.n_columns}: {self.layout.columns}"
                self._bad(line, f"{len(columns)} columns", b" ".join(columns), expected)
                continue
            *_, document, text = columns
            value = finite_number(text)
            if value is None:
                what = self.layout.columns.split()[-1]
                self._bad(line, f"the {what} is not a finite number", text, f"a number in column {len(columns)}")
                continue
            if value < 0 and self.layout.grouping == "preference":
                self._bad(line, "the value is negative", text, "0 or more")
                continue
            subgroup = columns[2] if self.layout is PREFERENCES else b""
            said = self.queries.setdefault(columns[0], {})
            earlier = said.setdefault((columns[1], subgroup, document), _Said(value, line, text))
            if earlier.value != value:
                self._twice(columns[0], (columns[1], subgroup, document), earlier, _Said(value, line, text))

    def check_preferences(self) -> None:
        """Find groups whose subgroups disagree."""
        for query_id, said in self.queries.items():
            by_group: dict[bytes, dict[bytes, dict[bytes, _Said]]] = {}
            for (group, subgroup, document), one in said.items():
                by_group.setdefault(group, {}).setdefault(subgroup, {})[document] = one
            for group, subgroups in by_group.items():
                if len(subgroups) > 1:
                    self._check_zeros(query_id, group, subgroups)
                    self._check_circle(query_id, group, subgroups)

    def _lines(self) -> Iterator[tuple[int, list[bytes]]]:
        """(line number, columns) of every line that says something."""
        with opened(self.path, TestSetError) as stream:
            for number, line in enumerate(stream, start=1):
                columns = line.removeprefix(BYTE_ORDER_MARK).split() if number == 1 else line.split()
                if not columns or line.startswith(b"#"):
                    continue
                yield number, columns
                if len(self.problems.problems) >= MAX_PROBLEMS:
                    return

    def _bad(self, line: int, message: str, got: bytes, expected: str) -> None:
        text = shorten(got.decode("utf-8", "replace"))
        self.problems.add(message, path=shown(self.path), line=line, expected=expected, got=text)

    def where(self, query_id: bytes, group: bytes, document: bytes | None = None) -> str:
        """What messages call a group, or a document in it."""
        where = f"query {id_text(query_id)!r}, {self.layout.group} {id_text(group)!r}"
        return where if document is None else f"{where}, document {id_text(document)!r}"

    def _twice(self, query_id: bytes, place: Place, earlier: _Said, later: _Said) -> None:
        self.problems.add(
            f"{self.where(query_id, place[0], place[2])} is judged twice",
            path=shown(self.path),
            line=later.line,
            expected=f"{earlier.text.decode()}, as on line {earlier.line}",
            got=later.text.decode(),
            hint="keep one of the two lines",
        )

    def _check_zeros(self, query_id: bytes, group: bytes, subgroups: Mapping[bytes, Mapping[bytes, _Said]]) -> None:
        first: dict[bytes, _Said] = {}
        for said in subgroups.values():
            for document, one in said.items():
                earlier = first.setdefault(document, one)
                if (earlier.value == 0) is not (one.value == 0):
                    self.problems.add(
                        f"{self.where(query_id, group, document)} is relevant in one subgroup only",
                        path=shown(self.path),
                        line=max(earlier.line, one.line),
                        expected="a value of 0 in all subgroups of a group, or in none",
                        got=f"{_plain(earlier)} and {_plain(one)}",
                    )

    def _check_circle(self, query_id: bytes, group: bytes, subgroups: Mapping[bytes, Mapping[bytes, _Said]]) -> None:
        """Order the documents of a group; steps between them keep the number of edges small."""
        order: graphlib.TopologicalSorter[bytes | int] = graphlib.TopologicalSorter()
        step = itertools.count()
        for said in subgroups.values():
            best_first = sorted(said, key=lambda document: -said[document].value)
            classes = [
                list(same) for _, same in itertools.groupby(best_first, key=lambda document: said[document].value)
            ]
            for higher, lower in itertools.pairwise(classes):
                between = next(step)
                order.add(between, *higher)
                for document in lower:
                    order.add(document, between)
        try:
            order.prepare()
        except graphlib.CycleError as error:
            documents = [node for node in error.args[1] if isinstance(node, bytes)]
            if documents[0] != documents[-1]:  # the circle was entered at a step
                documents.append(documents[0])
            lines = [said[d].line for d in documents for said in subgroups.values() if d in said]
            self.problems.add(
                f"{self.where(query_id, group)}: its preferences contradict each other",
                path=shown(self.path),
                line=max(lines),
                expected="an order without a circle in a group",
                got=shorten(" > ".join(map(id_text, documents))),
                hint="opinions that differ belong in groups of their own",
            )


def preference_problems(query_id: str, judgments: Iterable[GroupedJudgment]) -> list[Problem]:
    """What is wrong with the preferences of a query, as `read_preferences` finds it, without places."""
    reader = _GroupsReader(Path(), PREFERENCES)
    said = reader.queries.setdefault(id_bytes(query_id), {})
    for one in judgments:
        if one.value < 0:
            where = reader.where(id_bytes(query_id), id_bytes(one.group), id_bytes(one.doc_id))
            reader.problems.add(f"{where}: the value is negative", expected="0 or more", got=f"{one.value:g}")
        place = (id_bytes(one.group), id_bytes(one.subgroup), id_bytes(one.doc_id))
        said[place] = _Said(one.value, 0, f"{one.value:g}".encode())
    reader.check_preferences()
    return reader.problems.problems


def _judgments(said: Mapping[Place, _Said]) -> tuple[GroupedJudgment, ...]:
    """By document, in the order of their bytes: where not returned documents need an order, this is it."""
    return tuple(
        GroupedJudgment(id_text(document), id_text(group), said[group, subgroup, document].value, id_text(subgroup))
        for group, subgroup, document in sorted(said, key=lambda place: (place[2], place[0], place[1]))
    )


def highest(judgments: Sequence[GroupedJudgment]) -> dict[str, float]:
    """Document id to the highest value that any group gave it."""
    grades: dict[str, float] = {}
    for one in judgments:
        grades[one.doc_id] = max(one.value, grades.get(one.doc_id, one.value))
    return grades


def _plain(said: _Said) -> str:
    return f"{said.text.decode()} on line {said.line}" if said.line else said.text.decode()


def write_judge_qrels(testset: TestSet, path: Path | str) -> None:
    """Write judgments by judge as `read_judge_qrels` reads them.

    Raises:
        TestSetError: the groups are no judges, a query has judgments outside of groups, or an id cannot stand in a column.
    """
    _write(testset, Path(path), JUDGES)


def write_subtopic_qrels(testset: TestSet, path: Path | str) -> None:
    """Write judgments by subtopic as `read_subtopic_qrels` reads them. Otherwise as `write_judge_qrels`."""
    _write(testset, Path(path), SUBTOPICS)


def write_preferences(testset: TestSet, path: Path | str) -> None:
    """Write preferences as `read_preferences` reads them. Otherwise as `write_judge_qrels`."""
    _write(testset, Path(path), PREFERENCES)


def _check_subgroups(problems: ProblemList, path: Path, query_id: str, judgments: Iterable[GroupedJudgment]) -> None:
    """Preferences without a subgroup would become comparable with those of the subgroup that they are written under."""
    subgroups: dict[str, set[str]] = {}
    for one in judgments:
        subgroups.setdefault(one.group, set()).add(one.subgroup)
    for group in (group for group, names in subgroups.items() if {"", NO_SUBGROUP} <= names):
        message = (
            f"not written: query {query_id!r}, group {group!r} has a subgroup {NO_SUBGROUP!r} and one without a name"
        )
        problems.add(message, path=str(path), expected="a name for each")


def _write(testset: TestSet, path: Path, layout: Layout) -> None:
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
        for one in judgments:
            check_column(problems, path, layout.group, one.group)
            check_column(problems, path, "document", one.doc_id)
            columns = [query.id, one.group, one.doc_id, short(one.value)]
            if layout is PREFERENCES:
                subgroup = one.subgroup or NO_SUBGROUP
                check_column(problems, path, "subgroup", subgroup)
                columns.insert(2, subgroup)
            lines.append(column_line(*columns))
    problems.raise_if_any()
    write_bytes(path, lines)
