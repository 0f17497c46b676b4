"""One stream over the blocks of a folder of results: everything that the statistics need, in memory that does not grow.

Columns: of each measure the values of the S systems; then, of each measure that can be compared and each system but the
first, the values of the first and of this system where both have one, and their difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cranfield.measures import CATALOGUE, Measure
from cranfield.scale.attributes import Attributes, Units, groups_of, hash_texts
from cranfield.scale.moments import FloatCN, Moments, UnitSums, WeightedSums
from cranfield.scale.results import COUNTS, Block, Results
from cranfield.stats.describe import SMALLEST_FACTOR, FloatN, differences

CELLS = 1 << 19
"""Values that are looked at together: 4 MB."""
STRATUM_UNITS = 1 << 10
"""Most units within a stratum."""
EXAMPLES = 5
MAX_UNANSWERED = 100_000
Progress = Callable[[int, int], None]
"""Called with the number of queries that are done, and of all."""


@dataclass(frozen=True)
class Layout:
    """Where the columns are."""

    measures: tuple[Measure, ...]
    n_systems: int

    @property
    def compared(self) -> tuple[Measure, ...]:
        """Measures that are a mean over queries, where there is more than one system."""
        several = self.n_systems > 1
        return tuple(measure for measure in self.measures if several and CATALOGUE[measure.name].aggregate == "mean")

    @property
    def n_values(self) -> int:
        """Columns of values."""
        return len(self.measures) * self.n_systems

    @property
    def n_columns(self) -> int:
        """All columns."""
        return self.n_values + 3 * len(self.compared) * (self.n_systems - 1)

    def value(self, measure: Measure, system: int) -> int:
        """The column of values of a system."""
        return self.measures.index(measure) * self.n_systems + system

    def pair(self, measure: Measure, system: int) -> tuple[int, int, int]:
        """The columns of a system (1 or more) with the first one: both values, and the difference."""
        place = self.compared.index(measure) * (self.n_systems - 1) + system - 1
        first = self.n_values + 3 * place
        return first, first + 1, first + 2

    @property
    def difference_columns(self) -> tuple[int, ...]:
        """Every column of differences."""
        return tuple(range(self.n_values + 2, self.n_columns, 3))

    def matrix(self, block: Block, rows: slice) -> FloatCN:
        """float64[C, n] of some queries of a block."""
        tables = [block.values[str(measure)][rows] for measure in self.measures]
        matrix = np.full((self.n_columns, len(tables[0])), np.nan)
        for place, table in enumerate(tables):
            matrix[place * self.n_systems : (place + 1) * self.n_systems] = table.T
        for measure in self.compared:
            baseline = matrix[self.value(measure, 0)]
            for system in range(1, self.n_systems):
                candidate = matrix[self.value(measure, system)]
                both = ~(np.isnan(baseline) | np.isnan(candidate))
                a, b, delta = self.pair(measure, system)
                matrix[a, both], matrix[b, both] = baseline[both], candidate[both]
                matrix[delta, both] = differences(baseline[both], candidate[both])
        return matrix


@dataclass
class Stratum:
    """What is known of the queries of one stratum."""

    moments: Moments
    units: UnitSums | None
    """Sums of clusters, where there are any."""
    n: int = 0
    weight: float = 0.0


@dataclass(eq=False)
class Tally:
    """What is known of all queries."""

    layout: Layout
    n_queries: int
    attributes: Attributes | None
    n_units: int
    """Most units."""
    seed: int
    with_unanswered: bool = False
    """Whether ids of unanswered queries are kept."""
    n: int = 0
    n_missing: NDArray[np.int64] = field(init=False)
    unanswered: list[list[str]] = field(init=False)
    """Ids of unanswered queries of each system, `MAX_UNANSWERED` at most."""
    judged_shares: FloatN = field(init=False)
    n_with_share: NDArray[np.int64] = field(init=False)
    n_without_row: int = 0
    without_row: list[str] = field(default_factory=list)
    n_without_cluster: int = 0
    without_cluster: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        layout, n_systems = self.layout, self.layout.n_systems
        self.counts = {name: np.zeros(n_systems, dtype=np.int64) for name in COUNTS}
        self.n_missing, self.n_with_share = (np.zeros(n_systems, dtype=np.int64) for _ in range(2))
        self.judged_shares = np.zeros(n_systems)
        self.unanswered = [[] for _ in range(n_systems)]
        self.moments, self.logs = Moments(layout.n_columns), Moments(layout.n_values)
        self.weights = WeightedSums(layout.n_values)
        columns = tuple(range(layout.n_columns)) if self.is_clustered else layout.difference_columns
        self.units = UnitSums(self._most_units, columns)
        keys = self.attributes.strata if self.attributes is not None else ()
        self.strata = [[self._stratum() for _ in values] for values in keys]

    @property
    def is_clustered(self) -> bool:
        """Whether queries have clusters."""
        return self.attributes is not None and self.attributes.unit is not None

    @property
    def is_grouped(self) -> bool:
        """Whether queries, or clusters, are summed in random groups."""
        n = self.attributes.n_clusters if self.attributes is not None and self.is_clustered else self.n_queries
        return n > self.n_units

    @property
    def _n_cluster_units(self) -> int:
        n_clusters = self.attributes.n_clusters if self.attributes is not None else 0
        return min(n_clusters, self.n_units)

    @property
    def _most_units(self) -> int:
        """Units of clusters, and then those of queries without one."""
        if self.is_clustered:
            return self._n_cluster_units + min(self.n_queries, self.n_units)
        return min(self.n_queries, self.n_units)

    def _stratum(self) -> Stratum:
        columns = tuple(range(self.layout.n_columns))
        units = UnitSums(min(self._most_units, STRATUM_UNITS), columns) if self.is_clustered else None
        return Stratum(Moments(self.layout.n_columns), units)

    def add(self, block: Block) -> None:
        """Add a block."""
        self._count(block)
        rows = None if self.attributes is None else self.attributes.rows(block.query_ids)
        if rows is not None:
            self._note_rows(block.query_ids, rows)
        units = self._units(block.query_ids, rows)
        step = max(1, CELLS // self.layout.n_columns)
        for start in range(0, len(block), step):
            part = slice(start, min(start + step, len(block)))
            matrix = self.layout.matrix(block, part)
            values = matrix[: self.layout.n_values]
            self.moments.add(matrix)
            self.logs.add(np.log(np.maximum(values, SMALLEST_FACTOR)))
            self.units.add(units[part], matrix)
            if self.attributes is not None and rows is not None:
                self._add_attributes(self.attributes, rows[part], units[part], matrix)
        self.n += len(block)

    def _count(self, block: Block) -> None:
        for name in COUNTS:
            self.counts[name] += block.counts[name].sum(axis=0)
        self.n_missing += (~block.answered).sum(axis=0)
        for system, known in enumerate(self.unanswered if self.with_unanswered else ()):
            places = np.flatnonzero(~block.answered[:, system])
            known.extend(_examples(block.query_ids, places, MAX_UNANSWERED - len(known)))
        self.n_with_share += (~np.isnan(block.judged)).sum(axis=0)
        self.judged_shares += np.nansum(np.ascontiguousarray(block.judged.T), axis=1)  # pairwise

    def _units(self, query_ids: pa.LargeStringArray, rows: NDArray[np.int32] | None) -> Units:
        """The unit of each query."""
        if self.attributes is None or self.attributes.unit is None or rows is None:
            if self.is_grouped:
                return groups_of(hash_texts(query_ids, self.seed), self.n_units)
            return np.arange(self.n, self.n + len(query_ids), dtype=np.int64)
        unit = self.attributes.unit[rows].astype(np.int64)
        alone = np.flatnonzero(unit < 0)
        if len(alone):
            # The first of them have a unit each; where there are more they share these.
            number = np.arange(self.n_without_cluster, self.n_without_cluster + len(alone))
            n_own = self._most_units - self._n_cluster_units
            shared = groups_of(hash_texts(query_ids.take(pa.array(alone)), self.seed), n_own)
            unit[alone] = self._n_cluster_units + np.where(number < n_own, number, shared)
            self.n_without_cluster += len(alone)
            self.without_cluster += _examples(query_ids, alone, EXAMPLES - len(self.without_cluster))
        return unit

    def _add_attributes(self, attributes: Attributes, rows: NDArray[np.int32], units: Units, matrix: FloatCN) -> None:
        weight = np.ones(len(rows)) if attributes.weight is None else attributes.weight[rows]
        if attributes.weight is not None:
            self.weights.add(matrix[: self.layout.n_values], weight)
        for key, strata in enumerate(self.strata):
            codes = attributes.codes[key][rows]
            for code in np.unique(codes).tolist():
                which, stratum = np.flatnonzero(codes == code), strata[code]
                stratum.n += len(which)
                stratum.weight += float(weight[which].sum())
                stratum.moments.add(matrix[:, which])
                if stratum.units is not None:
                    stratum.units.add(units[which] % stratum.units.n_units, matrix[:, which])

    def _note_rows(self, query_ids: pa.LargeStringArray, rows: NDArray[np.int32]) -> None:
        """Count the queries without a row of attributes."""
        absent = np.flatnonzero(rows < 0)
        self.n_without_row += len(absent)
        self.without_row += _examples(query_ids, absent, EXAMPLES - len(self.without_row))


def _examples(query_ids: pa.LargeStringArray, places: Sequence[int] | NDArray[np.int64], n: int) -> list[str]:
    found: list[str] = query_ids.take(pa.array(places[:n], pa.int64())).to_pylist() if n > 0 else []
    return found


def tally_results(
    results: Results, attributes: Attributes | None, *, n_units: int, seed: int, progress: Progress | None = None
) -> Tally:
    """Go through all blocks once."""
    scoring = results.about.scoring
    layout = Layout(scoring.measures, len(scoring.systems))
    with_unanswered = bool(results.about.extra_queries)
    tally = Tally(layout, results.n_queries, attributes, n_units, seed, with_unanswered=with_unanswered)
    for block in results.blocks():
        tally.add(block)
        if progress is not None:
            progress(tally.n, results.n_queries)
    return tally
