"""Reading cranfield.yaml: every problem of the file at once, each with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from cranfield.config.check import Finding, check_config, dotted
from cranfield.config.grid_points import check_grid
from cranfield.config.models import KINDS, NAME_PATTERN, Config, SetConfig, SystemConfig
from cranfield.errors import ConfigError, Problem, ProblemList
from cranfield.formats.io.located import Located, load_located, validate

_SOUND_SYSTEM = {"command": ["x", "{query}"], "extract": {"regex": "(?P<id>x)(?P<score>x)"}}
"""Stands in for parts that are not well-formed, while the rest is checked; nothing is wrong with it."""
_SOUND_SET = {"path": "x"}


def load_config(path: Path | str, *, also: Callable[[Config], Iterator[Finding]] | None = None) -> Config:
    """Read a config file; paths in it are relative to its folder.

    Args:
        path: the file.
        also: finds what else is wrong, where a caller knows more than this room does: the measures, the tests.

    Raises:
        ConfigError: with everything that is wrong, in the order of the lines. No value of `env` is ever shown.
    """
    path = Path(path)
    try:
        located = load_located(path, ConfigError)
    except ConfigError as error:
        hint = "name another file, or write this one: the tutorial shows how."
        raise ConfigError(
            [replace(one, hint=hint) if one.message == "no such file" else one for one in error.problems]
        ) from None
    problems = ProblemList(ConfigError)
    config = validate(located, Config, problems)
    problems.problems = [_without_secrets(located, problem) for problem in problems.problems]

    def check(config: Config) -> Iterator[Finding]:
        yield from check_config(config)
        yield from check_grid(config)
        if also is not None:
            yield from also(config)

    found = _salvaged(located.sourced, check) if config is None else check(config)
    for place, problem in found:
        line, column = located.mark(place)
        message = f"{dotted(place)}: {problem.message}" if place else problem.message
        problems.problems.append(replace(problem, message=message, path=str(path), line=line, column=column))
    problems.raise_if_any()
    if config is None:
        raise ConfigError("not a config", path=str(path))
    config._folder = path.absolute().parent  # noqa: SLF001  the one place that knows it
    return config


def system_config(name: str, settings: Mapping[str, Any]) -> SystemConfig:
    """Build the config of one system from plain values, as a program has them.

    Args:
        name: of the system, for messages.
        settings: the keys that stand under a system in cranfield.yaml.

    Raises:
        ConfigError: with everything that is wrong.
    """
    from cranfield.formats.io.json_tree import parse_json

    try:
        written = json.dumps(settings)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a setting is no plain value: {error}", path=f"system {name}") from None
    problems = ProblemList(ConfigError)
    config = validate(Located(Path(f"system {name}"), parse_json(written)), SystemConfig, problems)
    if config is None:
        # Lines and columns are of a file that nobody wrote.
        raise ConfigError([replace(problem, line=None, column=None) for problem in problems.problems])
    return config


def _salvaged(data: Mapping[str, Any], check: Callable[[Config], Iterator[Finding]]) -> Iterator[Finding]:
    """What else is wrong in a file that is not well-formed: all is checked but the parts already complained of."""
    systems = {}
    written = data.get("systems")
    for name, system in written.items() if isinstance(written, dict) else ():
        if isinstance(system, dict) and re.fullmatch(NAME_PATTERN, name):
            systems[name] = _sound_system(system)
    sound: dict[str, Any] = {"systems": {"x": _SOUND_SYSTEM}}
    if "testset" in data:
        sound["testset"] = "x"
    if "testsets" in data:
        sound["testsets"] = {"x": _SOUND_SET}
        sets = data["testsets"] if isinstance(data["testsets"], dict) else {}
        data = {**data, "testsets": {name: _sound_set(one) for name, one in sets.items()}}
    config = Config.model_validate(_sound_parts(Config, {**data, "systems": systems}, sound))
    # Names that refer to parts left out would be reported for nothing.
    left_out = {("systems",), ("baseline",), ("candidate",)}
    return (
        (place, problem)
        for place, problem in check(config)
        if place not in left_out
        and place[:1] != ("grid",)
        and not (place[:1] == ("testsets",) and place[2:3] == ("systems",))
    )


def _sound_system(system: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a system that are well-formed; a command where it does not say what it is, or not soundly."""
    bare = {key: value for key, value in _SOUND_SYSTEM.items() if key not in KINDS or not set(KINDS) & set(system)}
    if "extract" not in system:
        bare.pop("extract")
    parts = _sound_parts(SystemConfig, system, bare)
    return parts if set(KINDS) & set(parts) else dict(_SOUND_SYSTEM)


def _sound_set(one: object) -> dict[str, Any]:
    return _sound_parts(SetConfig, one, _SOUND_SET) if isinstance(one, dict) else _SOUND_SET


def _sound_parts(model: type[BaseModel], data: Mapping[str, Any], sound: Mapping[str, Any]) -> dict[str, Any]:
    """`sound`, with those keys of `data` that are well-formed, each for itself."""
    parts = dict(sound)
    for key, value in data.items():
        try:
            model.model_validate({**sound, key: value})
        except ValidationError:
            continue
        parts[key] = value
    return parts


def _without_secrets(located: Located, problem: Problem) -> Problem:
    """The same problem, without a quote where it stands on what should have been the environment of a system."""
    systems = located.data.get("systems")
    for name in systems if isinstance(systems, dict) else ():
        if (problem.line, problem.column) == located.mark(("systems", name, "env")):
            return replace(problem, got=None)
    return problem
