"""A run file becomes a ranking: which reader reads it, what is kept of large ones, and reading that begins before numpy is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cranfield.errors import UsageError
from cranfield.formats.io.files import stem
from cranfield.model import Convention, TestSet
from cranfield.ranking import c_reader
from cranfield.ranking.cache import cached, may_be_cached
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.scan import (
    REPORTED_HITS,
    Duplicates,
    JudgedIndex,
    Missing,
    Scan,
    ScanOptions,
)
from cranfield.words import short_name

if TYPE_CHECKING:
    from cranfield.ranking.join import RankedRun


Engine = Literal["auto", "native", "python"]
ENGINE_VARIABLE = "CRANFIELD_ENGINE"
"""`native`, `python`, or `auto` (the default): the C kernel where it was built."""
JOBS_VARIABLE = "CRANFIELD_JOBS"
"""Threads that read a file; unset: as many as there are processors, at most 8."""


def scan_file(path: Path, index: JudgedIndex, options: ScanOptions, jobs: int) -> Scan:
    """Read a run file with the C kernel where it was built, else in Python; see `ENGINE_VARIABLE`."""
    if kernel_requested():
        return c_reader.scan_file(path, index, options, threads=jobs)
    from cranfield.ranking import python_reader

    return python_reader.scan_file(path, index, options)


def kernel_requested() -> bool:
    """Whether the C kernel is used.

    Raises:
        UsageError: it is requested by name and absent.
    """
    engine = requested_engine()
    if engine == "native" and not c_reader.available():
        raise UsageError(f"{ENGINE_VARIABLE} requests the native reader: {c_reader.why_not()}")
    return engine != "python" and c_reader.available()


def why_in_python() -> str | None:
    """Why run files are read by the slower reader; None where they are not, or where that was requested."""
    return c_reader.why_not() if requested_engine() == "auto" and not c_reader.available() else None


def requested_engine() -> Engine:
    """The reader that the environment requests."""
    engine = os.environ.get(ENGINE_VARIABLE) or "auto"
    if engine not in {"auto", "native", "python"}:
        raise UsageError(f"{ENGINE_VARIABLE} is {engine!r}", expected="auto, native or python")
    return engine  # type: ignore[return-value]


def requested_jobs() -> int:
    """The number of threads that the environment requests, else one per processor, at most 8."""
    text = os.environ.get(JOBS_VARIABLE)
    if not text:
        return c_reader.default_threads()
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise UsageError(f"{JOBS_VARIABLE} is {text!r}", expected="a whole number from 1 to 256")
    return int(text)


def rank_file(
    testset: TestSet,
    path: Path,
    convention: Convention,
    *,
    missing: Missing = "zero",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
    cache: bool = False,
) -> RankedRun:
    """Read, order and join a TREC run file.

    Args:
        testset: the judged queries; a query of the file that is not among them is ignored and named.
        path: six columns a line (query, Q0, document, rank, score, tag), separated by white space; gzip is recognised.
        convention: says whether score, position or rank orders a query, and how ties are broken.
        missing: a judged query without an answer counts as 0, or is left out.
        duplicates: a repeated document of a query is an error naming both lines, or the best ranked one is kept.
        depth: ranks kept per query, before any measure is computed; None keeps all.
        keep: hits per query kept for reports.
        cache: use the scan that was kept of this content, and keep this one; see `cranfield.ranking.file`.

    Raises:
        RunFormatError: with every bad line found.
        NoCommonQueryError: the file answers no judged query.
    """
    if convention.repeats == "kept":
        from cranfield.ranking.collected import rank_as_shown

        return rank_as_shown(testset, path, convention, missing=missing, depth=depth, keep=keep)
    reading = FileReading(testset, path, convention, missing, duplicates, depth=depth, keep=keep, cache=cache)
    return reading.result()


class FileReading:
    """A TREC run file on its way to a Ranking; the arguments are those of `rank_file`."""

    def __init__(
        self,
        testset: TestSet,
        path: Path,
        convention: Convention,
        missing: Missing,
        duplicates: Duplicates,
        *,
        depth: int | None,
        keep: int,
        cache: bool,
    ) -> None:
        requested_engine()  # refused when misspelt, even where nothing has to be read
        self._jobs = requested_jobs()
        self._path = path
        self._missing: Missing = missing
        self._cache = cache
        self._judgments = PreparedJudgments(testset, convention)
        self._options = ScanOptions(
            order=convention.file_order,
            ties=convention.tie_order,
            width=convention.score_width,
            duplicates=duplicates,
            depth=depth,
            keep=keep,
        )
        self._pending: c_reader.PendingScan | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def start(self) -> None:
        """Begin to read in the kernel's threads; not where the kernel is absent or the scan may be cached."""
        if kernel_requested() and self._path.is_file() and not (self._cache and may_be_cached(self._path)):
            options = self._judgments.scan_options(self._options)
            self._pending = c_reader.start(self._path, self._judgments.index, options, threads=self._jobs)

    def result(self) -> RankedRun:
        """Finish reading, and join the judgments; see `rank_file`."""
        scan = (
            cached(
                self._path,
                self._judgments.index,
                self._judgments.scan_options(self._options),
                self._jobs,
                self._read,
            )
            if self._cache
            else self._read()
        )
        from cranfield.ranking.join import join_ranks

        return join_ranks(
            self._judgments,
            scan,
            missing=self._missing,
            options=self._options,
            states_empty=False,
            name=short_name(scan.tag) if scan.tag else stem(self._path),
            make_digest=lambda: scan.digest,
        )

    def close(self) -> None:
        """Stop reading."""
        if self._pending is not None:
            self._pending.close()

    def _read(self) -> Scan:
        if self._pending is not None:
            return self._pending.result()
        options = self._judgments.scan_options(self._options)
        return scan_file(self._path, self._judgments.index, options, self._jobs)
