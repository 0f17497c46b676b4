"""The state of an evaluation that was interrupted: what was found and counted, and which rows that is of.

A file of numpy arrays without Python objects, replaced as a whole. It belongs to one set of files, judgments and options.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from cranfield.base.version import __version__
from cranfield.formats.io.files import new_part, remove_parts
from cranfield.ranking.counting import FOUND, SUSPECT, Counting
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import texts_of

Arrays = dict[str, NDArray[Any]]
NAME = "_unfinished.npz"


def signature(files: Sequence[Path], parts: Sequence[object]) -> str:
    """SHA-256 of what an evaluation depends on: the files by name, size and time, and all else by its text."""
    about = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256(json.dumps([__version__, about, *map(repr, parts)]).encode()).hexdigest()


def order_of(judgments: JudgmentTable) -> str:
    """SHA-256 of judgments in their order, which places that were saved go by; their own digest is the same in any order."""
    hasher = sha256(judgments.start.tobytes())
    for texts in map(texts_of, (judgments.query_ids, judgments.doc_ids)):
        hasher.update(np.diff(texts.offsets).tobytes())
        hasher.update(memoryview(texts.data)[int(texts.offsets[0]) : int(texts.offsets[-1])])
    return hasher.hexdigest()


class Checkpoint:
    """One file in a folder, of one signature."""

    def __init__(self, folder: Path, signed: str) -> None:
        self.path = folder / NAME
        self._signed = signed

    def load(self) -> Arrays | None:
        """What was saved last; None where nothing was, or of something else."""
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return None
        return arrays if bytes(arrays.pop("signature", np.zeros(0, np.uint8))).decode() == self._signed else None

    def save(self, arrays: Arrays) -> None:
        """Replace it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_part(self.path) as part, part.open("wb") as stream:
            np.savez(stream, allow_pickle=False, signature=np.frombuffer(self._signed.encode(), np.uint8), **arrays)
            stream.flush()
            os.fsync(stream.fileno())

    def remove(self) -> None:
        """It is not needed any more."""
        self.path.unlink(missing_ok=True)
        remove_parts(self.path.parent, self.path.name)


def arrays_of_find(counting: Counting) -> Arrays:
    """A first pass, as far as it has come."""
    return {
        "filter": counting.filter,
        "found": np.concatenate([*counting.found, np.zeros(0, FOUND)]),
        "repeated": np.concatenate([*counting.repeated, np.zeros(0, np.uint64)]),
    }


def restore_find(counting: Counting, arrays: Arrays) -> None:
    """Go on with a first pass; of one that has ended the filter is not there."""
    if len(arrays["filter"]):
        counting.filter[:] = arrays["filter"]
    counting.found, counting.repeated = [arrays["found"]], [arrays["repeated"]]
    counting.n_kept["repeated"] = len(arrays["repeated"])


def arrays_of_count(counting: Counting) -> Arrays:
    """A second pass, as far as it has come."""
    texts = [text for _, part in counting.suspects for text in part]
    return {
        "counts": counting.counts,
        "suspects": np.concatenate([*(rows for rows, _ in counting.suspects), np.zeros(0, SUSPECT)]),
        "suspect_lengths": np.array([len(text) for text in texts], dtype=np.int64),
        "suspect_texts": np.frombuffer(b"".join(texts), dtype=np.uint8),
    }


def restore_count(counting: Counting, arrays: Arrays) -> None:
    """Go on with a second pass."""
    counting.counts[:] = arrays["counts"]
    ends = np.cumsum(arrays["suspect_lengths"])
    blob = arrays["suspect_texts"].tobytes()
    texts = [
        blob[end - length : end] for end, length in zip(ends.tolist(), arrays["suspect_lengths"].tolist(), strict=True)
    ]
    counting.suspects = [(arrays["suspects"], texts)]
    counting.n_kept["suspects"] = len(texts)


class OnProgress(Protocol):
    """Called from time to time."""

    def __call__(self, pace: Pace, /) -> None:
        """The state of the work."""


@dataclass
class Pace:
    """Rows read so far, of all that are to be read; each pass reads every row."""

    total: int
    done: int = 0
    resumed: int = 0
    """Rows that an earlier call had read."""
    step: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def rate(self) -> float:
        """Rows a second, of this call."""
        return (self.done - self.resumed) / max(time.monotonic() - self.started, 1e-6)

    @property
    def seconds_left(self) -> float | None:
        """None before the first rows."""
        return (self.total - self.done) / self.rate if self.done > self.resumed else None


def silent(pace: Pace) -> None:
    """Show nothing."""
