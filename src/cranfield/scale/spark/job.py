"""An evaluation on Spark from end to end: rows are scored by the workers, and what they wrote is checked and summed up here."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.errors import InputError, Problem, RunFormatError, UsageError
from cranfield.model import DEFAULT_CONVENTION, Convention, TestSet
from cranfield.ranking.scan import Duplicates, Missing
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.results import INFO_FILE, Results, ResultsInfo, finish_results, read_results
from cranfield.scale.scoring import Scoring
from cranfield.scale.spark.folder import ResultFolder, is_remote, local_path, uri_to_read
from cranfield.scale.spark.partition import VALUE
from cranfield.scale.spark.session import send_package, spark_session
from cranfield.scale.spark.table import Columns, check_order, judgment_rows, partition_count, run_rows, scored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_SYSTEMS = 1000
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
    names = systems if systems is not None else _systems(frame, columns)
    scoring = Scoring.of(names, measures, convention=convention, missing=missing, duplicates=duplicates, depth=depth)
    check_order(scoring)
    table = JudgmentTable.of_testset(judgments) if isinstance(judgments, TestSet) else judgments
    return _evaluated(run_rows(frame, scoring, columns), table, scoring, out, partitions)


def evaluate_files(  # noqa: PLR0913 - what the command line passes
    runs: Mapping[str, Sequence[str | Path]] | Sequence[str | Path],
    judgments: JudgmentTable,
    scoring: Scoring,
    out: str | Path,
    *,
    master: str | None = None,
    conf: Path | None = None,
    columns: Columns | None = None,
    partitions: int | None = None,
) -> Results:
    """The same of Parquet files, in a session that ends with it.

    Args:
        runs: system to its files, folders or globs: paths, or URIs that Spark can read; or those of one table with a column
            `system`, whose names replace the systems of `scoring`.
        judgments: of the test set.
        scoring: what to compute.
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
    check_order(scoring)
    with spark_session(master, conf) as spark:
        if isinstance(runs, Mapping):
            rows = reduce(
                lambda a, b: a.unionByName(b),
                (run_rows(_read(spark, runs[name]), scoring, columns, system=name) for name in scoring.systems),
            )
        else:
            frame = _read(spark, runs)
            scoring = replace(scoring, systems=_systems(frame, columns))
            rows = run_rows(frame, scoring, columns)
        return _evaluated(rows, judgments, scoring, out, partitions)


def _read(spark: SparkSession, paths: Sequence[str | Path]) -> DataFrame:
    try:
        return spark.read.parquet(*map(uri_to_read, paths))
    except Exception as error:
        got = first_line(error)
        raise RunFormatError(
            Problem("Spark cannot read this run", path=str(paths[0]), expected="Parquet files", got=got)
        ) from error


def _systems(frame: DataFrame, columns: Columns | None) -> tuple[str, ...]:
    """The names in the column of systems, in order; `run` without one."""
    column = (columns or {}).get("system", "system")
    if column not in frame.columns:
        return ("run",)
    found = frame.select(frame[column].cast("string").alias("system")).distinct().limit(MOST_SYSTEMS + 1).collect()
    names = sorted(row["system"] for row in found if row["system"] is not None)
    if len(found) > MOST_SYSTEMS:
        got = f"{names[0]!r}, {names[1]!r}, …"
        raise UsageError(f"more than {MOST_SYSTEMS} systems in column {column}", got=got, hint="name those to evaluate")
    return tuple(names) or ("run",)


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
        counts = check_results(sorted(copy.glob("*.parquet")), scoring, size.n_queries, n_rows)
        about = ResultsInfo(scoring, *size, engine="spark", **counts)
        folder.tidy()
        finish_results(copy, about)
        folder.put(copy / INFO_FILE)
        results = read_results(copy)
        undo.pop_all()
    if is_remote(out):
        weakref.finalize(results, shutil.rmtree, copy, ignore_errors=True)
    return results


class Sizes(NamedTuple):
    """What evaluation.json has of judgments."""

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


def check_results(files: Sequence[Path], scoring: Scoring, n_queries: int, n_rows: int) -> dict[str, int]:
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
        raise RunFormatError([Problem(text) for text in sorted(problems)])
    expected = n_queries * len(scoring.systems)
    if (results, seen) != (expected, n_rows):
        raise InputError(
            "the results are not those of all rows",
            expected=f"{expected} results of {n_rows} rows",
            got=f"{results} of {seen}",
            hint="write to a folder that all executors and this machine share; and is the table changed meanwhile?",
        )
    return {"n_rows": n_rows, "n_rows_unjudged": unjudged, "n_duplicates": duplicates}


def first_line(error: Exception) -> str:
    """The first line of an error of Spark, which has many."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
