"""How an option is declared, the tables of names that it takes, and the one check of values that are given from Python."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from annotated_types import BaseMetadata, GroupedMetadata

from cranfield.base.errors import Problem, UnknownNameError, UsageError, did_you_mean, shorten, unknown_name
from cranfield.base.words import or_list


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

Place = Literal["command", "config", "testset", "request", "schedule"]
"""The command line; the configuration file; there also each of several test sets, over the value for all; a request over REST or
MCP; a schedule of a workbench."""
Owner = Literal["ref", "change", "digest", "none", "each"]
"""Who decides a value in a gate with a baseline ref: see `cranfield.config.owners`."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What an option is besides its type, its bounds and its default."""

    help: str = field(kw_only=False)
    flag: str = ""
    """On the command line; empty: the name with hyphens."""
    short: str = ""
    """One letter, as in `-m`."""
    metavar: str = ""
    env: str = ""
    """Environment variable that gives it too."""
    parse: Callable[[str], Any] | None = None
    """Reads its text; a `ValueError` is refused with its sentence."""
    shows_default: bool = True
    """Whether help tells its default."""
    refuses_link: bool = False
    """Whether its default, a folder, is refused where it is a symbolic link, which a change may have put there."""
    choices: str = ""
    """Names of a table that it takes: the table is imported when a name is checked, completed or shown in help."""
    in_config: str = ""
    """What the configuration file adds to the help."""
    places: Collection[Place] = ("command", "config")
    owner: Owner = "ref"

    def __repr__(self) -> str:
        """Its help: it stands in the signature of a block."""
        return f"Option({self.help!r})"


class Argument(Option):
    """An option of a command that is given by its position."""


@dataclass(frozen=True)
class Declared:
    """A field of a block that is an option."""

    name: str
    kind: Any
    """Its type, None among it where it may be left open."""
    option: Option
    bounds: tuple[BaseMetadata | GroupedMetadata, ...]
    default: Any

    @property
    def flag(self) -> str:
        """How the command line writes it."""
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @cached_property
    def bare(self) -> Any:
        """Its type without None."""
        parts = [part for part in get_args(self.kind) if part is not NoneType]
        return parts[0] if NoneType in get_args(self.kind) and len(parts) == 1 else self.kind

    def problem(self, value: object) -> Problem | None:
        """Why a value cannot be; None where it can."""
        if value is None and self.kind != self.bare:
            return None
        if isinstance(value, str) and (known := CHOICES.get(self.option.choices)):
            is_known = value in known.names() or value in known.also()
            return (
                None if is_known else replace(unknown_name(known.kind, value, known.names()), parameters=(self.name,))
            )
        if get_origin(self.bare) is Literal:
            choices = get_args(self.bare)
            if value in choices:
                return None
            hint = did_you_mean(value, choices) if isinstance(value, str) else None
            return self._wrong(value, or_list(list(map(repr, choices))), hint)
        if self.bare not in {int, float}:
            return None
        is_number = isinstance(value, int | self.bare) and not isinstance(value, bool) and math.isfinite(value)
        is_allowed = is_number and all(getattr(operator, kind)(value, bound) for kind, bound in self.limits.items())
        return None if is_allowed else self._wrong(value, self._range)

    def _wrong(self, value: object, expected: str, hint: str | None = None) -> Problem:
        shown = f"{value:g}" if isinstance(value, float) else shorten(value)
        return Problem(f"{{{self.name}}} is {shown}", expected=expected, hint=hint, parameters=(self.name,))

    @cached_property
    def limits(self) -> dict[str, Any]:
        """Its bounds: `{"gt": 0, "lt": 1}`."""
        parts: Iterator[Any] = (
            part for bound in self.bounds for part in (bound if isinstance(bound, GroupedMetadata) else (bound,))
        )
        return {kind: value for part in parts for kind, value in asdict(part).items()}

    @property
    def _range(self) -> str:
        """`a number between 0 and 1`, `a whole number of 1 or more`."""
        number, limits = "a whole number" if self.bare is int else "a number", self.limits
        if {"gt", "lt"} <= limits.keys():
            return f"{number} between {limits['gt']} and {limits['lt']}"
        if {"ge", "le"} <= limits.keys():
            return f"{number} from {limits['ge']} to {limits['le']}"
        if "gt" in limits:
            return f"{number} above {limits['gt']}"
        return f"{number} of {limits['ge']} or more" if "ge" in limits else number


_DECLARED: dict[Any, Mapping[str, Declared]] = {}


def declared(block: Any) -> Mapping[str, Declared]:
    """The options of a block by name, in their order; a field without an `Option` is set by the program."""
    if block not in _DECLARED:
        found = {}
        for each in fields(block):
            marks = getattr(each.type, "__metadata__", ())
            option = next((mark for mark in marks if isinstance(mark, Option)), None)
            if option is not None:
                default = each.default if each.default_factory is MISSING else each.default_factory()
                bounds = tuple(mark for mark in marks if isinstance(mark, BaseMetadata | GroupedMetadata))
                found[each.name] = Declared(each.name, get_args(each.type)[0], option, bounds, default)
        _DECLARED[block] = found
    return _DECLARED[block]


def check(block: Any, *more: Problem) -> None:
    """Refuse what the declarations do not allow, and further problems.

    Raises:
        UnknownNameError: unknown names are all that is wrong.
        UsageError: with everything that is wrong.
    """
    options = declared(type(block)).values()
    found = [(each, problem) for each in options if (problem := each.problem(getattr(block, each.name))) is not None]
    if found or more:
        is_of_names = not more and all(each.option.choices for each, _ in found)
        raise (UnknownNameError if is_of_names else UsageError)([*(problem for _, problem in found), *more])


def command_words(
    block: Any, only: Collection[str] | None = None, *, without: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """The options of a block that differ from their defaults, each as the command line takes it: its flag and its value.

    Args:
        block: whose options are single values; those that are not, and those that the command line has not, are left out.
        only: names of those that a command has; None: all.
        without: names of further ones that are left out.
    """
    for name, option in declared(type(block)).items():
        value = getattr(block, name)
        is_of_command = "command" in option.option.places and name not in without and (only is None or name in only)
        if is_of_command and value != option.default and isinstance(value, str | int | float):
            yield option.flag, str(value)
