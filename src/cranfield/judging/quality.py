"""How good the judgments of a book are: agreement, severity, accuracy, consistency, speed, drift."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cranfield.books.settings import Mode
from cranfield.books.store.schema import Action, Item, Origin, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, Coverage, RatingRow
from cranfield.judging.book.freeze import persons_testset
from cranfield.judging.book.grades import contents_of, rated_book
from cranfield.judging.raters.raters import RaterReport, rater_report
from cranfield.judging.selection import day_of, is_fast, repeats_of
from cranfield.stats.agreement import Coefficient, cohens_kappa

MIN_PAIRS = 50
"""Items judged by both, under which agreement is not reported: its interval says little."""
WEIGHTS = "cohen-quadratic"
PAIR = 2


@dataclass(frozen=True, slots=True)
class RaterLine:
    """A rater's work, next to that of the others."""

    rater: str
    kind: RaterKind
    n: int
    mean: float | None
    severity: float | None
    """Mean of the rater's grade minus the mean of the other persons', on items that both judged; below 0: stricter."""
    n_shared: int
    n_skipped: int
    median_ms: float | None
    n_fast: int
    n_gold: int
    n_gold_right: int
    n_repeats: int
    n_repeats_same: int
    kappa: Coefficient | None
    """Quadratic weights: of a model or rule with the median of the persons; None for persons, and for grades carried over,
    which are of no rater."""
    fits: bool | None
    """False: the others agree significantly better without this rater; None: not known."""


@dataclass(frozen=True, slots=True)
class DayLine:
    """A rater's day."""

    day: str
    rater: str
    n: int
    mean: float
    severity: float | None
    """As for the rater, on this day's items."""


@dataclass(frozen=True)
class Quality:
    """Everything that the dashboard shows."""

    coverage: Coverage
    report: RaterReport | None
    """Report on the persons' grades, without calibration items; None where there are none, or preferences."""
    raters: tuple[RaterLine, ...]
    """Persons, then models, rules and carried grades."""
    days: tuple[DayLine, ...]
    null_queries: tuple[str, ...]
    """Queries without a grade under the rule of the book: no judgment, or ties only. Their measures are null."""
    n_calibration: int = 0
    """Calibration items that each person should grade."""

    @property
    def uncalibrated(self) -> tuple[str, ...]:
        """Persons who graded fewer."""
        persons = (line for line in self.raters if line.kind == RaterKind.PERSON)
        return tuple(line.rater for line in persons if line.n_gold < self.n_calibration)

    @property
    def kappas(self) -> tuple[tuple[str, str, Coefficient], ...]:
        """Cohen's kappa with quadratic weights of each pair of raters with an item in common."""
        if self.report is None:
            return ()
        found = self.report.agreement
        if len(found.by_rater) == PAIR and found.n_twice:
            first, second = found.by_rater
            return ((first, second, found.coefficients[WEIGHTS]),)
        named = ((pair, next(c for c in pair.coefficients if c.name == WEIGHTS)) for pair in found.pairs)
        return tuple((pair.first, pair.second, kappa) for pair, kappa in named)

    @property
    def n_twice(self) -> int:
        """Items judged by two persons or more."""
        return self.report.agreement.n_twice if self.report else 0

    @property
    def too_few(self) -> bool:
        """Whether agreement is not reported."""
        return self.n_twice < MIN_PAIRS


