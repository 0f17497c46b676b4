"""When a model is retired: a sequential test of the share of its records that are rejected.

The test is Wald's sequential probability ratio test of an acceptable share against an unacceptable one. It looks after
every record, so that a failing model is found after few records, and its error is that of all looks together. A test
that ends with `keep` says that the model was acceptable up to there; the next record begins another test, because what a
provider serves under a name may change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

from cranfield.base.errors import UsageError
from cranfield.model.results import Record


class Decision(StrEnum):
    """What the records of a model show so far."""

    RETIRE = "retire"
    """The unacceptable share fits them better, by the bound of the test."""
    KEEP = "keep"
    """The acceptable share does."""
    UNDECIDED = "undecided"
    """More records are needed."""


@dataclass(frozen=True, slots=True)
class SequentialTest:
    """Wald's test of a share: `acceptable` against `unacceptable`."""

    acceptable: float = 0.1
    """Acceptable share of rejected records of a model."""
    unacceptable: float = 0.3
    """Share at which it should be retired."""
    alpha: float = 0.05
    """Chance to retire a model whose share is acceptable, at most about this in each test."""
    beta: float = 0.1
    """Chance to keep one whose share is unacceptable, at most about this."""

    def __post_init__(self) -> None:
        """Check the shares and the chances.

        Raises:
            UsageError: they are no probabilities in order.
        """
        if not 0 < self.acceptable < self.unacceptable < 1:
            got = f"{self.acceptable:g} and {self.unacceptable:g}"
            raise UsageError("invalid shares", expected="0 < acceptable < unacceptable < 1", got=got)
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            got = f"{self.alpha:g} and {self.beta:g}"
            raise UsageError("invalid error probabilities", expected="between 0 and 0.5", got=got)

    @property
    def steps(self) -> tuple[float, float]:
        """What an accepted and a rejected record add to the log of the likelihood ratio."""
        accepted = math.log((1 - self.unacceptable) / (1 - self.acceptable))
        return accepted, math.log(self.unacceptable / self.acceptable)

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of that log: at the lower one the model is kept, at the upper one it is retired."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def decision(self, log_ratio: float) -> Decision:
        """By where the log of the likelihood ratio is."""
        low, high = self.bounds
        return Decision.RETIRE if log_ratio >= high else Decision.KEEP if log_ratio <= low else Decision.UNDECIDED

    def retired_within(self, share: float, n: int) -> float:
        """Chance that a model with this share of rejected records is retired by one test within n records.

        Exact: by the number of rejected records, of the paths that are still undecided.

        Example:
            >>> test = SequentialTest()
            >>> [round(test.retired_within(share, 60), 3) for share in (0.05, 0.1, 0.3, 0.5)]
            [0.002, 0.032, 0.893, 0.998]
        """
        accepted, rejected = self.steps
        paths, retired = {0: 1.0}, 0.0
        for seen in range(1, n + 1):
            following: dict[int, float] = {}
            for k, chance in paths.items():
                for more, probability in ((0, 1 - share), (1, share)):
                    log_ratio = (k + more) * rejected + (seen - k - more) * accepted
                    decision = self.decision(log_ratio)
                    if decision is Decision.RETIRE:
                        retired += chance * probability
                    elif decision is Decision.UNDECIDED:
                        following[k + more] = following.get(k + more, 0.0) + chance * probability
            paths = following
        return retired


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """One test of a model, up to its decision or its last record."""

    decision: Decision
    n: int
    """Records that it looked at."""
    n_rejected: int
    log_ratio: float


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A record that a model made, in the order in which they were made."""

    role: str
    model: str
    query_id: str
    is_rejected: bool


@dataclass(frozen=True, slots=True)
class ModelHistory:
    """The records of a model in a role, and the tests of them."""

    role: str
    model: str
    n: int
    n_rejected: int
    decision: Decision
    """`retire`; else `keep` where some test ended so and the last one is undecided."""
    trials: tuple[ModelTrial, ...]
    """One after the other; the last one is open, or retires the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTests(Record):
    """The models of each role, tested."""

    models: tuple[ModelHistory, ...]
    test: SequentialTest


def run_trials(rejected: Sequence[bool], test: SequentialTest) -> tuple[ModelTrial, ...]:
    """The tests of a model's records, one after the other; nothing is tested after it is retired.

    Example:
        >>> [str(trial.decision) for trial in run_trials([True] * 3, SequentialTest())]
        ['retire']
    """
    accepted_step, rejected_step = test.steps
    trials: list[ModelTrial] = []
    begin = 0
    while begin < len(rejected):
        logs = accumulate(rejected_step if each else accepted_step for each in rejected[begin:])
        n, log_ratio = 0, 0.0
        for log_ratio in logs:
            n += 1
            if test.decision(log_ratio) is not Decision.UNDECIDED:
                break
        trials.append(ModelTrial(test.decision(log_ratio), n, sum(rejected[begin : begin + n]), log_ratio))
        if trials[-1].decision is Decision.RETIRE:
            break
        begin += n
    return tuple(trials)


def model_histories(records: Iterable[ModelRecord], test: SequentialTest) -> tuple[ModelHistory, ...]:
    """Each model in each of its roles, in the order in which they appear."""
    found: dict[tuple[str, str], list[bool]] = {}
    for record in records:
        found.setdefault((record.role, record.model), []).append(record.is_rejected)
    return tuple(
        ModelHistory(role, model, len(rejected), sum(rejected), _decision(trials), trials)
        for (role, model), rejected in found.items()
        for trials in [run_trials(rejected, test)]
    )


def _decision(trials: Sequence[ModelTrial]) -> Decision:
    found = [trial.decision for trial in trials]
    return next((each for each in (Decision.RETIRE, Decision.KEEP) if each in found), Decision.UNDECIDED)
