"""What is declared of latencies: the first calls that do not count, and the smallest effect that is a claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from cranfield.errors import CranfieldError, Problem, UnknownNameError, UsageError, shorten
from cranfield.options.declaration import Option, check, declared

ROUNDING = 1e-9
"""Relative tolerance of the smallest effect, so that 1.1 - 0.1 counts as 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRule:
    """Which timings count, and when a system is called faster or slower."""

    skip_first: Annotated[
        int,
        Option(
            help="First calls to each system whose timings are left out; at a higher `concurrency` as many as that. Their "
            "answers count, and no query is sent twice; queries that `collect: {warm_up: N}` sends beforehand count as first "
            "calls. Without either, no system is called faster."
        ),
        Ge(0),
    ] = 3
    smallest_ms: Annotated[float, Option(help="Smallest difference that counts, in milliseconds."), Ge(0)] = 1.0
    smallest_percent: Annotated[
        float,
        Option(
            help="Smallest difference that counts, in percent of the latency of the baseline; both must be reached."
        ),
        Ge(0),
    ] = 5.0

    def __post_init__(self) -> None:
        check(self)

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
    names = list(declared(LatencyRule))
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
