"""What the library's functions take: test sets and runs as files, plain Python values and data frames; scoring options.

Imports no numpy: a run file can be read while that is imported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_args

from cranfield.errors import Problem, UsageError, shorten
from cranfield.model import DEFAULT_CONVENTION, Convention, convention_named
from cranfield.model.convention import Ties
from cranfield.ranking.scan import REPORTED_HITS, Duplicates, Missing

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from cranfield.evaluation.latency_rule import LatencyRule
    from cranfield.evaluation.values import Limits
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


MOST_KEPT = 100
"""Hits of a query that are kept for the bounds of a measure with a deeper cutoff than reports show."""


@dataclass(frozen=True)
class ScoringOptions:
    """How a run is read and scored: the keywords of `evaluate`, which documents them."""

    convention: str | Convention = DEFAULT_CONVENTION
    missing: Missing | None = None
    duplicates: Duplicates | None = None
    run_format: str | None = None
    name: str | None = None
    depth: int | None = None
    cache: bool = False
    columns: Mapping[str, str] | None = None
    keep: int = REPORTED_HITS
    limits: Limits | None = None
    latency: LatencyRule | None = None
    """Which timings count; None: the default rule."""
    confusion: Mapping[str, str] | None = None
    ties: Ties | None = None
    """How equal scores count; None as the convention has it. See `Convention.ties`."""
    failed: Missing | None = None
    """How a query counts that the system failed on, or answered with nothing; None as the convention has it."""
    keep_undefined: bool = False
    """Keep a measure that has no value for any query, as one without a value, instead of refusing it."""

    def __post_init__(self) -> None:
        """Refuse values that a type checker would have refused."""
        problems = []
        depth = self.depth
        if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
            problems.append(Problem(f"depth is {shorten(depth)}", expected="a whole number of 1 or more"))
        allowed: dict[str, tuple[str, ...]] = {
            "missing": ("zero", "skip"),
            "duplicates": ("error", "first"),
            "failed": ("zero", "skip"),
            "ties": get_args(Ties),
        }
        for name, choices in allowed.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                problems.append(Problem(f"{name} is {shorten(value)}", expected=" or ".join(map(repr, choices))))
        if problems:
            raise UsageError(problems)

    def keeping(self, primary: str | None) -> ScoringOptions:
        """The options with the hits that bounds of the primary measure need, down to its cutoff; see `MOST_KEPT`.

        Args:
            primary: the measure that decides, as it is spelled; None: of the default list.
        """
        cutoff = re.search(r"@(\d+)", primary or "")
        needed = 0 if cutoff is None else min(int(cutoff[1]), MOST_KEPT)
        return replace(self, keep=needed) if 0 < self.keep < needed else self

    def resolved(self) -> tuple[ScoringOptions, Convention]:
        """The options with the defaults of the convention, and the convention."""
        rules = convention_named(self.convention)
        if self.duplicates is not None:
            rules = replace(rules, repeats="dropped")
        if self.ties is not None:
            rules = replace(rules, ties=self.ties, orders="one")
        if self.depth is not None and rules.ties == "expected":
            raise UsageError(
                "{depth} cuts ties, and their orders are not known then ({ties=expected})",
                hint="give the measures a cutoff, as in nDCG@10",
                parameters=("depth", "ties"),
            )
        if self.failed is not None:
            rules = replace(rules, failed=self.failed, empty=self.failed)
        return replace(
            self, missing=self.missing or rules.missing, duplicates=self.duplicates or rules.duplicates
        ), rules
