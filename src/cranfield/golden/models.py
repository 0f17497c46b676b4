"""The models of a plan behind one backend: kept answers, one budget, and a connection for each model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from cranfield.agents.budget import Budget
from cranfield.agents.connect import connected
from cranfield.agents.kept import Kept, charge
from cranfield.agents.protocol import Backend, ModelAnswer, Request, Usage
from cranfield.agents.settings import ModelSettings
from cranfield.base.errors import Problem
from cranfield.golden.plan import Plan


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
            message = f"{other} and {role} share a model, and call it in two ways"
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
