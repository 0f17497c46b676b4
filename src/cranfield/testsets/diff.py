"""What changed between two versions of a test set."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cranfield.app.evaluate import evaluate
from cranfield.base.numbers import format_delta, format_delta_interval, format_level, format_value
from cranfield.evaluation.testset.expected import judgments_of
from cranfield.evaluation.testset.judging_notes import guideline_text, guidelines_differ
from cranfield.evaluation.testset.split import only, part
from cranfield.evaluation.values import Evaluation
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import DEFAULT_CONVENTION, Label, Query, Split, TestSet
from cranfield.model.query_ids import id_of
from cranfield.model.results import Record, TestSetRecord
from cranfield.stats.contrast import GroupContrast, two_groups


@dataclass(frozen=True, slots=True)
class Rewording:
    """A query whose text is another."""

    query_id: str
    """Id in the new version."""
    old: str
    new: str
    old_id: str = ""
    """Id in the old version, where ids are made from the questions and it is another one there; else empty."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgment of a query that both versions have; None where one of them lacks it."""

    query_id: str
    kind: str
    label: str
    old: float | None
    new: float | None

    @property
    def how(self) -> str:
        """`added`, `removed` or `regraded`."""
        return "added" if self.old is None else "removed" if self.new is None else "regraded"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Something else about a query, or about the set where the query id is empty."""

    query_id: str
    what: str
    """`stratum difficulty`, `class`, `weight`, …"""
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ScoreMove:
    """The mean of one system on either version, and on the queries that both have."""

    system: str
    measure: str
    old: float | None
    n_old: int
    new: float | None
    n_new: int
    common_old: float | None
    """By the old judgments."""
    common_new: float | None
    """By the new judgments."""
    n_common: int


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query that one version alone has."""

    query_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetChanges(Record):
    """Everything that changed."""

    testset: TestSetRecord
    """The new version."""
    old: TestSetRecord
    is_same: bool
    """Whether the two have one content."""
    guidelines: str
    """A sentence, where the guidelines of the judgments differ."""
    added: tuple[QueryText, ...]
    """In the order of the new version."""
    removed: tuple[QueryText, ...]
    """In the order of the old version."""
    reworded: tuple[Rewording, ...]
    n_common: int
    """Queries that both have."""
    judged: tuple[Judged, ...]
    changes: tuple[FieldChange, ...]
    scores: tuple[ScoreMove, ...]


def diff(old: TestSet, new: TestSet, scores: Sequence[ScoreMove] = ()) -> SetChanges:
    """Compare two versions, query by query id.

    Where ids are made from the questions, a query that is gone and a new one with the same judgments are one that was
    reworded; judgments that several of them have tell nothing.

    Args:
        old: the version before.
        new: the version after.
        scores: how the means of systems move between the two.
    """
    common = [query_id for query_id in new.query_ids if query_id in old.by_id]
    texts = [(query_id, old.by_id[query_id].text, new.by_id[query_id].text) for query_id in common]
    renamed_ids = _reworded_ids(old, new)
    moved = set(renamed_ids.values())
    return SetChanges(
        testset=TestSetRecord.of(new),
        old=TestSetRecord.of(old),
        is_same=(old.digest, old.labels) == (new.digest, new.labels),
        guidelines=guidelines_differ(old, new),
        added=tuple(QueryText(q.id, q.text) for q in new.queries if q.id not in old.by_id and q.id not in renamed_ids),
        removed=tuple(QueryText(q.id, q.text) for q in old.queries if q.id not in new.by_id and q.id not in moved),
        reworded=(
            *(Rewording(query_id, was, now) for query_id, was, now in texts if was != now),
            *(Rewording(q, old.by_id[was].text, new.by_id[q].text, was) for q, was in renamed_ids.items()),
        ),
        n_common=len(common),
        judged=tuple(judged for query_id in common for judged in _judged(old, new, query_id)),
        changes=(*_set_changes(old, new), *(c for query_id in common for c in _query_changes(old, new, query_id))),
        scores=tuple(scores),
    )


def _reworded_ids(old: TestSet, new: TestSet) -> dict[str, str]:
    """New id to old id of the queries whose question is another and whose judgments, alone among them, are the same."""
    gone, fresh = (
        _by_truth(
            side, [query.id for query in side.queries if query.id not in other.by_id and query.id == id_of(query)]
        )
        for side, other in ((old, new), (new, old))
    )
    return {
        now[0]: gone[truth][0] for truth, now in fresh.items() if truth and len(now) == len(gone.get(truth, ())) == 1
    }


