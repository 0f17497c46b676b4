"""Inputs of the tests of Spark, and tasks that are held until their process is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import score_queries
from cranfield.scale.scoring import Scoring
from cranfield.scale.spark.session import quiet

MEASURES = ("nDCG@10", "AP", "RR", "P@5", "RBP(p=0.8)", "Judged@10")
SYSTEMS = ("bm25", "dense", "søk")


@dataclass(frozen=True)
class Inputs:
    """Runs of `SYSTEMS` in one table, and judgments."""

    runs: pa.Table
    judgments: JudgmentTable
    scoring: Scoring

    def write(self, folder: Path, n_files: int = 8) -> Path:
        """Write the rows to files, each of which has a part of every query."""
        folder.mkdir()
        for number in range(n_files):
            rows = self.runs.take(pa.array(np.arange(number, len(self.runs), n_files)))
            pq.write_table(rows, folder / f"part-{number}.parquet")
        return folder

    def expected(self) -> list[dict[str, Any]]:
        """The results of the kernel on all rows at once."""
        return sorted_rows(pa.Table.from_batches(score_queries(self.runs.to_batches, self.judgments, self.scoring)))


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    keys = [(name, "ascending") for name in ("query_id", "system")]
    rows = table.filter(table["query_id"].is_valid())
    return rows.select([name for name in table.column_names if name != "problem"]).sort_by(keys).to_pylist()


def results_in(folder: Path) -> list[dict[str, Any]]:
    """The rows of the queries in a folder of results."""
    return sorted_rows(pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("*.parquet"))))


def make_inputs(seed: int, *, n_queries: int = 40, whole_numbers: bool = False, skewed: int = 0) -> Inputs:
    """Random inputs: ties, judged queries that a system does not answer, queries without judgments, one of many rows."""
    random = np.random.default_rng(seed)
    rows: list[tuple[Any, Any, float, str]] = []
    query_ids = [n if whole_numbers else f"q{n}{'é' * (n % 3)}" for n in range(n_queries)]
    doc_ids = [n if whole_numbers else f"d{n}{'文' * (n % 2)}" for n in range(max(500, skewed))]
    for system in SYSTEMS:
        for place, query_id in enumerate(query_ids):
            if random.random() < 0.15:
                continue
            n = skewed if skewed and place == 3 else int(random.integers(1, 60))
            chosen = random.choice(len(doc_ids), n, replace=False)
            rows += [(query_id, doc_ids[doc], float(np.round(random.random(), 1)), system) for doc in chosen]
    order = random.permutation(len(rows))
    names = ("query_id", "doc_id", "score", "system")
    runs = pa.table({name: [rows[row][place] for row in order] for place, name in enumerate(names)})
    judged = [
        (str(q), str(d), int(random.integers(0, 4)))
        for q in query_ids[5:]
        for d in random.choice(doc_ids[:500], 20, False)
    ]
    judged += [("never answered", "d1", 1), ("without judgments", None, 0)]
    queries, docs, grades = zip(*judged, strict=True)
    table = JudgmentTable.from_rows(pa.array(queries), pa.array(docs), grades, name="made", digest="sha256:made")
    return Inputs(runs, table, Scoring.of(SYSTEMS, MEASURES))


def executor_of(worker: int) -> int:
    """The process that runs tasks, of one of its workers of Python: the parent of its parent."""
    parent = worker
    for _ in range(2):
        parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{parent}/cmdline").read_bytes()
    return parent


@dataclass(frozen=True)
class Hold:
    """Holds the first try of one task until it is killed, and logs the tries of all."""

    folder: Path
    partition: int

    def on(self, frame: Any) -> Any:
        """A table of Spark with the same rows, whose tasks are held."""
        with quiet():
            return frame.mapInArrow(self._function(), frame.schema)

    def _function(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        folder, held = str(self.folder), self.partition

        def through(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import json
            import os
            import time

            from pyspark import TaskContext

            task = TaskContext.get()
            with open(f"{folder}/tries", "a") as log:  # noqa: PTH123
                log.write(f"{task.partitionId()}\n")
            is_held = task.partitionId() == held
            for batch in batches:
                if is_held and not os.path.exists(f"{folder}/held.json"):  # noqa: PTH110
                    with open(f"{folder}/new", "w") as file:  # noqa: PTH123
                        json.dump({"worker": os.getpid()}, file)
                    os.replace(f"{folder}/new", f"{folder}/held.json")  # noqa: PTH105
                    time.sleep(180)
                    os.mkdir(f"{folder}/missed")  # noqa: PTH102
                    raise RuntimeError("held for minutes, and not killed")
                yield batch

        return through

    def wait(self, seconds: float = 180) -> int:
        """The process of the held task's worker, once there is one."""
        path, until = self.folder / "held.json", time.monotonic() + seconds
        while not path.exists():
            assert time.monotonic() < until, "no task was held"
            time.sleep(0.02)
        return int(json.loads(path.read_text())["worker"])

    def tries(self) -> list[int]:
        """The partition of each try."""
        return [int(line) for line in (self.folder / "tries").read_text().split()]


@contextmanager
def killed(hold: Hold, of_worker: Callable[[int], int] = int) -> Iterator[None]:
    """While the block computes, kill the process of a held task: its worker of Python, or what `of_worker` makes of that."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(lambda: os.kill(of_worker(hold.wait()), signal.SIGKILL))
        yield
        done.result()
    assert not (hold.folder / "missed").exists(), "the task failed by itself, and was not killed"
