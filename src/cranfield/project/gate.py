"""The job behind `cranfield gate`: config, baseline, collect or read, judge, report; a test set or several.

Everything that can be known to be wrong is found before the first query is run: rules that name what is not there, a
baseline of another test set, a ref that was not fetched.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cranfield.config import SetConfig
from cranfield.config.check import Finding
from cranfield.config.gate import GateConfig
from cranfield.errors import ConfigError, CranfieldError, InputError, Problem, UsageError
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import refusal, shown
from cranfield.gate.baseline import Baseline, misfits, parse_baseline, read_baseline
from cranfield.gate.evidence import Evidence
from cranfield.gate.result import BaselineFacts, GateResult, GateStatus
from cranfield.gate.rules import RULES, check_fit, measure_of, measures_held, rules_of
from cranfield.gate.verdict import Held, judge_all
from cranfield.measures import Measure
from cranfield.model import Run, TestSet
from cranfield.project.asking import Prepared, ask, collect_options, require_folder
from cranfield.project.asking import prepared as as_prepared
from cranfield.project.gate_plan import Plan, placed, planned
from cranfield.project.history import remember
from cranfield.project.recipe import evaluate, with_primary
from cranfield.project.scoring import read_collected
from cranfield.reporting import Document, save_report
from cranfield.reporting.documents.gate import gate_document
from cranfield.systems import ConfiguredSystem, build_systems, progress_on
from cranfield.systems.collect.preflight import preflight
from cranfield.systems.kinds.fusion import FusionSystem
from cranfield.systems.kinds.run_file import RunFileSystem
from cranfield.version import __version__

GATE_FILES = ("gate.json", "gate.html", "gate.md")
WORST_FIRST: tuple[GateStatus, ...] = ("invalid", "failed", "inconclusive", "passed")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the answers come from: the system is asked, unless a finished run is named."""

    folder: Path | None = None
    """That `cranfield run` made."""
    run: Path | None = None
    """A run file in any format."""


@dataclass(frozen=True)
class Part:
    """A test set, and the system that is gated on it."""

    name: str
    """Empty where it is the only one."""
    ready: Prepared
    system: ConfiguredSystem
    gate: GateConfig

    @property
    def k(self) -> int:
        """Results asked of the system."""
        return self.ready.k

    @property
    def testset(self) -> TestSet:
        """Whose queries are asked."""
        return self.ready.testset

    @property
    def primary(self) -> Measure:
        """The measure that decides."""
        return self.ready.options.primary or self.ready.dry.measures[0]

    @property
    def held(self) -> list[str]:
        """The measures that rules hold against the baseline."""
        return measures_held([rule for _, rule in rules_of(self.gate, self.name)])


@dataclass(frozen=True)
class Gated:
    """What came of one test set."""

    name: str
    result: GateResult


@dataclass(frozen=True)
class GateJob:
    """What came of all."""

    parts: tuple[Gated, ...]
    document: Document
    written: tuple[Path, ...]

    @property
    def status(self) -> GateStatus:
        """The worst of them."""
        found = {part.result.status for part in self.parts}
        return next(status for status in WORST_FIRST if status in found)


def run_gate(config_path: Path, *, out: Path, source: Source | None = None, baseline_ref: str | None = None) -> GateJob:
    """Hold the gated system of a config to its rules, on each of its test sets.

    Args:
        config_path: cranfield.yaml.
        out: folder of the run and of `gate.json`, `gate.html` and `gate.md`; of several test sets each has its run in a
            folder of its name.
        source: a finished run to judge; None asks the system.
        baseline_ref: the git ref whose rules and baseline count, in place of those in the working tree.

    Raises:
        InputError: config, test set, baseline or run, with all their problems.
        UsageError: no gate, no such ref, or a pilot.
        PreflightError: a check did not hold; no query was run.
    """
    plan = planned(config_path, baseline_ref)
    parts = prepared(plan)
    baselines = _baselines(plan, parts)
    gated = tuple(
        Gated(part.name, _judged(plan, part, evaluation, baselines[part.name]))
        for part, evaluation in evaluations(plan, parts, out, source or Source())
    )
    if source in (None, Source()):
        _remember(plan, parts, gated)
    document = gate_document([(one.name, one.result) for one in gated])
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    written = tuple(out / name for name in GATE_FILES)
    for path in written:
        save_report(document, path)
    return GateJob(gated, document, written)


