"""Tables of names that options take; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a table."""

    kind: str
    """What one of them is: `unknown test`."""
    names: Callable[[], list[str]]
    also: Callable[[], Collection[str]] = tuple
    """Other names of the table, which something else refuses."""


def tests() -> list[str]:
    """Tests that a verdict can rest on."""
    from cranfield.stats.table import TESTS

    return [name for name, spec in TESTS.items() if spec.can_declare]


def adjustments() -> list[str]:
    """Adjustments of p-values."""
    from cranfield.stats.table import ADJUSTMENTS

    return list(ADJUSTMENTS)


def conventions() -> list[str]:
    """Scoring conventions."""
    from cranfield.model import CONVENTIONS

    return list(CONVENTIONS)


def _all_tests() -> Collection[str]:
    from cranfield.stats.table import TESTS

    return TESTS


CHOICES: Mapping[str, Names] = {
    "tests": Names("test", tests, _all_tests),
    "adjustments": Names("adjustment", adjustments),
    "conventions": Names("convention", conventions),
}
