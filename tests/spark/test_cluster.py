"""A standalone cluster of two executors on this machine, whose Python has no Cranfield; and executors that are killed."""

from __future__ import annotations

import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.scale_contract import CASES, Case, check
from tests.spark.cluster import standalone_cluster
from tests.spark.made import Hold, Inputs, executor_of, killed, make_inputs, results_in

from cranfield.base.errors import UsageError
from cranfield.scale.spark import evaluate, evaluate_files, score_frame, spark_session
from cranfield.scale.spark.session import quiet, send_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "not-for-the-list-of-processes"
SETTINGS = f"""
spark.executor.memory 512m
spark.executor.cores 1
spark.cores.max 2
# A task for each file, so that there are several at work when one is killed.
spark.sql.files.minPartitionNum 8
# Those who fetch from an executor that is gone find out sooner.
spark.shuffle.io.retryWait 300ms
# Both executors are on one host: each would read what the other left on the disk, as if it had not been lost.
spark.shuffle.readHostLocalDisk false
spark.hadoop.fs.s3a.secret.key {SECRET}
"""


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with numpy and pyarrow, and without Cranfield."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib"))
    target = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    for path in packages.glob("*"):
        if path.name.partition(".")[0] in {"numpy", "pyarrow"}:
            (target / path.name).symlink_to(path)
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import numpy, pyarrow, cranfield"], capture_output=True, text=True, cwd=folder
    )
    assert "No module named 'cranfield'" in found.stderr
    return python


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conf") / "settings.conf"
    path.write_text(SETTINGS)
    return path


@pytest.fixture(scope="module")
def spark(master: str, bare_python: Path, conf: Path) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", str(bare_python))
        with spark_session(master, conf) as session:
            yield session


@pytest.fixture(scope="module")
def made() -> Inputs:
    return make_inputs(21, n_queries=100)


@pytest.fixture(scope="module")
def runs(made: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.write(tmp_path_factory.mktemp("runs") / "files")


def test_the_package_travels_to_executors_that_lack_it(
    spark: SparkSession, made: Inputs, runs: Path, tmp_path: Path
) -> None:
    results = evaluate_files(
        [runs], made.judgments, lambda _: made.scoring, tmp_path / "out", master=spark.sparkContext.master
    )
    assert results_in(tmp_path / "out") == made.expected()
    assert results.n_queries == made.judgments.n_queries


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_contract_of_executors(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    send_package(spark)
    with quiet():
        frame = spark.createDataFrame(case.table()).repartition(3)
    score_frame(frame, case.judgments, case.scoring, partitions=3).write.parquet(f"file://{tmp_path / 'out'}")
    check(case, pa.concat_tables(map(pq.read_table, sorted((tmp_path / "out").glob("*.parquet")))))


def test_an_executor_without_numpy_is_named(
    spark: SparkSession, made: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "empty" / "bin" / "python"))
    with quiet():
        frame = spark.createDataFrame(made.runs)
    with pytest.raises(UsageError, match=r"the job on Spark failed; got .*(numpy|pyarrow)") as caught:
        evaluate(frame, made.judgments, ["AP"], out=tmp_path / "out")
    assert "PYSPARK_PYTHON" in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_compiled_part_travels_too(spark: SparkSession) -> None:
    from cranfield.ranking import c_reader

    def is_compiled(_: object) -> bool:
        from cranfield.ranking import c_reader

        return bool(c_reader.available())

    send_package(spark)
    assert spark.sparkContext.parallelize([0], 1).map(is_compiled).collect() == [c_reader.available()]


def test_secrets_are_not_among_the_arguments_of_a_process(spark: SparkSession) -> None:
    assert spark.sparkContext.getConf().get("spark.hadoop.fs.s3a.secret.key") == SECRET
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert any(b"SparkSubmit" in command for command in commands)
    assert [command for command in commands if SECRET.encode() in command] == []


def test_a_session_that_runs_is_not_another_cluster(spark: SparkSession, conf: Path) -> None:
    with pytest.raises(UsageError, match="a session of Spark is running"), spark_session("spark://127.0.0.1:1"):
        pass
    with (
        pytest.raises(UsageError, match="a session of Spark is running"),
        spark_session(spark.sparkContext.master, conf),
    ):
        pass


def await_executors(spark: SparkSession, count: int) -> None:
    """The worker of one that was killed starts another."""
    until = time.monotonic() + 180
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() != count + 1:  # and the driver
        assert time.monotonic() < until, "no executor in place of that which was killed"
        time.sleep(0.05)


@pytest.mark.parametrize("stage", ["map", "reduce"])
@pytest.mark.parametrize("attempt", range(3))
def test_an_executor_that_is_killed_costs_time_alone(
    spark: SparkSession, made: Inputs, runs: Path, tmp_path: Path, stage: str, attempt: int
) -> None:
    """It is held in a late task, so that results of earlier tasks are lost with it."""
    send_package(spark)
    await_executors(spark, 2)
    hold, mapped = Hold(tmp_path, partition=5 + attempt % 2), Hold(tmp_path / "mapped", partition=-1)
    mapped.folder.mkdir()
    frame = mapped.on(spark.read.parquet(f"file://{runs}"))
    frame = hold.on(frame) if stage == "map" else frame
    scored = score_frame(frame, made.judgments, made.scoring, partitions=8)
    scored = scored if stage == "map" else hold.on(scored)
    with killed(hold, executor_of):
        scored.write.parquet(f"file://{tmp_path / 'out'}")
    assert results_in(tmp_path / "out") == made.expected()
    assert hold.tries().count(hold.partition) >= 2
    again = {partition for partition in mapped.tries() if mapped.tries().count(partition) > 1}
    assert again - ({hold.partition} if stage == "map" else set()), "nothing that was computed was lost"
