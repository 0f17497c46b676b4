"""The whole job behind `cranfield run`: config, preflight, collect, evaluate, compare, report, files.

Everything that can be known to be wrong is found before the first query is run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cranfield.config import Config, load_config
from cranfield.errors import UsageError
from cranfield.evaluation.compare import CompareOptions
from cranfield.evaluation.compare import compare as compare_evaluations
from cranfield.evaluation.values import Comparison, Evaluation, Limits
from cranfield.evaluation.verdict import broken_limits
from cranfield.formats.files import refusal
from cranfield.measures import Measure, parse_all
from cranfield.model import Answer, Outcome, Run, TestSet
from cranfield.project.recipe import evaluate, load, with_primary
from cranfield.project.rules import check_rules
from cranfield.reporting import Document, comparison_document, evaluation_document, save_report
from cranfield.systems import CommandSystem, Held, collect_all, preflight, progress_on, systems_of

RESULTS, REPORT, MARKDOWN = "results.json", "report.html", "report.md"


@dataclass(frozen=True)
class Job:
    """What a run of the job made."""

    document: Document
    evaluations: tuple[Evaluation, ...]
    comparison: Comparison | None
    """None when one system was run alone."""
    broken_limits: tuple[str, ...]
    written: tuple[Path, ...]
    report: Path


def run_job(
    config_path: Path, *, out: Path, systems: Sequence[str] | None = None, seed: int = 0, pilot: bool = False
) -> Job:
    """Collect the systems of a config, score and compare them, and write the results into `out`.

    Args:
        config_path: cranfield.yaml.
        out: folder of `results.json`, `report.html`, `report.md` and `runs/`.
        systems: one name to evaluate it alone, two to compare (baseline first); None is the pair of the config.
        seed: of everything random.
        pilot: stamp everything made as not for the record.

    Raises:
        InputError: config or test set, with all their problems.
        PreflightError: a check did not hold; no query was run.
        Interrupted: cut short; the same call goes on from there.
    """
    config = load_config(config_path, also=check_rules)
    _require_folder(out)
    testset = load(config.testset_path)
    names = _chosen(config, systems)
    options = _options(config, testset, seed)
    chosen = {system.name: system for system in systems_of(config, names)}
    ordered: list[CommandSystem] = [chosen[name] for name in names]
    held = preflight(ordered, k=config.k)
    runs = collect_all(testset, ordered, out_dir=out, k=config.k, pilot=pilot, progress=progress_on(sys.stderr))
    evaluations = tuple(
        with_primary(
            evaluate(testset, runs[name], measures=config.measures, convention=config.convention), config.primary
        )
        for name in names
    )
    return _report(evaluations, options, held, out)


def _require_folder(out: Path) -> None:
    """Refuse, before anything is asked, an output folder that can never be one."""
    try:
        in_the_way = next((path for path in (out, *out.parents) if path.exists() and not path.is_dir()), None)
    except OSError as error:
        raise UsageError(refusal(out, error)) from error
    if in_the_way is not None:
        raise UsageError("this is a file", path=str(in_the_way), expected="a folder for the results, --out")


def _chosen(config: Config, systems: Sequence[str] | None) -> list[str]:
    if systems is not None:
        if len(systems) > 2 or len(set(systems)) < len(systems):
            raise UsageError(
                "--system takes one name, or two different ones: baseline, then candidate", got=", ".join(systems)
            )
        return list(systems)
    if config.pair is not None:
        return list(config.pair)
    if len(config.systems) == 1:
        return list(config.systems)
    raise UsageError(
        f"the config has {len(config.systems)} systems and does not say which two to compare",
        hint="name `baseline:` and `candidate:`, or give --system twice",
    )


def _options(config: Config, testset: TestSet, seed: int) -> CompareOptions:
    """What will be computed; refused here, before any query runs, where this test set does not allow it."""
    unanswered = Run("none", {query_id: Answer(Outcome.EMPTY) for query_id in testset.query_ids})
    dry = evaluate(testset, unanswered, measures=config.measures, convention=config.convention)
    dry = with_primary(dry, config.primary)
    primary: Measure = parse_all([config.primary])[0] if config.primary is not None else dry.measures[0]
    return CompareOptions(
        primary=primary,
        test=config.test,
        alpha=config.alpha,
        margin=config.margin,
        seed=seed,
        limits=Limits(config.limits.max_failed_share, config.limits.min_judged_share),
    )


def _report(evaluations: tuple[Evaluation, ...], options: CompareOptions, held: Sequence[Held], out: Path) -> Job:
    preflight_lines = [(check.system, check.check, check.found) for check in held]
    comparison: Comparison | None = None
    if len(evaluations) == 2:
        comparison = compare_evaluations(evaluations[0], evaluations[1], options)
        document = comparison_document(comparison, preflight=preflight_lines)
    else:
        document = evaluation_document(evaluations, preflight=preflight_lines, by_query=True)
    written = tuple(out / name for name in (RESULTS, REPORT, MARKDOWN))
    for path in written:
        save_report(document, path)
    primary = options.primary or evaluations[0].measures[0]
    broken = tuple(broken_limits(evaluations, primary, options.limits))
    return Job(document, evaluations, comparison, broken, written, out / REPORT)
