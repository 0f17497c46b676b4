"""Seconds of processor time to read judgments, format by format: `python bench/judgments.py [N [FORMAT…]]`, by default 1,000,000 and all.

Every format of test sets that can hold graded ids is written and read; peers read the same qrels in the same run, where
they are installed. YAML is read at a tenth of N, and said so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools import BENCH, THEIRS

from cranfield.base.errors import CranfieldError
from cranfield.formats.convert import write_testset
from cranfield.formats.sniff import FORMATS, read_testset
from cranfield.model import Query, TestSet

PER_QUERY = 100
SUFFIXES = {"yaml": (".yaml", ".json"), "graded-yaml": (".yaml", ".json"), "table": (".csv", ".tsv", ".jsonl")}
"""Formats that are several by the ends of their names."""
SLOW = 10
"""YAML is read at this fraction of the size: writing it takes too long."""


def judgments(n: int) -> TestSet:
    """N judgments, a hundred a query, grades 0 to 3."""
    queries = tuple(Query(f"q{i}", f"what is asked as number {i}") for i in range(n // PER_QUERY))
    grades = {
        query.id: {f"doc-{i * 37 + j * 1009:09d}": float((i + j) % 4) for j in range(PER_QUERY)}
        for i, query in enumerate(queries)
    }
    return TestSet("bench", queries, grades)


def timed(action: Callable[[], object]) -> float:
    """Seconds of processor time of one call: other work on the machine does not count."""
    start = time.process_time()
    action()
    return time.process_time() - start


def row(name: str, seconds: float, n: int, note: str = "") -> None:
    """A line of the table."""
    print(f"{name:<28}{seconds:>9.2f} s{n / seconds:>14,.0f} a second  {note}", flush=True)


def main(n: int, names: Sequence[str]) -> None:
    """Print the table."""
    whole = judgments(n)
    print(
        f"{n:,} judgments of {len(whole.queries):,} queries, seconds of processor time; the other tools' the best of three"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, entry in FORMATS.items():
            if entry.kind != "testset" or not entry.writer or "grades" not in entry.holds or entry.grouping:
                continue
            if names and name not in names:
                continue
            for suffix in SUFFIXES.get(name, (entry.suffix,)):
                share = SLOW if suffix == ".yaml" else 1
                path = Path(folder) / f"{name}{suffix}"
                said = name + (f" ({suffix[1:]})" if name in SUFFIXES else "")
                try:
                    write_testset(judgments(n // share) if share > 1 else whole, path, name)
                    seconds = timed(lambda path=path, name=name: read_testset(path, name))  # type: ignore[misc]
                except CranfieldError as error:
                    print(f"{said:<28}{str(error).splitlines()[0][:90]}")
                    continue
                row(said, seconds, n // share, f"at {n // share:,}" if share > 1 else "")
        if not names or "qrels" in names:
            peers(Path(folder) / "qrels.qrels", n)


def peers(path: Path, n: int) -> None:
    """The same qrels with the readers of other libraries, where they are installed."""
    interpreter = THEIRS if THEIRS.exists() else Path(sys.executable)
    argv = [str(interpreter), str(BENCH / "peers" / "read_qrels.py"), str(path)]
    called = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
    for line in called.stdout.splitlines():
        name, _, seconds = line.partition(" ")
        if seconds:
            row(name, float(seconds), n)
        else:
            print(f"{name:<28}not installed here")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:])
