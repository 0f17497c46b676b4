"""Stored runs: uploaded ones, and the answers of systems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.books.store.rows import checked_name
from cranfield.workbench.service.contents import read_stored_run, run_file
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.store.runs import StoredRuns
from cranfield.workbench.service.values import NewRun, RunInfo

if TYPE_CHECKING:
    from cranfield.model import Run


class Runs(StoredRuns):
    """Runs by number."""

    def add(
        self,
        name: str,
        path: Path,
        *,
        format_name: str | None = None,
        by: int | None = None,
    ) -> RunInfo:
        """Store an uploaded run file, as it is.

        Raises:
            InputError: with everything that is wrong with the file.
            UsageError: not a name.
        """
        from cranfield.formats.sniff import sniff_run

        name = checked_name(name)
        found = sniff_run(path, format_name)
        run = read_stored_run(path, found.name)
        new = NewRun(name, run.digest, path.read_bytes(), len(run.answers))
        return self.keep(new, StoredSource.UPLOAD, found.name, by)

    def load(self, run_id: int) -> Run:
        """The answers of a run, by the ids that its file has.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self.file(run_id) as (info, path):
            return read_stored_run(path, info.format)

    @contextmanager
    def file(self, run_id: int) -> Iterator[tuple[RunInfo, Path]]:
        """A run, and its file for the time of the block."""
        info, content = self.stored(run_id)
        with run_file(content, info.format) as path:
            yield info, path
