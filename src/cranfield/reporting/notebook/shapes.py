"""Which card and which tidy rows a value has, by the name of its class: a class is imported by those who have a value of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cranfield.base.errors import InternalError
from cranfield.plugins import card_of
from cranfield.reporting.document import Document, Table
from cranfield.reporting.notebook import cards


@dataclass(frozen=True, slots=True)
class CardShape:
    """How a value is shown."""

    card: Callable[[Any], Document]
    rows: Callable[[Any], Table]


def _comparison_rows(value: Any) -> Table:
    from cranfield.reporting.documents.comparison import comparison_document

    return comparison_document(value).tidy()


def _evaluation_rows(value: Any) -> Table:
    from cranfield.reporting.documents.comparison import evaluation_document

    return evaluation_document([value]).tidy()


def _many_rows(value: Any) -> Table:
    from cranfield.reporting.documents.comparison import evaluation_document

    return evaluation_document(value.evaluations).tidy()


def shape_of_report(report: Callable[[Any], Document], *sections: str) -> CardShape:
    """The sections of that name of a report, and its tidy rows; no name: the first two."""
    return CardShape(lambda value: cards.part_of(report(value), sections), lambda value: report(value).tidy())


SHAPES: Mapping[str, CardShape] = {
    "Comparison": CardShape(cards.comparison_card, _comparison_rows),
    "Evaluation": CardShape(cards.evaluation_card, _evaluation_rows),
    "HistoryReport": shape_of_report(cards.history_report),
    "ManyComparison": CardShape(cards.many_card, _many_rows),
    "PowerPlan": shape_of_report(cards.power_report),
    "Run": CardShape(cards.run_card, cards.run_table),
}


def shape_of(value: object) -> CardShape:
    """The shape of a value, or that of the class that its own derives from."""
    for each in type(value).__mro__:
        if each.__name__ in SHAPES:
            return SHAPES[each.__name__]
        found = card_of(each.__name__)
        if found is not None:
            return found if isinstance(found, CardShape) else shape_of_report(found)
    raise InternalError(f"{type(value).__name__} has no card")
