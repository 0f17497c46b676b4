"""The map of deprecated symbols that have a current alternative: a curated file for each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cranfield.base.errors import ConfigError
from cranfield.benefit.codecheck.report import Target
from cranfield.formats.io.validation import ClosedModel, Filled, load_model

_Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]


class Deprecation(ClosedModel):
    """A symbol that new code does not use."""

    symbol: Filled
    """Of Python `module`, `module:name`, `module:Class.member` or `module:function(parameter)`."""
    since: _Version
    """Version of the platform, the language or the package from which on it is deprecated."""
    removed: _Version | Literal[""] = ""
    """Version from which on it is not there."""
    current: Filled
    """What new code uses."""
    source: Filled
    """Where that is documented."""
    platform: str = ""
    """`macos`, `ios`; empty: versions are of the language."""
    package: str = ""
    """Versions are of this package."""

    @property
    def name(self) -> str:
        """As code names it: `module.Class.member`."""
        return self.symbol.replace(":", ".")

    def is_deprecated(self, target: Target) -> bool:
        """Whether it is deprecated on a target, and still there."""
        used = self._used(target)
        return bool(used) and not is_older(used, self.since) and not self.is_removed(target)

    def is_removed(self, target: Target) -> bool:
        """Whether it is not there on a target any more."""
        used = self._used(target)
        return bool(used and self.removed) and not is_older(used, self.removed)

    def _used(self, target: Target) -> str:
        """The version on the target of what the entry is about; empty: it is not there."""
        if self.package:
            return target.packages.get(self.package, "")
        return target.version if self.platform in {"", target.platform} else ""


class DeprecationMap(ClosedModel):
    """All entries of a language."""

    cranfield_deprecations: Literal[1]
    language: Filled
    entries: tuple[Deprecation, ...]

    @property
    def by_name(self) -> Mapping[str, Deprecation]:
        """Entries by the names that code uses."""
        return {entry.name: entry for entry in self.entries}


def is_older(version: str, other: str) -> bool:
    """Whether a version is before another: 3.9 is before 3.10, and 3 is no older than 3.0."""
    first, second = ([int(part) for part in re.findall(r"\d+", text)] for text in (version, other))
    length = max(len(first), len(second))
    return first + [0] * (length - len(first)) < second + [0] * (length - len(second))


def read_deprecations(path: Path) -> DeprecationMap:
    """Read a map.

    Raises:
        ConfigError: with every problem of the file.
    """
    return load_model(path, DeprecationMap, ConfigError)


@cache
def packaged_deprecations(language: str) -> DeprecationMap:
    """The map of a language that ships with Cranfield."""
    with as_file(files("cranfield.benefit.codecheck") / "deprecated" / f"{language}.yaml") as path:
        return read_deprecations(path)
