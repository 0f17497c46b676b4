"""Caveats by kind; beside a verdict of few queries, queries of a kind that is not among them, and what would turn it.

No test can see what is not in the sample. Under `FEW` queries a verdict is accompanied by the largest share of queries of an
unseen kind that the sample is compatible with, and by the mean difference on them that would turn the verdict. Neither
changes a verdict or an exit code.

What turns a verdict, with p the largest share and differences counted in favour of the candidate:

    better        losses L with which the lower end of the interval is no longer above 0:   (1 - p) low - p L = 0
    worse         gains G with which the upper end is no longer below 0:                    (1 - p) high + p G = 0
    equivalent    losses L with which the lower end is no longer above the negative margin: (1 - p) low - p L = -margin
    otherwise     what brings the mean difference to 0: no interval supports a direction

The last is also used where the interval of the declared test is not of the mean difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Literal, Self

from cranfield.base.numbers import format_delta, format_level, format_percent, format_plain, format_value
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.ranking.value import Ranking
from cranfield.stats.unseen import largest_unseen_share, turning_difference

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class CaveatKind(Enum):
    """What a sentence is about."""

    OTHER_JUDGMENTS = auto()
    ABSENT = auto()
    """Queries without a judgment, a relevant document or an answer."""
    SILENT = auto()
    NEGATIVE = auto()
    SURPLUS = auto()
    NO_LINES = auto()
    DUPLICATES = auto()
    IDENTICAL_IDS = auto()
    TIES = auto()
    NO_VALUE = auto()
    NO_BOUND = auto()
    OTHER_NAMES = auto()
    OTHER_VERSION = auto()
    EXTRA_QUERIES = auto()
    RANK_COLUMN = auto()
    FAILED = auto()
    UNSTEADY = auto()
    NARROW_SCORES = auto()
    FINDING = auto()
    """Finding of a verdict: a result, and nothing to doubt."""
    REQUIREMENTS = auto()
    """Floors of single queries, and forbidden results, that a run does not meet."""


class Caveat(str):
    """A sentence with its kind: two of one kind differ in numbers, and in the queries or measures that they name."""

    __slots__ = ("kind",)
    kind: tuple[object, ...]

    def __new__(cls, sentence: str, *kind: object) -> Self:
        """Join a sentence with a `CaveatKind`, and with what makes two of that kind different ones."""
        caveat = super().__new__(cls, sentence)
        caveat.kind = kind
        return caveat

    @classmethod
    def of(cls, sentence: str) -> Caveat:
        """The sentence, with its kind where it has one."""
        return sentence if isinstance(sentence, Caveat) else cls(sentence)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """In records it is an object: the sentence, and the names of its kind."""
        from pydantic_core import core_schema

        def read(value: object) -> Caveat:
            if not isinstance(value, Mapping):
                return cls.of(str(value))
            known = CaveatKind.__members__
            return cls(value["sentence"], *(known.get(str(name).upper(), name) for name in value["kind"]))

        def write(caveat: Caveat) -> CaveatRecord:
            names = (part.name.lower() if isinstance(part, CaveatKind) else str(part) for part in caveat.kind)
            return CaveatRecord(str(caveat), tuple(names))

        written = handler.generate_schema(CaveatRecord)
        return core_schema.no_info_plain_validator_function(
            read,
            json_schema_input_schema=written,
            serialization=core_schema.plain_serializer_function_ser_schema(write, return_schema=written),
        )


@dataclass(frozen=True, slots=True)
class CaveatRecord:
    """A caveat as JSON has it."""

    sentence: str
    kind: tuple[str, ...]
    """What it is about: `absent`, `finding`, and what makes two of that kind different ones; empty where it has none."""


FEW = 50
"""From so many queries on, an unseen kind has a share under 6 %, and a verdict has no such sentence."""

CoverageBasis = Literal["interval", "mean"]


class UnseenKind(StrEnum):
    """Whether a difference on unseen queries can turn a verdict."""

    CAN_TURN = "can_turn"
    CANNOT_TURN = "cannot_turn"
    """The measure has no differences as large as that."""
    UNKNOWN = "unknown"
    """There is no mean difference to turn: it is zero, points the other way, or the verdict is of several classes."""


class UnseenChange(StrEnum):
    """What would turn a verdict."""

    LOSS = "loss"
    GAIN = "gain"


@dataclass(frozen=True, slots=True)
class Unseen:
    """Queries of an unseen kind beside a verdict, a pair of systems or a rule."""

    n: int
    alpha: float
    share: float
    """Largest share of all queries, at confidence 1 - alpha."""
    kind: UnseenKind = UnseenKind.UNKNOWN
    change: UnseenChange | None = None
    size: float | None = None
    """Mean loss or gain on each unseen query that turns the verdict, above 0."""
    rests_on: CoverageBasis | None = None
    """What reaches the threshold: the end of the interval that the verdict rests on, or the mean difference."""
    threshold: float = 0.0
    """In favour of the candidate: 0, or the negative margin."""
    largest: float | None = None
    """Largest difference of the measure; None where it has no bound."""
    of: str = ""
    """The class, or the two systems."""
    among: str = "all queries"
    """What the share is a share of: `its queries`, of a class."""
    turned: str = "the verdict"
    sentence: str = field(init=False, default="")
    """One sentence for reports."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def _sentence(self) -> str:
        lead = f"{self.of}: " if self.of else ""
        share = (
            f"{lead}query types not in this sample may be up to {format_percent(self.share)} of {self.among} "
            f"({format_level(self.alpha)} confidence, n = {self.n})"
        )
        if self.size is None or self.change is None:
            return f"{share}; the results do not cover them"
        turn = f"change {self.turned}" if self.rests_on == "interval" else f"bring the mean difference to {self._aim}"
        if self.kind is UnseenKind.CANNOT_TURN:
            needed = (
                f"a mean of {format_value(self.size)} would be needed, and {format_plain(self.largest)} is the maximum"
            )
            return f"{share}; no {self.change} on them can {turn}: {needed}"
        more = " or more" if self.rests_on == "interval" else ""
        return f"{share}; a mean {self.change} of {format_value(self.size)}{more} on them would {turn}"

    @property
    def _aim(self) -> str:
        return format_delta(self.threshold) if self.threshold else "zero"


