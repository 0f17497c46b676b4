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
from cranfield.evaluation.compare import CompareOptions
from cranfield.evaluation.compare import compare as compare_evaluations
from cranfield.evaluation.contrast import Asked, contrast_strata
from cranfield.evaluation.values import Comparison, Evaluation, Limits
from cranfield.evaluation.verdict import broken_limits
from cranfield.formats.files import refusal
from cranfield.measures import Measure, parse_all
from cranfield.model import Answer, Outcome, Run, TestSet
from cranfield.project.recipe import evaluate, load, with_primary
from cranfield.project.rules import check_rules
from cranfield.project.several import Done, summary
from cranfield.project.shaping import Shaping
from cranfield.reporting import Document, comparison_document, evaluation_document, save_report
from cranfield.systems import Adapter, Held, collect_all, preflight, progress_on, systems_of

RESULTS, REPORT, MARKDOWN = "results.json", "report.html", "report.md"


@dataclass(frozen=True)
class Job:
    """What a run of the job made."""

    document: Document
    """The report; over several test sets a summary of theirs."""
    evaluations: tuple[Evaluation, ...]
    """Of one test set; none over several."""
    comparison: Comparison | None
    """None when one system was run alone, and over several test sets."""
    broken_limits: tuple[str, ...]
    written: tuple[Path, ...]
    report: Path
    primary: Measure | None = None
    """The measure that decides; None over several test sets."""
    parts: tuple[Job, ...] = ()
    """Over several test sets, what each of them made."""


@dataclass(frozen=True)
class _Part:
    """A test set and the systems it is asked of: everything is known to fit."""

    name: str
    """Empty where it is the only one."""
    testset: TestSet
    said: SetConfig
    k: int
    convention: str
    systems: Sequence[Adapter]
    options: CompareOptions
    held: Sequence[Held]
    dry: Evaluation
    """What it would be if no system found anything."""

    @property
    def same(self) -> dict[str, Any]:
        """What makes a collection of it the same."""
        systems = {system.name: system.config_digest for system in self.systems}
        return {"testset": self.testset.digest, "systems": systems, "k": self.k}


@dataclass(frozen=True)
class _Told:
    """What reports say beside the results."""

    contrasts: tuple[Asked, ...]
    today: date | None


def run_job(
    config_path: Path,
    *,
    out: Path,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    pilot: bool = False,
    allow_drift: bool = False,
    contrasts: Sequence[Asked] = (),
    today: date | None = None,
) -> Job:
    """Collect the systems of a config, score and compare them, and write the results into `out`.

    Args:
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`. With several test sets each has these in a
            folder of its name, and `report.html` and `report.md` on top sum them up.
        systems: one name to evaluate it alone, two to compare (baseline first); None is the pair of the config.
        seed: of everything random.
        pilot: stamp everything made as not for the record.
        allow_drift: go on with a test set that is no longer true of its repository.
        contrasts: (key, value, value) of strata to contrast.
        today: to say when a test set is overdue for new queries; None does not say.

    Raises:
        InputError: config or test set, with all their problems.
        PreflightError: a check did not hold; no query was run.
        Interrupted: cut short; the same call goes on from there.
    """
    config = load_config(config_path, also=check_rules)
    if allow_drift and not any(one.repo for one in config.sets.values()):
        raise UsageError("--allow-drift is about a repository", hint="name it in the config with `repo: DIR`")
    _require_folder(out)
    parts = _prepared(config, systems, seed, allow_drift=allow_drift)
    for part in parts:
        for asked in contrasts:
            contrast_strata(part.dry, *asked)  # what is not there is refused before a query is run
    told = _Told(tuple(contrasts), today)
    if config.testsets is None:
        return _run(parts[0], out, told, pilot=pilot)
    done = Done(out)
    jobs = {part.name: _run(part, out / part.name, told, pilot=pilot, done=done) for part in parts}
    document = summary(jobs, {part.name: part.said.params for part in parts})
    on_top = tuple(out / name for name in (REPORT, MARKDOWN))
    for path in on_top:
        save_report(document, path)
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
    repo = None if one.repo is None else config.folder / one.repo
    shaping = Shaping(repo=repo, allow_drift=allow_drift and repo is not None)
    testset = load(config.folder / one.path, shaping=shaping)
    names = _chosen(config, one, systems)
    dry = _dry(config, one, testset)
    options = _options(config, one, dry, seed)
    chosen = {system.name: system for system in systems_of(config, names, one.params)}
    ordered = [chosen[name] for name in names]
    k = one.k or config.k
    return _Part(name, testset, one, k, config.convention, ordered, options, preflight(ordered, k=k), dry)


