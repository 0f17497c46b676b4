"""The state of a working folder against a commit, as a value: what it has otherwise, and how two states differ."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path

from cranfield.base.words import count_noun, join_first

META = ".meta.json"
"""Ends the name of what stands beside a test set."""
_PACKED = re.compile(r"(?<=.)\.(json|gz|bz2|xz|zst)$")
_RESULT = re.compile(r"benefit_v\d+\.\d+\.json")
_DATABASE = re.compile(r"(.+\.(?:db|sqlite3?))(-wal|-shm|-journal)?")
_ENDS_OF_DATABASE = ("-wal", "-shm", "-journal")
_LOCAL = ".cranfield"
_TABLES = ("book", "book_query", "guideline")
"""Tables of every database of books."""
_HEAD_BYTES = 4096


class OwnFiles:
    """What is not looked at below a folder."""

    def __init__(self, root: Path, named: Collection[Path | None]) -> None:
        """Find the files of a folder that are not looked at.

        Args:
            root: that names are counted from.
            named: what a call is given or writes; files that stand beside a test set or a database go with it.
        """
        self.root, self.named = root, named
        home = root.resolve()
        places = set[Path]()
        for each in filter(None, named):
            for path in (each.resolve(), each.parent.resolve() / each.name):  # a link, and what it leads to
                places |= {path, *_neighbours(path)}
        inside = {each.relative_to(home).as_posix() for each in places if each.is_relative_to(home)}
        self.names = inside - {"."}
        self.found: set[str] = set()
        """What Cranfield wrote, of what was asked for."""
        self._known: dict[str, bool] = {}

    def is_named(self, name: str) -> bool:
        """Whether the call names a file, or a folder that it is in."""
        return not self.names.isdisjoint(with_folders(name)) if self.names else False

    def is_own(self, name: str) -> bool:
        """Whether the call names a file that git does not track, or Cranfield wrote it or a folder that it is in."""
        return self.is_named(name) or any(map(self._is_written, with_folders(name)))

    def _is_written(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = is_written(self.root / name)
            if self._known[name]:
                self.found.add(name)
        return self._known[name]


def with_folders(name: str) -> list[str]:
    """`a`, `a/b` and `a/b/c` of `a/b/c`."""
    parts = name.rstrip("/").split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


def _neighbours(path: Path) -> set[Path]:
    """Names of what may stand beside a test set or a database."""
    names = [path.name]
    while (shorter := _PACKED.sub("", names[-1])) != names[-1]:
        names.append(shorter)
    found = [*(each + META for each in names), *(path.name + each for each in _ENDS_OF_DATABASE)]
    return {path.with_name(each) for each in found}


def is_written(path: Path) -> bool:
    """Whether Cranfield wrote it: the folder of a run or of a check of rows, a result of an experiment, a database of books."""
    try:
        if path.is_symlink():
            return False
        if path.is_dir():
            return (
                path.name == _LOCAL
                or _begins_with(path / "run.json", b'"cranfield_version"')
                or all((path / name).is_file() for name in ("corrections.diff", "for_people.jsonl"))
            )
        if _RESULT.fullmatch(path.name):
            return _begins_with(path, b'"cranfield_benefit_result"')
        found = _DATABASE.fullmatch(path.name)
        return found is not None and _has_books(path.with_name(found[1]))
    except OSError:
        return False


def _begins_with(path: Path, words: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return words in file.read(_HEAD_BYTES)


def _has_books(path: Path) -> bool:
    # Where no one has it open, nothing is written beside it. Where this process has, the file is opened by SQLite alone:
    # to close it otherwise would end its locks.
    if not path.is_file():
        return False
    mode = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=0)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.Error:
        return False
    return set(_TABLES) <= {name for (name,) in found}


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
    """Digest of its content in the folder; empty: it is not there."""


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
    """Files of a folder without git: path to the digest of its content."""
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
        """`Uncommitted changes: 2 files differ from commit 1f2e3d4c5b6a: modified a.py, untracked b.py`; empty: none.

        Where another commit is checked out, that is what it begins with.
        """
        if not self.changes:
            return ""
        where = f"from commit {self.commit[:12]}" if self.commit else "from every commit"
        differ = "differs" if len(self.changes) == 1 else "differ"
        what = "Uncommitted changes" if self.head == self.commit else f"Another commit is checked out, {self.head[:12]}"
        n = count_noun(len(self.changes), "files", "{:,}".format)
        return f"{what}: {n} {differ} {where}: {join_first(self.uncommitted, NAMED)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what else the commit does not say of the folder: of ignored files first."""
        found = []
        if self.ignored:
            n = count_noun(sum(each.n_files for each in self.ignored.values()), "ignored files", "{:,}".format)
            size = sum(each.size_bytes for each in self.ignored.values()) / 2**20
            where = "not in any commit" if self.commit else "not read"
            found.append(
                f"The folder also has {n} ({size:,.1f} MiB), {where}: {join_first(sorted(self.ignored), NAMED)}."
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
        return join_first([*self.source, *self.ignored], NAMED)


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


CONTENT_BYTES = 256 * 1024 * 1024
"""Files that git does not track are compared by content where they are together no larger than this."""
CONTENT_FILES = 50_000
"""And no more than these; otherwise by name, size and time of modification."""
CACHES = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
"""Folders that programs write when code is only run or checked: their files count nowhere, unless git tracks them."""
VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file as the folder lists it."""

    name: str
    """Counted from the root, with `/`."""
    size_bytes: int
    time_ns: int
    mode: int


def walk(root: Path, name: str, skips: Callable[[str], bool], unreadable: list[str]) -> Iterator[ListedFile]:
    """A file, or all files below a folder; links are not followed, and nothing of version control or `CACHES` is among them.

    Args:
        root: that names are counted from.
        name: of the file or folder; a folder may end with `/`. Empty: the root.
        skips: whether a name is left out, with everything below it.
        unreadable: names of folders that cannot be read are added to it.
    """
    waiting = [name.rstrip("/")]
    while waiting:
        at = waiting.pop()
        if (at and skips(at)) or at.rpartition("/")[2] in CACHES | VERSION_CONTROL:
            continue
        path = root / at
        try:
            about = path.lstat()
            if stat.S_ISDIR(about.st_mode):
                waiting += [f"{at}/{each.name}" if at else each.name for each in path.iterdir()]
                continue
        except FileNotFoundError:  # it was deleted since it was listed
            continue
        except OSError:
            unreadable.append(at)
            continue
        yield ListedFile(at, about.st_size, about.st_mtime_ns, about.st_mode)


def by_content(files: Iterable[ListedFile]) -> bool:
    """Whether they are few and small enough to be read."""
    sizes = [each.size_bytes for each in files]
    return len(sizes) <= CONTENT_FILES and sum(sizes) <= CONTENT_BYTES


def digest_of(root: Path, file: ListedFile, *, reads: bool) -> str:
    """Digest of a file, half of a SHA-256: of its content, or of the target of a link; or size and time where it is not read.

    Args:
        root: that its name is counted from.
        file: of any kind.
        reads: read the content.
    """
    path = root / file.name
    try:
        if stat.S_ISLNK(file.mode):
            return f"link {sha256(link_target(path)).hexdigest()[:32]}"
        if not stat.S_ISREG(file.mode):
            return "no regular file"
        if not reads:
            return f"{file.size_bytes} bytes at {file.time_ns}"
        with path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest()[:32]
    except OSError:
        return "cannot be read"


def link_target(path: Path) -> bytes:
    """What a link says, which git stores as its content."""
    return os.fsencode(path.readlink())
