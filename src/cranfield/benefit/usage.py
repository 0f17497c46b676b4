"""The usage of a run in its canonical form: tokens by kind, requests, calls of tools, times, money. What is not known is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from cranfield.agents.budget import TYPICAL_BYTES, PriceList
from cranfield.agents.loop import Transcript
from cranfield.agents.protocol import Usage
from cranfield.base.words import printable
from cranfield.benefit.records import CellUsage, ToolCount

_NAME_CHARS = 100
"""Most characters of the name of a tool, which a model may have invented."""


def cell_usage(transcript: Transcript, prices: PriceList) -> CellUsage:
    """The usage of a run of the reference agent.

    Where an answer was kept from an earlier call of the run, its time is that of the request that was sent then: the time of
    the run is at least that of its requests and tools.
    """
    in_tools = sum(use.wall_s for use in transcript.uses)
    plain = plain_usage(transcript.usage, transcript.task.model, prices)
    more = {
        "turns": transcript.turns,
        "tool_calls": tool_counts(transcript),
        "wall_s": max(transcript.wall_s, transcript.model_s + in_tools),
        "model_s": transcript.model_s,
    }
    return plain.model_copy(update=more)


def plain_usage(usage: Usage, model: str, prices: PriceList) -> CellUsage:
    """The usage of requests, without the times and tools around them."""
    return CellUsage(
        **token_fields(usage),
        requests=usage.requests,
        unmeasured=usage.unmeasured,
        turns=None,
        tool_calls={},
        wall_s=0.0,
        model_s=None,
        money=None if usage.unmeasured else prices.cost(model, usage),
    )


def token_fields(usage: Usage) -> dict[str, int | None]:
    """Tokens by kind, each counted once: input is what no cache held. All None where one request did not report its tokens."""
    kinds = ("total", "uncached", "cache_read", "cache_write", "output", "reasoning")
    if usage.unmeasured:
        return dict.fromkeys(kinds)
    is_known = usage.input is not None and usage.cache_read is not None
    # A provider that bills no writes into its cache reports none.
    uncached = (usage.input or 0) - (usage.cache_read or 0) - (usage.cache_write or 0)
    values = (
        usage.total,
        max(0, uncached) if is_known else None,
        *(usage.cache_read, usage.cache_write, usage.output, usage.reasoning),
    )
    return dict(zip(kinds, values, strict=True))


def tool_counts(transcript: Transcript) -> Mapping[str, ToolCount]:
    """Calls by tool, those of tools that do not exist among them, counted from the transcript."""
    calls = Counter((printable(use.call.name)[:_NAME_CHARS], use.result.is_error) for use in transcript.uses)
    return {
        name: ToolCount(ok=calls[name, False], error=calls[name, True]) for name in sorted({name for name, _ in calls})
    }


def estimated_tokens(text: str) -> int:
    """Tokens of a text, estimated by its length."""
    return -(-len(text.encode("utf-8", "replace")) // TYPICAL_BYTES)