def book_quality(store: Store, book: BookInfo) -> Quality:
    """Measure a book's judgments; persons alone count for agreement. Hidden repeats count for consistency alone."""
    rows = store.reading.ratings(book.id, skips=True)
    plain = tuple(row for row in rows if row.origin != Origin.REPEAT)
    judged = [row for row in plain if row.grade is not None]
    persons = [row for row in judged if row.kind == RaterKind.PERSON]
    report, null_queries = _report(store, book)
    means = _others(persons)
    seen = [row for row in plain if row.grade is not None or row.action == Action.SKIP]
    names = sorted({(row.kind != RaterKind.PERSON, row.kind, row.rater) for row in seen})
    fits = {each.rater: each.fits for each in report.misfit.raters} if report else {}
    lines = tuple(
        _line(name, RaterKind(kind), [row for row in rows if row.rater == name], means, fits=fits.get(name))
        for _, kind, name in names
    )
    n_known = store.reading.n_chosen(book.id, [Item.gold.is_not(None)])
    n_calibration = min(n_known, book.settings.calibration_first)
    return Quality(store.reading.coverage(book.id), report, lines, _days(persons, means), null_queries, n_calibration)


def _report(store: Store, book: BookInfo) -> tuple[RaterReport | None, tuple[str, ...]]:
    """Agreement as the manifest of a frozen version has it, and the queries without a grade."""
    if book.settings.mode is not Mode.GRADE:
        return None, ()
    contents = contents_of(store, book.id)
    grades = rated_book(contents).testset.grades
    empty = tuple(
        query.name
        for query in contents.queries
        if query.n_items and not any(grade >= 0 for grade in grades.get(query.name, {}).values())
    )
    testset = persons_testset(contents)
    if not any(testset.ratings.values()):
        return None, empty
    return rater_report(testset, rule=book.settings.consensus, seed=book.settings.seed), empty


Others = dict[int, dict[str, float]]
"""Item to rater to grade, of persons."""


def _others(persons: Sequence[RatingRow]) -> Others:
    found: Others = defaultdict(dict)
    for row in persons:
        if row.grade is not None:
            found[row.item_id][row.rater] = row.grade
    return found


def _severity(rows: Sequence[RatingRow], others: Others) -> tuple[float | None, int]:
    differences = []
    for row in rows:
        rest = [grade for rater, grade in others.get(row.item_id, {}).items() if rater != row.rater]
        if rest and row.grade is not None:
            differences.append(row.grade - fmean(rest))
    return (fmean(differences) if differences else None), len(differences)


def _kappa(rows: Sequence[RatingRow], others: Others) -> Coefficient:
    """With the lower median of the persons."""
    shared = [row for row in rows if others.get(row.item_id)]
    medians = [sorted(others[row.item_id].values()) for row in shared]
    people = [grades[(len(grades) - 1) // 2] for grades in medians]
    return cohens_kappa([row.grade for row in shared], people, WEIGHTS)


def _line(rater: str, kind: RaterKind, rows: Sequence[RatingRow], others: Others, *, fits: bool | None) -> RaterLine:
    judged = [row for row in rows if row.grade is not None and row.origin != Origin.REPEAT]
    severity, n_shared = _severity(judged, others)
    times = [row.duration_ms for row in judged if row.duration_ms is not None and row.action == Action.GRADE]
    gold = [row for row in judged if row.gold is not None and row.first_grade is not None]
    repeats = repeats_of(tuple(rows)).values()
    return RaterLine(
        rater,
        kind,
        len(judged),
        fmean(row.grade for row in judged if row.grade is not None) if judged else None,
        severity,
        n_shared,
        sum(row.action == Action.SKIP and row.origin != Origin.REPEAT for row in rows),
        median(times) if times else None,
        sum(is_fast(row) for row in judged),
        len(gold),
        sum(row.first_grade == row.gold for row in gold),
        len(repeats),
        sum(a == b for a, b in repeats),
        None if kind in {RaterKind.PERSON, RaterKind.CARRIED} else _kappa(judged, others),
        fits,
    )


def _days(persons: Sequence[RatingRow], others: Others) -> tuple[DayLine, ...]:
    groups: dict[tuple[str, str], list[RatingRow]] = defaultdict(list)
    for row in persons:
        groups[day_of(row.at), row.rater].append(row)
    return tuple(
        DayLine(day, rater, len(rows), fmean(row.grade or 0.0 for row in rows), _severity(rows, others)[0])
        for (day, rater), rows in sorted(groups.items())
    )
