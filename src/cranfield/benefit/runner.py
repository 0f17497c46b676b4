"""Runs the cells of an experiment that have no end yet, in the planned order, within a budget.

A run is a line of `cells.jsonl` when it has ended. A process that is killed loses the runs that are under way and no other;
the next call begins them again with the same number of attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from cranfield.agents.budget import Budget, Spent
from cranfield.agents.recording import now
from cranfield.base.concurrency.loop import run_all
from cranfield.base.errors import CranfieldError
from cranfield.benefit.agent import ArmAgent, CellRun
from cranfield.benefit.errors import OUTAGES_IN_A_ROW, CellError, Retry, retry_of
from cranfield.benefit.folder import BegunRecord, ExperimentFile, ExperimentFolder
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellEnd, CellKey, CellRecord, CellUsage
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.benefit.tool_check import ask_again, check_tools, has_last_answers


def schedule(plan: BenefitPlan, tasks: Iterable[Task]) -> tuple[CellKey, ...]:
    """Every cell once, in the order in which they are begun.

    The order is decided by the seed of the plan and the ids of the tasks alone. In half of the blocks the treatment comes
    first (with an odd number of them, in one more or one less), so that neither arm is always the later one.
    """
    ids = sorted({task.id for task in tasks})
    blocks = [(task_id, seed) for task_id in ids for seed in range(plan.seeds)]
    order = sorted(blocks, key=lambda block: _rank(plan.seed, "block", *block))
    shuffled = sorted(blocks, key=lambda block: _rank(plan.seed, "arm", *block))
    treatment_first = set(shuffled[: len(shuffled) // 2])
    arms = ArmRole.TREATMENT, ArmRole.CONTROL
    return tuple(
        CellKey(task_id=block[0], arm=arm, seed=block[1])
        for block in order
        for arm in (arms if block in treatment_first else arms[::-1])
    )


def order_digest(cells: Sequence[CellKey]) -> str:
    """SHA-256 of an order."""
    return "sha256:" + sha256("\n".join(map(str, cells)).encode("utf-8", "surrogatepass")).hexdigest()


def _rank(seed: int, purpose: str, task_id: str, repeat: int) -> bytes:
    return sha256(f"{seed}\0{purpose}\0{task_id}\0{repeat}".encode("utf-8", "surrogatepass")).digest()


KEEPS_ANSWERS = frozenset({"reference"})
"""Kinds of agents whose interrupted runs cost nothing again: their answers are kept by request."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a call of the runner did."""

    n_cells: int
    n_scored: int
    """Cells with a scored run, by all calls."""
    n_run: int
    """Runs that this call ended."""
    waiting: tuple[CellRecord, ...]
    """Cells without an end whose last run failed: that run."""
    stopped: str
    """Name of the error that ended the call before its time; empty: none did."""
    spent: Spent
    """By all calls."""

    @property
    def is_complete(self) -> bool:
        """Whether every cell has an end."""
        return self.n_scored == self.n_cells


async def run_cells(
    folder: ExperimentFolder,
    tasks: TaskSet,
    agents: Mapping[ArmRole, ArmAgent],
    budget: Budget,
    on_cell: Callable[[CellRecord], None] = lambda _: None,
) -> RunOutcome:
    """Run the cells without an end.

    Args:
        folder: open for writing.
        tasks: of its plan.
        agents: of both arms.
        budget: of all calls together; what the folder says was used is charged first.
        on_cell: called after each run.

    Raises:
        PreflightError: a tool under test does not serve what the plan wants, or another thing than before; no cell is run.
        InputError: the folder is damaged.
    """
    runner = _Runner(folder, tasks, agents, budget, on_cell)
    pending = runner.pending()
    if pending:
        await check_tools(folder, agents)
    runner.charge_preflights()
    for _ in range(runner.plan.attempts):
        if not pending or runner.stopped:
            break
        await runner.run_once(pending)
        pending = [key for key in pending if key in runner.again]
    if runner.n_run or (folder.cells() and not has_last_answers(folder)):
        await ask_again(folder, agents)
    return runner.outcome()


def reservation(plan: BenefitPlan) -> tuple[int, float]:
    """Tokens and money that a cell can cost: its limit, at the dearest price of its model. 0 where there is no limit."""
    tokens = plan.limits.tokens or 0
    model = "" if plan.agent.model is None else plan.agent.model.model
    price = plan.budget.prices.models.get(model)
    if price is None:
        return tokens, 0.0
    return tokens, tokens * max(price.input, price.output, price.cache_write or 0) / 1_000_000


