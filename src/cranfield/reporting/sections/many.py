"""Sections on many systems: leaderboard, pairs, ranks, whether the measures agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cranfield.base.errors import UnknownNameError
from cranfield.base.numbers import (
    UNKNOWN,
    format_count,
    format_delta,
    format_effect,
    format_interval,
    format_level,
    format_p,
    format_value,
)
from cranfield.base.words import and_list, count_noun
from cranfield.evaluation.many import LeaderboardLine, PairComparison, Ranks
from cranfield.evaluation.result import ComparisonResult, EvaluationResult, ManyResult, SystemResult
from cranfield.evaluation.values import Evaluation, Summary
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.reporting.charts.differences import Whisker, whiskers
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.charts.systems import RankedSystem, mean_ranks
from cranfield.reporting.document import (
    MARKS,
    PILOT_STAMP,
    VOID_STAMP,
    WORSE_SYSTEMS,
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Details,
    Paragraph,
    Section,
    Swatch,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.measures import CLAIMS, interval_figure, margin_legend, why_mean_differs
from cranfield.reporting.sections.subject import Subject, lettered, letters, mean_cells, news_of, shaded, short_names
from cranfield.reporting.table_spec import Col, Cols, Columns, Row, TableSpec, by_place, interval
from cranfield.stats.table import TESTS

MAX_PAIRS_LISTED, MAX_PAIRS_DRAWN = 15, 45
"""Six systems have 15 pairs, ten have 45. More are listed on request only, and more are not drawn."""
EACH_SYSTEM = "Each system"
MAX_RANKS_DRAWN = 40
"""Systems in the picture of mean ranks; of more there is a table."""
MAX_IN_MATRIX = 12
"""Systems in the matrix of wins."""


def against_baseline(subject: Subject) -> Section | None:
    """Every other system against the baseline; None without one."""
    many = subject.many
    if many is None or not many.against_baseline:
        return None
    labels = dict(zip(many.names, subject.labels, strict=True))
    others = [labels[pair.second] for pair in many.against_baseline]
    caption = f"Each system minus {labels[many.baseline or '']}, {many.primary}"
    table = _pair_table(many.against_baseline, many, others, caption, with_tukey=False)
    if len(others) > MAX_PAIRS_DRAWN and not subject.show_pairs:
        found = Paragraph(f"{_against_counts(many)}. `--pairs` lists them.")
        return Section("against", f"Against {many.baseline}", (found, Details(EACH_SYSTEM, (table,))))
    blocks: tuple[Block, ...] = (
        Paragraph(
            f"p {many.adjusted} is adjusted over these {len(many.against_baseline)} comparisons, not over all pairs. "
            f"{_of_intervals(many)}"
        ),
        *_forest("against", many.against_baseline, many, others, "minus the baseline"),
        *((Details(EACH_SYSTEM, (table,), in_text=True),) if len(others) > MAX_PAIRS_LISTED else (table,)),
    )
    return Section("against", f"Against {many.baseline}", blocks)


def _against_counts(many: ManyResult) -> str:
    """`Of 142 systems 120 are better than sys000, 0 worse; no significant difference: 22`."""
    found = Counter(pair.verdict for pair in many.against_baseline)
    better, worse = found[VerdictCode.BETTER], found[VerdictCode.WORSE]
    rest = len(many.against_baseline) - better - worse
    return f"Of {len(many.against_baseline)} systems {better} are better than {many.baseline}, {worse} worse; no significant difference: {rest}"


def pairs(subject: Subject) -> Section | None:
    """All pairs: differences, adjusted p, wins and losses; only their number where they are many and not requested."""
    many = subject.many
    if many is None:
        return None
    n = len(many.pairs)
    n_significant = sum(pair.is_significant for pair in many.pairs)
    key_figure = f"{format_count(n_significant)} of {format_count(n)} pairs differ significantly"
    if n > MAX_PAIRS_LISTED and not subject.show_pairs:
        what = f"{key_figure} ({many.procedure})."
        tukey = f" {_tukey_count(many)}" if many.can_find else ""
        found = Paragraph(f"{what}{tukey} `--pairs` lists them; results.json has them all.")
        return Section("pairs", "Pairs", (found,), key_figure)
    short = dict(zip(many.names, short_names(many.names), strict=True))
    labels = [f"{short[pair.second]} minus {short[pair.first]}" for pair in many.pairs]
    note = f"p {many.adjusted} is adjusted over all {format_count(n)} pairs and decides. {_of_intervals(many)}"
    blocks: tuple[Block, ...] = (
        Paragraph(f"{note} {_tukey_count(many)}"),
        *_forest("pairs", many.pairs, many, labels, "second minus first"),
        _pair_table(many.pairs, many, labels, f"All pairs on {many.primary}"),
        *(
            (Details("Wins, ties and losses as a matrix", (_wins(many, subject.labels),)),)
            if len(short) <= MAX_IN_MATRIX
            else ()
        ),
    )
    return Section("pairs", "Pairs", blocks, key_figure)


def _of_intervals(many: ManyResult) -> str:
    """What the intervals of pairs are, and how they go with the adjusted p."""
    level = format_level(many.alpha)
    if many.adjust == "max-t":
        return (
            f"The {level} CIs are simultaneous (max-T): all hold together, and one excludes zero exactly where p max-T is at "
            f"most {many.alpha:g}."
        )
    return (
        f"The CI is of each pair alone ({TESTS[many.test].estimates}) and is not adjusted: it can exclude zero where "
        f"p Holm is not significant{why_mean_differs(many.test)}."
    )


def _tukey_count(many: ManyResult) -> str:
    """How many pairs Tukey's test finds, beside the declared procedure."""
    known = [pair.p_tukey for pair in many.pairs if pair.p_tukey is not None]
    n = sum(p <= many.alpha for p in known)
    return (
        f"For comparison, Tukey's HSD finds {format_count(n)} of {format_count(len(known))}: it assumes normal residuals with equal "
        "variances, and does not decide the verdict."
    )


