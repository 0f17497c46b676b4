"""What a plan will cost: by assumptions about the roles before anything is asked of a model, or by what a dry run took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TypeVar

from cranfield.agents.budget import PER, TYPICAL_BYTES, Limit, Price
from cranfield.agents.loop import RESULT_CHARS
from cranfield.agents.protocol import Usage
from cranfield.agents.recording import CALLS, PLAN, TreeRecord
from cranfield.agents.settings import ModelSettings
from cranfield.base.errors import UsageError
from cranfield.base.numbers import total
from cranfield.golden.index import FEEDBACK, RunFolder, Step
from cranfield.golden.outcomes import TranscriptLine
from cranfield.golden.parsed import files_in
from cranfield.golden.plan import Plan, load_plan
from cranfield.golden.run import PipelineOptions, PipelineOutcome, require_same, run_plan
from cranfield.model.results import Record
from cranfield.repo.snapshot import Snapshot
from cranfield.stats.describe import total_interval

_Number = TypeVar("_Number", int, float)
Interval = tuple[float, float]
"""Lower and upper end of a 95 % prediction interval."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a role typically does for a record."""

    turns: int
    answer: int
    """Tokens of the final answer."""


PROMPT_TOKENS = 2_500
"""Tokens of a role's prompt, its tools and the schema of its answer."""
CALL_TOKENS = 150
"""Tokens of a turn that calls tools, as the model writes it."""
TYPICAL_WORK = {
    "author": _Work(6, 400),
    "oracle": _Work(10, 1_800),
    "adversary": _Work(12, 1_500),
    "judge": _Work(1, 120),
}
"""Assumptions of the estimate; the run reports what was used."""


@dataclass(frozen=True, slots=True)
class RoleUse:
    """What a role took in a dry run, record by record; of a judge, vote by vote."""

    tokens: tuple[int, ...] = ()
    """Tokens of the records whose model reported them."""
    money: tuple[float, ...] = ()
    """Money of the same records, where the model has a price."""
    n_unreported: int = 0


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Estimate of one role."""

    role: str
    model: str
    records: int
    tokens: int
    """Typical, or as measured."""
    money: float | None
    """None: the model has no price."""
    token_limit: int | None
    """Tokens that its limits allow, but for the request in which a limit is reached; None: no limit is set."""
    money_limit: float | None
    """Money for that many tokens, at the higher of its prices."""
    measured: int = 0
    """Records of a dry run that the estimate is made from; 0: it is assumed."""
    token_interval: Interval | None = None
    """None: assumed, or measured on one record."""
    money_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class OverBudget:
    """A limit that the run will reach, or may reach, before it ends."""

    limit: Limit
    cost: float
    """Typical, or as measured."""
    interval: Interval | None
    budget: float
    is_likely: bool
    """Whether the cost itself is over the budget; else only the upper end of its interval is."""


@dataclass(frozen=True, slots=True)
class PlannedCell:
    """A cell of a plan."""

    task_type: str
    difficulty: str
    wanted: int
    written: int
    """Candidates, with headroom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate(Record):
    """A plan that can be run, and what it will cost."""

    uncommitted: str
    """That of the tree."""
    commit: str
    tree: TreeRecord
    plan: str
    """Its name."""
    digest: str
    headroom: float
    total: int
    """Queries that are wanted."""
    n_drafts: int
    """Candidates that are written."""
    cells: tuple[PlannedCell, ...]
    currency: str
    budget_tokens: int | None
    budget_money: float | None
    is_measured: bool
    """Whether a dry run measured any role."""
    tokens: int
    """Tokens of all roles; the next fields are of all roles too."""
    token_limit: int | None
    """The sum of the limits of roles, or the budget, whichever is less; None: neither is set."""
    token_interval: Interval | None
    """The sum of those of the roles, which holds also where records are dear to all roles at once."""
    money: float | None
    """None where a model has no price."""
    money_limit: float | None
    money_interval: Interval | None
    over_budget: tuple[OverBudget, ...]
    """Limits of the budget that the cost is over, or that its interval reaches beyond."""
    roles: tuple[RoleEstimate, ...]


def _over_budget(
    limit: Limit, cost: float | None, interval: Interval | None, budget: float | None
) -> tuple[OverBudget, ...]:
    if cost is None or budget is None or max((cost, *(interval or ()))) <= budget:
        return ()
    return (OverBudget(limit, cost, interval, budget, cost > budget),)


