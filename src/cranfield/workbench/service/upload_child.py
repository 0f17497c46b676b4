"""Reads an uploaded file in a process of its own: `python -P -m cranfield.workbench.service.upload_child FOLDER TASK`.

The process has little memory, no variable of the server's environment, and as much time as its parent gives it; a reader that
a file leads astray takes nothing else with it. Expressions are compiled in its main thread, where a timer ends them.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from cranfield.base.errors import CranfieldError, Problem, RunFormatError, TestSetError, shorten
from cranfield.base.words import count_noun, join_first

PACKED = ".packed"
"""File in the folder that holds the test set that was read."""
MAX_FILES = 1000
"""In an archive."""
NOT_FROM_FILES = frozenset({"ir_datasets", "huggingface"})
"""Formats whose reader goes by a name and loads what is elsewhere."""
_ENCRYPTED = 1
_STEP = 1 << 20
_DATABASES = re.compile(r"""["']?databases["']?\s*:""")
KEPT_BY_OPERATOR = (
    "an upload must not refer to databases, files or variables of the server; the operator can add the test set "
    "to the config"
)


@dataclass(frozen=True)
class UploadTask:
    """What is read, and its limits. File names are relative to the folder of the upload."""

    kind: Literal["testset", "run"]
    file: str
    format: str | None
    queries: str | None
    """File of texts of the queries, for a test set without."""
    n_bytes: int
    """Most bytes, unpacked."""
    n_rows: int
    """Most judgments, or results."""
    n_queries: int
    n_memory: int
    """Bytes of memory."""

    @property
    def error(self) -> type[CranfieldError]:
        """What is wrong with such a file."""
        return TestSetError if self.kind == "testset" else RunFormatError


@dataclass(frozen=True)
class UploadOutcome:
    """What the process answers: the file to store, or what is wrong."""

    file: str = ""
    format: str = ""
    problems: tuple[dict[str, Any], ...] = ()


def read(task: UploadTask) -> UploadOutcome:
    """Read the file of a task, in the working directory.

    Raises:
        CranfieldError: with everything that is wrong with it.
    """
    path = unpacked(Path(task.file), task)
    if task.format in NOT_FROM_FILES:
        raise task.error(
            f"an upload cannot have the format {task.format}", path="format", expected="the format of a file"
        )
    return read_testset(task, path) if task.kind == "testset" else read_run(task, path)


def read_testset(task: UploadTask, path: Path) -> UploadOutcome:
    """Read a test set, refuse what would reach beyond it, and keep it in our own format."""
    from cranfield.app.loading import apply_options, read_stored, refuse_undeclared
    from cranfield.evaluation.options.blocks import TestSetOptions
    from cranfield.formats.sniff import detect_format
    from cranfield.workbench.service.runs import pack_testset

    found = detect_format(path, "testset", task.format, TestSetError).name
    if found in NOT_FROM_FILES:  # a folder whose card may name places of the server or of a network
        raise TestSetError(f"an upload cannot have the format {found}", path=path.name, expected="the format of a file")
    stored = read_stored(path, task.format)
    if problems := [*_reaching(stored, path)]:
        raise TestSetError(problems)
    refuse_undeclared(stored, path)
    _check_size(
        task, path, len(stored.queries), sum(map(len, stored.grades.values())) + sum(map(len, stored.targets.values()))
    )
    texts = None if task.queries is None else unpacked(Path(task.queries), task)
    testset = apply_options(stored, TestSetOptions(queries=texts), Path())
    Path(PACKED).write_bytes(pack_testset(testset))
    return UploadOutcome(PACKED, found)


def _reaching(testset: Any, path: Path) -> Iterator[Problem]:
    """What in a test set would open something of the server."""
    from cranfield.formats.splice.trees import place_of_item
    from cranfield.model import Predicate

    if testset.databases:
        yield Problem(
            (
                f"the test set refers to {count_noun(len(testset.databases), 'databases')}: "
                f"{join_first(sorted(testset.databases))}"
            ),
            path=str(path),
            line=_line_of_databases(path),
            expected="no `databases`",
            hint=KEPT_BY_OPERATOR,
        )
    for query in testset.queries:
        for target in testset.targets.get(query.id, ()):
            if isinstance(target, Predicate):
                line, column = place_of_item(path, (query.id, query.text), target.sql)
                yield Problem(
                    f"query {shorten(query.id)} is judged by SQL",
                    path=str(path),
                    line=line,
                    column=column,
                    expected="no `predicates`",
                    got=shorten(target.sql),
                    hint=KEPT_BY_OPERATOR,
                )


def _line_of_databases(path: Path) -> int | None:
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8")
        if found := _DATABASES.search(text):
            return text.count("\n", 0, found.start()) + 1
    return None


def read_run(task: UploadTask, path: Path) -> UploadOutcome:
    """Read a run; it is kept as it is, but for traces, whose texts are redacted in the run alone."""
    from cranfield.formats.runs.jsonl import write_run
    from cranfield.formats.sniff import sniff_run
    from cranfield.workbench.service.runs import read_stored_run

    if path.is_dir():
        raise RunFormatError("the file is an archive of several files", path=str(path), expected="one run")
    found = sniff_run(path, task.format).name
    run = read_stored_run(path, found)
    _check_size(task, path, len(run.answers), sum(len(answer.hits) for answer in run.answers.values()))
    if found == "traces":
        path, found = path.with_name("from-traces.jsonl"), "jsonl"
        write_run(run, path)
    return UploadOutcome(str(path), found)


def _check_size(task: UploadTask, path: Path, n_queries: int, n_rows: int) -> None:
    rows = "judgments" if task.kind == "testset" else "results"
    problems = [
        Problem(
            f"the file has {n} {what}",
            path=str(path),
            expected=f"{most} at most",
            hint=f"the limit is {key} of the server",
        )
        for n, what, most, key in (
            (n_queries, "queries", task.n_queries, "limits.queries"),
            (n_rows, rows, task.n_rows, "limits.rows"),
        )
        if n > most
    ]
    if problems:
        raise task.error(problems)


def unpacked(path: Path, task: UploadTask) -> Path:
    """The file without the packing around it: gzip, Zstandard, or a ZIP archive of one file or of a BEIR folder.

    Raises:
        CranfieldError: the archive is damaged, or holds more than it may.
    """
    from cranfield.formats.io.table import PARQUET_MAGIC
    from cranfield.formats.io.workbook import is_workbook

    with path.open("rb") as file:
        is_parquet = (
            file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
        )  # it may look like an archive, whose list is at the end
    if not zipfile.is_zipfile(path) or is_parquet or is_workbook(path):
        return _plain(path, task)
    folder = path.with_name(f"{path.name}.files")
    folder.mkdir()
    try:
        with zipfile.ZipFile(path) as archive:
            _extract(archive, folder, path, task)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise task.error(f"the archive cannot be read: {reason[:1].lower()}{reason[1:]}", path=str(path)) from None
    path.unlink()
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    for each in files:
        _plain(each, task)
    main = [each for each in files if not each.name.endswith(".meta.json") or len(files) == 1]
    if len(main) == 1:
        return main[0]
    beir = [each.parent for each in main if each.name.startswith("queries.jsonl")]
    if len(beir) != 1 or task.kind != "testset":
        expected = "one file, or a BEIR folder with `queries.jsonl`"
        raise task.error(f"the archive contains {count_noun(len(main), 'files')}", path=str(path), expected=expected)
    return beir[0]


def _extract(archive: zipfile.ZipFile, folder: Path, path: Path, task: UploadTask) -> None:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MAX_FILES:
        raise task.error(f"the archive contains {len(entries)} files", path=str(path), expected=f"{MAX_FILES} at most")
    left = task.n_bytes
    for entry in entries:
        name = PurePosixPath(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or kind not in {0, stat.S_IFREG}:
            raise task.error(
                f"the archive contains {shorten(entry.filename)}",
                path=str(path),
                expected="relative paths inside the archive",
            )
        if entry.flag_bits & _ENCRYPTED:
            raise task.error("the archive is encrypted", path=str(path), expected="no password")
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise task.error(f"the archive contains {shorten(entry.filename)} twice", path=str(path))
        with archive.open(entry) as source, target.open("xb") as out:
            while data := source.read(_STEP):
                left -= len(data)
                if left < 0:
                    raise _too_large(path, task)
                out.write(data)


def _plain(path: Path, task: UploadTask) -> Path:
    """The file, unpacked in its place where it is gzip or Zstandard."""
    from cranfield.formats.io.files import opened

    left = task.n_bytes
    if path.stat().st_size > left:
        raise _too_large(path, task)
    new = path.with_name(f"{path.name}.plain")
    with opened(path, task.error) as source, new.open("xb") as out:
        while data := source.read(_STEP):
            left -= len(data)
            if left < 0:
                raise _too_large(path, task)
            out.write(data)
    new.replace(path)
    return path


def _too_large(path: Path, task: UploadTask) -> CranfieldError:
    return task.error(
        "the unpacked file is too large",
        path=str(path),
        expected=f"{task.n_bytes / 1e6:g} MB at most",
        hint="the limit is limits.upload_mb of the server",
    )


def main(arguments: list[str]) -> None:
    """Read, and print the outcome as JSON."""
    os.chdir(arguments[0])
    task = UploadTask(**json.loads(arguments[1]))
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):  # macOS
            resource.setrlimit(resource.RLIMIT_AS, (task.n_memory, task.n_memory))
    try:
        outcome = read(task)
    except CranfieldError as error:
        outcome = UploadOutcome(problems=tuple(asdict(problem) for problem in error.problems))
    except (MemoryError, RecursionError):
        problem = Problem("reading the file exceeds the memory limit of an upload", path=task.file)
        outcome = UploadOutcome(problems=(asdict(problem),))
    except OSError as error:
        outcome = UploadOutcome(problems=(asdict(Problem((error.strerror or "not readable").lower(), path=task.file)),))
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
