"""Production queries in a database of their own, on both engines; the time is set by hand."""

import pytest

from cranfield.workbench.config import Intake
from cranfield.workbench.service.intake.intake import Taking
from cranfield.workbench.service.store.queries import ProductionQueries

NOON = 1_795_435_200_000  # 2026-11-23 12:00 UTC


@pytest.fixture
def store(store, clock):
    clock.now = NOON
    return store


@pytest.fixture
def queries(store):
    return ProductionQueries(store.database, store.clock)


@pytest.fixture
def taking(queries):
    """An intake from a source; a new one for each call, as for each command."""
    return lambda source="shop", **config: Taking(queries, Intake(**config), source, lambda: NOON)
