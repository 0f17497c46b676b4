"""Three systems or more: every pair tested within one family, ranks, verdicts, and what unjudged results may change.

Only queries count for which every system has a value, so that every pair is compared on the same queries.

Which systems are best follows from all pairs together, so no pair has a bound of its own for unjudged results. A possible change is
verified: some judgments are assumed, every system is scored with them, and all pairs are tested again as declared. `unjudged` does
the same for two systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, groupby
from string import ascii_lowercase

import numpy as np

from cranfield.base.display import DisplayedByQuery, in_line
from cranfield.base.errors import Problem, UnknownNameError, UsageError
from cranfield.base.numbers import format_count, format_p, format_value
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.evaluation.classes import deciding_key
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import Finding, void_sentences
from cranfield.evaluation.flat import FlatValue, flat, measure_keys, unique_keys
from cranfield.evaluation.joint import FloatN, OpenLists, Places, grades_of, open_lists
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.pairing import (
    PairedValues,
    dropped_queries,
    has_value,
    pair_values,
    primary_measure,
    shared_measures,
)
from cranfield.evaluation.unjudged import holes_command, order_of_holes
from cranfield.evaluation.unseen import (
    Caveat,
    CaveatKind,
    ObservedEffect,
    Unseen,
    largest_difference,
    nearest,
    unseen_queries,
)
from cranfield.evaluation.values import Evaluation, Summary, Unjudged, UnjudgedKind, Verdict, invalid_reason
from cranfield.evaluation.verdict import Procedure, procedure_of, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.ranking.value import FloatQ
from cranfield.stats.describe import differences
from cranfield.stats.omnibus import (
    cliques,
    critical_difference,
    friedman,
    letter_display,
    mean_ranks,
    permutation_omnibus,
)
from cranfield.stats.permutation import permutations
from cranfield.stats.rank_correlation import kendall_tau
from cranfield.stats.result import TestResult, holm, untested
from cranfield.stats.simultaneous import max_t, tukey_hsd
from cranfield.stats.table import TESTS, Paired


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
    """Verdict on `second` against `first`, by the adjusted p: better, worse or not significant; invalid where no pair
    could have been significant."""
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
    """Summaries of each measure, one per system, over the queries that all systems have a value of it for."""
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

    def to_dict(self) -> dict[str, FlatValue]:
        """The verdict and the means as one flat dictionary with stable keys, for a dashboard or a log.

        `nDCG@10` of the system `bm25` has the keys `bm25_ndcg_at_10`, `bm25_ndcg_at_10_ci_low` and `bm25_ndcg_at_10_ci_high`; the mean is over
        the `ndcg_at_10_n` queries that every system has a value for. `bm25_n_failed` counts its failures, and `bm25_better_than` the
        systems that are significantly worse. Besides them there are `verdict` (its code: `one_best`), `best` (names, separated by commas),
        `primary`, `testset`, and `void` and `undefined` as in `Evaluation.to_dict`.
        """
        keys = measure_keys(self.summaries)
        pairs: list[tuple[str, FlatValue | None]] = [
            ("verdict", self.verdict.code.value),
            ("best", ", ".join(self.verdict.best)),
            ("primary", self.primary.canonical),
            ("testset", self.evaluations[0].testset.name),
            *((f"{key}_n", self.summaries[measure][0].n) for measure, key in keys.items()),
        ]
        for place, (system, evaluation) in enumerate(
            zip(unique_keys(self.names, "system"), self.evaluations, strict=True)
        ):
            for measure, key in keys.items():
                found = self.summaries[measure][place]
                pairs += [
                    (f"{system}_{key}", found.mean),
                    (f"{system}_{key}_ci_low", found.ci_low),
                    (f"{system}_{key}_ci_high", found.ci_high),
                ]
            pairs.append((f"{system}_n_failed", len(evaluation.failures)))
            if self.groups:
                pairs.append((f"{system}_better_than", self.wins[evaluation.name][0]))
        void = void_sentences(self.evidence)
        return flat([*pairs, *([("void", "; ".join(void))] if void else [])])

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
        """Per system: number of others it is significantly better than, and number significantly better than it."""
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
        named = f": {join_first(best, 2)}" if best else ""
        about = f"{len(self.names)} systems by {self.primary}, {count_noun(len(self.query_ids), 'queries')}"
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


PairPlaces = Sequence[tuple[int, int]]
"""Places of the first and the second system of each pair."""
Progress = Callable[[int, int], None]
"""Called with the number of pairs that are done, and of all."""

AT_ONCE = 64
"""Pairs whose sign patterns are processed together: 50,000 patterns of so many pairs are 26 MB."""


def all_pairs(n: int) -> list[tuple[int, int]]:
    """Every pair of n systems once, in their order."""
    return list(combinations(range(n), 2))


def tukey_of_pairs(paired: PairedValues) -> dict[frozenset[int], float]:
    """Tukey's p of every two systems; of one query or none there is none."""
    places = all_pairs(paired.values.shape[1])
    if len(paired.query_ids) < 2:
        return {}
    return dict(zip(map(frozenset, places), tukey_hsd(paired.values, places).tolist(), strict=True))


