"""Versions of a file in a folder: `golden_v1.0.json`, `golden_v1.1.json`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple


class FileVersion(NamedTuple):
    """A version; the higher one is the newer one."""

    major: int
    minor: int

    def __str__(self) -> str:
        """`1.0`."""
        return f"{self.major}.{self.minor}"

    def file_name(self, name: str) -> str:
        """`golden_v1.0.json` of `golden`."""
        return f"{name}_v{self}.json"


def file_versions(folder: Path, name: str) -> dict[FileVersion, Path]:
    """Version to file, the newest last. A draft has another name, and is none."""
    pattern = re.compile(re.escape(name) + r"_v(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.json")
    names = ((path, pattern.fullmatch(path.name)) for path in (folder.iterdir() if folder.is_dir() else ()))
    found = {FileVersion(int(match[1]), int(match[2])): path for path, match in names if match and path.is_file()}
    return dict(sorted(found.items()))


def newest_version(path: Path, name: str) -> Path:
    """The newest version where the path is a folder of versions; any other path as it is."""
    return next(reversed(file_versions(path, name).values()), path) if path.is_dir() else path
