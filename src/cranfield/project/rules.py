"""What a config says of measures and tests, checked against the catalogues that its own room does not know."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.config import Config
from cranfield.config.check import Finding
from cranfield.errors import CranfieldError, Problem, unknown_name
from cranfield.measures import parse
from cranfield.stats.table import TESTS


def check_rules(config: Config) -> Iterator[Finding]:
    """Measures that cannot be read and a test that nobody registered, each with its place in the config."""
    for place, measure in enumerate(config.measures or ()):
        for problem in _problems_of(measure):
            yield ("measures", place), problem
    if config.primary is not None:
        for problem in _problems_of(config.primary):
            yield ("primary",), problem
    if config.test not in TESTS:
        yield ("test",), unknown_name("test", config.test, TESTS)


def _problems_of(measure: str) -> tuple[Problem, ...]:
    try:
        parse(measure)
    except CranfieldError as error:
        return error.problems
    return ()
