"""A folder of results where Spark writes: on this machine, or in any file system that Hadoop knows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import ProblemList, RunFormatError, UsageError
from cranfield.scale.results import INFO_FILE, clear_results, is_result_file
from cranfield.scale.source import find_runs, opened_parquet

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