def _pair_table(
    pairs: Sequence[PairComparison], many: ManyResult, labels: Sequence[str], caption: str, *, with_tukey: bool = True
) -> Table:
    """A row for each pair. Simultaneous intervals stand with the adjusted p alone; Tukey's family is always all systems."""
    is_of_mean = TESTS[many.test].is_of_mean
    columns: Columns[tuple[str, PairComparison]] = (
        Col("pair", lambda row: row[0]),
        Col("verdict", lambda row: TonedCell(row[1].verdict.text, news_of(row[1].verdict))),
        Col(TESTS[many.test].estimate, lambda row: _toned(row[1], row[1].estimate), "delta", when=not is_of_mean),
        Col("difference" if is_of_mean else "mean diff.", lambda row: _toned(row[1], row[1].delta), "delta"),
        Col(f"{format_level(many.alpha)} CI", lambda row: interval(row[1].result), "delta interval"),
        Col("p", lambda row: row[1].result.p_two_sided, "p", when=many.adjust != "max-t"),
        Col(f"p {many.adjusted}", lambda row: row[1].result.p_adjusted, "p"),
        Col("p Tukey", lambda row: row[1].p_tukey, "p", when=with_tukey),
        Col("wins / ties / losses", lambda row: f"{row[1].wins} / {row[1].ties} / {row[1].losses}", "count"),
    )
    return TableSpec(caption, list(zip(labels, pairs, strict=True)), columns).table()


def _toned(pair: PairComparison, value: float | None) -> TonedCell:
    return TonedCell(value, news_of(pair.verdict))


def _forest(
    name: str, pairs: Sequence[PairComparison], many: ManyResult, labels: Sequence[str], what: str
) -> tuple[Chart, ...]:
    """The figure of some pairs; nothing where there are too many."""
    if not 0 < len(pairs) <= MAX_PAIRS_DRAWN:
        return ()
    marks = [
        Whisker(label, pair.estimate, *interval(pair.result), news_of(pair.verdict))
        for label, pair in zip(labels, pairs, strict=True)
    ]
    verdicts = "; ".join(
        f"{label} {format_delta(pair.delta)}, {pair.verdict.text}" for label, pair in zip(labels, pairs, strict=True)
    )
    margin = many.margin
    figure = interval_figure(
        name,
        f"Differences in {many.primary}, with {format_level(many.alpha)} CIs",
        marks,
        _pair_table(pairs, many, labels, "Differences and their CIs"),
        alt=f"Differences with CIs: {verdicts}.",
        axis=f"{many.primary}, {what}",
        legend=(
            *CLAIMS,
            ("same", f"{VerdictCode.NOT_SIGNIFICANT.text}, by p {many.adjusted}"),
            *margin_legend(margin),
        ),
        margin=margin,
    )
    return (figure,)


