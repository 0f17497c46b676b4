"""A standalone cluster on this machine: a master and two workers, which listen to the loopback address alone."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

NOT_FOR_DAEMONS = {"PYTHONPATH", "PYSPARK_PYTHON", "SPARK_HOME"}


@contextmanager
def standalone_cluster(folder: Path, *, worker_memory: str = "1g", daemon_memory: str = "128m") -> Iterator[str]:
    """Its address; `folder` takes logs and the files of executors."""
    with ExitStack() as running:
        log = running.enter_context(_daemon("master.Master", folder, daemon_memory, "--port", "0"))
        address = _found_in(log, r"spark://127\.0\.0\.1:\d+")
        for number in range(2):
            options = ("--cores", "1", "--memory", worker_memory, "--work-dir", str(folder / f"work-{number}"), address)
            running.enter_context(_daemon("worker.Worker", folder, daemon_memory, *options))
        yield address


@contextmanager
def _daemon(name: str, folder: Path, memory: str, *arguments: str) -> Iterator[Path]:
    """A master or a worker; gives its log."""
    import pyspark

    home = Path(pyspark.__file__).parent
    log = folder / f"{name}-{len(list(folder.glob('*.log')))}.log"
    settings = {key: value for key, value in os.environ.items() if key not in NOT_FOR_DAEMONS} | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": "-Dspark.master.rest.enabled=false",
    }
    command = [
        home / "bin" / "spark-class",
        f"org.apache.spark.deploy.{name}",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
    ]
    with log.open("wb") as stream:
        process = subprocess.Popen([*command, *arguments], env=settings, stdout=stream, stderr=stream, cwd=folder)
        try:
            yield log
        finally:
            process.terminate()
            process.wait(30)


def _found_in(log: Path, pattern: str) -> str:
    """What a daemon logged."""
    until = time.monotonic() + 180
    while (found := re.search(pattern, log.read_text(encoding="utf-8"))) is None:
        assert time.monotonic() < until, log.read_text(encoding="utf-8")
        time.sleep(0.05)
    return found[0]