def _remember(plan: Plan, parts: Sequence[Part], gated: Sequence[Gated]) -> None:
    """Add what was asked now to the history; a run that was judged before is there already."""
    for part, one in zip(parts, gated, strict=True):
        if why := remember(plan.config.folder, [one.result.evaluation], part.primary):
            progress_on(sys.stderr).note(why)


def prepared(plan: Plan) -> list[Part]:
    """Every test set with its system; what is wrong with any of them is said before a query is run."""
    parts: list[Part] = []
    problems: list[Problem] = []
    for name, one in plan.config.sets.items():
        try:
            part = _part(plan, name, one)
        except InputError as error:
            problems += error.problems
            continue
        problems += placed(plan, chain(check_fit(plan.gate, name, part.testset), _uncomputable(part)))
        parts.append(part)
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return parts


def _part(plan: Plan, name: str, one: SetConfig) -> Part:
    ready = as_prepared(plan.config, of=name or None)
    (system,) = build_systems(plan.config, [plan.systems[name]], one.params)
    return Part(name, ready, system, plan.gate)


def _uncomputable(part: Part) -> Iterator[Finding]:
    """Rules on measures that this test set allows for no query."""
    for index, rule in rules_of(part.gate, part.name):
        measure = measure_of(rule)
        if measure is not None and rule.judged is None:
            try:
                with_primary(part.ready.dry, measure)
            except CranfieldError as error:
                yield from ((("gate", "rules", index, rule.kind, "measure"), problem) for problem in error.problems)


def _baselines(plan: Plan, parts: Sequence[Part]) -> dict[str, tuple[Baseline, BaselineFacts] | None]:
    """The baseline of each test set, where there is one; refused where it is of another experiment."""
    found: dict[str, tuple[Baseline, BaselineFacts] | None] = {}
    problems: list[Problem] = []
    for part in parts:
        path = plan.baseline_path(part.name)
        needed = any(RULES[rule.kind].needs_baseline for _, rule in rules_of(plan.gate, part.name))
        if plan.ref is None and not needed and not path.exists():
            found[part.name] = None
            continue
        try:
            baseline, name = _baseline(plan, path)
        except InputError as error:
            problems += error.problems
            continue
        problems += misfits(baseline, part.ready.dry, k=part.k, measures=part.held, name=name)
        ref = plan.ref.name if plan.ref is not None else ""
        inside = plan.gate.baseline_of(part.name)
        facts = BaselineFacts(inside, ref, baseline.system, baseline.commit, baseline.accepted)
        found[part.name] = baseline, facts
    if problems:
        raise InputError(problems)
    return found


def _baseline(plan: Plan, path: Path) -> tuple[Baseline, str]:
    if plan.ref is None:
        return read_baseline(path), shown(path)
    name = plan.ref.shown(path)
    hint = "accept a baseline there first: `cranfield baseline accept`, commit, merge"
    text = plan.ref.read(path, hint=hint)
    try:
        return parse_baseline(text.decode("utf-8"), name), name
    except UnicodeDecodeError:
        raise InputError("not UTF-8", path=name) from None


def evaluations(plan: Plan, parts: Sequence[Part], out: Path, source: Source) -> Iterator[tuple[Part, Evaluation]]:
    """Each test set with the evaluation of its system: asked now, or of a finished run."""
    if source.run is not None and len(parts) > 1:
        raise UsageError("--run is one run, and there are several test sets", hint="use --from DIR of `cranfield run`")
    if source.run is not None and source.folder is not None:
        raise UsageError("--from and --run are two runs", expected="one of them")
    if source.run is None:  # a run that is named has its own stamp
        pilots = dict.fromkeys(path for part in parts for path in _pilots(part.system))
        if pilots:
            raise UsageError([_is_pilot(path) for path in pilots])
    runs = _finished(parts, source) if source.folder or source.run else _asked(plan, parts, out)
    for part in parts:
        yield part, _scored(plan, part, runs[part.name])


def _scored(plan: Plan, part: Part, run: Run | Path) -> Evaluation:
    """An evaluation by the measures of the config and the rules. What has no answer counts as 0, whatever the
    convention does elsewhere: a gate must not be kept by silence.
    """
    said = part.ready.said
    evaluation = evaluate(part.testset, run, measures=said.measures, convention=part.ready.convention, missing="zero")
    evaluation = with_primary(evaluation, said.primary)
    for _, rule in rules_of(plan.gate, part.name):
        measure = measure_of(rule)
        if measure is not None and rule.judged is None:
            evaluation = with_primary(evaluation, measure)
    return evaluation


