"""Fields that systems return with each answer: confidence, whether it was answered locally, tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cranfield.evaluation.values import Evaluation
from cranfield.numbers import format_count, format_percent, format_value
from cranfield.reporting.document import Block, Cell, Column, Table

Systems = Sequence[tuple[str, Evaluation]]


def returned_fields(systems: Systems) -> list[Block]:
    """A row for each field of each system: how many answers have it, and a summary of its values; nothing where there are none."""
    rows: list[tuple[Cell, ...]] = []
    for label, evaluation in systems:
        answers = fields_of(evaluation)
        for name in dict.fromkeys(name for fields in answers.values() for name in fields):
            values = [fields[name] for fields in answers.values() if fields.get(name) is not None]
            rows.append((label, name, len(values), _in_short(values)))
    if not rows:
        return []
    columns = (Column("system"), Column("field", "code"), Column("answers", "count"), Column("in short"))
    return [Table(columns, rows, "Fields of the answers; every value is in results.json and the run")]


def fields_of(evaluation: Evaluation) -> Mapping[str, Mapping[str, Any]]:
    """Query id to the fields of its answer, of those that have any; empty where the run was not collected."""
    if evaluation.run is None:
        return {}
    answers = evaluation.run.answers
    return {query_id: answers[query_id].fields for query_id in evaluation.query_ids if _has_fields(answers, query_id)}


def _has_fields(answers: Mapping[str, Any], query_id: str) -> bool:
    return query_id in answers and bool(answers[query_id].fields)


def _in_short(values: Sequence[Any]) -> str:
    if not values:
        return "null throughout"
    if all(isinstance(value, bool) for value in values):
        return f"true in {format_percent(sum(values) / len(values))}"
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        low, high = min(numbers), max(numbers)
        if low == high:
            return f"{_number(low)} throughout"
        return f"mean {_number(fmean(numbers))}, from {_number(low)} to {_number(high)}"
    n = len({repr(value) for value in values})
    return "1 value" if n == 1 else f"{n} different values"


def _number(value: float) -> str:
    """Tokens as `1,234`, confidence as `0.5645`."""
    return format_value(value) if abs(value) < 10 and not value.is_integer() else format_count(round(value))
