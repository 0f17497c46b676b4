"""Batch drift: whether a new batch of records is distributed as the blessed ones, metric by metric.

Each metric is a number of a record: how many entities it expects, how long its narrative is, how much of the query stands
in the names of its targets. The samples are compared by a permutation test of the Kolmogorov-Smirnov distance within
the cells of task type and difficulty (`stats.two_sample`), so that another mix of cells is no difference; p-values are
adjusted by Holm over the metrics. A batch that differs goes back to its authors.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

from cranfield.golden.lexical import overlap
from cranfield.model import Entity, File, Query, Span, Target, TestSet, results
from cranfield.model.label import Label
from cranfield.model.results import TestSetRecord
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.ranking.matching.place import ENTITY_MARK, plain_entity
from cranfield.stats.result import TestResult, holm, untested
from cranfield.stats.two_sample import DRAWS, stratified_ks

DIFFICULTY = "difficulty"
FEWEST = 10
"""Records with a value on either side; with fewer a metric is not tested."""


class MetricKind(StrEnum):
    """What a metric measures."""

    STRUCTURE = "structure"
    TEXT = "text"
    SCORE = "score"
    """Score of a system, query by query."""


class BatchVerdict(StrEnum):
    """Whether a batch may join the blessed records."""

    SIMILAR = "similar"
    """No metric differs significantly, which is no proof that none differs."""
    REQUEUE = "requeue"
    """At least one differs: the batch goes back to its authors."""
    UNTESTED = "untested"
    """No metric has enough records on either side."""


@dataclass(frozen=True)
class LabelledQuery:
    """A query with its label and its targets."""

    query: Query
    label: Label
    targets: tuple[Target, ...]
    files: tuple[str, ...]

    @property
    def cell(self) -> str:
        """`debug:easy`."""
        return f"{self.query.strata.get(TASK_TYPE, '')}:{self.query.strata.get(DIFFICULTY, '')}"

    @property
    def entities(self) -> list[str]:
        """Ids of the expected ones."""
        ids = [target.id for target in self.targets if isinstance(target, Entity)]
        return list(dict.fromkeys(map(plain_entity, ids)))

    @property
    def paths(self) -> set[str]:
        """Files that it expects, or expects something in."""
        own = {target.path for target in self.targets if isinstance(target, Span | File)}
        return {*self.files, *own, *(name.partition(ENTITY_MARK)[0] for name in self.entities)}

    @property
    def names(self) -> list[str]:
        """Names of its entities, and stems of its files."""
        stems = (posixpath.splitext(posixpath.basename(path))[0] for path in sorted(self.paths))
        return [*(name.partition(ENTITY_MARK)[2] for name in self.entities), *stems]

    @property
    def lines(self) -> int:
        """Lines of all expected ranges, each line once."""
        spans = [(span.path, span.start, span.end) for span in self.targets if isinstance(span, Span)]
        spans += [(span.path, span.start, span.end) for t in self.targets if isinstance(t, Entity) for span in t.spans]
        spans += [(lines.file, lines.start, lines.end) for lines in self.label.line_ranges]
        return len({(path, line) for path, start, end in spans for line in range(start, end + 1)})


@dataclass(frozen=True)
class RecordMetric:
    """A number of a record; None where the record lacks the part."""

    name: str
    kind: MetricKind
    value: Callable[[LabelledQuery], float | None]


def _words(text: str) -> int:
    return len(text.split())


def _share(text: str, names: Sequence[str]) -> float | None:
    """Share of the content words of a text that stand in names; None for a text without any."""
    found, n = overlap(text, names)
    return found / n if n else None


def _facts(record: LabelledQuery) -> list[str]:
    return [fact.text for fact in record.label.must_mention]


METRICS: tuple[RecordMetric, ...] = (
    RecordMetric("entities", MetricKind.STRUCTURE, lambda record: len(record.entities)),
    RecordMetric("files", MetricKind.STRUCTURE, lambda record: len(record.paths)),
    RecordMetric(
        "folders", MetricKind.STRUCTURE, lambda record: len({posixpath.dirname(path) for path in record.paths})
    ),
    RecordMetric("lines", MetricKind.STRUCTURE, lambda record: record.lines or None),
    RecordMetric("must-mention facts", MetricKind.STRUCTURE, lambda record: len(record.label.must_mention)),
    RecordMetric("must-not-mention facts", MetricKind.STRUCTURE, lambda record: len(record.label.must_not_mention)),
    RecordMetric(
        "citations a fact",
        MetricKind.STRUCTURE,
        lambda record: fmean(len(fact.citations) for fact in record.label.must_mention) if _facts(record) else None,
    ),
    RecordMetric("words of the query", MetricKind.TEXT, lambda record: _words(record.query.text)),
    RecordMetric("query words in names", MetricKind.TEXT, lambda record: _share(record.query.text, record.names)),
    RecordMetric("words of the narrative", MetricKind.TEXT, lambda record: _words(record.label.narrative) or None),
    RecordMetric(
        "words a fact",
        MetricKind.TEXT,
        lambda record: fmean(map(_words, _facts(record))) if _facts(record) else None,
    ),
    RecordMetric(
        "narrative words in facts",
        MetricKind.TEXT,
        lambda record: _share(record.label.narrative, _facts(record)),
    ),
)
"""What is compared, besides the scores of systems that the caller has."""


@dataclass(frozen=True, slots=True)
class MetricDrift:
    """A metric in both samples."""

    name: str
    kind: MetricKind
    n_blessed: int
    """Records with a value."""
    n_batch: int
    blessed_mean: float | None
    batch_mean: float | None
    result: TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDrift(results.Record):
    """A batch against the blessed records."""

    testset: TestSetRecord
    """Test set of the batch."""
    verdict: BatchVerdict
    alpha: float
    n_blessed: int
    n_batch: int
    metrics: tuple[MetricDrift, ...]
    differing: tuple[str, ...]
    """Metrics whose adjusted p-value is at most alpha."""
    uncompared: Mapping[str, int]
    """Cell that only one of the two has, to its records there: they are compared with nothing."""


def batch_drift(
    blessed: TestSet,
    batch: TestSet,
    scores: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]] | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DRAWS,
) -> BatchDrift:
    """Compare the records of a new batch with blessed ones.

    Args:
        blessed: the golden set so far.
        batch: the new records alone.
        scores: name of a measure of a system to its values by query id, of the blessed and of the new queries.
        alpha: level at which a metric differs, over all metrics.
        seed: of the permutations.
        n_draws: how many.
    """
    old, new = _records(blessed), _records(batch)
    rows = [_Values(m.name, m.kind, [m.value(r) for r in old], [m.value(r) for r in new]) for m in METRICS]
    for name, (of_old, of_new) in (scores or {}).items():
        values = [of_old.get(r.query.id) for r in old], [of_new.get(r.query.id) for r in new]
        rows.append(_Values(name, MetricKind.SCORE, *values))
    found = [_tested(row, old, new, seed, n_draws) for row in rows]
    adjusted = holm([each.result.p_two_sided for each in found])
    cells = {r.cell for r in old} ^ {r.cell for r in new}
    metrics = [
        replace(each, result=replace(each.result, p_adjusted=p)) for each, p in zip(found, adjusted, strict=True)
    ]
    differing = tuple(each.name for each, p in zip(found, adjusted, strict=True) if p is not None and p <= alpha)
    is_tested = any(each.result.p_two_sided is not None for each in found)
    tested = BatchVerdict.REQUEUE if differing else BatchVerdict.SIMILAR
    return BatchDrift(
        testset=TestSetRecord.of(batch),
        verdict=tested if is_tested else BatchVerdict.UNTESTED,
        alpha=alpha,
        n_blessed=len(old),
        n_batch=len(new),
        metrics=tuple(metrics),
        differing=differing,
        uncompared={cell: sum(r.cell == cell for r in (*old, *new)) for cell in sorted(cells)},
    )


@dataclass(frozen=True)
class _Values:
    name: str
    kind: MetricKind
    blessed: list[float | None]
    batch: list[float | None]


def _records(testset: TestSet) -> list[LabelledQuery]:
    return [
        LabelledQuery(
            query,
            testset.labels.get(query.id, Label()),
            tuple(testset.targets.get(query.id, ())),
            tuple(testset.files.get(query.id, ())),
        )
        for query in testset.queries
    ]


def _tested(
    row: _Values, old: Sequence[LabelledQuery], new: Sequence[LabelledQuery], seed: int, n_draws: int
) -> MetricDrift:
    first = [(value, record.cell) for value, record in zip(row.blessed, old, strict=True) if value is not None]
    second = [(value, record.cell) for value, record in zip(row.batch, new, strict=True) if value is not None]
    if min(len(first), len(second)) < FEWEST:
        result = untested(f"{len(first)} and {len(second)} records have a value; {FEWEST} of each required")
    else:
        (of_first, cells), (of_second, other_cells) = zip(*first, strict=True), zip(*second, strict=True)
        result = stratified_ks(of_first, of_second, cells, other_cells, seed=seed, n_draws=n_draws)
    return MetricDrift(
        row.name,
        row.kind,
        len(first),
        len(second),
        fmean(value for value, _ in first) if first else None,
        fmean(value for value, _ in second) if second else None,
        result,
    )
