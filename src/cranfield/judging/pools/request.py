"""How a pool is chosen: to a fixed depth, with samples below it, or the most useful documents of a budget."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.books.pool_file import PoolMethod

_SAMPLE = re.compile(r"\s*([0-9]{1,7})\s*-\s*([0-9]{1,7})\s*:\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
EXPECTED_SAMPLE = "FIRST-LAST:SHARE% such as 11-50:30%"


@dataclass(frozen=True, slots=True)
class SampledRanks:
    """A range of ranks of which a share of the documents is drawn."""

    first: int
    last: int
    share: float
    """More than 0, at most 1."""

    @property
    def label(self) -> str:
        """`11-50`."""
        return f"{self.first}-{self.last}"


def parse_sample(text: str) -> SampledRanks:
    """The range and share of `11-50:30%`.

    Raises:
        UsageError: it is none, its range ends before it begins, or its share is not above 0 % and at most 100 %.
    """
    found = _SAMPLE.fullmatch(text)
    if not found:
        raise UsageError("not a range of ranks with a share", got=shorten(text), expected=EXPECTED_SAMPLE)
    first, last, percent = int(found[1]), int(found[2]), float(found[3])
    if not 1 <= first <= last:
        raise UsageError("not a range of ranks", got=shorten(text), expected="1 <= first rank <= last rank")
    if not 0 < percent <= 100:
        raise UsageError("not a share of documents", got=shorten(text), expected="above 0 % and at most 100 %")
    return SampledRanks(first, last, percent / 100)


def parse_samples(texts: Iterable[str]) -> tuple[SampledRanks, ...]:
    """The ranges and shares of several.

    Raises:
        UsageError: with every one that is none.
    """
    found: list[SampledRanks] = []
    problems: list[Problem] = []
    for text in texts:
        try:
            found.append(parse_sample(text))
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return tuple(found)


@dataclass(frozen=True)
class PoolRequest:
    """What a pool holds."""

    depth: int
    samples: tuple[SampledRanks, ...] = ()
    """Ranges below the depth, of which a share is drawn."""
    budget: int | None = None
    """Documents to judge, all queries together; None: all."""
    include_judged: bool = False
    """Documents that the test set has judged are in the pool, with their grades, instead of left out."""
    seed: int = 0
    name: str = "pool"
    only_missed: bool = False
    """Whether each query gets only results of systems that return nothing relevant down to the depth; see
    `alternatives`."""

    def __post_init__(self) -> None:
        """Refuse what cannot be a pool.

        Raises:
            UsageError: with everything that is wrong.
        """
        problems = list(self._problems())
        if problems:
            raise UsageError(problems)

    def _problems(self) -> Sequence[Problem]:
        problems = []
        if self.depth < 1:
            problems.append(Problem(f"the depth of the pool is {self.depth}", expected="1 or more"))
        if self.budget is not None and self.budget < 1:
            problems.append(Problem(f"the budget is {self.budget}", expected="one or more documents"))
        if self.budget is not None and self.samples:
            hint = "a budget takes the first ranks, for which there are no inclusion probabilities: leave out one of the options"
            problems.append(
                Problem("{sample} and {budget} exclude each other", hint=hint, parameters=("sample", "budget"))
            )
        end = self.depth
        for sample in sorted(self.samples, key=lambda sample: sample.first):
            if sample.first <= end:
                expected = f"ranks from {end + 1} on; lower ranks are already in the pool or in another range"
                problems.append(Problem(f"the range {sample.label} of a sample", expected=expected))
            end = max(end, sample.last)
        if not self.name.strip():
            problems.append(Problem("the pool has no name", expected="a name"))
        return problems

    @property
    def method(self) -> PoolMethod:
        """How the documents are chosen."""
        return "budget" if self.budget is not None else "stratified" if self.samples else "depth"

    @property
    def last(self) -> int:
        """The largest rank that is looked at."""
        return max([self.depth, *(sample.last for sample in self.samples)])
