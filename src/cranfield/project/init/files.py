"""Files and folders: which is a test set, which holds queries, which is a run, by their content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cranfield.errors import CranfieldError, Problem, RunFormatError, TestSetError, UsageError
from cranfield.formats.io.files import stem, suffix_of
from cranfield.formats.registry import Format, Kind
from cranfield.formats.sniff import WHAT, detect_format
from cranfield.formats.testsets.beir import QRELS
from cranfield.project.init.engine_target import is_database
from cranfield.project.init.questions import TABLES, read_questions
from cranfield.project.init.values import Target

Role = Literal["testset", "queries", "run", "questions", "database", "documents"]
DOCUMENTS = ("corpus", "collection", "documents", "docs")
"""Names of files of documents, whose lines look like queries."""
OWN_ENDINGS = (".schema.json", ".meta.json", ".log.jsonl")
OWN_FILES = frozenset({"cranfield.yaml", "workbench.yaml", "results.json"})
MAX_FILES = 200
"""Of a folder, as many are looked at."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a folder that is a test set."""

    target: Target
    role: Role
    what: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.target.path


def found_files(target: Target) -> list[FoundFile]:
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
            inner = _file(Target(str(path), "path"))
        except CranfieldError:
            continue
        if inner.role != "questions" and not (whole is not None and inner.role != "run"):
            found.append(inner)
    if not any(inner.role != "documents" for inner in found):
        expected = "a test set or qrels, queries, run files, or a database with an FTS5 table"
        hint = "an example without any files of your own: cranfield demo"
        raise UsageError(
            Problem("the folder has nothing to start from", path=target.given, expected=expected, hint=hint)
        )
    return found


def _files_in(folder: Path) -> Iterator[Path]:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    useful = (path for path in files if path.name not in OWN_FILES and not path.name.endswith(OWN_ENDINGS))
    for _, path in zip(range(MAX_FILES), useful, strict=False):
        yield path if str(folder) != "." else Path(path.name)


def _file(target: Target) -> FoundFile:
    path = target.path
    if path.is_file() and is_database(path):
        return FoundFile(target, "database", "a database of SQLite")
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
    raise UsageError("a file of no known format", path=target.given)


def _format(path: Path, kind: Kind, error: type[CranfieldError]) -> Format | None:
    try:
        return detect_format(path, kind, None, error)
    except error:
        return None


def sentence_of(found: Format) -> str:
    """What a file of a format is: `test set, format qrels`."""
    return f"{WHAT[found.kind]}, format {found.name}"


def written_path(path: Path, folder: Path) -> str:
    """A path as it goes into a config: relative to its folder, unless the user wrote it from the root."""
    return str(path) if path.is_absolute() else Path(os.path.relpath(path.absolute(), folder)).as_posix()
