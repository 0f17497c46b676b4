"""What a config says of measures, tests and gates, checked against the catalogues that its own room does not know."""

from __future__ import annotations

from collections.abc import Iterator

from cranfield.config import Config, SetConfig
from cranfield.config.check import Finding, Place
from cranfield.errors import CranfieldError, Problem, unknown_name
from cranfield.gate.rules import check_gate
from cranfield.measures import parse
from cranfield.stats.table import TESTS


def check_rules(config: Config) -> Iterator[Finding]:
    """Measures that cannot be read, a test that nobody registered, rules of a gate that say nothing; each with its place."""
    yield from _in((), config)
    for name, one in (config.testsets or {}).items():
        yield from _in(("testsets", name), one)
    if config.test not in TESTS:
        yield ("test",), unknown_name("test", config.test, TESTS)
    yield from check_gate(config)


def _in(above: Place, said: Config | SetConfig) -> Iterator[Finding]:
    for index, measure in enumerate(said.measures or ()):
        for problem in _problems_of(measure):
            yield (*above, "measures", index), problem
    if said.primary is not None:
        for problem in _problems_of(said.primary):
            yield (*above, "primary"), problem


def _problems_of(measure: str) -> tuple[Problem, ...]:
    try:
        parse(measure)
    except CranfieldError as error:
        return error.problems
    return ()
