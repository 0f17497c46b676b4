"""What a checker is given and what it finds: the same for every language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from cranfield.base.errors import ConfigError
from cranfield.formats.io.validation import ClosedModel, Filled, load_model


class CodeCheck(StrEnum):
    """What is checked of generated code."""

    COMPILES = "compiles"
    SYMBOLS = "symbols"
    """Every symbol that is imported, called or read exists, and is called with arguments that it has."""
    AVAILABLE = "available"
    """On the target platform and version."""
    NOT_DEPRECATED = "not_deprecated"
    """No deprecated symbol that has a current alternative in the curated map."""
    TESTS = "tests"


class CheckState(StrEnum):
    """The outcome of a check."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Nothing that could be looked up failed, and some symbols could not be looked up: they are counted, each with its reason."""
    MISSING = "missing"
    """Not run, or not decided; the report says why."""


@dataclass(frozen=True, slots=True)
class CodeFinding:
    """Something that a check found."""

    check: CodeCheck
    file: str
    line: int
    """From 1; 0: of the whole file."""
    symbol: str
    """Empty: the checker names none."""
    message: str
    rule: str = ""
    """Rule of the checker."""
    current: str = ""
    """Replacement of a deprecated symbol."""


@dataclass(frozen=True, slots=True)
class Target:
    """What code must run on."""

    language: str
    """`python`, `typescript`, `swift`."""
    platform: str = ""
    """`macos`, `linux`; empty: any."""
    version: str = ""
    """Version of the platform or the language: `3.11`, `14.0`."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Third-party packages that are there, with versions: `2.3` is any 2.3.x; empty: any."""
    requirements: tuple[str, ...] = ()
    """Lines of a requirements file: what is installed in the place of `packages`."""
    environment: str = ""
    """Folder of an environment that exists, or its Python: nothing is installed, and its packages are those that are there."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What all checks found."""

    states: Mapping[CodeCheck, CheckState]
    findings: tuple[CodeFinding, ...] = ()
    """Findings of failed checks."""
    unknown: tuple[CodeFinding, ...] = ()
    """Symbols that could not be looked up, such as members of an object of unknown type: no check fails or passes by them."""
    notes: tuple[str, ...] = ()
    """Why a check is missing, and which deprecated symbols have no entry in the map."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the checkers, and of the packages that symbols were looked up in."""
    n_symbols: int = 0
    """That were looked at; 0: they are not counted."""

    @property
    def n_unknown(self) -> int:
        """Symbols of which it is not known whether they exist."""
        return sum(each.check is CodeCheck.SYMBOLS for each in self.unknown)


class Checker(Protocol):
    """Checks files of a language."""

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        """Check files by path. Faults of the code are findings; a checker that cannot run is a missing check."""
        ...


_Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]


class Deprecation(ClosedModel):
    """A symbol that new code does not use."""

    symbol: Filled
    """Name of the symbol; in Python `module`, `module:name`, `module:Class.member` or `module:function(parameter)`."""
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
