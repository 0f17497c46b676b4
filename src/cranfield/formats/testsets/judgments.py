"""Judgments that are in memory: a mapping, or a table with a row per judgment. They make a test set without texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.base.errors import SHOWN_PROBLEMS, MissingExtraError, ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import ID_KINDS, JUDGMENT_COLUMNS, LINE_COLUMNS, STRATUM, as_number, id_texts, is_id
from cranfield.formats.io.files import shown, stem, unpacked_name, write_bytes
from cranfield.formats.io.table import Role, column_names, read_table, rows_where, text_columns
from cranfield.formats.testsets.judgment_table import YES, QueryColumns, roles_of
from cranfield.formats.testsets.trec import TestSetBuilder, check_graded
from cranfield.model import Note, Query, TestSet
from cranfield.model.kinds import whole
from cranfield.model.note import not_carried

JudgmentRow = tuple[str, str, float, str]
"""Query, document, grade and subtopic."""
SUBTOPIC_HINT = "where rows are of several subtopics, columns={'subtopic': …} names that column"


def qrels_from_mapping(
    qrels: Mapping[str, Mapping[str, float]] | Mapping[str, Collection[str]], *, name: str = "qrels"
) -> TestSet:
    """Make a test set of a mapping of query id to a mapping of document id to grade.

    Args:
        qrels: ids are text, or whole numbers, which stand for their decimal digits; a grade is any finite number, and one
            under 0 says pooled but not judged. A set or a list of document ids gives each the grade 1. A query without a
            document stays: nothing is expected of it.
        name: what messages and reports call it.

    Raises:
        TestSetError: with the first ids and grades that are none, or there is no query.
    """
    found = ProblemList(TestSetError)
    grades: dict[str, dict[str, float]] = {}
    items: Mapping[Any, Any] = qrels
    for query_id, judged in items.items():
        if len(found.problems) >= SHOWN_PROBLEMS:
            break
        if not is_id(query_id):
            found.add(f"{shorten(query_id)} is not a query id", path=name, expected=ID_KINDS)
        elif not isinstance(judged, Mapping | list | tuple | AbstractSet):
            kind = type(judged).__name__
            expected = "document ids with their grades, or a set or list of the relevant ones"
            found.add(f"query {query_id!r} has a {kind}", path=name, expected=expected)
        elif str(query_id) in grades:
            found.add(f"query {str(query_id)!r} occurs as text and as a number", path=name, expected="each query once")
        else:
            by_document = judged if isinstance(judged, Mapping) else _relevant(judged)
            grades[str(query_id)] = _grades(by_document, str(query_id), name, found)
    found.raise_if_any()
    if not grades:
        raise TestSetError("no judgment here", path=name, expected="query ids with their judged documents")
    return TestSet(name, tuple(map(Query, grades)), grades)


def qrels_from_frame(frame: Any, *, columns: Mapping[str, str] | None = None, name: str | None = None) -> TestSet:
    """Make a test set of a table with a row per judgment.

    Args:
        frame: a pandas or Polars frame, an Arrow table, any other that narwhals knows, or the path of a Parquet file. A
            column `subtopic` makes it a test set by subtopic; `iteration` is ignored, as in a qrels file, unless
            `columns` says that it holds the subtopics.
        columns: what the columns are called, where it is none of `formats.io.delimited.COLUMN_NAMES`: `{"grade": "label_v2",
            "subtopic": "iteration"}`.
        name: what messages and reports call it; by default the file's stem, or `qrels`.

    Raises:
        TestSetError: with the columns that are missing, the first rows that cannot be used, or both rows where a document
            is judged twice, differently.
        MissingExtraError: a Parquet file, without pyarrow.
    """
    shown = name or (Path(frame).stem if isinstance(frame, str | Path) else "qrels")
    required: tuple[Role, ...] = ("query_id", "doc_id", "grade")
    of_queries = _QueryTable(frame, columns or {})
    rest = of_queries.judged(frame)
    table = read_table(rest, required, TestSetError, optional=("subtopic",), columns=columns, name=shown)
    text = {role: ids.text(0, table.n_rows) for role, ids in table.ids.items()}
    subtopics = text.get("subtopic", [""] * table.n_rows)
    rows = zip(text["query_id"], text["doc_id"], table.numbers["grade"].tolist(), subtopics, strict=True)
    taken = {*table.taken.values(), _ITERATION}
    return qrels_from_rows(
        rows, name=shown, by_subtopic="subtopic" in text, describe=lambda builder: of_queries.describe(builder, taken)
    )


_ITERATION = "iteration"


class _QueryTable:
    """What a frame says of its queries beside their judgments: texts, classes, strata, and which are negative."""

    def __init__(self, frame: Any, columns: Mapping[str, str]) -> None:
        there = column_names(frame, TestSetError)
        self._frame = frame
        roles = roles_of(lambda *names: next((name for name in names if name in there), None))
        if lines := [name for role, name in roles.items() if role in LINE_COLUMNS]:
            hint = "write the table to a CSV file, and load that; or rename the columns if they mean something else"
            raise TestSetError(
                "judgments of lines are not read from a frame", got=f"columns {', '.join(lines)}", hint=hint
            )
        found = {role: [name for name in known if name in there] for role, known in JUDGMENT_COLUMNS.items()}
        self._names = {role: names[0] for role, names in found.items() if names}
        self._names |= {role: name for role, name in columns.items() if name in there}
        self._there = there
        self._negative: list[bool] = []
        if "negative" in self._names:
            words = text_columns(frame, [self._names["negative"]], TestSetError)[self._names["negative"]] or []
            self._negative = [word.strip().lower() in YES for word in words]

    def judged(self, frame: Any) -> Any:
        """The frame without the rows of negative queries."""
        if not any(self._negative):
            return frame
        return rows_where(frame, [not is_negative for is_negative in self._negative], TestSetError)

    def describe(self, builder: TestSetBuilder, taken: Container[str]) -> tuple[Note, ...]:
        """Give the queries of a builder their texts, classes and strata; `taken` are the columns of the judgments."""
        names = [name for name in self._there if name not in taken and isinstance(name, str)]
        if not names:
            return ()
        query_column = self._names["query_id"]
        values = text_columns(self._frame, names, TestSetError)
        query_ids = text_columns(self._frame, [query_column], TestSetError)[query_column] or []
        of_queries = QueryColumns(self._names)
        text = next((name for name in JUDGMENT_COLUMNS["text"] if name in names), None)
        texts: dict[str, str] = {}
        strata: dict[str, dict[str, str]] = {}
        nested = [f"column {name!r}: lists or keys" for name, found in values.items() if found is None]
        for name, found in values.items():
            for row, (query_id, value) in enumerate(zip(query_ids, found or (), strict=False)):
                if name == text or name.startswith(STRATUM):
                    known = texts if name == text else strata.setdefault(query_id, {})
                    key = query_id if name == text else name[len(STRATUM) :]
                    if value and known.setdefault(key, value) != value:
                        message = f"query {query_id!r} has a different {name} than in an earlier row"
                        builder.problem(message, row, expected=shorten(known[key]), got=shorten(value))
                else:
                    of_queries.take(query_id, name, value)
        for query_id in (*of_queries.negative, *texts, *strata):
            if query_id in builder.queries or query_id in of_queries.negative:
                builder.queries[query_id] = Query(query_id, texts.get(query_id, ""), strata.get(query_id, {}))
        builder.queries = {query_id: builder.queries[query_id] for query_id in dict.fromkeys(query_ids)}
        notes = list(of_queries.describe(builder, partial(_frame_problem, builder)))
        return (*notes, *not_carried(nested))


def _frame_problem(builder: TestSetBuilder, message: str, expected: str, got: str, hint: str | None = None) -> None:
    builder.problems.add(message, path=builder.source, expected=expected, got=shorten(got), hint=hint)


def qrels_from_rows(
    rows: Iterable[JudgmentRow],
    *,
    name: str = "qrels",
    by_subtopic: bool = False,
    describe: Callable[[TestSetBuilder], tuple[Note, ...]] = lambda _: (),
) -> TestSet:
    """Make a test set of judgments one by one; a repeated judgment counts once.

    Args:
        rows: ids are text and grades are finite.
        name: what messages and reports call it.
        by_subtopic: whether the subtopics count; a document's own grade is then the highest it has for any.
        describe: gives the queries of the builder texts and strata; returns notes.

    Raises:
        TestSetError: with both rows where a document is judged twice, differently, or there is no row.
    """
    numbered = enumerate(rows)
    if by_subtopic:
        builder = TestSetBuilder(name, None, grouping="subtopic")
        for row, (query_id, doc_id, grade, subtopic) in numbered:
            if builder.is_full:
                break
            if query_id not in builder.queries:
                builder.queries[query_id] = Query(query_id)
            builder.judge_in_group(query_id, (doc_id, subtopic, ""), grade, row)
    else:
        builder = TestSetBuilder(name, None, hint=SUBTOPIC_HINT)
        builder.judge_rows((query_id, doc_id, grade, row) for row, (query_id, doc_id, grade, _) in numbered)
    return builder.testset(describe(builder), expected="a row per judgment")


def read_qrels_json(path: Path | str) -> TestSet:
    """Read a JSON file that maps query ids to document ids with their grades, or to lists of the relevant ones.

    Raises:
        TestSetError: it is no such file, or as `qrels_from_mapping`.
    """
    from cranfield.formats.io.records import load_json_values

    path = Path(path)
    top = load_json_values(path, TestSetError)
    if not isinstance(top, dict):
        raise TestSetError("no object at the top of the file", path=shown(path), line=1, expected="`{…}`")
    return replace(qrels_from_mapping(top, name=shown(path)), name=stem(path))


def write_qrels_json(testset: TestSet, path: Path | str) -> None:
    """Write the graded ids of a test set as `{query id: {document id: grade}}`, as pytrec_eval and ranx take it.

    Raises:
        TestSetError: when it holds judgments by a rule.
    """
    from cranfield.formats.io.records import write_json

    path = Path(path)
    problems = ProblemList(TestSetError)
    check_graded(testset, path, problems)
    problems.raise_if_any()
    grades = testset.grades
    by_query = {
        query.id: {doc: whole(grade) for doc, grade in grades.get(query.id, {}).items()} for query in testset.queries
    }
    write_json(path, by_query)


def _relevant(judged: Iterable[Any]) -> dict[Any, float]:
    """The grade 1 of each id of a list; what is no id is a key of its own kind, and refused as one."""
    return {doc_id if is_id(doc_id) else _NotAnId(doc_id): 1.0 for doc_id in judged}


class _NotAnId:
    """Something that a list of ids holds, which may have no hash."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def _grades(judged: Mapping[Any, Any], query_id: str, name: str, found: ProblemList) -> dict[str, float]:
    doc_ids: Sequence[str] = []
    try:
        doc_ids = id_texts(list(judged))
    except TypeError:
        wrong = next(doc_id for doc_id in judged if not is_id(doc_id))
        found.add(f"query {query_id!r}: {shorten(wrong)} is not a document id", path=name, expected=ID_KINDS)
        return {}
    grades: dict[str, float] = {}
    for doc_id, value in zip(doc_ids, judged.values(), strict=True):
        grade = as_number(value)
        where = f"query {query_id!r}, document {shorten(doc_id)}"
        if grade is None:
            message = f"{where}: the grade is not a finite number"
            found.add(message, path=name, expected="a number", got=shorten(value))
        elif doc_id in grades:
            found.add(f"{where} occurs as text and as a number", path=name, expected="each document once per query")
        else:
            grades[doc_id] = grade
    return grades


