"""The expected items of each query by name, with their rank in the whole list of one system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cranfield.evaluation.values import Evaluation
from cranfield.ranking.prepared import PreparedJudgments


@dataclass(frozen=True, slots=True)
class ExpectedItem:
    """One expected item of a query."""

    name: str
    """Document id, or pattern."""
    grade: float
    rank: int | None
    """Of the first result that is this item; None: it was not returned."""


class ExpectedItems(Mapping[str, tuple[ExpectedItem, ...]]):
    """Query id to its expected items, best first, made on access; none for a query that nothing is known of."""

    def __init__(self, evaluation: Evaluation) -> None:
        ranking = evaluation.ranking
        prepared = PreparedJudgments(evaluation.testset, ranking.convention)
        self._places = {query_id: place for place, query_id in enumerate(prepared.query_ids)}
        self._names, self._starts = prepared.expected.labels, prepared.expected.start.tolist()
        self._evaluation = evaluation
        self._first = ranking.expected_start.tolist()
        self._rows = list(
            zip(
                ranking.expected_rank.tolist(),
                ranking.expected_level.tolist(),
                ranking.expected_gain.tolist(),
                strict=True,
            )
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluation.query_ids)

    def __len__(self) -> int:
        return len(self._evaluation.query_ids)

    def __getitem__(self, query_id: str) -> tuple[ExpectedItem, ...]:
        at, place = self._evaluation.index[query_id], self._places.get(query_id)
        rows = self._rows[self._first[at] : self._first[at + 1]]
        names = () if place is None else self._names[self._starts[place] : self._starts[place + 1]]
        if len(names) != len(rows):
            return ()
        grades = self._evaluation.testset.grades.get(query_id, {})
        return tuple(
            ExpectedItem(name, grades.get(name, level), rank or None)
            for name, (rank, level, gain) in zip(names, rows, strict=True)
            if level >= 1 or gain > 0
        )
