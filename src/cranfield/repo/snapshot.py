"""The files of a working folder, or of one commit, as a value.

Where the folder is git's, only tracked files count, and a commit is read from git's store: nothing is checked out, and
nothing the repository holds is run. A folder without git is read as it stands.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from cranfield.base.errors import UsageError, shorten
from cranfield.repo.git import COMMIT_ID, GitError, commit_of, git, is_outside, listed
from cranfield.repo.tree_state import VERSION_CONTROL, TreeState, is_written

MAX_BYTES = 4 * 1024 * 1024
"""Larger files are listed, but not read."""
NO_SOURCE = VERSION_CONTROL | {".tox", ".venv", "__pycache__", "node_modules"}
"""Folders that are skipped outside of a git repository."""

_BATCH = 256
"""Files that are read at once."""


@dataclass
class Snapshot:
    """Files at one moment. Make one with `take`."""

    root: Path
    commit: str
    """Full id of the commit it was read from; of a working folder, of the commit it is based on; empty without git."""
    is_commit: bool
    """True when files come from the commit, False when from the folder."""
    files: Mapping[str, str]
    """Path, with `/`, to the id of its content in git's store; to nothing where the folder is read. Regular files only."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Path to the size of its content in bytes, of files that can be read."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of files that were skipped, by kind (in the plural): `links`, `large files`, `binary files`."""
    tree: TreeState | None = None
    """State of the folder against it; None: the folder was not looked at."""
    _data: dict[str, bytes | None] = field(default_factory=dict)
    _texts: dict[str, str | None] = field(default_factory=dict)
    known_digest: str = ""
    """Digest of a commit, once it was asked for."""

    @property
    def uncommitted(self) -> str:
        """A sentence on the uncommitted changes of the folder, without a full stop; empty: none, or it was not looked at."""
        return "" if self.tree is None else self.tree.sentence

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the folder has otherwise than the commit; nothing where it was not looked at."""
        return () if self.tree is None else self.tree.notes

    def __contains__(self, path: object) -> bool:
        return path in self.files

    def data(self, path: str) -> bytes | None:
        """Bytes of a file; None where it is not there, is too large, or cannot be read."""
        if path not in self._data:
            self._data.update(self._read([path]) if path in self.files else {path: None})
        return self._data[path]

    def text(self, path: str) -> str | None:
        """Text of a file, every line end a line feed; None where `data` is, and where it is binary."""
        if path not in self._texts:
            data = self.data(path)
            self._texts[path] = None if data is None else as_text(data)
        return self._texts[path]

    def sha256(self, path: str) -> str | None:
        """SHA-256 of the bytes of a file."""
        data = self.data(path)
        return None if data is None else sha256(data).hexdigest()

    def each(self) -> Iterator[tuple[str, bytes]]:
        """Every file that can be read, by path; nothing is kept."""
        paths = sorted(self.files)
        for first in range(0, len(paths), _BATCH):
            for path, data in self._read(paths[first : first + _BATCH]).items():
                if data is not None:
                    yield path, data

    def _read(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        if self.is_commit:
            return read_blobs(self.root, {path: self.files[path] for path in paths})
        return {path: _file(self.root, path) for path in paths}


def take(root: Path, at: str | None = None) -> Snapshot:
    """The files of a working folder, or of a commit.

    Args:
        root: a folder, of a git repository or not; or a bare repository. Paths are counted from it.
        at: commit, branch or tag; None is the folder as it stands.

    Raises:
        UsageError: no such folder or commit; or git is needed and is not there, or refuses.
    """
    if not root.is_dir():
        raise UsageError("no such folder", path=str(root), expected="the folder of a repository")
    try:
        bare = git(root, "rev-parse", "--is-bare-repository").strip() == b"true"
    except GitError as error:
        if at is not None:
            raise UsageError(f"no commit can be read here: {error}", path=str(root)) from None
        if is_outside(root, error):
            return _plain(root)
        raise UsageError(f"git cannot read this repository: {error}", path=str(root)) from None
    if at is not None or bare:
        return _committed(root, "HEAD" if at is None else at)
    try:
        tracked = listed(root, "ls-files", "--cached", "--stage")
    except GitError as error:
        raise UsageError(f"git cannot list the files of this repository: {error}", path=str(root)) from None
    if not tracked:
        return _plain(root)
    try:
        commit = commit_of(root, "HEAD")
    except GitError:  # nothing is committed yet
        commit = ""
    return _tracked(root, commit, tracked)


def snapshot_digest(snapshot: Snapshot) -> str:
    """SHA-256 of the paths and contents of all files; those of a commit are read once."""
    if snapshot.known_digest:
        return snapshot.known_digest
    digest = sha256()
    for path, data in snapshot.each():
        digest.update(f"{path}\0{sha256(data).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    found = f"sha256:{digest.hexdigest()}"
    snapshot.known_digest = found if snapshot.is_commit else ""
    return found


def as_text(data: bytes) -> str | None:
    """Bytes of a file as text with line feeds as line ends and no byte order mark; None where they are no text.

    What is not UTF-8 is kept as surrogates, so that the same bytes are the same text.
    """
    if b"\0" in data[:8000]:  # what git itself calls binary
        return None
    text = data.decode("utf-8-sig", "surrogateescape")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _committed(root: Path, at: str) -> Snapshot:
    try:
        commit = commit_of(root, at)
        entries = listed(root, "ls-tree", "-r", "-l", commit)
    except GitError as error:
        raise UsageError(f"no commit {shorten(at)}: {error}", path=str(root)) from None
    snapshot = Snapshot(root, commit, is_commit=True, files={})
    files = {}
    for (mode, _, blob, size), name in entries:
        if mode in {b"120000", b"160000"}:
            snapshot.left_out["links" if mode == b"120000" else "submodules"] += 1
            continue
        if not size.isdigit():  # a clone that fetches contents when it needs them
            snapshot.left_out["files that were never fetched"] += 1
        elif int(size) > MAX_BYTES:
            snapshot.left_out["large files"] += 1
        else:
            files[name] = blob.decode()
            snapshot.sizes[name] = int(size)
            continue
        files[name] = ""
    snapshot.files = files
    return snapshot


def _tracked(root: Path, commit: str, tracked: Sequence[tuple[list[bytes], str]]) -> Snapshot:
    """The tracked files of a working folder that are there."""
    snapshot = Snapshot(root, commit, is_commit=False, files={})
    names = []
    for (mode, *_), name in tracked:
        if mode == b"160000":
            snapshot.left_out["submodules"] += 1
        else:
            names.append(name)
    _add_regular(snapshot, dict.fromkeys(names))
    return snapshot


def _plain(root: Path) -> Snapshot:
    """All files of a folder, but for those of `NO_SOURCE` and what Cranfield wrote."""
    snapshot = Snapshot(root, "", is_commit=False, files={})
    names = []

    def passed_over(_: OSError) -> None:
        snapshot.left_out["folders that cannot be read"] += 1

    for folder, below, files in os.walk(root, onerror=passed_over):
        here = Path(folder)
        below[:] = sorted(name for name in set(below) - NO_SOURCE if not is_written(here / name))
        names += [(here / name).relative_to(root).as_posix() for name in sorted(files) if not is_written(here / name)]
    _add_regular(snapshot, names)
    return snapshot


def _add_regular(snapshot: Snapshot, names: Iterable[str]) -> None:
    """Add those that are regular files, and lie in the folder when links on the way to them are followed."""
    inside: dict[Path, bool] = {}
    home = snapshot.root.resolve()
    files = {}
    for name in names:
        path = snapshot.root / name
        try:
            found = path.lstat()
        except OSError:  # tracked, and deleted from the folder
            continue
        if path.parent not in inside:
            inside[path.parent] = path.parent.resolve().is_relative_to(home)
        if stat.S_ISLNK(found.st_mode) or not inside[path.parent]:
            snapshot.left_out["links"] += 1
        elif stat.S_ISREG(found.st_mode):
            if found.st_size > MAX_BYTES:
                snapshot.left_out["large files"] += 1
            else:
                snapshot.sizes[name] = found.st_size
            files[name] = ""
    snapshot.files = files


def _file(root: Path, name: str) -> bytes | None:
    path = root / name
    try:
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:
            return None
        return path.read_bytes()
    except OSError:
        return None


def read_blobs(root: Path, wanted: Mapping[str, str]) -> dict[str, bytes | None]:
    """Contents out of git's store: one program for all of them."""
    wanted_blobs = {path: blob for path, blob in wanted.items() if blob}
    found: dict[str, bytes | None] = dict.fromkeys(wanted)
    if not wanted_blobs:
        return found
    try:
        out = git(root, "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in wanted_blobs.values()).encode())
    except GitError as error:
        raise UsageError(f"git cannot read its files: {error}", path=str(root)) from None
    place = 0
    for path in wanted_blobs:
        end = out.index(b"\n", place)
        about = out[place:end].split()
        place = end + 1
        if len(about) == 3 and about[1] == b"blob":
            size = int(about[2])
            found[path] = out[place : place + size]
            place += size + 1
    return found


POINTER = b"version https://git-lfs.github.com/spec/v1\n"
"""Begins a pointer of git-lfs."""
POINTER_BYTES = 1024
"""A pointer is smaller."""
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file as a commit or the index has it."""

    mode: bytes
    blob: str


@dataclass(slots=True)
class Index:
    """Entries of the index, by path; what is in conflict has none."""

    entries: dict[str, TreeEntry] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)
    """Outside of a sparse checkout."""

    def __bool__(self) -> bool:
        return bool(self.entries or self.conflicts)


def read_index(root: Path) -> Index:
    """The index of a folder of a repository."""
    found = Index()
    for (tag, mode, blob, stage), path in listed(root, "ls-files", "--stage", "-t"):
        if stage != b"0":
            found.conflicts.add(path)
        else:
            found.entries[path] = TreeEntry(mode, blob.decode())
        if tag in b"Ss":
            found.skipped.add(path)
    return found


def read_commit(root: Path, commit: str) -> dict[str, TreeEntry]:
    """Files of a commit, by path."""
    return {path: TreeEntry(mode, blob.decode()) for (mode, _, blob), path in listed(root, "ls-tree", "-r", commit)}


def list_untracked(root: Path, *options: str) -> list[str]:
    """Names that git does not track; a folder ends with `/`."""
    out = git(root, "ls-files", "--others", "--exclude-standard", *options, "-z")
    return [os.fsdecode(name) for name in out.split(b"\0") if name]


def blob_id(data: bytes, like: str) -> str:
    """The id that git gives content, in the repository of another id."""
    found = _begun_id(len(data), like)
    found.update(data)
    return found.hexdigest()


def file_id(path: Path, size_bytes: int, like: str) -> str:
    """As `blob_id`, of a file of this size, which is read in pieces."""
    found = _begun_id(size_bytes, like)
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()


def _begun_id(size_bytes: int, like: str) -> hashlib._Hash:
    head = b"blob %d\0" % size_bytes
    return hashlib.sha256(head) if len(like) == 64 else hashlib.sha1(head, usedforsecurity=False)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; empty where it cannot be read, or was deleted meanwhile."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def stored_ids(root: Path, names: list[str]) -> dict[str, str]:
    """Name to the id that git would store the file under: line ends converted, filters not run. None of a file that is gone."""
    try:
        known = git(root, "config", "--name-only", "-z", "--get-regexp", r"^filter\.").split(b"\0")
    except GitError:  # there is none
        known = []
    filters = sorted({os.fsdecode(name).rpartition(".")[0] for name in known if name})
    off = [
        part
        for each in filters
        for part in ("-c", f"{each}.clean=", "-c", f"{each}.process=", "-c", f"{each}.required=false")
    ]
    # Names are counted from the top of the repository, and rules for line ends too.
    up, _, below = os.fsdecode(git(root, "rev-parse", "--show-cdup", "--show-prefix")).partition("\n")
    top, prefix = root / up, below.removesuffix("\n")
    while True:
        lines = b"".join(_c_quoted(prefix + name) + b"\n" for name in names)
        try:
            return dict(
                zip(names, git(top, *off, "hash-object", "--stdin-paths", stdin=lines).decode().split(), strict=True)
            )
        except GitError:
            there = [name for name in names if os.access(root / name, os.R_OK)]
            if len(there) == len(names):
                raise
            names = there


def _c_quoted(name: str) -> bytes:
    """A name as git reads it from a line."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in os.fsencode(name)) + b'"'


def pointed_contents(root: Path, blobs: Mapping[str, str]) -> dict[str, str]:
    """Name to the SHA-256 that the pointer of git-lfs names, of those that the commit has as one."""
    if not blobs:
        return {}
    out = git(root, "cat-file", "--batch-check", stdin="".join(f"{blob}\n" for blob in blobs.values()).encode())
    small = {}
    for (name, blob), about in zip(blobs.items(), out.splitlines(), strict=False):
        words = about.split()
        if len(words) == 3 and words[1] == b"blob" and int(words[2]) <= POINTER_BYTES:
            small[name] = blob
    found = {}
    for name, data in read_blobs(root, small).items():
        if data is not None and data.startswith(POINTER):
            oid = next((line for line in data.splitlines() if line.startswith(b"oid sha256:")), b":")
            found[name] = oid.rpartition(b":")[2].strip().decode()
    return {name: digest for name, digest in found.items() if digest}


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
