"""An evaluation on Spark from end to end: rows are scored by the workers, and what they wrote is checked and summed up here."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cranfield.base.errors import InputError, Problem, ProblemList, RunFormatError, UsageError
from cranfield.model import DEFAULT_CONVENTION, Convention, TestSet
from cranfield.ranking.scan import Duplicates, Missing
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import DUPLICATES_HINT, REPEATED, result_schema
from cranfield.scale.results import (
    INFO_FILE,
    ROWS_AT_ONCE,
    Results,
    ResultsInfo,
    ResultsWriter,
    clear_results,
    finish_results,
    is_result_file,
    read_results,
)
from cranfield.scale.scoring import Scoring
from cranfield.scale.source import find_runs, opened_parquet
from cranfield.scale.spark.partition import VALUE
from cranfield.scale.spark.session import cause_of, job_errors, send_package, spark_session
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


SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
STORES = ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cos", "cosn", "obs")
"""File systems whose URIs name a bucket or container after `//`."""


def is_remote(place: str | Path) -> bool:
    """Whether a place is a URI of another file system than this machine's."""
    found = SCHEME.match(str(place))
    return found is not None and found[0].lower() != "file:"


def local_path(place: str | Path) -> Path:
    """The path of a place on this machine."""
    return Path(re.sub(r"(?i)^file:(?://(?=/))?", "", str(place)))


def uri_of(place: str | Path) -> str:
    """How Spark names a place: without a scheme it would look in the file system of the cluster. Nothing is quoted in it."""
    if not is_remote(place):
        return f"file://{local_path(place).resolve()}"
    scheme, _, rest = str(place).partition(":")
    is_short = rest.startswith("/") and not rest.startswith("//")  # what a Path makes of two slashes
    has_host = scheme.lower() in STORES or ":" in rest[1:].partition("/")[0]
    return f"{scheme}:/{rest}" if is_short and has_host else str(place)


def uri_to_read(place: str | Path) -> str:
    """The same where a pattern of file names is understood: one that is the name of a file is that file."""
    uri = uri_of(place)
    is_file = not is_remote(place) and local_path(place).exists()
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", uri) if is_file else uri


def places_of_runs(runs: Sequence[str | Path]) -> dict[str, list[str]]:
    """Name of each run to what Spark reads for it: the files of this machine, or a URI as it is.

    Raises:
        RunFormatError: with each path that names no Parquet file.
        UsageError: the paths look like the parts of one run.
    """
    local = iter(find_runs([str(local_path(run)) for run in runs if not is_remote(run)]))
    found: list[tuple[str, list[str]]] = []
    for run in runs:
        if is_remote(run):
            found.append((_name_of(uri_of(run)), [uri_of(run)]))
        else:
            of_run = next(local)
            found.append((of_run.name, [uri_to_read(path) for path in of_run.files]))
    return dict(zip(_different([name for name, _ in found]), (places for _, places in found), strict=True))


def groups_of(uris: Sequence[str]) -> list[list[str]]:
    """The files of a run in groups whose columns are of one kind, which Spark reads as a table each.

    Args:
        uris: of `places_of_runs`; what is no file of this machine is one group.

    Raises:
        RunFormatError: with each file that cannot be read.
    """
    groups: dict[object, list[str]] = {}
    problems = ProblemList(RunFormatError)
    for uri in uris:
        path = Path(re.sub(r"\\(.)", r"\1", local_path(uri).as_posix()))
        kind = None
        if not is_remote(uri) and path.is_file():
            try:
                with opened_parquet(path) as file:
                    kind = tuple(zip(file.schema_arrow.names, map(str, file.schema_arrow.types), strict=True))
            except RunFormatError as error:
                problems.problems += error.problems
        groups.setdefault(kind, []).append(uri)
    problems.raise_if_any()
    return list(groups.values())


def _name_of(uri: str) -> str:
    """The last part of a URI that is no pattern, without its ending."""
    parts = [part for part in uri.partition("://")[2].split("/") if part and not re.search(r"[*?\[{]", part)]
    return re.sub(r"\.parquet$", "", parts[-1]) if parts else "run"


def _different(names: Sequence[str]) -> Iterator[str]:
    """The names, numbered where two are equal."""
    is_numbered = len(set(names)) < len(names)
    return (f"{name}-{number}" if is_numbered else name for number, name in enumerate(names, start=1))


MARKS = (INFO_FILE, "_SUCCESS", "_temporary")


@dataclass(frozen=True)
class ResultFolder:
    """The folder, as Spark sees it."""

    spark: SparkSession
    place: str | Path

    def prepare(self) -> None:
        """Make it ready for new results; earlier results are removed.

        Raises:
            UsageError: it holds other files.
        """
        if not is_remote(self.place):
            folder = local_path(self.place)
            folder.mkdir(parents=True, exist_ok=True)
            clear_results(folder)
            return
        names = self._names()
        others = [name for name in names if not self._is_own(name, finished=INFO_FILE in names)]
        if others:
            raise UsageError(
                "this folder holds other files",
                path=str(self.place),
                expected="an empty folder, or earlier results",
                got=others[0],
                hint="name another folder for the results",
            )
        self.remove()

    def write(self, results: DataFrame) -> None:
        """Compute, and write as Parquet; a task that is repeated replaces what its first try left."""
        results.write.mode("append").option("compression", "zstd").parquet(uri_of(self.place))

    def fetch(self, folder: Path) -> None:
        """Copy the Parquet files into a folder of this machine, where they are not there already."""
        if not is_remote(self.place):
            return
        files, root = self._hadoop()
        for name in self._names():
            if name.endswith(".parquet"):
                files.copyToLocalFile(False, self._path(root, name), self._path(uri_of(folder), name), True)

    def put(self, file: Path) -> None:
        """Copy a file of this machine into it."""
        if is_remote(self.place):
            files, root = self._hadoop()
            source = self._path(uri_of(file.parent), file.name)
            files.copyFromLocalFile(False, True, source, self._path(root, file.name))

    def remove(self) -> None:
        """Remove the results."""
        if is_remote(self.place):
            files, root = self._hadoop()
            for name in self._names():
                if self._is_own(name, finished=True):
                    files.delete(self._path(root, name), True)
            return
        self.tidy()
        for path in (*local_path(self.place).glob("*.parquet"), local_path(self.place) / INFO_FILE):
            path.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what Hadoop leaves beside the results: marks and checksums."""
        if not is_remote(self.place):
            for path in (*local_path(self.place).glob(".*.crc"), local_path(self.place) / "_SUCCESS"):
                path.unlink(missing_ok=True)

    @staticmethod
    def _is_own(name: str, *, finished: bool) -> bool:
        """Whether it is of results, or of Hadoop, which leaves marks and what a job that was killed had not finished."""
        return name in MARKS or name.endswith(".crc") or is_result_file(name, finished=finished)

    def _names(self) -> Sequence[str]:
        files, root = self._hadoop()
        path = self.spark._jvm.org.apache.hadoop.fs.Path(root)  # noqa: SLF001
        return sorted(status.getPath().getName() for status in files.listStatus(path)) if files.exists(path) else []

    def _hadoop(self) -> tuple[Any, str]:
        """The file system of Hadoop that holds the folder, and the folder in it."""
        jvm: Any = self.spark._jvm  # noqa: SLF001 - pyspark has no other way to a file system
        root = uri_of(self.place)
        settings = self.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(root).getFileSystem(settings), root

    def _path(self, root: str, name: str) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.Path(root, name)  # noqa: SLF001


FEW_ROWS = 1 << 20
"""Results are put in order up to so many; more stay in the files of the partitions, in the order of their queries' hashes."""


def finish_in_order(files: Sequence[Path], query_ids: pa.Array | None, about: ResultsInfo) -> Results:
    """Replace the files of the partitions, all of a folder, by one, and finish the folder.

    Args:
        files: at least one.
        query_ids: of the test set; None: in the order of their text.
        about: what was computed.
    """
    scoring = about.scoring
    schema = result_schema(scoring)
    table = pa.concat_tables([pq.read_table(path).select(schema.names).cast(schema) for path in files])
    table = table.filter(pc.is_valid(table["query_id"]))
    known = (
        pc.cast(query_ids, pa.string())
        if query_ids is not None
        else pc.unique(table["query_id"].combine_chunks()).sort()
    )
    query = np.asarray(pc.index_in(table["query_id"], value_set=known))
    system = np.asarray(pc.index_in(table["system"], value_set=pa.array(scoring.systems)))
    table = table.take(pa.array(np.lexsort((system, query))))
    for path in files:
        path.unlink()
    with ResultsWriter(files[0].parent, scoring) as writer:
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            writer.write(batch)
        return writer.finish(about)


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
