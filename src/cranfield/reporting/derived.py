"""Counts that reports derive from an evaluation: outcomes, first relevant ranks, duplicates, versions.

JSON and pages both take them from here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from cranfield.evaluation.expected import ExpectedItems
from cranfield.evaluation.values import Evaluation
from cranfield.measures.kernels import first_relevant_rank
from cranfield.model import Outcome

UNSEEN = "n alpha share kind change size rests_on threshold largest of? among sentence"
"""What is written of queries of an unseen kind."""


def outcome_counts(evaluation: Evaluation) -> dict[str, int]:
    """Every outcome and how many queries had it, zeros included."""
    counts = Counter(evaluation.ranking.outcomes)
    return {outcome.value: counts[outcome] for outcome in Outcome}


def first_ranks(evaluation: Evaluation) -> dict[str, int | None]:
    """Query id to the rank of its first relevant result in the whole list kept; None where there is none."""
    ranks = first_relevant_rank(evaluation.ranking)
    return {
        query_id: int(rank) if math.isfinite(rank) else None
        for query_id, rank in zip(evaluation.query_ids, ranks.tolist(), strict=True)
    }


def missed_items(evaluation: Evaluation) -> Callable[[str], list[str]]:
    """From the id of a query to its expected items that are not in the list kept, best first."""
    expected = ExpectedItems(evaluation)
    return lambda query_id: [item.name for item in expected[query_id] if item.rank is None]


def duplicates(evaluation: Evaluation) -> int:
    """Results dropped because the list had them before."""
    return int(evaluation.ranking.n_duplicates.sum())


def versions(*libraries: str) -> Mapping[str, str]:
    """What made this result: Cranfield, Python, and the libraries named."""
    import importlib
    import sys

    from cranfield.version import __version__

    made = {"cranfield": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    # Not importlib.metadata: it reads mail headers, and that takes longer to import than these two to load.
    return made | {library: str(importlib.import_module(library).__version__) for library in libraries}