def _wins(many: ManyResult, labels: Sequence[str]) -> Table:
    """Row against column: on how many queries the row wins, ties and loses."""
    found: dict[tuple[str, str], str] = {}
    for pair in many.pairs:
        found[pair.second, pair.first] = f"{pair.wins} / {pair.ties} / {pair.losses}"
        found[pair.first, pair.second] = f"{pair.losses} / {pair.ties} / {pair.wins}"
    short = dict(zip(many.names, short_names(many.names), strict=True))
    columns: Columns[tuple[str, str]] = (
        Col("wins / ties / losses", lambda row: row[0]),
        Cols(many.names, lambda row, other: found.get((row[1], other), UNKNOWN), "count", short.__getitem__),
    )
    caption = f"Queries that the row wins, ties and loses against the column, on {many.primary}"
    return TableSpec(caption, list(zip(labels, many.names, strict=True)), columns).table()


def ranks(subject: Subject) -> Section | None:
    """The tests of all systems at once, and mean ranks with their critical difference; None where no query counts."""
    many = subject.many
    if many is None or many.ranks is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for name, result in many.omnibus.items():
        extra = result.extra
        if name == "permutation":
            how = f"variance of the means; {format_count(int(extra['arrangements'] or 0))} arrangements"
        else:
            how = f"chi2, {extra.get('df')} degrees of freedom"
        rows.append((name, result.statistic, result.p_two_sided, how, result.note or ""))
        if extra.get("p_f") is not None:
            rows.append(("Iman-Davenport", extra.get("f"), extra.get("p_f"), "F of the same ranks", ""))
    columns = by_place({"test": "text", "statistic": "statistic", "p": "p", "of": "text", "note": "text"})
    caption = "Omnibus tests. A small p: not all systems are equal; it does not say which differ"
    about = Details("About the tests", (Bullets(ABOUT_THE_TESTS),))
    if len(many.names) > MAX_RANKS_DRAWN:
        means: Block = Details("Mean ranks", (_rank_table(many, many.ranks, subject.labels),))
    else:
        means = _rank_figure(many, many.ranks, subject.labels)
    key_figure = ", ".join(f"{name} p {format_p(result.p_two_sided)}" for name, result in many.omnibus.items())
    blocks = (TableSpec(caption, rows, columns).table(), means, about)
    return Section("ranks", "Omnibus tests and ranks", blocks, key_figure)


ABOUT_THE_TESTS = (
    (
        "permutation: if all systems are equal, each query's values can be exchanged between them; p is the share of "
        "rearrangements whose means spread at least as far."
    ),
    "friedman: rank test over queries: do some systems rank higher? Iman-Davenport's F is a less conservative form of it.",
    (
        "critical difference (Nemenyi): the difference in mean rank that is significant for all pairs at once. It uses ranks "
        "only, so it can disagree with the pairwise tests, which decide."
    ),
)


def _rank_table(many: ManyResult, ranks: Ranks, labels: Sequence[str]) -> Table:
    joined: dict[str, list[str]] = {name: [] for name in many.names}
    for number, group in enumerate(ranks.groups, start=1):
        for name in group:
            joined[name].append(str(number))
    columns: Columns[tuple[str, str]] = (
        Col("system", lambda row: row[1]),
        Col("mean rank", lambda row: f"{ranks.means[row[0]]:.2f}", "average"),
        Col("bars", lambda row: _bars(joined[row[0]])),
    )
    caption = (
        f"Mean ranks. Systems that share a bar are within the critical difference of {ranks.critical_difference:.2f}"
    )
    return TableSpec(caption, _by_rank(many, ranks, labels), columns).table()


def _by_rank(many: ManyResult, ranks: Ranks, labels: Sequence[str]) -> list[tuple[str, str]]:
    """Name and label of each system, the best mean rank first."""
    return sorted(zip(many.names, labels, strict=True), key=lambda row: ranks.means[row[0]])


def _bars(numbers: Sequence[str]) -> str:
    """Numbers of bars, which are neighbours: `1, 2`, or `3 to 9`."""
    return ", ".join(numbers) or UNKNOWN if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"