def compare_pairs(
    paired: PairedValues,
    places: PairPlaces,
    names: Sequence[str],
    options: CompareOptions,
    tukey: Mapping[frozenset[int], float],
    progress: Progress | None = None,
    largest: float | None = None,
) -> tuple[PairComparison, ...]:
    """The declared test on each pair, adjusted over them all; without a p-value where none could be significant.

    Args:
        paired: values of one measure, queries by systems.
        places: of the two systems of each pair.
        names: of all systems.
        options: the test and its adjustment.
        tukey: as `tukey_of_pairs` gives it.
        progress: called as pairs are done.
        largest: difference of the measure, if it is bounded.
    """
    if not paired.query_ids or not places:
        return ()
    procedure = procedure_of(paired.values, len(places), options)
    if not procedure.can_find:
        results = [untested("no pair of this family could be significant")] * len(places)
        code: VerdictCode | None = VerdictCode.INVALID
    else:
        results, code = _tested(paired, places, options, progress), None
    sign = sign_of(paired.measure)
    rows = []
    for (first, second), result in zip(places, results, strict=True):
        delta = _difference(paired, first, second)
        wins, losses = int((delta * sign > 0).sum()), int((delta * sign < 0).sum())
        pair = PairComparison(
            first=names[first],
            second=names[second],
            delta=float(delta.mean()),
            result=result,
            wins=wins,
            ties=len(delta) - wins - losses,
            losses=losses,
            verdict=code or verdict_of_p(result.p_adjusted, result.direction * sign, options.alpha),
            p_tukey=tukey.get(frozenset((first, second))),
        )
        rows.append(
            replace(
                pair, unseen=_unseen(pair, ObservedEffect(len(delta), pair.delta, None, None, sign, largest), options)
            )
        )
    return tuple(rows)


def _unseen(pair: PairComparison, found: ObservedEffect, options: CompareOptions) -> Unseen | None:
    """What stands beside the verdict of a pair on few queries."""
    if TESTS[options.test].is_of_mean:
        found = replace(found, low=pair.result.ci_low, high=pair.result.ci_high)
    unseen = unseen_queries(pair.verdict, found, options.alpha)
    return unseen and replace(unseen, of=f"{pair.second} against {pair.first}", turned="the verdict on this pair")


def _tested(
    paired: PairedValues, places: PairPlaces, options: CompareOptions, progress: Progress | None
) -> list[TestResult]:
    if options.adjustment == "max-t":
        return max_t(paired.values, places, alpha=options.alpha, seed=options.seed, n_draws=options.draws)
    results: list[TestResult] = []
    for start in range(0, len(places), AT_ONCE):
        results += _each_alone(paired, places[start : start + AT_ONCE], options)
        if progress is not None:
            progress(len(results), len(places))
    adjusted = holm([result.p_two_sided for result in results])
    return [replace(result, p_adjusted=p) for result, p in zip(results, adjusted, strict=True)]