def write_qrels_parquet(testset: TestSet, path: Path | str) -> None:
    """Write the graded ids of a test set as a Parquet table: query_id, doc_id, grade.

    Raises:
        TestSetError: when it holds judgments by a rule, or there is no judgment, or ids that are no Unicode.
        MissingExtraError: without pyarrow.
    """
    path = Path(path)
    if unpacked_name(path) != path.name:
        expected = f"the name {unpacked_name(path)}"
        raise TestSetError("not written: a Parquet file is packed by itself", path=str(path), expected=expected)
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError.for_extra("writing a Parquet file", "parquet") from None
    if testset.targets or not any(testset.grades.values()):
        raise TestSetError(
            "not written: the judgments are not only graded document ids",
            path=str(path),
            expected="graded document ids",
        )
    rows = [
        (query.id, doc, grade) for query in testset.queries for doc, grade in testset.grades.get(query.id, {}).items()
    ]
    query_ids, doc_ids, grades = zip(*rows, strict=True)
    try:
        columns = [pa.array(query_ids, pa.string()), pa.array(doc_ids, pa.string()), pa.array(grades, pa.float64())]
    except UnicodeEncodeError:
        raise TestSetError("not written: an id that is not valid Unicode", path=str(path), expected="Unicode") from None
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, names=["query_id", "doc_id", "grade"]), sink)
    write_bytes(path, [sink.getvalue().to_pybytes()])
