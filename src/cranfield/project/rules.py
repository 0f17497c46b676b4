"""Reading a config and checking its measures, test and gate against their tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cranfield.config import Config, SetConfig, load_config
from cranfield.config.strict import Finding
from cranfield.errors import CranfieldError, Problem, unknown_name
from cranfield.formats.io.tree import Loc
from cranfield.measures import parse
from cranfield.stats.table import TESTS


def open_config(path: Path) -> Config:
    """Read a config and check it.

    Raises:
        ConfigError: with every problem, each with its line.
    """
    return load_config(path, also=check_rules)


def check_rules(config: Config) -> Iterator[Finding]:
    """Unknown measures and tests, and gate rules that cannot hold; each with its place."""
    yield from _in((), config)
    for name, one in (config.testsets or {}).items():
        yield from _in(("testsets", name), one)
    if config.test not in TESTS:
        yield ("test",), unknown_name("test", config.test, TESTS)
    if config.gate is not None:
        from cranfield.gate.rules import check_gate

        yield from check_gate(config)


def _in(above: Loc, settings: Config | SetConfig) -> Iterator[Finding]:
    for index, measure in enumerate(settings.measures or ()):
        for problem in _problems_of(measure):
            yield (*above, "measures", index), problem
    if settings.primary is not None:
        for problem in _problems_of(settings.primary):
            yield (*above, "primary"), problem


def _problems_of(measure: str) -> tuple[Problem, ...]:
    try:
        parse(measure)
    except CranfieldError as error:
        return error.problems
    return ()
