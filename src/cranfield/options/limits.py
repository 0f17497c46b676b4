"""What is declared of latencies: the first calls that do not count, and the smallest effect that is a claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Ge, Interval

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


class Consequence(StrEnum):
    """What follows from a finding."""

    VOID = "void"
    """The scores provably measure the wrong thing: the verdict is `invalid`."""
    CAVEAT = "caveat"
    """The finding is shown with the verdict, and does not change it."""
    OFF = "off"
    """The check is not made."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How one check differs from its row of the table."""

    consequence: Consequence | None = None
    """None: that of the table."""
    threshold: float | None = None
    """None: that of the table."""


def as_setting(name: str, value: object) -> Setting:
    """A setting of a check as a caller writes it: a consequence, a threshold, or a `Setting` of both.

    Raises:
        UsageError: the value is neither.
    """
    if isinstance(value, Setting):
        return value
    if value is False or value in tuple(Consequence):
        return Setting(Consequence.OFF if value is False else Consequence(str(value)))
    if isinstance(value, Mapping) and value and set(value) <= {"consequence", "threshold"}:
        parts = [as_setting(name, part) for part in value.values() if part is not None]
        return Setting(
            next((part.consequence for part in parts if part.consequence is not None), None),
            next((part.threshold for part in parts if part.threshold is not None), None),
        )
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return Setting(threshold=float(value))
    raise UsageError(
        f"evidence check {name} is set to {shorten(value)}",
        expected=f"{', '.join(Consequence)}, or a threshold of 0 or more",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits beyond which a comparison is invalid."""

    max_failed_share: Annotated[
        float | None,
        Option(
            help="Maximum share of failed queries; above it the verdict is invalid.",
            flag="--max-failed",
            metavar="SHARE",
            in_config="null sets no limit.",
        ),
        Interval(ge=0, le=1),
    ] = 0.1
    min_judged_share: Annotated[
        float | None,
        Option(
            help="Minimum judged share of the shown results; below it the verdict is invalid.",
            flag="--min-judged",
            metavar="SHARE",
            in_config="null sets no limit.",
        ),
        Interval(ge=0, le=1),
    ] = None
    evidence: Annotated[
        Mapping[str, Setting],
        Option(
            help="Change an evidence check: off, caveat, void or a threshold, as in same-list=off; repeat for more.",
            metavar="NAME=VALUE",
        ),
    ] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check(self)
        settings = {name: as_setting(name, value) for name, value in self.evidence.items()}
        object.__setattr__(self, "evidence", settings)
