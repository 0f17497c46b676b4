"""The points of the `grid:` block as systems, each checked like a system of the file.

A place is a path of keys inside the system, joined by dots. Points that give the same system are one point.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from cranfield.base.errors import Problem, unknown_name
from cranfield.config.models import Config, GridConfig, parts_of
from cranfield.config.strict import Finding, placeholders, texts
from cranfield.config.systems import FusionConfig, SystemConfig, SystemRoot, expand_preset
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import problems_of

MAX_POINTS = 500
"""Largest number of points of a grid; each is a system that answers every query."""
TAKES_ANY_PARAM = frozenset({"python", "lines", "plugin"})
"""Kinds of system that are given all params, whatever they are called."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of the system."""

    name: str
    """Name of the system that it makes: `hybrid.3f9a01bc`, the same in any grid; the system's own where it is the
    config as written."""
    settings: Mapping[str, Any]
    """Dotted place to value."""
    system: SystemConfig
    same: tuple[Mapping[str, Any], ...] = ()
    """Later settings that come to the same system."""


def grid_points(config: Config, grid: GridConfig) -> list[Point]:
    """Every point that is a system of its own, in the order of the file, the last place varied first.

    Raises:
        pydantic.ValidationError: a point is no system; `check_grid` says where.
    """
    base = config.systems[grid.system]
    own = _effective(base)
    points: dict[str, Point] = {}
    for values in itertools.product(*grid.over.values()):
        settings = dict(zip(grid.over, values, strict=True))
        system = with_settings(base, settings)
        effective = _effective(system)
        if effective in points:
            found = points[effective]
            points[effective] = replace(found, same=(*found.same, settings))
            continue
        name = grid.system if effective == own else f"{grid.system}.{sha256(effective.encode()).hexdigest()[:8]}"
        points[effective] = Point(name, settings, base if effective == own else system)
    return list(points.values())


def with_systems(config: Config, systems: Mapping[str, SystemConfig]) -> Config:
    """The same config with more systems, which may be made of those that are there."""
    return config.model_copy(update={"systems": {**config.systems, **systems}})


def check_grid(config: Config) -> Iterator[Finding]:
    """Everything wrong with the grid of a config that is well-formed, each with its place in the file."""
    grid = config.grid
    if grid is None:
        return
    if grid.system not in config.systems:
        yield ("grid", "system"), unknown_name("system", grid.system, config.systems)
        return
    n = math.prod(len(values) for values in grid.over.values())
    if n > MAX_POINTS:
        hint = "try fewer values at a time."
        yield ("grid", "over"), Problem("points of the grid", expected=f"at most {MAX_POINTS}", got=str(n), hint=hint)
        return
    if isinstance(grid.held_out, str) and not all(part.strip() for part in grid.held_out.partition("=")):
        expected = "a share such as 0.3, or KEY=VALUE such as split=test"
        yield ("grid", "held_out"), Problem("what is held out", expected=expected, got=grid.held_out)
    problems = [*_check_places(config, grid)]
    yield from problems
    if not problems:
        yield from _check_points(config, grid)


def _check_places(config: Config, grid: GridConfig) -> Iterator[Finding]:
    """Each value in its place, alone."""
    system = config.systems[grid.system]
    for key, values in grid.over.items():
        place = ("grid", "over", key)
        problem = _unknown_place(config, grid.system, key)
        if problem is not None:
            yield place, problem
            continue
        if len({json.dumps(value, default=str, sort_keys=True) for value in values}) < len(values):
            yield place, Problem(f"{key} lists a value twice")
        for index, value in enumerate(values):
            for inner, problem in _problems(config, _with(system, {key: value})):
                is_value = inner == tuple(key.split("."))
                yield (*place, index), problem if is_value else replace(problem, message=f"{key}: {problem.message}")


def _check_points(config: Config, grid: GridConfig) -> Iterator[Finding]:
    """All points as systems among the others: values that exclude each other, fusions of themselves."""
    reported: set[str] = set()
    for values in itertools.product(*grid.over.values()):
        settings = dict(zip(grid.over, values, strict=True))
        data = _with(config.systems[grid.system], settings)
        for inner, problem in _problems(config, data):
            if str(problem) not in reported:
                reported.add(str(problem))
                place = ".".join(map(str, inner))
                key = next((key for key in grid.over if place.startswith(key)), None)
                got = problem.got or ", ".join(f"{key} {value}" for key, value in settings.items())
                yield (("grid", "over", key) if key else ("grid", "over")), replace(problem, got=got)
        if not reported and grid.system in parts_of(
            {**config.systems, grid.system: SystemRoot.model_validate(data).root}, grid.system
        ):
            reported.add("cycle")
            yield ("grid", "over"), Problem("the fusion lists itself as one of its parts")


