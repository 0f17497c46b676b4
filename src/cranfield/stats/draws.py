"""Subsets, enumerated or random, and random indices, that depend on seed and position only.

Draws come in chunks; each chunk has its own generator, seeded by (seed, purpose, chunk number), so results do not depend on
threads or order. Only the raw stream of PCG64 is used, which NumPy guarantees to be stable.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

SIGNS, RESAMPLES = 1, 2
"""Purposes: procedures with different purposes share no random numbers."""

CHUNK_ROWS, CHUNK_CELLS = 1024, 1 << 23
"""Rows drawn by one generator, fewer where they are long. Changing it changes the draws."""

BLOCK_CELLS = 1 << 17
"""Cells processed at once (1 MB of float64, to fit the processor cache); does not change the result."""


def subset_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Random subsets of n things, each thing in or out with equal chance.

    Yields:
        The number of the first row, and uint8[rows, n] of 0 and 1.
    """
    words = -(-n // 64)
    for start, raw in _drawn(seed, SIGNS, n_rows, n, words):
        packed = raw.astype("<u8", copy=False).view(np.uint8)
        yield start, np.unpackbits(packed, axis=1, count=n, bitorder="little")


def counted_subset_blocks(n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The first `n_rows` subsets of n things (32 at most), in the order of their binary numbers; the empty one leads.

    Yields:
        The number of the first row, and uint8[rows, n] of 0 and 1.
    """
    packed = np.arange(n_rows, dtype="<u4").view(np.uint8).reshape(-1, 4)
    for at, rows in _blocks(n_rows, n):
        yield at, np.unpackbits(packed[at : at + rows], axis=1, count=n, bitorder="little")


def index_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Random samples of n indices under n, with replacement.

    An index is a 32-bit random number times n, divided by 2^32: uneven by less than n / 2^32.

    Yields:
        The number of the first row, and int64[rows, n].
    """
    words = -(-n // 2)
    for start, raw in _drawn(seed, RESAMPLES, n_rows, n, words):
        wide = raw.astype("<u8", copy=False).view("<u4")[:, :n].astype(np.uint64)
        wide *= np.uint64(n)
        wide >>= np.uint64(32)
        yield start, wide.view(np.int64)  # under n, so the sign bit is never set


def _drawn(seed: int, purpose: int, n_rows: int, n: int, words: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The number of the first row, and uint64[rows, words] of random numbers: chunk by chunk, each in blocks."""
    chunk = max(1, min(CHUNK_ROWS, CHUNK_CELLS // n))
    for number, first in enumerate(range(0, n_rows, chunk)):
        generator = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(purpose, number)))
        for at, rows in _blocks(min(chunk, n_rows - first), n):
            raw = np.asarray(generator.random_raw(rows * words), dtype=np.uint64)
            yield first + at, raw.reshape(rows, words)


def _blocks(n_rows: int, n: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK_CELLS // n)
    return ((at, min(step, n_rows - at)) for at in range(0, n_rows, step))
