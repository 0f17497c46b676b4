"""Tables of scored answers: CSV, JSON and JSONL with a row a query, and the baseline file of KnowCode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cranfield.base.errors import InputError, Problem, ProblemList, shorten
from cranfield.formats.io.delimited import as_number, id_texts, is_id, number_of, read_sheet
from cranfield.formats.io.files import decode, read_bytes, shown, stem, suffix_of
from cranfield.formats.io.json_text import json_objects
from cranfield.formats.io.located import Located, load_any
from cranfield.formats.io.tree import describe, plain_number
from cranfield.model.query_ids import ids_digest
from cranfield.stats.calibration import is_finite_share


class Correctness(StrEnum):
    """What `correct` means."""

    FACTS = "facts"
    """The answer has the facts that it must have."""
    STRUCTURAL = "structural"
    """The right results, files or entities were found."""
    STATED = "as stated"
    """The table has a column `correct` and does not say by what rule."""


class Exclusion(StrEnum):
    """Why a query is not counted."""

    FAILED = "failed, or has no answer"
    NO_SCORE = "no score"
    NO_CORRECTNESS = "correctness not known"


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One query: the confidence of its answer, and whether that was right."""

    query_id: str
    score: float | None
    correct: Mapping[Correctness, bool]
    """By each kind that is known."""
    strata: Mapping[str, str] = field(default_factory=dict)
    is_failed: bool = False
    """The call failed, or there is no answer: a confidence of nothing."""

    def excluded(self, kind: Correctness) -> Exclusion | None:
        """Why it does not count for a kind of correctness; None where it does."""
        if self.is_failed:
            return Exclusion.FAILED
        if self.score is None:
            return Exclusion.NO_SCORE
        return None if kind in self.correct else Exclusion.NO_CORRECTNESS


@dataclass(frozen=True, slots=True)
class CalibrationAnswers:
    """The answers of one system."""

    name: str
    """File or run."""
    score: str
    """Name of the confidence: a column, or a field of the answers."""
    rules: Mapping[Correctness, str]
    """Kind of correctness to what it is here: a column, a measure with its bound."""
    answers: Sequence[ScoredAnswer]
    testset: str = ""
    """Name, version and review of the test set by which they are judged; empty: a table has no test set."""

    @property
    def queries_digest(self) -> str:
        """Digest of the ids of its queries, in any order: shows whether a test set has the same."""
        return ids_digest(answer.query_id for answer in self.answers)

    @property
    def kinds(self) -> tuple[Correctness, ...]:
        """Kinds of correctness that any answer has, facts first."""
        return tuple(kind for kind in Correctness if any(kind in answer.correct for answer in self.answers))


def score_problem(value: float, query_id: str, place: Mapping[str, Any]) -> Problem:
    """The problem that a confidence is no number from 0 to 1."""
    hint = "divide a percentage by 100; a score without an upper bound, such as BM25, cannot be calibrated."
    message = f"the confidence of {query_id} is {value:g}"
    return Problem(message, expected="a number from 0 to 1", hint=hint, **place)