def _each_alone(paired: PairedValues, places: PairPlaces, options: CompareOptions) -> list[TestResult]:
    deltas = [_difference(paired, *place) for place in places]
    drawn = (options.alpha, options.seed, options.draws)
    if options.test == "permutation":
        alpha, seed, n_draws = drawn
        return permutations(np.column_stack(deltas), alpha=alpha, seed=seed, n_draws=n_draws)
    run = TESTS[options.test].run
    return [
        run(Paired(paired.values[:, first], paired.values[:, second], delta, *drawn))
        for (first, second), delta in zip(places, deltas, strict=True)
    ]


def _difference(paired: PairedValues, first: int, second: int) -> FloatQ:
    return differences(paired.values[:, first], paired.values[:, second])


NAMED = 5
"""Systems that a sentence names; of more it gives the number."""


def verdict_of_many(many: ManyComparison) -> ManyVerdict:
    """Which systems are best; invalid where the evidence is void, or where nothing could have been found."""
    k = len(many.evaluations)
    void = void_sentences(many.evidence)
    if void:
        sentence = f"No verdict on these {k} systems: the comparison does not count."
        return ManyVerdict(VerdictCode.INVALID, sentence, void)
    if not many.procedure.can_find:
        sentence = f"No verdict on these {k} systems: no difference could have been significant."
        return ManyVerdict(VerdictCode.INVALID, sentence, (many.procedure.why_not,))
    names = many.names
    best = tuple(names[place] for place in many.best_first if not many.wins[names[place]][1])
    how = f"({many.primary}, n = {len(many.query_ids)}, {many.procedure.text})"
    if len(best) == k:
        sentence = f"No significant difference between any two of the {k} systems {how}."
        # How many queries tell systems apart, where most do not.
        n, moving = many.procedure.n_queries, many.procedure.n_moving
        few_moving = () if 2 * moving >= n else (f"the systems differ on {moving} of {count_noun(n, 'queries')}",)
        notes = (*_against_baseline(many), *few_moving)
        return ManyVerdict(VerdictCode.NOT_SIGNIFICANT, sentence, notes, _disagreements(many, best))
    means = dict(zip(names, many.summaries[many.primary], strict=True))
    shown = [f"{name} ({format_value(means[name].mean)})" for name in best]
    notes, found = _against_baseline(many), _disagreements(many, best)
    if not best:
        sentence = f"No system is best: each of the {k} is significantly worse than another {how}."
        return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence, (), found)
    if len(best) == 1:
        over = many.wins[best[0]][0]
        some = f"{over} of the {k - 1} others, and each of the rest is worse than another"
        others = "each of the others" if over == k - 1 else some
        sentence = f"{shown[0]} is best of {k} systems: better than {others} {how}."
        return ManyVerdict(VerdictCode.ONE_BEST, sentence + _left_out(many, best), notes, found, best)
    after = and_list(shown[1:]) if len(shown) <= NAMED else join_first(shown[1:], NAMED - 1)
    verb = "is" if len(best) == 2 else "are"
    sentence = f"{shown[0]} is best of {k} systems; {after} {verb} not shown to be worse {how}."
    return ManyVerdict(VerdictCode.SEVERAL_BEST, sentence + _left_out(many, best), notes, found, best)


def _left_out(many: ManyComparison, best: Sequence[str]) -> str:
    """Why systems are not among the best although their mean is better than that of one of these; empty without any."""
    sign = sign_of(many.primary)
    means = {name: about.mean or 0.0 for name, about in zip(many.names, many.summaries[many.primary], strict=True)}
    order = [many.names[place] for place in many.best_first]
    lowest = best[-1]
    left = [name for name in order if name not in best and sign * means[name] > sign * means[lowest]]
    if not left:
        return ""
    over = [{pair.winner for pair in many.pairs if name in {pair.first, pair.second}} - {name} for name in left]
    common = [name for name in order if all(name in winners for winners in over)]
    shown = [f"{name} ({format_value(means[name])})" for name in left]
    named = and_list(shown) if len(shown) <= NAMED else join_first(shown, NAMED)
    have, are = ("has", "is") if len(left) == 1 else ("have", "are")
    than = common[0] if common else "another system"
    return f" {named} {have} a better mean than {lowest}, but {are} significantly worse than {than}."


