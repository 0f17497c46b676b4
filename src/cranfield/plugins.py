"""Extension points: the entry-point groups by which an installed package adds to Cranfield. This module knows no feature.

A package names an object of its own in its `pyproject.toml`:

    [project.entry-points."cranfield.measures"]
    acme = "acme_search.measures:register"

The feature that owns a group loads its objects when they are needed, and checks what it gets.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, Literal, TypeVar

from cranfield.base.errors import CranfieldError, Problem, UsageError

Item = TypeVar("Item")
Group = Literal[
    "cranfield.measures",
    "cranfield.systems",
    "cranfield.formats",
    "cranfield.checks",
    "cranfield.report_sections",
    "cranfield.products",
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
            "a `cranfield.evaluation.testset.validate.Check`: a name, a level, a description, and a function that yields findings",
            "by `cranfield testset validate`",
        ),
        ExtensionPoint(
            "cranfield.report_sections",
            "report section",
            "a function of a `cranfield.reporting.sections.subject.Subject` that returns a `Section`, or None",
            "when a report of evaluations or of a comparison is made",
        ),
        ExtensionPoint(
            "cranfield.products",
            "product",
            "a `cranfield.plugins.Product`: commands, a block of the config, pages, cards of notebooks, JSON Schemas, jobs",
            "by help, for a command that Cranfield does not have, for a config, and by the server",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What a product adds to the core. Every part is named, as `module` or `module:object`, and imported when it is used."""

    name: str
    commands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Heading of help to the commands below it with their modules; each is the function `NAME_command`."""
    groups: frozenset[str] = frozenset()
    """Those that are groups of commands: `SUBCOMMANDS` of their module names each command with its module."""
    subcommands: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Group of another product to the commands that it gets from this one, with their modules."""
    needs: tuple[str, ...] = ()
    """Built-in products without which this one is left out."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Key of cranfield.yaml to the `ProductBlock` that is its model."""
    cards: Mapping[str, str] = field(default_factory=dict)
    """Name of a class to how a notebook shows its values: a function that makes their report, or a `CardShape`."""
    schemas: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Name of a JSON Schema to the title of the document and the file, from the folder of the package."""
    pages: tuple[str, ...] = ()
    """Routers of FastAPI that the server includes, or functions that make them; each route declares who may use it."""
    menu: tuple[tuple[str, str, str], ...] = ()
    """Links of the menu of the server: title, path, and kind of route, for those who may use it."""
    provides: Mapping[str, str] = field(default_factory=dict)
    """Job that the core leaves to a product, to the module that does it."""


BUILT_IN = ("testsets", "gate", "judging", "golden", "benefit", "scale", "compat", "workbench")
"""Packages of this distribution that are products: `PRODUCT` of each. Without one of them all work that do not need it."""


@cache
def built_in_products() -> tuple[Product, ...]:
    """The products of this distribution that are there."""
    found = []
    for name in BUILT_IN:
        try:
            found.append(import_module(f"cranfield.{name}").PRODUCT)
        except ModuleNotFoundError as error:
            if error.name != f"cranfield.{name}":
                raise
    names = {product.name for product in found}
    return tuple(product for product in found if names.issuperset(product.needs))


def installed_products() -> tuple[tuple[Product, ...], tuple[Problem, ...]]:
    """The products of installed packages, and what is wrong with those that gave none."""
    return _installed_products(tuple(sys.path))


@cache
def _installed_products(_search_path: tuple[str, ...]) -> tuple[tuple[Product, ...], tuple[Problem, ...]]:
    return load_plugins("cranfield.products", Product)


def products() -> tuple[Product, ...]:
    """Every product: the built-in ones, then those of installed packages."""
    return (*built_in_products(), *installed_products()[0])


def part(place: str) -> Any:
    """A module, or an object in it: `module:object`.

    Raises:
        UsageError: it is part of an installed package, which cannot be imported or does not have it.
    """
    module, _, name = place.partition(":")
    try:
        found = import_module(module)
        return getattr(found, name) if name else found
    except Exception as error:
        if module.partition(".")[0] == "cranfield":
            raise
        hint = "fix the package, or uninstall it"
        raise UsageError(f"{place} of a product failed: {type(error).__name__}: {error}", hint=hint) from error


def card_of(class_name: str) -> Any:
    """How a product shows the values of a class of its own; None where no product has it."""
    place = next((each.cards[class_name] for each in products() if class_name in each.cards), None)
    return None if place is None else part(place)


def provided(job: str) -> Any:
    """The module of the product that does a job which the core leaves to it; None where no product does."""
    place = next(_places_of(job), None)
    return None if place is None else part(place)


def _places_of(job: str) -> Iterator[str]:
    """Where a job is done; installed packages are looked at last, because reading their names takes a while."""
    yield from (each.provides[job] for each in built_in_products() if job in each.provides)
    yield from (each.provides[job] for each in installed_products()[0] if job in each.provides)


def required(job: str) -> Any:
    """The module of the product that does a job which a call needs.

    Raises:
        UsageError: no product does.
    """
    found = provided(job)
    if found is None:
        raise UsageError(f"the part of Cranfield for {job.replace('_', ' ')} is not installed")
    return found
