"""The facts of an answer: what it says about each statement of its label.

Rules come before the model, so that what needs no judgment is not asked:

- an answer that states the fact verbatim, as a sentence or a line of its own, supports it;
- an answer with not one word of the identifiers and paths that the fact names leaves it open: absent;
- an answer that holds nothing but facts and the narrative of the label makes none of the wrong statements.

The first two hold for facts that an answer must mention. A wrong statement can be made in any words, and is often quoted to
deny it: only a judge can tell.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cranfield.agents.answers.judge import Ballot, Judge, Vote, own_prompt
from cranfield.agents.protocol import Failure, FailureKind
from cranfield.base.errors import shorten
from cranfield.model.judging import Fact, Label

PROMPT = "fact-2"
_CODE = re.compile(r"`([^`\n]+)`")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:[./:#-]+\w+)*")
_TOKEN = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[^\W\d_][^\W\d_A-Z]*")
"""Parts of `CamelCase`."""
_MARKERS = re.compile(r"[`*\"']+")
_BLANKS = re.compile(r"[^\S\n]+")
_SHORT = 2
"""Words of so few letters (`is`, `db`) are in every text."""


class FactKind(StrEnum):
    """What a statement is to an answer."""

    MUST = "must_mention"
    MUST_NOT = "must_not_mention"


class FactVerdict(StrEnum):
    """What an answer says about a statement."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    ABSENT = "absent"


class DecidedBy(StrEnum):
    """How a verdict came about, or why there is none."""

    EMPTY = "empty"
    """The answer has no text."""
    VERBATIM = "verbatim"
    NO_WORD = "no_word"
    """The answer has not one word of the identifiers that the fact names."""
    NOTHING_ELSE = "nothing_else"
    """The answer holds nothing but facts and the narrative of the label."""
    VOTES = "votes"
    NO_JUDGE = "no_judge"
    """No verdict: there is no model to ask."""
    NO_MAJORITY = "no_majority"
    """No verdict: no majority of votes."""
    FAILED = "failed"
    """No verdict: votes without an answer of the model left no majority."""


@dataclass(frozen=True, slots=True)
class FactScore:
    """A statement, and what an answer says about it."""

    kind: FactKind
    number: int
    """1, 2, ... among the statements of its kind in the label."""
    fact: str
    verdict: FactVerdict | None
    by: DecidedBy
    ballot: Ballot | None = None

    @property
    def id(self) -> str:
        """`must_mention.2`: its place in the label."""
        return f"{self.kind}.{self.number}"

    @property
    def is_right(self) -> bool | None:
        """Whether the answer does as it must: mentions a fact, or does not make a wrong statement; None: no verdict."""
        if self.verdict is None:
            return None
        return (self.verdict is FactVerdict.SUPPORTED) == (self.kind is FactKind.MUST)


@dataclass(frozen=True, slots=True)
class FactsScore:
    """What an answer says about all statements of its label."""

    facts: tuple[FactScore, ...]

    def count(self, kind: FactKind, verdict: FactVerdict | None) -> int:
        """Statements of a kind with a verdict."""
        return sum(fact.kind is kind and fact.verdict is verdict for fact in self.facts)

    @property
    def correct(self) -> bool | None:
        """Whether every fact is mentioned and no wrong statement is made; None where that hangs on a missing verdict."""
        found = {fact.is_right for fact in self.facts}
        return False if False in found else None if None in found else True

    @property
    def score(self) -> float:
        """In [0, 1]: facts mentioned, over all facts and the wrong statements that the answer makes.

            supported / (n_must_mention + asserted)

        A wrong statement costs as much as a fact that is missing; a statement without a verdict counts as not made.
        """
        n_must = sum(fact.kind is FactKind.MUST for fact in self.facts)
        asserted = self.count(FactKind.MUST_NOT, FactVerdict.SUPPORTED)
        if not n_must:
            return 0.0 if asserted else 1.0
        return self.count(FactKind.MUST, FactVerdict.SUPPORTED) / (n_must + asserted)


