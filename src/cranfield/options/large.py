"""Options of runs of any size: how they are read, where results go, and what is known of the queries."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from cranfield.options.declaration import Option


@dataclass(frozen=True, kw_only=True)
class LargeOptions:
    """How runs that are read in parts are read, where results go, and what is known of the queries."""

    memory: Annotated[
        str | None, Option("Memory that Parquet runs of any size may take; default: 1GB.", metavar="SIZE")
    ] = None
    out: Annotated[
        Path | None,
        Option(
            "Write the values of each query to this folder, as Parquet; an interrupted call goes on there.",
            metavar="DIR",
        ),
    ] = None
    engine: Annotated[
        Literal["local", "spark"] | None, Option("What reads Parquet runs: this machine, or Spark; default: local.")
    ] = None
    master: Annotated[
        str | None, Option("Spark's master, as in spark://host:7077; default: local[*].", metavar="URL")
    ] = None
    spark_conf: Annotated[Path | None, Option("Settings of Spark, as in spark-defaults.conf.", metavar="FILE")] = None
    columns: Annotated[
        Mapping[str, str] | None,
        Option(
            "Column of Parquet runs by role: query_id, doc_id, score, rank or system; repeat for more.",
            metavar="ROLE=NAME",
        ),
    ] = None
    baseline_system: Annotated[
        str | None, Option("System of Parquet runs that the others are compared with.", metavar="NAME")
    ] = None
    query_table: Annotated[
        Path | None, Option("Parquet or CSV with a row a query, for the options below.", metavar="FILE")
    ] = None
    cluster: Annotated[
        str | None, Option("Column of the user or session: queries of one stay together.", metavar="COLUMN")
    ] = None
    stratum: Annotated[
        tuple[str, ...], Option("Column of a stratum, as in language; repeat for more.", metavar="COLUMN")
    ] = ()
    weight: Annotated[str | None, Option("Column of the weight of each query.", metavar="COLUMN")] = None

    @property
    def given(self) -> tuple[str, ...]:
        """Names of the options that were given."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name))
