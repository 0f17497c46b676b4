"""Options of reading and scoring a run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from annotated_types import Ge

from cranfield.errors import UsageError
from cranfield.model.convention import DEFAULT_CONVENTION, Convention, Ties, convention_named
from cranfield.options.declaration import Option, check
from cranfield.options.limits import LatencyRule, Limits
from cranfield.ranking.scan import REPORTED_HITS, Duplicates, Missing

MOST_KEPT = 100
"""Hits of a query that are kept for the bounds of a measure with a deeper cutoff than reports show."""
COMMAND = ("command",)


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """How a run is read and scored: the keywords of `evaluate`, which documents them."""

    convention: Annotated[
        str | Convention, Option(help="Scoring convention: {conventions}.", metavar="NAME", choices="conventions")
    ] = DEFAULT_CONVENTION
    missing: Annotated[
        Missing | None,
        Option(
            help="Score a judged query without results as 0, or skip it; default: the convention's rule.",
            places=COMMAND,
        ),
    ] = None
    failed: Annotated[
        Missing | None,
        Option(
            help="Score a query that the system failed on, or answered with nothing, as 0, or leave it out; default: the "
            "convention's rule. `run` and `gate` count 0.",
            places=COMMAND,
        ),
    ] = None
    ties: Annotated[
        Ties | None,
        Option(
            help="Equal scores: by document id, descending or ascending, or as in the run; expected: the mean over all their "
            "orders. Default: the convention's rule.",
            places=COMMAND,
        ),
    ] = None
    duplicates: Annotated[
        Duplicates | None,
        Option(
            help="Duplicate documents for a query in a TREC run: raise an error, or keep the first; default: the convention's "
            "rule.",
            places=COMMAND,
        ),
    ] = None
    depth: Annotated[int | None, Option(help="Use only the first N results of each query.", metavar="N"), Ge(1)] = None
    run_format: Annotated[
        str | None,
        Option(
            help="Format of the runs: {run_formats}; default: detected from the content.",
            metavar="FORMAT",
            choices="run_formats",
            places=COMMAND,
        ),
    ] = None
    limits: Limits = field(default_factory=Limits)
    confusion: Annotated[
        Mapping[str, str],
        Option(
            help="Table of a field of the answers against the stratum, or `class`, that it predicts; repeat for more.",
            metavar="FIELD=STRATUM",
            in_config="A mapping: `{routed: task_type}`. A field with the name of a stratum has a table without this.",
            owner="none",
        ),
    ] = field(default_factory=dict, hash=False)
    latency: Annotated[
        LatencyRule,
        Option(
            help="Change when a system is called faster: skip_first=3, smallest_ms=1, smallest_percent=5; repeat for more.",
            metavar="KEY=NUMBER",
        ),
    ] = field(default_factory=LatencyRule)
    name: str | None = None
    cache: bool = False
    columns: Mapping[str, str] | None = field(default=None, hash=False)
    keep: int = REPORTED_HITS
    keep_undefined: bool = False
    """Keep a measure that has no value for any query, as one without a value, instead of refusing it."""

    def __post_init__(self) -> None:
        check(self)

    @property
    def convention_name(self) -> str:
        """Name of the convention."""
        return convention_named(self.convention).name

    def keeping(self, primary: str | None) -> "ScoringOptions":
        """The options with the hits that bounds of the primary measure need, down to its cutoff; see `MOST_KEPT`.

        Args:
            primary: the measure that decides, as it is spelled; None: of the default list.
        """
        cutoff = re.search(r"@(\d+)", primary or "")
        needed = 0 if cutoff is None else min(int(cutoff[1]), MOST_KEPT)
        return replace(self, keep=needed) if 0 < self.keep < needed else self

    def resolved(self) -> "tuple[ScoringOptions, Convention]":
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
