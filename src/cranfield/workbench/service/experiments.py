"""Experiments of schedules: the job of one, and what it came to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.base.errors import UnknownNameError
from cranfield.formats.io.files import write_text
from cranfield.workbench.service.responses import BenefitOutcome
from cranfield.workbench.watch_config import BenefitWatch

if TYPE_CHECKING:
    from cranfield.benefit.result import BenefitResult
    from cranfield.workbench.service.context import Context
    from cranfield.workbench.service.requests import BenefitRequest


EXPERIMENT = "experiment"
"""File in the folder of a job: the path of its experiment."""


def run_experiment_job(
    context: Context, request: BenefitRequest, folder: Path, on_progress: Callable[[str, int, int], None]
) -> BenefitOutcome:
    """Run the experiment of a schedule: check, cells, scores, result.

    Args:
        context: with the operator's file.
        request: names the schedule.
        folder: of the job: an interrupted job goes on with the experiment that it names.
        on_progress: called with what is done, the cells that have ended, and all cells.

    Raises:
        CranfieldError: the plan, with every problem; a tool, a server or an agent failed; there is no such schedule.
    """
    from cranfield.benefit.folder import ExperimentFolder
    from cranfield.benefit.use_cases import begin_experiment, rerun, unchanged_since

    on_progress("checking the plan", 0, 0)
    watch = benefit_watch(context, request.schedule)
    plan, runs, results = (context.workbench.folder / each for each in (watch.benefit, watch.runs, watch.results))
    path = _begun(folder)
    if path is None:
        path = begin_experiment(plan, runs)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / EXPERIMENT, [str(path.resolve())])
    if watch.when == "changed" and not ExperimentFolder.open(path).cells():
        on_progress("asking the tools", 0, 0)
        earlier = unchanged_since(path, results)
        if earlier is not None:
            shutil.rmtree(path)
            return outcome_of(*earlier, unchanged=True)
    file, result, not_remembered = rerun(path, results, on_progress)
    return outcome_of(file, result, more=() if not_remembered is None else (not_remembered,))


def benefit_watch(context: Context, name: str) -> BenefitWatch:
    """The schedule of an experiment.

    Raises:
        UnknownNameError: the operator's file has none of this name.
    """
    known = {key: each for key, each in context.workbench.watch.items() if isinstance(each, BenefitWatch)}
    if name not in known:
        raise UnknownNameError.among("schedule of an experiment", name, known)
    return known[name]


def outcome_of(
    file: str, result: BenefitResult, *, unchanged: bool = False, more: tuple[str, ...] = ()
) -> BenefitOutcome:
    """What a result shows.

    Args:
        file: its name.
        result: of an experiment.
        unchanged: it is that of an earlier run.
        more: caveats besides those of the result.
    """
    from cranfield.benefit.result import StratumKind
    from cranfield.benefit.use_cases import BenefitRules, RuleState, judge_result

    gate = judge_result(result, BenefitRules(), datetime.now(UTC))
    return BenefitOutcome(
        file=file,
        made_at=result.made_at,
        unchanged=unchanged,
        sentence=result.sentence,
        void=[each.message for each in result.validity if each.is_void],
        caveats=[*(each.message for each in result.validity if not each.is_void), *more],
        verdicts={
            row.label: row.verdict.value
            for row in result.strata
            if row.kind in {StratumKind.CELL, StratumKind.MARGIN} and not result.is_void
        },
        failed_rules=[f"{each.rule}: {each.sentence}" for each in gate.outcomes if each.state is RuleState.FAILED],
    )


def _begun(folder: Path) -> Path | None:
    """The experiment that an interrupted job began."""
    try:
        path = Path((folder / EXPERIMENT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return path if path.is_dir() else None
