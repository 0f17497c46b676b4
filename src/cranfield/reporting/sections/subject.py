"""What a report is about: systems and test set, labels and tones, where everything came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from statistics import fmean
from string import ascii_uppercase
from typing import Any, TypeVar

from cranfield.base.errors import InputError
from cranfield.base.numbers import format_count, format_percent, format_plain, format_value
from cranfield.base.words import count_noun, short_name
from cranfield.evaluation.classes import ClassDifference
from cranfield.evaluation.evaluate import StrataContrast
from cranfield.evaluation.latency import NOT_MADE, CallsResult, calls_of
from cranfield.evaluation.many import ManyComparison
from cranfield.evaluation.options.blocks import LatencyRule
from cranfield.evaluation.result import (
    ComparisonResult,
    EvaluationResult,
    ManyResult,
    QueryRecord,
    SystemResult,
    evaluations_of,
    result_from,
    result_of,
)
from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.values import Comparison, Evaluation, MeasureComparison, StratumComparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.formats.io.files import read_bytes
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.model import Absence, TestSet
from cranfield.model.results import TestSetRecord, from_jsonable
from cranfield.reporting.document import (
    CALLS,
    FARTHEST,
    MADE_BY,
    Block,
    Bullets,
    Code,
    Details,
    KeyValues,
    Mark,
    Section,
    Tone,
    TonedCell,
)
from cranfield.reporting.table_spec import TableSpec, by_place
from cranfield.stats.table import ADJUSTMENTS, TESTS

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
    label = f"{short_name(testset.name)}{version}, {count_noun(n_queries, 'queries', format_count)}"
    source = testset.other_judgments
    if source is None:
        return label
    counts = {"judged": source.n_judged, "by the test set": source.n_own, str(Absence.NEVER_JUDGED): source.n_unjudged}
    listed = ", ".join(f"{format_count(n)} {what}" for what, n in counts.items() if n)
    return f"{label} (judgments of {source.name}: {listed})"


def marks_of(means: Sequence[float | None], measure: Measure) -> list[Mark]:
    """The best and the second mean, as they are printed; none where all are equal, and none of a diagnostic measure."""
    known = {format_value(mean): mean * sign_of(measure) for mean in means if mean is not None}
    if len(known) < 2 or CATALOGUE[measure.name].diagnostic:
        return [""] * len(means)
    best, second, *_ = sorted(known, key=known.__getitem__, reverse=True)
    marks: Mapping[str, Mark] = {best: "best", second: "second"}
    return [marks.get(format_value(mean), "") for mean in means]


def best_places(means: Sequence[float | None], measure: Measure) -> frozenset[int]:
    """Places of the best means, as of `marks_of`."""
    return frozenset(place for place, mark in enumerate(marks_of(means, measure)) if mark == "best")


def mean_cells(means: Sequence[float | None], measure: Measure) -> tuple[TonedCell, ...]:
    """Means of one measure, one per system; the best and the second are marked."""
    return tuple(
        TonedCell(mean, "good" if mark == "best" else "", mark=mark)
        for mean, mark in zip(means, marks_of(means, measure), strict=True)
    )


def shaded(rows: Sequence[Sequence[float | None]], measures: Sequence[Measure]) -> list[tuple[TonedCell, ...]]:
    """Means, a row of systems for each measure: the best and the second are marked, and each has its distance from the mean of its row.

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
            replace(cell, distance=round(FARTHEST * gain / farthest) if farthest else 0)
            for cell, gain in zip(cells, gains, strict=True)
        )
        for gains, cells in zip(distances, map(mean_cells, rows, measures), strict=True)
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


R = TypeVar("R")
Systems = Sequence[tuple[str, SystemResult]]
"""Label and result of each system, in order."""
Preflight = Sequence[tuple[str, str, str]]
"""(system, check, found), for every check that passed before the first query."""


