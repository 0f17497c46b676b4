"""Streams of events and uploads: how many an account may have open at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MOST_STREAMS = 30
"""Of an account at a time: each looks at the database every second."""


@contextmanager
def counted(open_streams: Counter[int], account_id: int, most: int = MOST_STREAMS) -> Iterator[bool]:
    """Count a stream, or an upload, of an account while the block runs; whether the account may have it."""
    if open_streams[account_id] >= most:
        yield False
        return
    open_streams[account_id] += 1
    try:
        yield True
    finally:
        open_streams[account_id] -= 1