@dataclass(frozen=True, slots=True)
class ObservedEffect:
    """The numbers behind a verdict, candidate minus baseline."""

    n: int
    delta: float | None
    low: float | None
    high: float | None
    """Ends of the interval of the mean difference; None where the declared test has an interval of another quantity."""
    sign: int
    """1 where a higher value is better, else -1."""
    largest: float | None = None
    """See `largest_difference`."""

    def in_favour(self) -> tuple[float | None, float | None, float | None]:
        """Mean difference and both ends, in favour of the candidate."""
        ends = (self.low, self.high) if self.sign > 0 else (self.high, self.low)
        delta, low, high = (None if value is None else self.sign * value for value in (self.delta, *ends))
        return delta, low, high


def largest_difference(measure: Measure, ranking: Ranking, differences: Iterable[float] = ()) -> float | None:
    """The largest difference of two values of a measure; None where it has no bound.

    A convention that credits an expected item more than once, and patterns with more matches than their expected count, give
    values beyond the range of the catalogue: there no bound is known. The same where a difference is beyond it.
    """
    low, high = CATALOGUE[measure.name].range
    if ranking.convention.credit == "every" or ranking.closed_world.any() or not math.isfinite(high - low):
        return None
    return None if any(abs(difference) > high - low for difference in differences) else high - low


def unseen_queries(
    code: VerdictCode, found: ObservedEffect, alpha: float, margin: float | None = None
) -> Unseen | None:
    """What stands beside a verdict; None from `FEW` queries on, without any, and where the scores do not count.

    Args:
        code: the verdict.
        found: its numbers.
        alpha: of the interval, and of the share.
        margin: largest difference that does not matter, of the verdict *equivalent*.
    """
    if code is VerdictCode.INVALID:
        return None
    delta, low, high = found.in_favour()
    if code is VerdictCode.BETTER and low is not None and low > 0:
        return tipping_point(found, alpha, low, rests_on="interval")
    if code is VerdictCode.WORSE and high is not None and high < 0:
        return tipping_point(found, alpha, high, rests_on="interval")
    if code is VerdictCode.EQUIVALENT and low is not None and margin is not None:
        return tipping_point(found, alpha, low, rests_on="interval", threshold=-margin)
    against = {VerdictCode.BETTER: -1, VerdictCode.WORSE: 1}.get(code, 0) * (delta or 0.0) > 0
    return tipping_point(found, alpha, None if against or code is VerdictCode.MIXED else delta, rests_on="mean")


def tipping_point(
    found: ObservedEffect, alpha: float, value: float | None, *, rests_on: CoverageBasis, threshold: float = 0.0
) -> Unseen | None:
    """What moves a value, in favour of the candidate, to a threshold; None from `FEW` queries on, and without any.

    Args:
        found: the numbers.
        alpha: of the share.
        value: an end of the interval or the mean difference; None gives the share alone.
        rests_on: which of the two.
        threshold: where the verdict turns.
    """
    if not 0 < found.n < FEW:
        return None
    share = largest_unseen_share(found.n, alpha)
    needed = 0.0 if value is None else turning_difference(share, value, threshold)
    # Under a negative threshold unseen queries that merely lose less can turn a loss: there no gain is needed.
    if value is None or not (needed < 0 < value - threshold or value - threshold < 0 < needed):
        return Unseen(found.n, alpha, share, threshold=threshold, largest=found.largest)
    size, change = abs(needed), UnseenChange.LOSS if needed < 0 else UnseenChange.GAIN
    beyond = found.largest is not None and size > found.largest * (1 + 1e-12)
    kind = UnseenKind.CANNOT_TURN if beyond else UnseenKind.CAN_TURN
    return Unseen(found.n, alpha, share, kind, change, size, rests_on, threshold, found.largest)


def nearest(found: Iterable[Unseen | None]) -> Unseen | None:
    """The one that the smallest difference turns; one without a size only where there is no other."""
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: (each.size is None, each.size or 0.0), default=None)