QUERY_COLUMNS = ("query_id", "query", "id")
SCORE_COLUMNS = ("score", "confidence", "sufficiency_score")
CORRECT_COLUMNS: Mapping[str, Correctness] = {
    "correct": Correctness.STATED,
    "structure_correct": Correctness.STRUCTURAL,
    "facts_correct": Correctness.FACTS,
}
KNOWCODE = ("sufficiency_score", "file_coverage_at_5")
"""Columns that only rows of KnowCode's baseline have: its `correct` is structural."""
ROWS = ("scores", "rows", "answers", "results", "queries")
"""Key of the rows, where a JSON document is an object."""
YES, NO = ("true", "yes", "1"), ("false", "no", "0")
EMPTY = ("", "null", "none", "n/a")


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Names of the columns; None: the first of the usual names that is there."""

    query: str | None = None
    score: str | None = None
    correct: str | None = None
    kind: Correctness | None = None
    """What the column of `correct` means."""
    needs_correct: bool = True
    """False: outcomes come from another file, and no column of them is no problem."""


Row = tuple[int | None, Mapping[str, Any]]
"""Line, where the file has one for each row, and the cells."""


def read_scored(path: Path, columns: TableColumns | None = None) -> CalibrationAnswers:
    """Read a table of confidences and outcomes.

    Text cells of other columns are strata. A row without a score, or without an outcome, is kept and counted.

    Raises:
        InputError: with every bad row.
    """
    columns = columns or TableColumns()
    rows = _some_rows(path)
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    problems = ProblemList(InputError)
    query = _column(path, problems, "query", columns.query, QUERY_COLUMNS, names)
    score = _column(path, problems, "score", columns.score, SCORE_COLUMNS, names)
    rules = _correct_columns(path, problems, columns, names)
    if problems.problems:
        raise problems.error(problems.problems)
    known, answers = {query, score, *rules.values()}, []
    for line, row in rows:
        place = {"path": shown(path), "line": line}
        if (query_id := _query_id(row.get(query), problems, place)) is None:
            continue
        confidence = _score(row.get(score), query_id, problems, place)
        correct = {kind: _outcome(row.get(name), name, query_id, problems, place) for kind, name in rules.items()}
        strata = {key: value for key, value in row.items() if key not in known and isinstance(value, str) and value}
        strata = {key.removeprefix("stratum."): value for key, value in strata.items() if number_of(value) is None}
        known_outcomes = {kind: outcome for kind, outcome in correct.items() if outcome is not None}
        answers.append(ScoredAnswer(query_id, confidence, known_outcomes, strata))
    seen: set[str] = set()
    for answer in answers:
        if answer.query_id in seen:
            problems.add(f"query {answer.query_id} has two rows", path=shown(path))
        seen.add(answer.query_id)
    if problems.problems:
        raise problems.error(problems.problems)
    return CalibrationAnswers(stem(path), score, rules, answers)


def read_outcomes(path: Path) -> tuple[dict[Correctness, str], dict[str, dict[Correctness, bool]]]:
    """Read a file of scored answers, a row a query: its columns, and the outcomes of each query, by kind.

    Raises:
        InputError: with every bad row.
    """
    rows = _some_rows(path)
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    problems = ProblemList(InputError)
    query = _column(path, problems, "query", None, QUERY_COLUMNS, names)
    rules = _correct_columns(path, problems, TableColumns(), names)
    found: dict[str, dict[Correctness, bool]] = {}
    for line, row in rows:
        place = {"path": shown(path), "line": line}
        if not query or (query_id := _query_id(row.get(query), problems, place)) is None:
            continue
        if query_id in found:
            problems.add(f"query {query_id} has two rows", **place)
        outcomes = {kind: _outcome(row.get(name), name, query_id, problems, place) for kind, name in rules.items()}
        found[query_id] = {kind: outcome for kind, outcome in outcomes.items() if outcome is not None}
    if problems.problems:
        raise problems.error(problems.problems)
    return rules, found


def with_outcomes(source: CalibrationAnswers, path: Path) -> CalibrationAnswers:
    """The answers with the outcomes of a file, which replace those of the same kind.

    Raises:
        InputError: with every bad row; or no query of the file is among the answers.
    """
    rules, outcomes = read_outcomes(path)
    if not any(answer.query_id in outcomes for answer in source.answers):
        raise InputError("no query of this file has an answer", path=shown(path), got=source.name)
    answers = []
    for answer in source.answers:
        own = {kind: right for kind, right in answer.correct.items() if kind not in rules}
        answers.append(replace(answer, correct=own | outcomes.get(answer.query_id, {})))
    named = {kind: f"{name} of {path.name}" for kind, name in rules.items()}
    return replace(source, rules={**source.rules, **named}, answers=answers)


def _some_rows(path: Path) -> list[Row]:
    rows = list(_rows(path))
    if not rows:
        raise InputError("the table has no rows", path=shown(path), expected="one row per query")
    return rows


def _rows(path: Path) -> Iterator[Row]:
    if suffix_of(path) in {".json", ".yaml", ".yml"}:
        yield from _document_rows(load_any(path, InputError))
        return
    text = decode(read_bytes(path, InputError), path, InputError)
    if text.lstrip().startswith("{"):
        problems = ProblemList(InputError)
        yield from json_objects(text.splitlines(), shown(path), problems)
        if problems.problems:
            raise problems.error(problems.problems)
        return
    sheet = read_sheet(path, InputError)
    for line, cells in sheet.stripped_rows():
        yield line, dict(zip(sheet.names, cells, strict=True))
    if sheet.problems.problems:
        raise InputError(sheet.problems.problems)


def _document_rows(located: Located) -> Iterator[Row]:
    top: Any = located.top
    steps: tuple[str, ...] = ()
    if isinstance(top, dict):
        key = next((name for name in ROWS if isinstance(top.get(name), list)), None)
        if key is None:
            expected = "a list of rows, or an object with a list of rows under " + " or ".join(ROWS)
            raise InputError(located.problem("no rows", (), expected=expected, got=f"keys {', '.join(top)}"))
        top, steps = top[key], (key,)
    if not isinstance(top, list):
        raise InputError(located.problem(f"{describe(top)} at the top of the file", (), expected="a list of rows"))
    for place, row in enumerate(top):
        if not isinstance(row, dict):
            raise InputError(located.problem("no row", (*steps, place), expected="an object", got=describe(row)))
        yield None, {key: plain_number(value) for key, value in row.items()}


def _column(
    path: Path, problems: ProblemList, role: str, named: str | None, usual: Sequence[str], names: Sequence[str]
) -> str:
    wanted = usual if named is None else (named,)
    found = next((name for name in wanted if name in names), None)
    if found is None:
        expected, got = " or ".join(wanted), "columns " + ", ".join(names)
        problems.add(f"no column for the {role}", path=shown(path), expected=expected, got=got)
    return found or ""


def _correct_columns(
    path: Path, problems: ProblemList, columns: TableColumns, names: Sequence[str]
) -> dict[Correctness, str]:
    if columns.correct is not None:
        kind = columns.kind or CORRECT_COLUMNS.get(columns.correct, Correctness.STATED)
        return {kind: _column(path, problems, "correctness", columns.correct, (), names)}
    found = {kind: name for name, kind in CORRECT_COLUMNS.items() if name in names}
    if Correctness.STATED in found and (columns.kind or set(KNOWCODE) <= set(names)):
        found[columns.kind or Correctness.STRUCTURAL] = found.pop(Correctness.STATED)
    if not found and columns.needs_correct:
        _column(path, problems, "correctness", None, tuple(CORRECT_COLUMNS), names)
    return found


def _query_id(value: Any, problems: ProblemList, place: Mapping[str, Any]) -> str | None:
    if not is_id(value) or value == "":
        problems.add("the row has no query", **place)
        return None
    return id_texts([value])[0]


def _score(value: Any, query_id: str, problems: ProblemList, place: Mapping[str, Any]) -> float | None:
    if value is None or (isinstance(value, str) and value.lower() in EMPTY):
        return None
    number = number_of(value) if isinstance(value, str) else as_number(value)
    if number is None:
        problems.add(f"the confidence of {query_id} is not a number", got=shorten(value), **place)
    elif not is_finite_share(number):
        problems.problems.append(score_problem(number, query_id, place))
        number = None
    return number


def _outcome(value: Any, name: str, query_id: str, problems: ProblemList, place: Mapping[str, Any]) -> bool | None:
    text = str(value).strip().lower() if not isinstance(value, float) else f"{value:g}"
    if value is None or text in EMPTY:
        return None
    if text in YES or text in NO:
        return text in YES
    problems.add(f"{name} of {query_id}", expected="true or false", got=shorten(value), **place)
    return None
