"""The state of the source of a run, as its folder keeps it: in its manifest in short, and whole in a file beside that."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, ValidationError

from cranfield.base.errors import InputError, UsageError
from cranfield.formats.io.files import read_bytes, shown
from cranfield.formats.io.validation import ClosedModel
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree_state import TreeDifference, TreeState, differences

TREE = "tree.json"
"""The file: every changed file and every ignored one with its digest, by which a later state is compared."""
MOST_NAMED = 20
_WHOLE = TypeAdapter(TreeState)


class TreeRecord(ClosedModel):
    """The folder of a repository when a run began, or another call read it."""

    uncommitted: str = ""
    """A sentence: how many files are not as in the commit, and the first of them; empty: none."""
    n_uncommitted: int = 0
    files: tuple[str, ...] = ()
    """The first 20 of them: `modified src/a.py`."""
    digest: str = ""
    """SHA-256 of all that differs from the commit, ignored files and submodules; without git of all files. Empty: the folder
    was not looked at."""
    notes: tuple[str, ...] = ()
    """What else the folder has otherwise than the commit."""

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Self:
        """The state that a snapshot has, in short; None: there is no repository."""
        tree = None if snapshot is None else snapshot.tree
        if tree is None:
            return cls()
        changed = tree.uncommitted
        return cls(
            uncommitted=tree.sentence,
            n_uncommitted=len(changed),
            files=changed[:MOST_NAMED],
            digest=tree.digest,
            notes=tree.notes,
        )


def tree_files(snapshot: Snapshot | None) -> dict[str, bytes]:
    """The file of the state that a snapshot has, for the folder of a run; nothing without one."""
    if snapshot is None or snapshot.tree is None:
        return {}
    return {TREE: json.dumps(asdict(snapshot.tree), indent=1).encode()}


def left_out_of(folder: Path, repo: Path) -> tuple[Path, ...]:
    """What was not looked at when a run began; nothing where its state cannot be read, which `changed_since` refuses."""
    try:
        before = _WHOLE.validate_json((folder / TREE).read_bytes())
    except (OSError, ValidationError):
        return ()
    return tuple(repo / name for name in before.left_out)


def changed_since(folder: Path, recorded: TreeRecord, now: TreeState | None) -> TreeDifference:
    """How a repository differs from when a run began; nothing where the run did not look at it.

    Args:
        folder: of the run.
        recorded: in its manifest.
        now: the state of the repository.

    Raises:
        InputError: the file of the state is missing, damaged, or not the one that was recorded.
    """
    if now is None or not recorded.digest:
        return TreeDifference()
    path = folder / TREE
    try:
        before = _WHOLE.validate_json(read_bytes(path, InputError))
    except ValidationError as error:
        raise InputError("not the state of a repository", path=shown(path), got=str(error.errors()[0]["msg"])) from None
    if before.digest != recorded.digest:
        raise InputError("not the state that the run began with", path=shown(path), expected=recorded.digest)
    return differences(before, now)


def require_same_tree(
    folder: Path,
    recorded: TreeRecord,
    now: TreeState | None,
    *,
    allow_dirty: bool,
    names_commit: bool = False,
) -> None:
    """Refuse a repository whose folder is not as when a run began.

    Args:
        folder: of the run.
        recorded: in its manifest.
        now: the state of the repository.
        allow_dirty: accept that ignored files differ.
        names_commit: whether the call could name the commit, so that the folder is not read.

    Raises:
        UsageError: with the first files that differ, and how many there are.
        InputError: as `changed_since`.
    """
    found = changed_since(folder, recorded, now)
    if found.source or (found.ignored and not allow_dirty):
        where = f" on commit {now.commit[:12]}" if now is not None and now.commit else ""
        hint = f"bring it back to that state{where}, or begin another run"
        if not found.source:
            hint += "; {allow_dirty} goes on where only ignored files differ"
        if names_commit and now is not None and now.commit:
            hint += f"; {{at={now.commit[:12]}}} reads the commit alone"
        n = len(found.source) + len(found.ignored)
        raise UsageError(
            f"the folder of the repository is not as when the run began ({n}): {found.text}",
            path=shown(folder),
            hint=hint,
            parameters=("allow_dirty", "at"),
        )
