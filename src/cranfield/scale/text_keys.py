"""Numbers that stand for texts: 64 bits each, made of whole Arrow columns at once.

Equal texts have equal keys. Different texts may have equal ones too, so the texts of
equal keys have to be compared. Memory is a few bytes a character of the column that is passed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

PERIOD = 4096
"""Bytes this far apart have one weight: a longer text still has another key than most others."""
_WEIGHTS = np.random.default_rng(20260101).integers(0, 2**64, PERIOD, dtype=np.uint64, endpoint=False) | np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def text_bytes(texts: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text begins, [N + 1], and the bytes of all of them; `texts` is an Arrow array of strings, large or not."""
    if not len(texts):
        return np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    _, offsets, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    start = np.frombuffer(offsets, dtype=kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    if data is None or start[0] == start[-1]:
        return start - start[0], np.zeros(0, dtype=np.uint8)
    return start - start[0], np.frombuffer(data, dtype=np.uint8)[start[0] : start[-1]]


def text_keys(texts: Any) -> Keys:
    """uint64[N]: a key for each text, none of which is null."""
    keys = np.zeros(len(texts), dtype=np.uint64)
    start, data = text_bytes(texts)
    length = np.diff(start)
    filled = np.flatnonzero(length)
    if len(filled):
        place = np.arange(len(data)) - np.repeat(start[:-1], length)
        weighted = _WEIGHTS[place % PERIOD] * (data.astype(np.uint64) + np.uint64(1))
        keys[filled] = np.add.reduceat(weighted, start[filled])
    return mixed(keys + length.astype(np.uint64))


def mixed(keys: Keys) -> Keys:
    """The same keys spread over all 64 bits."""
    return (keys ^ (keys >> _SHIFT)) * _MIX


def repeated_keys(keys: Keys) -> Keys:
    """The keys that stand more than once, each once, in their order."""
    ordered = np.sort(keys)
    twice: Keys = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    return twice


def is_among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Whether each key is one of the known ones, which stand in order."""
    if not len(known):
        return np.zeros(len(keys), dtype=np.bool_)
    found = np.searchsorted(known, keys)
    found[found == len(known)] = 0
    among: NDArray[np.bool_] = known[found] == keys
    return among