def _rank_figure(many: ManyResult, ranks: Ranks, labels: Sequence[str]) -> Chart:
    ordered = _by_rank(many, ranks, labels)
    names = [name for name, _ in ordered]
    drawn = [RankedSystem(label, ranks.means[name], name in many.best) for name, label in ordered]
    groups = [
        (min(names.index(name) for name in group), max(names.index(name) for name in group)) for group in ranks.groups
    ]
    spec, narrow = (mean_ranks(drawn, groups, ranks.critical_difference, screen) for screen in SCREENS)
    means = "; ".join(f"{label} {ranks.means[name]:.2f}" for name, label in ordered)
    bars = "; ".join(f"no significant difference between {and_list(group)}" for group in ranks.groups) or "all differ"
    return Chart(
        "ranks",
        f"Mean ranks by {many.primary}, 1 is best",
        f"Mean ranks: {means}. Critical difference {format_value(ranks.critical_difference)}: {bars}.",
        spec,
        narrow,
        _rank_table(many, ranks, labels),
        (("good", "among the best (pairwise tests)"), ("same", "not among the best")),
        in_text=True,
    )


def measure_agreement(subject: Subject) -> Section | None:
    """Kendall's tau between the orders that the measures give the systems; None where there is one measure."""
    many = subject.many
    if many is None or not many.orders:
        return None
    measures = list(dict.fromkeys(measure for agreement in many.orders for measure in (agreement.a, agreement.b)))
    tau: dict[tuple[Measure, Measure], float | None] = {(measure, measure): 1.0 for measure in measures}
    for agreement in many.orders:
        tau[agreement.a, agreement.b] = tau[agreement.b, agreement.a] = agreement.tau
    columns: Columns[Measure] = (Col("tau", str), Cols(measures, lambda row, column: tau[row, column], "effect"))
    note = (
        f"Kendall's tau between the rankings of the {len(many.names)} systems by two measures: +1 is the same order, −1 the "
        "reverse. With few systems tau takes few values."
    )
    known = [agreement.tau for agreement in many.orders if agreement.tau is not None]
    return Section(
        "orders",
        "Agreement of the measures",
        (Paragraph(note), TableSpec("Kendall's tau of the system rankings", measures, columns).table()),
        f"tau from {format_effect(min(known))} to {format_effect(max(known))}" if known else "no tau",
    )


SORTS = ("mean", "name", "given", "rank")
"""Orders of a leaderboard, besides every measure: `rank` is the mean rank."""
SHOWN_MEASURES = 3
"""Measures beside the primary one in the leaderboard; all are in the table below it and in the CSV of means."""
MAX_DRAWN = 40
"""Systems in the picture of means."""
LEGEND: tuple[tuple[Swatch, str], ...] = (
    ("good", "best: no system is significantly better"),
    ("same", "not among the best"),
)
MEANS_CAPTION = "Means of every measure. * primary measure"
BoardLine = tuple[str, LeaderboardLine, Summary]
"""Label and line of a system, and its primary measure."""
FEW_SYSTEMS = 8
"""Up to so many systems the means of every measure have a column for each system, and are in plain text too."""


def leaderboard(subject: Subject) -> Section | None:
    """Every system with its mean, interval and group, the best first; then all measures. None without many systems."""
    many = subject.many
    if many is None:
        return None
    spec, ranks = _board(many, subject.sort), many.ranks
    board, few = spec.table(marks=_marks_of(many)), len(many.names) <= FEW_SYSTEMS
    spread: Columns[BoardLine] = (
        Col("system", lambda row: row[0]),
        Col("median", lambda row: row[2].median, "value"),
        Col("std. dev.", lambda row: row[2].std, "value"),
        Col("mean rank", lambda row: UNKNOWN if ranks is None else f"{ranks.means[row[1].system]:.2f}", "average"),
    )
    caption = f"{many.primary} over the queries. Mean rank: 1 is best"
    blocks = (
        *_means_figure(many, subject.sort, board),
        board,
        _means(many) if few else Details("Means of every measure", (_means_by_system(many, subject.sort),)),
        Details(
            "Median, standard deviation and mean rank",
            (TableSpec(caption, spec.rows, spread).table(),),
            in_text=few,
        ),
    )
    return Section("systems", "Systems", blocks)


def board_lines(many: ManyResult, sort: str) -> list[BoardLine]:
    """The systems in the order asked for: label, line, and the primary measure.

    Args:
        many: the comparison.
        sort: one of `SORTS`, or a measure.

    Raises:
        UnknownNameError: neither.
    """
    labels = dict(zip(many.names, lettered(many.names), strict=True))
    lines, found = {line.system: line for line in many.leaderboard}, many.means[many.primary]
    return [(labels[name], lines[name], found[name]) for name in order_of(many, sort)]


