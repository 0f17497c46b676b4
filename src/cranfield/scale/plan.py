"""How much memory and time an evaluation takes, and into how many parts the queries are divided to keep within a limit.

The constants were measured with `make bench-scale` on two cores of a server of 2023. Those of memory are larger than what
was seen, since a limit is a promise; those of time are for an estimate.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from cranfield.base.errors import Problem, UsageError

DEFAULT_MEMORY = "1GB"
UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]i?B)", re.IGNORECASE)

PROGRAM_BYTES = 190_000_000
"""The program with its libraries."""
THREAD_BYTES = 25_000_000
"""The rows that a thread works on, and what they are unpacked from."""
JUDGMENT_BYTES = 45
"""A judgment as it is held from beginning to end: ids of about 15 characters, grade, place."""
INDEX_BYTES = 75
"""A judgment in the tables of a part."""
FOUND_BYTES = 150
"""A judged row of a part: its key, its counts, its rank."""
GROUP_BYTES = 120
"""A query of a system in a part."""
ROW_BYTES = 2
"""A row of a part, in the filter that finds repeated documents."""
MAX_PARTS = 1000
MAX_GROUPS = 2**31 - 1
"""Queries of systems in a part, which are numbered by 32 bits."""
MAX_ROWS = 2**33
"""Rows in a part: the words of its filter are numbered by 32 bits."""

START_S = 1.0
"""Start and end of the program."""
JUDGMENTS_A_SECOND = 1_500_000
"""Judgments read and indexed."""
ROWS_A_SECOND = 9_000_000
"""Rows that a thread reads in one pass."""
ENGINE_START_S = 15.0
"""Start of a session of Spark on a cluster that runs."""
ENGINE_ROWS_A_SECOND = 450_000
"""Rows that a core of Spark shuffles and scores."""
ENGINE_CORE_BYTES = 1_000_000_000
"""Memory of a core of Spark: its share of the executor, and its Python worker."""


@dataclass(frozen=True, slots=True)
class Size:
    """Size of an evaluation."""

    n_rows: int
    n_queries: int
    n_judgments: int
    n_systems: int
    n_threads: int

    def bytes_of(self, n_parts: int) -> int:
        """Memory that it takes when the queries are divided into so many parts, each of which reads all rows twice."""
        base = PROGRAM_BYTES + self.n_threads * THREAD_BYTES + self.n_judgments * JUDGMENT_BYTES
        # A judged document is at most one row of each system.
        found = min(self.n_judgments * self.n_systems, self.n_rows) * FOUND_BYTES
        groups = self.n_queries * self.n_systems * GROUP_BYTES
        return base + math.ceil((self.n_judgments * INDEX_BYTES + found + groups + self.n_rows * ROW_BYTES) / n_parts)

    def seconds(self, n_parts: int) -> float:
        """How long it takes on this machine, about, where the files are read as fast as they are unpacked."""
        reading = 2 * n_parts * self.n_rows / (ROWS_A_SECOND * self.n_threads)
        return START_S + self.n_judgments / JUDGMENTS_A_SECOND + reading

    def engine_seconds(self, n_cores: int) -> float:
        """How long it takes on so many cores of Spark, about."""
        return ENGINE_START_S + (self.n_rows + self.n_judgments) / (ENGINE_ROWS_A_SECOND * n_cores)

    def n_parts(self, memory: int) -> int:
        """The fewest parts that keep within the memory.

        Raises:
            UsageError: none does.
        """
        most = min(MAX_PARTS, max(self.n_queries, 1))
        least = self.bytes_of(most)
        if least > memory:
            raise UsageError(
                Problem(
                    f"--memory is {human(memory)}, and {self.n_judgments} judgments alone need more",
                    expected=f"{human(least)} or more",
                )
            )
        fewest = max(math.ceil(self.n_queries / (MAX_GROUPS // self.n_systems)), math.ceil(self.n_rows / MAX_ROWS), 1)
        return next(n for n in range(min(fewest, most), MAX_PARTS + 1) if self.bytes_of(n) <= memory)


def memory_bytes(text: str) -> int:
    """A size as it is written on the command line, in bytes: `1GB`, `800 MB`, `2GiB`.

    Raises:
        UsageError: it is no size.
    """
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--memory is {text!r}", expected="a number with its unit, such as 800MB or 2GB")
    return int(float(found[1]) * UNITS[found[2].lower()])


def human(n_bytes: float) -> str:
    """Bytes as people read them: `812 MB`, `1.3 GB`."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{math.ceil(n_bytes / 1e6)} MB"