@dataclass(frozen=True)
class Subject:
    """The input of every section. A section that does not apply to a subject returns None."""

    record: EvaluationResult
    read_calls: Callable[[], CallsResult]
    today: date | None = None
    by_query: bool = False
    """Add a row for every query."""
    measure: Measure | None = None
    """The primary measure, where there is no comparison; None is the first."""
    sort: str = "mean"
    """Order of the leaderboard of many systems."""
    show_pairs: bool = False
    """Show all pairs of many systems, however many."""
    own_labels: tuple[str, ...] = ()
    """What the systems are called, if not by their names, and letters where they are compared."""

    @classmethod
    def of(
        cls,
        result: Evaluation | Sequence[Evaluation] | Comparison | ManyComparison,
        contrasts: Sequence[StrataContrast] = (),
        sensitivity: Sensitivity | None = None,
        preflight: Preflight = (),
        **shown: Any,
    ) -> Subject:
        """The subject of a computed result; `shown` are the other fields."""
        compared = result if isinstance(result, Comparison | ManyComparison) else None
        evaluations = compared.evaluations if compared is not None else evaluations_of(result)
        record = result_of(result, contrasts, sensitivity, with_answers=True)
        return cls(record, lambda: calls_of(evaluations, compared, preflight), **shown)

    @classmethod
    def read(cls, path: Path, **shown: Any) -> Subject:
        """The subject of a saved `results.json`, with the calls of the `calls.json` beside it, if any.

        Raises:
            InputError: it is no such file.
        """
        record = _read(path, result_from)
        if record.queries is None:
            hint = "pass the results.json of a results folder: it has the queries and their answers"
            raise InputError("this is printed JSON, without the answers of the systems", path=str(path), hint=hint)
        calls = path.with_name(CALLS)
        if calls.exists():
            return cls(record, lambda: _read(calls, partial(from_jsonable, CallsResult)), **shown)
        none = CallsResult(rule=LatencyRule(), systems=dict.fromkeys(record.names, NOT_MADE), impacts={})
        return cls(record, lambda: none, **shown)

    @cached_property
    def calls(self) -> CallsResult:
        """Times and outputs of the calls."""
        return self.read_calls()

    @property
    def systems(self) -> Systems:
        """Label and result of each system, in order."""
        return tuple(zip(self.labels, self.record.systems, strict=True))

    @property
    def queries(self) -> dict[str, QueryRecord]:
        """The queries with the answers of each system."""
        return dict(self.record.queries or {})

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Every measure of any system."""
        return tuple(dict.fromkeys(measure for each in self.record.systems for measure in each.measures))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the systems are called in this report, in order."""
        names = self.record.names
        return self.own_labels or (names if self.compared is None else tuple(lettered(names)))

    @property
    def pair(self) -> ComparisonResult | None:
        """The comparison of two systems."""
        return self.record if isinstance(self.record, ComparisonResult) else None

    @property
    def many(self) -> ManyResult | None:
        """The comparison of three systems or more."""
        return self.record if isinstance(self.record, ManyResult) else None

    @property
    def compared(self) -> ComparisonResult | ManyResult | None:
        """The comparison; None where systems stand side by side without a verdict."""
        return self.pair or self.many

    @property
    def primary(self) -> Measure | None:
        """The measure that decides; without a comparison the first; None where no measure has a value."""
        if self.compared is not None:
            return self.compared.primary
        return self.measure or next(iter(self.record.systems[0].measures), None)

    @property
    def pilot(self) -> bool:
        """True when any system is not for the record."""
        return any(each.pilot for each in self.record.systems)

    @property
    def is_void(self) -> bool:
        """True when scores of a system do not count."""
        return any(finding.is_void for finding in self.record.evidence)


def _read(path: Path, of_json: Callable[[Any], R]) -> R:
    try:
        return of_json(json.loads(read_bytes(path, InputError)))
    except (ValueError, TypeError, AttributeError) as error:
        first = str(error).partition("\n")[0].rstrip(":")
        expected = "the results.json of an evaluation or a comparison, written by this version"
        hint = "run the command that wrote it again"
        raise InputError(first, path=str(path), expected=expected, hint=hint) from error


FEW = 8
"""Options that more runs than this share are given once."""


