"""Extension points: the entry-point groups by which an installed package adds to Cranfield. This module knows no feature.

A package names an object of its own in its `pyproject.toml`:

    [project.entry-points."cranfield.measures"]
    acme = "acme_search.measures:register"

The feature that owns a group loads its objects when they are needed, and checks what it gets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Literal, TypeVar

from cranfield.errors import CranfieldError, Problem

Item = TypeVar("Item")
Group = Literal[
    "cranfield.measures",
    "cranfield.systems",
    "cranfield.formats",
    "cranfield.checks",
    "cranfield.report_sections",
]


@dataclass(frozen=True, slots=True)
class ExtensionPoint:
    """One group of entry points."""

    group: Group
    adds: str
    """What a package adds: `measure`."""
    contract: str
    """What the entry point names."""
    loaded: str
    """When Cranfield loads it."""


EXTENSION_POINTS: dict[Group, ExtensionPoint] = {
    point.group: point
    for point in (
        ExtensionPoint(
            "cranfield.measures",
            "measure",
            "a function without arguments that calls `cranfield.define`, once per measure",
            "for a measure that is not in the catalogue, and by `cranfield measures`",
        ),
        ExtensionPoint(
            "cranfield.systems",
            "system",
            "a function `(name, settings, folder, params)` that returns an object with a method `search(query, k, **params)`",
            "for a config with `plugin: NAME`",
        ),
        ExtensionPoint(
            "cranfield.formats",
            "format",
            "a `cranfield.formats.registry.Format`: how a file is recognised, and which functions read and write it",
            "when no built-in format matches the content of a file, or the requested name",
        ),
        ExtensionPoint(
            "cranfield.checks",
            "check",
            "a `cranfield.testsets.validate.Check`: a name, a level, a description, and a function that yields findings",
            "by `cranfield testset validate`",
        ),
        ExtensionPoint(
            "cranfield.report_sections",
            "report section",
            "a function of a `cranfield.reporting.sections.subject.Subject` that returns a `Section`, or None",
            "when a report of evaluations or of a comparison is made",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of an installed package."""

    point: EntryPoint
    adds: str

    @property
    def name(self) -> str:
        """The name that the package gave it."""
        return self.point.name

    @property
    def package(self) -> str:
        """` of NAME VERSION`; empty where the installation does not say."""
        return "" if self.point.dist is None else f" of {self.point.dist.name} {self.point.dist.version}"

    @property
    def label(self) -> str:
        """What messages call it: `measure plugin 'acme' of acme-search 1.2`."""
        return f"{self.adds} plugin {self.name!r}{self.package}"

    def load(self) -> object:
        """Import the object that the entry point names.

        Raises:
            Exception: whatever the package raises while it is imported; see `problem`.
        """
        return self.point.load()

    def problem(self, error: BaseException) -> Problem:
        """The message for an error that the package raised while it was loaded or called."""
        if isinstance(error, CranfieldError):
            return Problem(f"{self.label} failed: {error.problems[0].message}")
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = f"fix {self.point.value}, or uninstall the package"
        return Problem(f"{self.label} failed: {what}", hint=hint)

    def wrong_type(self, item: object, expected: str) -> Problem:
        """The message for an object that is not what the group takes."""
        hint = f"fix {self.point.value}, or uninstall the package"
        message = f"{self.label}: {self.point.value} has the wrong type"
        return Problem(message, expected=expected, got=type(item).__name__, hint=hint)


def plugins(group: Group) -> Iterator[Plugin]:
    """The entry points of a group, in the order of their names."""
    adds = EXTENSION_POINTS[group].adds
    for point in sorted(_installed(group, tuple(sys.path)), key=lambda point: (point.name, point.value)):
        yield Plugin(point, adds)


@cache
def _installed(group: Group, _search_path: tuple[str, ...]) -> EntryPoints:
    """Read once for a search path: a look at every installed package costs some milliseconds."""
    return entry_points(group=group)


def load_plugins(group: Group, kind: type[Item]) -> tuple[tuple[Item, ...], tuple[Problem, ...]]:
    """Load every object of a group that is of the type `kind`.

    Returns:
        The objects, and what is wrong with the plugins that gave none.
    """
    items: list[Item] = []
    problems: list[Problem] = []
    for plugin in plugins(group):
        try:
            item = plugin.load()
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(plugin.problem(error))
            continue
        if isinstance(item, kind):
            items.append(item)
        else:
            problems.append(plugin.wrong_type(item, EXTENSION_POINTS[group].contract))
    return tuple(items), tuple(problems)
