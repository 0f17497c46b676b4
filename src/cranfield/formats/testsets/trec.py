"""TREC files: qrels read and written, runs written.

Reading a run is not here: order and join happen in one pass, in `ranking`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import ProblemList, RunFormatError, TestSetError, shorten
from cranfield.formats.io.files import MAX_PROBLEMS, opened, shown, stem, write_bytes
from cranfield.formats.io.grades import short
from cranfield.model import Hit, Query, Run, TestSet
from cranfield.model.note import info

QRELS_COLUMNS = 4
QRELS_LINE = "query iteration document grade"

HEADER_WORDS: tuple[frozenset[bytes], ...] = (
    frozenset({b"qid", b"query_id", b"queryid", b"query-id", b"query", b"topic", b"topic_id", b"q_id"}),
    frozenset({b"0", b"q0", b"iteration", b"iter", b"it", b"subtopic", b"subtopic_id", b"unused", b"dummy"}),
    frozenset(
        {b"docid", b"doc_id", b"docno", b"document", b"document_id", b"doc", b"corpus-id", b"corpus_id", b"did", b"url"}
    ),
    frozenset({b"relevance", b"rel", b"grade", b"label", b"judgment", b"judgement", b"qrel", b"score", b"relevant"}),
)
"""Usual words of a header row over qrels, by column."""

_SPACE = re.compile(r"[ \t\r\n\x0b\x0c]")
"""What separates columns: ASCII white space only, so an id may hold any other."""


@dataclass(frozen=True, slots=True)
class QrelsFile:
    """A qrels file, with what its reader noticed."""

    testset: TestSet
    n_lines: int
    """Judgments read, repeated ones included."""
    n_repeated: int
    """Lines that say again what an earlier one said."""


def read_qrels(path: Path | str) -> TestSet:
    """Read TREC qrels as a test set named after the file; its queries have no text. See `read_qrels_file`."""
    return read_qrels_file(path).testset


def read_qrels_file(path: Path | str) -> QrelsFile:
    """Read TREC qrels.

    Args:
        path: four columns a line (query, iteration, document, grade), ASCII white space between; blank lines and lines
            that start with `#` are skipped, and so is a first line that names the columns, which is noted; gzip and Zstandard are recognised, and `-` is standard input. The
            iteration is ignored.

    Ids that are not UTF-8 keep their bytes, as lone surrogates. A grade is any finite number.

    Raises:
        TestSetError: with every bad line found, and with both lines where a pair is judged twice, differently.
    """
    path = Path(path)
    reader = _QrelsReader(path)
    reader.read()
    reader.problems.raise_if_any()
    if not reader.grades:
        raise TestSetError("no judgment in this file", path=shown(path), expected=f"lines `{QRELS_LINE}`")
    testset = TestSet(
        name=stem(path),
        queries=tuple(Query(query_id) for query_id in reader.grades),
        grades=reader.grades,
        notes=info(*reader.notes()),
    )
    return QrelsFile(testset, reader.n_lines, reader.n_repeated)


class _QrelsReader:
    """One pass over the lines; a second one only to name the first line of pairs judged twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = ProblemList(TestSetError)
        self.grades: dict[str, dict[str, float]] = {}
        self.n_lines = 0
        self.n_repeated = 0
        self.header = ""
        """The header row that was skipped."""
        self._conflicts: list[tuple[int, list[bytes]]] = []

    def read(self) -> None:
        numbers: dict[bytes, float] = {}
        """Grades by their text: a file holds few different ones, which its judgments then share."""
        query_bytes, judged = b"", dict[str, float]()
        for line, columns in self._columns():
            if len(columns) != QRELS_COLUMNS:
                self._bad(line, f"{len(columns)} columns", b" ".join(columns), f"{QRELS_COLUMNS}: {QRELS_LINE}")
                continue
            grade = numbers.get(columns[3])
            if grade is None:
                grade = finite_number(columns[3])
                if grade is None:
                    self._bad(line, "the grade is not a finite number", columns[3], "a number in column 4")
                    continue
                numbers[columns[3]] = grade
            if columns[0] != query_bytes:
                query_bytes = columns[0]
                judged = self.grades.setdefault(id_text(query_bytes), {})
            self.n_lines += 1
            known = len(judged)
            earlier = judged.setdefault(id_text(columns[2]), grade)
            if len(judged) > known:
                continue
            if earlier == grade:
                self.n_repeated += 1
            else:
                self._conflicts.append((line, columns))
        self._report_conflicts()

    def _columns(self) -> Iterator[tuple[int, list[bytes]]]:
        """(line number, columns) of every line that says something."""
        with opened(self.path, TestSetError) as stream:
            for number, line in enumerate(stream, start=1):
                columns = line.split()
                if not columns or line.startswith(b"#"):
                    continue
                if number == 1:
                    columns[0] = columns[0].removeprefix(b"\xef\xbb\xbf")
                    if is_header(columns):
                        self.header = " ".join(map(id_text, columns))
                        continue
                yield number, columns
                if len(self.problems.problems) + len(self._conflicts) >= MAX_PROBLEMS:
                    return

    def notes(self) -> Iterator[str]:
        """What was skipped."""
        if self.header:
            yield f"line 1 is a header row and was skipped: {shorten(self.header)}"

    def _report_conflicts(self) -> None:
        wanted = {(columns[0], columns[2]) for _, columns in self._conflicts}
        first: dict[tuple[bytes, bytes], tuple[int, list[bytes]]] = {}
        for line, columns in self._columns() if wanted else ():
            if len(columns) == QRELS_COLUMNS and (columns[0], columns[2]) in wanted:
                first.setdefault((columns[0], columns[2]), (line, columns))
        for line, columns in self._conflicts:
            first_line, first_columns = first[columns[0], columns[2]]
            self.problems.add(
                f"query {id_text(columns[0])!r}, document {id_text(columns[2])!r} is judged twice",
                path=shown(self.path),
                line=line,
                expected=f"{first_columns[3].decode()}, as on line {first_line}",
                got=columns[3].decode(),
                hint=(
                    "keep one of the two lines"
                    if columns[1] == first_columns[1]
                    else "column 2 differs, as where several raters or subtopics are in one file: keep one of them, or read them "
                    "all with {format=judges} or {format=subtopics}"
                ),
                parameters=("format",),
            )

    def _bad(self, line: int, message: str, got: bytes, expected: str) -> None:
        text = shorten(got.decode("utf-8", "replace"))
        self.problems.add(message, path=shown(self.path), line=line, expected=expected, got=text)


