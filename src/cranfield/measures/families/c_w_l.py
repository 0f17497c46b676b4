"""The C/W/L measures: the gain per result inspected, for a user described by the chance to go on from each rank.

They are listed by `user_models`. A user of C/W/L who stands at rank i goes on with chance C_i. The ranks then have
weights, W_1 = 1 / (1 + C_1 + C_1 C_2 + …) and W_(i+1) = W_i C_i, and the measure is the sum of W_i g_i: what an inspected
result is worth on average. Gains are grades on a scale from 0 to 1. Every sum here is over the rows with gain alone: in
between, the weights have a closed form. Axes: Q queries, N rows with gain, sorted by query, then rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cranfield.base.errors import MeasureError
from cranfield.measures.measure import PERSISTENCE, MeasureSpec, ParameterSpec, with_default
from cranfield.measures.sums import (
    Floats,
    Integers,
    after,
    before,
    harmonic,
    inverse_squares,
    log_discounts,
    running,
    starts,
)
from cranfield.ranking.value import FloatQ, Ranking

AZZOPARDI = "Azzopardi, Mackenzie & Moffat 2021, ICTIR"


@dataclass(frozen=True, eq=False)
class Gained:
    """The results of each list that are worth something, down to a depth."""

    query: Integers  # [N]
    rank: Floats  # [N]
    gain: Floats  # [N] above 0 and up to 1
    n_queries: int

    @classmethod
    def of(cls, ranking: Ranking, depth: float, min_rel: float, max_rel: float) -> Gained:
        """Take the rows of a ranking that are worth more than `min_rel`, within the depth."""
        gain = scaled(ranking, min_rel, max_rel)
        rows = (gain > 0) & (ranking.rank <= depth)
        return cls(ranking.query[rows], ranking.rank[rows].astype(np.float64), gain[rows], ranking.n_queries)

    def per_query(self, values: Floats) -> FloatQ:
        """float64[Q]: sum of the rows' values."""
        return np.bincount(self.query, weights=values, minlength=self.n_queries).astype(np.float64)


@dataclass(frozen=True)
class Weights:
    """Weights of the ranks for a user who takes no notice of what stands there; they need not sum to 1."""

    at: Callable[[Floats], Floats]
    """Weight of each of some ranks."""
    to: Callable[[Floats], Floats]
    """Sum of the weights of the first n ranks; n may be infinite."""


EVERY_RANK = Weights(np.ones_like, lambda n: n)
BY_RANK = Weights(lambda rank: 1.0 / rank, harmonic)


def geometric(p: float) -> Weights:
    """p^(i - 1)."""
    log_p = np.log(p)
    return Weights(lambda rank: p ** (rank - 1.0), lambda n: -np.expm1(n * log_p) / (1.0 - p))


def inverse_square(goal: float) -> Weights:
    """1 / (i + 2T - 1)^2: to go on with chance ((i + 2T - 1) / (i + 2T))^2."""
    x = 2.0 * goal
    whole = inverse_squares(np.array([x]))
    return Weights(lambda rank: (rank + x - 1.0) ** -2.0, lambda n: whole - inverse_squares(n + x))


def scaled(ranking: Ranking, min_rel: float, max_rel: float) -> Floats:
    """float64[J]: grades on a scale where `min_rel` and all below is 0, `max_rel` and all above is 1.

    Raises:
        MeasureError: the scale has no length.
    """
    if max_rel <= min_rel:
        raise MeasureError(f"max_rel is {max_rel:g} and min_rel is {min_rel:g}", expected="max_rel above min_rel")
    low, high = min_rel, max_rel
    if ranking.convention.gain == "exponential":
        low, high = float(np.exp2(low) - 1.0), float(np.exp2(high) - 1.0)
    result: Floats = (np.clip(ranking.gain, low, high) - low) / (high - low)
    return result