def provenance(subject: Subject) -> Section:
    """Everything needed to reproduce the numbers."""
    made_with = ", ".join(f"{name} {version}" for name, version in subject.record.versions.items())
    inputs = (*_inputs(subject), ("software", made_with))
    blocks: list[Block] = [KeyValues(inputs, "Inputs and versions")]
    if len(subject.systems) > FEW:
        digests = tuple((label, system.digest) for label, system in subject.systems)
        blocks.append(Details("Digests of the runs", (KeyValues(digests),)))
    if notes := subject.record.testset.notes:
        blocks.append(Bullets(tuple(f"test set: {note}" for note in notes), "warning"))
    if subject.compared is not None:
        blocks.append(KeyValues(_declared(subject.compared), "Declared settings"))
    if subject.calls.preflight:
        columns = by_place({"system": "text", "check": "code", "found": "code"})
        blocks.append(TableSpec("Preflight checks", subject.calls.preflight, columns).table(shown=20))
    for label, system in subject.systems:
        if system.config:
            text = json.dumps(system.config, indent=2, ensure_ascii=False, default=str)
            blocks.append(Details(f"Configuration of {label}", (Code(text, "As configured, secrets redacted"),)))
    key_figure = f"{testset_label(subject.record.testset)}, convention {subject.record.convention}, {MADE_BY}"
    return Section("provenance", "Provenance", tuple(blocks), key_figure)


def _inputs(subject: Subject) -> tuple[tuple[str, str], ...]:
    systems, record, testset = subject.systems, subject.record, subject.record.testset
    items = [
        ("test set", f"{testset_label(testset)}, {testset.digest}"),
        ("review of the test set", testset.review or "not stated"),
        ("convention", f"{record.convention}: {record.convention_sentence}"),
    ]
    shared = _options(record.systems[0]) if len({_options(system) for _, system in systems}) == 1 else ""
    if shared and len(systems) > FEW:
        items.append(("options of all runs", shared))
    for label, system in systems:
        if len(systems) <= FEW:
            items.append((f"run of {label}", system.digest))
        if system.reading and not (shared and len(systems) > FEW):
            items.append((f"options of {label}", _options(system)))
        if system.config_digest:
            items.append((f"configuration of {label}", system.config_digest))
        if system.order != "given":
            items.append((f"order of {label}", f"by score, {system.order}"))
    return tuple(items)


def _options(system: SystemResult) -> str:
    """Options of the reader of a run."""
    return ", ".join(f"{name} {'all' if value is None else value}" for name, value in system.reading.items())


def _declared(result: ComparisonResult | ManyResult) -> tuple[tuple[str, str], ...]:
    limits = result.limits
    return (
        ("primary measure", str(result.primary)),
        (
            "test of each pair" if isinstance(result, ManyResult) else "test",
            f"{result.test}, {_interval(result)}",
        ),
        *(_adjustment(result) if isinstance(result, ManyResult) else ()),
        *((("baseline", result.baseline or "none"),) if isinstance(result, ManyResult) else ()),
        ("alpha", format_plain(result.alpha)),
        ("margin", "none" if result.margin is None else f"±{format_plain(result.margin)}"),
        ("seed", format_count(result.seed)),
        ("random draws", format_count(result.n_draws) if result.n_draws else "none (exact test)"),
        ("maximum failed share", _share(limits.max_failed_share)),
        ("minimum judged share", _share(limits.min_judged_share)),
    )


def _interval(result: ComparisonResult | ManyResult) -> str:
    if isinstance(result, ManyResult) and result.adjust == "max-t":
        return "mean difference: simultaneous over all pairs, max-T"
    return TESTS[result.test].interval_method


def _adjustment(many: ManyResult) -> tuple[tuple[str, str], ...]:
    spec = ADJUSTMENTS[many.adjust]
    smallest = f"{many.smallest_p:.2g}" if many.smallest_p else "0"
    return ("adjustment of all pairs", spec.title), ("smallest adjusted p possible", smallest)


def _share(limit: float | None) -> str:
    return "none" if limit is None else format_percent(limit)


EARLIER = "Read from an earlier call"
"""Heading of the table."""


def _time_text(time: str) -> str:
    """`2026-11-21 20:51 UTC`; a day as it is."""
    day, _, clock = time.partition("T")
    return f"{day} {clock[:5]} UTC" if clock else day


DIGEST_SHOWN = 19
"""Characters of a digest in reports: `sha256:` and twelve digits."""


def about_testset(testset: TestSetRecord) -> tuple[str, ...]:
    """Lines under the title of a report about a test set: its changes, name, version, digest and review."""
    name = f"{testset.name} {testset.version}".strip()
    facts = f"{name}: {count_noun(testset.n_queries, 'queries')}, {testset.digest[:DIGEST_SHOWN]}"
    review = f"review: {testset.review}" if testset.review else ""
    return tuple(filter(None, (testset.uncommitted, facts, review)))