def finite_number(text: bytes) -> float | None:
    """A finite number as everybody writes one; Python's own `1_000` is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number + 0.0 if math.isfinite(number) and b"_" not in text else None


def is_header(columns: Sequence[bytes]) -> bool:
    """Whether a first line names the columns of qrels; a line whose last column is a number never does."""
    if len(columns) != QRELS_COLUMNS or finite_number(columns[3]) is not None:
        return False
    return all(column.lower() in words for column, words in zip(columns, HEADER_WORDS, strict=True))


def id_text(data: bytes) -> str:
    """An id as text; what is not UTF-8 keeps its bytes, as lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


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
                hint="a YAML test set holds patterns, spans and other rules",
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


def write_trec_run(run: Run, path: Path | str) -> None:
    """Write a collected run so that any TREC tool ranks it as Cranfield does.

    Duplicates are dropped, the depth is cut, and the score column falls from hit to hit: the system's own scores where
    they do so by themselves, else `n, n - 1, …, 1`. Queries without a hit have no line, whatever their outcome.

    Raises:
        RunFormatError: when an id cannot stand in a column, or a run ordered by score has a hit without one.
    """
    path = Path(path)
    problems = ProblemList(RunFormatError)
    tag = _SPACE.sub("_", run.name) or "run"
    lines: list[bytes] = []
    for query_id, answer in run.answers.items():
        if answer.hits:
            check_column(problems, path, "query", query_id)
        hits = _ranked(query_id, answer.hits, run, problems, path)
        for rank, (hit, score) in enumerate(zip(hits, _falling_scores(hits, run), strict=True), start=1):
            check_column(problems, path, "document", hit.id)
            lines.append(column_line(query_id, "Q0", hit.id, str(rank), repr(score), tag))
    problems.raise_if_any()
    write_bytes(path, lines)


def _ranked(query_id: str, hits: tuple[Hit, ...], run: Run, problems: ProblemList, path: Path) -> list[Hit]:
    """The hits in the order the run declares, ties to the larger id in bytes; first of each id; cut to depth."""
    ordered = list(hits)
    if run.order != "given":
        for position, hit in enumerate(hits, start=1):
            if hit.score is None or not math.isfinite(hit.score):
                problems.add(
                    f"not written: query {query_id!r}, hit {position} has no score",
                    path=str(path),
                    expected=f"a score on every hit, because the run declares order: {run.order}",
                )
        sign = 1.0 if run.order == "descending" else -1.0
        ordered.sort(key=lambda hit: (sign * (hit.score or 0.0), id_bytes(hit.id)), reverse=True)
    first: dict[str, Hit] = {}
    for hit in ordered:
        first.setdefault(hit.id, hit)
    return list(first.values())[: run.depth]


def _falling_scores(hits: Sequence[Hit], run: Run) -> list[float]:
    """Scores by which a TREC tool (score down, then id down) finds the hits in this very order."""
    scores = [hit.score for hit in hits if hit.score is not None and math.isfinite(hit.score)]
    falls = all(before > after for before, after in itertools.pairwise(scores))
    if len(scores) < len(hits) or (run.order == "given" and not falls):
        return [float(score) for score in range(len(hits), 0, -1)]
    return [-score for score in scores] if run.order == "ascending" else scores


def check_column(problems: ProblemList, path: Path, kind: str, text: str) -> None:
    """Note a problem where an id cannot stand in a column of its kind (`query`, `document`, …)."""
    if text and not _SPACE.search(text) and not (kind == "query" and text.startswith("#")):
        return
    problems.add(
        f"not written: the {kind} id {shorten(text)} cannot stand in a column",
        path=str(path),
        expected="no white space in it, at least a character" + (", and no # first" if kind == "query" else ""),
    )


def column_line(*columns: str) -> bytes:
    """Columns as a line."""
    return b" ".join(map(id_bytes, columns)) + b"\n"


def id_bytes(text: str) -> bytes:
    """The bytes an id was read from; lone surrogates that no reader of bytes makes are kept as they are."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
