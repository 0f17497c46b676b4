"""A judge: a model that is asked several times, and the verdict of the majority.

Every vote is a request of its own, with a seed of its own. A reply that is no vote is sent back with what is wrong, as often as
the settings allow; what is still none then is asked again by the next call, and counts as an abstention where that has none
either: a judge that never gives a vote does not hold up a result. A request holds the material and nothing of where it came from,
so that the same statement about the same answer is the same request in any arm of an experiment: where answers of models are
kept (`agents.kept`), it is asked once for all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from itertools import count
from typing import TypeVar

from pydantic import BaseModel

from cranfield.agents.budget import PriceList, Spent
from cranfield.agents.loop import Prompt, clean, correction, nonce
from cranfield.agents.protocol import (
    UNREADABLE,
    Backend,
    Failure,
    FailureKind,
    Message,
    ModelAnswer,
    OutputMode,
    Request,
    Sampling,
    Usage,
)
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS
from cranfield.base.errors import ConfigError, UsageError
from cranfield.base.words import count_noun
from cranfield.formats.io.validation import load_model

AnyVote = TypeVar("AnyVote", bound=BaseModel)
MAX_ROUNDS = 2
"""Calls with all their replies to a vote, after which it counts as an abstention."""
FAILURES_IN_A_ROW = 5
"""After so many calls without an answer, all retries included, the others would fail too."""
HOPELESS = frozenset({401, 403, 404})
"""HTTP status that every other call would have."""
OF_THE_VOTE = UNREADABLE | {FailureKind.FILTERED}
"""Failures that say nothing of the other calls."""
REPLY_CHARS = 4_000
"""Most characters of a reply that is sent back."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How a model is asked."""

    model: str
    """`provider:name`."""
    votes: int = 3
    """Odd, so that two verdicts cannot have half each."""
    temperature: float | None = 0.7
    seed: int = 0
    """Seed of the first vote; each later vote has the next seed."""
    output_mode: OutputMode = "native"
    concurrency: int = 4
    max_tokens: int = 1_000
    timeout_s: float = 120.0
    attempts: int = DEFAULT_ATTEMPTS
    """Replies to each vote in a call, the first included, where they are no votes."""

    def __post_init__(self) -> None:
        """Refuse a number of votes that can be a tie.

        Raises:
            UsageError: it is even, or under 1.
        """
        if self.votes < 1 or self.votes % 2 == 0:
            raise UsageError("the number of votes must allow a majority", got=str(self.votes), expected="1, 3, 5, ...")


