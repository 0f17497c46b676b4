"""`cranfield gate`: config, baseline, collect or read the runs, judge the rules, report; for one test set or several.

Everything that can be known to be wrong is found before the first query is sent: rules that name what is not there, a baseline of
another test set, a ref that was not fetched. A gate collects in a private folder of a fresh name, so that no older journal is used.
An interrupted call leaves it for `--resume`; a gate that finishes removes what earlier ones left.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import file_digest
from itertools import chain
from pathlib import Path

import numpy as np

from cranfield.app.evaluate import with_measure
from cranfield.app.experiment import Experiment, prepare, prepare_all, require_one_set
from cranfield.app.history import remember
from cranfield.app.loading import NO_OVERRIDES, SetOverrides
from cranfield.app.run import require_folder
from cranfield.base.errors import ConfigError, CranfieldError, InputError, Problem, UsageError
from cranfield.base.platforms import PROGRAMS, require
from cranfield.base.version import __version__
from cranfield.base.words import count_noun, join_first
from cranfield.config.load import placed
from cranfield.config.strict import Finding
from cranfield.evaluation.classes import deciding_key
from cranfield.evaluation.evidence.inspection import inspect_systems
from cranfield.evaluation.evidence.values import Finding as EvidenceFinding
from cranfield.evaluation.testset.split import only
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import PRIVATE_FOLDER, check_inside, folder_inside, refusal, shown
from cranfield.formats.runs.jsonl import read_run
from cranfield.gate.baseline import Baseline, Ref, baseline_digest, misfits, parse_baseline, read_baseline, with_added
from cranfield.gate.gate_input import GateInput
from cranfield.gate.reports.gate import gate_document
from cranfield.gate.result import BaselineFacts, EarlierSource, GateReport, GateResult, GateStatus, SourceKind
from cranfield.gate.rules import check_fit, compared_measures, configured_rules, in_classes, measure_of, rules_of, words
from cranfield.gate.use_cases.plan import GatePlan, lost_anchors, planned, refuse_overrides
from cranfield.gate.verdict import GateTerms, judge_all
from cranfield.model import CallLog, Outcome, Run
from cranfield.reporting import Document, save_reports
from cranfield.systems import Interrupted, progress_on
from cranfield.systems.collect.collection import PARTIAL, RUNS, locked
from cranfield.systems.collect.journal import with_ages
from cranfield.systems.kinds.python import FunctionSystem
from cranfield.systems.kinds.run_file import RunFileSystem, run_file_systems

PRIVATE = ".gate-"
"""How the name of the folder of a collection begins; the rest is random."""


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where the answers come from: the system is called, unless a finished run is named."""

    folder: Path | None = None
    """That `cranfield run` made."""
    run: Path | None = None
    """A run file in any format."""
    resume: Path | None = None
    """Folder that an interrupted gate left: its answers are used, and the system is called for the others."""

    @property
    def is_finished(self) -> bool:
        """Whether no system is called."""
        return self.folder is not None or self.run is not None


@dataclass(frozen=True, slots=True)
class CollectionFolder:
    """A private folder to collect in."""

    path: Path
    if_interrupted: str
    """What becomes of its answers then."""


def keeps_nothing(ref: str | None) -> str:
    """Why answers of an interrupted gate are not used; empty where they are."""
    if ref is not None:
        return "with a baseline ref, a gate uses only answers of this call"
    if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
        return "in CI (the variable CI is set), a gate uses only answers of this call"
    return ""


@contextmanager
def collection_folder(
    out: Path, experiments: Sequence[Experiment], source: AnswerSource, ref: str | None = None
) -> Iterator[CollectionFolder | None]:
    """A private folder to collect in; the runs are in the output folder at the end of the block.

    Args:
        out: output folder, created if missing, and locked until the end.
        experiments: that are collected.
        source: where the answers come from; for a finished run there is no folder.
        ref: the git ref whose rules count.

    Raises:
        UsageError: the output folder cannot be used, or there is nothing to resume.
        Interrupted: the message names the folder that can be resumed, if any.
    """
    if source.is_finished:
        yield None
        return
    require_folder(out)
    check_outputs(out, experiments)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out, out):
            folder = (
                Path(tempfile.mkdtemp(prefix=PRIVATE, dir=out)) if source.resume is None else _left(source.resume, out)
            )
            others = [path for path in _left_folders(out) if path.name != folder.name]
            if others:
                text = f"answers of an interrupted gate are not used, and will be removed when this gate finishes: {join_first(map(str, others))}"
                progress_on(sys.stderr).note(text)
            with _kept_if_interrupted(folder, keeps_nothing(ref)):
                yield CollectionFolder(folder, _if_interrupted(folder, keeps_nothing(ref)))
            _publish(folder, out, experiments)
            for path in (folder, *others):
                shutil.rmtree(path, ignore_errors=True)
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out), error)) from error


