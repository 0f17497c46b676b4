"""`cranfield init`: read the files, find the test set, try the systems, write the project, report."""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cranfield.app.init.config import SCHEMA_NAME, config_text, head_of, starter_testset
from cranfield.app.init.functions import function_system
from cranfield.app.init.shape import (
    FIRST_QUERIES,
    QUERY_NAMES,
    Ask,
    FoundSystem,
    Known,
    Trial,
    TrialTarget,
    take_default,
)
from cranfield.app.init.targets import (
    EXPECTED,
    SAMPLE_WORD,
    command_system,
    database_systems,
    headers_of,
    http_system,
    is_database,
    served_system,
    targets_of,
)
from cranfield.app.init.traces import trace_section, trace_systems
from cranfield.app.loading import load
from cranfield.app.schemas import DEFAULT_SCHEMA, schema_named
from cranfield.base.errors import (
    CranfieldError,
    NoCommonQueryError,
    Problem,
    RunFormatError,
    TestSetError,
    UsageError,
    shorten,
)
from cranfield.base.patterns import compile_pattern
from cranfield.base.words import and_list, count_noun, join_first, printable
from cranfield.config import Config, load_config
from cranfield.config.models import SUMMARY_FILES
from cranfield.config.strict import PORT, placeholders
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.evaluation.requirements import requires_something
from cranfield.evaluation.testset.expected import JudgedQuery, queries_of
from cranfield.formats.io.delimited import JUDGMENT_COLUMNS, pattern_error, separator_of
from cranfield.formats.io.files import decode, read_bytes, shown, split_part, stem, suffix_of, write_text
from cranfield.formats.registry import Format, Kind
from cranfield.formats.sniff import FORMATS, WHAT, detect_format, read_queries
from cranfield.formats.testsets.beir import QRELS
from cranfield.formats.testsets.field_mapping import FileValues, file_values
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.formats.testsets.proposal import propose
from cranfield.model import Criteria, Entity, File, Pattern, Query, Span, TestSet
from cranfield.model.note import NoteKind, not_carried
from cranfield.model.query import negative_of
from cranfield.ranking.collected import read_run_file
from cranfield.ranking.matching.criteria import conditions_of, expected_fields
from cranfield.reporting.document import Block, Bullets, Code, Document, Paragraph, Section
from cranfield.reporting.table_spec import Col, Columns, TableSpec, by_place
from cranfield.systems.collect.collector import require_texts

MAX_CHARS = 40
_WORDS = (
    "old base baseline before main master current prod production plain previous prev reference control legacy v0 v1"
)
BEFORE = re.compile(rf"(?i)(?<![a-z0-9])(?:{_WORDS.replace(' ', '|')})(?![a-z0-9])")
"""A word in the name of the system that others are compared with."""
_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def unique_names(proposals: Sequence[str], reserved: Collection[str] = ()) -> list[str]:
    """A name for each proposal: its letters, digits, dots and dashes; equal ones, in any case, get a number."""
    taken = {name.casefold() for name in reserved}
    names = []
    for proposal in proposals:
        base = _ODD.sub("-", proposal).strip("-._")[:MAX_CHARS].strip("-._") or "system"
        base = base.removesuffix(".log") or "system"
        name, number = base, 2
        while name.casefold() in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name.casefold())
        names.append(name)
    return names


ID_NAMES = ("id", "query_id", "qid", "q_id", "_id", "number")
PATTERN_NAMES = ("pattern", "regex", "regexp", "expected", "right_answer", "uri_pattern", "answer_pattern")
DOCUMENT_NAMES = JUDGMENT_COLUMNS["doc_id"]
"""What the column of a right answer is called, whose grade is 1."""
TABLES = (".csv", ".tsv", ".txt", "")
"""Endings of file names of such tables."""
_LOOKS_LIKE_PATTERN = re.compile(r"[\\^$*+?|()\[\]]|://")
LEAST_SHARE = 0.8
"""Smallest share of the cells of a column without a name that makes it a column of regular expressions."""


