"""A dry run of a few records of a plan, and what its roles took: the measure of the plan's cost.

Its answers are kept in the run folder, by their requests, so that the run does not ask for them again. Its records are not: which
candidates the run takes depends on all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cranfield.agents.record_folder import CALLS, PLAN
from cranfield.base.errors import UsageError
from cranfield.golden.folder import FEEDBACK, RunFolder, Step
from cranfield.golden.outcomes import TranscriptLine
from cranfield.golden.plan import Plan, load_plan
from cranfield.golden.plan_cost import RoleUse
from cranfield.golden.run import PipelineOptions, PipelineOutcome, require_same, run_plan
from cranfield.repo.snapshot import Snapshot


@dataclass(frozen=True)
class DryRun:
    """What a dry run did."""

    whole: Plan
    """The plan of the run folder."""
    part: Plan
    """The part of it that was run."""
    uses: Mapping[str, RoleUse]
    """Role to what it took; a role that no record reached is missing."""
    outcome: PipelineOutcome


def part_of(plan: Plan, n: int) -> Plan:
    """The part of a plan with n of its queries, at equal distances in its cells, and one draft for each.

    Raises:
        UsageError: the plan has fewer queries.
    """
    if n > plan.total:
        expected = f"{plan.total} or less, the queries of the plan"
        raise UsageError(
            "more queries to measure than the plan has", expected=expected, got=str(n), parameters=("measure",)
        )
    wanted = [place for place, cell in enumerate(plan.cells) for _ in range(cell.n)]
    chosen = Counter(wanted[(2 * number + 1) * len(wanted) // (2 * n)] for number in range(n))
    cells = tuple(plan.cells[place].model_copy(update={"n": times}) for place, times in sorted(chosen.items()))
    return plan.model_copy(update={"cells": cells, "total": n, "headroom": 1.0})


def measure(path: Path, snapshot: Snapshot, n: int, options: PipelineOptions | None = None) -> DryRun:
    """Take n queries of the plan of a run folder through all steps, and keep the answers of the models there.

    Args:
        path: run folder; `golden run --resume` goes on with it.
        snapshot: that the roles read.
        n: queries.
        options: see there.

    Raises:
        UsageError: the plan has fewer queries, the source is another one, or another process writes in the folder.
        InputError: the folder is damaged.
    """
    chosen = options or PipelineOptions()
    with RunFolder.writing(path) as folder, TemporaryDirectory() as scratch:
        require_same(folder, snapshot, chosen)
        plan = load_plan(path / PLAN)
        part = part_of(plan, n)
        feedback = path / FEEDBACK
        copied = {FEEDBACK: feedback.read_bytes()} if feedback.is_file() else {}
        with RunFolder.writing(RunFolder.create(Path(scratch), folder.manifest, copied)) as records:
            outcome = run_plan(records, part, snapshot, chosen, calls=path / CALLS)
            lines = records.read(Step.TRANSCRIPTS, TranscriptLine)
    uses: dict[str, RoleUse] = {}
    for line in lines:
        uses[line.role] = _with(uses.get(line.role, RoleUse()), line, plan)
    return DryRun(plan, part, uses, outcome)


def _with(use: RoleUse, line: TranscriptLine, plan: Plan) -> RoleUse:
    usage = line.usage
    if usage is None or usage.unmeasured or usage.total is None:
        return RoleUse(use.tokens, use.money, use.n_unreported + 1)
    cost = plan.budget.prices.cost(getattr(plan.models, line.role).model, usage)
    money = use.money if cost is None else (*use.money, cost)
    return RoleUse((*use.tokens, usage.total), money, use.n_unreported)
