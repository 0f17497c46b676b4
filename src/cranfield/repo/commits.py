"""The commit of a working folder, and the commits between two commits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cranfield.repo.git import GitError, commit_of, git

COMMIT_ID = re.compile(r"[0-9a-f]{7,64}")
MOST_COMMITS = 200
"""Largest number of commits that are listed, the latest first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The commit a working folder is based on."""

    commit: str
    """Its full id."""
    dirty: bool
    """Tracked files differ from that commit."""


def standing(folder: Path) -> Standing | None:
    """The commit of the repository of a folder; None outside of one, before a first commit, and without git."""
    try:
        commit = commit_of(folder, "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty", "-z")
    except GitError:
        return None
    return Standing(commit, bool(changed))


def commits_between(folder: Path, after: str, until: str) -> tuple[str, ...] | None:
    """Commits that are in `until` and not in `after`, latest first, one per line: short id and subject.

    Args:
        folder: in the repository.
        after: id of a commit.
        until: id of a later one.

    Returns:
        At most 200 lines, shown and not interpreted; None where git does not know one of the two.
    """
    if not (COMMIT_ID.fullmatch(after) and COMMIT_ID.fullmatch(until)):
        return None
    options = ("--oneline", "--no-decorate", "--no-color", "--no-show-signature", f"--max-count={MOST_COMMITS}")
    try:
        out = git(folder, "log", *options, "--end-of-options", f"{after}..{until}")
    except GitError:
        return None
    return tuple(out.decode("utf-8", "replace").splitlines())
