"""Order statistics of the Walsh averages (x_i + x_j) / 2, i <= j, without computing all of them.

7,000 differences have 24.5 million Walsh averages. The k-th smallest is found by bisection and counting, in O(n log n) time a
step and O(n) memory. In whole units (see `fixed_point`) the count is exact.
"""

from __future__ import annotations

import numpy as np

from cranfield.stats.arguments import FloatN
from cranfield.stats.fixed_point import FixedPoint, fixed_point


class WalshAverages:
    """The n (n + 1) / 2 averages of pairs of `values`, each value also paired with itself."""

    def __init__(self, values: FloatN) -> None:
        self._fixed: FixedPoint = fixed_point(np.sort(values), largest_sum=2 * float(np.abs(values).max()))
        n = len(values)
        self.size = n * (n + 1) // 2

    def smallest(self, rank: int) -> float:
        """The `rank`-th smallest, counted from 1 to `size`."""
        units = self._fixed.units
        low, high = 2 * int(units[0]), 2 * int(units[-1])
        while low < high:
            middle = (low + high) // 2
            if self._count_up_to(middle) >= rank:
                high = middle
            else:
                low = middle + 1
        return self._fixed.value(low / 2)

    def median(self) -> float:
        """The middle one, or half-way between the middle two: the Hodges-Lehmann estimate."""
        return (self.smallest((self.size + 1) // 2) + self.smallest(self.size // 2 + 1)) / 2

    def _count_up_to(self, pair_sum: int) -> int:
        """Pairs i <= j whose sum in units is at most `pair_sum`."""
        units = self._fixed.units
        ordered_pairs = int(np.searchsorted(units, pair_sum - units, side="right").sum())
        with_itself = int(np.searchsorted(units, pair_sum / 2, side="right"))
        return (ordered_pairs + with_itself) // 2
