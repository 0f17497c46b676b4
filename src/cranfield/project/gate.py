"""The job behind `cranfield gate`: config, baseline, collect or read, judge, report; a test set or several.

Everything that can be known to be wrong is found before the first query is run: rules that name what is not there, a
baseline of another test set, a ref that was not fetched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from cranfield.config.load import placed
from cranfield.config.strict import Finding
from cranfield.errors import ConfigError, CranfieldError, InputError, Problem, UsageError
from cranfield.evaluation.class_verdict import deciding_key
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import Finding as EvidenceFinding
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import refusal, shown
from cranfield.gate.baseline import Baseline, baseline_digest, misfits, parse_baseline, read_baseline, with_added
from cranfield.gate.gate_input import GateInput
from cranfield.gate.ref import Ref
from cranfield.gate.result import BaselineFacts, EarlierSource, GateReport, GateResult, GateStatus
from cranfield.gate.rules import check_fit, compared_measures, in_classes, measure_of, rules_of, words
from cranfield.gate.verdict import GateTerms, judge_all
from cranfield.platforms import PROGRAMS, require
from cranfield.project.experiment import Experiment, prepare, prepare_all, require_one_set
from cranfield.project.gate_anchors import lost_anchors
from cranfield.project.gate_folder import Source, check_outputs, collection_folder
from cranfield.project.gate_plan import Plan, planned, refuse_overrides
from cranfield.project.gate_runs import Answered, answered, refuse_source
from cranfield.project.history import remember
from cranfield.project.loading import NO_OVERRIDES, SetOverrides
from cranfield.project.recipe import with_measure
from cranfield.reporting import Document, save_reports
from cranfield.reporting.documents.gate import gate_document
from cranfield.systems import progress_on
from cranfield.systems.collect.collection import locked
from cranfield.systems.kinds.function_system import FunctionSystem
from cranfield.testsets.split import only
from cranfield.version import __version__
from cranfield.words import first_of, n_of

GATE_FILES = ("gate.json", "gate.html", "gate.md")


@dataclass(frozen=True)
class GateJob:
    """What `run_gate` made."""

    results: Mapping[str, GateResult]
    """By name of the test set; the name is empty where the config has one."""
    status: GateStatus
    """The worst of the results."""
    evaluations: Mapping[str, Evaluation]
    """What was judged, by the same names."""
    document: Document
    written: tuple[Path, ...]


def run_gate(
    config_path: Path,
    *,
    out: Path,
    source: Source | None = None,
    baseline_ref: str | None = None,
    overrides: SetOverrides = NO_OVERRIDES,
) -> GateJob:
    """Check the gated system of a config against its rules, on each of its test sets.

    Args:
        config_path: cranfield.yaml.
        out: folder of the run and of `gate.json`, `gate.html` and `gate.md`; with several test sets each has its run in a
            folder of its name.
        source: a finished run to judge, or an interrupted gate to resume; None queries the system.
        overrides: options of the test set, in place of those of the config.
        baseline_ref: the git ref whose rules and baseline count, in place of those in the working tree.

    Raises:
        InputError: config, test set, baseline or run, with all their problems.
        UsageError: no gate, no such ref, or a pilot.
        PreflightError: a check failed; no query was sent.
        Interrupted: the message names the folder that can be resumed, if any.
    """
    reports = [out / name for name in GATE_FILES]
    _remove_earlier(out, reports)
    plan, source = planned(config_path, baseline_ref), source or Source()
    ref = plan.ref.name if plan.ref is not None else None
    if ref is not None:
        refuse_overrides(overrides)
    for note in plan.notes:  # also where the gate ends before its report
        progress_on(sys.stderr).note(note)
    with gate_experiments(plan, overrides) as experiments:
        refuse_source(source, experiments, ref)
        baselines = _baselines(plan, experiments)
        check_outputs(out, experiments, reports)
        judged = [each if ref is None else _as_accepted(each, baselines[each.name]) for each in experiments]
        with collection_folder(out, experiments, source, ref) as folder:
            found = {each.experiment.name: each for each in answered(judged, source, folder, whole=experiments)}
            results = {name: _judged(plan, each, baselines[name]) for name, each in found.items()}
            report = GateReport.of(results.values())
            document = gate_document(report)
            written = _save(document, out)
    evaluations = {name: each.evaluation for name, each in found.items()}
    if not source.is_finished:  # a finished run is in the history already
        _remember(plan, experiments, evaluations, out / GATE_FILES[1])
    return GateJob(results, report.status, evaluations, document, written)


def _remove_earlier(out: Path, reports: Sequence[Path]) -> None:
    """Remove the reports of an earlier gate: where this one ends without a report, none may stand for it."""
    with suppress(OSError):  # a name that cannot be is refused later
        earlier = [path for path in reports if path.is_file() and not path.is_symlink()]
        if earlier:
            with locked(out, out):
                for path in earlier:
                    path.unlink()


def _save(document: Document, out: Path) -> tuple[Path, ...]:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    return save_reports(document, out, GATE_FILES, root=out)


def _remember(
    plan: Plan, experiments: Sequence[Experiment], evaluations: Mapping[str, Evaluation], report: Path
) -> None:
    """Add the evaluations to the history, with the report of the gate."""
    for experiment in experiments:
        evaluation, declared = evaluations[experiment.name], experiment.options
        why = remember(plan.config.folder, [evaluation], experiment.primary, report=report, declared=declared)
        if why:
            progress_on(sys.stderr).note(why)


def gate_experiments(plan: Plan, overrides: SetOverrides = NO_OVERRIDES) -> AbstractContextManager[list[Experiment]]:
    """An experiment for each test set with its gated system; every problem is raised before a query is sent.

    No cached answer is used: the code may have changed, which no config shows.
    """
    require_one_set(plan.config, overrides)

    def prepare_set(name: str) -> Experiment:
        experiment = prepare(plan.config, name, [plan.systems[name]], cache="refresh", overrides=overrides)
        if any(isinstance(system, FunctionSystem) for system in experiment.systems):
            require(PROGRAMS, "a gate on a Python function, which needs a process of its own,")
        return experiment

    def check(experiment: Experiment) -> None:
        findings = chain(check_fit(plan.gate, experiment.name, experiment.testset), _uncomputable(plan, experiment))
        if problems := [placed(plan.located, finding) for finding in findings]:
            raise ConfigError(problems)

    return prepare_all(prepare_set, plan.config.sets, check)


def _as_accepted(experiment: Experiment, accepted: _Accepted) -> Experiment:
    """The experiment on the queries of the baseline alone: easy queries that a change adds could lift a mean."""
    baseline = accepted.baseline
    if baseline is None or not baseline.added:
        return experiment
    return replace(experiment, testset=only(experiment.testset, set(experiment.testset.query_ids) - {*baseline.added}))


def _uncomputable(plan: Plan, experiment: Experiment) -> Iterator[Finding]:
    """Rules on measures that this test set allows for no query."""
    for index, rule in rules_of(plan.gate, experiment.name):
        measure = measure_of(rule)
        if measure is not None and rule.kind != "judged":
            try:
                with_measure(experiment.dry, measure)
            except CranfieldError as error:
                yield from ((("gate", "rules", index, rule.kind, "measure"), problem) for problem in error.problems)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """The baseline of a test set, where there is one."""

    baseline: Baseline | None = None
    facts: BaselineFacts | None = None
    sources: tuple[EarlierSource, ...] = ()
    notes: tuple[str, ...] = ()


def _baselines(plan: Plan, experiments: Sequence[Experiment]) -> dict[str, _Accepted]:
    """The baseline of each test set, where there is one; of another experiment it is refused, or left out where no rule needs it."""
    found: dict[str, _Accepted] = {}
    problems: list[Problem] = []
    for experiment in experiments:
        name, path = experiment.name, plan.baseline_path(experiment.name)
        rules = [rule for _, rule in rules_of(plan.gate, name)]
        found[name] = _Accepted()
        is_needed = plan.ref is not None or any(rule.needs_baseline for rule in rules)
        if not is_needed and not path.exists():
            continue
        try:
            baseline, label = baseline_at(path, plan.ref)
        except InputError as error:
            problems += error.problems
            continue
        digest, day, n = baseline_digest(baseline), baseline.accepted, len(baseline.values)
        baseline = with_added(baseline, experiment.testset)
        other = misfits(baseline, experiment.dry, k=experiment.k, measures=compared_measures(rules), name=label)
        if other and not is_needed:
            why = "; ".join(f"{each.message} ({each.got}, not {each.expected})" for each in other)
            found[name] = _Accepted(notes=(f"{plan.gate.baseline_of(name)} is not used, and no rule needs it: {why}",))
            continue
        problems += lost_anchors(plan, name)
        problems += other
        ref = plan.ref.name if plan.ref is not None else ""
        facts = BaselineFacts(plan.gate.baseline_of(name), ref, baseline.system, baseline.commit, baseline.accepted)
        found[name] = _Accepted(baseline, facts, (EarlierSource(label, "baseline", digest, day, day, n),))
    if problems:
        raise InputError(problems)
    return found


def baseline_at(path: Path, ref: Ref | None) -> tuple[Baseline, str]:
    """A baseline in the working tree or at a git ref, and its name in messages.

    Raises:
        InputError: it cannot be read.
        UsageError: the ref has no such file.
    """
    if ref is None:
        return read_baseline(path), shown(path)
    name = ref.shown(path)
    hint = "accept a baseline there first: `cranfield baseline accept`, commit, merge"
    text = ref.read(path, hint=hint)
    try:
        return parse_baseline(text.decode("utf-8"), name), name
    except UnicodeDecodeError:
        raise InputError("not UTF-8", path=name) from None


def _judged(plan: Plan, answers: Answered, accepted: _Accepted) -> GateResult:
    baseline, facts = accepted.baseline, accepted.facts
    experiment, evaluation = answers.experiment, answers.evaluation
    declared = plan.config.comparing()
    given = GateInput(evaluation, baseline, declared.test, declared.alpha, n_draws=declared.draws)
    notes = (
        *answers.notes,
        *accepted.notes,
        *(_differences(baseline, evaluation, experiment) if baseline is not None else ()),
    )
    classes = deciding_key(experiment.testset, experiment.declared)
    rules = [in_classes(rule, classes) for _, rule in rules_of(plan.gate, experiment.name)]
    findings = system_evidence(experiment, evaluation)
    earlier = (*answers.earlier, *accepted.sources)
    terms = (
        rules,
        declared.limits,
        experiment.primary,
        facts,
        plan.notes,
        notes,
        findings,
        earlier,
        answers.n_earlier,
    )
    result = judge_all(given, GateTerms(*terms))
    written = [words(rule) for _, rule in rules_of(plan.gate, experiment.name)]
    named = (replace(each, as_written=text) for each, text in zip(result.rules, written, strict=True))
    return replace(result, name=experiment.name, rules=tuple(named))


def system_evidence(experiment: Experiment, evaluation: Evaluation) -> tuple[EvidenceFinding, ...]:
    """What the evidence checks find in a gated system, except failed queries: a rule can replace that limit."""
    limits = replace(experiment.options.limits, max_failed_share=None)
    return inspect_systems((evaluation,), experiment.primary, limits)


def _differences(baseline: Baseline, evaluation: Evaluation, experiment: Experiment) -> Iterator[str]:
    """How the baseline was made differently, in ways that leave the numbers comparable."""
    digest = digest_of(evaluation, experiment)
    if baseline.added:
        n, names = len(baseline.added), first_of(baseline.added)
        is_queried = baseline.added[0] in experiment.testset.by_id
        what = "compared with it" if is_queried else "part of this gate"
        yield f"{n_of(n, 'queries')} added since the baseline was accepted, not {what}: {names}"
    if baseline.system != evaluation.name:
        yield f"the baseline is of the system {baseline.system}, and this is {evaluation.name}"
    if baseline.config_digest and digest and baseline.config_digest != digest:
        yield "the configuration of the system has changed since the baseline was accepted"
    if baseline.cranfield != __version__:
        yield f"the baseline was accepted under Cranfield {baseline.cranfield}, and this is {__version__}"


def digest_of(evaluation: Evaluation, experiment: Experiment) -> str:
    """Digest of the config that gave the answers; empty where a run file does not say."""
    if evaluation.run is None:
        return ""
    return evaluation.run.config_digest or experiment.systems[0].config_digest
