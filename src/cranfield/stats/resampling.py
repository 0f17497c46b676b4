"""Resampling: subsets and indices that depend on seed and position only, and sums that do not depend on order.

Draws come in chunks; each chunk has its own generator, seeded by (seed, purpose, chunk number), so results do not depend on
threads or order. Only the raw stream of PCG64 is used, which NumPy guarantees to be stable.

A matrix product adds in an order that the BLAS chooses, which changes the last bits. Resampling compares millions of such sums
with each other and with zero. Integers whose absolute values sum to less than 2^53 are added exactly in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.describe import TOLERANCE, FloatN

SIGNS, RESAMPLES, KEYS = 1, 2, 3
"""Purposes: procedures with different purposes share no random numbers."""

CHUNK_ROWS, CHUNK_CELLS = 1024, 1 << 23
"""Rows drawn by one generator, fewer where they are long. Changing it changes the draws."""

BLOCK_CELLS = 1 << 17
"""Cells processed at once (1 MB of float64, to fit the processor cache); does not change the result."""

BITS = 52
"""Absolute values sum to at most 2^52 units, and rounding adds at most half a unit each: below 2^53 for any real n."""


def subset_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Random subsets of n things, each thing in or out with equal chance.

    Yields:
        The number of the first row, and uint8[rows, n] of 0 and 1.
    """
    words = -(-n // 64)
    for start, raw in _drawn(seed, SIGNS, n_rows, n, words):
        packed = raw.astype("<u8", copy=False).view(np.uint8)
        yield start, np.unpackbits(packed, axis=1, count=n, bitorder="little")


def key_blocks(seed: int, n_rows: int, n: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Random 64-bit keys, by whose order things are permuted.

    Yields:
        The number of the first row, and uint64[rows, n].
    """
    for start, raw in _drawn(seed, KEYS, n_rows, n, n):
        yield start, raw.astype("<u8", copy=False).view(np.uint64)


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


@dataclass(frozen=True, slots=True, eq=False)
class FixedPoint:
    """A vector in whole units of a power of two."""

    units: FloatN
    """Whole numbers; value = units * 2^exponent."""
    exponent: int
    tolerance: float
    """A sum of at most this many units is zero."""

    @property
    def total(self) -> float:
        """Sum of the vector, in units."""
        return float(self.units.sum())

    def value(self, units: float) -> float:
        """Convert a number of units back into a value, rounded to the precision of a unit."""
        exact = math.ldexp(units, self.exponent)
        return round(exact, math.floor(-self.exponent * math.log10(2))) or exact

    def zero_rounding(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sums, with rounding error set to 0."""
        return np.where(np.abs(sums) <= self.tolerance, 0.0, sums)


def fixed_point(vector: FloatN, largest_sum: float | None = None) -> FixedPoint:
    """Scale `vector` to whole numbers; a value moves by at most half of 2^-52 of `largest_sum`.

    Args:
        vector: the values.
        largest_sum: upper bound of the sum of absolute values in any sum to be computed; None is the sum of all.
    """
    size = math.fsum(np.abs(vector).tolist()) if largest_sum is None else largest_sum
    exponent = math.frexp(size)[1] - BITS
    units = np.rint(np.ldexp(vector, -exponent))
    return FixedPoint(units, exponent, TOLERANCE * float(np.abs(units).sum()))
