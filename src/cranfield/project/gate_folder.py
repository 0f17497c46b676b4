"""The private folder that a gate collects in: of a fresh name, so that no journal that lay there before is used.

An interrupted call leaves it for `--resume`; a gate that finishes removes what earlier ones left.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cranfield.errors import UsageError
from cranfield.formats.io.files import refusal
from cranfield.formats.io.own_folder import PRIVATE_FOLDER, check_inside, folder_inside
from cranfield.project.experiment import Experiment
from cranfield.project.output_folder import require_folder
from cranfield.systems import Interrupted, progress_on
from cranfield.systems.collect.collection import RUNS, locked
from cranfield.words import first_of

PRIVATE = ".gate-"
"""How the name of the folder of a collection begins; the rest is random."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the answers come from: the system is called, unless a finished run is named."""

    folder: Path | None = None
    """That `cranfield run` made."""
    run: Path | None = None
    """A run file in any format."""
    resume: Path | None = None
    """Folder that an interrupted gate left: its answers are used, and the system is called for the others."""

    @property
    def is_finished(self) -> bool:
        """Whether no system is called."""
        return self.folder is not None or self.run is not None


@dataclass(frozen=True, slots=True)
class CollectionFolder:
    """A private folder to collect in."""

    path: Path
    if_interrupted: str
    """What becomes of its answers then."""


def keeps_nothing(ref: str | None) -> str:
    """Why answers of an interrupted gate are not used; empty where they are."""
    if ref is not None:
        return "with a baseline ref a gate judges answers of this call alone"
    if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        return "in CI (the variable CI is set) a gate judges answers of this call alone"
    return ""


@contextmanager
def collection_folder(
    out: Path, experiments: Sequence[Experiment], source: Source, ref: str | None = None
) -> Iterator[CollectionFolder | None]:
    """A private folder to collect in; the runs are in the output folder at the end of the block.

    Args:
        out: output folder, created if missing, and locked until the end.
        experiments: that are collected.
        source: where the answers come from; for a finished run there is no folder.
        ref: the git ref whose rules count.

    Raises:
        UsageError: the output folder cannot be used, or there is nothing to resume.
        Interrupted: the message names the folder that can be resumed, if any.
    """
    if source.is_finished:
        yield None
        return
    require_folder(out)
    check_outputs(out, experiments)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out, out):
            folder = (
                Path(tempfile.mkdtemp(prefix=PRIVATE, dir=out)) if source.resume is None else _left(source.resume, out)
            )
            others = [path for path in _left_folders(out) if path.name != folder.name]
            if others:
                text = f"left by an interrupted gate, not used, and removed when this one has finished: {first_of(map(str, others))}"
                progress_on(sys.stderr).note(text)
            with _kept_if_interrupted(folder, keeps_nothing(ref)):
                yield CollectionFolder(folder, _if_interrupted(folder, keeps_nothing(ref)))
            _publish(folder, out, experiments)
            for path in (folder, *others):
                shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out), error)) from error


def check_outputs(out: Path, experiments: Sequence[Experiment], files: Iterable[Path] = ()) -> None:
    """Refuse a link in the place of a folder or file that a gate writes, before a query is sent.

    Raises:
        UsageError: with its place.
    """
    if not out.is_dir():
        return
    try:
        for path in files:
            check_inside(out, path)
        for experiment in experiments:
            check_inside(out, out / experiment.name / RUNS, is_folder=True)
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out), error)) from error


def _left_folders(out: Path) -> list[Path]:
    return sorted(path for path in out.glob(f"{PRIVATE}*") if path.is_dir() and not path.is_symlink())


def _left(resume: Path, out: Path) -> Path:
    """The folder to resume, as one of the output folder."""
    found = [path for path in _left_folders(out) if path.name == resume.name]
    if not found or resume.is_symlink() or not resume.is_dir() or not resume.samefile(found[0]):
        expected = f"a folder {out / PRIVATE}… that an interrupted gate named"
        raise UsageError("there is no interrupted gate here", path=str(resume), expected=expected)
    return found[0]


def _if_interrupted(folder: Path, why_not: str) -> str:
    """What becomes of the answers of a call that does not finish."""
    if why_not:
        return f"none is kept: {why_not}."
    return f"the same command with --resume {folder} uses them; without it, a gate that finishes removes them."


@contextmanager
def _kept_if_interrupted(folder: Path, why_not: str) -> Iterator[None]:
    """Keep the answers of a call that does not finish, and say where; or remove them where none may be used."""
    try:
        yield
    except BaseException as error:
        has_answers = any(path.is_file() for path in folder.rglob("*"))
        if why_not or not has_answers:
            shutil.rmtree(folder, ignore_errors=True)
        elif not isinstance(error, Interrupted):
            progress_on(sys.stderr).note(f"the answers are kept: {_if_interrupted(folder, why_not)}")
        raise


def _publish(folder: Path, out: Path, experiments: Sequence[Experiment]) -> None:
    """Move the runs to where `cranfield run` has them."""
    for experiment in experiments:
        source, target = folder / experiment.name / RUNS, out / experiment.name / RUNS
        if source.is_dir():
            # NAME.log.jsonl comes before NAME.jsonl, as they are written.
            paths = sorted(source.iterdir(), reverse=True)
            with folder_inside(out, target.parent, make=0o777), folder_inside(out, target, make=PRIVATE_FOLDER) as runs:
                for path in paths:
                    runs.take(path, path.name)