def order_of(many: ManyResult, sort: str) -> list[str]:
    """Names of the systems in the order asked for, as of `board_lines`."""
    if sort == "mean":
        return [line.system for line in many.leaderboard]
    if sort == "given":
        return list(many.names)
    if sort == "name":
        return sorted(many.names)
    if sort == "rank":
        ranks = many.ranks.means if many.ranks is not None else dict.fromkeys(many.names, 0.0)
        return sorted(many.names, key=lambda name: ranks[name])
    measure = _measure_of(sort, many.means, SORTS)
    means = many.means[measure]
    return sorted(many.names, key=lambda name: -(means[name].mean or 0.0) * sign_of(measure))


def _measure_of(sort: str, measures: Iterable[Measure], others: Sequence[str]) -> Measure:
    """The measure of an order, spelled in any case; `others` are the orders by something else."""
    known = {str(measure).lower(): measure for measure in measures}
    if sort.lower() not in known:
        raise UnknownNameError.among("order", sort, (*others, *map(str, known.values())))
    return known[sort.lower()]


def check_order(sort: str, measures: Iterable[Measure]) -> None:
    """Refuse an order that is neither one of `SORTS` nor a measure.

    Raises:
        UnknownNameError: neither.
    """
    if sort not in SORTS:
        _measure_of(sort, measures, SORTS)


def sorted_evaluations(evaluations: Sequence[Evaluation], sort: str) -> list[Evaluation]:
    """Systems that are not compared, by name or by the mean of a measure, the best first; without a mean last.

    Raises:
        UnknownNameError: neither.
    """
    if sort == "name":
        return sorted(evaluations, key=lambda each: each.name)
    measures = list(dict.fromkeys(measure for each in evaluations for measure in each.measures))
    measure = _measure_of(sort, measures, ("given", "name"))

    def badness(each: Evaluation) -> tuple[bool, float]:
        mean = each.summaries[measure].mean if measure in each.summaries else None
        return mean is None, -sign_of(measure) * (mean or 0.0)

    return sorted(evaluations, key=badness)


def _board(many: ManyResult, sort: str) -> TableSpec[BoardLine]:
    """A line for each system: in reports with the means of few measures, in CSV with those of all."""
    measures = [m for m in many.means if m != many.primary and not CATALOGUE[m.name].diagnostic][:SHOWN_MEASURES]
    others = {
        measure: dict(
            zip(many.names, mean_cells([row.mean for row in many.means[measure].values()], measure), strict=True)
        )
        for measure in measures
    }

    of_primary = dict(zip(many.names, _primary_cells(many), strict=True))

    def role(row: BoardLine) -> str:
        roles = {"best": row[1].system in many.best, "baseline": row[1].system == many.baseline}
        return ", ".join(word for word, holds in roles.items() if holds)

    columns: Columns[BoardLine] = (
        Col("#", lambda row: row[1].rank, "count", "rank"),
        Col("system", lambda row: row[0], only="report"),
        Col("system", lambda row: row[1].system, only="tidy"),
        Col("group", lambda row: row[1].group or UNKNOWN, only="report"),
        Col("group", lambda row: row[1].group, only="tidy"),
        Col(str(many.primary), lambda row: of_primary[row[1].system], "value", only="report"),
        Col(f"{format_level(many.alpha)} CI", lambda row: interval(row[2]), "interval", only="report"),
        Col("better than", lambda row: row[1].better_than, "count", "better_than"),
        Col("worse than", lambda row: row[1].worse_than, "count", "worse_than"),
        Cols(measures, lambda row, measure: others[measure][row[1].system], "value", only="report"),
        Col("role", role, only="report"),
        Col("best", lambda row: int(row[1].system in many.best), only="tidy"),
        _tidy_means(many.means, lambda row, measure: many.means[measure][row[1].system]),
    )
    queries = f"{format_count(many.n)} queries that every system has a value for"
    ordered = "" if sort == "mean" else f", by {sort}"
    groups = (
        "Two systems share a letter exactly where they do not differ significantly; better and worse than: number of systems, "
        "by the adjusted p; best: no system is significantly better. The CI is of each mean alone"
        if has_groups(many)
        else "No groups: no difference could have been significant"
    )
    return TableSpec(f"{many.primary} on the {queries}{ordered}. {groups}", board_lines(many, sort), columns)


