"""Reading cranfield.yaml: every problem of the file at once, each with its line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.config.grid_points import check_grid
from cranfield.config.models import Config
from cranfield.config.strict import Finding
from cranfield.config.systems import OneSystem, SystemConfig
from cranfield.errors import ConfigError, Problem, ProblemList
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.tree import field_name
from cranfield.formats.io.validation import validate


def load_config(path: Path | str, *, also: Callable[[Config], Iterator[Finding]] | None = None) -> Config:
    """Read a config file; paths in it are relative to its folder.

    Args:
        path: the file.
        also: finds what else is wrong, where a caller knows more than this room does: the measures, the tests.

    Raises:
        ConfigError: with everything that is wrong, in the order of the lines. No value of `env` is ever shown.
    """
    path = Path(path)
    if not path.exists():
        hint = "name another file, or write this one: the tutorial shows how."
        raise ConfigError("no such file", path=shown(path), hint=hint)
    located = load_located(path, ConfigError)
    problems = ProblemList(ConfigError)
    config = validate(located, Config, problems, context=located.sourced)
    problems.problems = [_without_secrets(located, problem) for problem in problems.problems]
    if config is not None:
        found = itertools.chain(check_grid(config), () if also is None else also(config))
        problems.problems += [placed(located, finding) for finding in found]
    problems.raise_if_any()
    if config is None:
        raise ConfigError("not a config", path=str(path))
    config._folder = path.absolute().parent  # noqa: SLF001  the one place that knows it
    return config


def placed(located: Located, finding: Finding) -> Problem:
    """A finding as a problem of the file, with its line."""
    place, problem = finding
    message = f"{field_name(place)}: {problem.message}"
    return located.problem(message, place, expected=problem.expected, got=problem.got, hint=problem.hint)


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
        text = json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a setting is no plain value: {error}", path=f"system {name}") from None
    problems = ProblemList(ConfigError)
    config = validate(Located(Path(f"system {name}"), parse_json(text)), OneSystem, problems)
    if config is None:
        # Lines and columns of a file that does not exist.
        raise ConfigError([replace(problem, line=None, column=None) for problem in problems.problems])
    return config.root


def _without_secrets(located: Located, problem: Problem) -> Problem:
    """The same problem, without a quote where it stands on what should have been the environment of a system."""
    systems = located.data.get("systems")
    for name in systems if isinstance(systems, dict) else ():
        if (problem.line, problem.column) == located.mark(("systems", name, "env")):
            return replace(problem, got=None)
    return problem
