"""The result of a paired test."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Why there is no p-value (`too few non-zero pairs`), or additional information (`exact p .000366`)."""
    ci_low: float | None = None
    ci_high: float | None = None
    extra: Mapping[str, float | int | str | None] = field(default_factory=dict)
    """Values specific to this test: discordant counts, the exact p-value."""


def untested(note: str) -> TestResult:
    """An empty result with the reason."""
    return TestResult(None, None, None, note=note)
