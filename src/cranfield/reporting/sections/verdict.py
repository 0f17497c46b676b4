"""The verdict with the numbers it rests on, the paired tests, and how many alternative analyses agree."""

from __future__ import annotations

from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.result import ComparisonResult, ManyResult
from cranfield.evaluation.sensitivity import Sensitivity, Variation
from cranfield.evaluation.unjudged import MOSTLY_UNJUDGED
from cranfield.evaluation.unjudged_values import UnjudgedKind
from cranfield.evaluation.verdict import NONINFERIORITY
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import (
    UNKNOWN,
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_plain,
    format_value,
)
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Fact,
    Paragraph,
    Section,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.sections.class_verdict import class_fact
from cranfield.reporting.sections.labels import interval_tone, lettered
from cranfield.reporting.sections.subject import Subject
from cranfield.stats.result import TestResult
from cranfield.stats.table import TESTS
from cranfield.words import and_list, n_of

P_VALUES = (
    "p is two-sided, and p B > A one-sided: candidate above baseline. p Holm is the two-sided p adjusted for the number "
    "of tests other than the declared one, which is not adjusted."
)
MARGIN_P_VALUES = {"p_equivalence": "within the margin", "p_noninferior": "non-inferior"}
"""P-values of tests against a margin: what a small one means."""
NONINFERIORITY_TEST = (
    "noninferiority, one-sided t test: is a loss of the margin or more ruled out? "
    "Interval: mean difference: Student's t at 1 - 2 alpha."
)
ALL_ANALYSES = "All alternative analyses"
SPEAKS_FOR_ITSELF = ("measure", "cutoff", "without a stratum")
"""Families whose variations are clear without the family's name."""


def verdict_block(subject: Subject) -> VerdictBlock | None:
    """The verdict with its sentence, its numbers, and whatever contradicts it; None without a comparison."""
    result, pair = subject.compared, subject.pair
    if result is None:
        return _void_block(subject)
    facts = _pair_facts(result) if isinstance(result, ComparisonResult) else _many_facts(result)
    varied = None if pair is None else pair.sensitivity
    if varied is not None and varied.variations:
        by_class = pair is not None and pair.verdict_by_class is not None
        note = "analyses agree on the mean over all queries" if by_class else "analyses agree"
        facts = (*facts, Fact("Sensitivity", f"{varied.n_agree} of {len(varied.variations)}", note))
    unjudged, evidence = unjudged_reasons(result), result.evidence
    caveats: tuple[str, ...] = ()
    if result.unjudged is not None and isinstance(result, ManyResult):
        caveats, unjudged = unjudged, ()
        if result.unjudged.kind is UnjudgedKind.CAN_TURN:  # instead of the judged shares
            evidence = tuple(finding for finding in evidence if finding.check != MOSTLY_UNJUDGED)
    reasons = (*result.reasons, *unjudged, *((result.unseen.sentence,) if result.unseen is not None else ()))
    code = result.verdict
    return VerdictBlock(
        *(code.text, result.verdict_sentence, code.tone, facts, reasons, result.disagreements),
        caveats=(*caveats, *caveat_sentences(evidence)),
    )


def unjudged_reasons(comparison: ComparisonResult | ManyResult) -> tuple[str, ...]:
    """What judgments of the unjudged results can make of a verdict, and the command that makes a pool of them."""
    found = comparison.unjudged
    if found is None or not found.sentence:
        return ()
    if not found.is_doubt:
        return (Caveat(found.sentence, CaveatKind.FINDING),)
    return (f"{found.sentence}: `{found.command}`" if found.command else found.sentence,)


def _void_block(subject: Subject) -> VerdictBlock | None:
    """Why scores without a comparison do not count; None where they do."""
    evidence = subject.record.evidence
    void = [name for name in subject.record.names if any(each.is_void and each.system == name for each in evidence)]
    if not void:
        return None
    code = VerdictCode.INVALID
    sentence = f"The scores of {and_list(void)} do not count."
    reasons = void_sentences(evidence)
    return VerdictBlock(code.text, sentence, code.tone, (), reasons)


