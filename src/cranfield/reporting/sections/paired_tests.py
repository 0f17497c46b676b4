"""Every paired test on the primary measure, the declared one among them, and McNemar's on the first rank."""

from __future__ import annotations

from cranfield.evaluation.values import Comparison
from cranfield.evaluation.verdict import NONINFERIORITY
from cranfield.numbers import UNKNOWN, format_count, format_p
from cranfield.reporting.document import Bullets, Cell, Column, Details, Section, Table
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.result import TestResult
from cranfield.words import n_of

P_VALUES = (
    "p is two-sided, and p B > A one-sided: candidate above baseline. p Holm is the two-sided p adjusted for the number "
    "of tests other than the declared one, which is not adjusted."
)


def paired_tests(subject: Subject) -> Section | None:
    """A row for every test: statistic, p-values, interval, and why there is none; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    about = comparison.measures[comparison.primary]
    rows: list[tuple[Cell, ...]] = [
        (
            f"{name} *" if name == comparison.test else name,
            result.statistic,
            result.p_two_sided,
            result.p_one_sided,
            result.p_adjusted,
            (result.ci_low, result.ci_high),
            _note(result),
        )
        for name, result in about.tests.items()
    ]
    table = Table(
        (
            Column("test"),
            Column("statistic", "statistic"),
            Column("p", "p"),
            Column("p B > A", "p"),
            Column("p Holm", "p"),
            Column("interval", "delta interval"),
            Column("note"),
        ),
        rows,
        f"Paired tests on {comparison.primary}, n = {about.n}, {about.n_nonzero} differ. * declared test",
        shown=None,
        wrap=True,
    )
    return Section("tests", "Paired tests", (table, Details("About the tests", (Bullets(_descriptions(comparison)),))))


MARGIN_P_VALUES = {"p_equivalence": "within the margin", "p_noninferior": "non-inferior"}
"""P-values of tests against a margin: what a small one means."""

NONINFERIORITY_TEST = (
    "noninferiority, one-sided t test: is a loss of the margin or more ruled out? "
    "Interval: mean difference: Student's t at 1 - 2 alpha."
)


def _note(result: TestResult) -> str:
    parts = [
        f"{what}: p {format_p(p)}"
        for key, what in MARGIN_P_VALUES.items()
        if isinstance(p := result.extra.get(key), float)
    ]
    return "; ".join([*parts, *([result.note] if result.note else [])])


def _descriptions(comparison: Comparison) -> tuple[str, ...]:
    from cranfield.stats.table import TESTS

    specs = [TESTS[name] for name in comparison.measures[comparison.primary].tests if name in TESTS]
    return (
        P_VALUES,
        *(
            f"{spec.name}, {spec.title}: {spec.sentence}"
            + (f" Interval: {spec.interval_method}." if spec.interval else "")
            for spec in specs
        ),
        *((NONINFERIORITY_TEST,) if NONINFERIORITY in comparison.measures[comparison.primary].tests else ()),
    )


def rank_one_sentence(comparison: Comparison) -> str:
    """McNemar's test in a sentence: discordant counts and p."""
    result = comparison.rank_one
    sentence = (
        f"A relevant result at rank 1: {_discordant(result, 'candidate_only')} only on B, "
        f"{_discordant(result, 'baseline_only')} only on A (exact McNemar, p {format_p(result.p_two_sided)})."
    )
    return f"{sentence} {result.note}." if result.note else sentence


def _discordant(result: TestResult, side: str) -> str:
    count = result.extra.get(side)
    return n_of(int(count), "queries", format_count) if isinstance(count, int) else UNKNOWN
