"""What the library's functions take: test sets and runs as files, plain Python values and data frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from cranfield.model import Run, TestSet


class ArrowStream(Protocol):
    """An object that exports Arrow data through the PyCapsule interface, such as a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream, as a capsule."""


Frame: TypeAlias = "IntoFrame | ArrowStream"
"""A data frame of any library that narwhals supports, or any Arrow stream, with a row per judgment or per result."""
Judgments: TypeAlias = "str | Path | Mapping[str, Mapping[str, float]] | Mapping[str, Collection[str]] | Frame"
"""What `load` makes a test set of: a file, query id -> document id -> grade, query id -> relevant ids, or a frame."""
TestSetLike: TypeAlias = "TestSet | Judgments"
"""A test set, or what `load` makes one of."""
RunLike: TypeAlias = "Run | str | Path | Mapping[str, Sequence[Any]] | Mapping[str, Mapping[str, float]] | Frame"
"""A collected run, a run file, query id -> results in order, query id -> document id -> score, or a frame.

A result is an id, an id with its score, or a document with its metadata."""
