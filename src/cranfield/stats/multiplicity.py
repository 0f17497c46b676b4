"""Correction of p-values for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence


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