def unseen_of_many(many: ManyComparison, verdict: ManyVerdict) -> Unseen | None:
    """What stands beside the verdict of few queries: of the significant pairs that put a system among the best, or of all
    significant ones where none is, the one that turns first; without any, the share alone.
    """
    if verdict.code is VerdictCode.INVALID:
        return None
    significant = [pair for pair in many.pairs if pair.is_significant]
    leading = [pair for pair in significant if pair.winner in verdict.best]
    alone = unseen_queries(
        VerdictCode.MIXED, ObservedEffect(len(many.query_ids), None, None, None, 1), many.options.alpha
    )
    return nearest(pair.unseen for pair in leading or significant) or alone


def _against_baseline(many: ManyComparison) -> tuple[str, ...]:
    """Each system against the baseline, by verdict, the worse ones first; empty without a baseline."""
    found = {
        code: [pair.second for pair in many.against if pair.verdict is code]
        for code in (VerdictCode.WORSE, VerdictCode.BETTER, VerdictCode.NOT_SIGNIFICANT)
    }
    notes = [f"{code.text}: {_named(names)}" for code, names in found.items() if names]
    sentence = f"against {many.baseline}{_family(many)}, {'; '.join(notes)}"
    return (Caveat(sentence, CaveatKind.FINDING),) if notes else ()


def _family(many: ManyComparison) -> str:
    """Why a system differs from the baseline here and not among all pairs, where one does: fewer tests to adjust for."""
    of_all = {frozenset((pair.first, pair.second)) for pair in many.pairs if pair.is_significant}
    if all(pair.is_significant == (frozenset((pair.first, pair.second)) in of_all) for pair in many.against):
        return ""
    return f" (p adjusted for {len(many.against)} pairs; in groups and ranks for {len(many.pairs)})"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= NAMED else f"{len(names)} ({join_first(names, NAMED)})"


def _disagreements(many: ManyComparison, best: Sequence[str]) -> tuple[str, ...]:
    """Omnibus tests and measures that disagree with the verdict, a sentence each."""
    notes = []
    some_pair = len(best) < len(many.evaluations)
    n_pairs = sum(pair.is_significant for pair in many.pairs)
    pairs = {0: "no pair is", 1: "one pair is"}.get(n_pairs, f"{format_count(n_pairs)} pairs are")
    for name, result in many.omnibus.items():
        p = result.p_two_sided
        if p is not None and (p <= many.options.alpha) != some_pair:
            word = "not significant" if some_pair else "significant"
            notes.append(f"{name.capitalize()} test of all systems {word} (p {format_p(p)}), although {pairs}")
    leader = many.names[many.best_first[0]]
    for measure, row in many.summaries.items():
        if measure == many.primary or CATALOGUE[measure.name].diagnostic:
            continue
        means = [(about.mean or 0.0) * sign_of(measure) for about in row]
        first = many.names[means.index(max(means))]
        if means[many.best_first[0]] < max(means) and first not in best:
            notes.append(f"{measure} puts {first} first, and {leader} is first by {many.primary}")
    unpaired = [q for q in many.dropped if any(has_value(each, many.primary, q) for each in many.evaluations)]
    if unpaired:
        n = len(unpaired)
        count = "1 query is left out" if n == 1 else f"{n} queries are left out"
        notes.append(f"{count}: not every system has a value of {many.primary}")
    return tuple(notes)


MAX_VALUES = 3_000
"""Queries times pairs: the tests of more take most of a second each time, and some ten are needed."""
CANDIDATES = 3
"""Pairs whose judgments are tried, those that few are expected to turn first."""
MORE = (1.0, 1.25, 1.6)
"""Times the judgments that were expected to do: the tests of all pairs are stricter or milder than Student's t."""


@dataclass(frozen=True, eq=False)
class _Turn:
    """Judgments all of which favour one system over another."""

    gains: int
    loses: int
    n: int
    """How many are expected to make other systems best."""
    holes: Places
    """Places in the lists, the largest effect first."""
    grade: FloatN
    """The grade of each."""
    change: FloatN = field(repr=False)


