"""The history of a repository up to one commit: who changed what, and when. Nothing after that commit is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cranfield.base.errors import UsageError
from cranfield.repo.git import COMMIT_ID, git
from cranfield.repo.snapshot import Snapshot

_BLAMED = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?")
_ABOUT = ("author", "author-time", "summary")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, in short."""

    id: str
    """Its first characters."""
    date: str
    """Date of its author: `2026-04-14`."""
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class BlamedLines:
    """Lines that a commit was the last to change."""

    start: int
    end: int
    commit: Commit


@dataclass(frozen=True, slots=True)
class GitHistory:
    """Commits that are reachable from one. Make one with `of_snapshot`. Messages and names are shown; no contents of files."""

    root: Path
    commit: str

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> GitHistory:
        """The history of the commit of a snapshot.

        Raises:
            UsageError: it has none.
        """
        if not COMMIT_ID.fullmatch(snapshot.commit):
            raise UsageError("no commit whose history can be read", path=str(snapshot.root))
        return cls(snapshot.root, snapshot.commit)

    def log(self, limit: int, path: str = "") -> list[Commit]:
        """The latest commits first; of a file or a folder where `path` names one.

        Raises:
            GitError: git says no.
        """
        options = ("--no-show-signature", "--no-color", "--date=short", f"--max-count={limit}", "-z")
        form = "--format=%h%x09%ad%x09%an%x09%s"
        arguments = ("--literal-pathspecs", "log", *options, form, "--end-of-options", self.commit, "--")
        out = git(self.root, *arguments, *([path] if path else []))
        lines = (line.split("\t", 3) for line in out.decode("utf-8", "replace").split("\0"))
        return [Commit(*parts) for parts in lines if len(parts) == 4]

    def blame(self, path: str, start: int, end: int) -> list[BlamedLines]:
        """Lines of a file at the commit, counted from 1, and the commit that changed them last.

        Raises:
            GitError: git says no: the file, or a line, is not in the commit.
        """
        options = ("--no-textconv", "--line-porcelain", "--date=unix", "-L", f"{start},{end}")
        arguments = ("-c", "blame.ignoreRevsFile=", "blame", *options, self.commit, "--", path)
        out = git(self.root, *arguments).decode("utf-8", "replace")
        found: list[BlamedLines] = []
        place, about = ("", 0), dict.fromkeys(_ABOUT, "")
        for line in out.split("\n"):
            if mark := _BLAMED.fullmatch(line):
                place = (mark[1], int(mark[2]))
            elif line.startswith("\t"):
                full_id = place[0]
                from datetime import UTC, datetime

                seconds = about["author-time"]
                date = datetime.fromtimestamp(int(seconds), UTC).date().isoformat() if seconds.isdigit() else ""
                _add(found, place[1], Commit(full_id[:10], date, about["author"], about["summary"]))
            elif (key := line.partition(" ")[0]) in about:
                about[key] = line.partition(" ")[2]
        return found


def _add(found: list[BlamedLines], line: int, commit: Commit) -> None:
    """A line, joined to those before it where they are of the same commit."""
    if found and found[-1].commit == commit and found[-1].end == line - 1:
        found[-1] = BlamedLines(found[-1].start, line, commit)
    else:
        found.append(BlamedLines(line, line, commit))
