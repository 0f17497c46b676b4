"""Omnibus tests of many systems on the same queries, and the critical difference of mean ranks.

Values are float64[Q, S], queries by systems, none missing. The null hypothesis of an omnibus test is that all systems are
alike; rejecting it does not tell which of them differ. The critical difference does, pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, permutations

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.bootstrap import fixed_point
from cranfield.stats.describe import TOLERANCE, as_matrix, check_alpha, check_draws
from cranfield.stats.result import NO_QUERY, TestResult, untested

FloatQS = NDArray[np.float64]
"""Queries by systems."""
FloatS = NDArray[np.float64]
"""One number per system."""

DEFAULT_DRAWS = 9_999
"""Random arrangements, not counting the observed one."""

MAX_COLUMNS = 2_000
"""Most columns of a letter display while it is made: insert-absorb of outcomes without any order can need very many."""

EXACT_UP_TO = 1 << 16
"""Up to this many arrangements all are counted. The first query stays as it is: relabelling all systems changes nothing."""

LISTED_UP_TO = 5
"""Orders of up to so many systems are drawn from a list of them all (120); longer ones are drawn by sorting."""

ARRANGEMENTS = 4
"""Purpose of the random numbers; see `resampling`."""

CHUNK_CELLS = 1 << 18
"""Cells drawn by one generator and processed at once. Changing it changes the draws."""

ONE_SYSTEM = "a comparison needs two systems or more"
ALL_TIED = "every query ties all systems"


def friedman(values: FloatQS, *, higher_is_better: bool = True) -> TestResult:
    """Friedman's test: do the systems have equal mean ranks?

        chi2 = (S - 1) sum_s (R_s - Q (S + 1) / 2)^2 / (sum_qs r_qs^2 - Q S (S + 1)^2 / 4),  S - 1 degrees of freedom
        F    = (Q - 1) chi2 / (Q (S - 1) - chi2),  S - 1 and (S - 1)(Q - 1) degrees of freedom

    r_qs is the rank of system s in query q, ties averaged; R_s is their sum over the queries. The denominator holds the
    correction for ties.

    Args:
        values: float64[Q, S], queries by systems.
        higher_is_better: False for a measure of which less is better. It mirrors the ranks, and leaves the test as it is.

    Returns:
        chi2 and its p-value; `extra` has its degrees of freedom, and Iman and Davenport's F with its own p-value, which
        is less conservative and preferred for few queries. There is no one-sided p.

    Conventions:
        all systems tied in every query: p 1, and a note · every query ranks the systems alike: F is infinite, so None,
        and its p 0 · no query or one system: no p-value, and a note.

    Source:
        Friedman 1937, JASA 32(200); Iman & Davenport 1980, Commun. Stat. A9(6); Conover 1999, 5.8. Equal to
        `scipy.stats.friedmanchisquare`.
    """
    from scipy.special import chdtrc, fdtrc

    matrix = as_matrix(values)
    n, systems = matrix.shape
    refusal = _untestable(n, systems)
    if refusal:
        return refusal
    ranks = _ranks(matrix, higher_is_better=higher_is_better)
    spread = float((ranks**2).sum()) - n * systems * (systems + 1) ** 2 / 4
    if spread <= 0:
        return TestResult(0.0, 1.0, None, note=ALL_TIED, extra={"df": systems - 1})
    between = float(((ranks.sum(axis=0) - n * (systems + 1) / 2) ** 2).sum())
    chi2 = (systems - 1) * between / spread
    rest = n * (systems - 1) - chi2
    df, df_rest = systems - 1, (systems - 1) * (n - 1)
    decided = rest <= TOLERANCE * chi2
    f = None if decided else (n - 1) * chi2 / rest
    extra = {
        "df": df,
        "f": f,
        "df_rest": df_rest,
        "p_f": (0.0 if f is None else float(fdtrc(df, df_rest, f))) if n > 1 else None,
    }
    return TestResult(chi2, float(chdtrc(df, chi2)), None, extra=extra)


def permutation_omnibus(values: FloatQS, *, seed: int = 0, n_draws: int = DEFAULT_DRAWS) -> TestResult:
    """Permutation test that all systems are alike: permutes the values of each query among the systems.

    Args:
        values: float64[Q, S], queries by systems.
        seed: of the random arrangements.
        n_draws: random arrangements, the observed one not included.

    Returns:
        The variance of the systems' means (S - 1 in the denominator), and p = (k + 1) / (n + 1), k of n random arrangements
        with a variance as large; where few enough, all arrangements are counted instead. `extra` has their number.

    Conventions:
        variances that differ by rounding are equal · all means equal: p 1 · no query or one system: no p-value, and a note.

    Source:
        Pitman 1938, Biometrika 29(3/4); Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9(1).
    """
    check_draws(seed, n_draws)
    matrix = as_matrix(values)
    n, systems = matrix.shape
    refusal = _untestable(n, systems)
    if refusal:
        return refusal
    sums, observed, exact = _arranged_sums(matrix, seed, n_draws)
    sizes = (sums**2).sum(axis=1)
    size = float((observed**2).sum())
    counted = 0 if exact else 1
    as_large = int(np.count_nonzero(sizes >= size * (1 - TOLERANCE))) + counted
    return TestResult(
        statistic=float(matrix.mean(axis=0).var(ddof=1)),
        p_two_sided=as_large / (len(sums) + counted),
        p_one_sided=None,
        extra={"arrangements": len(sums) + counted, "exact": "yes" if exact else "no"},
    )


def mean_ranks(values: FloatQS, *, higher_is_better: bool = True) -> FloatS:
    """Mean over the queries of each system's rank; 1 is the best, and ties share their mean rank.

    Example:
        >>> mean_ranks(np.array([[0.9, 0.5, 0.1], [0.7, 0.7, 0.2]]))  # ranks 1 2 3 and 1.5 1.5 3
        array([1.25, 1.75, 3.  ])
    """
    matrix = as_matrix(values)
    if not matrix.size:
        raise UsageError("no values to rank", expected="one query or more, and one system or more")
    return np.asarray(_ranks(matrix, higher_is_better=higher_is_better).mean(axis=0), dtype=np.float64)


def critical_difference(n_queries: int, n_systems: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference: the smallest significant difference of two mean ranks.

        CD = q(1 - alpha; S, infinite df) / sqrt(2) * sqrt(S (S + 1) / (6 Q)),  q of the studentized range

    Source:
        Nemenyi 1963; Demsar 2006, JMLR 7 (equations 3.2.2, table 5).

    Example:
        >>> round(critical_difference(14, 4, 0.05), 2)  # Demsar's example: 2.569 * sqrt(4 * 5 / (6 * 14))
        1.25
    """
    check_alpha(alpha)
    if n_queries < 1 or n_systems < 2:
        raise UsageError(f"{n_queries} queries and {n_systems} systems", expected="1 query or more, 2 systems or more")
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, n_systems, math.inf))
    return q / math.sqrt(2) * math.sqrt(n_systems * (n_systems + 1) / (6 * n_queries))