def _means_figure(many: ManyResult, sort: str, board: Table) -> tuple[Chart, ...]:
    """A row for each system, its mean and interval, with the letters at its end; nothing where there are too many."""
    if len(many.names) > MAX_DRAWN or not many.n:
        return ()
    drawn = board_lines(many, sort)
    marks = [
        Whisker(label, about.mean, about.ci_low, about.ci_high, "good" if line.system in many.best else "", line.group)
        for label, line, about in drawn
    ]
    means = "; ".join(
        f"{label} {format_value(about.mean)} ({format_interval(interval(about))}) {line.group}".rstrip()
        for label, line, about in drawn
    )
    spec, narrow = (whiskers(marks, str(many.primary), screen, of_means=True) for screen in SCREENS)
    title = f"Mean {many.primary} with {format_level(many.alpha)} CI"
    figure = Chart(
        "means",
        f"{title}; systems that share a letter do not differ significantly" if has_groups(many) else title,
        f"Means with CIs and letters: {means}.",
        spec,
        narrow,
        board,
        LEGEND if many.best else (),
        table_follows=True,
    )
    return (figure,)


def has_groups(many: ManyResult) -> bool:
    """Whether any difference could have been significant."""
    return any(line.group for line in many.leaderboard)


def _means(many: ManyResult) -> Table:
    """A row for each measure, a column for each system."""
    labels = lettered(many.names)
    columns: Columns[tuple[Measure, tuple[TonedCell, ...]]] = (
        Col("measure", lambda row: _starred(many, row[0])),
        Cols(range(len(labels)), lambda row, place: row[1][place], "value", labels.__getitem__),
        Col("n", lambda row: next(iter(many.means[row[0]].values())).n, "count"),
    )
    return TableSpec(MEANS_CAPTION, list(_shaded(many).items()), columns).table(marks=MARKS)


def _shaded(many: ManyResult) -> dict[Measure, tuple[TonedCell, ...]]:
    """The means of every measure, each coloured by its distance from the mean of all systems."""
    means = [[summary.mean for summary in row.values()] for row in many.means.values()]
    return dict(zip(many.means, shaded(means, list(many.means)), strict=True))


def _means_by_system(many: ManyResult, sort: str) -> Table:
    """A row for each system, a column for each measure."""
    cells = {measure: dict(zip(many.names, row, strict=True)) for measure, row in _shaded(many).items()}
    columns: Columns[BoardLine] = (
        Col("system", lambda row: row[0]),
        Cols(cells, lambda row, measure: cells[measure][row[1].system], "value", partial(_starred, many)),
    )
    return TableSpec(MEANS_CAPTION, board_lines(many, sort), columns).table(marks=MARKS)


def _starred(many: ManyResult, measure: Measure) -> str:
    return f"* {measure}" if measure == many.primary else str(measure)


def _primary_cells(many: ManyResult) -> list[TonedCell]:
    """The primary mean of every system, with the systems that are significantly worse where systems have letters."""
    cells = mean_cells([summary.mean for summary in many.means[many.primary].values()], many.primary)
    return _with_superscripts(cells, many.names, many) if _has_letters(many) else list(cells)


def _with_superscripts(cells: Iterable[TonedCell], names: Sequence[str], record: EvaluationResult) -> list[TonedCell]:
    """Cells of the systems `names` with the letters or numbers that those which are significantly worse have in the report."""
    label, worse = dict(zip(record.names, letters(len(names)), strict=True)), _worse_systems(record)
    return [
        replace(cell, better_than=tuple(label[each] for each in record.names if each in worse.get(name, ())))
        for name, cell in zip(names, cells, strict=True)
    ]


def _marks_of(many: ManyResult) -> str:
    return f"{MARKS}. {WORSE_SYSTEMS} in {many.primary}" if has_groups(many) and _has_letters(many) else MARKS


def _has_letters(many: ManyResult) -> bool:
    return short_names(many.names) != list(many.names)


