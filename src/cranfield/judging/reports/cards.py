"""How a notebook shows the agreement of raters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cranfield.base.numbers import format_count
from cranfield.base.words import count_noun
from cranfield.reporting.document import (
    Document,
    Table,
)
from cranfield.reporting.notebook.cards import plain_card
from cranfield.reporting.notebook.shapes import CardShape, shape_of_report

if TYPE_CHECKING:
    from cranfield.stats.agreement import Agreement


def agreement_card(found: Agreement) -> Document:
    """Every coefficient with its interval."""
    from cranfield.judging.reports.agreement import coefficients_section

    about = f"{count_noun(len(found.by_rater), 'raters')}, {count_noun(found.n_items, 'items', format_count)}"
    return plain_card("Agreement of raters", (about,), [coefficients_section(found)])


def agreement_rows(found: Agreement) -> Table:
    """A row a coefficient, of all raters and of each pair."""
    from cranfield.judging.reports.agreement import agreement_spec

    return agreement_spec(found).tidy()


def rater_report(value: Any) -> Document:
    """The report of `cranfield agreement`."""
    from cranfield.judging.reports.agreement import agreement_document

    return agreement_document(value)


AGREEMENT = CardShape(agreement_card, agreement_rows)
RATERS = shape_of_report(rater_report, "coverage", "agreement")
