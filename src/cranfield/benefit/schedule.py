"""The order of cells: both arms of a task and seed stand side by side, in random order, in blocks of random order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellKey
from cranfield.benefit.tasks import Task


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
