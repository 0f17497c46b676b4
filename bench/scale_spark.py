"""Cranfield on Spark over the files of the benchmark: `scale_spark.py QRELS RUN OUT local|cluster`.

The last line printed has the seconds until the session could compute, and the processor seconds of all processes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(CHECKOUT), str(CHECKOUT / ".venv" / "spark")]
MEASURES = ("nDCG@10", "AP", "RR")
CLUSTER = "spark.executor.memory 1g\nspark.executor.cores 1\nspark.cores.max 2\n"


def tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text(encoding="ascii").split():
            yield from tree(int(child))


def cpu_seconds() -> float:
    """Of this process and all below it, those that have ended included."""
    ticks = 0
    for pid in tree(os.getpid()):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    qrels, run, out, kind = sys.argv[1:]
    from tests.spark.cluster import standalone_cluster

    from cranfield.app.loading import load
    from cranfield.scale.judgments import JudgmentTable
    from cranfield.scale.spark import evaluate, spark_session

    judgments = JudgmentTable.of_testset(load(Path(qrels)))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="cranfield-bench-")))
        began = time.perf_counter()
        master, conf = "local[2]", None
        if kind == "cluster":
            master = running.enter_context(standalone_cluster(folder, worker_memory="2g", daemon_memory="256m"))
            conf = folder / "settings.conf"
            conf.write_text(CLUSTER, encoding="utf-8")
        spark = running.enter_context(spark_session(master, conf))
        spark.range(1000).repartition(4).count()
        start = time.perf_counter() - began
        evaluate(spark.read.parquet(f"file://{Path(run).resolve()}"), judgments, MEASURES, out=out)
        print(json.dumps({"start": start, "cpu": cpu_seconds()}))


if __name__ == "__main__":
    main()
