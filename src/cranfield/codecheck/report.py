"""What a checker is given and what it finds: the same for every language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Check(StrEnum):
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
    MISSING = "missing"
    """Not run, or not decided; the report says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a check found."""

    check: Check
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
    """Third-party packages that are there, with versions."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What all checks found."""

    states: Mapping[Check, CheckState]
    findings: tuple[Finding, ...] = ()
    """Of failed checks."""
    unknown: tuple[Finding, ...] = ()
    """What could not be decided, such as members of an untyped package: no check fails by it."""
    notes: tuple[str, ...] = ()
    """Why a check is missing, and which deprecated symbols have no entry in the map."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what checked."""


class Checker(Protocol):
    """Checks files of a language."""

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        """Check files by path. Faults of the code are findings; a checker that cannot run is a missing check."""
        ...
