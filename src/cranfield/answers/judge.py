"""A judge: a model that is asked several times, and the verdict of the majority.

Every vote is a request of its own, with a seed of its own. A request holds the material and nothing of where it came from,
so that the same statement about the same answer is the same request in any arm of an experiment: where answers of models are
kept (`agents.kept`), it is asked once for all.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files

from pydantic import BaseModel

from cranfield.agents.prompt import Prompt, clean, nonce
from cranfield.agents.protocol import Answer, Backend, Failure, FailureKind, Message, OutputMode, Request, Sampling
from cranfield.errors import ConfigError, UsageError
from cranfield.formats.io.validation import load_model

FAILURES_IN_A_ROW = 5
"""After so many calls without an answer, all retries included, the others would fail too."""
HOPELESS = frozenset({401, 403, 404})
"""HTTP status that every other call would have."""
OF_THE_VOTE = frozenset({FailureKind.BAD_OUTPUT, FailureKind.FILTERED, FailureKind.TRUNCATED})
"""Failures that say nothing of the other calls."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How a model is asked."""

    model: str
    """`provider:name`."""
    votes: int = 3
    """Odd, so that two verdicts cannot have half each."""
    temperature: float | None = 0.7
    seed: int = 0
    """Of the first vote; each vote after it has the next one."""
    output_mode: OutputMode = "native"
    concurrency: int = 4
    max_tokens: int = 1_000
    timeout_s: float = 120.0

    def __post_init__(self) -> None:
        """Refuse a number of votes that can be a tie.

        Raises:
            UsageError: it is even, or under 1.
        """
        if self.votes < 1 or self.votes % 2 == 0:
            raise UsageError("no number of votes with a majority", got=str(self.votes), expected="1, 3, 5, ...")


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes on one question."""

    n: int
    """Votes that a majority is of. Fewer are asked where the majority is reached before."""
    votes: Mapping[str, int]
    """Verdict to votes for it."""
    n_abstained: int = 0
    """The judge could not decide, or its quote is not in the answer."""
    failures: tuple[Failure, ...] = ()
    """Votes without an answer."""

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
    _calls: dict[str, asyncio.Future[Answer]] = field(default_factory=dict)
    _in_a_row: int = 0

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.settings.concurrency)

    async def vote(
        self,
        prompt: Prompt,
        parts: Mapping[str, str],
        output: type[BaseModel],
        read: Callable[[BaseModel], str | None],
    ) -> Ballot:
        """Ask until a verdict has the majority, or all votes are given.

        Args:
            prompt: filled with the parts.
            parts: name to text: untrusted material, which stands between delimiters.
            output: schema of a vote.
            read: the verdict of a vote; None where it abstains.
        """
        votes: Counter[str] = Counter()
        failures: list[Failure] = []
        n, n_abstained = self.settings.votes, 0
        for number in range(n):
            answer = await self._answer(self._request(prompt, parts, output, number))
            if answer.failure is not None or answer.output is None:
                failures.append(answer.failure or Failure(FailureKind.BAD_OUTPUT, "the model gave no vote"))
            elif (verdict := read(answer.output)) is None:
                n_abstained += 1
            else:
                votes[verdict] += 1
            if any(2 * given > n for given in votes.values()):
                break
        return Ballot(n, dict(votes), n_abstained, tuple(failures))

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

    async def _answer(self, request: Request) -> Answer:
        """The answer to a request; of one that was sent before, the same."""
        digest = request.digest
        if (known := self._calls.get(digest)) is None:
            known = self._calls[digest] = asyncio.ensure_future(self._ask(request))
        return await known

    async def _ask(self, request: Request) -> Answer:
        async with self._free:
            if self.stopped is not None:
                return Answer(failure=self.stopped)
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
    """A prompt of the package: `fact-1`."""
    with as_file(files(__package__) / "prompts" / f"{label}.yaml") as path:
        return load_model(path, Prompt, ConfigError)
