"""Sections on a verdict: its numbers, the paired tests, verdicts by class, the queries that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cranfield.base.numbers import (
    UNKNOWN,
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_plain,
    format_value,
)
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.evaluation.evidence.values import caveat_sentences, void_sentences
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, ManyResult
from cranfield.evaluation.sensitivity import Sensitivity, Variation
from cranfield.evaluation.unjudged import MOSTLY_UNJUDGED
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.evaluation.values import CHANGED, ClassRow, ClassVerdict, UnjudgedKind
from cranfield.evaluation.verdict import NONINFERIORITY
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model import Outcome
from cranfield.reporting.charts.differences import Bar, difference_bars, slopes
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.document import (
    Block,
    Bullets,
    Chart,
    Details,
    KeyValues,
    Paragraph,
    Section,
    Swatch,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
    VerdictFact,
)
from cranfield.reporting.sections.subject import Subject, has_texts, interval_tone, lettered, query_text, tone_of
from cranfield.reporting.table_spec import Col, Columns, TableSpec, interval
from cranfield.stats.result import TestResult
from cranfield.stats.table import TESTS

RULE = (
    "better: the test over all queries is significant, at least one class is better and none is worse; worse: the "
    "opposite; mixed: at least one class is better and one is worse."
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
    changed = [row.unseen for row in found.rows if row.code in CHANGED and row.unseen is not None]
    unseen = (Bullets(tuple(each.sentence for each in changed)),) if changed else ()
    rule = Details("How the classes decide", (Paragraph(RULE), *unseen), in_text=True)
    title = _estimate_title(found, comparison.test)
    is_own = title == TESTS[comparison.test].estimate
    columns: Columns[ClassRow] = (
        Col(found.key, lambda row: row.name),
        Col("verdict", _verdict_cell),
        Col("measure", lambda row: str(row.measure)),
        Col(title, lambda row: row.estimate if is_own else row.shown, "delta"),
        Col(f"{format_level(comparison.alpha)} CI", interval, "delta interval"),
        Col("n", lambda row: row.n, "count"),
        Col("p Holm", lambda row: None if row.result is None else row.result.p_adjusted, "p"),
    )
    table = TableSpec(f"By {found.key}, B minus A", found.rows, columns).table(wrap=True)
    return Section("verdict-by-class", "Verdict by class", (table, Paragraph(_notes(found, comparison)), rule))


def _verdict_cell(row: ClassRow) -> TonedCell:
    text = row.code.text if row.can_decide else TOO_FEW
    if row.move == "falls" and row.code is not VerdictCode.WORSE:
        text = LOWER.format(text=text)
    return TonedCell(text, row.code.tone if row.can_decide else "open")


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


def class_fact(comparison: ComparisonResult) -> tuple[VerdictFact, ...]:
    """How many classes are better and worse, for the head of a report; nothing where one mean decides."""
    found = comparison.verdict_by_class
    if found is None:
        return ()
    better, worse = (len(found.with_code(code)) for code in (VerdictCode.BETTER, VerdictCode.WORSE))
    lower = f", {len(found.falling)} lower without significance" if found.falling else ""
    return (VerdictFact("Classes better", f"{better} of {len(found.rows)}", f"{worse} worse{lower}"),)


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
        facts = (*facts, VerdictFact("Sensitivity", f"{varied.n_agree} of {len(varied.variations)}", note))
    unjudged, evidence = unjudged_reasons(result), result.evidence
    caveats: tuple[str, ...] = ()
    if result.unjudged is not None and isinstance(result, ManyResult):
        caveats, unjudged = unjudged, ()
        if result.unjudged.kind is UnjudgedKind.CAN_TURN:  # instead of the judged shares
            evidence = tuple(finding for finding in evidence if finding.check != MOSTLY_UNJUDGED)
    reasons = (*result.reasons, *unjudged, *((result.unseen.sentence,) if result.unseen is not None else ()))
    code = result.verdict
    return VerdictBlock(
        code.text,
        result.verdict_sentence,
        code.tone,
        facts,
        reasons,
        result.disagreements,
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


def _many_facts(many: ManyResult) -> tuple[VerdictFact, ...]:
    tests, best = many.omnibus, many.best
    n_claims = sum(pair.is_significant for pair in many.pairs)
    claims = f"{format_count(n_claims)} of {format_count(len(many.pairs))}" if many.can_find else UNKNOWN
    return (
        VerdictFact("Systems", str(len(many.names)), f"{len(best)} best" if best else ""),
        VerdictFact("Significant pairs", claims, f"{many.test}, {many.adjusted}"),
        VerdictFact("Queries", str(many.n), f"{len(many.unpaired)} left out" if many.unpaired else "all of them"),
        VerdictFact("Omnibus test", format_p(tests["permutation"].p_two_sided), "p, permutation"),
        VerdictFact("Friedman test", format_p(tests["friedman"].p_two_sided), "p"),
    )


def _pair_facts(comparison: ComparisonResult) -> tuple[VerdictFact, ...]:
    about = comparison.comparisons[comparison.primary]
    declared = about.tests.get(comparison.test)
    name_a, name_b = lettered(comparison.names)
    measure = str(comparison.primary)
    tone = interval_tone(about, comparison.primary)
    if comparison.verdict is VerdictCode.INVALID:
        tone = ""  # a difference that does not count is no news
    return (
        VerdictFact(name_a, format_value(about.baseline.mean), f"mean {measure}"),
        VerdictFact(name_b, format_value(about.candidate.mean), f"mean {measure}"),
        *_difference_facts(comparison, tone),
        VerdictFact(
            f"{format_level(comparison.alpha)} CI",
            format_delta_interval((about.ci_low, about.ci_high)),
            about.interval_method,
        ),
        VerdictFact("p", format_p(declared.p_two_sided if declared else None), f"{comparison.test}, two-sided"),
        VerdictFact("Queries", str(about.n), f"{about.n_nonzero} differ"),
        *class_fact(comparison),
    )


def _difference_facts(comparison: ComparisonResult, tone: Tone) -> tuple[VerdictFact, ...]:
    """The estimate that the interval is about, and the mean difference where that is another."""
    about = comparison.comparisons[comparison.primary]
    if TESTS[comparison.test].is_of_mean:
        return (VerdictFact("Difference", format_delta(about.delta), "B minus A", tone),)
    name = TESTS[comparison.test].estimate
    outside = "outside the CI" if about.mean_is_outside else "of all queries"
    return (
        VerdictFact("Mean difference", format_delta(about.delta), outside),
        VerdictFact(name[0].upper() + name[1:], format_delta(about.estimate), "B minus A, where they differ", tone),
    )


def paired_tests(subject: Subject) -> Section | None:
    """A row for every test: statistic, p-values, interval, and why there is none; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    about = comparison.comparisons[comparison.primary]
    columns: Columns[tuple[str, TestResult]] = (
        Col("test", lambda row: f"{row[0]} *" if row[0] == comparison.test else row[0]),
        Col("statistic", lambda row: row[1].statistic, "statistic"),
        Col("p", lambda row: row[1].p_two_sided, "p"),
        Col("p B > A", lambda row: row[1].p_one_sided, "p"),
        Col("p Holm", lambda row: row[1].p_adjusted, "p"),
        Col("estimate", lambda row: row[1].estimate, "delta"),
        Col("interval", lambda row: interval(row[1]), "delta interval"),
        Col("note", lambda row: _note(row[1])),
    )
    caption = f"Paired tests on {comparison.primary}, n = {about.n}, {about.n_nonzero} differ. * declared test"
    table = TableSpec(caption, list(about.tests.items()), columns).table(wrap=True)
    known = [p for result in about.tests.values() if (p := result.p_two_sided) is not None]
    n_small = sum(p <= comparison.alpha for p in known)
    key_figure = f"p is {format_plain(comparison.alpha)} or less in {n_small} of {count_noun(len(known), 'tests')}"
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
    return count_noun(int(count), "queries", format_count) if isinstance(count, int) else UNKNOWN


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
        # Every other verdict, with the variations that reach it.
        by_verdict: dict[str, list[str]] = {}
        for variation in result.disagreeing:
            name = variation.name if variation.family in SPEAKS_FOR_ITSELF else f"{variation.family}: {variation.name}"
            by_verdict.setdefault(variation.verdict.text, []).append(name)
        blocks.append(
            Bullets(tuple(f"{verdict}: {', '.join(names)}" for verdict, names in by_verdict.items()), "warning")
        )
    if result.variations:
        blocks += [Paragraph(_how(result)), _variations_table(result)]
    if result.left_out:
        blocks.append(Details("Not applicable", (Bullets(result.left_out),), in_text=True))
    return blocks


