"""Whether two raters agree enough: Cohen's kappa above a limit."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.base.numbers import format_interval, format_value
from cranfield.stats.agreement import Coefficient


@dataclass(frozen=True, slots=True)
class RaterKappa:
    """Cohen's kappa of two raters, with its interval, over what both labelled."""

    raters: tuple[str, str]
    kappa: Coefficient

    def exceeds(self, bound: float) -> bool:
        """Whether the raters agree beyond a bound; not where kappa is not defined."""
        return self.kappa.value is not None and self.kappa.value > bound

    @property
    def sentence(self) -> str:
        """How far the raters agree, in a line."""
        kappa = self.kappa
        raters = " and ".join(self.raters)
        if kappa.value is None:
            return f"Cohen's kappa of {raters} is not defined (n={kappa.n}): {kappa.note}"
        note = f" ({kappa.note})" if kappa.note else ""
        return f"Cohen's kappa of {raters} is {format_value(kappa.value)}{self.interval}, n={kappa.n}{note}"

    @property
    def interval(self) -> str:
        """`, 95 % CI 0.3 to 0.7`; empty where there is none."""
        kappa = self.kappa
        return "" if kappa.ci_low is None else f", 95 % CI {format_interval((kappa.ci_low, kappa.ci_high))}"
