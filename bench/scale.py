"""Runs larger than memory, side by side: `scale.py [20 100] [--rounds N] [--no-spark]`, in millions of rows.

The same three measures of the same 16 striped Parquet files, a row a query written as Parquet: Cranfield on this machine,
DuckDB's SQL, Cranfield on Spark in local mode, and on a standalone cluster of two executors on loopback. Each contender is
a process of its own; processor time and memory are those of its whole tree: memory is the largest sum of proportional set
sizes seen ten times a second. Values are compared query by query.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import markdown, seconds
from tools import BENCH, CHECKOUT, COMMAND, DATA, OURS, RECORDS, THEIRS, say

MEASURES = ("nDCG@10", "AP", "RR")
SAMPLED_EVERY_S = 0.1
MAX_APART = 1e-12


@dataclass(frozen=True)
class Contender:
    key: str
    label: str
    argv: tuple[str, ...]
    """{qrels}, {run} and {out} stand for paths."""
    largest: int = 1000
    """Millions of rows that it is given at most."""


def contenders(*, with_spark: bool) -> Iterator[Contender]:
    ours = (
        str(COMMAND),
        "evaluate",
        "{qrels}",
        "{run}",
        *(word for each in MEASURES for word in ("-m", each)),
        "--out",
        "{out}",
    )
    sql = (str(THEIRS), str(BENCH / "peers" / "with_duckdb_sql.py"), "{qrels}", "{run}", "{out}.parquet")
    yield Contender("cranfield", "Cranfield, --memory 1GB", (*ours, "--memory", "1GB"))
    yield Contender("cranfield-500", "Cranfield, --memory 500MB", (*ours, "--memory", "500MB"))
    yield Contender("duckdb", "DuckDB SQL, limit 8 GB", (*sql, "8GB"))
    yield Contender("duckdb-1", "DuckDB SQL, limit 1 GB", (*sql, "1GB"))
    if with_spark:
        spark = (str(OURS), str(BENCH / "scale_spark.py"), "{qrels}", "{run}", "{out}")
        yield Contender("spark-local", "Cranfield on Spark, local[2,4]", (*spark, "local"), 20)
        yield Contender("spark-cluster", "Cranfield on Spark, two executors", (*spark, "cluster"), 20)


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for child in children:
        yield from tree(int(child))


def pss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def measure(argv: Sequence[str]) -> dict[str, float]:
    """Wall and processor seconds, and the largest memory of the tree in MB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began, peak = time.perf_counter(), 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(pss_kb, tree(process.pid))))
            time.sleep(SAMPLED_EVERY_S)
        wall = time.perf_counter() - began
        out, error = process.communicate()
    if process.returncode:
        sys.exit(f"{' '.join(argv)}\n{error}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    last = out.strip().splitlines()[-1] if out.strip() else ""
    told = json.loads(last) if last.startswith('{"start"') else {}
    return {"wall": wall, "cpu": told.get("cpu", cpu), "peak": peak / 1024, "start": told.get("start", 0.0)}


def values(out: Path) -> dict[str, np.ndarray]:
    """The values of each measure, by query."""
    if out.is_dir():
        columns = ["query_id", *MEASURES]
        tables = [pq.read_table(path, columns=columns) for path in sorted(out.glob("*.parquet"))]
        table = pa.concat_tables(tables)
        table = table.filter(table["query_id"].is_valid())
    else:
        table = pq.read_table(out.with_suffix(".parquet"))
    table = table.sort_by("query_id")
    return {name: table[name].to_numpy() for name in MEASURES} | {"query_id": table["query_id"].to_numpy()}


def compare(millions: int, rounds: int, *, with_spark: bool) -> str:
    folder = DATA / f"scale-{millions}"
    say(f"{millions} million rows: generating")
    subprocess.run([OURS, BENCH / "scale_data.py", str(millions), str(folder)], check=True)
    everything = [each for each in contenders(with_spark=with_spark) if millions <= each.largest]
    found: dict[str, list[dict[str, float]]] = {each.key: [] for each in everything}
    reference: dict[str, np.ndarray] = {}
    apart: dict[str, float] = {}
    for number in range(rounds):
        for each in everything:
            out = folder / f"out-{each.key}"
            shutil.rmtree(out, ignore_errors=True)
            out.with_suffix(".parquet").unlink(missing_ok=True)
            words = {"qrels": folder / "qrels.txt", "run": folder / "run", "out": out}
            found[each.key].append(measure([word.format(**words) for word in each.argv]))
            say(f"{each.label}, round {number + 1}: {found[each.key][-1]}")
            now = values(out)
            reference = reference or now
            if not np.array_equal(reference["query_id"], now["query_id"]):
                sys.exit(f"{each.label}: other queries")
            apart[each.key] = max(float(np.abs(reference[name] - now[name]).max()) for name in MEASURES)
            if not apart[each.key] <= MAX_APART:
                sys.exit(f"{each.label}: values differ by {apart[each.key]}")
    rows = []
    for each in everything:
        best = min(found[each.key], key=lambda record: record["wall"])
        walls = ", ".join(seconds(record["wall"]) for record in found[each.key])
        start = seconds(best["start"]) if best["start"] else "–"
        cpu = min(record["cpu"] for record in found[each.key])
        peak = max(record["peak"] for record in found[each.key])
        rows.append(
            [
                each.label,
                seconds(best["wall"]),
                f"({walls})",
                start,
                seconds(cpu),
                f"{peak:.0f}",
                f"{apart[each.key]:.0e}",
            ]
        )
    headings = ["contender", "wall s, best", "(all)", "of it session start", "CPU s", "peak MB", "differs by"]
    (RECORDS / f"scale-{millions}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return f"{millions} million rows, {len(reference['query_id']):,} queries\n\n{markdown(headings, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("millions", nargs="*", type=int, default=[20, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true")
    options = parser.parse_args()
    RECORDS.mkdir(parents=True, exist_ok=True)
    tables = [compare(each, options.rounds, with_spark=not options.no_spark) for each in options.millions]
    text = f"{os.cpu_count()} processors\n\n" + "\n".join(tables)
    print(text)
    (RECORDS / "scale.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
