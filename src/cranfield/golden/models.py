"""The models of a plan behind one backend: kept answers, one budget, and a connection for each model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cranfield.agents.budget import Budget
from cranfield.agents.protocol import Backend, ModelAnswer, Request, Usage
from cranfield.agents.recording import Kept, charge
from cranfield.agents.settings import ModelSettings, connected
from cranfield.base.errors import Problem
from cranfield.golden.agreement import QueueReason
from cranfield.golden.index import RunIndex
from cranfield.golden.plan import Plan
from cranfield.golden.retirement import ModelRecord
from cranfield.golden.states import State
from cranfield.model.judging import ReviewVerdict


class ByModel:
    """A backend that sends each request to the backend of its model."""

    def __init__(self, backends: Mapping[str, Backend]) -> None:
        self.backends = backends

    async def ask(self, request: Request) -> ModelAnswer:
        """Ask the backend of the model."""
        return await self.backends[request.model].ask(request)


def role_settings(plan: Plan) -> dict[str, ModelSettings]:
    """Role to its settings, of the roles that have some."""
    roles = ((role, getattr(plan.models, role)) for role in type(plan.models).model_fields)
    return {role: settings for role, settings in roles if settings is not None}


def shared_model_problems(plan: Plan) -> list[Problem]:
    """Roles that share a model and would call it at two places: requests name their model, and nothing else."""
    first: dict[str, tuple[str, tuple[object, ...]]] = {}
    problems = []
    for role, settings in role_settings(plan).items():
        way = settings.base_url, settings.api_key_env, settings.per_minute
        other, known = first.setdefault(settings.model, (role, way))
        if known != way:
            message = f"{other} and {role} use the same model with different settings"
            expected = "the same base_url, api_key_env and per_minute"
            problems.append(Problem(message, path=f"models.{role}", expected=expected, got=settings.model))
    return problems


def budget_of(plan: Plan, usages: Sequence[tuple[str, Usage]] = ()) -> Budget:
    """The budget of a plan, less what kept answers took."""
    settings = plan.budget
    budget = Budget(settings.tokens, settings.money, settings.prices)
    charge(budget, usages)
    return budget


@asynccontextmanager
async def open_models(
    plan: Plan, calls: Path, *, source: Backend | None = None, replay: Path | None = None
) -> AsyncIterator[tuple[Kept, Budget]]:
    """The models of a plan. What was answered before is taken from the file of answers, and charged to the budget.

    Args:
        plan: with its models and its budget.
        calls: file of answers of this run; made where it is missing.
        source: answers in the place of every model, for tests.
        replay: answers of another run: nothing is asked.

    Raises:
        InputError: a file of answers is damaged.
    """
    async with AsyncExitStack() as stack:
        backends: dict[str, Backend] = {}
        kept = Kept(calls, ByModel(backends) if replay is None else Kept(replay))
        stack.callback(kept.close)
        budget = budget_of(plan, kept.usages())
        for settings in role_settings(plan).values():
            if replay is None and settings.model not in backends:
                backends[settings.model] = await stack.enter_async_context(
                    connected(settings.connection, budget, source)
                )
        yield kept, budget


ORACLE, ADVERSARY = "oracle", "adversary"
_ACCEPTED = frozenset({State.PASSED, State.KEPT})
_REJECTED = frozenset({State.NO_ANSWER, State.GATE_FAILED, State.BLOCKED, State.DROPPED})
_SERIOUS = frozenset({ReviewVerdict.MAJOR_ISSUE, ReviewVerdict.WRONG})
_CARELESS = frozenset(
    {
        QueueReason.SILENT,
        QueueReason.NO_CITATION,
        QueueReason.BAD_CITATION,
        QueueReason.UNREAD_CITATION,
        QueueReason.UNREAD_CLAIM,
    }
)
"""Faults of a report, whatever it says of the answer."""


def model_records(index: RunIndex) -> list[ModelRecord]:
    """Records of the oracle and the adversary of a run, in the order of its candidates; undecided ones are left out.

    A record of the oracle is rejected where it gave no answer, the gate or the adversary stopped it, or people dropped it or
    found it seriously wrong. One of the adversary is where it gave no report, left claims without a verdict that holds, or
    passed what people found seriously wrong.
    """
    return [record for status in index.statuses() for record in _of_status(index, status.query_id)]


def _of_status(index: RunIndex, query_id: str) -> Iterator[ModelRecord]:
    models = index.folder.manifest.models
    status = index.status(query_id)
    reviews = index.reviews.get(query_id, [])
    is_serious = bool(reviews) and reviews[-1].verdict in _SERIOUS
    answer = index.answers.get(query_id, status.attempt)
    if answer is None or not answer.imported_from:
        model = answer.model if answer is not None else models.get(ORACLE, "")
        if model and (status.state in _ACCEPTED | _REJECTED):
            yield ModelRecord(ORACLE, model, query_id, status.state in _REJECTED or is_serious)
    report = index.reports.get(query_id, status.attempt)
    agreement = index.agreements.get(query_id, status.attempt)
    if status.state is State.NO_REPORT and models.get(ADVERSARY):
        yield ModelRecord(ADVERSARY, models[ADVERSARY], query_id, is_rejected=True)
    elif report is not None and agreement is not None:
        is_careless = bool(_CARELESS & set(agreement.kinds))
        yield ModelRecord(
            ADVERSARY, report.model, query_id, is_careless or (is_serious and agreement.outcome == "passed")
        )


def kept_records(records: Iterable[ModelRecord]) -> list[dict[str, str]]:
    """As the metadata of a version keep them: a digit a record, 1 where it was rejected."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records:
        found.setdefault((record.role, record.model), []).append(str(int(record.is_rejected)))
    return [{"role": role, "model": model, "rejected": "".join(digits)} for (role, model), digits in found.items()]


def read_kept(entries: Sequence[Mapping[str, Any]]) -> list[ModelRecord]:
    """The records of `kept_records`, without their ids."""
    return [
        ModelRecord(str(entry["role"]), str(entry["model"]), "", digit == "1")
        for entry in entries
        for digit in str(entry["rejected"])
    ]