def gain_rate(gained: Gained, depth: float, weights: Weights) -> FloatQ:
    """Gain per result inspected when the weights do not depend on what is found: sum of w_i g_i over the sum of w_i."""
    rate: FloatQ = gained.per_query(weights.at(gained.rank) * gained.gain) / weights.to(
        np.array([depth], dtype=np.float64)
    )
    return rate


def satisfied_rate(gained: Gained, depth: float, weights: Weights) -> FloatQ:
    """The same when the user also stops at each result with a chance that is its gain.

    Source:
        Azzopardi, Mackenzie & Moffat 2021, ICTIR: equation 8 (every rank weighs the same) and 9 (rank i weighs 1 / i).
    """
    query, rank = gained.query, gained.rank
    reading_on = running(np.multiply, query, 1.0 - gained.gain)
    reading = before(query, reading_on, 1.0)
    until = weights.to(after(query, rank, depth)) - weights.to(rank)
    inspected = np.broadcast_to(weights.to(np.array([depth], dtype=np.float64)), (gained.n_queries,)).copy()
    first = starts(query)
    inspected[query[first]] = weights.to(rank[first])
    inspected += gained.per_query(reading_on * until)
    return gained.per_query(weights.at(rank) * reading * gained.gain) / inspected


def kernel_of(rate: Callable[..., FloatQ]) -> Callable[..., FloatQ]:
    """The kernel of a measure whose rate follows from the rows with gain, down to its cutoff or its parameter `depth`."""

    def kernel(
        ranking: Ranking,
        cutoff: int | None,
        *,
        min_rel: float = 0.0,
        max_rel: float = 1.0,
        depth: int = 1000,
        **parameters: Any,
    ) -> FloatQ:
        end = (depth or np.inf) if cutoff is None else cutoff
        return rate(Gained.of(ranking, end, min_rel, max_rel), end, **parameters)

    return kernel


def scaled_dcg(gained: Gained, depth: float, *, dcg: str = "log2") -> FloatQ:
    """DCG over that of k results of the highest grade.

        SDCG = sum_{i<=k} g_i / log2(i + 1), over sum_{i<=k} 1 / log2(i + 1)

    Returns:
        float64[Q] in [0, 1]; 0 where nothing relevant is found.
    """
    del dcg  # one formulation, which is named where a measure of ir_measures is written out
    return gained.per_query(gained.gain / np.log2(gained.rank + 1.0)) / log_discounts(int(depth))


def bejewelled_player(
    gained: Gained,
    depth: float,
    *,
    T: float = 1.0,  # noqa: N803 - its name in the papers and in ir_measures
) -> FloatQ:
    """Gain per result for a user who stops at the rank that brings the gain to T, at the latest at k.

        BPM = (1 / s) * sum_{i<=s} g_i,  s = min(k, first rank with a total gain of T or more)

    Returns:
        float64[Q] in [0, 1]; a list shorter than s is not excused.

    Source:
        Zhang, Liu, Li, Zhang, Xu & Ma 2017, SIGIR: the static model.
    """
    enough = running(np.add, gained.query, gained.gain) >= T
    stop = np.full(gained.n_queries, float(depth))
    np.minimum.at(stop, gained.query[enough], gained.rank[enough])
    rate: FloatQ = gained.per_query(np.where(gained.rank <= stop[gained.query], gained.gain, 0.0)) / stop
    return rate


def insq(
    gained: Gained,
    depth: float,
    *,
    T: float = 1.0,  # noqa: N803 - its name in the papers and in ir_measures
) -> FloatQ:
    """Gain per result for a user who expects to look for T relevant ones, and is patient in proportion.

        C_i = ((i + 2T - 1) / (i + 2T))^2, so that W_i is proportional to 1 / (i + 2T - 1)^2

    Source:
        Moffat, Scholer & Thomas 2012, ADCS.
    """
    return gain_rate(gained, depth, inverse_square(T))


