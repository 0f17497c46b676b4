"""Versions of a golden set in a folder: `golden_v1.0.json`, `golden_v1.1.json`. The newest one is read unless a file is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_FILE = re.compile(r"golden_v(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.json")


class GoldenVersion(NamedTuple):
    """A version; the higher one is the newer one."""

    major: int
    """Another one where the schema of the records is another."""
    minor: int
    """Another one where records were added or changed."""

    def __str__(self) -> str:
        """`1.0`."""
        return f"{self.major}.{self.minor}"

    @property
    def file_name(self) -> str:
        """`golden_v1.0.json`."""
        return f"golden_v{self}.json"


def golden_versions(folder: Path) -> dict[GoldenVersion, Path]:
    """Version to file, the newest last. A draft has another name, and is none."""
    found = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if (match := _FILE.fullmatch(path.name)) and path.is_file():
            found[GoldenVersion(int(match[1]), int(match[2]))] = path
    return dict(sorted(found.items()))


def newest_golden(path: Path) -> Path:
    """The newest version where the path is a folder of versions; any other path as it is."""
    return next(reversed(golden_versions(path).values()), path) if path.is_dir() else path