def _how(result: Sensitivity) -> str:
    draws = f", with {format_count(result.n_draws)} random draws" if result.test in {"permutation", "bootstrap"} else ""
    return (
        "Each row changes one setting; no multiple-comparison correction. The verdict is that of the declared settings. "
        f"Rows that do not change the test use the {TESTS[result.test].title}{draws}."
    )


def _variations_table(result: Sensitivity) -> Table:
    # Sorting is stable: families stay together.
    ordered = sorted(result.variations, key=lambda variation: variation.verdict is result.verdict)
    columns: Columns[Variation] = (
        Col("setting", lambda row: row.family),
        Col("value", lambda row: row.name),
        Col("verdict", lambda row: TonedCell(row.verdict.text, row.verdict.tone)),
        Col("difference", lambda row: row.delta if row.estimate is None else row.estimate, "delta"),
        Col("interval", interval, "delta interval"),
        Col("n", lambda row: row.n, "count"),
    )
    caption = (
        "All alternative analyses, those that disagree first. Difference: the estimate of the interval: Hodges-Lehmann for "
        "wilcoxon and the median for sign (both over the queries that differ), otherwise the mean"
    )
    return TableSpec(caption, ordered, columns).table(wrap=True)


BUCKET_TONES: Mapping[str, Tone] = {
    "failed in both": "bad",
    "failed in candidate": "bad",
    "lost": "bad",
    "worsened": "bad",
    "newly found": "good",
    "improved": "good",
    "moved to rank 1": "good",
    "newly found below rank 1": "good",
    "rose below rank 1": "good",
    "moved from rank 1": "bad",
    "lost from below rank 1": "bad",
    "fell below rank 1": "bad",
    "failed": "bad",
}
BUCKET_WORDS: Mapping[str, str] = {
    "never found": "not {place} on either",
    "newly found": "newly {place}",
    "lost": "no longer {place}",
}
"""Buckets that are about the cutoff of the primary measure, and not about the whole list."""
NOT_FOUND, FAILED = "not found", "failed"
EN_DASH = "\u2013"
SINGLE_LANES = 5
PASTED_QUERIES = 60
"""Plain text lists all queries up to this number; above it, only the largest losses and gains."""
LAST_RANKS = (10, 20, 50, 100, 1000)