def inst(
    gained: Gained,
    depth: float,
    *,
    T: float = 1.0,  # noqa: N803 - its name in the papers and in ir_measures
) -> FloatQ:
    """INSQ for a user who adapts: the more of the T was found, the less reason to go on.

        C_i = ((i + T + T_i - 1) / (i + T + T_i))^2,  T_i = T - sum_{j<=i} g_j

    Between two rows with gain T_i stays, and the product of the C_i telescopes: with a = T + T_i, a user who is at rank s
    reaches rank e with chance ((s + a - 1) / (e - 1 + a))^2.

    Source:
        Moffat, Bailey, Scholer & Thomas 2015, ADCS.
    """
    query, rank = gained.query, gained.rank
    # From the first rank to the first row with gain, or to the end.
    first = starts(query)
    goal = np.array([2.0 * T])
    inspected = np.repeat(goal**2 * (inverse_squares(goal) - inverse_squares(goal + depth)), gained.n_queries)
    inspected[query[first]] = goal**2 * (inverse_squares(goal) - inverse_squares(goal + rank[first] - 1.0))
    # From each row with gain to the rank before the next.
    a = goal - running(np.add, query, gained.gain)
    following = after(query, rank, depth + 1.0)
    at = rank + a - 1.0
    seen = 1.0 + at**2 * (inverse_squares(at + 1.0) - inverse_squares(following - 1.0 + a))
    reach = before(query, (at / (following - 1.0 + a)) ** 2, 1.0)
    reach[first] = (goal / (rank[first] - 1.0 + goal)) ** 2
    reading = running(np.multiply, query, reach)
    return gained.per_query(reading * gained.gain) / (inspected + gained.per_query(reading * seen))


def nerr10(gained: Gained, depth: float, *, p: float = 0.9) -> FloatQ:
    """Gain per result for a user who stops where satisfied, and otherwise goes on with chance p: equation 10."""
    return satisfied_rate(gained, depth, geometric(p))


def nerr11(
    gained: Gained,
    depth: float,
    *,
    T: float = 1.0,  # noqa: N803 - its name in the papers and in ir_measures
) -> FloatQ:
    """Gain per result for a user who stops where satisfied, and otherwise goes on as in INSQ: equation 11."""
    return satisfied_rate(gained, depth, inverse_square(T))


GOAL = ParameterSpec("T", 1.0, "target gain, in results of the highest grade", minimum=0.001)
MIN_REL = ParameterSpec("min_rel", 0.0, "highest grade with gain 0", minimum=0)
MAX_REL = ParameterSpec("max_rel", 1.0, "lowest grade with gain 1", minimum=0, maximum=1000)
DEPTH = ParameterSpec(
    "depth",
    1000,
    "number of ranks that the user may inspect, including those without a result; 0: unlimited",
    minimum=0,
)
SCALE = (MIN_REL, MAX_REL)

