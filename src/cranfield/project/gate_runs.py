"""The answers that a gate judges: collected in this call, or read from a finished run; what is read is listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

import numpy as np

from cranfield.errors import InputError, Problem, UsageError
from cranfield.evaluation.values import Evaluation
from cranfield.formats.runs.jsonl import read_run
from cranfield.gate.result import EarlierSource, SourceKind
from cranfield.model import CallLog, Outcome, Run
from cranfield.project.experiment import Experiment
from cranfield.project.gate_folder import CollectionFolder, Source, keeps_nothing
from cranfield.systems.collect.collection import PARTIAL, RUNS
from cranfield.systems.collect.journal import with_ages
from cranfield.systems.kinds.run_file import RunFileSystem, run_file_systems
from cranfield.words import n_of

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_Earlier = tuple[EarlierSource, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Answered:
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
    source: Source,
    folder: CollectionFolder | None,
    *,
    whole: Sequence[Experiment] = (),
) -> Iterator[Answered]:
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
        yield Answered(experiment, evaluation, tuple(source for source, _ in earlier), n_earlier, cut)


def refuse_source(source: Source, experiments: Sequence[Experiment], ref: str | None) -> None:
    """Refuse ways to name answers that exclude each other, and pilots among the run files of the config.

    Raises:
        UsageError: with each of them.
    """
    given = [name for name in ("folder", "run", "resume") if getattr(source, name) is not None]
    if len(given) > 1:
        first, second = given[:2]
        hint = "each says where the answers come from: leave one of them out."
        raise UsageError(f"{{{first}}} and {{{second}}} exclude each other", hint=hint, parameters=tuple(given))
    if source.resume is not None and (why := keeps_nothing(ref)):
        hint = "leave {resume} out: every query is sent again."
        raise UsageError(f"{{resume}} is refused: {why}", hint=hint, parameters=("resume",))
    if source.run is not None and len(experiments) > 1:
        hint = "use {folder=DIR}, the output of `cranfield run`"
        raise UsageError("{run} is one run, and there are several test sets", hint=hint, parameters=("run", "folder"))
    if source.run is None:  # the stamp of a run that is named is checked when it is read
        pilots = dict.fromkeys(
            part.path for experiment in experiments for part in run_file_systems(experiment.systems) if _is_pilot(part)
        )
        if pilots:
            raise UsageError([_pilot_problem(path) for path in pilots])


def _collected(experiments: Sequence[Experiment], folder: CollectionFolder, source: Source) -> dict[str, _Found]:
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


def _finished(experiments: Sequence[Experiment], source: Source) -> dict[str, _Found]:
    """Finished runs: of the system, the test set and the k of the config, and no pilots."""
    runs: dict[str, _Found] = {}
    problems: list[Problem] = []
    for experiment in experiments:
        system = experiment.systems[0].name
        path = source.run or (source.folder or Path()) / experiment.name / RUNS / f"{system}.jsonl"
        if not path.exists():
            hint = "make it by `cranfield run`" if source.run is None else None
            problems.append(Problem("there is no such run", path=str(path), hint=hint))
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
    return Problem("the run is a pilot, which passes no gate", path=str(path), hint="collect it again, not as a pilot")


def _mismatches(run: Run, experiment: Experiment, path: Path, *, is_collected: bool) -> Iterator[Problem]:
    """Why a run is not one of this system on this test set; a collected one says what it is of."""
    if run.pilot:
        yield _pilot_problem(path)
    hint = "collect it again by `cranfield run`, or let the gate query the system"
    under_ref = "; with a baseline ref, first set the keys that it decides as they are there"
    checks: tuple[tuple[str, object, object], ...] = (
        ("test set", run.testset_digest, experiment.testset.digest),
        ("k", run.depth, experiment.k),
        ("config of the system", run.config_digest, experiment.systems[0].config_digest),
    )
    for what, got, expected in checks:
        if got == expected or (got is None and not is_collected):
            continue
        message = f"the run is of another {what}" if got is not None else f"the run does not name its {what}"
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
    what = f"{n_of(sum(more), 'results')} of {n_of(len(more), 'queries')} beyond k = {k}"
    return evaluation, (f"{what} are not counted: a system under the gate is asked for {k}",)


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
