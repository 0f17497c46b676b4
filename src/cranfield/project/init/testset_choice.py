"""The test set of a new config: the files that hold it, or a starter that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield.config.models import SUMMARY_FILES
from cranfield.errors import Problem, UsageError
from cranfield.formats.sniff import read_queries
from cranfield.model import Entity, File, Pattern, Query, Span, TestSet
from cranfield.model.note import NoteKind
from cranfield.options.testset import TestSetOptions
from cranfield.patterns import compile_pattern
from cranfield.project.init.files import FoundFile, written_path
from cranfield.project.init.names import unique_names
from cranfield.project.init.questions import read_questions
from cranfield.project.init.values import FIRST_QUERIES, Known
from cranfield.project.loading import load
from cranfield.words import first_of, n_of

GRADED = "nDCG@10"
"""The measure of graded judgments."""


@dataclass(frozen=True, slots=True)
class ChosenTestSet:
    """What the config says of its test set, and what is known of it."""

    keys: Mapping[str, Any]
    """`testset` or `testsets`, and `options`; empty where a starter has to be written."""
    about: str = ""
    testset: TestSet | None = None
    """The first set; None where there is no test set and no query."""
    path: Path | None = None
    """Of a single set."""
    has_judgments: bool = False
    notes: tuple[str, ...] = ()

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries with a text."""
        return tuple(query for query in (self.testset.queries if self.testset else ()) if query.text.strip())

    def first(self) -> tuple[Query, ...]:
        """The queries that systems are tried with."""
        return self.queries[:FIRST_QUERIES]


def choose_testset(files: Sequence[FoundFile], folder: Path) -> ChosenTestSet:
    """The test set that files hold: judgments, with the texts of a file of queries where they have none.

    Raises:
        UsageError: several files of queries, or texts that no query of the judgments has.
        TestSetError: a file holds mistakes.
    """
    sets = [file for file in files if file.role == "testset"]
    texts = [file for file in files if file.role in {"queries", "questions"}]
    if len(texts) > 1:
        got = first_of([file.target.given for file in texts])
        raise UsageError(
            "several files of queries", expected="one", got=got, hint="name the one that goes with the runs"
        )
    if not sets:
        return _only_texts(texts[0]) if texts else ChosenTestSet({})
    if len(sets) > 1:
        return _several(sets, texts, folder)
    return _single(sets[0], texts, folder)


def _single(file: FoundFile, texts: Sequence[FoundFile], folder: Path) -> ChosenTestSet:
    loaded = load(file.path)
    keys: dict[str, Any] = {"testset": written_path(file.path, folder)}
    notes: list[str] = []
    about = file.what
    if texts and not any(query.text for query in loaded.queries):
        (queries,) = texts
        _require_file_of_queries(queries)
        loaded = load(file.path, options=TestSetOptions(queries=queries.path))
        keys["options"] = {"queries": written_path(queries.path, folder)}
        about += f", with the texts of {queries.target.given}"
        notes += [str(note) for note in loaded.notes if note.kind is NoteKind.UNUSED]
    elif texts:
        notes.append(f"{texts[0].target.given} is left out: the test set has the texts of its queries")
    about += f": {n_of(len(loaded.queries), 'queries')}"
    return ChosenTestSet(keys, about, loaded, file.path, has_judgments=True, notes=tuple(notes))


def _require_file_of_queries(file: FoundFile) -> None:
    if file.role == "questions":
        expected = "ids and texts: TREC topics, lines `id<TAB>text`, or lines of JSON"
        raise UsageError(
            Problem("these queries have no ids that judgments name", path=file.target.given, expected=expected)
        )


def _several(sets: Sequence[FoundFile], texts: Sequence[FoundFile], folder: Path) -> ChosenTestSet:
    names = unique_names([file.path.stem for file in sets], reserved=SUMMARY_FILES)
    entries = {name: {"path": written_path(file.path, folder)} for name, file in zip(names, sets, strict=True)}
    keys: dict[str, Any] = {"testsets": entries}
    options = TestSetOptions()
    if texts:
        _require_file_of_queries(texts[0])
        keys["options"] = {"queries": written_path(texts[0].path, folder)}
        options = TestSetOptions(queries=texts[0].path)
    loaded = load(sets[0].path, options=options)
    return ChosenTestSet(keys, f"{n_of(len(sets), 'test sets')}, run one after another", loaded, has_judgments=True)


def _only_texts(file: FoundFile) -> ChosenTestSet:
    """Queries without judgments, from which a starter is made; with patterns it is whole."""
    testset = read_questions(file.path) if file.role == "questions" else read_queries(file.path)
    is_whole = all(testset.targets.get(query.id) or testset.grades.get(query.id) for query in testset.queries)
    about = f"{file.what}: {n_of(len(testset.queries), 'queries')}"
    notes = [str(note) for note in testset.notes if note.kind is NoteKind.NOT_CARRIED]
    if without := [query.id for query in testset.queries if not query.text.strip()]:
        notes.append(f"{n_of(len(without), 'queries')} without a text, which no system can answer: {first_of(without)}")
    return ChosenTestSet({}, about, testset, has_judgments=is_whole, notes=tuple(notes))


def measures_for(testset: TestSet | None) -> tuple[str, ...]:
    """The primary measure and those beside it, by what the truth is: one right answer, files and symbols, or grades."""
    if testset is None:
        return (GRADED,)
    targets = [target for query in testset.queries for target in testset.targets.get(query.id, ())]
    positive = [[grade for grade in grades.values() if grade > 0] for grades in testset.grades.values()]
    has_grades = any(positive)
    if targets and not has_grades and all(isinstance(target, File | Entity) for target in targets):
        return ("RR@10", "P@1", "P@5", "R@10", *(("FileCoverage@5",) if testset.files else ()))
    has_patterns = bool(targets) and not has_grades and all(isinstance(target, Pattern) for target in targets)
    if has_patterns or (not targets and has_grades and all(grades in ([], [1]) for grades in positive)):
        return ("RR@10", "P@1", "P@5", GRADED)
    return (GRADED,)


def known_of(chosen: ChosenTestSet) -> Known:
    """What the queries that systems are tried with expect."""
    testset = chosen.testset
    if testset is None:
        return Known()
    ids: set[str] = set()
    patterns = []
    for query in testset.queries:
        ids |= {doc_id for doc_id, grade in testset.grades.get(query.id, {}).items() if grade >= 0}
        ids |= set(testset.files.get(query.id, ()))
    for query in chosen.first():
        for target in testset.targets.get(query.id, ()):
            if isinstance(target, Pattern):
                patterns.append(compile_pattern(target.regex))
            elif isinstance(target, Span):
                ids.add(target.path)
    return Known(frozenset(ids), tuple(patterns))
