"""Spark in local mode: the same results as the kernel on all rows at once, and as `cranfield.evaluate`."""

from __future__ import annotations

import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.scale_contract import CASES, Case, check
from tests.scale_contract import MEASURES as MEASURE_NAMES
from tests.spark.made import MEASURES, SYSTEMS, Hold, Inputs, killed, make_inputs, results_in

import cranfield
from cranfield.base.errors import RunFormatError, UsageError
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.scoring import Scoring
from cranfield.scale.spark import evaluate, evaluate_files, job, score_frame, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with spark_session("local[2]") as session:
        yield session


def frame_of(spark: SparkSession, table: pa.Table):
    from cranfield.scale.spark.session import quiet

    with quiet():
        return spark.createDataFrame(table).repartition(3)


def test_local_mode_tries_a_task_again_shows_no_page_and_listens_to_this_machine(spark: SparkSession) -> None:
    context = spark.sparkContext
    assert context.master == "local[2,4]"
    assert context.uiWebUrl is None
    assert context.getConf().get("spark.driver.bindAddress") == "127.0.0.1"


@pytest.mark.filterwarnings(
    "ignore:Deprecated in 3.0.0:FutureWarning"
)  # RankingMetrics uses what Spark itself deprecates
@pytest.mark.parametrize("k", [1, 3, 10])
def test_average_precision_over_what_is_reachable_is_that_of_mllib(spark: SparkSession, k: int) -> None:
    from pyspark.mllib.evaluation import RankingMetrics

    draw = random.Random(k)
    ids = [f"d{number}" for number in range(20)]
    lists = {f"q{number}": (draw.sample(ids, 8), draw.sample(ids, draw.randint(1, 9))) for number in range(30)}
    testset = cranfield.load({query_id: dict.fromkeys(relevant, 1) for query_id, (_, relevant) in lists.items()})
    run = {query_id: found for query_id, (found, _) in lists.items()}
    name = f"AP(divisor='reachable')@{k}"
    expected = RankingMetrics(spark.sparkContext.parallelize(list(lists.values()))).meanAveragePrecisionAt(k)
    assert cranfield.evaluate(testset, run, measures=[name]).mean(name) == pytest.approx(expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_contract_of_executors(case: Case, spark: SparkSession, tmp_path: Path) -> None:
    rows = frame_of(spark, case.table())
    for number in range(3):
        folder = tmp_path / str(number)
        score_frame(rows, case.judgments, case.scoring, partitions=1 + 3 * number).write.parquet(f"file://{folder}")
        check(case, pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet")))))
    results = evaluate(rows, case.judgments, list(MEASURE_NAMES), out=tmp_path / "out", systems=case.systems)
    check(case, pa.concat_tables(map(pq.read_table, results.files)), drops_rows_without_query=True)


@pytest.mark.parametrize(
    "made",
    [make_inputs(2), make_inputs(3, whole_numbers=True), make_inputs(4, n_queries=6, skewed=30_000)],
    ids=["text", "whole numbers", "a query of many rows"],
)
def test_results_are_those_of_the_kernel_on_all_rows(made: Inputs, spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark, made.runs)
    results = evaluate(frame, made.judgments, MEASURES, out=tmp_path / "out", systems=SYSTEMS)
    assert results_in(tmp_path / "out") == made.expected()
    assert results.about.n_rows == len(made.runs)
    assert results.about.n_rows_unjudged == len(made.runs) - sum(row["n_rows"] for row in made.expected()) > 0
    assert results.n_queries == made.judgments.n_queries


def test_values_are_those_of_evaluate_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """Another reader and another ranker: `cranfield.evaluate` of each system by itself."""
    made = make_inputs(5)
    grades: dict[str, dict[str, int]] = {}
    for row in made.judgments.rows().to_pylist():
        grades.setdefault(row["query_id"], {})
        if row["doc_id"] is not None:
            grades[row["query_id"]][row["doc_id"]] = int(row["grade"])
    evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=tmp_path / "out", systems=SYSTEMS)
    found = {(row["system"], row["query_id"]): row for row in results_in(tmp_path / "out")}
    for system in SYSTEMS:
        run = made.runs.filter(pc.equal(made.runs["system"], system)).drop_columns("system")
        inner = cranfield.evaluate({q: g for q, g in grades.items() if g}, run, measures=MEASURES, duplicates="first")
        for measure in map(cranfield.parse, MEASURES):
            for query_id in inner.query_ids:
                value, other = inner.value(measure, query_id), found[system, query_id][str(measure)]
                assert (value is None) == (other is None), (measure, query_id)
                assert value is None or math.isclose(value, other, abs_tol=1e-12), (measure, query_id)


def test_files_of_each_system_and_one_table_of_all_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(6)
    made.write(tmp_path / "all")
    for system in SYSTEMS:
        rows = made.runs.filter(pc.equal(made.runs["system"], system))
        one = pa.table({"qid": rows["query_id"], "docno": rows["doc_id"], "score": rows["score"].cast(pa.float32())})
        pq.write_table(one, tmp_path / f"{system} {{1}} 100%.parquet")

    def declare(systems: Sequence[str]) -> Scoring:
        named = tuple(name.removesuffix(" {1} 100%") for name in systems)
        assert named == SYSTEMS
        return replace(made.scoring, systems=tuple(systems))

    single = [tmp_path / f"{system} {{1}} 100%.parquet" for system in SYSTEMS]
    evaluate_files(single, made.judgments, declare, tmp_path / "out 1")
    narrow = made.runs.set_column(2, "score", made.runs["score"].cast(pa.float32()).cast(pa.float64()))
    expected = Inputs(narrow, made.judgments, made.scoring).expected()
    found = results_in(tmp_path / "out 1")
    assert [row | {"system": row["system"].removesuffix(" {1} 100%")} for row in found] == expected
    for number, run in enumerate((tmp_path / "all", tmp_path / "all" / "part-*.parquet"), start=2):
        evaluate_files([run], made.judgments, declare, tmp_path / f"out {number}")
        assert results_in(tmp_path / f"out {number}") == made.expected()


def test_a_folder_of_results_has_nothing_that_hadoop_left(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(6, n_queries=7)
    for _ in range(2):  # earlier results are replaced
        evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=tmp_path / "out", systems=SYSTEMS)
        first, *parts = sorted(path.name for path in (tmp_path / "out").iterdir())
        assert first == "_evaluation.json"
        assert parts == ["queries-00000.parquet"]
    assert results_in(tmp_path / "out") == made.expected()


def test_results_are_in_the_order_of_the_test_set_while_they_are_few(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_inputs(6, n_queries=7)
    in_order = [query for query in made.judgments.query_ids.to_pylist() for _ in SYSTEMS]
    for number, few in enumerate((1 << 20, 0)):
        monkeypatch.setattr(job, "FEW_ROWS", few)
        results = evaluate(
            frame_of(spark, made.runs), made.judgments, MEASURES, out=tmp_path / str(number), systems=SYSTEMS
        )
        found = pa.concat_tables(map(pq.read_table, results.files))["query_id"].drop_null().to_pylist()
        assert (found == in_order) == bool(few)
        assert results_in(tmp_path / str(number)) == made.expected()
        assert sum(len(block) for block in results.blocks()) == made.judgments.n_queries


def test_judgments_may_be_a_table_of_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(7)
    judged = frame_of(spark, made.judgments.rows())
    results = evaluate(frame_of(spark, made.runs), judged, MEASURES, out=tmp_path / "out", systems=SYSTEMS)
    assert results_in(tmp_path / "out") == made.expected()
    assert (results.about.n_queries, results.about.n_judgments) == (made.judgments.n_queries, len(made.judgments))
    assert (
        results.about.digest
        == evaluate(frame_of(spark, made.runs), judged, MEASURES, out=tmp_path / "out", systems=SYSTEMS).about.digest
    )


def test_one_system_of_a_table_of_several(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(8)
    results = evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=tmp_path / "out", systems=["dense"])
    assert {row["system"] for row in results_in(tmp_path / "out")} == {"dense"}
    assert results.about.n_rows == made.runs["system"].to_pylist().count("dense")


def test_equal_inputs_give_equal_results_however_their_rows_are_dealt(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(9)
    frame = frame_of(spark, made.runs)
    tables = []
    for number in range(2):
        folder = tmp_path / str(number)
        score_frame(frame.repartition(5 - number), made.judgments, made.scoring, partitions=4).write.parquet(
            f"file://{folder}"
        )
        tables.append([pq.read_table(path).to_pylist() for path in sorted(folder.glob("*.parquet"))])
    assert tables[0] == tables[1]


def test_wrong_rows_are_an_error_with_all_of_them_and_leave_no_results(spark: SparkSession, tmp_path: Path) -> None:
    judgments = JudgmentTable.from_rows(pa.array(["q1", "q2"]), pa.array(["d1", "d1"]), [1, 1], name="two", digest="")
    rows = [("q1", "d1", 1.0), ("q1", "d1", 2.0), ("q2", "d2", math.nan), ("q3", None, 1.0)]
    frame = spark.createDataFrame(rows, "query_id string, doc_id string, score double")
    with pytest.raises(RunFormatError) as caught:
        evaluate(frame, judgments, ["AP"], out=tmp_path / "out", partitions=7)
    assert {"nan" in str(problem) for problem in caught.value.problems} == {True, False}
    assert not list((tmp_path / "out").glob("*"))


def test_columns_that_are_missing_or_hold_something_else(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("q1", 1.5, "x")], "topic string, doc_id double, score string")
    judgments = JudgmentTable.from_rows(pa.array(["q1"]), pa.array(["d1"]), [1], name="one", digest="")
    with pytest.raises(RunFormatError) as caught:
        evaluate(frame, judgments, ["AP"], out=tmp_path / "out")
    assert [problem.message for problem in caught.value.problems] == [
        "no column query_id",
        "column doc_id does not contain ids",
        "column score does not contain numbers",
    ]
    with pytest.raises(UsageError, match="unknown column 'topik'"):
        evaluate(frame, judgments, ["AP"], out=tmp_path / "out", columns={"query_id": "topik"})


def test_judgments_that_come_twice_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("q1", "d1", 1.0)], "query_id string, doc_id string, score double")
    judged = spark.createDataFrame([("q1", "d1", 1), ("q1", "d1", 2)], "query_id string, doc_id string, grade int")
    with pytest.raises(RunFormatError, match="document 'd1' of query 'q1' is judged twice"):
        evaluate(rows, judged, ["AP"], out=tmp_path / "out")


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        ([("q1", "d1", None)], "document 'd1' of query 'q1' has no grade"),
        (
            [("q1", "d1", math.nan), ("q1", "d2", 1.0)],
            "document 'd1' of query 'q1' has the grade nan, which is not a finite",
        ),
        ([("q1", "d1", math.inf)], "has the grade inf"),
        ([("q1", "d1", 1.0), (None, "d1", 1.0)], "a judgment has no query_id"),
    ],
)
def test_judgments_that_are_none_are_an_error(spark: SparkSession, tmp_path: Path, judged: list, said: str) -> None:
    rows = spark.createDataFrame([("q1", "d1", 1.0)], "query_id string, doc_id string, score double")
    table = spark.createDataFrame(judged, "query_id string, doc_id string, grade double")
    with pytest.raises(RunFormatError, match=said):
        evaluate(rows, table, ["AP", "nDCG"], out=tmp_path / "out")


