"""Values of a comparison of three systems or more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from string import ascii_lowercase
from typing import TYPE_CHECKING

from cranfield.display import DisplayedByQuery, in_line
from cranfield.evaluation.evidence.values import Finding
from cranfield.evaluation.procedure import Procedure
from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.values import Evaluation, Summary, Verdict, invalid_reason
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.numbers import format_value
from cranfield.options.compare import CompareOptions
from cranfield.stats.omnibus import letter_display
from cranfield.stats.result import TestResult
from cranfield.words import first_of, n_of

if TYPE_CHECKING:
    from cranfield.evaluation.unjudged_values import Unjudged


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two of the systems on the primary measure: `second` minus `first`."""

    first: str
    second: str
    delta: float
    result: TestResult
    """The declared test, with its p-value adjusted within its family. Of max-T the interval is adjusted too, and excludes zero
    exactly where the adjusted p is at most alpha; other intervals are of the pair alone."""
    wins: int
    """Queries on which `second` does better."""
    ties: int
    losses: int
    verdict: VerdictCode
    """Of `second` against `first`, by the adjusted p: better, worse or not significant; invalid where no pair could have been
    significant."""
    p_tukey: float | None = None
    """Adjusted p of Tukey's honestly significant difference, which does not decide."""
    unseen: Unseen | None = None
    """Queries of a kind that is not among these, and what would turn the verdict; None from 50 queries on."""
    estimate: float = field(init=False, default=0.0)
    """What the interval is about: the mean difference unless the test is about another quantity."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "estimate", self.delta if self.result.estimate is None else self.result.estimate)

    @property
    def is_significant(self) -> bool:
        """Whether one of the two is better."""
        return self.verdict in {VerdictCode.BETTER, VerdictCode.WORSE}

    @property
    def winner(self) -> str | None:
        """The better system; None where neither is significantly better."""
        return {VerdictCode.BETTER: self.second, VerdictCode.WORSE: self.first}.get(self.verdict)


@dataclass(frozen=True, slots=True)
class StratumRow:
    """The primary measure of every system within one stratum."""

    key: str
    value: str
    n: int
    summaries: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class Ranks:
    """Mean ranks of the systems, and the critical difference."""

    means: Mapping[str, float]
    """Mean rank of each system; 1 is best, and ties share theirs."""
    critical_difference: float
    """Nemenyi's, at alpha."""
    groups: tuple[tuple[str, ...], ...]
    """Systems whose mean ranks are not further apart than that."""


@dataclass(frozen=True, slots=True)
class LeaderboardLine:
    """A system among the others."""

    rank: int
    """By the mean of the primary measure."""
    system: str
    group: str
    """Letters of a compact letter display, `ab`; of more than 26 groups in runs, `b-f, aa`. Empty where nothing could be
    significant."""
    better_than: int | None
    worse_than: int | None
    """Number of systems; None where nothing could be significant."""


@dataclass(frozen=True, slots=True)
class OrderAgreement:
    """Whether two measures put the systems in the same order."""

    a: Measure
    b: Measure
    tau: float | None
    """Kendall's tau-b of the means; None where one of them ties all systems."""


@dataclass(frozen=True, slots=True)
class ManyVerdict(Verdict):
    """Which systems are best, and why: `one_best`, `several_best`, `not_significant` or `invalid`."""

    best: tuple[str, ...] = ()
    """Systems that no other is significantly better than, in the order of the means; empty where no pair differs significantly, and
    where the comparison is invalid."""


