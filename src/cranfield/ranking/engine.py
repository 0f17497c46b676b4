"""The choice between the two readers of TREC run files: by the environment, else the C kernel where it was built."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from cranfield.base.errors import UsageError
from cranfield.ranking import c_reader
from cranfield.ranking.scan import (
    JudgedIndex,
    Scan,
    ScanOptions,
)

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