def _many_facts(many: ManyResult) -> tuple[Fact, ...]:
    tests, best = many.omnibus, many.best
    n_claims = sum(pair.is_significant for pair in many.pairs)
    claims = f"{format_count(n_claims)} of {format_count(len(many.pairs))}" if many.can_find else UNKNOWN
    return (
        Fact("Systems", str(len(many.names)), f"{len(best)} best" if best else ""),
        Fact("Significant pairs", claims, f"{many.test}, {many.adjusted}"),
        Fact("Queries", str(many.n), f"{len(many.unpaired)} left out" if many.unpaired else "all of them"),
        Fact("Omnibus test", format_p(tests["permutation"].p_two_sided), "p, permutation"),
        Fact("Friedman test", format_p(tests["friedman"].p_two_sided), "p"),
    )


def _pair_facts(comparison: ComparisonResult) -> tuple[Fact, ...]:
    about = comparison.comparisons[comparison.primary]
    declared = about.tests.get(comparison.test)
    name_a, name_b = lettered(comparison.names)
    measure = str(comparison.primary)
    tone = interval_tone(about, comparison.primary)
    if comparison.verdict is VerdictCode.INVALID:
        tone = ""  # a difference that does not count is no news
    return (
        Fact(name_a, format_value(about.baseline.mean), f"mean {measure}"),
        Fact(name_b, format_value(about.candidate.mean), f"mean {measure}"),
        *_difference_facts(comparison, tone),
        Fact(
            f"{format_level(comparison.alpha)} CI",
            format_delta_interval((about.ci_low, about.ci_high)),
            about.interval_method,
        ),
        Fact("p", format_p(declared.p_two_sided if declared else None), f"{comparison.test}, two-sided"),
        Fact("Queries", str(about.n), f"{about.n_nonzero} differ"),
        *class_fact(comparison),
    )


def _difference_facts(comparison: ComparisonResult, tone: Tone) -> tuple[Fact, ...]:
    """The estimate that the interval is about, and the mean difference where that is another."""
    about = comparison.comparisons[comparison.primary]
    if TESTS[comparison.test].is_of_mean:
        return (Fact("Difference", format_delta(about.delta), "B minus A", tone),)
    name = TESTS[comparison.test].estimate
    outside = "outside the CI" if about.mean_is_outside else "of all queries"
    return (
        Fact("Mean difference", format_delta(about.delta), outside),
        Fact(name[0].upper() + name[1:], format_delta(about.estimate), "B minus A, where they differ", tone),
    )


def paired_tests(subject: Subject) -> Section | None:
    """A row for every test: statistic, p-values, interval, and why there is none; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    about = comparison.comparisons[comparison.primary]
    rows: list[tuple[Cell, ...]] = [
        (
            f"{name} *" if name == comparison.test else name,
            result.statistic,
            result.p_two_sided,
            result.p_one_sided,
            result.p_adjusted,
            result.estimate,
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
            Column("estimate", "delta"),
            Column("interval", "delta interval"),
            Column("note"),
        ),
        rows,
        f"Paired tests on {comparison.primary}, n = {about.n}, {about.n_nonzero} differ. * declared test",
        shown=None,
        wrap=True,
    )
    known = [p for result in about.tests.values() if (p := result.p_two_sided) is not None]
    n_small = sum(p <= comparison.alpha for p in known)
    key_figure = f"p is {format_plain(comparison.alpha)} or less in {n_small} of {n_of(len(known), 'tests')}"
    details = Details("About the tests", (Bullets(_descriptions(comparison)),))
    return Section("tests", "Paired tests", (table, details), key_figure)


def _note(result: TestResult) -> str:
    parts = [
        f"{what}: p {format_p(p)}"
        for key, what in MARGIN_P_VALUES.items()
        if isinstance(p := result.extra.get(key), float)
    ]
    return "; ".join([*parts, *([result.note] if result.note else [])])


def _descriptions(comparison: ComparisonResult) -> tuple[str, ...]:
    from cranfield.stats.table import TESTS

    specs = [TESTS[name] for name in comparison.comparisons[comparison.primary].tests if name in TESTS]
    return (
        P_VALUES,
        *(
            f"{spec.name}, {spec.title}: {spec.sentence}"
            + (f" Interval: {spec.interval_method}." if spec.interval else "")
            for spec in specs
        ),
        *((NONINFERIORITY_TEST,) if NONINFERIORITY in comparison.comparisons[comparison.primary].tests else ()),
    )


def rank_one_sentence(comparison: ComparisonResult) -> str:
    """McNemar's test in a sentence: discordant counts and p."""
    result = comparison.rank_one
    sentence = (
        f"A relevant result at rank 1: {rank_one_count(result, 'candidate_only')} only on B, "
        f"{rank_one_count(result, 'baseline_only')} only on A (exact McNemar, p {format_p(result.p_two_sided)})."
    )
    return f"{sentence} {result.note}." if result.note else sentence


