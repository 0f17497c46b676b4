"""How the pairs of many systems are tested: declared beforehand, with the smallest p-value that it can give."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.numbers import format_count, format_plain
from cranfield.options.compare import CompareOptions
from cranfield.stats.permutation import is_enumerated
from cranfield.stats.simultaneous import max_t_patterns, moving_queries
from cranfield.stats.table import ADJUSTMENTS, TESTS
from cranfield.words import n_of


@dataclass(frozen=True, slots=True)
class Procedure:
    """Test and adjustment of a family of pairs."""

    options: CompareOptions
    n_queries: int
    n_moving: int
    """Queries on which any two systems differ."""
    n_pairs: int

    @property
    def n_draws(self) -> int:
        """Random sign patterns; 0 where all are counted, or none are used."""
        if self.options.test != "permutation":
            return 0
        if self.options.adjustment == "max-t":
            n_patterns, is_exact = max_t_patterns(self.n_moving, self.n_pairs, self.options.draws)
            return 0 if is_exact else n_patterns
        return 0 if is_enumerated(self.n_queries, self.n_queries) else self.options.draws

    @property
    def smallest_p(self) -> float:
        """The smallest adjusted p-value that so many queries, pairs and draws can give."""
        options = self.options
        if options.adjustment == "max-t":
            return min(1.0, 2 / max_t_patterns(self.n_queries, self.n_pairs, options.draws)[0])
        factor = self.n_pairs if ADJUSTMENTS[options.adjustment].counts_pairs else 1
        return min(1.0, factor * TESTS[options.test].smallest_p(self.n_queries, options.draws))

    @property
    def can_find(self) -> bool:
        """Whether any pair could be significant."""
        return self.n_queries > 1 and self.smallest_p <= self.options.alpha

    @property
    def adjusted(self) -> str:
        """`max-T`: how tables name the adjustment."""
        return ADJUSTMENTS[self.options.adjustment].short

    @property
    def text(self) -> str:
        """`permutation, 10,153 pairs, max-T, 100,000 draws`."""
        drawn = (f"{format_count(self.n_draws)} draws",) if self.n_draws else ()
        return ", ".join((self.options.test, n_of(self.n_pairs, "pairs", format_count), self.adjusted, *drawn))

    @property
    def why_not(self) -> str:
        """Why no pair could be significant, and what to do."""
        if self.n_queries < 2:
            return "fewer than two queries have a value for every system: nothing can be tested"
        drawn = f" and {format_count(self.options.draws)} draws" if self._is_drawn else ""
        return (
            f"{n_of(self.n_queries, 'queries', format_count)}{drawn} cannot make any of "
            f"{n_of(self.n_pairs, 'pairs', format_count)} significant at alpha {format_plain(self.options.alpha)}: the smallest "
            f"p that {self.options.test} with {ADJUSTMENTS[self.options.adjustment].title} can reach is "
            f"{format_plain(self.smallest_p)}; use {' or '.join(self._ways_out())}"
        )

    @property
    def _is_drawn(self) -> bool:
        """Whether so many queries need random draws."""
        if self.options.adjustment == "max-t":
            return not max_t_patterns(self.n_queries, self.n_pairs, self.options.draws)[1]
        return self.options.test in {"permutation", "bootstrap"} and not is_enumerated(self.n_queries, self.n_queries)

    def _ways_out(self) -> list[str]:
        options = self.options
        ways = []
        if self._is_drawn and options.test == "permutation":
            factor = self.n_pairs if ADJUSTMENTS[options.adjustment].counts_pairs else 1
            ways.append(f"{format_count(math.ceil(2 * factor / options.alpha))} draws")
        joint = replace(self, options=replace(options, test="permutation", adjust="max-t"))
        if options.adjustment != "max-t" and joint.can_find:
            ways.append("the test permutation with the adjustment max-t")
        if options.test != "t":
            ways.append("the test t (for differences that are close to normal)")
        return ways or ["more queries"]


def procedure_of(values: NDArray[np.float64], n_pairs: int, options: CompareOptions) -> Procedure:
    """The declared procedure for so many pairs of systems.

    Args:
        values: float64[Q, S], queries by systems.
        n_pairs: pairs that are adjusted together.
        options: what was declared.
    """
    return Procedure(options, len(values), moving_queries(values), n_pairs)