def _least(*limits: _Number | None) -> _Number | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _sum_of_ends(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [interval for interval in intervals if interval is not None]
    if len(known) < len(intervals):
        return None
    return sum(low for low, _ in known), sum(high for _, high in known)


def estimate(plan: Plan, snapshot: Snapshot, uses: Mapping[str, RoleUse] | None = None) -> CostEstimate:
    """Tokens and money of a plan, by role.

    Candidates are written with headroom; the oracle, the adversary and the judge see as many as are wanted. Without a dry run
    a turn shows a typical file of the scope and is sent again with every later turn.

    Args:
        plan: what is wanted.
        snapshot: what is read.
        uses: role to what it took in a dry run; what no record reached is assumed.
    """
    sizes = [snapshot.sizes.get(path, 0) for path in files_in(snapshot, plan.scope)]
    result = min(int(median(sizes)) if sizes else 0, RESULT_CHARS) // TYPICAL_BYTES
    records = dict.fromkeys(plan.roles, plan.total)
    records["judge"] *= plan.judge_votes
    records["author"] = plan.n_drafts
    roles = []
    for role, settings in plan.roles.items():
        assumed = _of_role(plan, role, settings, records[role], result)
        use = (uses or {}).get(role)
        roles.append(_measured(assumed, use) if use is not None and use.tokens else assumed)
    tokens, token_interval = sum(role.tokens for role in roles), _sum_of_ends([role.token_interval for role in roles])
    money, money_interval = total([role.money for role in roles]), _sum_of_ends([role.money_interval for role in roles])
    budget, tree = plan.budget, TreeRecord.of(snapshot)
    return CostEstimate(
        uncommitted=tree.uncommitted,
        commit=snapshot.commit,
        tree=tree,
        plan=plan.name,
        digest=plan.digest,
        headroom=plan.headroom,
        total=plan.total,
        n_drafts=plan.n_drafts,
        cells=tuple(PlannedCell(cell.task_type, cell.difficulty, cell.n, plan.emitted(cell)) for cell in plan.cells),
        currency=budget.prices.currency,
        budget_tokens=budget.tokens,
        budget_money=budget.money,
        is_measured=any(role.measured for role in roles),
        tokens=tokens,
        token_limit=_least(total([role.token_limit for role in roles]), budget.tokens),
        token_interval=token_interval,
        money=money,
        money_limit=_least(total([role.money_limit for role in roles]), budget.money),
        money_interval=money_interval,
        over_budget=(
            *_over_budget("tokens", tokens, token_interval, budget.tokens),
            *_over_budget("money", money, money_interval, budget.money),
        ),
        roles=tuple(roles),
    )


def _measured(assumed: RoleEstimate, use: RoleUse) -> RoleEstimate:
    """The estimate of a role from what it took in some of its records."""
    n, k = assumed.records, len(use.tokens)
    is_priced = len(use.money) == k
    return replace(
        assumed,
        tokens=round(sum(use.tokens) * max(n, k) / k),
        money=sum(use.money) * max(n, k) / k if is_priced else None,
        measured=k,
        token_interval=_at_least(total_interval(use.tokens, n), sum(use.tokens)),
        money_interval=_at_least(total_interval(use.money, n), sum(use.money)) if is_priced else None,
    )


def _at_least(interval: Interval | None, spent: float) -> Interval | None:
    """An interval of a cost of which a part is spent already."""
    return None if interval is None else (max(interval[0], spent), interval[1])


def _of_role(plan: Plan, role: str, settings: ModelSettings, records: int, result: int) -> RoleEstimate:
    work = TYPICAL_WORK[role]
    turns = min(work.turns, settings.limits.turns)
    grows = result + CALL_TOKENS
    sent = turns * PROMPT_TOKENS + turns * (turns - 1) // 2 * grows
    written = (turns - 1) * CALL_TOKENS + work.answer
    price = plan.budget.prices.models.get(settings.model)
    usage = Usage(input=records * sent, output=records * written)
    limit = None if settings.limits.tokens is None else records * settings.limits.tokens
    return RoleEstimate(
        role,
        settings.model,
        records,
        records * (sent + written),
        None if price is None else price.cost(usage),
        limit,
        None if price is None or limit is None else limit * _highest(price) / PER,
    )


def _highest(price: Price) -> float:
    return max(price.input, price.output, price.cache_read or 0, price.cache_write or 0)


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
            "more queries to measure than in the plan", expected=expected, got=str(n), parameters=("measure",)
        )
    wanted = [place for place, cell in enumerate(plan.cells) for _ in range(cell.n)]
    chosen = Counter(wanted[(2 * number + 1) * len(wanted) // (2 * n)] for number in range(n))
    cells = tuple(plan.cells[place].model_copy(update={"n": times}) for place, times in sorted(chosen.items()))
    return plan.model_copy(update={"cells": cells, "total": n, "headroom": 1.0})


def measure(path: Path, snapshot: Snapshot, n: int, options: PipelineOptions | None = None) -> DryRun:
    """Take n queries of the plan of a run folder through all steps, and keep the answers of the models there.

    Args:
        path: run folder; `golden run --resume` continues it.
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
