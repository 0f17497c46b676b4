"""Wilcoxon's signed-rank test with its inverted interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import FixedPoint, fixed_point
from cranfield.stats.describe import TOLERANCE, FloatN, Values, align_with_test, as_vector, check_alpha, nonzero
from cranfield.stats.result import NO_QUERY, TestResult, untested

MIN_PAIRS = 6
"""With fewer non-zero differences no two-sided p-value is below .05."""

EXACT_UP_TO = 200
"""Non-zero differences up to which p-value and interval are exact; beyond, by the normal approximation."""


def wilcoxon(difference: Values, *, alpha: float = 0.05) -> TestResult:
    """Test whether the non-zero differences are symmetric about zero, by the ranks of their sizes.

        W+ = sum of the ranks of |d| where d > 0;  W = min(W+, W-)
        z  = (W+ - n (n + 1) / 4) / sqrt(n (n + 1) (2 n + 1) / 24 - sum(t^3 - t) / 48)

    Args:
        difference: candidate minus baseline, one per query.
        alpha: the interval covers 1 - alpha.

    Returns:
        W, and p by counting all sign patterns of the ranks, one-sided for the candidate above the baseline; beyond 200 non-zero
        differences by the normal approximation. The interval is of the pseudo-median (the median of the Walsh averages,
        Hodges and Lehmann's estimate) of the *non-zero* differences, by inverting the test: all t for which W+ of the d - t
        is not in its critical tails. Its ends are order statistics of the Walsh averages. `estimate` is the pseudo-median;
        `extra` has both rank sums and the p-values of both kinds.

    Conventions:
        zero differences are dropped, then tied sizes get their mean rank (and z its correction for ties, t the length of a
        tie) · no continuity correction · sizes within 1e-12 of the largest are tied · under 6 non-zero pairs: no p-value, no
        interval, and a note · the critical tails of the interval are those of the test at zero, ties included · the exact
        p is conditional on the ranks as they are, ties included.

    Source:
        Wilcoxon 1945, Biometrics Bulletin 1(6); Hodges & Lehmann 1963, Ann. Math. Stat. 34(2). The exact p equals that of
        `scipy.stats.wilcoxon(method="exact")` without ties, and of `method=PermutationMethod(n_resamples=numpy.inf)`
        with them; the approximation `zero_method="wilcox", correction=False, method="asymptotic"`.
    """
    check_alpha(alpha)
    vector = as_vector(difference, "differences")
    if not vector.size:
        return untested(NO_QUERY)
    kept = nonzero(vector)
    if len(kept) < MIN_PAIRS:
        return untested(f"too few non-zero pairs (n < {MIN_PAIRS})")
    return _signed_ranks(kept, alpha, len(vector))


class WalshAverages:
    """Order statistics of the n (n + 1) / 2 Walsh averages (x_i + x_j) / 2, i <= j, without computing all of them.

    7,000 differences have 24.5 million. The k-th smallest is found by bisection and counting, in O(n log n) time a step and
    O(n) memory. In whole units (see `fixed_point`) the count is exact.
    """

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


def _signed_ranks(kept: FloatN, alpha: float, n_queries: int) -> TestResult:
    n = len(kept)
    doubled, ties = _doubled_ranks(np.abs(kept))
    w_plus = int(doubled[kept > 0].sum()) / 2
    w_minus = n * (n + 1) / 2 - w_plus
    spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24 - ties / 48)
    z = (w_plus - w_minus) / 2 / spread
    normal = math.erfc(abs(z) / math.sqrt(2)), math.erfc(z / math.sqrt(2)) / 2
    exact = None
    averages = WalshAverages(kept)
    if n <= EXACT_UP_TO:
        shares = rank_sum_shares(doubled)
        exact = tails(shares, round(2 * w_plus))
        rank = _exact_rank(shares, alpha)
    else:
        rank = _normal_rank(averages.size, spread, alpha)
    p_two_sided, p_one_sided = exact or normal
    low, high = _ends(averages, rank)
    scale = float(np.abs(kept).max())
    low, high = align_with_test(low, high, rejected=p_two_sided <= alpha, upward=z > 0, scale=scale)
    median = averages.median()
    return TestResult(
        statistic=min(w_plus, w_minus),
        p_two_sided=p_two_sided,
        p_one_sided=p_one_sided,
        ci_low=low,
        ci_high=high,
        note=_other_p(normal, with_ties=ties > 0 or n < n_queries) if exact else None,
        is_other_elsewhere=exact is not None and (ties > 0 or n < n_queries),
        estimate=median,
        extra={
            "n_nonzero": n,
            "w_plus": w_plus,
            "w_minus": w_minus,
            "pseudo_median": median,
            "p_exact_two_sided": exact[0] if exact else None,
            "p_exact_one_sided": exact[1] if exact else None,
            "p_normal_two_sided": normal[0],
            "p_normal_one_sided": normal[1],
        },
    )


def _other_p(normal: tuple[float, float], *, with_ties: bool) -> str:
    """The p-values of the normal approximation, which SciPy gives by default where differences are zero or tie in size."""
    two_sided, one_sided = (_six_decimals(p) for p in normal)
    of = "SciPy's normal approximation" if with_ties else "normal approximation"
    return f"exact p; {of} p {two_sided}, one-sided {one_sided}"


def _six_decimals(p: float) -> str:
    """`.001147`; in powers of ten where that would be zero."""
    return f"{p:.6f}".removeprefix("0") if p >= 1e-6 else f"{p:.3g}"


def rank_sum_shares(doubled_ranks: NDArray[np.int64]) -> FloatN:
    """Share of all 2^n sign patterns with each doubled rank sum, from 0; doubled ranks are whole, of ties too."""
    shares = np.zeros(int(doubled_ranks.sum()) + 1)
    shares[0] = 1.0
    reached = 0
    for rank in doubled_ranks.tolist():
        reached += rank
        with_it = shares[: reached + 1 - rank].copy()
        shares[: reached + 1] /= 2
        shares[rank : reached + 1] += with_it / 2
    return shares


def tails(shares: FloatN, doubled_w_plus: int) -> tuple[float, float]:
    """Two-sided and one-sided (as large or larger) p-value of the doubled rank sum of the positive differences."""
    total = len(shares) - 1
    # Sums are symmetric about total / 2, and a small tail is summed more exactly than 1 minus a large one.
    tail = float(shares[: min(doubled_w_plus, total - doubled_w_plus) + 1].sum())
    at_least = tail if 2 * doubled_w_plus >= total else float(shares[doubled_w_plus:].sum())
    return min(1.0, 2 * tail), min(1.0, at_least)


def _doubled_ranks(sizes: FloatN) -> tuple[NDArray[np.int64], int]:
    """Twice the mean rank of each size, and the sum of t^3 - t over ties of length t."""
    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-np.inf) > TOLERANCE * ordered[-1])
    lengths = np.diff(starts, append=len(sizes))
    doubled = np.empty(len(sizes), dtype=np.int64)
    doubled[order] = np.repeat(2 * starts + lengths + 1, lengths)
    return doubled, int((lengths**3 - lengths).sum())


def _exact_rank(shares: FloatN, alpha: float) -> int:
    """Walsh averages to leave out at either end, and one more: whole rank sums that the test rejects, counted from 0."""
    rejected = int(
        np.count_nonzero(2 * np.cumsum(shares[: len(shares) // 2 + 1]) <= alpha)
    )  # doubled sums 0 to this - 1
    return (rejected + 1) // 2 if rejected else 0


def _normal_rank(size: int, spread: float, alpha: float) -> int:
    """The same where W+ of the d - t, the number of averages above t, comes to the critical distance from its mean."""
    from scipy.special import ndtri

    critical = size / 2 - float(ndtri(alpha / 2)) * spread
    return 0 if math.isinf(critical) else math.floor(size + 1 - critical)


def _ends(averages: WalshAverages, rank: int) -> tuple[float | None, float | None]:
    """The `rank`-th smallest and largest average, the middle ones at most; None under 1."""
    rank = min(rank, (averages.size + 1) // 2)
    if rank < 1:
        return None, None
    return averages.smallest(rank), averages.smallest(averages.size + 1 - rank)
