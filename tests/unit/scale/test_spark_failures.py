"""What Spark raised, worded; and where files and runs are, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cranfield.scale.spark.job import groups_of, uri_to_read
from cranfield.scale.spark.session import _not_started, cause_of

JAVA = """An error occurred while calling o53.parquet.
: java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found
\tat org.apache.hadoop.conf.Configuration.getClass(Configuration.java:2724)
\tat py4j.Gateway.invoke(Gateway.java:282)"""
WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/cranfield/scale/spark/partition.py", line 40, in score
    yield from score_partition(batches, scoring)
ModuleNotFoundError: No module named 'numpy'
"""
STAGE = """An error occurred while calling o141.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times
Traceback (most recent call last):
  File "x.py", line 1, in f
KeyError: 'a'

During handling of the above exception, another exception occurred:

cranfield.base.errors.UsageError: no such thing; expected another.

\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
Caused by: java.io.IOException: elsewhere"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (JAVA, "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"),
        (WORKER, "ModuleNotFoundError: No module named 'numpy'"),
        (STAGE, "cranfield.base.errors.UsageError: no such thing; expected another."),
        ("[TABLE_OR_VIEW_NOT_FOUND] no table; line 1\n'Project", "[TABLE_OR_VIEW_NOT_FOUND] no table; line 1"),
        ("", "RuntimeError"),
        ("x" * 999, "x" * 299 + "…"),
    ],
)
def test_the_line_that_says_why(text: str, cause: str) -> None:
    assert cause_of(RuntimeError(text)) == cause


def test_a_session_that_does_not_start_shows_no_line_of_spark_about_its_log() -> None:
    log = """WARNING: Using incubator modules
Setting Spark log level to "ERROR".
26/11/24 19:55:00 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive!"""
    assert "All masters are unresponsive" in str(_not_started({}, RuntimeError("x"), log).got)
    quiet = log.rpartition("\n")[0]
    assert _not_started({}, RuntimeError(JAVA), quiet).got == cause_of(RuntimeError(JAVA))


def test_files_with_columns_of_one_kind_are_a_group(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a[1].parquet", "b.parquet", "c.parquet")]
    for path, kind in zip(paths, (pa.float64(), pa.float32(), pa.float64()), strict=True):
        pq.write_table(pa.table({"query_id": ["q"], "doc_id": ["d"], "score": pa.array([1.0], kind)}), path)
    a, b, c = map(uri_to_read, paths)
    assert groups_of([a, b, c]) == [[a, c], [b]]
    assert groups_of(["s3a://lake/run/*.parquet"]) == [["s3a://lake/run/*.parquet"]]
