"""A folder of results where Spark writes: on this machine, or in any file system that Hadoop knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield.base.errors import UsageError
from cranfield.scale.result_files import is_result_file
from cranfield.scale.results import INFO_FILE, clear_results
from cranfield.scale.spark.places import is_remote, local_path, uri_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