def _asked(plan: Plan, parts: Sequence[Part], out: Path) -> dict[str, Run | Path]:
    """Ask the system now; all preflight checks come first. No answer is one that was kept: code may have changed that no
    config names, and it is what a gate is about.
    """
    require_folder(out)
    options = collect_options(plan.config, refresh=True)
    runs: dict[str, Run | Path] = {}
    try:
        held = {part.name: preflight([part.system], k=part.k) for part in parts}
        for part in parts:
            folder = out / part.name if part.name else out
            found, _ = ask(
                part.testset, [part.system], plan.config, folder, k=part.k, options=options, held=held[part.name]
            )
            runs[part.name] = found[part.system.name]
    finally:
        for part in parts:
            part.system.close()
    return runs


def _finished(parts: Sequence[Part], source: Source) -> dict[str, Run | Path]:
    """Runs that are there: of the system, the test set and the k of the config, and no pilots."""
    runs: dict[str, Run | Path] = {}
    problems: list[Problem] = []
    for part in parts:
        path = source.run or (source.folder or Path()) / part.name / "runs" / f"{part.system.name}.jsonl"
        if not path.exists():
            hint = "make it by `cranfield run`" if source.run is None else None
            problems.append(Problem("there is no such run", path=str(path), hint=hint))
        elif source.run is not None and not _is_collected(path):
            runs[part.name] = path
        else:
            run = read_collected(path, "jsonl")
            problems += _strange(run, part, path)
            runs[part.name] = run
    if problems:
        raise UsageError(problems)
    return runs


def _is_collected(path: Path) -> bool:
    from cranfield.formats.sniff import sniff_run

    return sniff_run(path) == "jsonl"


def _pilots(system: ConfiguredSystem) -> Iterator[Path]:
    """Run files that a system is made of and that are not for the record; one that cannot be read is told by preflight."""
    if isinstance(system, FusionSystem):
        for part in system.parts.values():
            yield from _pilots(part)
    elif isinstance(system, RunFileSystem):
        with suppress(InputError):
            if system.run.pilot:
                yield system.path


def _is_pilot(path: Path) -> Problem:
    return Problem("the run is a pilot, which passes no gate", path=str(path), hint="run it without --pilot")


def _strange(run: Run, part: Part, path: Path) -> Iterator[Problem]:
    """Why a run cannot speak for this system on this test set."""
    if run.pilot:
        yield _is_pilot(path)
    hint = "run it anew: `cranfield run`, or `cranfield gate` without --from"
    checks: tuple[tuple[str, object, object], ...] = (
        ("test set", run.testset_digest, part.testset.digest),
        ("k", run.depth, part.k),
        ("config of the system", run.config_digest, part.system.config_digest),
    )
    for what, got, expected in checks:
        if got is not None and got != expected:
            yield Problem(
                f"the run is of another {what}",
                path=str(path),
                expected=str(expected)[:19],
                got=str(got)[:19],
                hint=hint,
            )


def _judged(plan: Plan, part: Part, evaluation: Evaluation, held: tuple[Baseline, BaselineFacts] | None) -> GateResult:
    baseline, facts = held if held is not None else (None, None)
    evidence = Evidence(evaluation, baseline, plan.config.test, plan.config.alpha)
    notes = (*plan.notes, *(_about(baseline, evaluation, part) if baseline is not None else ()))
    rules = [rule for _, rule in rules_of(plan.gate, part.name)]
    return judge_all(evidence, Held(rules, plan.config.limits, part.primary, facts, notes))


def _about(baseline: Baseline, evaluation: Evaluation, part: Part) -> Iterator[str]:
    """How the baseline came about otherwise; none of it makes the numbers incomparable."""
    digest = digest_of(evaluation, part)
    if baseline.system != evaluation.name:
        yield f"the baseline is of the system {baseline.system}, and this is {evaluation.name}"
    if baseline.config_digest and digest and baseline.config_digest != digest:
        yield "the configuration of the system has changed since the baseline was accepted"
    if baseline.cranfield != __version__:
        yield f"the baseline was accepted under Cranfield {baseline.cranfield}, and this is {__version__}"


def digest_of(evaluation: Evaluation, part: Part) -> str:
    """Of the config that gave the answers; empty where a run file does not say."""
    if evaluation.run is None:
        return ""
    return evaluation.run.config_digest or part.system.config_digest
