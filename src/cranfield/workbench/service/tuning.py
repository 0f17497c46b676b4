"""Systems with other values of the parameters that the operator opens: what may be set, and the config that results."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pydantic import ValidationError

from cranfield.base.errors import Problem, ProblemList, UnknownNameError, UsageError, shorten, unknown_name
from cranfield.config import Config
from cranfield.config.grid import with_settings, written_value
from cranfield.config.systems import SystemConfig
from cranfield.model import Scalar
from cranfield.workbench.config import Allowed, Range, Workbench

Settings = Mapping[str, Scalar]
"""Place in a system to its value."""
TRIED = "tried: "
_SAME = 1e-9
"""Relative distance from a step that rounding makes."""


def opened(workbench: Workbench | None, system: str) -> Mapping[str, Allowed]:
    """What the operator opens of a system: place to a range or a list."""
    return {} if workbench is None else workbench.tunable.get(system, {})


def checked_settings(workbench: Workbench | None, system: str, params: Settings) -> dict[str, Scalar]:
    """Settings of a system, each in a place that is open and with a value that is allowed.

    Args:
        workbench: the operator's file.
        system: its name.
        params: place to value; a name without a dot is one of `params`.

    Raises:
        UsageError: with every setting that the operator does not open.
    """
    places, problems, found = opened(workbench, system), ProblemList(UsageError), dict[str, Scalar]()
    for name, value in params.items():
        place = name if "." in name or name in places else f"params.{name}"
        if place not in places:
            hint = "the operator lists tunable parameters in workbench.yaml, block tunable"
            known = unknown_name(f"tunable parameter of {shorten(system)}", name, places)
            problems.problems.append(Problem(known.message, expected=known.expected or "none is open", hint=hint))
        elif (expected := _refused(places[place], value)) is not None:
            problems.add("this value is not allowed", path=place, expected=expected, got=shorten(value))
        else:
            found[place] = value
    problems.raise_if_any()
    return found


def _refused(allowed: Allowed, value: Scalar) -> str | None:
    """What is expected in the place of a value; None where it is allowed."""
    if isinstance(allowed, list):
        same = any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in allowed)
        return None if same else ", ".join(map(shown_value, allowed))
    return None if _is_in(allowed, value) else shown_range(allowed)


def _is_in(allowed: Range, value: Scalar) -> bool:
    if isinstance(value, bool | str) or not math.isfinite(value) or not allowed.min <= value <= allowed.max:
        return False
    if allowed.distance is None:
        return True
    steps = (value - allowed.min) / allowed.distance
    return math.isclose(steps, round(steps), rel_tol=_SAME, abs_tol=_SAME)


def shown_value(value: object) -> str:
    """A value as a config writes it."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def shown_range(allowed: Range) -> str:
    """`0 to 5 in steps of 0.5`."""
    whole, distance = f"{allowed.min:g} to {allowed.max:g}", allowed.distance
    if distance is None:
        return whole
    return f"{whole}, whole" if distance == 1 and isinstance(allowed.min, int) else f"{whole} in steps of {distance:g}"


def read_settings(workbench: Workbench | None, system: str, written: Mapping[str, str]) -> dict[str, Scalar]:
    """Settings as a form sends them; an empty text leaves the config's value.

    Raises:
        UsageError: with everything that is not open.
    """
    places = opened(workbench, system)
    values = {place: _read(places.get(place), text) for place, text in written.items() if text != ""}
    return checked_settings(workbench, system, values)


def _read(allowed: Allowed | None, text: str) -> Scalar:
    if isinstance(allowed, list):
        return next((each for each in allowed if shown_value(each) == text), text)
    try:
        number = float(text)
    except ValueError:
        return text
    is_whole = isinstance(allowed, Range) and isinstance(allowed.distance, int) and isinstance(allowed.min, int)
    return int(number) if is_whole and number == int(number) else number


def tuned_system(config: Config, workbench: Workbench | None, system: str, params: Settings) -> SystemConfig:
    """A system with other values in places that the operator opens.

    Raises:
        UnknownNameError: there is no such system.
        UsageError: a setting that is not open, or that makes no system.
    """
    if system not in config.systems:
        raise UnknownNameError.among("system", system, config.systems)
    settings = checked_settings(workbench, system, params)
    try:
        return with_settings(config.systems[system], settings)
    except ValidationError as error:
        problems = [Problem(each["msg"], path=".".join(map(str, each["loc"]))) for each in error.errors()]
        raise UsageError(problems) from None


def tuned_config(config: Config, workbench: Workbench | None, system: str, params: Settings) -> Config:
    """The config in which a system has other values in places that the operator opens; raises as `tuned_system`."""
    changed = tuned_system(config, workbench, system, params)
    return config.model_copy(update={"systems": {**config.systems, system: changed}})


def tunable_problems(config: Config | None, workbench: Workbench) -> tuple[str, ...]:
    """What the operator's file opens and cannot be set: of no system of the config, or in no place of it."""
    found = []
    for name, places in workbench.tunable.items():
        if config is None or name not in config.systems:
            found.append(f"parameters of {name}, which is not a system of the config")
            continue
        for place, allowed in places.items():
            value = allowed[0] if isinstance(allowed, list) else allowed.min
            try:
                with_settings(config.systems[name], {place: value})
            except ValidationError as error:
                found.append(
                    f"{place} of {name}, where the value {shown_value(value)} is invalid: {error.errors()[0]['msg']}"
                )
    return tuple(found)


def config_value(config: Config, system: str, place: str) -> str:
    """The value that the config has in a place; empty where it names none."""
    value = written_value(config.systems[system], place)
    return "" if value is None else shown_value(value)


def label(params: Settings) -> str:
    """What an evaluation with settings that have no name is called: `tried: boost=2`."""
    return TRIED + ", ".join(
        f"{place.removeprefix('params.')}={shown_value(params[place])}" for place in sorted(params)
    )
