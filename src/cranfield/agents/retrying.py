"""Retries of requests that may succeed later, by the one policy of retries; and the pace of requests.

A reply of a model that does not fit its schema is not repeated here: it is sent back with what is wrong (`loop`, `answers.judge`).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import count

from cranfield.agents.loop import AgentTask, Toolset, Transcript, run_agent
from cranfield.agents.protocol import TRANSIENT, UNREADABLE, Backend, FailureKind, ModelAnswer, Request
from cranfield.agents.recording import Kept
from cranfield.base.concurrency.retry import DEFAULT_ATTEMPTS, retry_policy

DEFAULT_BACKOFF_S = 1.0


class Retrying:
    """A backend that repeats requests that were limited, timed out, lost or garbled, or failed on the server (not other 4xx)."""

    def __init__(
        self, backend: Backend, *, attempts: int = DEFAULT_ATTEMPTS, backoff_s: float = DEFAULT_BACKOFF_S
    ) -> None:
        self.backend = backend
        self._policy = retry_policy(
            attempts,
            backoff_s,
            may_retry=lambda answer: answer.failure is not None and answer.failure.kind in TRANSIENT,
            requested_wait_s=lambda answer: answer.failure.retry_after_s,
        )

    async def ask(self, request: Request) -> ModelAnswer:
        """The last answer, with the number of all requests in its usage, and in the message of a failure."""
        from tenacity import AsyncRetrying

        earlier: list[ModelAnswer] = []

        async def attempt() -> ModelAnswer:
            earlier.append(await self.backend.ask(request))
            return earlier[-1]

        answer: ModelAnswer = await AsyncRetrying(**self._policy)(attempt)
        failure = answer.failure
        if failure is not None and len(earlier) > 1:
            failure = replace(failure, message=f"{failure.message} ({len(earlier)} attempts)")
        usages = [each.usage for each in earlier]
        usage = replace(  # attempts before the last one used nothing, or it is not known what
            answer.usage,
            requests=sum(usage.requests for usage in usages),
            unmeasured=sum(usage.unmeasured for usage in usages),
        )
        return replace(answer, failure=failure, usage=usage, wall_s=sum(each.wall_s for each in earlier))


class Paced:
    """A backend that starts its requests evenly, so many a minute."""

    def __init__(self, backend: Backend, per_minute: float) -> None:
        self.backend = backend
        self._every_s = 60 / per_minute
        self._next = 0.0

    async def ask(self, request: Request) -> ModelAnswer:
        """Wait for the turn of the request, and send it."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._every_s
        await asyncio.sleep(turn - now)
        return await self.backend.ask(request)


def is_unreadable(transcript: Transcript) -> bool:
    """Whether the agent ended with a reply that cannot be used, after all corrections."""
    return transcript.failure is not None and transcript.failure.kind in UNREADABLE


def answers_of_try(kept: Kept, number: int) -> Backend:
    """The kept answers of a try, and what is asked for it: 0, 1, ..."""
    return kept if number == 0 else kept.salted(f"try {number}")


async def run_kept(kept: Kept, task: AgentTask, toolset: Toolset) -> list[Transcript]:
    """Run an agent, over kept answers until there is a try that can be read or that is new.

    Returns:
        The tries: all but the last were kept and could not be read.
    """
    found: list[Transcript] = []
    for number in count():
        transcript = await run_agent(answers_of_try(kept, number), task, toolset)
        lacks = transcript.failure is not None and transcript.failure.kind is FailureKind.NOT_RECORDED
        if found and lacks and transcript.turns == 1:  # a replay has no further try
            break
        found.append(transcript)
        if not is_unreadable(transcript) or transcript.n_sent:
            break
    return found