SPECS = (
    MeasureSpec(
        name="SDCG",
        title="scaled discounted cumulative gain",
        sentence="Discounted cumulative gain, divided by that of k results of the highest grade, even if fewer exist.",
        formula="sum_{i<=k} g_i / log2(i + 1), over sum_{i<=k} 1 / log2(i + 1); g from 0 (min_rel) to 1 (max_rel)",
        cutoff="required",
        kernel=kernel_of(scaled_dcg),
        parameters=(
            ParameterSpec("dcg", "log2", "discount and gain; log2 is the only choice", choices=("log2",)),
            *SCALE,
        ),
        source="Järvelin & Kekäläinen 2002, ACM TOIS 20(4); Azzopardi, Thomas & Moffat 2019, SIGIR; ir_measures SDCG",
    ),
    MeasureSpec(
        name="BPM",
        title="Bejeweled player model",
        sentence="Expected gain per inspected result for a user who stops when the target gain is reached, or at rank "
        "k.",
        formula="(1 / s) * sum_{i<=s} g_i, s = min(k, first rank with sum_{j<=i} g_j >= T); g from 0 (min_rel) to 1 "
        "(max_rel)",
        cutoff="required",
        kernel=kernel_of(bejewelled_player),
        parameters=(GOAL, *SCALE),
        source="Zhang, Liu, Li, Zhang, Xu & Ma 2017, SIGIR; ir_measures BPM",
    ),
    MeasureSpec(
        name="INSQ",
        title="INSQ",
        sentence="Expected gain per inspected result for a user whose persistence grows with the number of relevant "
        "results wanted.",
        formula="sum_i W_i g_i, W_i ~ 1 / (i + 2T - 1)^2, sum of the W_i = 1; g from 0 (min_rel) to 1 (max_rel)",
        cutoff="none",
        kernel=kernel_of(insq),
        parameters=(GOAL, *SCALE, DEPTH),
        source="Moffat, Scholer & Thomas 2012, ADCS; ir_measures INSQ",
    ),
    MeasureSpec(
        name="INST",
        title="INST",
        sentence="Expected gain per inspected result for a user who wants a number of relevant results, and whose "
        "persistence decreases as they are found.",
        formula="sum_i W_i g_i, W_(i+1) = W_i ((i + T + T_i - 1) / (i + T + T_i))^2, T_i = T - sum_{j<=i} g_j, sum of "
        "the W_i = 1; g from 0 (min_rel) to 1 (max_rel)",
        cutoff="none",
        kernel=kernel_of(inst),
        parameters=(GOAL, *SCALE, DEPTH),
        source="Bailey, Moffat, Scholer & Thomas 2015, SIGIR; Moffat, Bailey, Scholer & Thomas 2015, ADCS; ir_measures INST",
    ),
    MeasureSpec(
        name="NERR8",
        title="nearly expected reciprocal rank, equation 8",
        sentence="Expected gain per inspected result for a user who stops at a satisfying result, at the latest at "
        "rank k.",
        formula="sum_i W_i g_i, W_(i+1) = W_i (1 - g_i) for i < k, sum of the W_i = 1; g from 0 (min_rel) to 1 (max_rel)",
        cutoff="required",
        kernel=kernel_of(partial(satisfied_rate, weights=EVERY_RANK)),
        parameters=SCALE,
        source=f"{AZZOPARDI}, equation 8; ir_measures NERR8",
    ),
    MeasureSpec(
        name="NERR9",
        title="nearly expected reciprocal rank, equation 9",
        sentence="Expected gain per inspected result for a user who stops at a satisfying result, with a probability "
        "that grows with the rank, at the latest at rank k.",
        formula="sum_i W_i g_i, W_(i+1) = W_i (1 - g_i) i / (i + 1) for i < k, sum of the W_i = 1; g from 0 (min_rel) to 1 "
        "(max_rel)",
        cutoff="required",
        kernel=kernel_of(partial(satisfied_rate, weights=BY_RANK)),
        parameters=SCALE,
        source=f"{AZZOPARDI}, equation 9; ir_measures NERR9",
    ),
    MeasureSpec(
        name="NERR10",
        title="nearly expected reciprocal rank, equation 10",
        sentence="Expected gain per inspected result for a user who stops at a satisfying result, and otherwise "
        "continues with probability p.",
        formula="sum_i W_i g_i, W_(i+1) = W_i p (1 - g_i), sum of the W_i = 1; g from 0 (min_rel) to 1 (max_rel)",
        cutoff="none",
        kernel=kernel_of(nerr10),
        parameters=(with_default(PERSISTENCE, 0.9), *SCALE, DEPTH),
        source=f"{AZZOPARDI}, equation 10; ir_measures NERR10",
    ),
    MeasureSpec(
        name="NERR11",
        title="nearly expected reciprocal rank, equation 11",
        sentence="Expected gain per inspected result for a user who stops at a satisfying result, and whose "
        "persistence grows with the number of relevant results wanted.",
        formula="sum_i W_i g_i, W_(i+1) = W_i (1 - g_i) ((i + 2T - 1) / (i + 2T))^2, sum of the W_i = 1; g from 0 (min_rel) "
        "to 1 (max_rel)",
        cutoff="none",
        kernel=kernel_of(nerr11),
        parameters=(GOAL, *SCALE, DEPTH),
        source=f"{AZZOPARDI}, equation 11; ir_measures NERR11",
    ),
)