def cliques(ranks: Sequence[float] | FloatS, difference: float) -> list[tuple[int, ...]]:
    """Groups of systems whose mean ranks do not differ significantly: the bars of the rank diagram.

    Args:
        ranks: mean rank of each system.
        difference: the critical difference.

    Returns:
        The largest groups, each as positions in `ranks`, best first; none of one system, none inside another.

    Example:
        >>> cliques([1.0, 1.8, 2.5, 4.0], 1.0)
        [(0, 1), (1, 2)]
    """
    order = sorted(range(len(ranks)), key=lambda system: (ranks[system], system))
    groups: list[tuple[int, ...]] = []
    reached = 0
    for start, first in enumerate(order):
        stop = start
        while stop < len(order) and ranks[order[stop]] - ranks[first] <= difference:
            stop += 1
        if stop > reached and stop - start > 1:
            groups.append(tuple(order[start:stop]))
        reached = max(reached, stop)
    return groups


def letter_display(n: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Compact letter display (Piepho 2004): groups without a significant pair, by insert, absorb and sweep.

    Args:
        n: number of systems.
        different: the pairs of systems that differ significantly.

    Returns:
        A group for each letter, in the order of its members. Two systems share a group exactly where their pair is not in
        `different`; a system that differs from every other is a group of its own.

    Example:
        >>> letter_display(3, [(0, 2)])  # the letters a, ab, b
        [(0, 1), (1, 2)]
    """
    columns = [(1 << n) - 1] if n else []  # bit s is system s
    different = list(different)
    for first, second in different:
        pair = 1 << first | 1 << second
        split = [column for column in columns if column & pair == pair]
        columns = [column for column in columns if column & pair != pair]
        # a column without one of the two can only be part of a column that has the other
        for bit in (1 << first, 1 << second):
            others = [column for column in columns if column & pair == pair ^ bit]
            halves = [column ^ bit for column in split]
            columns += [half for half in halves if not any(half & other == half for other in others)]
        if len(columns) > MAX_COLUMNS:
            columns = _grown(n, different)
            break
    groups = sorted(tuple(system for system in range(n) if column >> system & 1) for column in columns)
    shared = np.zeros((n, n), dtype=np.int64)  # groups of each pair, and on the diagonal of each system
    for group in groups:
        shared[np.ix_(group, group)] += 1
    for group in sorted(groups, key=len):  # sweep: a group goes where others have all its pairs
        within = np.ix_(group, group)
        if shared[within].min() > 1:
            shared[within] -= 1
            groups.remove(group)
    return groups


def _grown(n: int, different: Iterable[tuple[int, int]]) -> list[int]:
    """A column for each pair of systems that none yet has, grown by every system that fits, in their order."""
    alike = [(1 << n) - 1] * n
    for first, second in different:
        alike[first] &= ~(1 << second)
        alike[second] &= ~(1 << first)
    columns: list[int] = []
    for first, second in combinations_with_replacement(range(n), 2):
        pair = 1 << first | 1 << second
        if alike[first] >> second & 1 and not any(column & pair == pair for column in columns):
            fits, column = alike[first] & alike[second], pair
            for system in range(n):
                if fits >> system & 1:
                    column |= 1 << system
                    fits &= alike[system]
            columns.append(column)
    return list(dict.fromkeys(columns))


def _untestable(n: int, systems: int) -> TestResult | None:
    """The result where no test is possible; None where one is."""
    if systems < 2:
        return untested(ONE_SYSTEM)
    return None if n else untested(NO_QUERY)


def _ranks(matrix: FloatQS, *, higher_is_better: bool) -> FloatQS:
    """Rank of each system within its query; values that differ by rounding tie."""
    signed = -matrix if higher_is_better else matrix
    order = np.argsort(signed, axis=1, kind="stable")
    ordered = np.take_along_axis(signed, order, axis=1)
    tolerance = TOLERANCE * np.abs(matrix).max(axis=1, keepdims=True)
    place = np.arange(matrix.shape[1])
    begins = np.ones(matrix.shape, dtype=np.bool_)
    begins[:, 1:] = np.diff(ordered, axis=1) > tolerance
    ends = np.ones_like(begins)
    ends[:, :-1] = begins[:, 1:]
    first = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, len(place))[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty_like(matrix)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def _arranged_sums(matrix: FloatQS, seed: int, n_draws: int) -> tuple[FloatQS, FloatS, bool]:
    """Sums of the systems about their common mean, [arrangements, S]; the observed ones; whether all are there."""
    n, systems = matrix.shape
    fixed = fixed_point((matrix - matrix.mean(axis=1, keepdims=True)).ravel())
    units = fixed.units.reshape(n, systems)
    n_orders = math.factorial(systems)
    exact = (n - 1) * math.log(n_orders) <= math.log(EXACT_UP_TO)
    blocks = _all_orders(n, systems) if exact else _drawn_orders(n, systems, seed, n_draws)
    sums = np.concatenate([np.take_along_axis(units[np.newaxis], orders, axis=2).sum(axis=1) for orders in blocks])
    centre = fixed.total / systems
    return fixed.zero_rounding(sums - centre), fixed.zero_rounding(units.sum(axis=0) - centre), exact


def _listed(systems: int) -> NDArray[np.int64]:
    return np.array(list(permutations(range(systems))), dtype=np.int64)


def _all_orders(n: int, systems: int) -> Iterator[NDArray[np.int64]]:
    """Every order of every query but the first, int64[arrangements, Q, S] in blocks."""
    listed = _listed(systems) if n > 1 else np.arange(systems)[np.newaxis]  # one query: all orders come to the same
    total = len(listed) ** (n - 1)
    for start in range(0, total, _rows(n, systems)):
        number = np.arange(start, min(start + _rows(n, systems), total))
        digits = [number * 0, *(number // len(listed) ** query % len(listed) for query in range(n - 1))]
        yield listed[np.stack(digits, axis=1)]


def _drawn_orders(n: int, systems: int, seed: int, n_draws: int) -> Iterator[NDArray[np.int64]]:
    """Random orders of every query, int64[draws, Q, S] in blocks."""
    listed = _listed(systems) if systems <= LISTED_UP_TO else None
    for number, start in enumerate(range(0, n_draws, _rows(n, systems))):
        rows = min(_rows(n, systems), n_draws - start)
        generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(ARRANGEMENTS, number)))
        if listed is None:
            raw = np.asarray(generator.random_raw(rows * n * systems), dtype=np.uint64)
            yield np.argsort(raw.reshape(rows, n, systems), axis=2)
        else:
            raw = np.asarray(generator.random_raw(rows * n), dtype=np.uint64) >> np.uint64(32)
            yield listed[((raw * np.uint64(len(listed))) >> np.uint64(32)).astype(np.int64).reshape(rows, n)]


def _rows(n: int, systems: int) -> int:
    return max(1, CHUNK_CELLS // (n * systems))