def read_questions(path: Path) -> TestSet:
    """Read the queries of a table with or without a header; with their patterns, where there are any.

    Raises:
        TestSetError: it has no column of queries, or a pattern that does not compile; each at its line.
    """
    text = decode(read_bytes(path, TestSetError), path, TestSetError)
    rows = list(_rows(text))
    if not rows:
        raise TestSetError("the file is empty", path=shown(path), expected="a question in each line")
    header = [cell.strip().lower() for cell in rows[0][1]]
    query = _column(header, QUERY_NAMES)
    query_is_named = query is not None
    unused: list[str] = []
    if query is None:
        query, pattern, id_, document = 0, _pattern_column(rows), None, None
        if max(len(cells) for _, cells in rows) > 2 and pattern is None:
            expected = f"a header with a column of queries: {', '.join(QUERY_NAMES[:6])}"
            raise TestSetError("no column of queries", path=shown(path), line=rows[0][0], expected=expected,
                               got=shorten(", ".join(rows[0][1])))  # fmt: skip
    else:
        pattern, id_ = _column(header, PATTERN_NAMES), _column(header, ID_NAMES)
        document = _column(header, DOCUMENT_NAMES)
        used = {query, pattern, id_, document}
        unused = [name for place, name in enumerate(rows[0][1]) if place not in used and name.strip()]
        rows = rows[1:]
    testset = _testset(path, rows, (query, pattern, id_, document))
    if query_is_named and unused:
        names = ", ".join((*PATTERN_NAMES[:2], *DOCUMENT_NAMES))
        notes = not_carried(f"column {name!r}; the columns of right answers are named {names}" for name in unused)
        testset = replace(testset, notes=notes)
    return testset


def _testset(
    path: Path, rows: Sequence[tuple[int, list[str]]], columns: tuple[int, int | None, int | None, int | None]
) -> TestSet:
    queries: dict[str, Query] = {}
    targets: dict[str, list[Pattern]] = {}
    grades: dict[str, dict[str, float]] = {}
    by_text: dict[str, str] = {}
    problems: list[Problem] = []
    for line, cells in rows:
        text, pattern, given_id, document = (_cell(cells, column).strip() for column in columns)
        if not text and not given_id:
            problems.append(
                Problem("no query", path=shown(path), line=line, expected="the text of a query in each row")
            )
            continue
        query_id = given_id or by_text.setdefault(text, f"q{len(by_text) + 1}")
        queries.setdefault(query_id, Query(query_id, text))
        if pattern and (message := pattern_error(pattern)):
            message = f"the pattern does not compile: {message}"
            expected = "a Python regular expression"
            problems.append(Problem(message, path=shown(path), line=line, expected=expected, got=shorten(pattern)))
        elif pattern:
            targets.setdefault(query_id, []).append(Pattern(pattern))
        elif document:
            grades.setdefault(query_id, {})[document] = 1.0
    if problems:
        raise TestSetError(problems)
    return TestSet(
        stem(path), tuple(queries.values()), grades, targets={key: tuple(found) for key, found in targets.items()}
    )


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of the rows that are not blank and no comments."""
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    reader = csv.reader(io.StringIO(text), delimiter=separator_of(first.encode("utf-8", "replace")))
    for cells in reader:
        if any(cell.strip() for cell in cells) and not cells[0].startswith("#"):
            yield reader.line_num, cells


def _cell(cells: Sequence[str], column: int | None) -> str:
    return cells[column] if column is not None and column < len(cells) else ""


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name.lower()) for name in names if name.lower() in header), None)


def _pattern_column(rows: Sequence[tuple[int, list[str]]]) -> int | None:
    """The second column, where it holds regular expressions and there are two columns."""
    if any(len(cells) != 2 for _, cells in rows):
        return None
    found = [cells[1] for _, cells in rows if _LOOKS_LIKE_PATTERN.search(cells[1])]
    return 1 if len(found) >= LEAST_SHARE * len(rows) else None


Role = Literal["testset", "queries", "run", "questions", "database", "documents"]
DOCUMENTS = ("corpus", "collection", "documents", "docs")
"""Names of files of documents, whose lines look like queries."""
OWN_ENDINGS = (".schema.json", ".meta.json", ".log.jsonl")
OWN_FILES = frozenset({"cranfield.yaml", "workbench.yaml", "results.json"})
MAX_FILES = 200
"""Most files of a folder that are looked at."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a folder that is a test set."""

    target: TrialTarget
    role: Role
    what: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.target.path