@dataclass(frozen=True, repr=False, eq=False)
class ManyComparison(DisplayedByQuery):
    """Three systems or more on the queries that all of them have a value for."""

    evaluations: tuple[Evaluation, ...]
    primary: Measure
    options: CompareOptions
    verdict: ManyVerdict
    query_ids: tuple[str, ...]
    """Queries that count for the primary measure."""
    summaries: Mapping[Measure, tuple[Summary, ...]]
    """Of each measure, every system's, over the queries that all systems have a value of it for."""
    pairs: tuple[PairComparison, ...]
    """All pairs, in the order of the systems; p adjusted over all of them."""
    omnibus: Mapping[str, TestResult]
    """Omnibus tests: `permutation` and `friedman`."""
    ranks: Ranks | None
    """None where no query counts."""
    agreements: tuple[OrderAgreement, ...]
    """Every pair of quality measures."""
    strata: tuple[StratumRow, ...]
    procedure: Procedure
    """How the pairs were tested."""
    baseline: str | None = None
    against: tuple[PairComparison, ...] = ()
    """Every other system minus the baseline; p adjusted over these alone. Empty without a baseline."""
    dropped: Mapping[str, str] = field(default_factory=dict)
    """Query id to why it does not count for the primary measure."""
    evidence: tuple[Finding, ...] = ()
    """What the evidence checks found, what makes the verdict invalid first."""
    find_unjudged: Callable[[ManyComparison], Unjudged | None] | None = field(default=None, repr=False, compare=False)
    """What computes `unjudged`, when it is first read."""
    inputs: tuple[str, ...] | None = None
    """Test set and systems as a command line names them; None: by their names."""

    @cached_property
    def unjudged(self) -> Unjudged | None:
        """What judgments of the unjudged results can make of the verdict; None where nothing is unjudged or it is not known."""
        return None if self.find_unjudged is None else self.find_unjudged(self)

    @property
    def names(self) -> tuple[str, ...]:
        """The systems, in the order given."""
        return tuple(evaluation.name for evaluation in self.evaluations)

    @property
    def pilot(self) -> bool:
        """True when any system is not for the record."""
        return any(evaluation.pilot for evaluation in self.evaluations)

    @property
    def claims(self) -> tuple[VerdictCode, ...]:
        """The verdict, after what is claimed of any system against the baseline: what a caller may fail on."""
        if self.verdict.code is VerdictCode.INVALID:
            return (VerdictCode.INVALID,)
        against = {pair.verdict for pair in self.against}
        return (*(code for code in (VerdictCode.WORSE, VerdictCode.BETTER) if code in against), self.verdict.code)

    @property
    def n_draws(self) -> int:
        """Random sign patterns of a permutation test; 0 where all of them were counted."""
        return self.procedure.n_draws

    @property
    def best_first(self) -> tuple[int, ...]:
        """Places of the systems, by the mean of the primary measure."""
        means = [summary.mean or 0.0 for summary in self.summaries[self.primary]]
        return tuple(sorted(range(len(means)), key=lambda place: (-sign_of(self.primary) * means[place], place)))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The compact letter display: two systems share a group exactly where their pair is not significant.

        In the order of the means; a system that differs from every other is a group of its own. None where nothing could be
        significant.
        """
        if self.verdict.code is VerdictCode.INVALID:
            return ()
        order = [self.names[place] for place in self.best_first]
        rank = {name: place for place, name in enumerate(order)}
        different = [(rank[pair.first], rank[pair.second]) for pair in self.pairs if pair.is_significant]
        return tuple(tuple(order[place] for place in group) for group in letter_display(len(order), different))

    @cached_property
    def wins(self) -> Mapping[str, tuple[int, int]]:
        """Of each system, how many others it is significantly better than, and how many are significantly better than it."""
        better, worse = dict.fromkeys(self.names, 0), dict.fromkeys(self.names, 0)
        for pair in self.pairs:
            if pair.winner is not None:
                better[pair.winner] += 1
                worse[pair.first if pair.winner == pair.second else pair.second] += 1
        return {name: (better[name], worse[name]) for name in self.names}

    @cached_property
    def leaderboard(self) -> tuple[LeaderboardLine, ...]:
        """The systems, the best first."""
        numbers: dict[str, list[int]] = {name: [] for name in self.names}
        for number, group in enumerate(self.groups):
            for name in group:
                numbers[name].append(number)
        return tuple(
            LeaderboardLine(
                rank,
                name,
                _letters(numbers[name], len(self.groups)),
                *(self.wins[name] if self.groups else (None, None)),
            )
            for rank, name in enumerate((self.names[place] for place in self.best_first), start=1)
        )

    def _summary(self) -> str:
        means = dict(zip(self.names, self.summaries[self.primary], strict=True))
        best = [f"{in_line(name)} {format_value(means[name].mean)}" for name in self.verdict.best]
        named = f": {first_of(best, 2)}" if best else ""
        about = f"{len(self.names)} systems by {self.primary}, {n_of(len(self.query_ids), 'queries')}"
        return f"{about}: {self.verdict.name}{named}{invalid_reason(self.evaluations, self.evidence)}"


def _letters(numbers: Sequence[int], most: int) -> str:
    """`ab`, of groups that have one letter each; of more than those in runs."""
    if most <= len(ascii_lowercase):
        return "".join(map(_letter, numbers))
    runs = [[n for _, n in run] for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0])]
    return ", ".join(_letter(run[0]) if len(run) == 1 else f"{_letter(run[0])}-{_letter(run[-1])}" for run in runs)


def _letter(place: int) -> str:
    """`a` to `z`, then `aa`, `ab`."""
    most = len(ascii_lowercase)
    return (_letter(place // most - 1) if place >= most else "") + ascii_lowercase[place % most]
