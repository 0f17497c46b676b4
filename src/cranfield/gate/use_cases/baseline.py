"""The job behind `cranfield baseline`: what a run would change, and the file, written only on request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from cranfield.app.experiment import Experiment
from cranfield.app.loading import NO_OVERRIDES, SetOverrides
from cranfield.base.errors import Problem, SystemUnderTestError, UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import refusal, shown
from cranfield.gate.baseline import Baseline, baseline_of, misfits, read_baseline, ref_named, with_added, write_baseline
from cranfield.gate.gate_input import GateInput
from cranfield.gate.reports.gate import baseline_document
from cranfield.gate.result import BaselineChange, BaselineChanges, BaselineFact, MeasureChange, QueryChange
from cranfield.gate.rules import rules_of
from cranfield.gate.use_cases.gate import (
    AnsweredTestSet,
    AnswerSource,
    answered,
    baseline_at,
    collection_folder,
    digest_of,
    gate_experiments,
    refuse_source,
    system_evidence,
)
from cranfield.gate.use_cases.plan import GatePlan, planned
from cranfield.gate.verdict import no_baseline
from cranfield.repo.git import standing
from cranfield.reporting import Document

NOT_TO_COMPARE = "the existing baseline is of a different experiment: means are not compared"


@dataclass(frozen=True)
class Accepted:
    """What the baselines become, and which files were written: none where it was only looked at."""

    document: Document
    written: tuple[Path, ...]


def accept(
    config_path: Path,
    *,
    out: Path,
    accepted: str,
    reason: str = "",
    source: AnswerSource | None = None,
    dry_run: bool = False,
    overrides: SetOverrides = NO_OVERRIDES,
) -> Accepted:
    """Make the results of a run the baseline that the gate holds the system to, on every test set of the config.

    Args:
        config_path: cranfield.yaml.
        out: folder of the run, where the system is called now.
        accepted: ISO date.
        reason: why, in the words of who accepts it; it stands in the file.
        source: a finished run; None asks the system.
        dry_run: only say what would change.
        overrides: options of the test set, in place of those of the config.

    Raises:
        InputError: config, test set or run, with all their problems; or what is in the way is no baseline.
        UsageError: a pilot.
        SystemUnderTestError: more failures than the gate allows. No file is written.
    """
    plan, source = planned(config_path), source or AnswerSource()
    stands = standing(plan.config.folder)
    made: list[tuple[Path, Baseline, BaselineChange]] = []
    problems: list[Problem] = []
    with gate_experiments(plan, overrides) as experiments:
        refuse_source(source, experiments, None)
        with collection_folder(out, experiments, source) as folder:
            every = list(answered(experiments, source, folder))
        for each in every:
            experiment, evaluation = each.experiment, each.evaluation
            problems += _refusals(plan, experiment, evaluation)
            path = plan.baseline_path(experiment.name)
            old = with_added(read_baseline(path), experiment.testset) if path.exists() else None
            new = baseline_of(
                evaluation,
                k=experiment.k,
                accepted=accepted,
                commit="" if stands is None else stands.commit,
                reason=reason,
                config_digest=digest_of(evaluation, experiment),
            )
            made.append((path, new, _change(each, old, new, path)))
    if problems:
        raise SystemUnderTestError(problems)
    if not dry_run:
        for path, new, _ in made:
            try:
                write_baseline(new, path)
            except OSError as error:
                raise UsageError(refusal(path, error)) from error
    document = baseline_document(BaselineChanges(baselines=tuple(change for _, _, change in made)))
    return Accepted(document, () if dry_run else tuple(path for path, _, _ in made))


def show(config_path: Path, baseline_ref: str | None = None) -> Document:
    """What the baselines of a config say, in the working tree or at a git ref.

    Raises:
        InputError: the config, or a baseline that cannot be read.
        UsageError: there is no such ref, or no such file at it.
    """
    plan = planned(config_path)
    ref = None if baseline_ref is None else ref_named(baseline_ref, plan.config.folder)
    changes = []
    for name in plan.config.sets:
        baseline, called = baseline_at(plan.baseline_path(name), ref)
        means = tuple(
            MeasureChange(measure, None, baseline.mean_of(measure), None, None, None, len(baseline.values_of(measure)))
            for measure in baseline.measures
        )
        facts = tuple(BaselineFact(name, value, "") for name, value in _facts(baseline))
        changes.append(BaselineChange(name, called, facts, means))
    return baseline_document(BaselineChanges(baselines=tuple(changes)))


def _refusals(plan: GatePlan, experiment: Experiment, evaluation: Evaluation) -> Iterator[Problem]:
    rules = [rule for _, rule in rules_of(plan.gate, experiment.name)]
    findings = system_evidence(experiment, evaluation)
    for sentence in no_baseline(GateInput(evaluation), rules, plan.config.comparing().limits, findings):
        where = f"test set {experiment.name}" if experiment.name else None
        yield Problem(
            f"cannot be accepted as a baseline: {sentence}", path=where, hint="fix the failures, and run it again"
        )


def _change(answers: AnsweredTestSet, old: Baseline | None, new: Baseline, path: Path) -> BaselineChange:
    experiment, evaluation = answers.experiment, answers.evaluation
    primary = str(experiment.primary)
    before = dict(_facts(old)) if old is not None else {}
    facts = tuple(BaselineFact(name, before.get(name, ""), value) for name, value in _facts(new))
    fits = old is not None and not misfits(old, evaluation, k=experiment.k, measures=[], name=shown(path))
    compared = old if fits else None
    measures = []
    for measure in new.measures:
        is_, was = new.mean_of(measure), old.mean_of(measure) if old is not None else None
        delta = is_ - was if compared is not None and is_ is not None and was is not None else None
        measures.append(MeasureChange(measure, is_, was, delta, None, None, len(new.values_of(measure))))
    worse, better = _moved(evaluation, compared, primary)
    notes = [NOT_TO_COMPARE] if old is not None and not fits else []
    if answers.n_earlier:
        notes.append(
            f"{answers.n_earlier} of {count_noun(len(experiment.testset.queries), 'answers')} are from an earlier call"
        )
    return BaselineChange(experiment.name, shown(path), facts, tuple(measures), worse, better, primary, tuple(notes))


def _facts(baseline: Baseline) -> Iterator[tuple[str, str]]:
    """Name and value of each fact in the head of the file."""
    yield "system", baseline.system
    yield "config", baseline.config_digest[:19]
    yield "test set", f"{baseline.testset} {baseline.testset_version}".strip()
    yield "test set digest", baseline.testset_digest[:19]
    yield "queries", str(len(baseline.values))
    yield "convention", baseline.convention
    yield "k", str(baseline.k)
    yield "accepted", baseline.accepted
    yield "commit", baseline.commit[:12]
    yield "reason", baseline.reason


def _moved(
    evaluation: Evaluation, old: Baseline | None, primary: str
) -> tuple[tuple[QueryChange, ...], tuple[QueryChange, ...]]:
    """Queries that got worse and better on the primary measure, those that moved most first."""
    given = GateInput(evaluation, old)
    now, before, sign = given.sides(primary)
    ranking = evaluation.ranking
    outcomes = dict(zip(ranking.query_ids, (outcome.value for outcome in ranking.outcomes), strict=True))
    gains = {query_id: sign * (now[query_id] - before[query_id]) for query_id in before if query_id in now}
    gains |= {query_id: Fraction(-1) for query_id in before if query_id not in now}
    by_id = evaluation.testset.by_id

    def change(query_id: str) -> QueryChange:
        current = float(now[query_id]) if query_id in now else None
        query, then = by_id[query_id], float(before[query_id])
        return QueryChange(query_id, query.text, current, then, outcomes[query_id], params=query.params)

    worse = sorted((query for query, gain in gains.items() if gain < 0), key=lambda query: (gains[query], query))
    better = sorted((query for query, gain in gains.items() if gain > 0), key=lambda query: (-gains[query], query))
    return tuple(map(change, worse)), tuple(map(change, better))