def unjudged_of_many(many: ManyComparison) -> Unjudged | None:
    """The fewest judgments found with which other systems are best; None where nothing is unjudged, or it is not known.

    It is not known of measures and conventions without joint bounds, and of more than `MAX_VALUES`. There the evidence
    check on the judged share stands alone.
    """
    rankings = [side.ranking_for(many.primary) for side in many.evaluations]
    known = [ranking for ranking in rankings if ranking is not None]
    if many.verdict.code is VerdictCode.INVALID or len(known) < len(rankings):
        return None
    if len(many.query_ids) * len(many.pairs) > MAX_VALUES:
        return None
    lists = open_lists(many.primary, known, grades_of(many.evaluations[0].testset))
    if isinstance(lists, str) or not len(lists.query) or lists.query_ids != many.query_ids:
        return None
    base = lists.judged(np.full(len(lists.query), np.nan))
    if not np.array_equal(base, lists.now):
        return None  # the convention gives unjudged results another value than the lowest grade
    n, n_queries = len(lists.query), int((lists.n_open > 0).sum())
    turns = sorted(_turns(many, lists, base), key=lambda turn: turn.n)
    for turn in turns[:CANDIDATES]:
        few, best = _fewest(many, lists, base, turn)
        if few:
            place = np.argsort(order_of_holes(lists, turn.change))
            testset, *runs = many.inputs or (many.evaluations[0].testset.name, *many.names)
            command = holes_command(
                (testset, runs[turn.loses], runs[turn.gains]),
                many.primary,
                many.options,
                convention=known[0].convention.name,
                top=int(place[turn.holes[:few]].max()) + 1,
            )
            turned = None
            if len(best) == len(many.names):
                turned, best = VerdictCode.NOT_SIGNIFICANT, ()
            return Unjudged(UnjudgedKind.CAN_TURN, n, n_queries, few, turned, best=best, command=command)
    return Unjudged(UnjudgedKind.UNKNOWN, n, n_queries)


def _turns(many: ManyComparison, lists: OpenLists, base: FloatN) -> Iterator[_Turn]:
    """Judgments in favour of either system of each pair with which other systems are expected to be best."""
    sign, place, best = sign_of(many.primary), {name: n for n, name in enumerate(many.names)}, set(_best(many))
    _, _, changes = lists.changes(np.arange(len(lists.query_ids)), np.full(len(lists.query), np.nan))
    sides = [(place[pair.first], place[pair.second]) for pair in many.pairs]
    critical = [
        _critical(pair, base[:, second] - base[:, first])
        for pair, (first, second) in zip(many.pairs, sides, strict=True)
    ]
    before = _beaten(base, sides, critical, sign)
    few: list[int] = []
    for first, second in sides:
        change = changes[..., second] - changes[..., first]
        for way, gains, loses in ((sign, second, first), (-sign, first, second)):
            if many.names[gains] in best and many.names[loses] not in best:
                continue  # it takes nothing from a system that is best
            effect = (way * change).max(axis=1, initial=0.0)
            order = np.argsort(-effect, kind="stable")[: int((effect > 0).sum())].astype(np.intp)
            turn = _Turn(gains, loses, 0, order, np.array(lists.grades)[(way * change).argmax(axis=1)], change)

            def turns(n: int, turn: _Turn = turn) -> bool:
                return _beaten(_values_with(lists, base, turn, n), sides, critical, sign) != before

            most = min([len(order), *sorted(few)[CANDIDATES - 1 : CANDIDATES]])
            steps = [*(2**power for power in range(most.bit_length())), most]
            n = next((n for n in steps if n and turns(n)), 0)
            low = n // 2
            while n - low > 1:
                middle = (low + n) // 2
                low, n = (low, middle) if turns(middle) else (middle, n)
            if n:
                few.append(n)
                yield replace(turn, n=n)


def _critical(pair: PairComparison, difference: FloatN) -> float:
    """The t statistic that a pair needs, of its interval; without one about that of a pair alone."""
    error = float(difference.std(ddof=1)) / math.sqrt(len(difference)) if len(difference) > 1 else 0.0
    low, high = pair.result.ci_low, pair.result.ci_high
    if low is None or high is None or not error:
        return 2.0
    return (high - low) / 2 / error