def found_files(target: TrialTarget) -> list[FoundFile]:
    """What a file is; of a folder, what each of its files is that can be used.

    Raises:
        UsageError: the file is of no known format, or the folder has nothing that can be used.
    """
    if not target.path.is_dir():
        return [_file(target)]
    found: list[FoundFile] = []
    is_split = (target.path / QRELS).is_dir()  # else its files say more: qrels, queries
    whole = _format(target.path, "testset", TestSetError) if is_split else None
    if whole is not None:
        found.append(FoundFile(target, "testset", sentence_of(whole)))
    for path in _files_in(target.path):
        try:
            inner = _file(TrialTarget(str(path), "path"))
        except CranfieldError:
            continue
        if inner.role != "questions" and not (whole is not None and inner.role != "run"):
            found.append(inner)
    if not any(inner.role != "documents" for inner in found):
        expected = "a test set or qrels, queries, run files, or a database with an FTS5 table"
        hint = "to try an example without files: cranfield demo"
        raise UsageError(
            Problem("the folder has no file to start from", path=target.given, expected=expected, hint=hint)
        )
    return found


def _files_in(folder: Path) -> Iterator[Path]:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    useful = (path for path in files if path.name not in OWN_FILES and not path.name.endswith(OWN_ENDINGS))
    for _, path in zip(range(MAX_FILES), useful, strict=False):
        yield path if str(folder) != "." else Path(path.name)


def _file(target: TrialTarget) -> FoundFile:
    path = target.path
    if path.is_file() and is_database(path):
        return FoundFile(target, "database", "a database of SQLite")
    if _format(path, "run", RunFormatError) is FORMATS["traces"]:
        return FoundFile(target, "run", TRACES)
    kinds: tuple[tuple[Kind, type[CranfieldError]], ...] = (
        ("testset", TestSetError),
        ("run", RunFormatError),
        ("queries", TestSetError),
    )
    if suffix_of(path) == ".parquet" and "qrel" not in path.name:
        kinds = kinds[1:]
    for kind, error in kinds:
        found = _format(path, kind, error)
        if found is not None:
            is_documents = kind == "queries" and stem(path).lower() in DOCUMENTS
            return FoundFile(target, "documents" if is_documents else kind, sentence_of(found))
    if suffix_of(path) in TABLES:
        read_questions(path)
        return FoundFile(target, "questions", "a table of questions")
    detect_format(path, "testset", None, TestSetError)  # raises, with all that was expected
    raise UsageError("a file of unknown format", path=target.given)


def _format(path: Path, kind: Kind, error: type[CranfieldError]) -> Format | None:
    try:
        return detect_format(path, kind, None, error)
    except error:
        return None


def sentence_of(found: Format) -> str:
    """What a file of a format is: `test set, format qrels`."""
    return f"{WHAT[found.kind]}, format {found.name}"


TRACES = sentence_of(FORMATS["traces"])


def written_path(path: Path, folder: Path) -> str:
    """A path as it goes into a config: relative to its folder, unless the user wrote it from the root."""
    return str(path) if path.is_absolute() else Path(os.path.relpath(path.absolute(), folder)).as_posix()


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
    """Path of the test set, where there is a single one."""
    has_judgments: bool = False
    notes: tuple[str, ...] = ()
    source: FileValues | None = None
    """Data of a file whose fields are mapped."""

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
        got = join_first([file.target.given for file in texts])
        raise UsageError(
            "several files of queries", expected="one", got=got, hint="name the one that belongs to the runs"
        )
    if not sets:
        return _only_texts(texts[0]) if texts else ChosenTestSet({})
    if len(sets) > 1:
        return _several(sets, texts, folder)
    return _single(sets[0], texts, folder)


