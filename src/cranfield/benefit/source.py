"""The repository of an experiment: agents read its commit, and a tool under test may read its folder, so both must stay as they were."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from cranfield.agents.recording import MAX_NAMED, changed_since, left_out_of, now, require_same_tree
from cranfield.base.errors import CranfieldError, UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
from cranfield.benefit.records import SCHEMA_VERSION
from cranfield.formats.io.files import shown
from cranfield.formats.io.validation import ClosedModel
from cranfield.repo.snapshot import Snapshot, snapshot_digest
from cranfield.repo.tree import source_snapshot


class TreeCheck(ClosedModel):
    """The folder of the repository is not as when the experiment began."""

    schema_version: str = SCHEMA_VERSION
    at: str
    when: Literal["resume", "end", "score"]
    """Before cells are run, after them, and when they are scored."""
    n_source: int = 0
    """Files that are tracked or could be."""
    n_ignored: int = 0
    files: tuple[str, ...] = ()
    """The first 20 of them: `modified src/a.py`."""
    allowed: bool = False
    """The call had `--allow-dirty`."""
    problem: str = ""
    """Why it could not be looked at."""

    @property
    def is_void(self) -> bool:
        """Whether cells were run on two states of the source: nothing can be compared then."""
        return bool(self.n_source) and self.when == "end" and not self.allowed

    @property
    def sentence(self) -> str:
        """What changed, and when; of what makes a comparison invalid, what to do."""
        when = {
            "resume": "before cells were run again",
            "end": "while cells were run",
            "score": "until they were scored",
        }
        if self.problem:
            return f"it is unknown whether the folder of the repository changed {when[self.when]}: {self.problem}"
        n = count_noun(self.n_source + self.n_ignored, "files")
        text = f"the folder of the repository changed {when[self.when]} ({n}): {join_first(self.files)}"
        return f"{text}; let git ignore what a tool writes there, or run with --allow-dirty" if self.is_void else text


def same_source(folder: ExperimentFolder, *, allow_dirty: bool) -> Snapshot | None:
    """The repository of an experiment, which must be as it was when that began; None: the tasks need none.

    Raises:
        UsageError: the commit or the folder is another, with the files that differ.
    """
    manifest = folder.manifest
    snapshot = _read(folder)
    if snapshot is None:
        return None
    is_same = snapshot_digest(snapshot) == manifest.snapshot_digest
    if is_same or not snapshot.is_commit:  # of a folder without git, the files that differ are named
        require_same_tree(folder.path, manifest.tree, snapshot.tree, allow_dirty=allow_dirty)
    if not is_same:
        expected = f"commit {manifest.commit}" if manifest.commit else "the initial files of the experiment"
        got = snapshot.commit or "other files"
        raise UsageError("the experiment has a different source", path=shown(folder.path), expected=expected, got=got)
    _record(folder, snapshot, "resume", allowed=allow_dirty)
    return snapshot


def record_tree(folder: ExperimentFolder, when: Literal["end", "score"], *, allowed: bool = False) -> None:
    """Record how the folder of the repository differs from when the experiment began; nothing where it does not."""
    if not folder.manifest.tree.digest:
        return
    try:
        snapshot = _read(folder)
    except CranfieldError as error:
        _append(folder, TreeCheck(at=now(), when=when, allowed=allowed, problem=error.problems[0].sentence()))
        return
    if snapshot is not None:
        _record(folder, snapshot, when, allowed=allowed)


def _read(folder: ExperimentFolder) -> Snapshot | None:
    plan = folder.plan
    if not plan.repo:
        return None
    # Whether the folder may differ from the commit was decided when the experiment began: it must be as it was.
    repo = Path(plan.repo)
    without = (folder.path, *left_out_of(folder.path, repo))
    return source_snapshot(repo, plan.at or None, allow_dirty=True, without=without, reads_folder=True)


def _record(
    folder: ExperimentFolder, snapshot: Snapshot, when: Literal["resume", "end", "score"], *, allowed: bool
) -> None:
    found = changed_since(folder.path, folder.manifest.tree, snapshot.tree)
    if found:
        check = TreeCheck(
            at=now(),
            when=when,
            n_source=len(found.source),
            n_ignored=len(found.ignored),
            files=(*found.source, *found.ignored)[:MAX_NAMED],
            allowed=allowed,
        )
        _append(folder, check)


def _append(folder: ExperimentFolder, check: TreeCheck) -> None:
    """Record a state; not again where it was recorded of the same moment, which is one caveat of the result."""
    known = folder.read(ExperimentFile.TREES, TreeCheck)
    if all(check.model_copy(update={"at": each.at}) != each for each in known):
        folder.append(ExperimentFile.TREES, check)


def labels_in(snapshot: Snapshot, contents: Collection[bytes]) -> frozenset[str]:
    """Files of a repository that are the tasks of an experiment, with their labels: who reads one knows the answers.

    Args:
        snapshot: of the repository.
        contents: of the files of the tasks.
    """
    return frozenset(
        path
        for path, data in snapshot.each()
        if path.endswith((".json", ".jsonl", ".yaml", ".yml", ".csv", ".tsv")) and data in contents
    )