@dataclass
class _Runner:
    folder: ExperimentFolder
    tasks: TaskSet
    agents: Mapping[ArmRole, ArmAgent]
    budget: Budget
    on_cell: Callable[[CellRecord], None]
    again: set[CellKey] = field(default_factory=set)
    """Cells whose last run failed, and may be run again in this call."""
    stopped: str = ""
    n_run: int = 0
    n_outages: int = 0
    """Runs in a row that ended because the model could not be reached."""

    def __post_init__(self) -> None:
        self.plan = self.folder.plan
        self._order = schedule(self.plan, self.tasks.tasks)
        self._positions = {key: position for position, key in enumerate(self._order)}
        self._by_id = self.tasks.by_id
        self._amount = reservation(self.plan)
        self._last: dict[CellKey, CellRecord] = {}
        self._attempts: Counter[CellKey] = Counter()
        for record in self.folder.cells():
            self._note(record)
            self.budget.spent.add(self._used(record.usage))
        if self.plan.agent.kind not in KEEPS_ANSWERS:
            for _ in range(self.folder.n_interrupted()):
                self.budget.spent.add(self._used(None))

    def charge_preflights(self) -> None:
        """Count the requests that measured the schemas of tools: once, as their answers are kept."""
        measured = {record.arm: record.usage for record in self.folder.preflights() if record.usage is not None}
        for usage in measured.values():
            self.budget.spent.add(self._used(usage))

    def pending(self) -> list[CellKey]:
        """Cells without an end: those of fewest attempts first, in the planned order."""
        left = [key for key in self._order if key not in self._last or not self._last[key].end.is_scored]
        return sorted(left, key=lambda key: self._attempts[key])

    async def run_once(self, keys: Sequence[CellKey]) -> None:
        """Run cells once, so many at a time as the plan says."""
        self.again.clear()
        queue = iter(keys)

        async def work() -> None:
            for key in queue:
                if self.stopped:
                    return
                await self._run(key)

        model = self.plan.agent.model
        await run_all(work() for _ in range(min(len(keys), 1 if model is None else model.concurrency)))

    def outcome(self) -> RunOutcome:
        """What was done."""
        known = [self._last[key] for key in self._order if key in self._last]
        n_scored = sum(record.end.is_scored for record in known)
        waiting = tuple(record for record in known if not record.end.is_scored)
        return RunOutcome(len(self._order), n_scored, self.n_run, waiting, self.stopped, self.budget.spent)

    async def _run(self, key: CellKey) -> None:
        if await self.budget.reserve_amount(self._amount) is None:
            self.stopped = CellError.BUDGET
            return
        used, attempt, started_at = self._used(None), self._attempts[key] + 1, now()
        try:
            self.folder.append(ExperimentFile.BEGUN, BegunRecord(key=key, attempt=attempt, at=started_at))
            run = self._checked(key, await self._ended(key, attempt))
            used = self._used(run.usage)
        finally:
            self.budget.release(self._amount, used)
        record = CellRecord(
            key=key,
            attempt=attempt,
            position=self._positions[key],
            started_at=started_at,
            **{**vars(run), "transcript": self.folder.keep_transcript(run.transcript)},
        )
        self.folder.append(ExperimentFile.CELLS, record)
        self._note(record)
        self.n_run += 1
        self._decide(record)
        self.on_cell(record)

    async def _ended(self, key: CellKey, attempt: int) -> CellRun:
        """The run of an agent; an exception of its own is a crash."""
        started = time.monotonic()
        task = self._by_id[key.task_id]
        (run,) = await asyncio.gather(self.agents[key.arm].run(task, key.seed, attempt), return_exceptions=True)
        if isinstance(run, CellRun):
            return run
        if isinstance(run, CranfieldError) or not isinstance(run, Exception):
            raise run
        usage = CellUsage(wall_s=time.monotonic() - started, unmeasured=1, tool_calls=None)
        message = f"{type(run).__name__}: {run}"
        return CellRun(CellEnd.INFRASTRUCTURE, usage, {}, error=CellError.AGENT_CRASHED, message=message)

    def _checked(self, key: CellKey, run: CellRun) -> CellRun:
        """The run; one whose tools never came up is a failure of the infrastructure, however it ended."""
        servers = self.plan.servers(key.arm)
        if not servers or not run.end.is_scored or (run.delivery is not None and run.delivery.offered):
            return run
        missing = run.delivery.missing if run.delivery is not None and run.delivery.missing else sorted(servers)
        return CellRun(
            CellEnd.INFRASTRUCTURE,
            run.usage,
            run.transcript,
            error=CellError.TOOL_NOT_STARTED,
            message=f"the agent was not offered {', '.join(missing)}",
            delivery=run.delivery,
            models=run.models,
            versions=run.versions,
        )

    def _decide(self, record: CellRecord) -> None:
        """Whether the cell is run again, or no other is begun."""
        retry = Retry.SCORED if record.end.is_scored else retry_of(record.error)
        self.n_outages = self.n_outages + 1 if retry is Retry.AGAIN_IF_UP else 0
        if retry is Retry.SCORED:
            return
        if retry is Retry.STOP or self.n_outages >= OUTAGES_IN_A_ROW:
            self.stopped = record.error
        elif retry is not Retry.NOT_NOW:
            self.again.add(record.key)

    def _note(self, record: CellRecord) -> None:
        self._attempts[record.key] = max(self._attempts[record.key], record.attempt)
        self._last[record.key] = record

    def _used(self, usage: CellUsage | None) -> Spent:
        """What a run used; where that is not known, what was reserved."""
        tokens, money = self._amount
        if usage is None:
            return Spent(0, tokens, money or None, 1)
        return Spent(
            usage.requests or 0,
            tokens if usage.total is None else usage.total,
            usage.money if usage.money is not None else money or None,
            usage.unmeasured,
        )
