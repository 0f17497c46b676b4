"""The whole job behind `cranfield run`: config, preflight, collect, evaluate, compare, report, files; a test set or several.

Everything that can be known to be wrong is found before the first query is run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from cranfield.config import Config, SetConfig, load_config
from cranfield.errors import InputError, PreflightError, TestSetError, UsageError
from cranfield.evaluation.compare import compare as compare_evaluations
from cranfield.evaluation.contrast import Asked, contrast_strata
from cranfield.evaluation.many import compare_many
from cranfield.evaluation.many_values import ManyComparison
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict import broken_limits
from cranfield.measures import Measure
from cranfield.project.asking import Prepared, ask, collect_options, each_once, prepared, require_folder
from cranfield.project.history import remember
from cranfield.project.rules import check_rules
from cranfield.project.sensitivity import sensitivity as tried_otherwise
from cranfield.project.several import Done, summary
from cranfield.reporting import Document, comparison_document, evaluation_document, many_document, save_reports
from cranfield.systems import CollectOptions, ConfiguredSystem, PassedCheck, build_systems, progress_on
from cranfield.systems.collect.fingerprint import UndigestedError, dependency_digest
from cranfield.systems.collect.preflight import preflight

RESULTS, REPORT, MARKDOWN = "results.json", "report.html", "report.md"


@dataclass(frozen=True)
class Job:
    """What a run of the job made."""

    document: Document
    """The report; over several test sets a summary of theirs."""
    evaluations: tuple[Evaluation, ...]
    """Of one test set; none over several."""
    comparison: Comparison | None
    """Of two systems; None of one alone, of three or more, and over several test sets."""
    broken_limits: tuple[str, ...]
    written: tuple[Path, ...]
    report: Path
    primary: Measure | None = None
    """The measure that decides; None over several test sets."""
    many: ManyComparison | None = None
    """Of three systems or more."""
    parts: tuple[Job, ...] = ()
    """Over several test sets, what each of them made."""


@dataclass(frozen=True)
class _Part:
    """A test set and the systems it is asked of: everything is known to fit."""

    name: str
    """Empty where it is the only one."""
    ready: Prepared
    systems: Sequence[ConfiguredSystem]
    held: Sequence[PassedCheck]
    baseline: str | None
    """Among three systems or more: the one that the others are held against."""

    def same(self, options: CollectOptions) -> dict[str, Any]:
        """What makes a collection of it the same."""
        systems = {system.name: [system.config_digest, _around(system)] for system in self.systems}
        asked = {"k": self.ready.k, "repeats": options.repeats, "refresh": options.refresh}
        return {"testset": self.ready.testset.digest, "systems": systems, **asked}


def _around(system: ConfiguredSystem) -> str:
    """What the system depends on, as a digest; a sentence where that cannot be told."""
    try:
        return dependency_digest(system)
    except UndigestedError as why:
        return str(why)


@dataclass(frozen=True)
class _Told:
    """What reports say beside the results."""

    contrasts: tuple[Asked, ...]
    today: date | None
    sensitivity: bool


def run_job(  # noqa: PLR0913 - each is an option of the command, and is typed by name
    config_path: Path,
    *,
    out: Path,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    pilot: bool = False,
    allow_drift: bool = False,
    contrasts: Sequence[Asked] = (),
    sensitivity: bool = False,
    keep: bool = True,
    refresh: bool = False,
    today: date | None = None,
) -> Job:
    """Collect the systems of a config, score and compare them, and write the results into `out`.

    Every evaluation is added to the history beside the config.

    Args:
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`. With several test sets each has these in a
            folder of its name, and `report.html` and `report.md` on top sum them up.
        systems: one name to evaluate it alone, two to compare (baseline first), more to compare all of them; None is the
            pair of the config, or all of its systems.
        seed: of everything random.
        pilot: stamp everything made as not for the record.
        allow_drift: go on with a test set that is no longer true of its repository.
        contrasts: (key, value, value) of strata to contrast.
        sensitivity: of two systems, try whether the verdict hangs on one choice.
        keep: use answers that were kept of an earlier call, and keep the new ones.
        refresh: use none that were kept.
        today: to say when a test set is overdue for new queries; None does not say.

    Raises:
        InputError: config or test set, with all their problems.
        PreflightError: a check did not hold; no query was run.
        Interrupted: cut short; the same call goes on from there.
    """
    config = load_config(config_path, also=check_rules)
    if allow_drift and not any(one.repo for one in config.sets.values()):
        raise UsageError("--allow-drift is about a repository", hint="name it in the config with `repo: DIR`")
    require_folder(out)
    parts = _prepared(config, systems, seed, allow_drift=allow_drift)
    told = _Told(tuple(contrasts), today, sensitivity)
    options = collect_options(config, keep=keep, refresh=refresh)
    try:
        for part in parts:
            for asked in contrasts:
                contrast_strata(part.ready.dry, *asked)  # what is not there is refused before a query is run
        if config.testsets is None:
            return _run(config, parts[0], out, told, options, pilot=pilot)
        done = Done(out)
        jobs = {part.name: _run(config, part, out / part.name, told, options, pilot=pilot, done=done) for part in parts}
    finally:
        for part in parts:
            for system in part.systems:
                system.close()
    document = summary(jobs, {part.name: part.ready.said.params for part in parts})
    on_top = save_reports(document, out, (REPORT, MARKDOWN))
    done.forget()
    written = tuple(path for job in jobs.values() for path in job.written)
    broken = tuple(f"{name}: {limit}" for name, job in jobs.items() for limit in job.broken_limits)
    return Job(document, (), None, broken, (*written, *on_top), out / REPORT, parts=tuple(jobs.values()))


def _prepared(config: Config, systems: Sequence[str] | None, seed: int, *, allow_drift: bool) -> list[_Part]:
    """Every test set with its systems; what is wrong with any of them is said before a query is run."""
    parts: list[_Part] = []
    wrong: list[InputError | PreflightError] = []
    for name, one in config.sets.items():
        try:
            parts.append(_part(config, name, one, systems, seed, allow_drift=allow_drift))
        except (InputError, PreflightError) as error:
            wrong.append(error)
    if len(wrong) == 1:
        raise wrong[0]
    if wrong:
        kind = PreflightError if all(isinstance(error, PreflightError) for error in wrong) else TestSetError
        raise kind(list(dict.fromkeys(problem for error in wrong for problem in error.problems)))
    return parts


def _part(
    config: Config, name: str, one: SetConfig, systems: Sequence[str] | None, seed: int, *, allow_drift: bool
) -> _Part:
    ready = prepared(config, of=name or None, seed=seed, allow_drift=allow_drift)
    names = _chosen(config, one, systems)
    chosen = {system.name: system for system in build_systems(config, names, one.params)}
    ordered = [chosen[name] for name in names]
    baseline = config.baseline if config.baseline in names else None
    return _Part(name, ready, ordered, preflight(each_once(ordered), k=ready.k), baseline)


def _chosen(config: Config, one: SetConfig, systems: Sequence[str] | None) -> list[str]:
    if systems is not None:
        if len(set(systems)) < len(systems):
            raise UsageError("--system names a system twice", got=", ".join(systems))
        return list(systems)
    if one.systems is not None:
        return list(one.systems)
    return list(config.pair if config.pair is not None else config.systems)


def _run(
    config: Config,
    part: _Part,
    out: Path,
    told: _Told,
    options: CollectOptions,
    *,
    pilot: bool,
    done: Done | None = None,
) -> Job:
    """Ask, score and report one test set."""
    progress = progress_on(sys.stderr)
    names = [system.name for system in part.systems]
    same = {**part.same(options), "pilot": pilot} if done is not None else {}
    runs = done.runs(part.name, same, names) if done is not None else None
    if runs is not None:
        progress.note(f"test set {part.name}: collected before, by the call that was cut short")
    else:
        if part.name:
            progress.note(f"test set {part.name}:")
        ready = part.ready
        runs, _ = ask(
            ready.testset,
            part.systems,
            config,
            out,
            k=ready.k,
            pilot=pilot,
            options=options,
            held=part.held,
            progress=progress,
        )
        if done is not None:
            done.add(part.name, same)
    evaluations = tuple(part.ready.evaluated(runs[name]) for name in names)
    if why := remember(config.folder, evaluations, part.ready.options.primary):
        progress.note(why)
    return _report(evaluations, part, told, out)


def _report(evaluations: tuple[Evaluation, ...], part: _Part, told: _Told, out: Path) -> Job:
    options = part.ready.options
    about: dict[str, Any] = {
        "preflight": [(check.system, check.check, check.found) for check in part.held],
        "contrasts": told.contrasts,
        "today": told.today,
    }
    comparison: Comparison | None = None
    many: ManyComparison | None = None
    if len(evaluations) == 2:
        comparison = compare_evaluations(evaluations[0], evaluations[1], options)
        tried = tried_otherwise(comparison) if told.sensitivity else None
        document = comparison_document(comparison, sensitivity=tried, **about)
    elif len(evaluations) > 2:
        many = compare_many(evaluations, options, baseline=part.baseline)
        document = many_document(many, **about)
    else:
        document = evaluation_document(evaluations, by_query=True, **about)
    written = save_reports(document, out, (RESULTS, REPORT, MARKDOWN))
    primary = options.primary or evaluations[0].measures[0]
    broken = tuple(broken_limits(evaluations, primary, options.limits))
    return Job(document, evaluations, comparison, broken, written, out / REPORT, primary, many)
