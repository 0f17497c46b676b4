"""The result of a book of preferences, as a Document."""

from __future__ import annotations

from operator import attrgetter

from cranfield.base.numbers import format_p, format_percent
from cranfield.judging.preference import PreferenceResult
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Document, KeyValues, Paragraph, Section
from cranfield.reporting.table_spec import Col, TableSpec

WHAT_IT_IS = (
    "A query counts once, for the list that more of its raters prefer, or for the adjudicated one. The sign test is exact and two-sided, and leaves ties out; "
    "the interval of the share is that of Clopper and Pearson."
)


def preference_rows(result: PreferenceResult) -> tuple[tuple[str, str], ...]:
    """Wins, ties, the sign test and the interval, each with its name."""
    rows: list[tuple[str, str]] = [
        ("queries judged", f"{result.n} ({result.n_votes} judgments)"),
        (f"{result.a} better", str(result.wins_a)),
        (f"{result.b} better", str(result.wins_b)),
        ("ties", str(result.ties)),
    ]
    if result.share_b is not None and result.ci_low is not None and result.ci_high is not None:
        share = f"{format_percent(result.share_b)}, 95 % CI {format_percent(result.ci_low)} to {format_percent(result.ci_high)}"
        rows.append((f"{result.b} better, of those without ties", share))
    if result.p_value is not None:
        rows.append(("sign test", f"p {format_p(result.p_value)}"))
    return tuple(rows)


def preference_document(result: PreferenceResult) -> Document:
    """The result of a book of preferences."""
    names = ("a", "b", "n", "wins_a", "wins_b", "ties", "n_votes", "p_value", "share_b", "ci_low", "ci_high")
    return Document(
        title="Preferences",
        subtitle=(f"{result.book}: {result.a} or {result.b}",),
        sections=(Section("result", "Result", (KeyValues(preference_rows(result)), Paragraph(WHAT_IT_IS, "note"))),),
        payload=lambda: to_jsonable(result),
        tidy=TableSpec("", (result,), tuple(Col(name, attrgetter(name)) for name in names)).tidy,
    )
