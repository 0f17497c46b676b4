"""What is declared of latencies: the first calls that do not count, and the smallest effect that is a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten

ROUNDING = 1e-9
"""Relative tolerance of the smallest effect, so that 1.1 - 0.1 counts as 1."""


@dataclass(frozen=True, slots=True)
class LatencyRule:
    """When a difference of latencies is a claim."""

    skip_first: int = 3
    """First calls to each system whose timings are left out; with more calls at a time, as many as these. Queries that were
    sent as a warm-up count."""
    smallest_ms: float = 1.0
    """Smallest difference that counts, in milliseconds."""
    smallest_percent: float = 5.0
    """Smallest difference that counts, in percent of the latency of the baseline. Both must be reached."""

    def __post_init__(self) -> None:
        problems = [
            Problem(f"{name} of the latency rule is {shorten(value)}", expected="a number of 0 or more")
            for name, value in asdict(self).items()
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf
        ]
        if isinstance(self.skip_first, float):
            problems.append(Problem(f"skip_first is {self.skip_first:g}", expected="a whole number"))
        if problems:
            raise UsageError(problems)

    def counts(self, delta_ms: float, baseline_ms: float) -> bool:
        """Whether a difference is as large as the smallest effect.

        Args:
            delta_ms: the difference.
            baseline_ms: the same figure of the baseline.
        """
        least = max(self.smallest_ms, self.smallest_percent / 100 * baseline_ms)
        return abs(delta_ms) >= least * (1 - ROUNDING)

    @property
    def smallest(self) -> str:
        """The smallest effect: `1 ms and 5 %`."""
        return f"{self.smallest_ms:g} ms and {self.smallest_percent:g} %"


def parse_rule(written: Sequence[str]) -> LatencyRule:
    """A rule as the command line writes it: `smallest_ms=5`; what is not written has its default.

    Raises:
        UsageError: with every part that is none.
    """
    names = [field.name for field in fields(LatencyRule)]
    values: dict[str, float] = {}
    problems: list[Problem] = []
    for text in written:
        name, _, value = (part.strip() for part in text.partition("="))
        try:
            if name not in names:
                raise UnknownNameError.among("key of --latency", name, names)
            values[name] = int(value) if name == "skip_first" else float(value)
        except CranfieldError as error:
            problems += error.problems
        except ValueError:
            problems.append(Problem(f"--latency is {shorten(text)}", expected="KEY=NUMBER, as in smallest_ms=5"))
    if problems:
        raise UsageError(problems)
    return LatencyRule(**values)  # type: ignore[arg-type]  # skip_first is an int
