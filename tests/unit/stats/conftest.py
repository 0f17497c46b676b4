"""Real pairs of values, and differences as they come in practice: many zeros, many ties."""

import json

import numpy as np
import pytest


@pytest.fixture(scope="session")
def cupertino(shared_data):
    """Per-query values of one measure of the published pair of systems: baseline, candidate."""
    queries = json.loads((shared_data / "cupertino" / "versiondiff.json").read_text())["per_query"]

    def values(measure):
        return tuple(np.array([query[side][measure] for query in queries]) for side in ("brew", "new"))

    return values


@pytest.fixture(scope="session")
def tied_differences():
    """`(seed, n) -> d`: differences of reciprocal ranks, about half of them zero."""

    def draw(seed, n):
        rng = np.random.default_rng(seed)
        before = 1 / rng.integers(1, 6, n)
        after = np.where(rng.random(n) < 0.5, before, 1 / rng.integers(1, 5, n))
        return after - before

    return draw
