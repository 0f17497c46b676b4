"""How an option is declared, and the one check of values that are given from Python."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt

from cranfield.errors import Problem, UnknownNameError, UsageError, did_you_mean, shorten, unknown_name
from cranfield.options.names import CHOICES
from cranfield.words import or_list

Place = Literal["command", "config", "testset"]
"""The command line; the configuration file; there also each of several test sets, over the value for all."""
Owner = Literal["ref", "change", "digest", "none", "each"]
"""Who decides a value in a gate with a baseline ref: see `cranfield.config.owners`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What an option is besides its type, its bounds and its default."""

    help: str
    flag: str = ""
    """On the command line; empty: the name with hyphens."""
    metavar: str = ""
    choices: str = ""
    """Names of a table that it takes: the table is imported when a name is checked, completed or shown in help."""
    in_config: str = ""
    """What the configuration file adds to the help."""
    places: Collection[Place] = ("command", "config")
    owner: Owner = "ref"

    def __repr__(self) -> str:
        """Its help, in a printed signature of a block."""
        return f"Option({self.help!r})"


@dataclass(frozen=True, slots=True)
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

    @property
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
            return None if is_known else unknown_name(known.kind, value, known.names())
        if get_origin(self.bare) is Literal:
            choices = get_args(self.bare)
            hint = did_you_mean(value, choices) if isinstance(value, str) else None
            return None if value in choices else self._wrong(value, or_list(list(map(repr, choices))), hint)
        if self.bare not in {int, float}:
            return None
        is_number = isinstance(value, int | self.bare) and not isinstance(value, bool) and math.isfinite(value)
        return (
            None
            if is_number and all(_holds(bound, value) for bound in self.limits)
            else self._wrong(value, self._range)
        )

    def _wrong(self, value: object, expected: str, hint: str | None = None) -> Problem:
        shown = f"{value:g}" if isinstance(value, float) else shorten(value)
        return Problem(f"{{{self.name}}} is {shown}", expected=expected, hint=hint, parameters=(self.name,))

    @property
    def limits(self) -> list[Any]:
        """Its bounds one by one."""
        return [part for bound in self.bounds for part in (bound if isinstance(bound, GroupedMetadata) else (bound,))]

    @property
    def _range(self) -> str:
        """`a number between 0 and 1`, `a whole number of 1 or more`."""
        number = "a whole number" if self.bare is int else "a number"
        low = next(
            (part.ge if isinstance(part, Ge) else part.gt for part in self.limits if isinstance(part, Ge | Gt)), None
        )
        high = next(
            (part.le if isinstance(part, Le) else part.lt for part in self.limits if isinstance(part, Le | Lt)), None
        )
        if low is not None and high is not None:
            is_open = any(isinstance(part, Gt | Lt) for part in self.limits)
            return f"{number} between {low} and {high}" if is_open else f"{number} from {low} to {high}"
        if low is None:
            return number
        return (
            f"{number} above {low}"
            if any(isinstance(part, Gt) for part in self.limits)
            else f"{number} of {low} or more"
        )


def _holds(bound: object, value: Any) -> bool:
    match bound:
        case Ge(ge=least):
            return bool(value >= least)
        case Gt(gt=low):
            return bool(value > low)
        case Le(le=most):
            return bool(value <= most)
        case Lt(lt=high):
            return bool(value < high)
    return True


_DECLARED: dict[Any, Mapping[str, Declared]] = {}


def declared(block: Any) -> Mapping[str, Declared]:
    """The options of a block by name, in their order; a field without an `Option` is set by the program."""
    if block not in _DECLARED:
        _DECLARED[block] = _read(block)
    return _DECLARED[block]


def _read(block: Any) -> Mapping[str, Declared]:
    found = {}
    for field in fields(block):
        marks = getattr(field.type, "__metadata__", ())
        option = next((mark for mark in marks if isinstance(mark, Option)), None)
        if option is not None:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            bounds = tuple(mark for mark in marks if isinstance(mark, BaseMetadata | GroupedMetadata))
            found[field.name] = Declared(field.name, field.type.__origin__, option, bounds, default)  # type: ignore[union-attr]  # Annotated
    return found


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
