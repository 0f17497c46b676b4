"""The review of a run by people: what they are shown of it, and what their decisions come to."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from cranfield.agents.recording import PLAN
from cranfield.base.errors import UsageError
from cranfield.base.words import command_word, count_noun, join_first
from cranfield.formats.io.files import shown, write_text
from cranfield.golden.index import RecordStatus, RunFolder, RunIndex, Step, overlap
from cranfield.golden.plan import load_plan
from cranfield.golden.records import HumanReview
from cranfield.golden.review import (
    ONE_PERSON,
    PROFILES,
    SPOT_CHECK,
    Reviewable,
    ReviewReport,
    ReviewTally,
    Sample,
    assess,
    draw_sample,
)
from cranfield.golden.states import STATES, State
from cranfield.model import Entity, File, Query, Span, Target, TestSet, results
from cranfield.model.judging import Label
from cranfield.model.results import TestSetRecord
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.ranking.matching.place import ENTITY_MARK, plain_entity
from cranfield.stats.result import TestResult, holm, untested
from cranfield.stats.two_sample import DRAWS, stratified_ks

FEEDBACK = "review_feedback.jsonl"
"""A line a failure; written anew each time."""
SENT_BACK = "sent_back_before"


@dataclass(frozen=True, slots=True)
class ReviewCase:
    """A record for people, as the steps left it."""

    status: RecordStatus
    reviewable: Reviewable
    messages: tuple[str, ...]
    """Why a person must see it, in sentences."""
    may_keep: bool


def waiting_records(index: RunIndex) -> list[ReviewCase]:
    """The records of a run that people may be shown: those with an answer that passed, or that a step left to a person.

    Raises:
        UsageError: the run is not finished.
    """
    statuses = index.statuses()
    unfinished = [each.query_id for each in statuses if not STATES[each.state].is_end]
    if unfinished:
        wait = "waits" if len(unfinished) == 1 else "wait"
        raise UsageError(
            f"the run is not finished: {count_noun(len(unfinished), 'records')} {wait} for a step: {join_first(unfinished)}",
            path=shown(index.folder.path),
            hint=f"finish it: `cranfield golden run --resume {command_word(index.folder.path)} --repo DIR`",
        )
    found = []
    for status in statuses:
        info = STATES[status.state]
        has_answer = index.answers.get(status.query_id, status.attempt) is not None
        if has_answer and (info.with_person or status.state in {State.PASSED, State.KEPT}):
            found.append(_waiting(index, status, may_keep=info.fills_cell))
    return found


def _waiting(index: RunIndex, status: RecordStatus, *, may_keep: bool) -> ReviewCase:
    candidate = index.candidates[status.query_id]
    kinds = [each.kind for each in status.reasons]
    messages = [each.message for each in status.reasons]
    if STATES[status.state].with_person and not kinds:
        kinds, messages = [status.state.value], [STATES[status.state].sentence]
    agreement = index.agreements.get(status.query_id, status.attempt)
    if agreement is not None and agreement.spot_check:
        kinds.append(SPOT_CHECK)
        messages.append("sample of the narratives compared by the judge, for a check by people")
    if status.attempt > 1:
        kinds.append(SENT_BACK)
        messages.append("it was already sent back to the oracle")
    reviewable = Reviewable(status.query_id, candidate.task_type, candidate.difficulty, tuple(dict.fromkeys(kinds)))
    return ReviewCase(status, reviewable, tuple(messages), may_keep)


def planned_profile(run: Path) -> str:
    """The profile of the review that the plan of a run declares; that of a run without a plan is `bootstrap`."""
    path = run / PLAN
    return load_plan(path).profile if path.is_file() else "bootstrap"


def next_sample(samples: Sequence[Sample], waiting: Sequence[ReviewCase], profile: str, seed: int) -> Sample:
    """The sample of a batch; once there is one, what must be seen besides: records that came back, or are new.

    Raises:
        UsageError: another profile than that of the sample that was drawn. Only one person may go on with what was drawn for
            two, since shares and ceilings are the same.
    """
    attempts = {each.reviewable.query_id: each.status.attempt for each in waiting}
    if not samples:
        drawn = draw_sample([each.reviewable for each in waiting], PROFILES[profile], seed)
        return drawn.model_copy(update={"attempts": {name: attempts[name] for name in drawn.to_review}})
    before = merged(samples)
    if profile not in {before.profile, f"{before.profile}-{ONE_PERSON}"}:
        raise UsageError(
            "the sample of this run was drawn for a different profile", expected=before.profile, got=profile
        )
    more = [
        each.reviewable
        for each in waiting
        if each.reviewable.must_see and before.attempts.get(each.reviewable.query_id) != each.status.attempt
    ]
    return before.model_copy(
        update={
            "profile": profile,
            "sampled": (),
            "must_see": {each.query_id: each.must_see for each in more},
            "cells": {each.query_id: each.cell for each in more},
            "attempts": {each.query_id: attempts[each.query_id] for each in more},
        }
    )


def merged(samples: Sequence[Sample]) -> Sample:
    """The sample that was drawn first, with everything that must be seen besides."""
    first = samples[0]
    must_see = {name: reasons for each in samples for name, reasons in each.must_see.items()}
    return first.model_copy(
        update={
            "profile": samples[-1].profile,
            "must_see": {name: reasons for name, reasons in must_see.items() if name not in first.sampled},
            "cells": {name: cell for each in samples for name, cell in each.cells.items()},
            "attempts": {name: number for each in samples for name, number in each.attempts.items()},
        }
    )


def read_sample(folder: RunFolder) -> Sample | None:
    """What people see of a run; None where no sample was drawn."""
    samples = folder.read(Step.REVIEW_SAMPLES, Sample)
    return merged(samples) if samples else None


def drawn_sample(folder: RunFolder) -> Sample:
    """Everything that people see of a run.

    Raises:
        UsageError: no record of it was given to people.
    """
    sample = read_sample(folder)
    if sample is None:
        hint = f"create a review book: `cranfield golden review {command_word(folder.path)} --repo DIR`"
        raise UsageError("no record of this run was given to reviewers", path=shown(folder.path), hint=hint)
    return sample


def review_of(folder: RunFolder, earlier: Iterable[Path] = ()) -> ReviewReport:
    """What the reviews of a run come to.

    Args:
        folder: of the run.
        earlier: folders of runs before it, for the cumulative rate.

    Raises:
        UsageError: no sample was drawn of this run, or of an earlier one.
    """
    sample = drawn_sample(folder)
    reviews = folder.read(Step.HUMAN_REVIEWS, HumanReview)
    before: list[ReviewTally] = [review_of(RunFolder.open(path)).tally for path in earlier]
    return assess(reviews, sample, PROFILES[sample.profile], before, folder.path.resolve().name)


def write_feedback(folder: RunFolder, report: ReviewReport) -> list[Path]:
    """Write what people found wrong beside the reviews, for the next run; the file, where there is anything."""
    path = folder.path / FEEDBACK
    if not report.feedback:
        return []
    write_text(path, (each.model_dump_json() + "\n" for each in report.feedback))
    return [path]


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