class FactVote(BaseModel):
    """The vote of a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    quote: str
    """The passage of the answer that decides; empty where none does."""
    verdict: Literal["supported", "contradicted", "absent", "unclear"]
    reason: str = ""


async def score_facts(text: str, label: Label, judge: Judge | None = None) -> FactsScore | None:
    """What an answer says about the statements of a label.

    A verdict is that of more than half of the votes. A judge may abstain; a vote for `supported` or `contradicted` whose
    quote is not in the answer is none.

    Args:
        text: of the answer; who gave it is not known here.
        label: with the statements.
        judge: None: what the rules do not decide has no verdict.

    Returns:
        None where the label has no statement.
    """
    ruled = rule_facts(text, label)
    if judge is not None:
        open_facts = (_judged(fact, text, judge) if fact.by is DecidedBy.NO_JUDGE else _same(fact) for fact in ruled)
        ruled = await asyncio.gather(*open_facts)
    return FactsScore(tuple(ruled)) if ruled else None


def rule_facts(text: str, label: Label) -> list[FactScore]:
    """What the rules decide, without a model."""
    is_empty = not text.strip()
    plain = _plain(text)
    words = set(_words(text))
    # Whether words are left of an answer without some statements, the longest taken away first.
    statements = [*(fact.text for fact in label.must_mention), label.narrative]
    rest = _folded(text)
    for statement in sorted((_folded(statement).rstrip(".!") for statement in statements), key=len, reverse=True):
        if statement:
            rest = rest.replace(statement, " ")
    has_more = any(letter.isalpha() for letter in rest)

    def decide(kind: FactKind, fact: Fact) -> tuple[FactVerdict | None, DecidedBy]:
        if is_empty:
            return FactVerdict.ABSENT, DecidedBy.EMPTY
        if kind is FactKind.MUST_NOT:
            return (None, DecidedBy.NO_JUDGE) if has_more else (FactVerdict.ABSENT, DecidedBy.NOTHING_ELSE)
        if _verbatim(fact.text).search(plain):
            return FactVerdict.SUPPORTED, DecidedBy.VERBATIM
        named = _identifier_words(fact.text)
        return (FactVerdict.ABSENT, DecidedBy.NO_WORD) if named and not named & words else (None, DecidedBy.NO_JUDGE)

    both = ((FactKind.MUST, label.must_mention), (FactKind.MUST_NOT, label.must_not_mention))
    return [
        FactScore(kind, number, fact.text, *decide(kind, fact))
        for kind, facts in both
        for number, fact in enumerate(facts, start=1)
    ]


async def _same(fact: FactScore) -> FactScore:
    return fact


async def _judged(fact: FactScore, text: str, judge: Judge) -> FactScore:
    prompt, plain = own_prompt(PROMPT), _folded(text)

    def read(given: FactVote) -> Vote:
        vote = Vote(None if given.verdict == "unclear" else given.verdict, given.quote, given.reason)
        quote = _folded(given.quote)
        if given.verdict in ("absent", "unclear") or (quote and quote in plain):
            return vote
        message = f"`quote` of the verdict {given.verdict} is not in the answer"
        return Vote(None, given.quote, given.reason, Failure(FailureKind.BAD_OUTPUT, message, got=shorten(given.quote)))

    ballot = await judge.vote(prompt, {"statement": fact.fact, "answer": text}, FactVote, read)
    if ballot.verdict is None:
        why = DecidedBy.FAILED if ballot.failures else DecidedBy.NO_MAJORITY
        return replace(fact, by=why, ballot=ballot)
    return replace(fact, verdict=FactVerdict(ballot.verdict), by=DecidedBy.VOTES, ballot=ballot)


def _plain(text: str) -> str:
    """Without marks of code and emphasis, in one case, with single blanks; lines stay."""
    return _BLANKS.sub(" ", _MARKERS.sub("", text)).casefold().strip()


def _folded(text: str) -> str:
    """The same on one line."""
    return " ".join(_plain(text).split())


def _verbatim(statement: str) -> re.Pattern[str]:
    """The statement as a sentence or a line of its own."""
    words = re.escape(_folded(statement).rstrip(".!"))
    return re.compile(rf"(?:^|\n|(?<=[.!?]) )[ \d.)•+-]{{0,20}}{words}(?:[.!]*(?= *(?:\n|$))|[.!]+(?= ))")


def _words(text: str) -> Iterable[str]:
    """Words of prose, whole, and the parts of `snake_case` and `CamelCase`, in one case."""
    for token in _TOKEN.findall(text):
        yield from (word.casefold() for word in {token, *_HUMP.findall(token)} if len(word) > _SHORT)


def _identifier_words(statement: str) -> set[str]:
    """Words of the identifiers and paths of a statement: what stands in backticks, `snake_case`, `CamelCase`, paths, dots."""
    code = _CODE.findall(statement)
    names = [name for name in _IDENTIFIER.findall(_CODE.sub(" ", statement)) if _is_identifier(name)]
    return {word for name in (*code, *names) for word in _words(name)}


def _is_identifier(name: str) -> bool:
    has_hump = any(letter.isupper() for letter in name[1:]) and any(letter.islower() for letter in name)
    return has_hump or any(mark in name for mark in "_./:#")


NARRATIVE_PROMPT = "answer-narrative-1"


class NarrativeRating(StrEnum):
    """How far an answer agrees with the canonical one; only `equivalent` passes."""

    EQUIVALENT = "equivalent"
    MINOR_DIVERGENCE = "minor_divergence"
    SIGNIFICANT_DIVERGENCE = "significant_divergence"


class NarrativeVote(BaseModel):
    """The vote of a judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rating: Literal["equivalent", "minor_divergence", "significant_divergence", "unclear"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NarrativeScore:
    """The rating of the majority."""

    rating: NarrativeRating | None
    """None: no majority of votes."""
    ballot: Ballot


async def score_narrative(text: str, question: str, reference: str, judge: Judge) -> NarrativeScore:
    """Rate an answer against the canonical narrative.

    Args:
        text: of the answer; who gave it is not known here.
        question: text of the query.
        reference: the canonical narrative.
        judge: asked several times.
    """

    def read(given: NarrativeVote) -> Vote:
        return Vote(None if given.rating == "unclear" else given.rating, reason=given.reason)

    parts = {"question": question, "reference": reference, "answer": text}
    ballot = await judge.vote(own_prompt(NARRATIVE_PROMPT), parts, NarrativeVote, read)
    return NarrativeScore(None if ballot.verdict is None else NarrativeRating(ballot.verdict), ballot)