def _single(file: FoundFile, texts: Sequence[FoundFile], folder: Path) -> ChosenTestSet:
    keys: dict[str, Any] = {"testset": written_path(file.path, folder)}
    notes: list[str] = []
    about = file.what
    source = mapped_source(file)
    mapping = None if source is None else propose(source)
    loaded = load(file.path, mapping=mapping)
    if mapping is not None:
        keys["testset"] = {"file": keys["testset"], **mapping.record()}
        notes += [str(note) for note in loaded.notes if note.kind is NoteKind.NOT_CARRIED]
    if texts and not any(query.text for query in loaded.queries):
        (queries,) = texts
        _require_file_of_queries(queries)
        loaded = load(file.path, options=TestSetOptions(queries=queries.path))
        keys["options"] = {"queries": written_path(queries.path, folder)}
        about += f", with the texts of {queries.target.given}"
        notes += [str(note) for note in loaded.notes if note.kind is NoteKind.UNUSED]
    elif texts:
        notes.append(f"{texts[0].target.given} is not used: the test set has the texts of its queries")
    about += f": {count_noun(len(loaded.queries), 'queries')}"
    return ChosenTestSet(keys, about, loaded, file.path, has_judgments=True, notes=tuple(notes), source=source)


def mapped_source(file: FoundFile) -> FileValues | None:
    """The data of a file whose fields are mapped; None of any other."""
    if file.what != sentence_of(FORMATS["mapped"]):
        return None
    return file_values(file.path)


def with_known_ids(chosen: ChosenTestSet, systems: Iterable[FoundSystem]) -> ChosenTestSet:
    """The test set by another mapping, where the ids that systems returned tell a better one.

    A proposal by names and values alone takes `guide.md` for the end of a path; where that is the id of a result, it is an id.
    """
    if chosen.source is None or chosen.path is None:
        return chosen
    returned = {doc_id for system in systems for ids in system.ids.values() for doc_id in ids}
    mapping = propose(chosen.source, returned)
    keys = {"file": chosen.keys["testset"]["file"], **mapping.record()}
    if keys == chosen.keys["testset"]:
        return chosen
    loaded = load(chosen.path, mapping=mapping)
    return replace(chosen, keys={**chosen.keys, "testset": keys}, testset=loaded)