def _by_truth(testset: TestSet, query_ids: Sequence[str]) -> dict[frozenset[object], list[str]]:
    """Judgments to the queries that have exactly these."""
    found: dict[frozenset[object], list[str]] = {}
    for query_id in query_ids:
        found.setdefault(frozenset(_grades(testset, query_id).items()), []).append(query_id)
    return found


def _judged(old: TestSet, new: TestSet, query_id: str) -> Iterator[Judged]:
    was, now = (_grades(testset, query_id) for testset in (old, new))
    if was == now:
        return
    for kind, label in {**was, **now}:
        before, after = was.get((kind, label)), now.get((kind, label))
        if before != after:
            yield Judged(query_id, kind, label, before, after)


def _grades(testset: TestSet, query_id: str) -> dict[tuple[str, str], float]:
    """What is expected to its grade; the best one where it stands twice."""
    grades: dict[tuple[str, str], float] = {}
    for judgment in judgments_of(testset, query_id):
        key = (judgment.kind, judgment.label)
        grades[key] = max(judgment.grade, grades.get(key, judgment.grade))
    return grades


def _query_changes(old: TestSet, new: TestSet, query_id: str) -> Iterator[FieldChange]:
    was, now = _facts(old, old.by_id[query_id]), _facts(new, new.by_id[query_id])
    if was != now:
        for what in dict.fromkeys((*was, *now)):
            if was.get(what, "") != now.get(what, ""):
                yield FieldChange(query_id, what, was.get(what, ""), now.get(what, ""))


def _facts(testset: TestSet, query: Query) -> Mapping[str, str]:
    """What is known of a query beside its text and its judgments, as words."""
    legacy = testset.legacy.get(query.id)
    label = testset.labels.get(query.id, Label()).record
    return {
        **{f"stratum {key}": value for key, value in query.strata.items()},
        **{f"parameter {key}": str(value) for key, value in query.params.items()},
        "class": query.query_class,
        "weight": f"{query.weight:g}",
        "negative": "" if query.negative is None else f"below {query.negative.below} {query.negative.field}".strip(),
        "files": ", ".join(testset.files.get(query.id, ())),
        "legacy form": "" if legacy is None else ", ".join((*legacy.ids, *legacy.patterns)),
        "ratings": ", ".join(f"{r.rater} {r.grade} {r.doc_id}" for r in testset.ratings.get(query.id, ())),
        "groups": ", ".join(f"{g.group} {g.subgroup} {g.doc_id} {g.value:g}" for g in testset.groups.get(query.id, ())),
        "credit": ", ".join(
            f"{t.label} {credit} {getattr(t, 'expected_count', None)}"
            for t in testset.targets.get(query.id, ())
            if (credit := getattr(t, "credit", "once")) != "once"
        ),
        **{f"label {key}": json.dumps(value, ensure_ascii=False, sort_keys=True) for key, value in label.items()},
    }


def _set_changes(old: TestSet, new: TestSet) -> Iterator[FieldChange]:
    for what, was, now in (
        ("name", old.name, new.name),
        ("version", old.version, new.version),
        ("sources", *(", ".join(f"{s.name} {s.pattern}" for s in testset.sources) for testset in (old, new))),
        ("matching", str(old.matching), str(new.matching)),
        ("scale", *(" ".join(f"{grade:g}" for grade in testset.meta.scale) for testset in (old, new))),
        ("consensus", old.consensus, new.consensus),
        ("review", old.meta.review, new.meta.review),
        ("guidelines", guideline_text(old), guideline_text(new)),
    ):
        if was != now:
            yield FieldChange("", what, was, now)


