"""Files in a repository that are none of its source: those that a call is given or writes, and those that Cranfield wrote earlier.

What a call names is left out whether git tracks it or not. What Cranfield wrote is known by its content, whatever it is called,
and only where git does not track it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

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
        """Of a folder.

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