def _run(part: _Part, out: Path, told: _Told, *, pilot: bool, done: Done | None = None) -> Job:
    """Ask, score and report one test set."""
    progress = progress_on(sys.stderr)
    same = {**part.same, "pilot": pilot}
    names = [system.name for system in part.systems]
    runs = done.runs(part.name, same, names) if done is not None else None
    if runs is not None:
        progress.note(f"test set {part.name}: collected before, by the call that was cut short")
    else:
        if part.name:
            progress.note(f"test set {part.name}:")
        runs = collect_all(part.testset, part.systems, out_dir=out, k=part.k, pilot=pilot, progress=progress)
        if done is not None:
            done.add(part.name, same)
    evaluations = tuple(
        with_primary(
            evaluate(part.testset, runs[name], measures=part.said.measures, convention=part.convention),
            part.said.primary,
        )
        for name in names
    )
    return _report(evaluations, part, told, out)


def _require_folder(out: Path) -> None:
    """Refuse, before anything is asked, an output folder that can never be one."""
    try:
        in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    if in_the_way is not None:
        raise UsageError("this is a file", path=str(in_the_way), expected="a folder for the results, --out")


def _chosen(config: Config, one: SetConfig, systems: Sequence[str] | None) -> list[str]:
    if systems is not None:
        if len(systems) > 2 or len(set(systems)) < len(systems):
            raise UsageError(
                "--system takes one name, or two different ones: baseline, then candidate", got=", ".join(systems)
            )
        return list(systems)
    if one.systems is not None:
        return list(one.systems)
    if config.pair is not None:
        return list(config.pair)
    if len(config.systems) == 1:
        return list(config.systems)
    raise UsageError(
        f"the config has {len(config.systems)} systems and does not say which two to compare",
        hint="name `baseline:` and `candidate:`, or give --system twice",
    )


def _dry(config: Config, one: SetConfig, testset: TestSet) -> Evaluation:
    """What will be computed; refused here, before any query runs, where this test set does not allow it."""
    unanswered = Run("none", {query_id: Answer(Outcome.EMPTY) for query_id in testset.query_ids})
    dry = evaluate(testset, unanswered, measures=one.measures, convention=config.convention)
    return with_primary(dry, one.primary)


def _options(config: Config, one: SetConfig, dry: Evaluation, seed: int) -> CompareOptions:
    """What is declared before the numbers are seen."""
    primary: Measure = parse_all([one.primary])[0] if one.primary is not None else dry.measures[0]
    return CompareOptions(
        primary=primary,
        test=config.test,
        alpha=config.alpha,
        margin=config.margin,
        seed=seed,
        limits=Limits(config.limits.max_failed_share, config.limits.min_judged_share),
    )


def _report(evaluations: tuple[Evaluation, ...], part: _Part, told: _Told, out: Path) -> Job:
    options = part.options
    preflight_lines = [(check.system, check.check, check.found) for check in part.held]
    comparison: Comparison | None = None
    if len(evaluations) == 2:
        comparison = compare_evaluations(evaluations[0], evaluations[1], options)
        document = comparison_document(
            comparison, preflight=preflight_lines, contrasts=told.contrasts, today=told.today
        )
    else:
        document = evaluation_document(
            evaluations, preflight=preflight_lines, by_query=True, contrasts=told.contrasts, today=told.today
        )
    written = tuple(out / name for name in (RESULTS, REPORT, MARKDOWN))
    for path in written:
        save_report(document, path)
    primary = options.primary or evaluations[0].measures[0]
    broken = tuple(broken_limits(evaluations, primary, options.limits))
    return Job(document, evaluations, comparison, broken, written, out / REPORT, primary)
