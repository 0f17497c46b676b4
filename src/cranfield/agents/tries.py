"""Tries of an agent whose answers are kept: one whose last reply could not be read is made again by the next call.

Each try is a conversation of its own, and its answers are kept under its number.
"""

from __future__ import annotations

from itertools import count

from cranfield.agents.kept import Kept
from cranfield.agents.loop import AgentTask, Toolset, Transcript, run_agent
from cranfield.agents.protocol import UNREADABLE, Backend, FailureKind


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
