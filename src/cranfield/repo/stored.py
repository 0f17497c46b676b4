"""What git has stored of a repository, and what it would store: entries of a commit and of the index, ids of contents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cranfield.repo.git import GitError, git, listed
from cranfield.repo.snapshot import read_blobs

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
