"""Labels of systems and queries, and the tones and colours of values."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from string import ascii_uppercase

from cranfield.evaluation.classes import ClassDifference
from cranfield.evaluation.result import EvaluationResult
from cranfield.evaluation.values import MeasureComparison, StratumComparison
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Absence, TestSet
from cranfield.numbers import format_count
from cranfield.reporting.document import FARTHEST, Cell, Tone, TonedCell
from cranfield.results.testset import TestSetRecord
from cranfield.words import n_of, short_name

SIDES = ("A", "B")


def letters(n: int) -> list[str]:
    """Short names for n systems: letters, or numbers where there are too many."""
    return list(ascii_uppercase[:n]) if n <= len(ascii_uppercase) else [str(place) for place in range(1, n + 1)]


def short_names(names: Sequence[str]) -> list[str]:
    """Letters, or the names where there are more systems than letters."""
    return letters(len(names)) if len(names) <= len(ascii_uppercase) else list(names)


def lettered(names: Sequence[str]) -> list[str]:
    """`A plain`, `B weighted`, in the order given; the names alone where there are more systems than letters."""
    if len(names) > len(ascii_uppercase):
        return list(names)
    return [f"{letter} {name}" for letter, name in zip(letters(len(names)), names, strict=True)]


def testset_label(testset: TestSet | TestSetRecord) -> str:
    """`handbook 1.2, 60 queries`; with other judgments also whose, and of how many queries."""
    version = f" {testset.version}" if testset.version else ""
    n_queries = len(testset.queries) if isinstance(testset, TestSet) else testset.n_queries
    label = f"{short_name(testset.name)}{version}, {n_of(n_queries, 'queries', format_count)}"
    source = testset.other_judgments
    if source is None:
        return label
    counts = {"judged": source.n_judged, "by the test set": source.n_own, str(Absence.NEVER_JUDGED): source.n_unjudged}
    listed = ", ".join(f"{format_count(n)} {what}" for what, n in counts.items() if n)
    return f"{label} (judgments of {source.name}: {listed})"


def best_places(means: Sequence[float | None], measure: Measure) -> frozenset[int]:
    """Places of the best means; none where all are equal, and none for a diagnostic measure."""
    known = [mean * sign_of(measure) for mean in means if mean is not None]
    if len(set(known)) < 2 or CATALOGUE[measure.name].diagnostic:
        return frozenset()
    return frozenset(i for i, mean in enumerate(means) if mean is not None and mean * sign_of(measure) == max(known))


def mean_cells(means: Sequence[float | None], measure: Measure) -> tuple[Cell, ...]:
    """Means of one measure, one per system; the best is marked."""
    best = best_places(means, measure)
    return tuple(TonedCell(mean, "good") if place in best else mean for place, mean in enumerate(means))


def shaded(rows: Sequence[Sequence[float | None]], measures: Sequence[Measure]) -> list[tuple[Cell, ...]]:
    """Means, a row of systems for each measure: the best is marked, and each has its distance from the mean of its row.

    The distance is relative to that mean, as the rows are of different measures; the farthest has the strongest shade. A
    diagnostic measure has none.
    """
    distances: list[list[float]] = []
    for row, measure in zip(rows, measures, strict=True):
        known = [mean for mean in row if mean is not None]
        centre = fmean(known) if known and not CATALOGUE[measure.name].diagnostic else 0.0
        gains = [
            sign_of(measure) * (mean - centre) / abs(centre) if centre and mean is not None else 0.0 for mean in row
        ]
        distances.append(gains)
    farthest = max((abs(gain) for gains in distances for gain in gains), default=0.0)
    return [
        tuple(
            TonedCell(mean, "good" if place in best else "", round(FARTHEST * gain / farthest) if farthest else 0)
            for place, (mean, gain) in enumerate(zip(row, gains, strict=True))
        )
        for row, gains, best in zip(rows, distances, map(best_places, rows, measures), strict=True)
    ]


def tone_of(delta: float | None, measure: Measure) -> Tone:
    """Whether a difference is good news. One in a diagnostic is no news."""
    if not delta or CATALOGUE[measure.name].diagnostic:
        return ""
    return "good" if delta * sign_of(measure) > 0 else "bad"


def interval_tone(found: MeasureComparison | StratumComparison | ClassDifference, measure: Measure) -> Tone:
    """Good or bad news where the interval excludes zero; no news where it does not."""
    low, high = found.ci_low, found.ci_high
    if low is not None and low > 0:
        return tone_of(low, measure)
    return tone_of(high, measure) if high is not None and high < 0 else ""


def query_text(record: EvaluationResult, query_id: str) -> str:
    """Text of a query; empty where it has none."""
    query = (record.queries or {}).get(query_id)
    return "" if query is None else query.text


def has_texts(record: EvaluationResult) -> bool:
    """Whether any query has a text."""
    return any(query.text for query in (record.queries or {}).values())


def news_of(verdict: VerdictCode) -> Tone:
    """The tone of a difference: good or bad; neutral for any verdict that claims neither."""
    return verdict.tone if verdict.tone in {"good", "bad"} else ""
