"""What a checker is given and what it finds: the same for every language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


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
    """Of the checker."""
    current: str = ""
    """Of a deprecated symbol: what replaces it."""


@dataclass(frozen=True, slots=True)
class Target:
    """What code must run on."""

    language: str
    """`python`, `typescript`, `swift`."""
    platform: str = ""
    """`macos`, `linux`; empty: any."""
    version: str = ""
    """Of the platform or the language: `3.11`, `14.0`."""
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
    """Of failed checks."""
    unknown: tuple[CodeFinding, ...] = ()
    """Symbols that could not be looked up, such as members of an object of unknown type: no check fails or passes by them."""
    notes: tuple[str, ...] = ()
    """Why a check is missing, and which deprecated symbols have no entry in the map."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what checked, and of the packages that symbols were looked up in."""
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
