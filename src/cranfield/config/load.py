"""Reading cranfield.yaml: every problem of the file at once, each with its line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import ConfigError, Problem, ProblemList
from cranfield.config.documents import missing_files
from cranfield.config.grid import check_grid
from cranfield.config.models import Config
from cranfield.config.strict import Finding
from cranfield.config.systems import SystemConfig, SystemRoot
from cranfield.formats.io.files import shown
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.tree import Loc, field_name
from cranfield.formats.io.validation import problems_of, validate


def load_config(path: Path | str, folder: Path | None = None) -> Config:
    """Read a config file.

    Args:
        path: the file.
        folder: that paths in it are relative to; None: that of the file.

    Raises:
        ConfigError: with everything that is wrong, in the order of the lines. No value of `env` is ever shown.
    """
    path = Path(path)
    if not path.exists():
        hint = "name another file; `cranfield init` writes one from the files, addresses and commands that you have."
        raise ConfigError("no such file", path=shown(path), hint=hint)
    located = load_located(path, ConfigError)
    problems = ProblemList(ConfigError)
    config = validate(located, Config, problems, context=located.sourced)
    problems.problems = [_without_secrets(located, problem) for problem in problems.problems]
    if config is not None:
        problems.problems += [placed(located, finding) for finding in null_characters(located.sourced)]
        problems.problems += [placed(located, finding) for finding in check_grid(config)]
        found = missing_files(config.documents, folder or path.absolute().parent)
        problems.problems += [placed(located, finding) for finding in found]
    problems.raise_if_any()
    if config is None:
        raise ConfigError("not a config", path=str(path))
    config._folder = folder or path.absolute().parent  # noqa: SLF001  the one place that knows it
    return config


def null_characters(value: Any, place: Loc = ()) -> Iterator[Finding]:
    """Texts with U+0000, which no path, program or address can have; YAML and JSON can write it."""
    if isinstance(value, str) and "\0" in value:
        yield place, Problem("the text has the character U+0000", expected="text without it")
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in pairs:
        yield from null_characters(inner, (*place, step))


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
    try:
        values = json.loads(json.dumps(settings))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a setting is not a plain value: {error}", path=f"system {name}") from None
    problems = [replace(problem, path=f"system {name}") for _, problem in problems_of(SystemRoot, values)]
    if problems:
        raise ConfigError(problems)
    return SystemRoot.model_validate(values).root


def _without_secrets(located: Located, problem: Problem) -> Problem:
    """The same problem, without a quote where it stands on what should have been the environment of a system."""
    systems = located.sourced.get("systems")
    for name, system in systems.items() if isinstance(systems, dict) else ():
        if not isinstance(system, dict) or "env" not in system:
            continue  # its place would be that of the system, whose own problems quote no secret
        if (problem.line, problem.column) == located.mark(("systems", name, "env")):
            return replace(problem, got=None)
    return problem