def rank_one_count(result: TestResult, side: str) -> str:
    """Queries with a relevant result at rank 1 on one side: `candidate_only`, `baseline_only`."""
    count = result.extra.get(side)
    return n_of(int(count), "queries", format_count) if isinstance(count, int) else UNKNOWN


def sensitivity_section(subject: Subject) -> Section | None:
    """Summary line, the analyses that disagree, the table of all of them, and those not applicable; None unless requested."""
    result = None if subject.pair is None else subject.pair.sensitivity
    if result is None:
        return None
    blocks = sensitivity_blocks(result, f"{result.line}.")
    folded = (Details(ALL_ANALYSES, (each,), in_text=True) if isinstance(each, Table) else each for each in blocks)
    return Section("sensitivity", "Sensitivity analysis", tuple(folded))


def sensitivity_blocks(result: Sensitivity, line: str) -> list[Block]:
    """The line, the analyses that disagree, the table of all of them, and those not applicable."""
    blocks: list[Block] = [Paragraph(line)]
    if result.disagreeing:
        blocks.append(Bullets(_disagreeing(result), "warning"))
    if result.variations:
        blocks += [Paragraph(_how(result)), _variations_table(result)]
    if result.left_out:
        blocks.append(Details("Not applicable", (Bullets(result.left_out),), in_text=True))
    return blocks


def _disagreeing(result: Sensitivity) -> tuple[str, ...]:
    """Every other verdict, with the variations that reach it."""
    by_verdict: dict[str, list[str]] = {}
    for variation in result.disagreeing:
        name = variation.name if variation.family in SPEAKS_FOR_ITSELF else f"{variation.family}: {variation.name}"
        by_verdict.setdefault(variation.verdict.text, []).append(name)
    return tuple(f"{verdict}: {', '.join(names)}" for verdict, names in by_verdict.items())


def _how(result: Sensitivity) -> str:
    draws = f", with {format_count(result.n_draws)} random draws" if result.test in {"permutation", "bootstrap"} else ""
    return (
        "Each row changes one setting; no multiple-comparison correction. The verdict is that of the declared settings. "
        f"Rows that do not change the test use the {TESTS[result.test].title}{draws}."
    )


def _variations_table(result: Sensitivity) -> Table:
    ordered = sorted(
        result.variations, key=lambda variation: variation.verdict is result.verdict
    )  # stable: families stay together
    columns = (
        Column("setting"),
        Column("value"),
        Column("verdict"),
        Column("difference", "delta"),
        Column("interval", "delta interval"),
        Column("n", "count"),
    )
    return Table(
        columns,
        [_variation_row(variation) for variation in ordered],
        "All alternative analyses, those that disagree first. Difference: the estimate that the interval is about, of wilcoxon "
        "Hodges and Lehmann's, of sign the median, of the queries that differ; else the mean",
        shown=None,
        wrap=True,
    )


def _variation_row(variation: Variation) -> tuple[Cell, ...]:
    verdict: Cell = TonedCell(variation.verdict.text, variation.verdict.tone)
    return (
        variation.family,
        variation.name,
        verdict,
        variation.delta if variation.estimate is None else variation.estimate,
        (variation.ci_low, variation.ci_high),
        variation.n,
    )