def test_files_whose_columns_have_other_names_and_types(spark: SparkSession, tmp_path: Path) -> None:
    """As on this machine: each file is read by its own columns."""
    judgments = JudgmentTable.from_rows(pa.array(["1", "2", "3"]), pa.array(["7"] * 3), [1] * 3, name="", digest="")
    tables = (
        {"query_id": ["1", "1"], "doc_id": ["7", "8"], "score": [0.5, 1.0]},
        {"query_id": [2], "doc_id": [7], "score": pa.array([3], pa.int32())},
        {"qid": ["3"], "docno": ["7"], "score": pa.array([2.5], pa.float32())},
    )
    (tmp_path / "run").mkdir()
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), tmp_path / "run" / f"part-{number} {{}}.parquet")
    evaluate_files([tmp_path / "run"], judgments, lambda names: Scoring.of(names, ["AP"]), tmp_path / "out")
    assert [row["AP"] for row in results_in(tmp_path / "out")] == [0.5, 1.0, 1.0]
    assert {row["system"] for row in results_in(tmp_path / "out")} == {"run"}


def test_a_job_that_fails_says_why_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    judgments = JudgmentTable.from_rows(pa.array(["q1"]), pa.array(["d1"]), [1], name="", digest="")
    rows = spark.sql("select 'q1' query_id, 'd1' doc_id, raise_error('out of tea') + 1D score")
    with pytest.raises(UsageError, match=r"the job on Spark failed; got .*out of tea"):
        evaluate(rows, judgments, ["AP"], out=tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(RunFormatError, match=r"cut\.parquet: this Parquet file is damaged"):
        evaluate_files([cut], judgments, lambda names: Scoring.of(names, ["AP"]), tmp_path / "out")
    with pytest.raises(RunFormatError, match=r"s3a://b/x: Spark cannot read this run.*S3AFileSystem not found"):
        evaluate_files(["s3a://b/x"], judgments, lambda names: Scoring.of(names, ["AP"]), tmp_path / "out")


def test_arguments_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(8, n_queries=7)
    rows = frame_of(spark, made.runs)
    with pytest.raises(UsageError, match="unknown column role 'topic'"):
        evaluate(rows, made.judgments, ["AP"], out=tmp_path / "out", columns={"topic": "query_id"})
    with pytest.raises(UsageError, match="partitions is 0"):
        evaluate(rows, made.judgments, ["AP"], out=tmp_path / "out", partitions=0)


def test_a_folder_at_a_uri(spark: SparkSession, tmp_path: Path) -> None:
    """Through viewfs, whose folder lies on this machine."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    (tmp_path / "lake" / "values").mkdir(parents=True)
    settings.set("fs.viewfs.mounttable.made.link./lake", f"file://{tmp_path / 'lake'}")
    made, there, out = make_inputs(14, n_queries=9), tmp_path / "lake" / "values", "viewfs://made/lake/values"
    (there / "_temporary").mkdir()  # of a job that was killed
    for _ in range(2):  # earlier results are replaced
        results = evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=out, systems=SYSTEMS)
        assert results_in(there) == results_in(results.folder) == made.expected()
        assert (there / "_evaluation.json").read_bytes() == (results.folder / "_evaluation.json").read_bytes()
        assert not (there / "_temporary").exists()
    for name in ("mine.parquet", "_delta_log"):
        (there / name).touch()
        with pytest.raises(UsageError, match=f"other files.*{name}"):
            evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=out, systems=SYSTEMS)
        (there / name).unlink()
    assert results_in(there) == made.expected()


def test_a_folder_of_other_files_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(10, n_queries=7)
    pq.write_table(made.runs, tmp_path / "mine.parquet")
    with pytest.raises(UsageError, match="other Parquet files"):
        evaluate(frame_of(spark, made.runs), made.judgments, MEASURES, out=tmp_path, systems=SYSTEMS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.parquet"]


@pytest.mark.parametrize("convention", ["cupertino"])
def test_conventions_that_go_by_the_order_of_rows_are_refused(
    spark: SparkSession, convention: str, tmp_path: Path
) -> None:
    made = make_inputs(10, n_queries=7)
    with pytest.raises(UsageError, match="a distributed table has no order"):
        evaluate(frame_of(spark, made.runs), made.judgments, ["AP"], out=tmp_path, convention=convention)


def test_a_measure_that_a_program_defined(spark: SparkSession, tmp_path: Path) -> None:
    from cranfield.measures.own import forget

    cranfield.define("HalfSeen", lambda view: view.n_returned / 2, title="Half", sentence="Half.", range=(0, 1e9))
    try:
        made = make_inputs(11, n_queries=7)
        evaluate(frame_of(spark, made.runs), made.judgments, ["HalfSeen"], out=tmp_path / "out", systems=SYSTEMS)
        for row in results_in(tmp_path / "out"):
            assert row["outcome"] == "missing" or row["HalfSeen"] == row["n_returned"] / 2
    finally:
        forget("HalfSeen")


def test_a_worker_of_python_that_is_killed_costs_time_alone(spark: SparkSession, tmp_path: Path) -> None:
    made = make_inputs(12)
    frame = spark.read.parquet(f"file://{made.write(tmp_path / 'runs')}")
    hold = Hold(tmp_path, partition=1)
    with killed(hold):
        hold.on(score_frame(frame, made.judgments, made.scoring, partitions=4)).write.parquet(
            f"file://{tmp_path / 'out'}"
        )
    assert results_in(tmp_path / "out") == made.expected()
    assert hold.tries().count(1) == 2


def test_the_command_and_the_program_of_the_page(tmp_path: Path, checkout: Path) -> None:
    """Each is a process with a session of its own; both give the values of the local path."""
    made = make_inputs(13)
    runs = made.write(tmp_path / "runs")
    judged = made.judgments.rows()
    pq.write_table(judged.filter(judged["doc_id"].is_valid()), tmp_path / "judgments.parquet")
    measured = ["-m", "nDCG@10", "-m", "AP", "--format", "csv"]
    local = run("cranfield", "evaluate", tmp_path / "judgments.parquet", runs, *measured)
    there = run(
        *("cranfield", "evaluate", tmp_path / "judgments.parquet", runs, *measured),
        *("--engine", "spark", "--master", "local[2]", "--out", tmp_path / "out"),
    )
    assert there == local
    frame = made.runs.rename_columns(["query_id", "doc_id", "bm25", "system"])
    (tmp_path / "lake").mkdir()
    pq.write_table(frame.append_column("market", pa.array(["de"] * len(frame))), tmp_path / "lake" / "part-0.parquet")
    page = (checkout / "docs" / "how-to" / "large-runs.md").read_text(encoding="utf-8")
    program = re.search(r"`evaluate\.py`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert program is not None
    (tmp_path / "evaluate.py").write_text(program[1], encoding="utf-8")
    arguments = (tmp_path / "judgments.parquet", tmp_path / "lake", tmp_path / "out 2")
    printed = run(sys.executable, tmp_path / "evaluate.py", *arguments)
    means = {line.split(",")[0]: float(line.split(",")[5]) for line in local.splitlines()[1:] if ",nDCG@10," in line}
    assert dict(line.split() for line in printed.splitlines()) == {
        name: f"{mean:.4f}".rstrip("0") for name, mean in means.items()
    }


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_process_and_no_results(tmp_path: Path, ended_by: signal.Signals) -> None:
    made, mark, out = make_inputs(15), f"CRANFIELD_MARK={tmp_path.name}-{ended_by}", tmp_path / "out"
    runs = made.write(tmp_path / "runs")
    judged = made.judgments.rows()
    pq.write_table(judged.filter(judged["doc_id"].is_valid()), tmp_path / "judgments.parquet")
    program = Path(sys.executable).with_name("cranfield")  # not the one that the tests put on the path
    words = (
        program,
        "evaluate",
        tmp_path / "judgments.parquet",
        runs,
        "-m",
        "AP",
        "--engine",
        "spark",
        "--out",
        out,
    )
    environment = os.environ | dict([mark.split("=")])
    with subprocess.Popen(
        list(map(str, words)), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(out.exists)  # made just before the job that writes begins
        assert len(marked(mark)) >= 2
        process.send_signal(ended_by)
        _, error = process.communicate(timeout=180)
    wait_until(lambda: not marked(mark))
    assert "Traceback" not in error
    assert not (out / "_evaluation.json").exists()
    if ended_by == signal.SIGINT:
        assert process.returncode == 130
        assert "interrupted: the same command starts from the beginning" in error
        assert list(out.iterdir()) == []


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def marked(mark: str) -> list[int]:
    """Processes with a variable of the environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found += [int(path.parent.name)] * (mark.encode() in path.read_bytes().split(b"\0"))
    return found


def run(*words: str | Path) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout
