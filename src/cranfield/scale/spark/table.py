"""Rows of runs and judgments as one table of Spark, dealt out by query and scored partition by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cranfield.base.errors import Problem, RunFormatError, TestSetError, UsageError, shorten, unknown_name
from cranfield.formats.io.delimited import COLUMN_NAMES
from cranfield.model import Convention
from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.kernel import COUNTED
from cranfield.scale.scoring import Scoring
from cranfield.scale.source import SYSTEM_COLUMNS
from cranfield.scale.spark.partition import IS_JUDGMENT, VALUE, partition_function
from cranfield.scale.spark.session import quiet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cranfield.base.errors import InputError

ROWS_A_PARTITION = 1_000_000
PARTITIONS_A_CORE = 2
SPARK_TYPES = {"string": "string", "int64": "bigint", "int32": "int", "double": "double"}
"""Types of the results, as Spark calls them."""
Columns = Mapping[str, str]
"""What holds a column to its name: `{"score": "bm25"}`."""


def score_frame(
    frame: DataFrame,
    judgments: JudgmentTable | DataFrame,
    scoring: Scoring,
    *,
    columns: Columns | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """The results of each query and system, with the columns of `kernel.result_schema`; nothing is computed yet.

    Args:
        frame: a row a result: columns `query_id`, `doc_id` and `score`, and `system` where several are scored.
        judgments: as columns in memory, or a table of `query_id`, `doc_id` and `grade`, where a row without a document is
            a query without judgments.
        scoring: what to compute. Rows of other systems are left out.
        columns: names of columns of `frame` that have none of the usual names.
        partitions: into which the queries are dealt; by default one for each million of rows, which are counted for it.

    Raises:
        RunFormatError: a column is missing, or of a type that holds no ids or no numbers.
        TestSetError: the same of judgments.
        UsageError: the convention goes by the order of rows, which a distributed table does not have.
    """
    check_columns(columns)
    check_order(scoring.convention)
    rows = run_rows(frame, scoring, columns)
    judged = judgment_rows(judgments, rows.sparkSession)
    if partitions is None:
        n_judgments = len(judgments) if isinstance(judgments, JudgmentTable) else judged.count()
        partitions = partition_count(rows.count() + n_judgments, rows.sparkSession)
    return scored(rows, judged, scoring, partitions)


def scored(rows: DataFrame, judged: DataFrame, scoring: Scoring, partitions: int) -> DataFrame:
    """The results of `run_rows` and `judgment_rows`.

    A number of partitions is given, so Spark neither joins partitions nor splits one at run time.
    """
    together = rows.unionByName(judged, allowMissingColumns=True)
    with quiet():
        from pyspark.sql.types import DoubleType, StructField, StructType, _parse_datatype_string

        fields = [StructField(name, _parse_datatype_string(SPARK_TYPES[str(kind)])) for name, kind in COUNTED]
        return together.repartition(partitions, "query_id").mapInArrow(
            partition_function(scoring),
            StructType([*fields, *(StructField(str(measure), DoubleType()) for measure in scoring.measures)]),
        )


def partition_count(n_rows: int, spark: SparkSession) -> int:
    """Partitions for so many rows: about a million rows each, and two or more for each core."""
    try:
        cores = int(spark.sparkContext.defaultParallelism)
    except (AttributeError, NotImplementedError, RuntimeError):  # a remote session does not tell
        cores = int(spark.conf.get("spark.sql.shuffle.partitions") or 200) // PARTITIONS_A_CORE
    return max(-(-n_rows // ROWS_A_PARTITION), PARTITIONS_A_CORE * cores, 1)


def check_columns(columns: Columns | None) -> None:
    """Refuse names of columns that hold nothing that is read.

    Raises:
        UsageError: naming each.
    """
    roles = ("query_id", "doc_id", "score", "system")
    unknown = [unknown_name("column role", role, roles) for role in columns or {} if role not in roles]
    if unknown:
        raise UsageError(unknown)


def check_order(rules: Convention) -> None:
    """Refuse what goes by the order of rows.

    Raises:
        UsageError: the convention does.
    """
    if rules.file_order == "score" and rules.ties != "given":
        return
    by = {"given": "rows by their place in the file", "rank": "rows by a rank, and equal ranks by their place"}
    what = by.get(rules.file_order, "equal scores by their place in the file")
    raise UsageError(
        f"convention {rules.name} orders {what}, but a distributed table has no order",
        expected="a convention that orders by score",
        hint="choose another with {convention}, or evaluate on this machine",
        parameters=("convention",),
    )


def run_rows(
    frame: DataFrame, scoring: Scoring, columns: Columns | None = None, *, system: str | None = None
) -> DataFrame:
    """The rows of runs with the names and types that a partition is read by; all of one system where that is given."""
    from pyspark.sql import functions as F  # noqa: N812 - as all of its users call it

    has_systems = system is None and (system_column(frame, columns) is not None or len(scoring.systems) > 1)
    roles = ["query_id", "doc_id", "score", *(["system"] if has_systems else [])]
    taken = choose_columns(frame, roles, columns, RunFormatError)
    chosen = [
        F.col(_quoted(taken["query_id"])).cast("string").alias("query_id"),
        F.col(_quoted(taken["doc_id"])).cast("string").alias("doc_id"),
        F.col(_quoted(taken["score"])).cast("double").alias(VALUE),
        F.lit(False).alias(IS_JUDGMENT),
    ]
    if system is not None and len(scoring.systems) > 1:
        chosen.append(F.lit(system).alias("system"))
    if not has_systems:
        return frame.select(*chosen)
    names = F.col(_quoted(taken["system"])).cast("string")
    wanted = frame.where(names.isin(list(scoring.systems)) | names.isNull())
    return wanted.select(*chosen, names.alias("system"))


def system_column(frame: DataFrame, columns: Columns | None) -> str | None:
    """The column that says which system a row is of; None where there is none."""
    names = [columns["system"]] if columns and "system" in columns else SYSTEM_COLUMNS
    return next((name for name in names if name in frame.columns), None)


def judgment_rows(judgments: JudgmentTable | DataFrame, spark: SparkSession) -> DataFrame:
    """The same of judgments."""
    from pyspark.sql import functions as F  # noqa: N812

    if isinstance(judgments, JudgmentTable):
        with quiet():
            judgments = spark.createDataFrame(judgments.rows())
    taken = choose_columns(judgments, ["query_id", "doc_id", "grade"], None, TestSetError)
    return judgments.select(
        F.col(_quoted(taken["query_id"])).cast("string").alias("query_id"),
        F.col(_quoted(taken["doc_id"])).cast("string").alias("doc_id"),
        F.col(_quoted(taken["grade"])).cast("double").alias(VALUE),
        F.lit(True).alias(IS_JUDGMENT),
    )


def choose_columns(
    frame: DataFrame, roles: Sequence[str], columns: Columns | None, error: type[InputError]
) -> dict[str, str]:
    """The name of the column that holds each thing.

    Raises:
        InputError: of type `error`, with each column that is missing or of another type.
        UsageError: `columns` names a column that is not there.
    """
    given, names = {role: name for role, name in (columns or {}).items() if role in roles}, frame.columns
    wrong = [unknown_name("column", name, names) for name in given.values() if name not in names]
    if wrong:
        raise UsageError(wrong)
    taken = {role: given.get(role) or next((name for name in _known(role) if name in names), "") for role in roles}
    types = dict(frame.dtypes)
    problems = [
        Problem(f"no column {role}", expected=" or ".join(_known(role)), got=shorten(names))
        for role, name in taken.items()
        if not name
    ]
    problems += [
        Problem(f"column {name} does not contain {_KINDS[role]}", expected=_EXPECTED[_KINDS[role]], got=types[name])
        for role, name in taken.items()
        if name and not _fits(types[name], _KINDS[role])
    ]
    if problems:
        raise error(problems)
    return taken


_KINDS = {"query_id": "ids", "doc_id": "ids", "system": "ids", "score": "numbers", "grade": "numbers"}
_EXPECTED = {"ids": "text or whole numbers", "numbers": "numbers"}
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TEXT = ("string", "binary", "varchar", "char")


def _known(role: str) -> tuple[str, ...]:
    return SYSTEM_COLUMNS if role == "system" else COLUMN_NAMES[role]


def _fits(kind: str, meant: str) -> bool:
    if kind == "void":  # a column of nulls: each row is a problem
        return True
    others = _TEXT if meant == "ids" else ("float", "double", "decimal")
    return kind.partition("(")[0] in (*_WHOLE, *others)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
