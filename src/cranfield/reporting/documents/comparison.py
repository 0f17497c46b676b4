"""The report of evaluations and comparisons, and its short form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

from cranfield.base.errors import Problem
from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_percent,
    format_value,
)
from cranfield.base.words import and_list, capitalised, count_noun, shorten_to
from cranfield.evaluation.contribution import Contribution, Contributions
from cranfield.evaluation.evaluate import ContrastSpec
from cranfield.evaluation.latency import CallsResult
from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.result import (
    ComparisonResult,
    EvaluationResult,
    ManyResult,
    QueryRecord,
    SystemResult,
    without_answers,
)
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.unseen import Caveat, CaveatKind, nearest
from cranfield.evaluation.values import ClassRow, ClassVerdict, Comparison, Evaluation, Summary
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model.results import to_jsonable
from cranfield.plugins import plugins
from cranfield.reporting.charts.differences import Whisker
from cranfield.reporting.document import (
    MADE_BY,
    PILOT_STAMP,
    VOID_STAMP,
    Brief,
    Bullets,
    Chart,
    Details,
    Document,
    QueryViewContent,
    Section,
    Table,
    TonedCell,
    without_tones,
)
from cranfield.reporting.query_data import QueryData
from cranfield.reporting.sections.causes import causes, first_cause
from cranfield.reporting.sections.collection import (
    answers,
    by_query,
    collection,
    confusion,
    latencies,
    moved_latencies,
    warnings,
)
from cranfield.reporting.sections.headroom import headroom
from cranfield.reporting.sections.many import (
    BoardLine,
    against_baseline,
    board_lines,
    leaderboard,
    leaderboard_of,
    measure_agreement,
    pairs,
    ranks,
)
from cranfield.reporting.sections.measures import (
    breakdown,
    class_means,
    classes,
    differences,
    find_contrasts,
    has_classes,
    interval_figure,
    means_of,
    measures,
    strata_contrasts,
    summaries,
)
from cranfield.reporting.sections.model_card import model_card_of
from cranfield.reporting.sections.slices import slices, strongest
from cranfield.reporting.sections.subject import (
    Preflight,
    Subject,
    news_of,
    provenance,
    query_text,
    testset_label,
)
from cranfield.reporting.sections.verdict import (
    class_verdicts,
    movement,
    paired_tests,
    query_differences,
    sensitivity_section,
    verdict_block,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, Row, TableSpec, interval
from cranfield.stats.table import TESTS

QUERY_COLUMNS = 26
"""Most columns of the text of a query that changed most: two of them are on a line."""
OTHER_MEASURES = 2
"""Most other measures of several systems side by side, besides the first measure."""
TOO_FEW = "too few"
CODES_FIRST = (VerdictCode.WORSE, VerdictCode.BETTER)
"""Classes that changed are the first rows."""


def brief_of(subject: Subject) -> Brief:
    """The short form of a subject."""
    doubts = _doubts(subject)
    if subject.is_void:  # figures that do not count have no place on the first screen
        return Brief(doubts=doubts)
    if subject.pair is not None:
        pair = subject.pair
        table = _measures(pair) if pair.verdict_by_class is None else _classes(pair, pair.verdict_by_class)
        counts, *most = _changes(pair)
        findings = (*_findings(subject), *strongest(subject))
        lines = (counts, *moved_latencies(subject), *most, *first_cause(subject))
        return Brief(table, lines, doubts, findings)
    if subject.many is not None:
        return Brief(_board(subject.many, subject.sort), moved_latencies(subject), doubts, _findings(subject))
    systems = subject.record.systems
    if has_classes(systems[0]):
        return Brief(class_means(systems), (_reliability(systems),), doubts)
    table = _one(systems[0]) if len(systems) == 1 or not subject.measures else _side_by_side(subject)
    return Brief(table, (_reliability(systems),) if len(systems) == 1 else (), doubts)


def _doubts(subject: Subject) -> tuple[str, ...]:
    """Evidence first, then failures and other warnings, what contradicts the verdict, and what it could not have found."""
    block, section = verdict_block(subject), warnings(subject)
    cautions = (
        [] if section is None else [i for each in section.blocks if isinstance(each, Bullets) for i in each.items]
    )
    if block is None:
        return tuple(cautions)
    limits = dict.fromkeys(block.limits(*cautions))
    return tuple(each for each in limits if block.tone == "void" or not _is_finding(each))


def _findings(subject: Subject) -> tuple[str, ...]:
    """Reasons of the verdict that are results and nothing to doubt."""
    block = verdict_block(subject)
    reasons = () if block is None else block.reasons
    findings = tuple(capitalised(reason) for reason in reasons if _is_finding(reason))
    by_class = None if subject.pair is None else subject.pair.verdict_by_class
    apart = [
        f"{row.name} (adjusted p {format_p(row.result.p_adjusted)})"
        for row in (() if by_class is None else by_class.rows)
        if row.result is not None and row.result.p_adjusted is not None
        if row.code is VerdictCode.NOT_SIGNIFICANT and row.ci_low is not None and row.ci_high is not None
        if row.ci_low > 0 or row.ci_high < 0
    ]
    if apart:
        text = "Not significant although its interval excludes zero, because p is adjusted for the number of classes"
        findings += (f"{text if len(apart) == 1 else text.replace('its', 'their')}: {', '.join(apart)}",)
    return findings


def _is_finding(reason: str) -> bool:
    """Whether it says that a loss of the margin is ruled out, or how each of many systems did against the baseline."""
    return isinstance(reason, Caveat) and reason.kind == (CaveatKind.FINDING,)


def _measures(comparison: ComparisonResult) -> Table:
    """Both sides of each measure, the primary first."""
    rows = sorted(comparison.comparisons.values(), key=lambda about: about.measure != comparison.primary)
    return differences(comparison, rows, "Measures").without("p Holm", "d_z", "MDE").table(shown=20)


def _classes(comparison: ComparisonResult, found: ClassVerdict) -> Table:
    """The verdict of each class, those that changed first."""
    columns: Columns[ClassRow] = (
        Col(found.key, lambda row: row.name),
        Col("verdict", _class_verdict),
        Col("measure", lambda row: str(row.measure)),
        Col("difference", lambda row: row.shown, "delta"),
        Col(f"{format_level(comparison.alpha)} CI", interval, "delta interval"),
        Col("n", lambda row: row.n, "count"),
    )
    rank = {code: place for place, code in enumerate(CODES_FIRST)}
    ordered = sorted(found.rows, key=lambda row: (rank.get(row.code, len(rank)), row.move != "falls"))
    return TableSpec(f"By {found.key}, B minus A", ordered, columns).table(shown=20)


def _class_verdict(row: ClassRow) -> TonedCell:
    verdict = row.code.value.replace("_", " ") if row.can_decide else TOO_FEW
    return TonedCell(verdict, row.code.tone if row.can_decide else "open")


def _changes(comparison: ComparisonResult) -> tuple[str, ...]:
    """How many queries got better and worse on the primary measure, failed and were judged; and those that changed most."""
    found, sign = comparison.comparisons[comparison.primary].differences, sign_of(comparison.primary)
    counts, named = [], []
    for word, way in (("better", sign), ("worse", -sign)):
        moved = [query for query in found if found[query] * way > 0]
        counts.append(
            f"{count_noun(len(moved), 'queries', format_count) if way == sign else format_count(len(moved))} {word}"
        )
        if moved:
            most = max(moved, key=lambda query: abs(found[query]))
            named.append(
                f"{format_delta(found[most])} {shorten_to(query_text(comparison, most) or most, QUERY_COLUMNS)}"
            )
    line = f"{', '.join(counts)}; {_reliability(comparison.systems)}"
    return (line, f"Most: {'; '.join(named)}") if named else (line,)


def _reliability(systems: Sequence[SystemResult]) -> str:
    """`0 failed; Judged@10 46.7 %`, of several systems in their order."""
    failed = " and ".join(format_count(each.n_failed) for each in systems)
    judged = " and ".join(format_percent(each.judged.mean) for each in systems)
    return f"{failed} failed; {systems[0].judged.measure} {judged}"


def _board(many: ManyResult, sort: str) -> Table:
    """The systems with their means, the best first."""
    columns: Columns[BoardLine] = (
        Col("#", lambda row: row[1].rank, "count"),
        Col("system", lambda row: f"{row[1].system} (baseline)" if row[1].system == many.baseline else row[1].system),
        Col("group", lambda row: row[1].group),
        Col(
            str(many.primary), lambda row: TonedCell(row[2].mean, "good" if row[1].system in many.best else ""), "value"
        ),
        Col(f"{format_level(many.alpha)} CI", lambda row: interval(row[2]), "interval"),
        Col("better than", lambda row: row[1].better_than, "count"),
        Col("worse than", lambda row: row[1].worse_than, "count"),
    )
    return TableSpec(f"{many.primary}", board_lines(many, sort), columns).table(shown=20)


def _one(system: SystemResult) -> Table:
    """The measures of one system."""
    rows = [(str(measure), system.name, found) for measure, found in system.measures.items()]
    alpha = next((1 - found.ci_level for _, _, found in rows), 0.05)
    return summaries("measure", rows, system.name, alpha, several=False).without("std. dev.").table(shown=20)


def _side_by_side(subject: Subject) -> Table:
    """The first measure of each of several systems with its interval, and the means of two others."""
    first, *others = subject.measures[: 1 + OTHER_MEASURES]
    systems = subject.record.systems
    cells, of_first = means_of(systems, [first, *others]), [each.measures.get(first) for each in systems]
    level = next((format_level(1 - each.ci_level) for each in of_first if each is not None), "")
    columns: Columns[tuple[int, SystemResult, Summary | None]] = (
        Col("system", lambda row: row[1].name),
        Col(str(first), lambda row: cells[first][row[0]], "value"),
        Col(f"{level} CI", lambda row: (None, None) if row[2] is None else interval(row[2]), "interval"),
        Cols(others, lambda row, measure: cells[measure][row[0]], "value"),
        Col("n", lambda row: 0 if row[2] is None else row[2].n, "count"),
        Col("failed", lambda row: row[1].n_failed, "count"),
        Col("judged", lambda row: row[1].judged.mean, "percent"),
    )
    rows = [(place, *row) for place, row in enumerate(zip(systems, of_first, strict=True))]
    return TableSpec("Means", rows, columns).table(shown=20)


MAX_LISTED = 12
"""Systems that are listed under the title."""
EXPECTED_OF_PLUGINS = "a function of a Subject that returns a Section or None"

SECTIONS: tuple[Callable[[Subject], Section | None], ...] = (
    class_verdicts, leaderboard, measures, causes, query_differences, against_baseline, strata_contrasts, warnings,
    slices, headroom, sensitivity_section, classes, pairs, ranks, movement, breakdown, measure_agreement, answers, paired_tests,
    latencies, confusion, collection, by_query, provenance,
)  # fmt: skip
"""Every section of our own, in the order of a report: where systems differ, what to doubt, then the details, which a page
shows closed. A builder returns None for a subject that it does not apply to."""


def comparison_document(
    result: Comparison | ManyComparison,
    *,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
    sensitivity: Sensitivity | None = None,
    sort: str = "mean",
    show_pairs: bool = False,
) -> Document:
    """The report of a comparison of two systems or many, verdict first.

    Args:
        result: what `compare` or `compare_many` found.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast; within each of many systems on its first measure.
        today: to say when the test set is overdue for new queries; None does not say.
        sensitivity: the verdicts of alternative analyses of two systems, where requested.
        sort: order of the leaderboard of many systems: mean, name, given, rank (mean rank) or a measure.
        show_pairs: list all pairs of many systems, however many.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    found = find_contrasts(result if isinstance(result, Comparison) else result.evaluations, contrasts)
    return subject_document(
        Subject.of(result, found, sensitivity, preflight=preflight, today=today, sort=sort, show_pairs=show_pairs)
    )


