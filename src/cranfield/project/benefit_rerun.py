"""An experiment that is run again without a person: whether anything has changed, and all steps to its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cranfield.agents.protocol import FailureKind
from cranfield.benefit.errors import CellError
from cranfield.benefit.experiment import RunOptions, execute, preflights_of
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.records import CellRecord, PreflightRecord
from cranfield.benefit.result import BenefitResult
from cranfield.benefit.result_file import read_result
from cranfield.benefit.schedule import schedule
from cranfield.benefit.tool_check import tool_changes
from cranfield.errors import SystemUnderTestError
from cranfield.project.benefit_history import read_results
from cranfield.project.benefit_score import publish, result_of, score_experiment
from cranfield.words import n_of

OnProgress = Callable[[str, int, int], None]
"""Called with what is done, how many cells have ended, and how many there are."""


def unchanged_since(path: Path, results: Path) -> tuple[str, BenefitResult] | None:
    """The last result of an experiment, and the name of its file, where another run would measure the same.

    That is so where it is valid, and plan, tasks, commit, the folder of the repository and all that the tools say of themselves are what they were.
    A source without commits may always have changed.

    Args:
        path: folder of the new experiment. Its tools are asked; no cell is run.
        results: folder of results with its history.

    Raises:
        PreflightError: a tool is not as the plan wants it.
        InputError: the last result is damaged.
    """
    folder = ExperimentFolder.open(path)
    manifest = folder.manifest
    past = next((each for each in reversed(read_results(results).results) if each.name == manifest.name), None)
    if past is None or past.is_void or not (results / past.file).is_file():
        return None
    now = (manifest.plan_digest, manifest.labels_digest, manifest.commit)
    if now != (past.plan_digest, past.labels_digest, past.commit) or (folder.plan.repo and not manifest.commit):
        return None
    earlier = read_result(results / past.file)
    if manifest.tree.digest != earlier.tree.digest:
        return None
    found = {record.tool: record for record in preflights_of(path)}
    same = all(_is_same(record, earlier) for record in found.values())
    return (past.file, earlier) if same and set(found) <= set(earlier.tools) else None


def _is_same(record: PreflightRecord, earlier: BenefitResult) -> bool:
    known = earlier.tools.get(record.tool, {}).get("preflight")
    return known is not None and not tool_changes(record, PreflightRecord(**{**known, "arm": record.arm}))


def rerun(path: Path, results: Path, on_progress: OnProgress) -> tuple[str, BenefitResult, str | None]:
    """Run the cells of an experiment that have no end, score them, and write the result.

    A budget that is used up ends the cells: the result is that of the pairs that are complete, and says so.

    Returns:
        Name of the file, the result, and why the history was not written; None where it was.

    Raises:
        SystemUnderTestError: cells have no end because of a server, a tool or an agent, or the judge failed: the same call
            goes on with them.
        UsageError: the source is another than when the experiment began.
        InputError: the folder is damaged.
    """
    folder = ExperimentFolder.open(path)
    n_cells = len(schedule(folder.plan, folder.tasks().tasks))
    ended = set(folder.scored_cells())
    on_progress("running cells", len(ended), n_cells)

    def on_cell(cell: CellRecord) -> None:
        if cell.end.is_scored:
            ended.add(cell.key)
        on_progress("running cells", len(ended), n_cells)

    outcome = execute(path, RunOptions(on_cell=on_cell))
    if not outcome.is_complete and outcome.stopped != CellError.BUDGET:
        first = outcome.waiting[0] if outcome.waiting else None
        why = f": {first.key}, {first.error}: {first.message}" if first else ""
        message = f"{n_of(n_cells - outcome.n_scored, 'cells')} of {n_cells} have no end{why}"
        raise SystemUnderTestError(message, hint="a retry goes on with them")
    on_progress("scoring", len(ended), n_cells)
    scored = score_experiment(path)
    is_budget = scored.stopped is not None and scored.stopped.kind is FailureKind.BUDGET
    if scored.n_failed and not is_budget:
        message = f"votes of the judge are missing in {n_of(scored.n_failed, 'cells')}, first {scored.first_missing}"
        raise SystemUnderTestError(message, hint="a retry scores them again")
    file, not_remembered = publish(result_of(path), results)
    return file.name, read_result(file), not_remembered