@dataclass(frozen=True, slots=True)
class Overfit:
    """One system and one measure on both parts of a test set."""

    system: str
    measure: str
    contrast: GroupContrast
    """Evaluated minus held out."""
    is_overfit: bool | None
    """True where the interval says that the evaluated part is better; None where there is no interval."""
    sentence: str
    """The difference with its interval, in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overfitting(Record):
    """The overfitting test of each measure."""

    testset: TestSetRecord
    split: Split | None
    measures: tuple[Overfit, ...]


def overfit(system: str, measure: str, contrast: GroupContrast, *, higher_is_better: bool) -> Overfit:
    """What a contrast, evaluated minus held out, says of overfitting."""
    difference, low, high = contrast.difference, contrast.ci_low, contrast.ci_high
    if difference is None or low is None or high is None:
        sentence = f"{system}: overfitting cannot be assessed: {contrast.note}."
        return Overfit(system, measure, contrast, None, sentence)
    is_overfit = low > 0 if higher_is_better else high < 0
    evaluated = f"{format_value(contrast.a.mean)} on {contrast.a.n} evaluated"
    gap = (
        f"difference {format_delta(difference)}, {format_level(contrast.alpha)} CI {format_delta_interval((low, high))}"
    )
    facts = f"{measure} {evaluated}, {format_value(contrast.b.mean)} on {contrast.b.n} held out; {gap}"
    if is_overfit:
        outcome = "does better on the queries it was evaluated on than on those held out"
    elif low > 0 or high < 0:
        outcome = "does worse on the queries it was evaluated on, so there is no sign of overfitting"
    else:
        outcome = "shows no significant overfitting on these queries"
    return Overfit(system, measure, contrast, is_overfit, f"{system} {outcome}: {facts}.")


def score_moves(
    old: TestSet,
    new: TestSet,
    runs: Mapping[str, Path],
    *,
    measures: Sequence[str] | None = None,
    convention: str = DEFAULT_CONVENTION,
) -> tuple[ScoreMove, ...]:
    """How the mean of each system moves from one version to the next: on all queries, and on those that both have.

    Args:
        old: the version before.
        new: the version after.
        runs: name of a system to its run; a run answers the queries of both versions.
        measures: None is the default list.
        convention: whose choices score them.

    Raises:
        InputError: a run that cannot be read, or shares no query with a version.
        UsageError: an unknown measure or convention.
    """
    common = [query_id for query_id in new.query_ids if query_id in old.by_id]
    versions = {"old": old, "new": new}
    if common:
        versions |= {"common old": only(old, common), "common new": only(new, common)}
    moves = []
    for name, run in runs.items():
        scored = {
            version: evaluate(testset, run, measures=measures, convention=convention, name=name)
            for version, testset in versions.items()
        }
        moves += [_move(name, measure, scored) for measure in scored["new"].measures]
    return tuple(moves)


def _move(system: str, measure: Measure, scored: Mapping[str, Evaluation]) -> ScoreMove:
    summaries = {
        version: evaluation.summaries[measure]
        for version, evaluation in scored.items()
        if measure in evaluation.summaries
    }
    means = {version: summary.mean for version, summary in summaries.items()}
    counts = {version: summary.n for version, summary in summaries.items()}
    return ScoreMove(
        system=system,
        measure=str(measure),
        old=means.get("old"),
        n_old=counts.get("old", 0),
        new=means.get("new"),
        n_new=counts.get("new", 0),
        common_old=means.get("common old"),
        common_new=means.get("common new"),
        n_common=counts.get("common new", 0),
    )


def overfitting(
    testset: TestSet,
    run: Path,
    *,
    measures: Sequence[str] | None = None,
    convention: str = DEFAULT_CONVENTION,
    alpha: float = 0.05,
    seed: int = 0,
) -> Overfitting:
    """Contrast what a system earns on the evaluated part and on the part held out.

    Raises:
        TestSetError: the set has no split.
        InputError: a run that cannot be read, or shares no query with the test set.
        UsageError: an unknown measure or convention.
    """
    held_out = set(part(testset, "held-out").query_ids)
    evaluation = evaluate(testset, run, measures=measures, convention=convention)
    found = []
    for measure in evaluation.measures:
        parts: tuple[list[float], list[float]] = ([], [])
        for query_id in evaluation.query_ids:
            value = evaluation.value(measure, query_id)
            if value is not None:
                parts[query_id in held_out].append(value)
        higher_is_better = CATALOGUE[measure.name].higher_is_better
        contrast = two_groups(*parts, alpha=alpha, seed=seed)  # Welch's interval of the difference of the means
        found.append(overfit(evaluation.name, str(measure), contrast, higher_is_better=higher_is_better))
    return Overfitting(testset=TestSetRecord.of(testset), split=testset.meta.split, measures=tuple(found))
