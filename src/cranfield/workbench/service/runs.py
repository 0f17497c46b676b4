"""Stored runs: uploaded ones, and the answers of systems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import TypeAdapter

from cranfield.base.errors import CranfieldError, InternalError, RunFormatError
from cranfield.books.store.rows import checked_name
from cranfield.formats.runs.jsonl import LOG_KEY, log_path, write_run
from cranfield.model import Meta, Run, TestSet
from cranfield.model.kinds import as_stored
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.store.runs import StoredRuns
from cranfield.workbench.service.values import NewRun, RunInfo


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the time of the block; errors that leave it name its files alone."""
    with TemporaryDirectory(prefix="cranfield-") as place:
        try:
            yield Path(place)
        except CranfieldError as error:
            error.hide_folder(Path(place))
            raise


@cache
def _values() -> TypeAdapter[TestSet]:
    with as_stored():
        return TypeAdapter(TestSet)


def pack_testset(testset: TestSet) -> bytes:
    """The values of a test set as JSON, with what the formats of files leave out.

    These are the ids that databases gave for predicates, the ids of queries under other rules, queries without a text, and notes
    on what was done to the set since it was read.

    Raises:
        InternalError: reading it would give another one.
    """
    content = _values().dump_json(testset, by_alias=True)
    again = unpack_testset(content)
    if again != testset or again.digest != testset.digest:
        raise InternalError(f"the test set {testset.name} cannot be stored: reading it back gives a different test set")
    return content


def unpack_testset(content: bytes) -> TestSet:
    """The test set of `pack_testset`."""
    return _values().validate_json(content)


def unpack_refresh_dates(content: bytes) -> Meta:
    """When a stored test set was made and how often it is to be refreshed: of thousands of queries in milliseconds."""
    meta = json.loads(content)["meta"]
    return Meta(made=meta["made"], refresh_days=meta["refresh_days"])


def pack_run(run: Run) -> bytes:
    """A run with its log, in one content."""
    with temporary_folder() as folder:
        path = folder / "run.jsonl"
        write_run(run, path)
        log = log_path(path)
        return path.read_bytes() + (log.read_bytes() if log.exists() else b"")


@contextmanager
def run_file(content: bytes, format_name: str) -> Iterator[Path]:
    """A stored run as a file, with its log beside it where it has one."""
    with temporary_folder() as folder:
        path = folder / f"run.{format_name}"
        run, log = content, b""
        begins = content.find(b'\n{"' + LOG_KEY.encode()) if format_name == "jsonl" else -1
        if begins >= 0:
            run, log = content[: begins + 1], content[begins + 1 :]
        path.write_bytes(run)
        if log:
            log_path(path).write_bytes(log)
        yield path


def read_stored_run(path: Path, format_name: str) -> Run:
    """Read the file of a run, in a format by name."""
    from cranfield.formats.runs.files import read_whole
    from cranfield.formats.sniff import sniff_run
    from cranfield.ranking.collected import read_run_file

    found = sniff_run(path, format_name)
    return read_run_file(path) if found.read is None else read_whole(found, path)


class Runs(StoredRuns):
    """Runs by number."""

    def add(
        self,
        name: str,
        path: Path,
        *,
        format_name: str | None = None,
        by: int | None = None,
    ) -> RunInfo:
        """Store an uploaded run file, as it is.

        Raises:
            InputError: with everything that is wrong with the file.
            UsageError: not a name.
        """
        from cranfield.formats.sniff import sniff_run

        name = checked_name(name)
        found = sniff_run(path, format_name)
        if found.name == "traces":
            hint = "`cranfield convert TRACES#name=STEP OUT` makes a run of one step, whose texts are redacted"
            raise RunFormatError("a file of traces is not stored: it holds what users typed", path=path.name, hint=hint)
        run = read_stored_run(path, found.name)
        new = NewRun(name, run.digest, path.read_bytes(), len(run.answers))
        return self.keep(new, StoredSource.UPLOAD, found.name, by)

    def load(self, run_id: int) -> Run:
        """The answers of a run, by the ids that its file has.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self.file(run_id) as (info, path):
            return read_stored_run(path, info.format)

    def lists(self, run_id: int) -> Run:
        """A run under its name, the results of each query best first.

        Raises:
            UnknownNameError: there is none of this number.
        """
        from cranfield.ranking.collected import read_run_file

        with self.file(run_id) as (info, path):
            return replace(read_run_file(path, run_format=info.format), name=info.name)

    @contextmanager
    def file(self, run_id: int) -> Iterator[tuple[RunInfo, Path]]:
        """A run, and its file for the time of the block."""
        info, content = self.stored(run_id)
        with run_file(content, info.format) as path:
            yield info, path