def check_outputs(out: Path, experiments: Sequence[Experiment], files: Iterable[Path] = ()) -> None:
    """Refuse a link in the place of a folder or file that a gate writes, before a query is sent.

    Raises:
        UsageError: with its place.
    """
    if not out.is_dir():
        return
    try:
        for path in files:
            check_inside(out, path)
        for experiment in experiments:
            check_inside(out, out / experiment.name / RUNS, is_folder=True)
    except OSError as error:
        raise UsageError(refusal(Path(error.filename or out), error)) from error


def _left_folders(out: Path) -> list[Path]:
    return sorted(path for path in out.glob(f"{PRIVATE}*") if path.is_dir() and not path.is_symlink())


def _left(resume: Path, out: Path) -> Path:
    """The folder to resume, as one of the output folder."""
    found = [path for path in _left_folders(out) if path.name == resume.name]
    if not found or resume.is_symlink() or not resume.is_dir() or not resume.samefile(found[0]):
        expected = f"a folder {out / PRIVATE}… printed by an interrupted gate"
        raise UsageError("no interrupted gate found", path=str(resume), expected=expected)
    return found[0]


def _if_interrupted(folder: Path, why_not: str) -> str:
    """What becomes of the answers of a call that does not finish."""
    if why_not:
        return f"no answers are kept: {why_not}."
    return f"add --resume {folder} to the same command to use them; otherwise the next finished gate removes them."


@contextmanager
def _kept_if_interrupted(folder: Path, why_not: str) -> Iterator[None]:
    """Keep the answers of a call that does not finish, and say where; or remove them where none may be used."""
    try:
        yield
    except BaseException as error:
        has_answers = any(path.is_file() for path in folder.rglob("*"))
        if why_not or not has_answers:
            shutil.rmtree(folder, ignore_errors=True)
        elif not isinstance(error, Interrupted):
            progress_on(sys.stderr).note(f"the answers are kept: {_if_interrupted(folder, why_not)}")
        raise


def _publish(folder: Path, out: Path, experiments: Sequence[Experiment]) -> None:
    """Move the runs to where `cranfield run` has them."""
    for experiment in experiments:
        source, target = folder / experiment.name / RUNS, out / experiment.name / RUNS
        if source.is_dir():
            # NAME.log.jsonl comes before NAME.jsonl, as they are written.
            paths = sorted(source.iterdir(), reverse=True)
            with folder_inside(out, target.parent, make=0o777), folder_inside(out, target, make=PRIVATE_FOLDER) as runs:
                for path in paths:
                    runs.take(path, path.name)


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_Earlier = tuple[EarlierSource, frozenset[str]]


