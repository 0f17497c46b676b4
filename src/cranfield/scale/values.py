"""Values of a summary of large results: means, paired comparisons, strata, and what the units of the statistics are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cranfield.base.display import Displayed, in_line
from cranfield.base.numbers import format_count, format_value
from cranfield.base.words import count_noun, join_first
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.values import ByMeasure, MeasureComparison, StratumComparison, Summary, Verdict
from cranfield.measures import Measure
from cranfield.model.results import Record
from cranfield.scale.results import ResultsInfo


class UnitKind(StrEnum):
    """What is resampled, and has its sign flipped, as a whole."""

    QUERY = "queries"
    GROUP = "random groups of queries"
    CLUSTER = "clusters"
    CLUSTER_GROUP = "random groups of whole clusters"


@dataclass(frozen=True, slots=True)
class Units:
    """The units of the statistics."""

    kind: UnitKind
    n: int
    """Units with results."""
    column: str = ""
    """Column of the table that names the clusters."""
    n_clusters: int = 0
    """In the table; queries without one not counted."""
    largest: int = 0
    """Queries of the largest cluster."""
    n_without: int = 0
    """Queries without a cluster: each is its own."""
    without: tuple[str, ...] = ()
    """Some of them."""

    @property
    def is_clustered(self) -> bool:
        """Whether queries of one cluster stay together."""
        return self.kind in {UnitKind.CLUSTER, UnitKind.CLUSTER_GROUP}

    @property
    def text(self) -> str:
        """`1,204 clusters of queries by user`."""
        return count_noun(self.n, f"{self.kind}{f' by {self.column}' if self.column else ''}", format_count)


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """One system over all queries."""

    name: str
    n_queries: int
    n_missing: int
    """Queries that it does not answer."""
    n_rows: int
    """Rows of the run of judged queries."""
    n_returned: int
    n_judged: int
    n_duplicates: int
    judged_share: float | None
    """Mean share of the first results of a query that is judged, to `scoring.judged_depth`; None where no query has one."""
    measures: ByMeasure[Summary]
    """Without a median; the interval is of clusters where there are any."""
    n_without_value: ByMeasure[int]
    digest: str = ""
    """Digest of the files of its run; empty where a column names the systems, or an engine read the files."""


@dataclass(frozen=True, slots=True)
class PairSummary:
    """One system against the baseline."""

    name: str
    measures: Mapping[Measure, MeasureComparison]
    counts: Mapping[Measure, tuple[int, int, int]]
    """Queries on which it is better, the same and worse."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class StratumMeans:
    """One measure within one stratum."""

    key: str
    value: str
    measure: Measure
    n: int
    """Queries of the stratum, with a value or without."""
    means: tuple[Summary, ...]
    """Mean of each system."""
    differences: tuple[StratumComparison, ...]
    """Comparison of each system but the first with the first; empty where a measure cannot be compared."""


@dataclass(frozen=True, slots=True)
class StratifiedMean:
    """Shares of the strata times their means."""

    key: str
    measure: Measure
    system: str
    of: str
    """`mean` of the system, or `difference` with the baseline."""
    mean: float
    ci_low: float | None
    ci_high: float | None
    n_strata: int
    is_weighted: bool
    """Whether the shares are those of weights, and not of the queries."""


@dataclass(frozen=True, repr=False, kw_only=True)
class ScaleSummary(Displayed, Record):
    """What the statistics of a folder of results are."""

    about: ResultsInfo
    scored_by: str
    """Version of the Cranfield that scored the queries."""
    versions: Mapping[str, str]
    """What made the summary."""
    n_queries: int
    options: CompareOptions
    primary: Measure
    units: Units
    systems: tuple[SystemSummary, ...]
    pairs: tuple[PairSummary, ...] = ()
    """Every system but the first against the first."""
    strata: tuple[StratumMeans, ...] = ()
    stratified: tuple[StratifiedMean, ...] = ()
    table: str = ""
    """Name of the table of attributes."""
    weight: str = ""
    """Its column of weights."""
    n_without_row: int = 0
    """Queries that are not in the table."""
    without_row: tuple[str, ...] = ()
    """Some of them."""
    caveats: tuple[str, ...] = ()

    baseline: str
    """The first system."""

    def _summary(self) -> str:
        means = [f"{in_line(each.name)} {format_value(each.measures[self.primary].mean)}" for each in self.systems]
        verdict = f": {self.pairs[0].verdict.name}" if len(self.pairs) == 1 else ""
        return (
            f"{self.primary} of {join_first(means, 3)}; {count_noun(self.n_queries, 'queries', format_count)}{verdict}"
        )
