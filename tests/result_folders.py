"""Small folders of results for the tests of their statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cranfield.scale.kernel import result_schema
from cranfield.scale.results import Results, ResultsInfo, ResultsWriter
from cranfield.scale.scoring import Scoring

DIGEST = "sha256:" + "0" * 64


def batch_of(
    scoring: Scoring,
    query_ids: Sequence[str],
    values: Mapping[str, NDArray[np.float64]],
    answered: NDArray[np.bool_] | None = None,
) -> pa.RecordBatch:
    """Rows as the kernel gives them; values are float64[Q, S], NaN where there is none."""
    n, n_systems = len(query_ids), len(scoring.systems)
    shape = (n, n_systems)
    there = np.ones(shape, dtype=np.bool_) if answered is None else answered
    columns = {
        "system": list(scoring.systems) * n,
        "query_id": np.repeat(np.array(query_ids, dtype=object), n_systems).tolist(),
        "outcome": np.where(there, "answered", "missing").ravel().tolist(),
        "n_rows": np.where(there, 10, 0).ravel(),
        "n_returned": np.where(there, 10, 0).ravel(),
        "n_judged": np.where(there, 4, 0).ravel().astype(np.int32),
        "n_duplicates": np.zeros(n * n_systems, dtype=np.int64),
        "judged_share": np.where(there, 0.4, np.nan).ravel(),
        "problem": [None] * (n * n_systems),
    }
    measured = [pa.array(table.ravel(), mask=np.isnan(table.ravel())) for table in values.values()]
    arrays = [pa.array(column) for column in columns.values()]
    arrays[8] = pa.nulls(n * n_systems, pa.string())
    return pa.RecordBatch.from_arrays([*arrays, *measured], schema=result_schema(scoring))


def results_of(
    folder: Path,
    values: Mapping[str, NDArray[np.float64]],
    *,
    query_ids: Sequence[str] | None = None,
    answered: NDArray[np.bool_] | None = None,
    systems: Sequence[str] = ("old", "new"),
    step: int = 1000,
    **about: int,
) -> Results:
    """A folder with these values, written some queries at a time."""
    n = len(next(iter(values.values())))
    ids = [f"q{number}" for number in range(n)] if query_ids is None else query_ids
    scoring = Scoring.of(systems, list(values))
    with ResultsWriter(folder, scoring) as writer:
        for start in range(0, n, step):
            part = {name: table[start : start + step] for name, table in values.items()}
            there = None if answered is None else answered[start : start + step]
            writer.write(batch_of(scoring, ids[start : start + step], part, there))
        return writer.finish(ResultsInfo(scoring, "test", DIGEST, n, 4 * n, **about))  # type: ignore[arg-type]


def noisy(n: int, n_systems: int = 2, *, seed: int = 0, gain: float = 0.02) -> NDArray[np.float64]:
    """Values in [0, 1] of Q queries and S systems, each system a little better than the one before."""
    generator = np.random.default_rng(seed)
    base = generator.beta(2, 2, size=(n, 1))
    moved = base + gain * np.arange(n_systems) + generator.normal(0, 0.1, size=(n, n_systems))
    return np.clip(moved, 0, 1)
