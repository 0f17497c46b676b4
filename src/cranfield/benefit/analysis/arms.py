"""One arm in a stratum: means, counts, and delivery of the tool; and the tasks in which the treatment did worse."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.benefit.analysis.values import AnalysedTask, Quantity, mean_of_known
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellEnd
from cranfield.benefit.result import ArmMeans, Loss
from cranfield.stats.ratio import ratio_of_sums

_MEANS = (
    *(Quantity.SUCCESS, Quantity.TOKENS, Quantity.WEIGHTED_TOKENS, Quantity.TOOL_CALLS, Quantity.TURNS),
    *(Quantity.WALL_S, Quantity.MONEY),
)
_DEBITS = ("schema_tokens", "schema_tokens_estimated", "payload_tokens", "instructions_tokens")
_PLACE = {ArmRole.TREATMENT: 0, ArmRole.CONTROL: 1}


def arm_means(tasks: Sequence[AnalysedTask], role: ArmRole) -> ArmMeans:
    """Means over the tasks that have a value in both arms, so that they differ by the estimate of the difference."""
    cells = [each for task in tasks for each in task.cells[role]]
    scored = [each for each in cells if each.is_scored]
    delivered = [each.delivery for each in scored if each.delivery is not None]
    return ArmMeans(
        **{name.value: _mean_of_tasks(tasks, role, name) for name in _MEANS},
        **{name: mean_of_known(getattr(each, name) for each in delivered) for name in _DEBITS},
        n_cells=len(cells),
        n_failed=sum(each.end is not CellEnd.ANSWERED for each in scored),
        n_unscored=sum(each.success is None for each in scored),
        n_infrastructure=len(cells) - len(scored),
        offered=mean_of_known(each.offered for each in delivered),
        called=mean_of_known(None if each.called is None else each.called > 0 for each in delivered),
        answered=mean_of_known(None if each.answered is None else each.answered > 0 for each in delivered),
        tokens_per_success=_tokens_per_success(tasks, role),
    )


def _mean_of_tasks(tasks: Sequence[AnalysedTask], role: ArmRole, quantity: Quantity) -> float | None:
    return mean_of_known(pair[_PLACE[role]] for task in tasks if (pair := task.pair(quantity)) is not None)


def _tokens_per_success(tasks: Sequence[AnalysedTask], role: ArmRole) -> float | None:
    pairs = [(task.pair(Quantity.TOKENS), task.pair(Quantity.SUCCESS)) for task in tasks]
    known = [(tokens[_PLACE[role]], success[_PLACE[role]]) for tokens, success in pairs if tokens and success]
    return ratio_of_sums([tokens for tokens, _ in known], [success for _, success in known])


def losses_of(tasks: Sequence[AnalysedTask]) -> tuple[Loss, ...]:
    """The tasks whose success is lower with the treatment, the greatest loss first."""
    lost = [(pair[0] - pair[1], task) for task in tasks if (pair := task.pair(Quantity.SUCCESS)) and pair[0] < pair[1]]
    return tuple(
        Loss(
            task_id=task.task_id,
            stratum=task.strata,
            success={role: task.means[role][Quantity.SUCCESS] for role in ArmRole},
            tokens={role: task.means[role][Quantity.TOKENS] for role in ArmRole},
            transcripts={
                role: tuple(each.transcript for each in task.cells[role] if each.is_scored and each.transcript)
                for role in ArmRole
            },
        )
        for _, task in sorted(lost, key=lambda each: each[0])
    )