def _problems(config: Config, data: Mapping[str, Any]) -> Iterator[tuple[Loc, Problem]]:
    return problems_of(SystemRoot, data, context={"systems": config.systems})


def _unknown_place(config: Config, name: str, key: str) -> Problem | None:
    """What is wrong with a place where no value could be right."""
    system = config.systems[name]
    if key.partition(".")[0] == "env":
        return Problem(
            "reports show all values of a grid, and env contains secrets", got=key, hint="vary params instead."
        )
    known: list[str] | None
    if key.startswith("params."):
        params = _params_of(config, name)
        known = None if params is None else [f"params.{param}" for param in sorted(params)]
    elif key.startswith("fusion.weights.") and isinstance(system, FusionConfig):
        known = [f"fusion.weights.{part}" for part in system.fusion.of]
    else:
        known = sorted(_places(system))
    if known is None or key in known:
        return None
    return unknown_name("place", key, known)


def _places(system: SystemConfig) -> set[str]:
    """Every place that the system has or could have: keys of its models, two deep, and those in the file, deeper."""
    found: set[str] = set()
    for name, field in type(system).model_fields.items():
        found.add(field.alias or name)
        inner = getattr(system, name)
        for inner_name, inner_field in getattr(type(inner), "model_fields", {}).items():
            found.add(f"{field.alias or name}.{inner_field.alias or inner_name}")
    return found | set(_written_places(_plain(system)))


def _written_places(value: object, above: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{above}{key}"
            yield from _written_places(inner, f"{above}{key}.")


def _params_of(config: Config, name: str) -> set[str] | None:
    """Params that a system, or what it is made of, is given or fills in; None where it takes any."""
    found: set[str] = set()
    left, seen = [name], set[str]()
    while left:
        current = left.pop()
        if current not in config.systems or current in seen:
            continue
        seen.add(current)
        system = expand_preset(config.systems[current])
        if system.kind in TAKES_ANY_PARAM:
            return None
        values = system.model_dump(by_alias=True, exclude_unset=True, exclude={"env"})
        named = (name for text in texts(values) for name in placeholders(text))
        found |= {name.removeprefix("params.") for name in named if name.startswith("params.")}
        found |= set(system.params)
        left += system.fusion.of if isinstance(system, FusionConfig) else []
    return found


def with_settings(system: SystemConfig, settings: Mapping[str, Any]) -> SystemConfig:
    """The system with other values in some places.

    Raises:
        pydantic.ValidationError: that is no system.
    """
    return SystemRoot.model_validate(_with(system, settings)).root


def written_value(system: SystemConfig, place: str) -> object:
    """The value in a place; None where the config names none."""
    value: object = _plain(system)
    for step in _steps(place):
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _steps(place: str) -> list[str]:
    if place.startswith("params."):
        return place.split(".", 1)
    return place.split(".", 2) if place.startswith("fusion.weights.") else place.split(".")


def _with(system: SystemConfig, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The system as it was written, with other values in some places."""
    data = _plain(system)
    for key, value in settings.items():
        steps, inner = _steps(key), data
        for step in steps[:-1]:
            below = inner.get(step)
            inner[step] = dict(below) if isinstance(below, Mapping) else {}
            inner = inner[step]
        inner[steps[-1]] = value
    return data


def _plain(system: SystemConfig) -> dict[str, Any]:
    """As written; secrets stay what they are."""
    return system.model_dump(by_alias=True, exclude_unset=True)


def _effective(system: SystemConfig) -> str:
    """The same text for two configs that are the same system: without what its fusion does not look at."""
    data = _plain(system)
    data.pop("env", None)  # no place of a grid, and secret
    if isinstance(system, FusionConfig):
        how = {**system.fusion.model_dump(), "rrf_k": float(system.fusion.rrf_k)}
        del how["normalise" if system.fusion.method == "rrf" else "rrf_k"]
        how["weights"] = {name: float(system.fusion.weights.get(name, 1.0)) for name in system.fusion.of}
        heard = [name for name, weight in how["weights"].items() if weight]
        # One list alone keeps its order, whatever the method.
        data["fusion"] = how if len(heard) > 1 else {"of": heard, "depth": system.fusion.depth}
    return json.dumps(data, sort_keys=True, default=str)