def _require_file_of_queries(file: FoundFile) -> None:
    if file.role == "questions":
        expected = "ids and texts: TREC topics, lines `id<TAB>text`, or lines of JSON"
        raise UsageError(
            Problem("the ids of these queries do not occur in the judgments", path=file.target.given, expected=expected)
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
    return ChosenTestSet(
        keys, f"{count_noun(len(sets), 'test sets')}, run one after another", loaded, has_judgments=True
    )


def _only_texts(file: FoundFile) -> ChosenTestSet:
    """Queries without judgments, from which a starter is made; with patterns it is whole."""
    testset = read_questions(file.path) if file.role == "questions" else read_queries(file.path)
    is_whole = all(testset.targets.get(query.id) or testset.grades.get(query.id) for query in testset.queries)
    about = f"{file.what}: {count_noun(len(testset.queries), 'queries')}"
    notes = [str(note) for note in testset.notes if note.kind is NoteKind.NOT_CARRIED]
    if without := [query.id for query in testset.queries if not query.text.strip()]:
        notes.append(
            f"{count_noun(len(without), 'queries')} without a text, so that no system can answer them: {join_first(without)}"
        )
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
    is_flat = all(
        isinstance(target, Pattern) or (isinstance(target, Criteria) and target.grade == 1) for target in targets
    )
    has_patterns = bool(targets) and not has_grades and is_flat
    if has_patterns or (not targets and has_grades and all(grades in ([], [1]) for grades in positive)):
        return ("RR@10", "P@1", "P@5", GRADED)
    return (GRADED,)


def golden_measures(testset: TestSet | None) -> tuple[str, ...]:
    """The measures of a golden file: the primary one, those that harnesses report, and what must not be found."""
    primary = (GRADED, "RR") if measures_for(testset)[0] == GRADED else ("RR", GRADED)
    forbidden = ("Forbidden@5",) if testset is not None and testset.forbidden else ()
    silence = ("Silence",) if testset is not None and any(map(negative_of, testset.queries)) else ()
    best = ("BestRR",) if testset is not None and _has_tiers(testset) else ()
    return tuple(dict.fromkeys((*primary, *best, "P@5", "R@5", "R@10", "Success@1", *silence, *forbidden)))


def _has_tiers(testset: TestSet) -> bool:
    """Whether a query expects results of several grades."""
    by_query = ({grade for grade in grades.values() if grade > 0} for grades in testset.grades.values())
    by_target = ({target.grade for target in targets if target.grade > 0} for targets in testset.targets.values())
    return any(len(grades) > 1 for grades in (*by_query, *by_target))


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
            elif isinstance(target, Criteria):
                patterns += map(re.compile, _id_patterns(target))
    return Known(frozenset(ids), tuple(patterns), expected_fields(testset))


def _id_patterns(target: Criteria) -> Iterator[str]:
    """Patterns of the ids that a result with the conditions may have."""
    for field, test, value in conditions_of(target):
        if field in {"id", "path", "url"} and test != "glob":
            text = re.escape(value.rstrip("/") if field == "url" else value)
            yield {"is": f"^{text}/?(#.*)?$", "ends": f"(^|/){text}$", "contains": text}[test]


STARTER_NAME = "testset.yaml"
LARGE_BYTES = 64 * 1024 * 1024
"""Run files of this size and more are not read here."""
K = 10
LARGE_K = 1000
"""Results a query of run files that are not read here: as many as TREC takes."""


@dataclass(frozen=True, slots=True)
class InitResult:
    """What was written, and what was found out."""

    config: Path
    starter: Path | None
    """A test set that was written; None where there was one."""
    written: tuple[Path, ...]
    systems: Mapping[str, FoundSystem]
    testset: ChosenTestSet
    files: tuple[FoundFile, ...]
    is_judged: bool
    """Whether the test set has judgments, so that the first run gives a verdict."""


def init_project(
    arguments: Sequence[str],
    config: Path,
    *,
    ask: Ask = take_default,
    query: str = "",
    headers: Sequence[str] = (),
    force: bool = False,
) -> InitResult:
    """Write a config, its schema, and a starter test set where there is none.

    Args:
        arguments: files, folders, addresses, commands; none: the working folder.
        config: the file to write.
        ask: asks what cannot be found out.
        query: tried first with every system; of a starter the first query.
        headers: `NAME: VALUE`, sent with every request over HTTP; a secret is `{env.VARIABLE}`.
        force: replace an existing config or starter.

    Raises:
        UsageError: an argument is nothing that is known, or a file is there already.
        InputError: a file holds mistakes.
    """
    _refuse_existing(config, force=force)
    folder = config.absolute().parent
    inferred = _inferred(arguments, folder, ask=ask, query=query, headers=headers)
    starter = None if inferred.chosen.keys else config.with_name(STARTER_NAME)
    if starter is not None:
        _refuse_existing(starter, force=force)
    chosen = replace_starter(inferred.chosen, inferred.trial, inferred.systems)
    return _write(config, starter, inferred.systems, chosen, inferred.files)


def config_of(arguments: Sequence[str], folder: Path) -> Config:
    """The config that `init` would write for its arguments, in memory.

    Args:
        arguments: as of `init_project`, a test set with judgments among them.
        folder: that paths in the config are relative to.

    Raises:
        UsageError: an argument is nothing that is known, or there are no judgments.
        InputError: a file holds mistakes.
    """
    inferred = _inferred(arguments, folder)
    if not inferred.chosen.keys:
        hint = "cranfield init writes a starter test set, to be judged"
        raise UsageError("no test set with judgments", expected="qrels, or a file of queries with expected results",
                         got=", ".join(arguments), hint=hint)  # fmt: skip
    return _check(_config_text(inferred.systems, inferred.chosen), folder)


class _Inferred(NamedTuple):
    """What the arguments are."""

    systems: Mapping[str, FoundSystem]
    chosen: ChosenTestSet
    files: Sequence[FoundFile]
    trial: Trial


def _inferred(
    arguments: Sequence[str], folder: Path, *, ask: Ask = take_default, query: str = "", headers: Sequence[str] = ()
) -> _Inferred:
    """Find out what the arguments are, and try the systems among them."""
    targets = targets_of(arguments)
    files = [file for target in targets if target.kind == "path" for file in found_files(target)]
    chosen = choose_testset(files, folder)
    first = (Query("q1", query), *chosen.first()) if query else chosen.first()
    is_queried = [target for target in targets if target.kind != "path" or _needs_query(target, files)]
    if chosen.keys and chosen.testset is not None and is_queried:
        require_texts(chosen.testset)
    trial = Trial(folder, first, known_of(chosen), ask, K, headers_of(headers))
    if not trial.queries and any(_needs_query(target, files) for target in targets):
        trial = replace(trial, queries=(Query("q1", ask("A query that returns results?", SAMPLE_WORD)),))
    systems = _named([_with_doubt(system, trial) for system in _systems(targets, files, chosen, trial)])
    chosen = with_known_ids(chosen, systems.values())
    if not systems:
        raise UsageError(Problem("no system to evaluate", expected=f"besides the test set, {EXPECTED}",
                                 hint="cranfield init qrels.txt old.run new.run"))  # fmt: skip
    return _Inferred(systems, chosen, files, trial)


def _with_doubt(system: FoundSystem, trial: Trial) -> FoundSystem:
    """The system with a note where no result is one that the test set expects."""
    found = [doc_id for ids in system.ids.values() for doc_id in ids]
    has_fields = not trial.known.ids and "result_fields" in system.settings.get("extract", {})
    if system.run is not None or not found or not trial.known or has_fields or trial.known.count(found):
        return system
    note = f"none of its first results is judged or expected; check that its ids, such as {found[0]}, are those of the test set"
    return replace(system, notes=(*system.notes, note))


def _needs_query(target: TrialTarget, files: Sequence[FoundFile]) -> bool:
    """Whether a system cannot be tried without a query of the test set."""
    is_database = any(file.role == "database" and file.target == target for file in files)
    return target.kind in {"command", "function"} or is_database


def _systems(
    targets: Sequence[TrialTarget], files: Sequence[FoundFile], chosen: ChosenTestSet, trial: Trial
) -> list[FoundSystem]:
    """The systems, in the order of the arguments."""
    found: list[FoundSystem] = []
    server = _server(targets)
    for target in targets:
        if target is server:
            continue
        if target.kind == "command":
            found.append(command_system(target, trial))
        elif target.kind == "function":
            found.append(function_system(target, trial))
        elif server is not None and PORT in placeholders(target.given):
            found.append(served_system(target, server, trial))
        elif target.kind == "url":
            found.append(http_system(target, trial))
        else:
            found += _file_systems(target, files, chosen, trial)
    return found


def _file_systems(
    target: TrialTarget, files: Sequence[FoundFile], chosen: ChosenTestSet, trial: Trial
) -> Iterator[FoundSystem]:
    """The runs, then the databases, of a file or a folder."""
    inside = [file for file in files if file.target == target or file.path.parent == target.path]
    for file in (file for file in inside if file.role == "run"):
        if file.what == TRACES:
            place = written_path(split_part(file.path)[0], trial.folder)
            yield from trace_systems(file.path, place, file.target.name, chosen.testset)
        else:
            yield _run_system(file, chosen, trial)
    for file in (file for file in inside if file.role == "database"):
        yield from database_systems(file.target, written_path(file.path, trial.folder), trial)


def _server(targets: Sequence[TrialTarget]) -> TrialTarget | None:
    """The command of the program that listens where an address has `{port}`; None where no address has it.

    Raises:
        UsageError: there is no such command, or several.
    """
    addresses = [target.given for target in targets if target.kind == "url" and PORT in placeholders(target.given)]
    commands = [target for target in targets if target.kind == "command" and not target.is_certain]
    if not addresses:
        return None
    if len(commands) != 1:
        expected = "one command of a server, after --: cranfield init golden.json ADDRESS -- node server.mjs"
        got = join_first([command.given for command in commands]) or "no command"
        message = "{port} in an address is the port of a program that is started"
        raise UsageError(message, path=addresses[0], expected=expected, got=got)
    return commands[0]


def _run_system(file: FoundFile, chosen: ChosenTestSet, trial: Trial) -> FoundSystem:
    """A run file, which has to answer queries of the test set."""
    settings = {"run": written_path(file.path, trial.folder)}
    is_vague = file.path.stem.lower() in {"run", "results"} and bool(file.path.parent.name)
    name = file.target.name or (f"{file.path.parent.name}-{file.path.stem}" if is_vague else file.path.stem)
    found = FoundSystem(file.target.given, name, settings, file.what, run=file.path)
    if file.path.stat().st_size >= LARGE_BYTES:
        return found
    testset = chosen.testset if chosen.has_judgments or chosen.testset else None
    try:
        run = read_run_file(file.path, testset)
    except NoCommonQueryError as error:
        raise UsageError([replace(problem, path=file.target.given) for problem in error.problems]) from None
    answered = {query_id: [hit.public_id for hit in answer.hits] for query_id, answer in run.answers.items()}
    return replace(found, what=f"{file.what}: {count_noun(len(answered), 'queries')}", ids=answered)


def _named(found: Sequence[FoundSystem]) -> dict[str, FoundSystem]:
    """The systems by name; the first is the baseline: the only one whose name is a word for what was before, if there is one."""
    named = dict(zip(unique_names([system.name for system in found]), found, strict=True))
    before = [name for name in named if BEFORE.search(name)]
    return {before[0]: named[before[0]], **named} if len(before) == 1 else named


def replace_starter(chosen: ChosenTestSet, trial: Trial, systems: Mapping[str, FoundSystem]) -> ChosenTestSet:
    """The chosen test set, or the starter where files hold none."""
    if chosen.keys:
        return chosen
    queries = chosen.queries or trial.queries or _queries_of(systems)
    testset = starter_testset(queries, list(systems.values()), chosen.testset)
    return replace(chosen, testset=testset, about=chosen.about or f"a starter: {count_noun(len(queries), 'queries')}")


def _queries_of(systems: Mapping[str, FoundSystem]) -> tuple[Query, ...]:
    """The queries that systems were tried with, or that run files answer."""
    tried = dict.fromkeys(text for system in systems.values() if system.run is None for text in system.ids)
    if tried:
        return tuple(Query(f"q{number}", text) for number, text in enumerate(tried, start=1))
    ids = dict.fromkeys(query_id for system in systems.values() for query_id in system.ids)
    if not ids:
        raise UsageError("no query is known", expected="qrels, a test set, or a file of queries")
    return tuple(Query(query_id, query_id) for query_id in ids)


def _write(
    config: Path,
    starter: Path | None,
    systems: Mapping[str, FoundSystem],
    chosen: ChosenTestSet,
    files: Sequence[FoundFile],
) -> InitResult:
    texts: dict[Path, str] = {config.with_name(SCHEMA_NAME): schema_named(DEFAULT_SCHEMA).text}
    if starter is not None and chosen.testset is not None:
        texts[starter] = head_of(chosen.testset) + _testset_text(chosen.testset)
        chosen = replace(chosen, keys={"testset": starter.name})
    texts[config] = _config_text(systems, chosen)
    _check(texts[config])
    for path, text in texts.items():
        write_text(path, [text])
    is_judged = starter is None or chosen.has_judgments
    return InitResult(config, starter, tuple(texts), systems, chosen, tuple(files), is_judged)


def _config_text(systems: Mapping[str, FoundSystem], chosen: ChosenTestSet) -> str:
    return config_text(
        chosen.keys,
        {name: dict(system.settings) for name, system in systems.items()},
        about={"": _sentence(chosen.about), **{name: _sentence(system.what) for name, system in systems.items()}},
        notes={name: system.notes for name, system in systems.items()},
        checks={name: system.checks for name, system in systems.items()},
        k=_depth(systems.values()),
        measures=measures_for(chosen.testset) if chosen.source is None else golden_measures(chosen.testset),
        requires=None if chosen.source is None or chosen.testset is None else requires_something(chosen.testset),
    )


def _depth(systems: Iterable[FoundSystem]) -> int:
    """Depth: 10 if a system is queried; for run files alone all results, or AP and recall would be of the first 10."""
    depths = []
    for system in systems:
        if system.run is None:
            return K
        depths.append(max(map(len, system.ids.values())) if system.ids else LARGE_K)
    return max(K, *depths)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _testset_text(testset: TestSet) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, STARTER_NAME)
        write_testset_yaml(testset, path)
        return path.read_text(encoding="utf-8")


