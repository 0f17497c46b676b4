"""The result of a paired test, and the adjustment of p-values for several tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

DEFAULT_DRAWS = 100_000
"""Sign patterns used where there are too many to enumerate, including the observed one."""
NO_QUERY = "no query to test"
"""Note of a test without any query."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """One paired test of "the mean (or median) difference is zero"; one-sided means candidate above baseline."""

    __test__ = False

    statistic: float | None
    p_two_sided: float | None
    p_one_sided: float | None
    p_adjusted: float | None = None
    """Holm-adjusted two-sided p-value within its family; equal to `p_two_sided` for the declared test."""
    note: str | None = None
    """Why there is no p-value (`too few non-zero pairs`), or additional information (`normal approximation p .00115`)."""
    ci_low: float | None = None
    ci_high: float | None = None
    estimate: float | None = None
    """Point estimate of what the interval is about: the mean difference, the Hodges-Lehmann estimate, the median."""
    extra: Mapping[str, float | int | str | None] = field(default_factory=dict)
    """Values specific to this test: discordant counts, the exact p-value."""

    is_other_elsewhere: bool = False
    """Whether another tool prints another p-value for the same numbers, which `note` gives."""

    @property
    def direction(self) -> int:
        """1 where the candidate is above the baseline by the one-sided p-value, -1 where it is below; 0 without one."""
        return 0 if self.p_one_sided is None else 1 if self.p_one_sided < 0.5 else -1


def untested(note: str) -> TestResult:
    """An empty result with the reason."""
    return TestResult(None, None, None, note=note)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment: controls the family-wise error rate.

        the i-th smallest of m becomes max over j <= i of min(1, (m - j + 1) * p_(j))

    Returns:
        Adjusted values in the order given. None stays None and is not counted in the family.

    Source:
        Holm 1979, Scand. J. Stat. 6(2). Equal to `statsmodels.stats.multitest.multipletests(method="holm")`.

    Example:
        >>> holm([0.01, None, 0.04, 0.03])  # 3 * .01, -, max(2 * .03, 1 * .04), 2 * .03
        [0.03, None, 0.06, 0.06]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    worst = 0.0
    for place, (p, index) in enumerate(tested):
        worst = max(worst, min(1.0, (len(tested) - place) * p))
        adjusted[index] = worst
    return adjusted


def benjamini_yekutieli(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Yekutieli's adjustment: controls the false-discovery rate whatever the dependence of the tests.

        the i-th smallest of m becomes min over j >= i of min(1, m c(m) p_(j) / j), c(m) = 1 + 1/2 + … + 1/m

    Returns:
        Adjusted values in the order given. None stays None and is not counted.

    Source:
        Benjamini & Yekutieli 2001, Ann. Stat. 29(4). Equal to `statsmodels.stats.multitest.multipletests(method="fdr_by")`.

    Example:
        >>> benjamini_yekutieli([0.01, None, 0.02])  # c(2) = 1.5: 2 * 1.5 * .01 / 1, -, 2 * 1.5 * .02 / 2
        [0.03, None, 0.03]
    """
    tested = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    scale = len(tested) * sum(1 / place for place in range(1, len(tested) + 1))
    best = 1.0
    for place in range(len(tested), 0, -1):
        p, index = tested[place - 1]
        best = min(best, scale * p / place)
        adjusted[index] = best
    return adjusted
