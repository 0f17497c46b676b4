"""Answers scored against the labels of a test set: structure first, then facts, and the narrative of complete answers.

Scores are blind: an answer goes in with the id of its query and nothing else. What a judge reads of it is redacted by the
patterns of the caller, and answers are taken in an order that a seed decides, under ids that say nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from cranfield.agents.answers.facts import (
    FactKind,
    FactsScore,
    FactVerdict,
    NarrativeRating,
    NarrativeScore,
    score_facts,
    score_narrative,
)
from cranfield.agents.answers.judge import Ballot, Judge, JudgeSettings
from cranfield.agents.answers.rows import (
    AnswerCost,
    Answered,
    AnswerRow,
    ExpectedAnswer,
    expected_places,
    fact_rows,
    vote_rows,
)
from cranfield.agents.answers.structure import StructureScore, score_structure
from cranfield.agents.protocol import Failure
from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.base.patterns import Expression, PatternError, compile_pattern, search_limit
from cranfield.model import MatchingRules, TestSet
from cranfield.model.judging import Fact, Label
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.confusion import wilson_interval
from cranfield.stats.describe import describe, t_interval

REDACTED = "[redacted]"
Redact = Callable[[str], str]


class NoNarrative(StrEnum):
    """Why the narrative of an answer is not rated."""

    NO_REFERENCE = "no_reference"
    """The label has no narrative."""
    STRUCTURE = "structure"
    """The structure of the answer is not complete, or its label expects none."""
    NO_JUDGE = "no_judge"
    NO_MAJORITY = "no_majority"
    """No majority of votes."""
    FAILED = "failed"
    """Votes without an answer of the model left no majority."""


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """The scores of an answer."""

    query_id: str
    blind_id: str
    """Under which it was judged."""
    is_answered: bool
    """False: there is no answer, which is scored as an empty one."""
    structure: StructureScore | None
    """None: the label expects no entity, file or lines."""
    facts: FactsScore | None
    """None: the label has no facts."""
    narrative: NarrativeScore | NoNarrative

    @property
    def structure_correct(self) -> bool | None:
        """Whether everything expected is named; None where nothing is expected."""
        return None if self.structure is None else self.structure.complete

    @property
    def facts_correct(self) -> bool | None:
        """Whether all facts are right; None where the label has none, or a verdict is missing."""
        return None if self.facts is None else self.facts.correct

    @property
    def facts_score(self) -> float | None:
        """None where the label has no facts, or a verdict is missing."""
        is_open = self.facts is None or any(fact.verdict is None for fact in self.facts.facts)
        return None if is_open or self.facts is None else self.facts.score

    @property
    def rating(self) -> NarrativeRating | None:
        """Rating of the narrative; None where it is not rated, or has no majority."""
        return self.narrative.rating if isinstance(self.narrative, NarrativeScore) else None

    @property
    def no_rating(self) -> NoNarrative | None:
        """Why the narrative has no rating; None where it has one."""
        if isinstance(self.narrative, NoNarrative):
            return self.narrative
        if self.narrative.rating is not None:
            return None
        return NoNarrative.FAILED if self.narrative.ballot.failures else NoNarrative.NO_MAJORITY


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over the queries that have a value."""

    name: str
    mean: float | None
    ci_low: float | None
    """Lower end of the 95 % interval: Wilson's for a share, Student's t else; None under two queries."""
    ci_high: float | None
    n: int
    n_without: int
    """Queries without a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredQuery:
    """The answer to a query, scored."""

    row: AnswerRow
    blind_id: str
    """Under which it was judged."""
    structure: StructureScore | None
    """None: the label expects no entity, file or lines."""
    n_must: int
    """Facts that the answer must have."""
    n_mentioned: int
    n_wrong: int
    """Wrong statements that it makes."""
    why_not: NoNarrative | None
    """Why the narrative has no rating; None where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersReport(Record):
    """What `cranfield answers score` shows."""

    testset: TestSetRecord
    labels_digest: str
    means: tuple[Mean, ...]
    judge: JudgeSettings | None
    queries: tuple[ScoredQuery, ...]
    unlabelled: tuple[str, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class ScoredAnswers:
    """The answers to the labelled queries of a test set, scored."""

    scores: tuple[AnswerScore, ...]
    """In the order of the test set."""
    unknown: tuple[str, ...]
    """Queries of answers that the test set does not have: not scored."""
    unlabelled: tuple[str, ...]
    """Queries of the test set that expect nothing and have no facts: not scored."""
    judge: Judge | None
    costs: Mapping[str, AnswerCost] = field(default_factory=dict)
    """Query id to what its answer cost, where that is known."""

    @property
    def missing_votes(self) -> list[tuple[str, Failure]]:
        """Query and statement of each vote that there is not, and why."""
        ballots: list[tuple[str, Ballot | None]] = []
        for score in self.scores:
            facts = () if score.facts is None else score.facts.facts
            ballots += [(f"{score.query_id}, {fact.id}", fact.ballot) for fact in facts]
            if isinstance(score.narrative, NarrativeScore):
                ballots.append((f"{score.query_id}, narrative", score.narrative.ballot))
        return [(place, failure) for place, ballot in ballots if ballot is not None for failure in ballot.failures]

    @property
    def means(self) -> tuple[Mean, ...]:
        """The quantities of a report."""
        scores = self.scores
        return (
            _share("structure complete", [score.structure_correct for score in scores]),
            _mean("structure score", [score.structure.score if score.structure else None for score in scores]),
            _share("facts correct", [score.facts_correct for score in scores]),
            _mean("facts score", [score.facts_score for score in scores]),
            _share("narrative equivalent", [_is_equivalent(score.rating) for score in scores]),
        )

    def result(self, testset: TestSet) -> AnswersReport:
        """The record of it, for the test set with the labels."""
        return AnswersReport(
            testset=TestSetRecord.of(testset),
            labels_digest=testset.labels_digest,
            means=self.means,
            judge=None if self.judge is None else self.judge.settings,
            queries=tuple(
                ScoredQuery(
                    row=row,
                    blind_id=score.blind_id,
                    structure=score.structure,
                    n_must=sum(fact.kind is FactKind.MUST for fact in facts.facts),
                    n_mentioned=facts.count(FactKind.MUST, FactVerdict.SUPPORTED),
                    n_wrong=facts.count(FactKind.MUST_NOT, FactVerdict.SUPPORTED),
                    why_not=score.no_rating,
                )
                for score, row in zip(self.scores, self.rows(), strict=True)
                for facts in [score.facts or FactsScore(())]
            ),
            unlabelled=self.unlabelled,
            unknown=self.unknown,
        )

    def rows(self) -> list[AnswerRow]:
        """A row a query, for other programs."""
        unknown = AnswerCost()
        return [
            AnswerRow(
                query_id=score.query_id,
                answered=score.is_answered,
                structure_correct=score.structure_correct,
                structure_score=score.structure.score if score.structure else None,
                facts_correct=score.facts_correct,
                facts_score=score.facts_score,
                narrative=score.rating,
                facts=fact_rows(score.facts),
                narrative_votes=vote_rows(score.narrative.ballot)
                if isinstance(score.narrative, NarrativeScore)
                else (),
                **self.costs.get(score.query_id, unknown).model_dump(),
            )
            for score in self.scores
        ]


@dataclass(frozen=True, slots=True)
class BlindAnswer:
    """What is known of an answer when it is scored."""

    query_id: str
    blind_id: str
    question: str
    answered: Answered
    text: str
    """Text of the answer, redacted."""
    expected: ExpectedAnswer
    label: Label
    """Redacted."""
    is_answered: bool


@dataclass(frozen=True)
class BlindAnswers:
    """Answers to labelled queries, ready to be scored."""

    answers: tuple[BlindAnswer, ...]
    """In the order in which they are judged."""
    testset: TestSet
    unknown: tuple[str, ...]
    unlabelled: tuple[str, ...]


def blind_answers(
    testset: TestSet, answers: Mapping[str, Answered], *, redact: Redact = str, seed: int = 0
) -> BlindAnswers:
    """Prepare answers to be scored.

    Args:
        testset: with labels, or with targets alone.
        answers: query id to answer. A labelled query without one is scored as if its answer were empty.
        redact: applied to all that a judge reads, label included.
        seed: of the order in which answers are judged, and of their ids.
    """
    found = []
    for query_id in testset.query_ids:
        item = blind_answer(testset, query_id, answers.get(query_id), redact=redact, blind_id=_blind_id(seed, query_id))
        if item.expected or item.label.must_mention or item.label.must_not_mention:
            found.append(item)
    scored = {item.query_id for item in found}
    return BlindAnswers(
        tuple(sorted(found, key=lambda item: item.blind_id)),
        testset,
        tuple(query_id for query_id in answers if query_id not in testset.by_id),
        tuple(query_id for query_id in testset.query_ids if query_id not in scored),
    )


def blind_answer(
    testset: TestSet, query_id: str, answered: Answered | None, *, redact: Redact, blind_id: str
) -> BlindAnswer:
    """Prepare one answer; None is scored as an empty one."""
    given = answered or Answered()
    return BlindAnswer(
        query_id,
        blind_id,
        redact(testset.by_id[query_id].text),
        given,
        redact(given.text),
        expected_places(testset, query_id),
        _redacted(testset.labels.get(query_id, Label()), redact),
        answered is not None,
    )


async def score_answers(blind: BlindAnswers, judge: Judge | None = None) -> ScoredAnswers:
    """Score answers against the labels of a test set.

    Args:
        blind: from `blind_answers`.
        judge: None: structure alone, and the facts that rules decide.
    """
    rules = blind.testset.matching
    scores = await asyncio.gather(*(score_answer(item, rules, judge) for item in blind.answers))
    place = {query_id: number for number, query_id in enumerate(blind.testset.query_ids)}
    ordered = sorted(scores, key=lambda score: place[score.query_id])
    return ScoredAnswers(tuple(ordered), blind.unknown, blind.unlabelled, judge)


async def score_answer(
    item: BlindAnswer, rules: MatchingRules, judge: Judge | None, *, with_narrative: bool = True
) -> AnswerScore:
    """Score one answer.

    Args:
        item: from `blind_answer`.
        rules: how places are compared.
        judge: None: no model is asked.
        with_narrative: whether the narrative is rated where the structure is complete.
    """
    found = score_structure(item.answered, item.expected, rules)
    facts = await score_facts(item.text, item.label, judge)
    narrative: NarrativeScore | NoNarrative
    if not item.label.narrative.strip():
        narrative = NoNarrative.NO_REFERENCE
    elif not found.complete:
        narrative = NoNarrative.STRUCTURE
    elif judge is None or not with_narrative:
        narrative = NoNarrative.NO_JUDGE
    else:
        narrative = await score_narrative(item.text, item.question, item.label.narrative, judge)
    structure = found if item.expected else None
    return AnswerScore(item.query_id, item.blind_id, item.is_answered, structure, facts, narrative)


def redaction(patterns: Sequence[str]) -> Redact:
    """A function that replaces what regular expressions find, such as names of products and paths of a machine.

    Raises:
        UsageError: with every expression that is none.
    """
    problems: list[Problem] = []
    for pattern in patterns:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            problems.append(Problem(f"not a regular expression: {error}", got=shorten(pattern)))
    if problems:
        raise UsageError(problems)
    expressions = [Expression(pattern) for pattern in patterns]

    def redact(text: str) -> str:
        with search_limit("the expressions to redact"):
            for expression in expressions:
                text = expression.replaced_in(text, REDACTED)
        return text

    return redact


def _redacted(label: Label, redact: Redact) -> Label:
    def facts(given: Iterable[Fact]) -> tuple[Fact, ...]:
        return tuple(replace(fact, text=redact(fact.text)) for fact in given)

    return replace(
        label,
        must_mention=facts(label.must_mention),
        must_not_mention=facts(label.must_not_mention),
        narrative=redact(label.narrative),
    )


def _blind_id(seed: int, query_id: str) -> str:
    return hashlib.sha256(f"{seed}\0{query_id}".encode("utf-8", "replace")).hexdigest()[:12]


def _is_equivalent(rating: NarrativeRating | None) -> bool | None:
    return None if rating is None else rating is NarrativeRating.EQUIVALENT


def _share(name: str, values: Sequence[bool | None]) -> Mean:
    known = [value for value in values if value is not None]
    n, n_without = len(known), len(values) - len(known)
    if not n:
        return Mean(name, None, None, None, 0, n_without)
    return Mean(name, sum(known) / n, *wilson_interval(sum(known), n), n, n_without)


def _mean(name: str, values: Sequence[float | None]) -> Mean:
    known = [value for value in values if value is not None]
    n_without = len(values) - len(known)
    if not known:
        return Mean(name, None, None, None, 0, n_without)
    low, high = t_interval(known) or (None, None)
    return Mean(name, describe(known).mean, low, high, len(known), n_without)