def _check(text: str, folder: Path | None = None) -> Config:
    """Read the text as the config that it is meant to be, before a file is made of it; its paths are relative to `folder`."""
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "cranfield.yaml")
        write_text(path, [text])
        return load_config(path, folder)


def _refuse_existing(path: Path, *, force: bool) -> None:
    if not path.absolute().parent.is_dir():
        raise UsageError("no such folder", path=str(path.parent))
    if path.is_symlink() or path.exists():
        if force and path.is_file():
            return
        hint = "{force} replaces it; {config=FILE} writes another file"
        raise UsageError("the file already exists", path=str(path), hint=hint, parameters=("force", "config"))


OUT = "cranfield-out"
BOOK = "starter"


def init_document(result: InitResult) -> Document:
    """What each argument is, what stays open, and what to do next."""
    rows = [
        *(
            (printable(file.target.given), file.what, _USES.get(file.role, file.role))
            for file in result.files
            if file.role not in _AS_SYSTEM
        ),
        *((printable(system.given), system.what, f"system {name}") for name, system in result.systems.items()),
    ]
    columns = by_place({"found": "text", "what it is": "text", "used as": "text"})
    spec = TableSpec("What was found", rows, columns)
    notes = list(_notes(result))
    blocks: list[Block] = [
        spec.table(wrap=True),
        *_mapped_queries(result.testset),
        *([Bullets(tuple(notes))] if notes else []),
    ]
    if not result.is_judged:
        blocks += [Paragraph(_JUDGE), Code("\n".join(next_commands(result)[1:]) + "\n", "", in_text=True)]
    traces, of_traces = trace_section(list(result.systems.values()))
    return Document(
        title=f"{result.config.name}: {result.testset.about}",
        subtitle=(),
        sections=(Section("found", "Found", tuple(blocks)), *traces),
        tidy=spec.tidy,
        payload=lambda: {
            "config": str(result.config),
            "testset": None if result.starter is None else str(result.starter),
            "judged": result.is_judged,
            "systems": {name: dict(system.settings) for name, system in result.systems.items()},
            "notes": notes,
            **of_traces,
            "next": next_commands(result),
        },
    )


