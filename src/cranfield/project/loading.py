"""Load a test set, ready to be used. Imports no numpy: a run file can be read while that is imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.errors import UsageError, shorten
from cranfield.formats.io.files import meta_path
from cranfield.formats.sniff import read_testset
from cranfield.model import TestSet
from cranfield.project.testset_options import NO_OPTIONS, TestSetOptions, apply_options

if TYPE_CHECKING:
    from cranfield.project.inputs import Judgments


def load(
    source: Judgments,
    *,
    format: str | None = None,  # noqa: A002 - the word its users know
    columns: Mapping[str, str] | None = None,
    options: TestSetOptions = NO_OPTIONS,
) -> TestSet:
    """Read a test set in any of its formats, detected from the content, and apply the options.

    Predicates are asked of their databases, and ratings become grades.

    Args:
        source: the file; or a mapping of query id to document id to grade; or a data frame with a row per judgment.
        format: name of a file's format, to say so instead. Qrels whose second column says something have to be named:
            `subtopics`, `judges` or `preferences`.
        columns: what a frame's columns are called, where the names are unusual: `{"query_id": "topic"}`.
        options: what else is done to it: other judgments, strata, classes, a consensus, a repository it must be true of.

    Raises:
        TestSetError: with every problem of the file, each with its line.
    """
    if isinstance(source, str | Path):
        return apply_options(_read(Path(source), format), options, Path(source).parent)
    if format is not None:
        raise UsageError(f"format is {shorten(format)}", expected="none: it is about files, and this is none")
    from cranfield.formats.testsets.judgments import qrels_from_frame, qrels_from_mapping

    read = qrels_from_mapping(source) if isinstance(source, Mapping) else qrels_from_frame(source, columns=columns)
    return apply_options(read, options)


def _read(path: Path, format: str | None) -> TestSet:  # noqa: A002 - as above
    """A test set as its file has it, with what a file beside it says."""
    testset = read_testset(path, format)
    if not meta_path(path).exists():
        return testset
    from cranfield.formats.testsets.meta_file import with_meta

    return with_meta(testset, path)