def query_differences(subject: Subject) -> Section | None:
    """Every query's difference on the primary measure, and its bucket; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    blocks: list[Block] = []
    if figure := _difference_figure(comparison):
        blocks.append(figure)
    blocks += [
        _partition(comparison.buckets, f"Change of {comparison.primary} per query", "bucket", comparison.primary),
        _names(
            {bucket_words(name, comparison.primary): ids for name, ids in comparison.buckets.items()},
            "Queries of each bucket",
        ),
    ]
    return Section("queries", "Per-query differences", tuple(blocks))


def movement(subject: Subject) -> Section | None:
    """The rank of the first relevant result on both sides, and its movement; None unless a pair is compared."""
    comparison = subject.pair
    if comparison is None:
        return None
    blocks: list[Block] = []
    if figure := _slope_figure(comparison):
        blocks.append(figure)
    blocks += [
        _partition(comparison.moves, "Movement of the first relevant result in the whole lists", "movement"),
        _names(comparison.moves, "Queries of each movement"),
        Paragraph(rank_one_sentence(comparison)),
    ]
    counts = (rank_one_count(comparison.rank_one, side) for side in ("candidate_only", "baseline_only"))
    key_figure = "rank 1 is relevant: {} only on B, {} only on A".format(*counts)
    return Section("movement", "First relevant result", tuple(blocks), key_figure)


def bucket_words(bucket: str, primary: Measure) -> str:
    """A bucket as a report names it: with a cutoff, what is below it was returned, and only not counted.

    Example:
        >>> from cranfield.measures import parse
        >>> [bucket_words("newly found", parse(name)) for name in ("nDCG@10", "P(rel=2)@1", "AP")]
        ['newly in the top 10', 'newly at rank 1 with grade 2 or more', 'newly found']
    """
    words, rel, grade = BUCKET_WORDS.get(bucket), primary.whole("rel", 1), primary.whole("only_grade", 0)
    which = f" with grade {grade}" if grade else f" with grade {rel} or more" if rel > 1 else ""
    if primary.param("only_best", default=False):
        which += " with the best grade"
    if words is None or (primary.depth is None and not which):
        return bucket
    place = "in the list" if primary.depth is None else f"in the top {format_count(primary.depth)}"
    place = "at rank 1" if primary.depth == 1 else place
    return words.format(place=place + which)


def _partition(parts: Mapping[str, Sequence[str]], caption: str, heading: str, primary: Measure | None = None) -> Table:
    """A row for each part; one of failures only where there are failures."""
    total = sum(len(query_ids) for query_ids in parts.values())
    rows = [(name, ids) for name, ids in parts.items() if ids or not name.startswith(FAILED)]

    def part(row: tuple[str, Sequence[str]]) -> TonedCell:
        words = bucket_words(row[0], primary) if primary else row[0]
        return TonedCell(words, BUCKET_TONES.get(row[0], "") if row[1] else "")

    columns: Columns[tuple[str, Sequence[str]]] = (
        Col(heading, part),
        Col("queries", lambda row: len(row[1]), "count"),
        Col("share", lambda row: len(row[1]) / total if total else None, "percent"),
        Col("which", lambda row: join_first(row[1]), "code"),
    )
    return TableSpec(caption, rows, columns).table(footer=("all", total, 1.0 if total else None, ""))


def _names(parts: Mapping[str, Sequence[str]], summary: str) -> Details:
    items = tuple((f"{name} ({len(ids)})", ", ".join(ids)) for name, ids in parts.items() if ids)
    return Details(summary, (KeyValues(items),))


def bucket_of(comparison: ComparisonResult) -> dict[str, str]:
    """Query id to its bucket."""
    return {query_id: name for name, query_ids in comparison.buckets.items() for query_id in query_ids}


def _difference_figure(comparison: ComparisonResult) -> Chart | None:
    measure = comparison.primary
    found = comparison.comparisons[measure].differences
    if not found:
        return None
    sign = sign_of(measure)
    bars = [
        Bar(query_text(comparison, query_id) or query_id, delta, sign * delta, query_id)
        for query_id, delta in found.items()
    ]
    better, worse = (sum(bar.gain * way > 0 for bar in bars) for way in (1, -1))
    equal = len(bars) - better - worse
    legend: tuple[tuple[Swatch, str], ...] = (
        ("good", f"{format_count(better)} better on B"),
        ("same", f"{format_count(equal)} equal"),
        ("bad", f"{format_count(worse)} worse on B"),
    )
    extremes = f" Between {format_delta(min(found.values()))} and {format_delta(max(found.values()))}."
    spec, narrow = (difference_bars(bars, f"{measure}, B minus A", screen) for screen in SCREENS)
    return Chart(
        "differences",
        f"Difference in {measure} of each query",
        "Sorted bars: " + ", ".join(words for _, words in legend) + "." + extremes,
        spec,
        narrow,
        replace(
            query_table(comparison, sorted(found, key=lambda query_id: -sign * found[query_id])), shown=PASTED_QUERIES
        ),
        legend,
        in_text=len(found) <= PASTED_QUERIES,
    )


def query_table(comparison: ComparisonResult, query_ids: Sequence[str], caption: str = "") -> Table:
    """Both values, the difference, the first relevant ranks and the bucket of each query."""
    measure = comparison.primary
    found = comparison.comparisons[measure].differences
    buckets = bucket_of(comparison)
    a, b = comparison.systems
    ranks_a, ranks_b = (rank_cells(comparison, place) for place in (0, 1))
    columns: Columns[str] = (
        Col("query", lambda query: query, "query id"),
        Col("text", lambda query: query_text(comparison, query), "code", when=has_texts(comparison)),
        Col("A", lambda query: a.queries[query][measure], "value"),
        Col("B", lambda query: b.queries[query][measure], "value"),
        Col("difference", lambda query: TonedCell(found[query], tone_of(found[query], measure)), "delta"),
        Col("rank A", ranks_a.__getitem__, "count"),
        Col("rank B", ranks_b.__getitem__, "count"),
        Col("bucket", lambda query: bucket_words(buckets[query], measure)),
    )
    caption = caption or f"{measure} of every query, and the rank of its first relevant result"
    return TableSpec(caption, query_ids, columns).table(shown=20)


def rank_cells(record: EvaluationResult, place: int) -> dict[str, str | int]:
    """Query to the rank of its first relevant result on a system, or to why there is none."""
    cells: dict[str, str | int] = {}
    for query_id, query in (record.queries or {}).items():
        side = query.sides[place]
        if side.outcome is not None:
            rank = side.first_relevant_rank
            cells[query_id] = FAILED if Outcome(side.outcome).is_failure else NOT_FOUND if rank is None else rank
    return cells


def lanes_to(deepest: int) -> list[tuple[str, int]]:
    """Lanes of ranks down to `deepest`: the first five alone, then 6 to 10, 11 to 20, and so on; name and last rank of each."""
    found = [(f"rank {rank}", rank) for rank in range(1, min(SINGLE_LANES, deepest) + 1)]
    start = SINGLE_LANES + 1
    for last in LAST_RANKS:
        if start > deepest:
            return found
        found.append((f"{start}{EN_DASH}{last}", last))
        start = last + 1
    return [*found, (f"over {LAST_RANKS[-1]}", deepest)] if start <= deepest else found


def _slope_figure(comparison: ComparisonResult) -> Chart | None:
    query_ids = [query_id for part in comparison.moves.values() for query_id in part]
    if not query_ids:
        return None
    left, right = (rank_cells(comparison, place) for place in (0, 1))
    known = [cell for side in (left, right) for query_id in query_ids if isinstance(cell := side[query_id], int)]
    lanes = lanes_to(max(known, default=1))

    def lane(cell: str | int) -> str:
        return cell if isinstance(cell, str) else next(name for name, last in lanes if cell <= last)

    went: dict[tuple[str, str], list[str]] = {}
    for query_id in query_ids:
        went.setdefault((lane(left[query_id]), lane(right[query_id])), []).append(query_id)
    used = {name for pair in went for name in pair}
    names = [*(name for name, _ in lanes), NOT_FOUND, *([FAILED] if FAILED in used else [])]
    pairs = {pair: len(ids) for pair, ids in went.items()}
    first = {pair: ids[0] for pair, ids in went.items()}
    place = {name: position for position, name in enumerate(names)}
    moved = Counter[int]()
    for (before, after), count in pairs.items():
        moved[(place[before] > place[after]) - (place[before] < place[after])] += count
    legend: tuple[tuple[Swatch, str], ...] = (
        ("good", f"{format_count(moved[1])} rose"),
        ("same", f"{format_count(moved[0])} stayed"),
        ("bad", f"{format_count(moved[-1])} fell"),
    )
    spec, narrow = (slopes(pairs, names, screen, first) for screen in SCREENS)
    return Chart(
        "movement",
        "Rank of the first relevant result, A to B",
        "Lines from the rank on A to the rank on B: " + ", ".join(words for _, words in legend) + ".",
        spec,
        narrow,
        _rank_changes(went, place),
        legend,
    )


def _rank_changes(went: Mapping[tuple[str, str], Sequence[str]], place: Mapping[str, int]) -> Table:
    """The queries of each line of the picture."""
    columns: Columns[tuple[str, str]] = (
        Col("on A", lambda line: line[0]),
        Col("on B", lambda line: line[1]),
        Col("queries", lambda line: len(went[line]), "count"),
        Col("which", lambda line: join_first(went[line]), "code"),
    )
    ordered = sorted(went, key=lambda line: (place[line[0]], place[line[1]]))
    return TableSpec("Changes of rank", ordered, columns).table(shown=20)