def _mapped_queries(chosen: ChosenTestSet) -> Iterator[Block]:
    """The first queries of a file whose fields are mapped, as they are read."""
    if chosen.source is None or chosen.testset is None or chosen.path is None:
        return
    rows = queries_of(chosen.testset, chosen.testset.query_ids[:FIRST_QUERIES]).queries
    columns: Columns[JudgedQuery] = (
        Col("query", lambda row: row.query.text or row.query.id),
        Col(
            "expected (grade)",
            lambda row: (
                "; ".join(f"{item.label} ({item.grade:g})" for item in row.expected)
                or ("nothing should be found" if negative_of(row.query) else "nothing is judged")
            ),
        ),
        Col("forbidden", lambda row: "; ".join(row.forbidden)),
        Col(
            "strata and parameters",
            lambda row: ", ".join(
                f"{name}={value}" for name, value in {**row.query.strata, **row.query.params}.items()
            ),
        ),
    )
    caption = f"{shown(chosen.path)}: the first queries as `testset` in the config reads them"
    yield TableSpec(caption, rows, columns).filled().table(wrap=True)


_JUDGE = (
    "Nothing is judged yet, so the first run has no verdict. Add queries to testset.yaml and grade its results there; or, "
    "after a run, judge in the browser:"
)
_AS_SYSTEM = frozenset({"run", "database"})
_USES = {
    "testset": "test set",
    "queries": "texts of queries",
    "questions": "queries",
    "documents": "not used: a system has its own documents",
}


def _notes(result: InitResult) -> Iterator[str]:
    yield from result.testset.notes
    for name, system in result.systems.items():
        yield from (f"{name}: {note}" for note in system.notes)


def offered_checks(result: InitResult) -> Iterator[str]:
    """A line for each system whose config file can be checked before the first query."""
    for name, system in result.systems.items():
        if files := list(dict.fromkeys(check["file"] for check in system.checks)):
            where = f"{result.config.name} has its checks as comments"
            yield printable(f"system {name}: found {and_list(files)}; {where}, under `preflight`")


def next_commands(result: InitResult) -> list[str]:
    """The commands that come next, the first at once."""
    default = result.config.name == "cranfield.yaml" and result.config.parent.as_posix() == "."
    run = "cranfield run" if default else shlex.join(["cranfield", "run", str(result.config)])
    if result.is_judged:
        return [run]
    runs = [f"{OUT}/runs/{name}.jsonl" for name in result.systems]
    testset = "testset.yaml" if result.starter is None else result.starter.name
    pool = shlex.join(["cranfield", "pool", "build", *runs, "--testset", testset, "--book", BOOK])
    return [run, pool, f"cranfield judge {BOOK}", f"cranfield book freeze {BOOK} --out {testset} --force"]