@dataclass(frozen=True, slots=True)
class Vote:
    """A vote, or why there is none. Its texts are those of a model: of any content and length."""

    verdict: str | None = None
    """None: the judge could not decide, or there is no vote."""
    quote: str = ""
    reason: str = ""
    failure: Failure | None = None
    """There is no vote."""
    is_final: bool = False
    """No call asks for the vote again: it counts as an abstention."""
    n_replies: int = 1
    """To the vote, those that were kept from an earlier call included."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes on one question."""

    n: int
    """Votes that a majority is of. Fewer are asked where the majority is reached before."""
    cast: tuple[Vote, ...]
    """In their order, those that abstain or failed included."""

    @property
    def votes(self) -> Mapping[str, int]:
        """Verdict to votes for it."""
        return Counter(vote.verdict for vote in self.cast if vote.verdict is not None)

    @property
    def n_abstained(self) -> int:
        """Votes of a judge that could not decide, and those that it never gave."""
        return sum(vote.verdict is None and (vote.failure is None or vote.is_final) for vote in self.cast)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Failures of votes that are missing and that another call may get."""
        return tuple(vote.failure for vote in self.cast if vote.failure is not None and not vote.is_final)

    @property
    def verdict(self) -> str | None:
        """The verdict of more than half of all votes, those that abstained or failed included; None where there is none."""
        return next((verdict for verdict, n in self.votes.items() if 2 * n > self.n), None)


@dataclass
class Judge:
    """Asks a model. On one event loop."""

    backend: Backend
    settings: JudgeSettings
    n_calls: int = 0
    """Requests that were sent or taken from kept answers."""
    stopped: Failure | None = None
    """Why no more requests are sent: the budget is used up, or calls keep failing."""
    unread: dict[tuple[str, int], Usage] = field(default_factory=dict)
    """Usage of the replies of this call that were no votes."""
    never: set[str] = field(default_factory=set)
    """Digests of the first requests of votes that the judge never gave."""
    _calls: dict[tuple[str, int], asyncio.Future[ModelAnswer]] = field(default_factory=dict)
    _in_a_row: int = 0

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.settings.concurrency)

    async def vote(
        self,
        prompt: Prompt,
        parts: Mapping[str, str],
        output: type[AnyVote],
        read: Callable[[AnyVote], Vote],
    ) -> Ballot:
        """Ask until a verdict has the majority, or all votes are given.

        Args:
            prompt: filled with the parts.
            parts: name to text: untrusted material, which stands between delimiters.
            output: schema of a vote.
            read: a reply as a vote; with a failure where it breaks a rule of the prompt.
        """

        def read_vote(answer: ModelAnswer) -> Vote:
            if answer.failure is not None:
                return Vote(failure=answer.failure)
            if not isinstance(answer.output, output):
                return Vote(failure=Failure(FailureKind.BAD_OUTPUT, "the model gave no vote"))
            return read(answer.output)

        ballot = Ballot(self.settings.votes, ())
        for number in range(ballot.n):
            vote = await self._vote(self._request(prompt, parts, output, number), read_vote)
            ballot = Ballot(ballot.n, (*ballot.cast, vote))
            if ballot.verdict is not None:
                break
        return ballot

    def unread_spent(self, prices: PriceList) -> Spent:
        """What the replies of this call took that were no votes."""
        spent = Spent()
        for usage in self.unread.values():
            spent.add(Spent.of(prices, self.settings.model, usage))
        return spent

    async def _vote(self, first: Request, read: Callable[[ModelAnswer], Vote]) -> Vote:
        """The first reply that is a vote; each that is none is sent back, so many in this call and in all calls.

        A refusal, which is not argued with, ends the replies of a call.
        """
        attempts = self.settings.attempts
        request, n_sent, n_lost = first, 0, 0
        for number in count(1):
            answer = await self._answer(request, number)
            n_sent += not answer.is_kept
            vote = read(answer)
            failure = vote.failure
            if failure is None or failure.kind not in OF_THE_VOTE:
                return replace(vote, n_replies=number)
            if not answer.is_kept:
                self.unread[request.digest, number] = answer.usage
            is_refused = failure.kind not in UNREADABLE
            n_lost += attempts if is_refused else 1
            if n_lost >= MAX_ROUNDS * attempts:
                self.never.add(first.digest)
                message = f"{count_noun(number, 'replies')} without a vote (counted as an abstention); the last: {failure.message}"
                return replace(vote, failure=replace(failure, message=message), is_final=True, n_replies=number)
            if not answer.is_kept and (is_refused or n_sent >= attempts):
                break
            if is_refused:
                continue
            reply = (Message("assistant", answer.text[:REPLY_CHARS]),) if answer.text.strip() else ()
            request = replace(first, messages=(*first.messages, *reply, Message("user", correction(failure))))
        return replace(vote, n_replies=number)

    def _request(self, prompt: Prompt, parts: Mapping[str, str], output: type[BaseModel], number: int) -> Request:
        settings = self.settings
        texts = {name: clean(text) for name, text in parts.items()}
        system, user = prompt.fill({**texts, "nonce": nonce(prompt, list(texts.values()))})
        return Request(
            model=settings.model,
            system=system,
            messages=(Message("user", user),),
            output=output,
            sampling=Sampling(settings.temperature, seed=settings.seed + number, max_tokens=settings.max_tokens),
            output_mode=settings.output_mode,
            timeout_s=settings.timeout_s,
        )

    async def _answer(self, request: Request, number: int) -> ModelAnswer:
        """The answer to a request; of one that was sent before, as the same reply of a vote, the same."""
        key = request.digest, number
        if (known := self._calls.get(key)) is None:
            known = self._calls[key] = asyncio.ensure_future(self._ask(request))
        return await known

    async def _ask(self, request: Request) -> ModelAnswer:
        async with self._free:
            if self.stopped is not None:
                return ModelAnswer(failure=self.stopped)
            self.n_calls += 1
            answer = await self.backend.ask(request)
        failure = answer.failure
        if failure is None or failure.kind in OF_THE_VOTE:
            self._in_a_row = 0
            return answer
        self._in_a_row += 1
        ends = failure.kind in (FailureKind.BUDGET, FailureKind.NOT_RECORDED) or failure.status in HOPELESS
        if ends or self._in_a_row >= FAILURES_IN_A_ROW:
            self.stopped = failure
        return answer


@cache
def own_prompt(label: str) -> Prompt:
    """A prompt of the package: `fact-2`."""
    with as_file(files(__package__) / "prompts" / f"{label}.yaml") as path:
        return load_model(path, Prompt, ConfigError)
