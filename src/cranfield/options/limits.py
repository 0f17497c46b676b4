"""When scores do not count: limits, and how evidence checks differ from their table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from annotated_types import Interval

from cranfield.errors import UsageError, shorten
from cranfield.options.declaration import Option, check


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
