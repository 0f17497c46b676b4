"""Files of a folder that no commit has, found by walking it: their digests, by content or, where that is too much, by time."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path

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