def _beaten(values: FloatN, sides: Sequence[tuple[int, int]], critical: Sequence[float], sign: int) -> frozenset[int]:
    """The systems that are expected to be significantly worse than another, by the t statistic of each pair."""
    pairs = np.array(sides)
    difference = sign * (values[:, pairs[:, 1]] - values[:, pairs[:, 0]])
    mean, error = difference.mean(axis=0), difference.std(axis=0, ddof=1) / math.sqrt(len(difference))
    loser = np.where(mean > 0, pairs[:, 0], pairs[:, 1])
    return frozenset(loser[np.abs(mean) > np.array(critical) * error].tolist())


def _fewest(many: ManyComparison, lists: OpenLists, base: FloatN, turn: _Turn) -> tuple[int, tuple[str, ...]]:
    """The fewest of the judgments with which other systems are best, and these, the best mean first; 0: none were found."""
    before = set(_best(many))
    for n in dict.fromkeys(min(math.ceil(more * turn.n), len(turn.holes)) for more in MORE):
        low, few, best = 0, n, _best_with(many, lists, base, turn, n)
        if set(best) == before:
            continue
        while few - low > 1:
            middle = (low + few) // 2
            found = _best_with(many, lists, base, turn, middle)
            if set(found) == before:
                low = middle
            else:
                few, best = middle, found
        return few, best
    return 0, ()


def _best_with(many: ManyComparison, lists: OpenLists, base: FloatN, turn: _Turn, few: int) -> tuple[str, ...]:
    """The systems that are best with some judgments, tested as declared; the best mean first."""
    values = _values_with(lists, base, turn, few)
    paired = PairedValues(many.primary, many.query_ids, values)
    pairs = compare_pairs(paired, all_pairs(len(many.names)), many.names, many.options, {})
    best = set(_best(replace(many, pairs=pairs)))
    order = np.argsort(-sign_of(many.primary) * values.mean(axis=0), kind="stable")
    return tuple(many.names[number] for number in order.tolist() if many.names[number] in best)


def _values_with(lists: OpenLists, base: FloatN, turn: _Turn, few: int) -> FloatN:
    """float64[Q, S]: the values of all systems with some of the judgments."""
    chosen = turn.holes[:few]
    grade = np.full(len(lists.query), lists.grades[0])
    grade[chosen] = turn.grade[chosen]
    queries, values = np.unique(lists.query[chosen]), base.copy()
    values[queries] = lists.values(queries, grade[np.isin(lists.query, queries)])
    return values


def _best(many: ManyComparison) -> tuple[str, ...]:
    """The systems that no other is significantly better than: all of them where no pair is significant."""
    return tuple(name for name, (_, worse) in many.wins.items() if not worse)


MIN_SYSTEMS = 3


