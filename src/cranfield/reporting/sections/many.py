"""Many systems: the verdict, the systems, their pairs, their ranks, and whether the measures agree on their order."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.many_values import ManyComparison, PairComparison, Ranks
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE
from cranfield.numbers import UNKNOWN, format_count, format_delta, format_level, format_p, format_value
from cranfield.reporting.charts import many as charts_many
from cranfield.reporting.charts import single as charts
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Fact,
    Figure,
    Paragraph,
    Section,
    Swatch,
    Table,
    Toned,
    VerdictBlock,
)
from cranfield.reporting.sections.naming import colour_of, letters, news_of
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS

MOST_PAIRS_DRAWN = 45
"""Ten systems have as many."""


def labels_of(many: ManyComparison) -> list[str]:
    """`A plain`, `B weighted`, in the order given."""
    return [f"{letter} {name}" for letter, name in zip(letters(len(many.names)), many.names, strict=True)]


def verdict_of_many(many: ManyComparison) -> VerdictBlock:
    """Which systems are best, and the numbers that rests on."""
    verdict = many.verdict
    tests = many.omnibus
    told = sum(pair.verdict is not VerdictCode.NOT_SIGNIFICANT for pair in many.pairs)
    facts = (
        Fact("Systems", str(len(many.names)), f"{len(verdict.best)} best" if verdict.best else ""),
        Fact("Pairs told apart", f"{told} of {len(many.pairs)}", f"{many.options.test}, Holm"),
        Fact("Queries", str(len(many.query_ids)), f"{len(many.dropped)} left out" if many.dropped else "all of them"),
        Fact("All alike?", format_p(tests["permutation"].p_two_sided), "p, permutation of all"),
        Fact("Ranks alike?", format_p(tests["friedman"].p_two_sided), "p, Friedman"),
    )
    return VerdictBlock(
        verdict.name, verdict.sentence, verdict.code.tone, facts, verdict.reasons, verdict.disagreements
    )


def systems_section(many: ManyComparison) -> Section:
    """Every system with its mean and mean rank, the best first; then all measures."""
    labels = labels_of(many)
    level = format_level(many.options.alpha)
    ranks = many.ranks.means if many.ranks is not None else None
    rows: list[tuple[Cell, ...]] = []
    for place in many.best_first:
        about, name = many.summaries[many.primary][place], many.names[place]
        role = [
            word for word, holds in (("best", name in many.verdict.best), ("baseline", name == many.baseline)) if holds
        ]
        cells: tuple[Cell, ...] = (about.mean, (about.ci_low, about.ci_high), about.median, about.std)
        rows.append((labels[place], *cells, UNKNOWN if ranks is None else f"{ranks[place]:.2f}", ", ".join(role)))
    columns = (
        Column("system"),
        Column("mean", "value"),
        Column(f"{level} CI", "interval"),
        Column("median", "value"),
        Column("std. dev.", "value"),
        Column("mean rank", "average"),
        Column("is"),
    )
    n = len(many.query_ids)
    first = Table(columns, rows, f"{many.primary} on the {n} queries that every system has a value for", shown=None)
    return Section("systems", "Systems", (first, _measures(many, labels)))


def _measures(many: ManyComparison, labels: Sequence[str]) -> Table:
    """A row a measure, a column a system; the best mean of each is marked."""
    columns = (Column("measure"), *(Column(label, "value") for label in labels), Column("n", "count"))
    rows: list[tuple[Cell, ...]] = []
    for measure, row in many.summaries.items():
        spec = CATALOGUE[measure.name]
        means = [about.mean for about in row]
        known = [mean for mean in means if mean is not None]
        best = (max if spec.higher_is_better else min)(known, default=None)
        marked = not spec.diagnostic and len(set(known)) > 1
        cells: list[Cell] = [Toned(mean, "good") if marked and mean == best else mean for mean in means]
        rows.append((f"* {measure}" if measure == many.primary else str(measure), *cells, row[0].n))
    return Table(columns, rows, "Means of every measure. * decides: the primary measure", shown=None)


def against_section(many: ManyComparison) -> Section | None:
    """Every other system against the baseline; None without one."""
    if not many.against:
        return None
    said = f"p Holm is adjusted over these {len(many.against)} comparisons, and not over all pairs."
    called = dict(zip(many.names, labels_of(many), strict=True))
    blocks: list[Block] = [Paragraph(said)]
    labels = [called[pair.second] for pair in many.against]
    if figure := _forest("against", many.against, many, labels, "minus the baseline"):
        blocks.append(figure)
    said = f"Each system minus {called[many.baseline or '']}, {many.primary}"
    blocks.append(_pair_table(many.against, many, labels, said))
    return Section("against", f"Against {many.baseline}", tuple(blocks))


def pairs_section(many: ManyComparison) -> Section:
    """All pairs: differences, adjusted p, wins and losses."""
    short = dict(zip(many.names, letters(len(many.names)), strict=True))
    n = len(many.pairs)
    spec = TESTS[many.options.test]
    blocks: list[Block] = [
        Paragraph(
            f"p Holm is adjusted over all {n} pairs, and decides. The interval is of each pair alone ({spec.estimates}) and is "
            "not adjusted: it can exclude zero where p Holm does not."
        )
    ]
    labels = [f"{short[pair.second]} minus {short[pair.first]}" for pair in many.pairs]
    if figure := _forest("pairs", many.pairs, many, labels, "second minus first"):
        blocks.append(figure)
    blocks.append(_pair_table(many.pairs, many, labels, f"All pairs on {many.primary}"))
    wins = _wins(many)
    blocks.append(Details("Wins, ties and losses as a matrix", (wins,)))
    return Section("pairs", "Pairs", tuple(blocks))


def _pair_table(pairs: Sequence[PairComparison], many: ManyComparison, labels: Sequence[str], caption: str) -> Table:
    columns = (
        Column("which"),
        Column("is"),
        Column("difference", "delta"),
        Column(f"{format_level(many.options.alpha)} CI", "delta interval"),
        Column("p", "p"),
        Column("p Holm", "p"),
        Column("wins / ties / losses", "count"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            Toned(pair.verdict.text, news_of(pair.verdict)),
            Toned(pair.delta, news_of(pair.verdict)),
            (pair.result.ci_low, pair.result.ci_high),
            pair.result.p_two_sided,
            pair.result.p_adjusted,
            f"{pair.wins} / {pair.ties} / {pair.losses}",
        )
        for label, pair in zip(labels, pairs, strict=True)
    ]
    return Table(columns, rows, caption, shown=None)


def _forest(
    name: str, pairs: Sequence[PairComparison], many: ManyComparison, labels: Sequence[str], what: str
) -> Figure | None:
    if not 0 < len(pairs) <= MOST_PAIRS_DRAWN:
        return None
    is_of_mean = TESTS[many.options.test].estimates == MEAN_DIFFERENCE
    marks = [
        charts.Whisker(
            label,
            pair.delta if is_of_mean else None,
            pair.result.ci_low,
            pair.result.ci_high,
            colour_of(news_of(pair.verdict)),
        )
        for label, pair in zip(labels, pairs, strict=True)
    ]
    margin = many.options.margin
    spec, narrow = (charts.whiskers(marks, f"{many.primary}, {what}", screen, margin) for screen in charts.SCREENS)
    legend: list[tuple[Swatch, str]] = [
        ("good", "better"),
        ("bad", "worse"),
        ("same", f"{VerdictCode.NOT_SIGNIFICANT.text}, by p Holm"),
    ]
    if margin is not None:
        legend.append(("band", f"margin of ±{margin:g}"))
    said = "; ".join(
        f"{label} {format_delta(pair.delta)}, {pair.verdict.text}" for label, pair in zip(labels, pairs, strict=True)
    )
    return Figure(
        name,
        f"Differences in {many.primary}, with {format_level(many.options.alpha)} CIs",
        f"Differences with their intervals: {said}.",
        spec,
        narrow,
        _pair_table(pairs, many, labels, "Differences and their intervals"),
        tuple(legend),
        told_beside=True,
    )


def _wins(many: ManyComparison) -> Table:
    """Row against column: on how many queries the row wins, ties and loses."""
    found: dict[tuple[str, str], str] = {}
    for pair in many.pairs:
        found[pair.second, pair.first] = f"{pair.wins} / {pair.ties} / {pair.losses}"
        found[pair.first, pair.second] = f"{pair.losses} / {pair.ties} / {pair.wins}"
    short = letters(len(many.names))
    columns = (Column("wins / ties / losses"), *(Column(letter, "count") for letter in short))
    rows: list[tuple[Cell, ...]] = [
        (label, *(found.get((name, other), UNKNOWN) for other in many.names))
        for label, name in zip(labels_of(many), many.names, strict=True)
    ]
    return Table(
        columns, rows, f"Queries that the row wins, ties and loses against the column, on {many.primary}", shown=None
    )


def ranks_section(many: ManyComparison) -> Section | None:
    """The tests of all systems at once, and mean ranks with their critical difference; None where no query counts."""
    if many.ranks is None:
        return None
    rows: list[tuple[Cell, ...]] = []
    for name, result in many.omnibus.items():
        about = result.extra
        if name == "permutation":
            how = f"variance of the means; {format_count(int(about['arrangements'] or 0))} arrangements"
        else:
            how = f"chi2, {about.get('df')} degrees of freedom"
        rows.append((name, result.statistic, result.p_two_sided, how, result.note or ""))
        if about.get("p_f") is not None:
            rows.append(("Iman-Davenport", about.get("f"), about.get("p_f"), "F of the same ranks", ""))
    columns = (Column("test"), Column("statistic", "statistic"), Column("p", "p"), Column("of"), Column("note"))
    alike = Table(columns, rows, "Are all systems alike? A small p says that some are not, and not which", shown=None)
    asked = Details("What these tests ask", (Bullets(QUESTIONS),))
    return Section("ranks", "All at once", (alike, _rank_figure(many, many.ranks), asked))


QUESTIONS = (
    (
        "permutation: if the systems were alike, each query's values could as well belong to them in another order. How often "
        "do the means then spread as far?"
    ),
    "friedman: do some systems rank higher than others, query by query? Iman and Davenport's F is the same with less caution.",
    (
        "critical difference (Nemenyi): how far mean ranks have to lie apart, for all pairs at once. It looks at ranks and not "
        "at sizes of differences, so it can disagree with the pairs of the declared test, which decide."
    ),
)


def _rank_figure(many: ManyComparison, ranks: Ranks) -> Figure:
    order = sorted(range(len(many.names)), key=lambda place: (ranks.means[place], place))
    labels = labels_of(many)
    names = [many.names[place] for place in order]
    drawn = [
        charts_many.Ranked(labels[place], ranks.means[place], many.names[place] in many.verdict.best) for place in order
    ]
    groups = [
        (min(names.index(name) for name in group), max(names.index(name) for name in group)) for group in ranks.groups
    ]
    spec, narrow = (
        charts_many.rank_picture(drawn, groups, ranks.critical_difference, screen) for screen in charts.SCREENS
    )
    joined: dict[str, list[str]] = {name: [] for name in names}
    for number, group in enumerate(ranks.groups, start=1):
        for name in group:
            joined[name].append(str(number))
    rows: list[tuple[Cell, ...]] = [
        (labels[place], f"{ranks.means[place]:.2f}", ", ".join(joined[many.names[place]]) or UNKNOWN) for place in order
    ]
    said = "; ".join(f"{labels[place]} {ranks.means[place]:.2f}" for place in order)
    bars = "; ".join(f"{' and '.join(group)} are not told apart" for group in ranks.groups) or "all are told apart"
    return Figure(
        "ranks",
        f"Mean ranks by {many.primary}, 1 is best",
        f"Mean ranks: {said}. Critical difference {format_value(ranks.critical_difference)}: {bars}.",
        spec,
        narrow,
        Table(
            (Column("system"), Column("mean rank", "average"), Column("bars")),
            rows,
            f"Mean ranks. Systems that share a bar are within the critical difference of {ranks.critical_difference:.2f}",
            shown=None,
        ),
        (
            ("good", "among the best, by the pairs"),
            ("same", "not"),
        ),
        pasted=True,
    )


def orders_section(many: ManyComparison) -> Section | None:
    """Kendall's tau between the orders that the measures give the systems; None where there is one measure."""
    if not many.agreements:
        return None
    measures = list(dict.fromkeys(measure for one in many.agreements for measure in (one.a, one.b)))
    tau = {(one.a, one.b): one.tau for one in many.agreements} | {(one.b, one.a): one.tau for one in many.agreements}
    columns = (Column("tau"), *(Column(str(measure), "effect") for measure in measures))
    rows: list[tuple[Cell, ...]] = [
        (str(row), *(1.0 if row == column else tau[row, column] for column in measures)) for row in measures
    ]
    said = (
        f"Kendall's tau between the orders in which two measures put the {len(many.names)} systems by their means: +1 is the "
        "same order, −1 the opposite one. Of few systems it takes few values, and says little."
    )
    return Section(
        "orders",
        "Do the measures agree?",
        (Paragraph(said), Table(columns, rows, "Agreement of the measures on the order of the systems", shown=None)),
    )
