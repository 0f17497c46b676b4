"""An evaluation on Spark from end to end: rows are scored by the workers, and what they wrote is checked and summed up here."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.base.errors import InputError, Problem, RunFormatError, UsageError
from cranfield.model import DEFAULT_CONVENTION, Convention, TestSet
from cranfield.ranking.scan import Duplicates, Missing
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import DUPLICATES_HINT, REPEATED
from cranfield.scale.results import INFO_FILE, Results, ResultsInfo, finish_results, read_results
from cranfield.scale.scoring import Scoring
from cranfield.scale.spark.failures import cause_of, job_errors
from cranfield.scale.spark.folder import ResultFolder, groups_of, is_remote, local_path, places_of_runs
from cranfield.scale.spark.order import FEW_ROWS, finish_in_order
from cranfield.scale.spark.partition import VALUE
from cranfield.scale.spark.session import send_package, spark_session
from cranfield.scale.spark.table import (
    Columns,
    check_columns,
    check_order,
    judgment_rows,
    partition_count,
    run_rows,
    scored,
    system_column,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_SYSTEMS = 1000
"""Names of systems that are read from a table."""


def evaluate(  # noqa: PLR0913 - keyword options that change the numbers
    frame: DataFrame,
    judgments: TestSet | JudgmentTable | DataFrame,
    measures: Sequence[str] | None = None,
    *,
    out: str | Path,
    systems: Sequence[str] | None = None,
    convention: str | Convention = DEFAULT_CONVENTION,
    missing: Missing | None = None,
    duplicates: Duplicates | None = None,
    depth: int | None = None,
    columns: Columns | None = None,
    partitions: int | None = None,
) -> Results:
    """Evaluate the runs in a table of Spark: the results of each query go to a folder of Parquet files.

    Args:
        frame: a row a result: columns `query_id`, `doc_id`, `score`, and `system` where there are several.
        judgments: a test set of graded document ids, or a table of `query_id`, `doc_id`, `grade`.
        measures: by default those of `cranfield.evaluate`.
        out: the folder of the results: a path, or a URI that Spark can write to.
        systems: names, in the order of the results; by default all of the column `system`, by name.
        convention: how results are ordered and measures computed.
        missing: a judged query without an answer counts as 0, or is left out.
        duplicates: a repeated document of a query is an error, or the best ranked one is kept.
        depth: ranks kept per query.
        columns: names of columns that have none of the usual names: `{"score": "bm25", "system": "variant"}`.
        partitions: into which the queries are dealt; by default one for each million of rows.

    Returns:
        The results, for `cranfield.scale`'s means, intervals and tests; of a remote folder, a copy that is removed with
        the value.

    Raises:
        RunFormatError: columns that are missing, or the first rows that are wrong; `out` then holds no results.
        UsageError: the convention goes by the order of rows, or `out` holds other files.
    """
    _check(columns, partitions)
    with job_errors():
        names = systems if systems is not None else systems_of([("run", frame)], columns)
    scoring = Scoring.of(names, measures, convention=convention, missing=missing, duplicates=duplicates, depth=depth)
    check_order(scoring.convention)
    table = JudgmentTable.of_testset(judgments) if isinstance(judgments, TestSet) else judgments
    with job_errors():
        return _evaluated(run_rows(frame, scoring, columns), table, scoring, out, partitions)


def evaluate_files(
    runs: Sequence[str | Path],
    judgments: JudgmentTable,
    declare: Callable[[Sequence[str]], Scoring],
    out: str | Path,
    *,
    master: str | None = None,
    conf: Path | None = None,
    columns: Columns | None = None,
    partitions: int | None = None,
) -> Results:
    """The same of Parquet files, in a session that ends with it.

    Args:
        runs: files, folders and patterns, each a run, or several systems in a column; paths, or URIs that Spark can read.
        judgments: of the test set.
        declare: says what to compute of systems by their names: of the runs, or sorted, of the column.
        out: as in `evaluate`.
        master: as in `spark_session`.
        conf: as in `spark_session`.
        columns: as in `evaluate`.
        partitions: as in `evaluate`.

    Raises:
        MissingExtraError: pyspark is not installed.
        UsageError: Java is missing, the cluster does not answer, the convention goes by the order of rows.
        RunFormatError: as `evaluate`.
    """
    _check(columns, partitions)
    places = places_of_runs(runs)
    with spark_session(master, conf) as spark, job_errors():
        frames = [(name, _read(spark, group)) for name, of_run in places.items() for group in groups_of(of_run)]
        names = systems_of(frames, columns)
        scoring = declare(names)
        check_order(scoring.convention)
        by_name = not any(system_column(frame, columns) for _, frame in frames)
        rows = [
            run_rows(frame, scoring, columns, system=name if by_name else None)
            for name, frame in frames
            if not by_name or name in scoring.systems
        ]
        return _evaluated(reduce(lambda a, b: a.unionByName(b), rows), judgments, scoring, out, partitions)


def _check(columns: Columns | None, partitions: int | None) -> None:
    check_columns(columns)
    if partitions is not None and partitions < 1:
        raise UsageError(f"partitions is {partitions}", expected="a whole number of 1 or more")


def _read(spark: SparkSession, uris: Sequence[str]) -> DataFrame:
    try:
        return spark.read.parquet(*uris)
    except Exception as error:
        problem = Problem("Spark cannot read this run", uris[0], expected="Parquet files", got=cause_of(error))
        raise RunFormatError(problem) from error


def systems_of(frames: Sequence[tuple[str, DataFrame]], columns: Columns | None) -> tuple[str, ...]:
    """Names of the systems: of the runs, each of one table or more, or sorted, of their column, which is read for that.

    Raises:
        RunFormatError: some runs have a column of systems, others none.
        UsageError: the column has very many names.
    """
    found = [(name, frame, system_column(frame, columns)) for name, frame in frames]
    if not any(column for _, _, column in found):
        return tuple(dict.fromkeys(name for name, _ in frames))
    bare = [name for name, _, column in found if column is None]
    if bare:
        raise RunFormatError(
            "no column `system`, although other runs have it", path=bare[0], expected="one in all runs"
        )
    parts = [frame.select(frame[column].cast("string").alias("system")) for _, frame, column in found]
    together = reduce(lambda a, b: a.unionByName(b), parts).distinct().limit(MAX_SYSTEMS + 1).collect()
    names = sorted(row["system"] for row in together if row["system"] is not None)
    if len(together) > MAX_SYSTEMS:
        got = f"{names[0]!r}, {names[1]!r}, …"
        raise UsageError(f"more than {MAX_SYSTEMS} systems in a column", got=got, hint="name those to evaluate")
    return tuple(names) or tuple(dict.fromkeys(name for name, _ in frames))


def _evaluated(
    rows: DataFrame, judgments: JudgmentTable | DataFrame, scoring: Scoring, out: str | Path, partitions: int | None
) -> Results:
    """The results of `run_rows`, complete and summed up."""
    spark = rows.sparkSession
    judged = judgment_rows(judgments, spark)
    size = _sizes(judgments, judged)
    n_rows = rows.count()
    if not n_rows:
        raise RunFormatError("no row in this run", expected="a row per result")
    send_package(spark)
    folder = ResultFolder(spark, out)
    folder.prepare()
    with ExitStack() as undo:
        undo.callback(folder.remove)
        n_partitions = partitions or partition_count(n_rows + size.n_judgments, spark)
        folder.write(scored(rows, judged, scoring, n_partitions))
        copy = Path(tempfile.mkdtemp(prefix="cranfield-results-")) if is_remote(out) else local_path(out)
        if copy != local_path(out):
            undo.callback(shutil.rmtree, copy, ignore_errors=True)
        folder.fetch(copy)
        files = sorted(copy.glob("*.parquet"))
        about = ResultsInfo(scoring, *size, engine="spark", **check_results(files, scoring, size.n_queries, n_rows))
        folder.tidy()
        if size.n_queries * len(scoring.systems) <= FEW_ROWS:
            query_ids = judgments.query_ids if isinstance(judgments, JudgmentTable) else None
            results = finish_in_order(files, query_ids, about)
        else:
            finish_results(copy, about)
            results = read_results(copy)
        folder.put(copy / INFO_FILE)
        undo.pop_all()
    if is_remote(out):
        weakref.finalize(results, shutil.rmtree, copy, ignore_errors=True)
    return results


class Sizes(NamedTuple):
    """What _evaluation.json has of judgments."""

    testset: str
    digest: str
    n_queries: int
    n_judgments: int


def _sizes(judgments: JudgmentTable | DataFrame, judged: DataFrame) -> Sizes:
    if isinstance(judgments, JudgmentTable):
        return Sizes(judgments.name, judgments.digest, judgments.n_queries, len(judgments))
    from pyspark.sql import functions as F  # noqa: N812

    digest = F.sum(F.xxhash64("query_id", "doc_id", VALUE).cast("decimal(38,0)"))  # the same in any order of rows
    row = judged.agg(F.countDistinct("query_id"), F.count("doc_id"), digest).collect()[0]
    return Sizes("judgments", f"xxhash64-sum:{row[2] or 0}", row[0], row[1])


def check_results(files: Sequence[Path], scoring: Scoring, n_queries: int, n_rows: int) -> dict[str, Any]:
    """See that the files have each query and system once, and count each row of the runs once.

    Returns:
        The counts of `ResultsInfo`.

    Raises:
        RunFormatError: the first rows of the runs that are wrong.
        InputError: rows or queries are missing, as where executors write to disks of their own.
    """
    problems: set[str] = set()
    seen = unjudged = duplicates = results = 0
    for path in files:
        table = pq.read_table(path, columns=["query_id", "n_rows", "n_duplicates", "problem"])
        if table["problem"].null_count < len(table):
            problems.update(table["problem"].drop_null().unique().to_pylist())
        without = table.filter(pc.is_null(table["query_id"]))
        seen += pc.sum(table["n_rows"]).as_py() or 0
        unjudged += pc.sum(without["n_rows"]).as_py() or 0
        duplicates += pc.sum(table["n_duplicates"]).as_py() or 0
        results += len(table) - len(without)
    if problems:
        raise RunFormatError(
            [Problem(text, hint=DUPLICATES_HINT if REPEATED.search(text) else None) for text in sorted(problems)]
        )
    expected = n_queries * len(scoring.systems)
    if (results, seen) != (expected, n_rows):
        raise InputError(
            "the results do not cover all rows",
            expected=f"{expected} results of {n_rows} rows",
            got=f"{results} of {seen}",
            hint="write to a folder that all executors and this machine share, and check that the table does not change during the job",
        )
    return {"n_rows": n_rows, "n_rows_unjudged": unjudged, "n_duplicates": duplicates}