def title_of(subject: Subject) -> str:
    """The question that a comparison answers, or the systems that stand side by side."""
    if subject.pair is not None:
        return f"Is {subject.pair.candidate} better than {subject.pair.baseline}?"
    if subject.many is not None:
        return f"Which of {len(subject.systems)} systems is best?"
    return and_list(subject.record.names)


def evaluation_document(
    evaluations: Sequence[Evaluation],
    *,
    by_query: bool = False,
    preflight: Preflight = (),
    contrasts: Sequence[ContrastSpec] = (),
    today: date | None = None,
) -> Document:
    """The report of one system or several, side by side and without a verdict.

    Args:
        evaluations: on one test set; at least one.
        by_query: add a row for every query.
        preflight: (system, check, found) of every check that passed before the first query.
        contrasts: (key, value, value) of strata to contrast, on the first measure.
        today: to say when the test set is overdue for new queries; None does not say.

    Raises:
        UsageError: a contrast of strata that are not there.
    """
    found = find_contrasts(evaluations, contrasts)
    return subject_document(Subject.of(evaluations, found, preflight=preflight, today=today, by_query=by_query))


def subject_document(subject: Subject) -> Document:
    """The report of a subject; systems that are compared are listed under the title, with their roles."""
    compared, record = subject.compared, subject.record
    roles = {} if compared is None else {compared.baseline: "baseline"}
    if subject.pair is not None:
        roles = {subject.pair.baseline: "baseline", subject.pair.candidate: "candidate"}
    listed = [(label, roles.get(system.name, "")) for label, system in subject.systems] if compared else []
    sections = (
        *sections_of(subject, SECTIONS[:-1]),
        *plugin_sections(subject),
        *sections_of(subject, SECTIONS[-1:]),
    )
    if subject.is_void:
        sections = tuple(replace(section, blocks=without_tones(section.blocks)) for section in sections)
    return Document(
        title=title_of(subject),
        subtitle=(*_listed(listed), test_set_line(record)),
        sections=sections,
        tidy=partial(tidy_comparison, subject.pair) if subject.pair else partial(tidy_evaluations, record),
        payload=lambda: to_jsonable(without_answers(record)),
        record=lambda: to_jsonable(record),
        calls=lambda: subject.calls if subject.calls.were_made else None,
        verdict=verdict_block(subject),
        stamps=((PILOT_STAMP,) if subject.pilot else ()) + ((VOID_STAMP,) if subject.is_void else ()),
        made_by=MADE_BY,
        queries=QueryViewContent(lambda: QueryData(subject).index(), lambda: QueryData(subject).details()),
        brief=partial(brief_of, subject),
        leaderboard=partial(leaderboard_of, subject),
        model_card=partial(model_card_of, subject),
    )


