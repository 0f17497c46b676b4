"""The state of a working folder against a commit, as a value: what it has otherwise, and how two states differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import sha256

from cranfield.base.words import first_of, n_of
from cranfield.repo.own_files import with_folders

NAMED = 5
"""Files that a sentence names; it counts the rest."""
_ODD = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class ChangeKind(StrEnum):
    """How a file of the folder is not as in the commit."""

    MODIFIED = "modified"
    DELETED = "deleted"
    ABSENT = "not checked out"
    """It is outside of a sparse checkout."""
    ADDED = "added"
    """In the index, and not in the commit."""
    UNTRACKED = "untracked"
    MODE = "mode of"
    """Only its permission to be executed is another."""
    STAGED = "staged"
    """The file is as in the commit, and the index has it otherwise."""
    CONFLICT = "in conflict"
    SUBMODULE = "other commit of submodule"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that is not as in the commit."""

    kind: ChangeKind
    digest: str = ""
    """Of its content in the folder; empty: it is not there."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """An ignored file or folder."""

    n_files: int
    size_bytes: int
    digest: str


@dataclass(frozen=True)
class TreeState:
    """A working folder against a commit. Make one with `tree.read_tree`. Paths are counted from it, as `escaped_path` has them."""

    commit: str
    """It is compared with this one; empty: there is none, and `files` has everything."""
    head: str = ""
    """Commit that is checked out."""
    changes: Mapping[str, FileChange] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Of a folder without git: path to the digest of its content."""
    ignored: Mapping[str, Hidden] = field(default_factory=dict)
    """What rules of git ignore and a program that reads the folder finds; of a folder without git, what is not read."""
    submodules: Mapping[str, str] = field(default_factory=dict)
    """Path to the commit that is checked out; to nothing where none is."""
    remarks: tuple[str, ...] = ()
    """What else the folder has otherwise than the commit, and no commit would end: sentences."""
    named: tuple[str, ...] = ()
    """What a call was given or writes, which is not looked at."""
    written: tuple[str, ...] = ()
    """What Cranfield wrote earlier, which is not looked at either."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it but the remarks, `head`, and what is not looked at."""
        found = sha256(f"{self.commit}\n".encode())
        for kind, part in (
            ("change", {path: f"{each.kind} {each.digest}" for path, each in self.changes.items()}),
            ("file", self.files),
            ("ignored", {path: each.digest for path, each in self.ignored.items()}),
            ("submodule", self.submodules),
        ):
            for path in sorted(part):
                found.update(f"{kind}\0{path}\0{part[path]}\n".encode())
        return f"sha256:{found.hexdigest()}"

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not looked at."""
        return (*self.named, *self.written)

    @property
    def uncommitted(self) -> tuple[str, ...]:
        """`modified src/a.py`, by path."""
        return tuple(f"{change.kind} {path}" for path, change in sorted(self.changes.items()))

    @property
    def sentence(self) -> str:
        """`Uncommitted changes: 2 files are not as in commit 1f2e3d4c5b6a: modified a.py, untracked b.py`; empty: none.

        Where another commit is checked out, that is what it begins with.
        """
        if not self.changes:
            return ""
        where = f"in commit {self.commit[:12]}" if self.commit else "in any commit"
        are = "is" if len(self.changes) == 1 else "are"
        what = "Uncommitted changes" if self.head == self.commit else f"Another commit is checked out, {self.head[:12]}"
        n = n_of(len(self.changes), "files", "{:,}".format)
        return f"{what}: {n} {are} not as {where}: {first_of(self.uncommitted, NAMED)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what else the commit does not say of the folder: of ignored files first."""
        found = []
        if self.ignored:
            n = n_of(sum(each.n_files for each in self.ignored.values()), "ignored files", "{:,}".format)
            size = sum(each.size_bytes for each in self.ignored.values()) / 2**20
            where = "which no commit has" if self.commit else "which is not read here"
            found.append(
                f"The folder also has {n} ({size:,.1f} MiB), {where}: {first_of(sorted(self.ignored), NAMED)}."
            )
        return (*found, *self.remarks)


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """How two states of one folder differ: `modified src/a.py`, one item a file."""

    source: tuple[str, ...] = ()
    """Files that are tracked or could be."""
    ignored: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.source or self.ignored)

    @property
    def text(self) -> str:
        """The first files, and how many more."""
        return first_of([*self.source, *self.ignored], NAMED)


def differences(before: TreeState, now: TreeState) -> TreeDifference:
    """What is otherwise now than it was, but for what one of them did not look at."""
    left_out = {*before.left_out, *now.left_out}

    def looked_at(*parts: Mapping[str, object]) -> list[str]:
        paths = sorted({path for part in parts for path in part})
        return [path for path in paths if left_out.isdisjoint(with_folders(path))] if left_out else paths

    source = [f"commit {now.commit[:12]} in place of {before.commit[:12]}"] if before.commit != now.commit else []
    for path in looked_at(before.changes, now.changes):
        was, is_now = before.changes.get(path), now.changes.get(path)
        if was != is_now:
            source.append(_change_text(path, was, is_now))
    source += _other(before.files, now.files, looked_at(before.files, now.files))
    submodules = _other(before.submodules, now.submodules, looked_at(before.submodules, now.submodules))
    source += [f"submodule {each}" for each in submodules]
    ignored = _other(before.ignored, now.ignored, looked_at(before.ignored, now.ignored))
    return TreeDifference(tuple(source), tuple(f"ignored: {each}" for each in ignored))


def _change_text(path: str, was: FileChange | None, now: FileChange | None) -> str:
    if now is None:
        gone = "gone" if was is not None and was.kind is ChangeKind.UNTRACKED else "as in the commit"
        return f"{path} (was {was.kind if was else ''}, is {gone})"
    return f"{now.kind} {path}" + (" (otherwise than before)" if was is not None else "")


def _other(before: Mapping[str, object], now: Mapping[str, object], paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if path not in now:
            yield f"{path} (gone)"
        elif path not in before:
            yield f"{path} (new)"
        elif before[path] != now[path]:
            yield f"{path} (changed)"


def escaped_path(path: str) -> str:
    """A path that is safe to print and to write: line ends, controls and bytes that are no UTF-8 as escapes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    text = _ODD.sub(lambda found: "\\\\" if found[0] == "\\" else f"\\x{ord(found[0]):02x}", text)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