@dataclass(frozen=True, slots=True)
class AnsweredTestSet:
    """The answers to one test set, scored, and what of them was read and not made in this call."""

    experiment: Experiment
    evaluation: Evaluation
    earlier: tuple[EarlierSource, ...] = ()
    n_earlier: int = 0
    """Answers that were read, in part at least, and not made in this call."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """A run, and what it was read from."""

    run: Run | Path
    kind: SourceKind | None = None
    """None: it was collected in this call, but for what its logs say."""
    path: Path = Path()
    digest: str = ""


def answered(
    experiments: Sequence[Experiment],
    source: AnswerSource,
    folder: CollectionFolder | None,
    *,
    whole: Sequence[Experiment] = (),
) -> Iterator[AnsweredTestSet]:
    """Each experiment with the evaluation of its system: collected now, or of a finished run.

    Args:
        experiments: of each test set, with one system.
        source: where the answers come from.
        folder: of `collection_folder`; None where the run is finished.
        whole: the experiments on all queries, which a finished run is of; default: the same.
    """
    runs = _finished(whole or experiments, source) if folder is None else _collected(experiments, folder, source)
    for experiment in experiments:
        found = runs[experiment.name]
        run = found.run
        if isinstance(run, Run) and run.testset_digest is not None:  # it was compared
            run = replace(run, testset_digest=experiment.testset.digest)
        evaluation, cut = _evaluated(experiment, run)
        earlier = list(_earlier(experiment, evaluation, found))
        n_earlier = len(frozenset[str]().union(*(ids for _, ids in earlier)))
        yield AnsweredTestSet(experiment, evaluation, tuple(source for source, _ in earlier), n_earlier, cut)


def refuse_source(source: AnswerSource, experiments: Sequence[Experiment], ref: str | None) -> None:
    """Refuse ways to name answers that exclude each other, and pilots among the run files of the config.

    Raises:
        UsageError: with each of them.
    """
    given = [name for name in ("folder", "run", "resume") if getattr(source, name) is not None]
    if len(given) > 1:
        first, second = given[:2]
        hint = "both set the source of the answers: leave one of them out."
        raise UsageError(f"{{{first}}} and {{{second}}} exclude each other", hint=hint, parameters=tuple(given))
    if source.resume is not None and (why := keeps_nothing(ref)):
        hint = "leave out {resume}; every query is then sent again."
        raise UsageError(f"{{resume}} is not allowed: {why}", hint=hint, parameters=("resume",))
    if source.run is not None and len(experiments) > 1:
        hint = "use {folder=DIR}, the output of `cranfield run`"
        raise UsageError(
            "{run} is a single run, but there are several test sets", hint=hint, parameters=("run", "folder")
        )
    if source.run is None:  # the stamp of a run that is named is checked when it is read
        pilots = dict.fromkeys(
            part.path for experiment in experiments for part in run_file_systems(experiment.systems) if _is_pilot(part)
        )
        if pilots:
            raise UsageError([_pilot_problem(path) for path in pilots])


def _collected(experiments: Sequence[Experiment], folder: CollectionFolder, source: AnswerSource) -> dict[str, _Found]:
    """Runs collected now; the systems of every test set are checked first."""
    for experiment in experiments:
        _ = experiment.checks
    runs: dict[str, _Found] = {}
    for experiment in experiments:
        place, name = folder.path / experiment.name, experiment.systems[0].name
        resumed = _resumed(experiment, place / RUNS / f"{name}.jsonl") if source.resume is not None else None
        if resumed is None:
            journal = place / PARTIAL / f"{name}.jsonl"
            digest = _file_digest(journal) if source.resume is not None else ""
            options = replace(experiment.collecting, if_interrupted=folder.if_interrupted)
            (run,) = replace(experiment, collecting=options).collect(place).values()
            resumed = _Found(run, None, source.resume or place, digest)
        runs[experiment.name] = resumed
    return runs


def _resumed(experiment: Experiment, path: Path) -> _Found | None:
    """A run that an interrupted gate had collected; None where there is none of this experiment."""
    if path.is_symlink() or not path.is_file():
        return None
    with suppress(InputError, ValueError):
        run = read_run(path)
        if not list(_mismatches(run, experiment, path, is_collected=True)):
            return _Found(with_ages(run), "interrupted gate", path.parents[1], _file_digest(path))
    return None


def _finished(experiments: Sequence[Experiment], source: AnswerSource) -> dict[str, _Found]:
    """Finished runs: of the system, the test set and the k of the config, and no pilots."""
    runs: dict[str, _Found] = {}
    problems: list[Problem] = []
    for experiment in experiments:
        system = experiment.systems[0].name
        path = source.run or (source.folder or Path()) / experiment.name / RUNS / f"{system}.jsonl"
        if not path.exists():
            hint = "create it with `cranfield run`" if source.run is None else None
            problems.append(Problem("run not found", path=str(path), hint=hint))
            continue
        run: Run | Path = path
        if source.run is None or _is_jsonl(path):
            run = read_run(path)
            is_collected = source.run is None or _claims_collection(run)
            problems += _mismatches(run, experiment, path, is_collected=is_collected)
        runs[experiment.name] = _Found(run, "run file", path, _file_digest(path))
    if problems:
        raise UsageError(problems)
    return runs


def _is_jsonl(path: Path) -> bool:
    from cranfield.formats.sniff import sniff_run

    return sniff_run(path).name == "jsonl"


def _claims_collection(run: Run) -> bool:
    """Whether a run has anything that only a collection writes."""
    claims = (run.testset_digest, run.config_digest, run.depth, run.config or None, run.logs or None)
    return any(claim is not None for claim in claims)


def _is_pilot(system: RunFileSystem) -> bool:
    """Whether the file is marked as a pilot; preflight reports one that cannot be read."""
    with suppress(InputError):
        return system.run.pilot
    return False


def _pilot_problem(path: Path) -> Problem:
    return Problem(
        "the run is a pilot, which cannot pass a gate", path=str(path), hint="collect it again, not as a pilot"
    )


def _mismatches(run: Run, experiment: Experiment, path: Path, *, is_collected: bool) -> Iterator[Problem]:
    """Why a run is not one of this system on this test set; a collected one says what it is of."""
    if run.pilot:
        yield _pilot_problem(path)
    hint = "collect it again with `cranfield run`, or let the gate query the system"
    under_ref = "; with a baseline ref, first set the keys that the ref decides to the values of the ref"
    checks: tuple[tuple[str, object, object], ...] = (
        ("test set", run.testset_digest, experiment.testset.digest),
        ("k", run.depth, experiment.k),
        ("config of the system", run.config_digest, experiment.systems[0].config_digest),
    )
    for what, got, expected in checks:
        if got == expected or (got is None and not is_collected):
            continue
        message = f"the run has a different {what}" if got is not None else f"the run does not state its {what}"
        seen = "nothing" if got is None else str(got)[:19]
        more = under_ref if what == "config of the system" else ""
        yield Problem(message, path=str(path), expected=str(expected)[:19], got=seen, hint=hint + more)


def _evaluated(experiment: Experiment, run: Run | Path) -> tuple[Evaluation, tuple[str, ...]]:
    """The evaluation of the first `k` results of each query, and a note on results beyond."""
    k, depth = experiment.k, experiment.scoring.depth
    if depth is not None and depth <= k:
        return experiment.evaluate(run), ()
    if isinstance(run, Run):
        known = experiment.testset.by_id
        more = [n for query_id, answer in run.answers.items() if query_id in known and (n := len(answer.hits) - k) > 0]
        evaluation = None
    else:
        evaluation = experiment.evaluate(run)
        beyond = np.maximum(evaluation.ranking.n_returned - k, 0)
        more = beyond[beyond > 0].tolist()
    if evaluation is None or more:
        cut = replace(experiment, scoring=replace(experiment.scoring, depth=k)).evaluate(run)
        evaluation = replace(cut, reading={**cut.reading, "depth": depth})  # declared; k is recorded by itself
    if not more:
        return evaluation, ()
    what = f"{count_noun(sum(more), 'results')} of {count_noun(len(more), 'queries')} beyond k = {k}"
    return evaluation, (f"{what} are not counted: the gate requests {k} results",)


def _earlier(experiment: Experiment, evaluation: Evaluation, found: _Found) -> Iterator[_Earlier]:
    """What answers were read from that were not made in this call, and the queries."""
    run = found.run if isinstance(found.run, Run) else None
    logs = {} if run is None else run.logs
    if found.kind is not None:
        ids = _answered_ids(evaluation) if run is None else [*run.answers]
        yield _earlier_source(experiment, found.kind, str(found.path), found.digest, ids, logs)
        return
    files = list(run_file_systems(experiment.systems))
    for part in files:
        answered = [name for name, answer in part.run.answers.items() if answer.outcome is not Outcome.MISSING]
        place, digest = part.config.run, _file_digest(part.path)
        yield _earlier_source(experiment, "run file of the config", place, digest, answered, part.run.logs)
    kept = {query_id: log for query_id, log in logs.items() if log.age_s is not None and not (log.cached and files)}
    kinds: dict[SourceKind, list[str]] = {"answer cache": [], "interrupted gate": []}
    for query_id, log in kept.items():
        kinds["answer cache" if log.cached else "interrupted gate"].append(query_id)
    for kind, ids in kinds.items():
        if ids:
            yield _earlier_source(experiment, kind, str(found.path), found.digest, ids, logs)


def _earlier_source(
    experiment: Experiment, kind: SourceKind, path: str, digest: str, ids: Iterable[str], logs: Mapping[str, CallLog]
) -> _Earlier:
    known = frozenset(query_id for query_id in ids if query_id in experiment.testset.by_id)
    times = sorted(
        log.at
        for query_id in known
        if (log := logs.get(query_id)) is not None and _TIME.fullmatch(log.at or "") and log.at
    )
    oldest, latest = (times[0], times[-1]) if times else ("", "")
    return EarlierSource(path, kind, digest, oldest, latest, len(known)), known


def _answered_ids(evaluation: Evaluation) -> list[str]:
    ranking = evaluation.ranking
    return [query_id for query_id, n in zip(ranking.query_ids, ranking.n_returned.tolist(), strict=True) if n]


def _file_digest(path: Path) -> str:
    """SHA-256 of a file; empty where there is none that can be read again."""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as stream:
                return "sha256:" + file_digest(stream, "sha256").hexdigest()
    return ""


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
    source: AnswerSource | None = None,
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
    plan, source = planned(config_path, baseline_ref), source or AnswerSource()
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
    plan: GatePlan, experiments: Sequence[Experiment], evaluations: Mapping[str, Evaluation], report: Path
) -> None:
    """Add the evaluations to the history, with the report of the gate."""
    for experiment in experiments:
        evaluation, declared = evaluations[experiment.name], experiment.options
        why = remember(plan.config.folder, [evaluation], experiment.primary, report=report, declared=declared)
        if why:
            progress_on(sys.stderr).note(why)


def gate_experiments(
    plan: GatePlan, overrides: SetOverrides = NO_OVERRIDES
) -> AbstractContextManager[list[Experiment]]:
    """An experiment for each test set with its gated system; every problem is raised before a query is sent.

    No cached answer is used: the code may have changed, which no config shows.
    """
    require_one_set(plan.config, overrides)

    def prepare_set(name: str) -> Experiment:
        experiment = prepare(plan.config, name, [plan.systems[name]], cache="refresh", overrides=overrides)
        if any(isinstance(system, FunctionSystem) for system in experiment.systems):
            require(PROGRAMS, "a gate on a Python function, which needs its own process,")
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


def _uncomputable(plan: GatePlan, experiment: Experiment) -> Iterator[Finding]:
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


def _baselines(plan: GatePlan, experiments: Sequence[Experiment]) -> dict[str, _Accepted]:
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
            found[name] = _Accepted(notes=(f"{plan.gate.baseline_of(name)} is not used (no rule needs it): {why}",))
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


def _judged(plan: GatePlan, answers: AnsweredTestSet, accepted: _Accepted) -> GateResult:
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
    configured = configured_rules(plan.gate, experiment.name, experiment.testset)
    rules = [in_classes(rule, classes) for rule in configured]
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
    written = [words(rule) for rule in configured]
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
        n, names = len(baseline.added), join_first(baseline.added)
        is_queried = baseline.added[0] in experiment.testset.by_id
        what = "compared with it" if is_queried else "part of this gate"
        yield f"{count_noun(n, 'queries')} added since the baseline was accepted, not {what}: {names}"
    if baseline.system != evaluation.name:
        yield f"the baseline is of the system {baseline.system}, but this system is {evaluation.name}"
    if baseline.config_digest and digest and baseline.config_digest != digest:
        yield "the configuration of the system has changed since the baseline was accepted"
    if baseline.cranfield != __version__:
        yield f"the baseline was accepted with Cranfield {baseline.cranfield}, but this is version {__version__}"


def digest_of(evaluation: Evaluation, experiment: Experiment) -> str:
    """Digest of the config that gave the answers; empty where a run file does not say."""
    if evaluation.run is None:
        return ""
    return evaluation.run.config_digest or experiment.systems[0].config_digest
