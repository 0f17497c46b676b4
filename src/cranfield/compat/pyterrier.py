"""This package's measures in PyTerrier's `Experiment`, and wherever else ir_measures takes a measure of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cranfield.compat import ir_measures as drop_in


def measure(spelling: str) -> Any:
    """A measure of ir_measures that this package computes: `pt.Experiment(..., eval_metrics=[measure("nDCG@10")])`.

    Values follow the convention `ir_measures`, and the column has the spelling as its name.

    Args:
        spelling: of any measure of the catalogue, with its parameters and cutoff.

    Raises:
        UsageError: there is no such measure.

    Example:
        >>> import pandas as pd
        >>> import ir_measures
        >>> qrels = pd.DataFrame({"query_id": ["1", "1"], "doc_id": ["a", "b"], "relevance": [2, 1]})
        >>> run = pd.DataFrame({"query_id": ["1", "1"], "doc_id": ["x", "a"], "score": [2.0, 1.0]})
        >>> ir_measures.calc_aggregate([measure("RR@10")], qrels, run)
        {RR@10: 0.5}
    """
    import ir_measures

    computed = drop_in.parse_measure(spelling)

    def values(qrels: Any, run: Any) -> Iterator[tuple[str, float]]:
        if len(run):  # PyTerrier scores the queries that a system did not answer with a frame of no rows
            judged = qrels[[name for name in drop_in.Qrel._fields if name in qrels]]
            for found in drop_in.iter_calc([computed], judged, run[[*drop_in.ScoredDoc._fields]]):
                yield found.query_id, found.value

    return ir_measures.define(values, name=spelling, support_cutoff=False)
