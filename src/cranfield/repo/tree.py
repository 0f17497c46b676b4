"""Reads the state of a working folder: every file is compared with the commit by its content.

Nothing is taken from what git remembers of a file: not its cache of sizes and times, not the bits `assume-unchanged` and
`skip-worktree`, not what is configured of `status` and of submodules. Programs that a repository configures, such as filters,
are not run: line ends are converted as git itself converts them, and files of git-lfs are compared by their pointers.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.repo.git import GitError, commit_of, git, is_outside
from cranfield.repo.snapshot import (
    NO_SOURCE,
    POINTER,
    POINTER_BYTES,
    Index,
    Snapshot,
    TreeEntry,
    blob_id,
    file_id,
    file_sha256,
    list_untracked,
    pointed_contents,
    read_commit,
    read_index,
    stored_ids,
    take,
)
from cranfield.repo.tree_state import (
    CACHES,
    NAMED,
    ChangeKind,
    FileChange,
    Hidden,
    ListedFile,
    OwnFiles,
    TreeState,
    by_content,
    digest_of,
    escaped_path,
    link_target,
    walk,
)

_LINK, _SUBMODULE, _PROGRAM = b"120000", b"160000", b"100755"


def read_tree(
    root: Path, commit: str = "", *, without: Collection[Path | None] = (), tracked_only: bool = False
) -> TreeState:
    """The state of a folder against a commit.

    Args:
        root: a folder, of a git repository or not. A bare repository has no files that could differ.
        commit: id; empty: the one that is checked out.
        without: files and folders that are not looked at: what a call is given or writes. What Cranfield wrote is not, either.
        tracked_only: look at no file that git does not track; nothing of a folder without git is read.

    Raises:
        UsageError: no such folder or commit, or git refuses.
    """
    apart = OwnFiles(root, without)
    try:
        if git(root, "rev-parse", "--is-bare-repository").strip() == b"true":
            return TreeState(commit or commit_of(root, "HEAD"))
        listed = read_index(root)
        try:
            head = commit_of(root, "HEAD")
        except GitError:  # nothing is committed yet
            head = ""
        committed = read_commit(root, commit or head) if commit or head else {}
        if not (listed or committed):
            return _plain(root.resolve(), apart, tracked_only=tracked_only)
        return _Reading(root, commit or head, head, apart, committed, listed, tracked_only).state()
    except GitError as error:
        if is_outside(root, error):
            return _plain(root.resolve(), apart, tracked_only=tracked_only)
        raise UsageError(f"git cannot read this repository: {error}", path=str(root)) from None


@dataclass
class _Reading:
    """One reading of a folder of a repository."""

    root: Path
    commit: str
    head: str
    apart: OwnFiles
    committed: Mapping[str, TreeEntry]
    index: Index
    tracked_only: bool
    changes: dict[str, FileChange] = field(default_factory=dict)
    ignored: dict[str, Hidden] = field(default_factory=dict)
    submodules: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    """Files of git-lfs: as pointers, and as contents, in the folder."""
    leading_out: list[str] = field(default_factory=list)
    by_time: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    folders: dict[Path, bool] = field(default_factory=dict)
    """Whether a folder is one, and no link to another."""

    @cached_property
    def heeds_mode(self) -> bool:
        """Whether the permission to be executed means something here."""
        try:
            is_off = git(self.root, "config", "--type=bool", "--get", "core.fileMode").strip() == b"false"
        except GitError:  # it is not set
            is_off = False
        return os.name != "nt" and not is_off

    def state(self) -> TreeState:
        self._tracked()
        if not self.tracked_only:
            self._untracked()
            self._ignored()
        return TreeState(
            self.commit,
            self.head,
            {escaped_path(path): change for path, change in sorted(self.changes.items())},
            {},
            {escaped_path(path): each for path, each in sorted(self.ignored.items())},
            {escaped_path(path): each for path, each in sorted(self.submodules.items())},
            tuple(self._remarks()),
            *_left_out(self.apart),
        )

    def _tracked(self) -> None:
        """Files of the commit, and those of the index."""
        otherwise = list[str]()
        for name in sorted({*self.committed, *self.index.entries, *self.index.conflicts}):
            if self.apart.is_named(name):
                continue
            was, staged = self.committed.get(name), self.index.entries.get(name)
            if name in self.index.conflicts:
                self.changes[name] = FileChange(ChangeKind.CONFLICT, self._digest(name))
            elif _SUBMODULE in {entry.mode for entry in (was, staged) if entry is not None}:
                self._submodule(name, was, staged)
            elif (about := self._regular(name)) is None:
                kind = ChangeKind.ABSENT if name in self.index.skipped else ChangeKind.DELETED
                self.changes[name] = FileChange(kind)
            elif was is None:
                self.changes[name] = FileChange(ChangeKind.ADDED, self._digest(name))
            elif (is_same := self._is_same(name, about, was)) is None:
                self.changes[name] = FileChange(ChangeKind.MODIFIED, self._digest(name))
            elif is_same:
                self._same_content(name, about)
            else:
                otherwise.append(name)
        self._converted(otherwise)

    def _regular(self, name: str) -> os.stat_result | None:
        """What is at a name, but for a folder; None: nothing, also where a folder of it became a link."""
        path = self.root / name
        if path.parent not in self.folders:
            inside = self.root.resolve() / path.parent.relative_to(self.root)
            self.folders[path.parent] = path.parent.resolve() == inside
        try:
            about = path.lstat() if self.folders[path.parent] else None
        except OSError:
            return None
        return None if about is None or stat.S_ISDIR(about.st_mode) else about

    def _same_content(self, name: str, about: os.stat_result) -> None:
        """What else may differ of a file whose content is that of the commit: its mode, and what the index has."""
        if name in self.changes:
            return
        was, staged = self.committed[name], self.index.entries.get(name)
        is_program = bool(about.st_mode & stat.S_IXUSR)
        if self.heeds_mode and was.mode != _LINK and is_program != (was.mode == _PROGRAM):
            self.changes[name] = FileChange(ChangeKind.MODE, f"{'+' if is_program else '-'}x")
        elif staged != was:
            self.changes[name] = FileChange(ChangeKind.STAGED, staged.blob if staged else "")

    def _is_same(self, name: str, about: os.stat_result, was: TreeEntry) -> bool | None:
        """Whether a file has the bytes of the commit; None: it is another kind of file, so nothing is to be converted."""
        path = self.root / name
        try:
            if stat.S_ISLNK(about.st_mode):
                self._note_target(name)
                is_link = was.mode == _LINK
                return True if is_link and blob_id(link_target(path), was.blob) == was.blob else None
            if not stat.S_ISREG(about.st_mode):
                return None
            is_same = file_id(path, about.st_size, was.blob) == was.blob
            if is_same and about.st_size <= POINTER_BYTES and path.read_bytes().startswith(POINTER):
                self.pointers.append(name)
        except OSError:
            self.unreadable.append(name)
            return None
        return is_same

    def _converted(self, names: list[str]) -> None:
        """Files with other bytes than the commit: as git would store them, or as git-lfs does, they may be the same."""
        if not names:
            return
        stored = stored_ids(self.root, names)
        rest = {name: self.committed[name].blob for name in names if stored.get(name) != self.committed[name].blob}
        pointers = pointed_contents(self.root, rest)
        for name in names:
            if (about := self._regular(name)) is None:  # it was deleted meanwhile
                self.changes[name] = FileChange(ChangeKind.DELETED)
                continue
            if name in pointers and pointers[name] == file_sha256(self.root / name):
                self.contents.append(name)
            elif name in rest:
                self.changes[name] = FileChange(ChangeKind.MODIFIED, self._digest(name))
                continue
            self._same_content(name, about)

    def _submodule(self, name: str, was: TreeEntry | None, staged: TreeEntry | None) -> None:
        path, recorded = self.root / name, was.blob if was is not None and was.mode == _SUBMODULE else ""
        self.submodules[name] = ""
        if path.is_symlink() or path.is_file():
            self.changes[name] = FileChange(ChangeKind.MODIFIED, self._digest(name))
            return
        if not (path / ".git").exists():
            if not self.tracked_only:
                self._add_untracked([name])
            if staged is None or not was or staged != was:
                self.changes[name] = FileChange(ChangeKind.STAGED, staged.blob if staged else "")
            return
        below = OwnFiles(path, self.apart.named)
        inner = _Reading(path, "", "", below, {}, read_index(path), self.tracked_only)
        try:
            inner.head = inner.commit = self.submodules[name] = commit_of(path, "HEAD")
            inner.committed = read_commit(path, inner.commit)
        except GitError:  # nothing is committed in it
            pass
        found = inner.state()
        self.apart.found |= {f"{name}/{each}" for each in below.found}
        if inner.head != recorded:
            self.changes[name] = FileChange(ChangeKind.SUBMODULE, inner.head)
        elif staged is None or staged.blob != recorded:
            self.changes[name] = FileChange(ChangeKind.STAGED, staged.blob if staged else "")
        self.changes.update((f"{name}/{each}", change) for each, change in inner.changes.items())
        self.ignored.update((f"{name}/{each}", hidden) for each, hidden in inner.ignored.items())
        self.submodules.update((f"{name}/{each}", commit) for each, commit in inner.submodules.items())
        self.remarks += [f"Submodule {escaped_path(name)}: {remark}" for remark in found.remarks]

    def _untracked(self) -> None:
        known = {*self.committed, *self.index.entries}
        names = [name for name in list_untracked(self.root) if name not in known]
        self._add_untracked(names)

    def _add_untracked(self, names: Iterable[str]) -> None:
        looked_at = (name for name in names if not set(name.split("/")) & CACHES)
        files = self._group(looked_at)
        reads = by_content(files)
        if not reads:
            self.by_time.append(count_noun(len(files), "untracked files"))
        for file in files:
            self.changes[file.name] = FileChange(ChangeKind.UNTRACKED, digest_of(self.root, file, reads=reads))

    def _ignored(self) -> None:
        groups = dict[str, list[ListedFile]]()
        folder = ""
        for name in sorted(list_untracked(self.root, "--ignored", "--directory")):
            if folder and name.startswith(folder):
                continue
            folder = name if name.endswith("/") else ""
            if not set(name.split("/")) & CACHES and (files := self._group([name])):
                groups[name] = files
        self.ignored.update(_hidden(self.root, groups, self.by_time))

    def _group(self, names: Iterable[str]) -> list[ListedFile]:
        found = [file for name in names for file in walk(self.root, name, self.apart.is_own, self.unreadable)]
        for file in found:
            if stat.S_ISLNK(file.mode):
                self._note_target(file.name)
        return found

    def _digest(self, name: str) -> str:
        path = self.root / name
        try:
            about = path.lstat()
        except OSError:
            return ""
        return digest_of(self.root, ListedFile(name, about.st_size, about.st_mtime_ns, about.st_mode), reads=True)

    def _note_target(self, name: str) -> None:
        """Note a link whose target is not in the folder: what it leads to is in no digest."""
        # `resolve` raises where links lead round in a circle.
        target = Path(os.path.realpath(self.root / name))
        if not target.is_relative_to(self.root.resolve()):
            self.leading_out.append(name)

    def _remarks(self) -> Iterable[str]:
        present = [name for name, commit in self.submodules.items() if commit]
        missing = [name for name, commit in self.submodules.items() if not commit]
        for names, text in (
            (self.contents, "Files of git-lfs that are contents in the folder and only pointers in the commit"),
            (self.pointers, "Files of git-lfs that were not fetched: folder and commit have only pointers"),
            (present, "Submodules, whose files are in the folder but not in the commit"),
            (missing, "Submodules that are not checked out"),
            (self.leading_out, "Links that point outside the folder: their targets are not compared"),
            (self.unreadable, "Not compared, because they cannot be read"),
        ):
            if names:
                yield f"{text} ({len(names)}): {join_first(map(escaped_path, sorted(names)), NAMED)}."
        if self.by_time:
            yield _by_time(self.by_time)
        yield from self.remarks


def _plain(root: Path, apart: OwnFiles, *, tracked_only: bool) -> TreeState:
    """A folder without git: all files but those of `NO_SOURCE`, which are compared as ignored ones are."""
    if tracked_only:
        return TreeState("")
    unreadable, by_time, files = list[str](), list[str](), list[ListedFile]()
    groups = dict[str, list[ListedFile]]()
    for file in walk(root, "", apart.is_own, unreadable):
        parts = file.name.split("/")
        place = next((place for place, part in enumerate(parts[:-1]) if part in NO_SOURCE), None)
        if place is None:
            files.append(file)
        else:
            groups.setdefault("/".join(parts[: place + 1]) + "/", []).append(file)
    reads = by_content(files)
    if not reads:
        by_time.append(count_noun(len(files), "files"))
    hidden = _hidden(root, groups, by_time)
    remarks = [_by_time(by_time)] if by_time else []
    if unreadable:
        remarks.append(
            f"Folders that cannot be read ({len(unreadable)}): {join_first(map(escaped_path, unreadable), NAMED)}."
        )
    named, written = _left_out(apart)
    return TreeState(
        "",
        files={escaped_path(file.name): digest_of(root, file, reads=reads) for file in files},
        ignored={escaped_path(name): each for name, each in sorted(hidden.items())},
        remarks=tuple(remarks),
        named=named,
        written=written,
    )


def _left_out(apart: OwnFiles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is not looked at: what the call names, and what else Cranfield wrote."""
    there = [name for name in apart.names if os.path.lexists(apart.root / name)]
    return tuple(sorted(map(escaped_path, there))), tuple(sorted(map(escaped_path, apart.found)))


def _hidden(root: Path, groups: Mapping[str, list[ListedFile]], by_time: list[str]) -> dict[str, Hidden]:
    """Each file or folder as one, by the digests of its files."""
    everything = [file for files in groups.values() for file in files]
    reads = by_content(everything)
    if not reads:
        by_time.append(count_noun(len(everything), "ignored files"))
    found = {}
    for name, files in groups.items():
        digest = hashlib.sha256()
        for file in sorted(files, key=lambda each: each.name):
            digest.update(f"{escaped_path(file.name)}\0{digest_of(root, file, reads=reads)}\n".encode())
        found[name] = Hidden(len(files), sum(file.size_bytes for file in files), digest.hexdigest()[:32])
    return found


def _by_time(what: list[str]) -> str:
    return f"Compared by name, size and time of modification, because they are many or large: {' and '.join(what)}."


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