def compare_many(
    evaluations: Sequence[Evaluation],
    options: CompareOptions | None = None,
    *,
    baseline: str | None = None,
    progress: Progress | None = None,
) -> ManyComparison:
    """Compare three systems or more, every pair of them.

    Args:
        evaluations: on one test set, with different names.
        options: what was declared beforehand. The margin does not decide here; it is shown with the differences.
        baseline: name of the baseline system, if any: each of the others is also compared with it alone.
        progress: called with the number of pairs that are done, and of all, where they are tested one by one.

    Conventions:
        the p-values of all pairs are adjusted together, by single-step max-T or Holm; those against the baseline are a family of
        their own · the intervals of max-T hold for all pairs together, others are of each pair alone · a system is best when
        no other is better by the adjusted p · where queries, pairs and draws cannot give a p-value of alpha or less, the
        comparison is invalid, and nothing is called not significant.

    Raises:
        UsageError: fewer than three systems, two of the same name, or systems that do not belong together.
        UnknownNameError: the baseline is none of them.
    """
    options = options or CompareOptions()
    names = _check_names(evaluations, baseline)
    measures = shared_measures(evaluations)
    primary = primary_measure(measures, options)
    by_measure = {measure: pair_values(evaluations, measure) for measure in measures}
    paired = by_measure[primary]
    summaries = {measure: values.summaries(options.alpha) for measure, values in by_measure.items()}
    against: tuple[PairComparison, ...] = ()
    largest = largest_difference(primary, evaluations[0].ranking)
    tukey = tukey_of_pairs(paired)  # an integral for each pair: the longest part of all where pairs are few
    if baseline is not None:
        first = names.index(baseline)
        others = [(first, other) for other in range(len(names)) if other != first]
        against = compare_pairs(paired, others, names, options, tukey, progress, largest)
    places = all_pairs(len(names))
    many = ManyComparison(
        evaluations=tuple(evaluations),
        primary=primary,
        options=options,
        verdict=ManyVerdict(VerdictCode.NOT_SIGNIFICANT, ""),
        query_ids=paired.query_ids,
        summaries=summaries,
        pairs=compare_pairs(paired, places, names, options, tukey, progress, largest),
        omnibus={
            "permutation": permutation_omnibus(paired.values, seed=options.seed),
            "friedman": friedman(paired.values, higher_is_better=sign_of(primary) > 0),
        },
        ranks=_ranks(paired, names, options.alpha),
        agreements=_agreements(summaries),
        strata=tuple(
            StratumRow(
                key,
                value,
                len(part.query_ids),
                dict(zip(names, part.summaries(options.alpha), strict=True)),
            )
            for key, value, part in paired.strata(evaluations[0].testset)
        ),
        procedure=procedure_of(paired.values, len(places), options),
        baseline=baseline,
        against=against,
        dropped=dropped_queries(evaluations, paired),
        evidence=inspect_systems(evaluations, primary, options.limits),
        find_unjudged=unjudged_of_many,
    )
    verdict = verdict_of_many(many)
    key = "" if verdict.code is VerdictCode.INVALID else deciding_key(evaluations[0].testset, options, primary)
    reasons = (*verdict.reasons, *(_class_note(many, verdict, key) if key else ()))
    return replace(many, verdict=replace(verdict, reasons=reasons, unseen=unseen_of_many(many, verdict)))


def _class_note(many: ManyComparison, verdict: ManyVerdict, key: str) -> tuple[str, ...]:
    """That the classes do not decide here, and the classes in which the first of the best systems is not first."""
    rows, sign = [row for row in many.strata if row.key == key], sign_of(many.primary)
    overtaken = []
    for row in rows:
        means = [sign * about.mean for about in row.summaries.values() if about.mean is not None]
        if verdict.best and (mean := row.summaries[verdict.best[0]].mean) is not None and sign * mean < max(means):
            overtaken.append(row.value)
    note = "the mean over all queries decides here; compare two of the systems for a verdict by class"
    if overtaken:
        note += f" ({verdict.best[0]} is not first in {len(overtaken)} of {count_noun(len(rows), 'classes')}: {join_first(overtaken)})"
    return (note,)


def _check_names(evaluations: Sequence[Evaluation], baseline: str | None) -> list[str]:
    names = [evaluation.name for evaluation in evaluations]
    problems = []
    if len(names) < MIN_SYSTEMS:
        problems.append(Problem(f"{len(names)} systems", expected="three or more", hint="`compare` takes two"))
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        problems.append(Problem(f"more than one system is called {', '.join(twice)}", expected="a name for each"))
    if problems:
        raise UsageError(problems)
    if baseline is not None and baseline not in names:
        raise UnknownNameError.among("system", baseline, names)
    return names


def _ranks(paired: PairedValues, names: Sequence[str], alpha: float) -> Ranks | None:
    if not paired.query_ids:
        return None
    means = mean_ranks(paired.values, higher_is_better=sign_of(paired.measure) > 0).tolist()
    distance = critical_difference(len(paired.query_ids), len(names), alpha)
    groups = tuple(tuple(names[place] for place in group) for group in cliques(means, distance))
    return Ranks(dict(zip(names, map(float, means), strict=True)), distance, groups)


def _agreements(summaries: Mapping[Measure, Sequence[Summary]]) -> tuple[OrderAgreement, ...]:
    means = {
        measure: [(about.mean or 0.0) * sign_of(measure) for about in row]
        for measure, row in summaries.items()
        if not CATALOGUE[measure.name].diagnostic and all(about.mean is not None for about in row)
    }
    return tuple(OrderAgreement(a, b, kendall_tau(means[a], means[b])) for a, b in combinations(means, 2))