def _listed(labels: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """A line for each system with its role; of many one line with their number and the baseline."""
    lines = [f"{label} ({role})" if role else label for label, role in labels]
    if len(labels) <= MAX_LISTED:
        return tuple(lines)
    baselines = [line for line, (_, role) in zip(lines, labels, strict=True) if role == "baseline"]
    return (", ".join([f"{format_count(len(labels))} systems", *baselines]),)


def sections_of(subject: Subject, builders: Sequence[Callable[[Subject], Section | None]]) -> tuple[Section, ...]:
    """The sections that apply to a subject, in order."""
    return tuple(section for build in builders if (section := build(subject)) is not None)


def test_set_line(record: EvaluationResult) -> str:
    """Test set and convention: the line under the title."""
    review = f", {record.testset.review}" if record.testset.review else ""
    return f"test set {testset_label(record.testset)}{review}, convention {record.convention}"


def plugin_sections(subject: Subject) -> Iterator[Section]:
    """The sections that installed packages add to a subject; last, a section that names the packages that failed.

    A report is the end of a long collection: a package that fails is reported and does not end it.
    """
    problems: list[Problem] = []
    for plugin in plugins("cranfield.report_sections"):
        try:
            build = plugin.load()
            section = build(subject) if callable(build) else build
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            problems.append(plugin.problem(error))
            continue
        if isinstance(section, Section):
            yield section
        elif section is not None:
            problems.append(plugin.wrong_type(section, EXPECTED_OF_PLUGINS))
    if problems:
        yield Section("plugins", "Sections left out", (Bullets(tuple(map(str, problems)), "warning"),))


def tidy_evaluations(record: EvaluationResult) -> Table:
    """`system, query, measure, value, outcome`, and the strata; an unscored value is empty. Pilots have a column that says so."""
    queries = record.queries or {}
    rows = [
        (place, query_id, measure, value)
        for place, system in enumerate(record.systems)
        for query_id, measure, value in _values_of(system)
    ]
    columns: Columns[tuple[int, str, Measure, float | None]] = (
        Col("system", lambda row: record.systems[row[0]].name),
        Col("query", lambda row: row[1]),
        Col("measure", lambda row: row[2].canonical),
        Col("value", lambda row: row[3], "value"),
        Col("outcome", lambda row: queries[row[1]].sides[row[0]].outcome),
        Col(
            "stamp",
            lambda row: PILOT_STAMP if record.systems[row[0]].pilot else "",
            when=any(system.pilot for system in record.systems),
        ),
        _strata(queries, lambda row: row[1]),
    )
    return TableSpec("", rows, columns).tidy()


def _values_of(system: SystemResult) -> Iterator[tuple[str, Measure, float | None]]:
    """Every query and measure of a system, then the measures of the classes of questions."""
    for query_id, values in system.queries.items():
        for measure, value in values.items():
            yield query_id, measure, value
    for of_class in system.classes:
        for about in of_class.measures:
            for query_id in of_class.query_ids if about.measure not in system.measures else ():
                yield query_id, about.measure, about.values.get(query_id)


def _strata(queries: Mapping[str, QueryRecord], query_id: Callable[[Row], str]) -> Cols[Row]:
    """A column for each key of strata, `stratum.class` for the class of a query."""
    keys = dict.fromkeys(key for query in queries.values() for key in query.strata)
    return Cols(keys, lambda row, key: queries[query_id(row)].strata.get(key, ""), title=lambda key: f"stratum.{key}")


def tidy_comparison(record: ComparisonResult) -> Table:
    """A row for each query and measure: both values, `delta`, the bucket on the primary measure, both outcomes, the strata."""
    queries, (first, second) = record.queries or {}, record.systems
    rows = [
        (query_id, measure.canonical, first.queries[query_id][measure], second.queries[query_id][measure], delta)
        for measure, about in record.comparisons.items()
        for query_id, delta in about.differences.items()
    ]
    rows += [
        (query_id, str(found.measure), found.values[0][query_id], found.values[1][query_id], delta)
        for of_class in record.classes
        for found in of_class.measures
        if found.measure not in record.comparisons
        for query_id, delta in found.differences.items()
    ]
    columns: Columns[tuple[str, str, float | None, float | None, float]] = (
        Col("query", lambda row: row[0]),
        Col("measure", lambda row: row[1]),
        Col("baseline", lambda row: row[2], "value"),
        Col("candidate", lambda row: row[3], "value"),
        Col("delta", lambda row: row[4], "value"),
        Col("bucket", lambda row: queries[row[0]].bucket),
        Col("baseline_outcome", lambda row: queries[row[0]].sides[0].outcome),
        Col("candidate_outcome", lambda row: queries[row[0]].sides[1].outcome),
        Col("stamp", lambda _: PILOT_STAMP, when=first.pilot or second.pilot),
        _strata(queries, lambda row: row[0]),
    )
    return TableSpec("", rows, columns).tidy()


HOW_TO_READ = (
    "Alone: the mean of the system with this component and no other; its interval is under Measures.",
    (
        "Effect: mean of all components minus all but this one, paired by query. A component that others can replace "
        "has little effect, however good it is alone."
    ),
    "p Holm: two-sided, of the declared test, adjusted for the number of components; it decides the verdict.",
    (
        "Gained, lost: queries that are worse or better without it. Only: queries that are worse without it, but not without "
        "any other component."
    ),
)


def contribution_document(found: Contributions, calls: Callable[[], CallsResult]) -> Document:
    """The contribution table, its picture, and every variant's measures.

    Args:
        found: a system and its components.
        calls: gives what is known of the calls of its variants.
    """
    subject = Subject(found, calls, measure=found.primary)
    sections = sections_of(subject, (warnings, measures, latencies, collection, provenance))
    level = format_level(found.alpha)
    unseen = nearest(row.unseen for row in found.components)
    rows = tuple(_sentence(row, found) for row in found.components)
    sentences = Bullets((*rows, *((f"{unseen.sentence}.",) if unseen is not None else ())))
    read = Details("How to read this table", (Bullets(HOW_TO_READ),))
    return Document(
        title=f"What does each component of {found.system} contribute?",
        subtitle=(
            (
                f"{found.primary}, {found.test} test, test set {testset_label(found.testset)}, "
                f"convention {found.convention}"
            ),
        ),
        sections=(
            Section("components", "Components", (sentences, *_figure(found, level), _table(found), read)),
            *sections,
        ),
        tidy=_spec(found).tidy,
        payload=lambda: to_jsonable(without_answers(found)),
        record=lambda: to_jsonable(found),
        stamps=(PILOT_STAMP,) if subject.pilot else (),
        made_by=MADE_BY,
        brief=lambda: _brief(found, subject),
    )


def _brief(found: Contributions, subject: Subject) -> Brief:
    """The table of the components, and what to doubt."""
    section, unseen = warnings(subject), nearest(row.unseen for row in found.components)
    blocks = () if section is None else section.blocks
    doubts = [item for block in blocks if isinstance(block, Bullets) for item in block.items]
    invalid = [_sentence(row, found) for row in found.components if row.verdict is VerdictCode.INVALID]
    return Brief(_table(found), doubts=(*invalid, *doubts, *([unseen.sentence] if unseen is not None else [])))


def _table(found: Contributions) -> Table:
    return _spec(found).table(footer=("all", "", None, None, None, found.whole_summary.mean, None, None, None))


def _spec(found: Contributions) -> TableSpec[Contribution]:
    whole, unclear = found.whole_summary, VerdictCode.NOT_SIGNIFICANT
    columns: Columns[Contribution] = (
        Col("component", lambda row: row.component),
        Col("measure", lambda _: str(found.primary), only="tidy"),
        Col(
            "verdict",
            lambda row: TonedCell(row.verdict.text, "" if row.verdict is unclear else row.verdict.tone),
            only="report",
        ),
        Col("effect", lambda row: TonedCell(row.effect.shown, news_of(row.verdict)), "delta", only="report"),
        Col(f"{format_level(found.alpha)} CI", lambda row: interval(row.effect), "delta interval", only="report"),
        Col("p Holm", lambda row: row.p_adjusted, "p", only="report"),
        Col("alone", lambda row: row.alone_summary.mean, "value"),
        Col("alone_ci_low", lambda row: row.alone_summary.ci_low, only="tidy"),
        Col("alone_ci_high", lambda row: row.alone_summary.ci_high, only="tidy"),
        Col("without", lambda row: row.without_summary.mean, only="tidy"),
        Col("all", lambda _: whole.mean, only="tidy"),
        Col("brings", lambda row: row.effect.delta, only="tidy"),
        Col("ci_low", lambda row: row.effect.ci_low, only="tidy"),
        Col("ci_high", lambda row: row.effect.ci_high, only="tidy"),
        Col("p", lambda row: row.p, only="tidy"),
        Col("p_holm", lambda row: row.p_adjusted, only="tidy"),
        Col("word", lambda row: row.verdict, only="tidy"),
        Col("gained", lambda row: row.n_gained, "count"),
        Col("lost", lambda row: row.n_lost, "count"),
        Col("only", lambda row: row.n_only, "count", "gained_only"),
        Col("n", lambda row: row.effect.n, only="tidy"),
    )
    caption = (
        f"{found.primary}: effect of each component added to the others, and its mean alone. All together: "
        f"{format_value(whole.mean)}, n = {whole.n}"
    )
    return TableSpec(caption, found.components, columns)


def _sentence(row: Contribution, found: Contributions) -> str:
    about = row.effect
    if row.verdict is VerdictCode.INVALID:
        return f"{row.component}: no verdict, {'; '.join(row.reasons)}."
    words = {
        VerdictCode.HELPS: f"{row.component} helps",
        VerdictCode.HURTS: f"{row.component} hurts",
        VerdictCode.EQUIVALENT: f"removing {row.component} has no effect beyond the margin",
        VerdictCode.NOT_SIGNIFICANT: f"removing {row.component} has no significant effect",
    }
    interval = format_delta_interval((about.ci_low, about.ci_high))
    return (
        f"{words[row.verdict]}: {found.primary} {_effect(row, found)} over all the others "
        f"({format_level(found.alpha)} CI {interval}, Holm p {format_p(row.p_adjusted)}, n = {about.n})."
    )


def _effect(row: Contribution, found: Contributions) -> str:
    """`+0.0400`; of another quantity than the mean, `Hodges-Lehmann estimate +0.0400 (mean difference +0.0310)`."""
    about, spec = row.effect, TESTS[found.test]
    if spec.is_of_mean:
        return format_delta(about.delta)
    return f"{spec.estimate} {format_delta(about.shown)} (mean difference {format_delta(about.delta)})"


def _figure(found: Contributions, level: str) -> tuple[Chart, ...]:
    if all(row.effect.delta is None for row in found.components):
        return ()
    better = CATALOGUE[found.primary.name].higher_is_better
    marks = [
        Whisker(row.component, row.effect.shown, row.effect.ci_low, row.effect.ci_high, news_of(row.verdict))
        for row in found.components
    ]
    intervals = "; ".join(
        f"{row.component} {format_delta(row.effect.shown)} ({format_delta_interval(interval(row.effect))})"
        for row in found.components
    )
    spec = replace(_spec(found), caption="Effect of each component")
    figure = interval_figure(
        "contributions",
        f"Effect of each component, {level} CIs",
        marks,
        spec.without("verdict", "p Holm", "alone", "gained", "lost", "only").table(shown=20),
        alt=f"Effect of each component added to all the others: {intervals}.",
        axis=f"{found.primary}, all minus all but it" + ("" if better else " (lower is better)"),
        legend=(("good", "helps"), ("bad", "hurts"), ("same", f"{VerdictCode.NOT_SIGNIFICANT.text}, or equivalent")),
        margin=found.margin,
    )
    return (figure,)
