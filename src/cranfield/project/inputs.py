"""Types of what the library's functions take: test sets and runs as files, as plain Python values and as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from cranfield.model import Run, TestSet


class ArrowStream(Protocol):
    """An object that exports Arrow data through the PyCapsule interface, such as a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The stream, as a capsule."""


Frame: TypeAlias = "IntoFrame | ArrowStream"
"""A data frame of any library that narwhals supports, or any Arrow stream, with a row per judgment or per result."""
Judgments: TypeAlias = "str | Path | Mapping[str, Mapping[str, float]] | Frame"
"""What `load` makes a test set of: a file, query id -> document id -> grade, or a frame."""
TestSetLike: TypeAlias = "TestSet | Judgments"
"""A test set, or what `load` makes one of."""
RunLike: TypeAlias = "Run | str | Path | Mapping[str, Sequence[str]] | Mapping[str, Mapping[str, float]] | Frame"
"""A collected run, a run file, query id -> document ids in order, query id -> document id -> score, or a frame."""