def leaderboard_of(subject: Subject) -> Table:
    """The systems of a report by their measures, best first where many were compared, as a paper shows them."""
    record, many, pair = subject.record, subject.many, subject.pair
    names = record.names if many is None else [line.system for line in many.leaderboard]
    measures = list(dict.fromkeys(measure for each in record.systems for measure in each.measures))
    primary = many.primary if many is not None else None if pair is None else pair.primary
    measures.sort(key=lambda measure: measure != primary)
    if many is not None:
        means = {name: {measure: found[name].mean for measure, found in many.means.items()} for name in names}
    else:
        means = {
            each.name: {measure: found.mean for measure, found in each.measures.items()} for each in record.systems
        }
    columns = [list(mean_cells([means[name].get(measure) for name in names], measure)) for measure in measures]
    label = dict(zip(record.names, letters(len(names)), strict=True))
    if primary is not None:
        columns[0] = _with_superscripts(columns[0], names, record)
    if subject.is_void:
        columns = [[replace(cell, mark="", better_than=()) for cell in column] for column in columns]
    return Table(
        (Column(""), Column("System"), *(Column(str(measure), "value") for measure in measures)),
        [(label[name], name, *row) for name, *row in zip(names, *columns, strict=True)],
        ". ".join(_about_leaderboard(subject)),
        shown=None,
        marks=". ".join(_leaderboard_marks(subject)),
    )


def _worse_systems(record: EvaluationResult) -> Mapping[str, set[str]]:
    """System to those that are significantly worse in the primary measure."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    if isinstance(record, ComparisonResult):
        sides = (record.candidate, record.baseline)
        for better, worse in {VerdictCode.BETTER: [sides], VerdictCode.WORSE: [sides[::-1]]}.get(record.verdict, []):
            found[better].add(worse)
    for pair in record.pairs if isinstance(record, ManyResult) else ():
        if pair.is_significant:
            is_better = pair.verdict is VerdictCode.BETTER
            better, worse = (pair.second, pair.first) if is_better else (pair.first, pair.second)
            found[better].add(worse)
    return found


def _about_leaderboard(subject: Subject) -> Iterator[str]:
    """What the table shows; first, where the scores do not count, that they do not."""
    record = subject.record
    if subject.is_void:
        yield f"{VOID_STAMP[0].upper()}{VOID_STAMP[1:]}"
    if subject.pilot:
        yield PILOT_STAMP
    n = max((system.n_queries for system in record.systems), default=0)
    yield f"Means on {record.testset.name}, {count_noun(n if subject.many is None else subject.many.n, 'queries')}"
    n_failed = sum(system.n_failed for system in record.systems)
    if n_failed:
        yield f"{count_noun(n_failed, 'calls')} failed, {record.systems[0].failures_count or 'counted as they were'}"


def _leaderboard_marks(subject: Subject) -> Iterator[str]:
    """What the marks mean, and the test that the superscripts come of."""
    record, compared = subject.record, subject.compared
    if len(record.systems) > 1 and not subject.is_void:
        yield MARKS
    if isinstance(compared, ManyResult):
        yield f"{WORSE_SYSTEMS} in {compared.primary} ({compared.procedure}, alpha {compared.alpha:g})"
    elif isinstance(compared, ComparisonResult):
        how = f"{compared.test} test, alpha {compared.alpha:g}"
        yield f"A superscript names the system that is significantly worse in {compared.primary} ({how})"


def means_table(result: EvaluationResult, sort: str = "mean") -> Table:
    """A line for each system, for CSV: its rank and group where many were compared, and every mean with its interval.

    Raises:
        UnknownNameError: no such order.
    """
    if isinstance(result, ManyResult):
        return _board(result, sort).tidy()
    columns: Columns[SystemResult] = (
        Col("system", lambda row: row.name),
        _tidy_means(
            dict.fromkeys(measure for each in result.systems for measure in each.measures),
            lambda row, measure: row.measures.get(measure),
        ),
    )
    return TableSpec("", result.systems, columns).tidy()


def _tidy_means(measures: Iterable[Measure], summary: Callable[[Row, Measure], Summary | None]) -> Cols[Row]:
    """Columns of CSV: the mean of each measure and the ends of its interval."""

    def cell(row: Row, key: tuple[Measure, str]) -> float | None:
        found = summary(row, key[0])
        return None if found is None else {"": found.mean, " ci_low": found.ci_low, " ci_high": found.ci_high}[key[1]]

    keys = [(measure, part) for measure in measures for part in ("", " ci_low", " ci_high")]
    return Cols(keys, cell, title=lambda key: f"{key[0]}{key[1]}", only="tidy")
