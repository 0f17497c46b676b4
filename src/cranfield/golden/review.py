"""Review by people: which records they see, what their verdicts show of the batch, and which ceilings decide.

The sample is drawn from the records without a reason for review: it measures those that enter a set unseen.
Records that a person must see are reviewed besides, and count in no rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256

from pydantic import Field

from cranfield.base.errors import InputError
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.validation import ClosedModel
from cranfield.golden.records import (
    SCHEMA_VERSION,
    CitedFact,
    Difficulty,
    HumanReview,
    OracleAnswer,
    ReviewFeedback,
    TaskType,
)
from cranfield.model.judging import Disposition, FailureMode, ReviewVerdict
from cranfield.model.results import Record
from cranfield.stats.confusion import exact_interval

Cell = tuple[TaskType, Difficulty]
LEVEL = 0.95
SPOT_CHECK = "narrative_spot_check"
"""Reason to see a record: a person checks the judge of the narrative on it."""
LATER = timedelta(hours=24)
"""Least time from the first look of one person to the second one, whose page does not show the first decision."""
RATES = (0.01, 0.03, 0.05, 0.1, 0.2, 0.3)
"""Defect rates of the operating characteristic."""


HOURS = f"{LATER // timedelta(hours=1)} h"
NOT_SHOWN = "the second time without seeing the first decision"
"""What is known of the second look: the book of the first one stays open to its reviewer."""


class Ceiling(StrEnum):
    """What may not be reached."""

    SERIOUS = "serious"
    """Major issue or wrong, as a share of the sample."""
    MINOR = "minor"
    WRONG_ON_EASY = "wrong_on_easy"
    """A number: none is allowed."""


CEILINGS: Mapping[Ceiling, str] = {
    Ceiling.SERIOUS: "major issue or wrong",
    Ceiling.MINOR: "minor issue",
    Ceiling.WRONG_ON_EASY: "wrong on easy",
}
"""What each of them counts."""


@dataclass(frozen=True, slots=True)
class ReviewProfile:
    """How much is reviewed, and what must hold."""

    name: str
    share: Fraction
    """Share of the batch that is reviewed."""
    one_per_cell: bool
    serious: Fraction
    """A share of the sample must be less than this, not equal."""
    minor: Fraction
    people: int = 2
    """2: each of two people sees a record, without sight of the other's verdict. 1: one person sees it twice, the second time at
    least `LATER` after the first and without sight of the first verdict."""
    batch: int | None = None
    """Records of a batch; None: any number."""

    @property
    def lacking(self) -> str:
        """What is so of a record on which nothing is decided yet."""
        return "not reviewed twice" if self.people == 1 else "without a decision"

    def fails(self, ceiling: Ceiling, count: int, n: int) -> bool:
        """Whether a count reaches a ceiling in a sample of n."""
        if ceiling is Ceiling.WRONG_ON_EASY:
            return count > 0
        return count > 0 and Fraction(count, n) >= (self.serious if ceiling is Ceiling.SERIOUS else self.minor)

    def most(self, ceiling: Ceiling, n: int) -> int:
        """The largest count that does not reach a ceiling in a sample of n.

        Example:
            >>> [PROFILES["bootstrap"].most(Ceiling.SERIOUS, n) for n in (17, 41)]
            [0, 2]
        """
        return next((count for count in range(n, 0, -1) if not self.fails(ceiling, count, n)), 0)


_OF_TWO = (
    ReviewProfile("bootstrap", Fraction(15, 100), True, Fraction(5, 100), Fraction(15, 100)),
    ReviewProfile("scale", Fraction(5, 100), False, Fraction(3, 100), Fraction(15, 100), batch=40),
)
ONE_PERSON = "one-person"
"""What the names of their profiles, and of their sets, end with."""
PROFILES = {each.name: each for each in _OF_TWO} | {
    (name := f"{each.name}-{ONE_PERSON}"): replace(each, name=name, people=1) for each in _OF_TWO
}
"""By name. Those of one person have the shares and ceilings of those of two."""


@dataclass(frozen=True, slots=True)
class Reviewable:
    """A record that would enter the set."""

    query_id: str
    task_type: TaskType
    difficulty: Difficulty
    must_see: tuple[str, ...] = ()
    """Why a person must see it; empty: it may enter unseen."""

    @property
    def cell(self) -> Cell:
        """Its stratum."""
        return self.task_type, self.difficulty


class Sample(ClosedModel):
    """What people see of a batch: a line of `review_samples.jsonl`."""

    profile: str
    seed: int
    n_batch: int
    n_unseen: int
    """Records without a reason for review: the sample is drawn from these."""
    n_by_share: int
    """That the share asks for."""
    n_by_cells: int
    """That one of each cell asks for; 0 where the profile does not ask for that."""
    sampled: tuple[str, ...]
    must_see: dict[str, tuple[str, ...]]
    cells: dict[str, Cell]
    """Cells of everything to review."""
    attempts: dict[str, int] = Field(default_factory=dict)
    """Attempts of the oracle that are reviewed; 1 where nothing else stands."""
    book: str = ""
    schema_version: str = SCHEMA_VERSION

    @property
    def to_review(self) -> tuple[str, ...]:
        """The ids of both, the sample first."""
        return (*self.sampled, *self.must_see)


def _order(seed: int, query_id: str) -> str:
    return sha256(f"{seed}:{query_id}".encode()).hexdigest()


def draw_sample(records: Iterable[Reviewable], profile: ReviewProfile, seed: int) -> Sample:
    """Draw a stratified sample: at least the share of the batch, and one of each cell, whichever is more.

    One of each cell first, where the profile asks for that; the rest at equal distances along the other records, sorted
    by cell, so that cells get about their share. The same records and seed give the same sample, in whatever order.
    """
    batch = sorted(records, key=lambda each: _order(seed, each.query_id))
    unseen = [each for each in batch if not each.must_see]
    first: dict[Cell, Reviewable] = {}
    for each in unseen:
        first.setdefault(each.cell, each)
    chosen = list(first.values()) if profile.one_per_cell else []
    n_by_share = math.ceil(profile.share * len(batch))
    taken = {each.query_id for each in chosen}
    left = sorted((each for each in unseen if each.query_id not in taken), key=lambda each: each.cell)
    n_more = min(max(n_by_share - len(chosen), 0), len(left))
    start = Fraction(int(_order(seed, "start"), 16), 16**64)
    chosen += [left[int((start + place) * len(left) / n_more)] for place in range(n_more)]
    must_see = {each.query_id: each.must_see for each in batch if each.must_see}
    return Sample(
        profile=profile.name,
        seed=seed,
        n_batch=len(batch),
        n_unseen=len(unseen),
        n_by_share=n_by_share,
        n_by_cells=len(first) if profile.one_per_cell else 0,
        sampled=tuple(each.query_id for each in chosen),
        must_see=must_see,
        cells={each.query_id: each.cell for each in [*chosen, *batch] if each in chosen or each.must_see},
    )


@dataclass(frozen=True, slots=True)
class ReviewTally:
    """Verdicts of a sample, counted."""

    n: int
    """Records of the sample, reviewed or not."""
    serious: int = 0
    minor: int = 0
    wrong_on_easy: int = 0
    n_open: int = 0
    """Records of the sample without a decision that holds."""
    upper: float | None = field(default=None, init=False)
    """Upper bound of the rate of serious defects, 95 % one-sided (Clopper and Pearson); None without a record.

    None also while a record of the sample is open: what no person has looked at shows nothing.
    """

    def __post_init__(self) -> None:
        """The bound follows from the counts."""
        if self.n and not self.n_open:
            object.__setattr__(self, "upper", exact_interval(self.serious, self.n, 2 * LEVEL - 1)[1])

    def __add__(self, other: ReviewTally) -> ReviewTally:
        """Both batches together."""
        return ReviewTally(
            self.n + other.n,
            self.serious + other.serious,
            self.minor + other.minor,
            self.wrong_on_easy + other.wrong_on_easy,
            self.n_open + other.n_open,
        )

    def count(self, ceiling: Ceiling) -> int:
        """What a ceiling counts."""
        return {
            Ceiling.SERIOUS: self.serious,
            Ceiling.MINOR: self.minor,
            Ceiling.WRONG_ON_EASY: self.wrong_on_easy,
        }[ceiling]


class ReviewOutcome(StrEnum):
    """What the review of a batch came to."""

    PASSED = "passed"
    BREACHED = "breached"
    """The whole batch is requeued, with the failure modes as feedback."""
    INCOMPLETE = "incomplete"
    """Reviews, second looks or decisions of a lead are missing."""


@dataclass(frozen=True, slots=True)
class PassChance:
    """A true rate of serious defects, and the probability that a batch with it passes."""

    rate: float
    passes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewReport(Record):
    """What people found."""

    run: str
    """Name of its folder."""
    outcome: ReviewOutcome
    profile: str
    """One of `PROFILES`."""
    people: int
    tally: ReviewTally
    """Tally of the sample alone."""
    cumulative: ReviewTally
    """With the earlier batches."""
    breached: tuple[Ceiling, ...]
    verdicts: Mapping[ReviewVerdict, int]
    """Number of records of the sample, by verdict."""
    verdicts_must_see: Mapping[ReviewVerdict, int]
    dispositions: Mapping[Disposition, int]
    """Number of records that were reviewed, by disposition."""
    n_edited: int
    unreviewed: tuple[str, ...]
    """Without a decision that holds."""
    unconfirmed: Mapping[str, str]
    """Those with a decision that no second look confirms, as the profile asks for; and why."""
    reviewers: tuple[str, ...]
    """All who looked at a record, by name: as they named themselves."""
    reviewed_by: str
    """Who reviewed, as a sentence of every report has it: names are never more than stated."""
    n_twice: int
    """Records that were looked at twice."""
    n_same: int
    """Those of them that got the same verdict both times."""
    agreement: str
    """The same in a sentence; that of one person is never called that of two."""
    n_spot_checked: int
    """Narratives that a judge called equivalent, and people reviewed."""
    n_spot_failed: int
    """Those with an edit of the narrative, or a failure of it."""
    characteristic: tuple[PassChance, ...]
    """Chances that a batch passes, for a sample of this size."""
    feedback: tuple[ReviewFeedback, ...]
    notes: tuple[str, ...]
    next_steps: tuple[str, ...] = ()
    """Commands, which know the books of the review."""

    @property
    def rules(self) -> ReviewProfile:
        """How much is reviewed, and what must hold."""
        return PROFILES[self.profile]

    @property
    def n_reviewed(self) -> int:
        """Records with a decision that holds, of the sample and besides."""
        return sum(self.dispositions.values())

    @property
    def counts(self) -> str:
        """What each ceiling counts in the sample, and the most that it allows."""
        if not self.tally.n:
            return "no sample: every record is reviewed"
        found = ", ".join(
            f"{self.tally.count(each)} {words} (at most {self.rules.most(each, self.tally.n)})"
            for each, words in CEILINGS.items()
        )
        still = f", {self.tally.n_open} {self.rules.lacking}" if self.tally.n_open else ""
        return f"{self.tally.n} sampled: {found}{still}"

    @property
    def missing(self) -> str:
        """Records without a decision, and those with one that nothing confirms; empty where there are none."""
        n = self.n_reviewed + len(self.unreviewed)
        parts = [f"{len(self.unreviewed)} of {n} {self.rules.lacking}: {join_first(self.unreviewed)}"] * bool(
            self.unreviewed
        )
        if self.unconfirmed:
            why = join_first(f"{name} ({why})" for name, why in self.unconfirmed.items())
            parts.append(f"{len(self.unconfirmed)} of {n} not confirmed: {why}")
        return "; ".join(parts)

    @property
    def state(self) -> str:
        """What the review came to, with the numbers that decide."""
        if self.outcome is ReviewOutcome.BREACHED:
            reached = ", ".join(CEILINGS[each] for each in self.breached)
            return f"review failed, ceiling reached: {reached}; {self.counts}"
        if self.outcome is ReviewOutcome.INCOMPLETE:
            return f"review not finished: {self.missing}"
        names, same = ", ".join(self.reviewers), f"same verdict on {self.n_same} of {self.n_twice}"
        if self.people == 1:
            by = f"reviewed by one person ({names}; not verified)"
            return f"{by}, intra-rater agreement on a later day: {same}; {self.tally.n} sampled"
        by = f"reviewed by {count_noun(len(self.reviewers), 'people')} ({names}; not verified)"
        return f"{by}, {same}; {self.tally.n} sampled"


def _reviewed_by(profile: ReviewProfile, reviewers: Sequence[str], *, is_open: bool) -> str:
    names = f" ({', '.join(reviewers)})" if reviewers else ""
    if profile.people == 1:
        sees = f"{'sees' if is_open else 'saw'} each record twice, at least {HOURS} apart and {NOT_SHOWN}"
        by = f"one person{names}, who {sees}; the name is not verified"
    else:
        who = "two people" if is_open else f"{count_noun(len(reviewers), 'people')}{names}"
        by = f"{who}; it is not verified that the names belong to different people"
    return f"{'to be ' if is_open else ''}reviewed by {by}"


def _agreement(profile: ReviewProfile, n_same: int, n_twice: int) -> str:
    if not n_twice:
        return "no record was seen twice"
    same = f"the same verdict both times on {n_same} of {count_noun(n_twice, 'records')}"
    if profile.people == 1:
        return f"{same}: intra-rater agreement of one person on a later day, not agreement of two people"
    return f"{same}, by two independent reviewers"


def pass_probability(n: int, rate: float, profile: ReviewProfile) -> float:
    """Probability that a sample of n from a process with this rate of serious defects passes their ceiling.

    Example:
        >>> round(pass_probability(17, 0.05, PROFILES["bootstrap"]), 2)
        0.42
    """
    return sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(profile.most(Ceiling.SERIOUS, n) + 1))


def latest_reviews(lines: Iterable[HumanReview]) -> dict[tuple[str, int], HumanReview]:
    """The review of each attempt at a record that holds: its last line. Attempts ascend."""
    latest = {(line.query_id, line.attempt): line for line in lines}
    return {key: latest[key] for key in sorted(latest)}


def unconfirmed_because(review: HumanReview, profile: ReviewProfile) -> str:
    """Why no second look confirms a decision, as the profile asks for; empty where one does."""
    if profile.people > 1:
        n = len(review.reviewers)
        return "" if n >= profile.people else f"{count_noun(n, 'reviewers')}, but {profile.people} required"
    if len(review.opinions) < 2:
        return "no second look"
    first, second = review.opinions[:2]
    if first.reviewer != second.reviewer:
        return (
            f"the first look is by {first.reviewer}, the second by {second.reviewer}: the profile requires one person"
        )
    between = datetime.fromisoformat(second.at) - datetime.fromisoformat(first.at)
    if between < timedelta(0):
        return "the first look was changed after the second"
    return "" if between >= LATER else f"the second look is {between} (h:mm:ss) after the first; {HOURS} required"


def assess(
    reviews: Iterable[HumanReview],
    sample: Sample,
    profile: ReviewProfile,
    earlier: Sequence[ReviewTally] = (),
    run: str = "",
) -> ReviewReport:
    """Judge a batch by its reviews. Ceilings are strict, and exact: counts are compared as fractions.

    Args:
        reviews: lines of `human_reviews.jsonl`; the last of a record holds.
        sample: of the batch.
        profile: of the review.
        earlier: samples of earlier batches, for the cumulative rate.
        run: name of its folder.
    """
    latest = latest_reviews(reviews)
    keys = {name: (name, sample.attempts.get(name, 1)) for name in sample.to_review}
    wanted = {name: latest[key] for name, key in keys.items() if key in latest}
    first = {name: review for (name, _), review in reversed(latest.items())}  # before anything was sent back
    sampled = [first[name] for name in sample.sampled if name in first]
    tally = _tally(sampled, sample)
    breached = tuple(each for each in Ceiling if profile.fails(each, tally.count(each), tally.n))
    unreviewed = tuple(name for name in sample.to_review if name not in wanted)
    unconfirmed = {name: why for name, each in wanted.items() if (why := unconfirmed_because(each, profile))}
    twice = [each.opinions for each in wanted.values() if len(each.opinions) > 1]
    missing = bool(unreviewed or unconfirmed)
    checked = [each for name, each in wanted.items() if SPOT_CHECK in sample.must_see.get(name, ())]
    reviewers = tuple(sorted({name for each in latest.values() for name in each.reviewers}))
    n_same = sum(len({opinion.verdict for opinion in each}) == 1 for each in twice)
    return ReviewReport(
        run=run,
        profile=profile.name,
        people=profile.people,
        outcome=ReviewOutcome.BREACHED
        if breached  # the number of the sample is fixed: what is missing cannot make it less
        else ReviewOutcome.INCOMPLETE
        if missing
        else ReviewOutcome.PASSED,
        tally=tally,
        cumulative=sum(earlier, tally),
        breached=breached,
        verdicts=_counts(Counter(each.verdict for each in sampled)),
        verdicts_must_see=_counts(Counter(wanted[name].verdict for name in sample.must_see if name in wanted)),
        dispositions=Counter(each.disposition for each in wanted.values()),
        n_edited=sum(bool(each.edits) for each in wanted.values()),
        unreviewed=unreviewed,
        unconfirmed=unconfirmed,
        reviewers=reviewers,
        reviewed_by=_reviewed_by(profile, reviewers, is_open=missing),
        n_twice=len(twice),
        n_same=n_same,
        agreement=_agreement(profile, n_same, len(twice)),
        n_spot_checked=len(checked),
        n_spot_failed=sum(_blames_narrative(each) for each in checked),
        characteristic=tuple(PassChance(rate, pass_probability(tally.n, rate, profile)) for rate in RATES),
        feedback=tuple(
            _feedback(each, sample.cells[name])
            for (name, _), each in latest.items()
            if each.failure_mode and name in sample.cells
        ),
        notes=tuple(_notes(sample, profile)),
    )


def _tally(reviews: Iterable[HumanReview], sample: Sample) -> ReviewTally:
    """Verdicts on the sample; its size is that of the whole sample, reviewed or not."""
    pairs = [(each.verdict, sample.cells[each.query_id][1]) for each in reviews]
    return ReviewTally(
        n=len(sample.sampled),
        serious=sum(verdict in {ReviewVerdict.MAJOR_ISSUE, ReviewVerdict.WRONG} for verdict, _ in pairs),
        minor=sum(verdict is ReviewVerdict.MINOR_ISSUE for verdict, _ in pairs),
        wrong_on_easy=pairs.count((ReviewVerdict.WRONG, "easy")),
        n_open=len(sample.sampled) - len(pairs),
    )


def _blames_narrative(review: HumanReview) -> bool:
    edited = any(edit.field == "canonical_narrative" for edit in review.edits)
    return edited or review.failure_mode is FailureMode.NARRATIVE


def _counts(found: Counter[ReviewVerdict]) -> dict[ReviewVerdict, int]:
    return {verdict: found[verdict] for verdict in ReviewVerdict}


def _feedback(review: HumanReview, cell: Cell) -> ReviewFeedback:
    return ReviewFeedback(
        query_id=review.query_id,
        task_type=cell[0],
        difficulty=cell[1],
        verdict=review.verdict,
        failure_mode=review.failure_mode or FailureMode.OTHER,
        reason=review.reason,
        hint=review.hint,
    )


def _notes(sample: Sample, profile: ReviewProfile) -> Iterable[str]:
    """Statements that go with the figures."""
    share = f"{100 * float(profile.share):g} % of {count_noun(sample.n_batch, 'records')} is {sample.n_by_share}"
    if profile.one_per_cell:
        share += f", one of each of {count_noun(sample.n_by_cells, 'cells')} is {sample.n_by_cells}: the larger number applies"
    yield f"{share}. Sampled from the {sample.n_unseen} records without a reason for review, seed {sample.seed}."
    if sample.must_see:
        yield (
            f"{len(sample.must_see)} more records must be reviewed. They are not part of the sample; rates are "
            "based only on the sample."
        )
    n = len(sample.sampled)
    if not n:
        yield "No sample: every record is reviewed, so no rate is estimated."
        return
    yield (
        f"In a sample of {n} the ceiling of serious defects allows {profile.most(Ceiling.SERIOUS, n)}. "
        "Upper bound and pass probabilities assume a simple random sample; one record of each cell gives "
        "small cells more weight."
    )
    if profile.batch is not None and sample.n_batch != profile.batch:
        yield f"The profile {profile.name} is meant for batches of {profile.batch}; this one has {sample.n_batch}."


def apply_edits(answer: OracleAnswer, review: HumanReview) -> OracleAnswer:
    """The answer with the edits of its review.

    Raises:
        InputError: an edit is of another text than the answer has.
    """
    values: dict[str, list[CitedFact] | str] = {}
    for edit in review.edits:
        if getattr(answer, edit.field) != edit.before:
            problem = f"{answer.query_id}: the edit of {edit.field} was made for another version of the answer"
            raise InputError(problem, hint="review the record again")
        values[edit.field] = edit.after
    return answer.model_copy(update=values)
