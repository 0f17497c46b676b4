"""The source that a result is about: the files of a commit, and the folder in which programs find them, which must agree."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cranfield.base.errors import UsageError
from cranfield.repo.snapshot import Snapshot, take
from cranfield.repo.tree import read_tree
from cranfield.repo.tree_state import TreeState

_COMMIT = "commit them, or make git ignore files that do not belong to the source"
_GO_ON = "{allow_dirty} continues, and the result lists them first"


def source_snapshot(
    repo: Path,
    at: str | None = None,
    *,
    allow_dirty: bool = False,
    without: Collection[Path | None] = (),
    reads_folder: bool = False,
) -> Snapshot:
    """The files of a commit, by default of HEAD; without git, of the folder as it stands. Its `tree` is the state of the folder.

    Where `at` names the commit, the folder is not looked at: nothing but the commit is read.

    Args:
        repo: folder of the repository.
        at: commit, branch or tag.
        allow_dirty: accept a folder that is not as the commit.
        without: what is not looked at in the folder: what a call is given or writes; see `own_files`.
        reads_folder: compare the folder whatever `at` is: a program that is measured reads it.

    Raises:
        UsageError: there is no such folder or commit, or it has no files; or the folder has uncommitted changes.
    """
    found = take(repo, at)
    if at is None and found.commit:
        found = take(repo, found.commit)
    if at is None or reads_folder:
        found.tree = read_tree(repo, found.commit, without=without)
        if not allow_dirty:
            require_clean(found.tree, repo, names_commit=not reads_folder)
    if not found.files:
        raise UsageError("no files to read", path=str(repo), expected="the folder of a repository")
    return found


def tracked_snapshot(
    repo: Path, at: str | None = None, *, allow_dirty: bool = False, without: Collection[Path | None] = ()
) -> Snapshot:
    """The tracked files of a folder as they stand, with what of them is not as in the commit as its `tree`; or those of a commit.

    Args:
        repo: folder of the repository.
        at: commit, branch or tag; None is the folder.
        allow_dirty: accept tracked files that are not as in the commit.
        without: what a call is given or writes; see `own_files`.

    Raises:
        UsageError: there is no such folder or commit; or tracked files have uncommitted changes.
    """
    found = take(repo, at)
    if at is None and not found.is_commit:
        found.tree = read_tree(repo, found.commit, without=without, tracked_only=True)
        if not allow_dirty:
            require_clean(found.tree, repo)
    return found


def require_clean(tree: TreeState, repo: Path, *, names_commit: bool = True) -> None:
    """Refuse a folder that is not as its commit.

    Args:
        tree: its state.
        repo: its path.
        names_commit: whether the call could name a commit, so that the folder is not read.

    Raises:
        UsageError: with the first files that differ, and how many there are.
    """
    if tree.changes:
        first = _COMMIT if tree.head == tree.commit else f"check it out (`git checkout {tree.commit[:12]}`)"
        hints = [first, *(["{at=COMMIT} reads only the files of a commit"] if names_commit else []), _GO_ON]
        raise UsageError(
            tree.sentence,
            path=str(repo),
            expected="a folder without uncommitted changes",
            hint="; ".join(hints),
            parameters=("at", "allow_dirty"),
        )
