"""The verdict by class: a row for each class of queries, and the rule over them."""

from __future__ import annotations

from cranfield.evaluation.class_values import CHANGED, ClassRow, ClassVerdict
from cranfield.evaluation.result import ComparisonResult
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_delta, format_level, format_p
from cranfield.reporting.document import Bullets, Cell, Column, Details, Fact, Paragraph, Section, Table, TonedCell
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.table import TESTS

RULE = (
    "better: the test over all queries is significant, at least one class is better and none is worse; worse: the same the "
    "other way; mixed: at least one class is better and one is worse."
)
OVERALL = "Over all queries: {measure}, {estimate} {delta}, p {p} ({test})."
ADJUSTED = " p Holm is adjusted for {n} classes; the CIs are not adjusted."
NOT_AFTER_ADJUSTMENT = " Not significant after the adjustment, although the CI alone excludes zero: {classes}."
BY_SIGN = " The CI is of the mean difference, and the verdict is of a test that counts gains and losses: {classes}."
DIFFERENCE = "difference"
TOO_FEW = "too few queries"
LOWER = "{text}, lower"


def class_verdicts(subject: Subject) -> Section | None:
    """A table of the verdicts of all classes; None where one mean decides."""
    comparison = subject.pair
    if comparison is None or comparison.verdict_by_class is None:
        return None
    found = comparison.verdict_by_class
    title = _estimate_title(found, comparison.test)
    columns = (
        Column(found.key),
        Column("verdict"),
        Column("measure"),
        Column(title, "delta"),
        Column(f"{format_level(comparison.alpha)} CI", "delta interval"),
        Column("n", "count"),
        Column("p Holm", "p"),
    )
    is_own = title == TESTS[comparison.test].estimate
    rows = [_row(row, row.estimate if is_own else row.shown) for row in found.rows]
    table = Table(columns, rows, f"By {found.key}, B minus A", shown=None, wrap=True)
    changed = [row.unseen for row in found.rows if row.code in CHANGED and row.unseen is not None]
    unseen = (Bullets(tuple(each.sentence for each in changed)),) if changed else ()
    rule = Details("How the classes decide", (Paragraph(RULE), *unseen), in_text=True)
    blocks = (table, Paragraph(_notes(found, comparison)), rule)
    return Section("verdict-by-class", "Verdict by class", blocks)


def _estimate_title(found: ClassVerdict, test: str) -> str:
    """What the intervals are about: `difference` of the mean, the name of another estimate, or `estimate` for both."""
    has_own = {row.estimate is not None for row in found.rows if row.ci_low is not None or row.ci_high is not None}
    if True not in has_own:
        return DIFFERENCE
    return "estimate" if False in has_own else TESTS[test].estimate


def _notes(found: ClassVerdict, comparison: ComparisonResult) -> str:
    """The test over all queries, and how p, CI and verdict of a class go together."""
    about, spec = comparison.comparisons[comparison.primary], TESTS[comparison.test]
    notes = OVERALL.format(
        measure=comparison.primary,
        estimate=spec.estimate,
        delta=format_delta(about.delta if spec.is_of_mean else about.estimate),
        p=format_p(found.overall.p_two_sided),
        test=comparison.test,
    )
    if found.n_tested > 1:
        notes += ADJUSTED.format(n=found.n_tested)
    apart = [
        row.name
        for row in found.rows
        if row.code is VerdictCode.NOT_SIGNIFICANT
        and row.can_decide
        and ((row.ci_low or 0) > 0 or (row.ci_high or 0) < 0)
    ]
    if apart:
        notes += NOT_AFTER_ADJUSTMENT.format(classes=", ".join(apart))
    by_sign = [row for row in found.rows if row.can_decide and row.estimate is None and not TESTS[row.test].is_of_mean]
    if by_sign:
        notes += BY_SIGN.format(classes=", ".join(f"{row.name} ({row.test})" for row in by_sign))
    return notes


def _row(row: ClassRow, estimate: float | None) -> tuple[Cell, ...]:
    result = row.result
    return (
        row.name,
        _verdict_cell(row),
        str(row.measure),
        estimate,
        (row.ci_low, row.ci_high),
        row.n,
        None if result is None else result.p_adjusted,
    )


def _verdict_cell(row: ClassRow) -> Cell:
    text = row.code.text if row.can_decide else TOO_FEW
    if row.move == "falls" and row.code is not VerdictCode.WORSE:
        text = LOWER.format(text=text)
    return TonedCell(text, row.code.tone if row.can_decide else "open")


def class_fact(comparison: ComparisonResult) -> tuple[Fact, ...]:
    """How many classes are better and worse, for the head of a report; nothing where one mean decides."""
    found = comparison.verdict_by_class
    if found is None:
        return ()
    better, worse = (len(found.with_code(code)) for code in (VerdictCode.BETTER, VerdictCode.WORSE))
    lower = f", {len(found.falling)} lower without significance" if found.falling else ""
    return (Fact("Classes better", f"{better} of {len(found.rows)}", f"{worse} worse{lower}"),)
