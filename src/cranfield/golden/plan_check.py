"""A plan against itself and a snapshot, and what it will cost: before anything is asked of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from cranfield.agents.budget import PER, TYPICAL_BYTES, Price
from cranfield.agents.loop import RESULT_CHARS
from cranfield.agents.protocol import Usage
from cranfield.agents.settings import ModelSettings
from cranfield.errors import CranfieldError, Problem, did_you_mean, shorten
from cranfield.golden.parsed import folder_of, lies_in
from cranfield.golden.plan import Plan
from cranfield.golden.records import MOST_SPANS
from cranfield.golden.rules import RULES
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.symbols import language_of
from cranfield.words import n_of


@dataclass(frozen=True, slots=True)
class _Work:
    """What a role typically does for a record."""

    turns: int
    answer: int
    """Tokens of the final answer."""


PROMPT_TOKENS = 2_500
"""Of a role's prompt, its tools and the schema of its answer."""
CALL_TOKENS = 150
"""Of a turn that calls tools, as the model writes it."""
TYPICAL_WORK = {
    "author": _Work(6, 400),
    "oracle": _Work(10, 1_800),
    "adversary": _Work(12, 1_500),
    "judge": _Work(1, 120),
}
"""Assumptions of the estimate; the run reports what was used."""


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Of one role."""

    role: str
    model: str
    records: int
    tokens: int
    """Typical."""
    money: float | None
    """None: the model has no price."""
    token_limit: int | None
    """Tokens that its limits allow, but for the request in which a limit is reached; None: no limit is set."""
    money_limit: float | None
    """Of that many tokens, at the higher of its prices."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan will cost."""

    roles: tuple[RoleEstimate, ...]
    currency: str
    budget_tokens: int | None
    budget_money: float | None

    @property
    def tokens(self) -> int:
        """Typical, of all roles."""
        return sum(role.tokens for role in self.roles)

    @property
    def money(self) -> float | None:
        """Typical, of all roles; None where a model has no price."""
        costs = [role.money for role in self.roles]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def token_limit(self) -> int | None:
        """The sum of the limits of roles, or the budget, whichever is less; None: neither is set."""
        limits = [role.token_limit for role in self.roles]
        total = None if None in limits else sum(limit for limit in limits if limit is not None)
        return min((limit for limit in (total, self.budget_tokens) if limit is not None), default=None)

    @property
    def money_limit(self) -> float | None:
        """As `token_limit`."""
        limits = [role.money_limit for role in self.roles]
        total = None if None in limits else sum(limit for limit in limits if limit is not None)
        return min((limit for limit in (total, self.budget_money) if limit is not None), default=None)


def estimate(plan: Plan, snapshot: Snapshot) -> Estimate:
    """Tokens and money of a plan, by role.

    A turn shows a typical file of the scope and is sent again with every later turn. Candidates are written with headroom;
    the oracle, the adversary and the judge see as many as are wanted.

    Args:
        plan: what is wanted.
        snapshot: what is read.
    """
    sizes = [len(snapshot.data(path) or b"") for path in _in_scope(snapshot, plan.scope)]
    result = min(int(median(sizes)) if sizes else 0, RESULT_CHARS) // TYPICAL_BYTES
    records = dict.fromkeys(TYPICAL_WORK, plan.total)
    records["judge"] *= plan.judge_votes
    records["author"] = sum(map(plan.emitted, plan.cells))
    roles = [_of_role(plan, role, settings, records[role], result) for role, settings in _roles(plan)]
    return Estimate(tuple(roles), plan.budget.prices.currency, plan.budget.tokens, plan.budget.money)


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


def check_plan(plan: Plan, snapshot: Snapshot | None = None) -> list[Problem]:
    """Everything that is wrong with a plan; nothing where it can be run.

    Args:
        plan: as it was read.
        snapshot: of the repository; None: paths are not looked up.
    """
    problems = [*_of_cells(plan), *model_problems(plan), *_of_quotas(plan)]
    if snapshot is not None:
        problems += [*_of_paths(plan, snapshot), *_of_capacity(plan, snapshot)]
    return problems


def _of_cells(plan: Plan) -> Iterator[Problem]:
    total = sum(cell.n for cell in plan.cells)
    if total != plan.total:
        got = f"{n_of(len(plan.cells), 'cells')} with {total}"
        yield Problem("the cells do not sum to the total", path="total", expected=str(plan.total), got=got)
    for (task_type, difficulty), times in Counter(cell.key for cell in plan.cells).items():
        if times > 1:
            yield Problem(f"{times} cells of {task_type}, {difficulty}", path="cells", expected="one")
    for number, cell in enumerate(plan.cells):
        rule = RULES[cell.key]
        if plan.targets_of(cell) == "spans" and max(rule.entities.least, rule.files.least) > MOST_SPANS:
            expected = f"targets of another kind: a query has {MOST_SPANS} spans at most, in {rule.files} files"
            yield Problem("its rule cannot be met by spans", path=f"cells[{number}]", expected=expected)
        for place in cell.focus:
            if plan.scope_of(cell) and not any(lies_in(place, scope) for scope in plan.scope_of(cell)):
                expected = ", ".join(plan.scope_of(cell))
                yield Problem(
                    "outside of the scope", path=f"cells[{number}].focus", expected=f"a place in {expected}", got=place
                )


def model_problems(plan: Plan) -> Iterator[Problem]:
    """What is wrong with the models of a plan."""
    from cranfield.agents.connect import Connection

    models = plan.models
    if models.oracle.model == models.adversary.model and not plan.allow_same_model:
        yield Problem(
            "oracle and adversary are the same model, so they share their errors",
            path="models.adversary.model",
            got=shorten(models.adversary.model),
            hint="name another model, or set `allow_same_model: true`, which is recorded",
        )
    for role, settings in _roles(plan):
        try:
            Connection(settings.model, settings.base_url)
        except CranfieldError as error:
            for problem in error.problems:
                yield replace(problem, path=f"models.{role}")
        if plan.budget.money is not None and settings.model not in plan.budget.prices.models:
            yield Problem(
                "money is limited, and the model has no price",
                path=f"models.{role}.model",
                got=shorten(settings.model),
                hint="add it to budget.prices.models",
            )


def _of_quotas(plan: Plan) -> Iterator[Problem]:
    for path, times in Counter(quota.path.rstrip("/") for quota in plan.quotas).items():
        if times > 1:
            yield Problem(f"{times} quotas of one place", path="quotas", expected="one", got=path)
    for number, quota in enumerate(plan.quotas):
        where = f"quotas[{number}]"
        if quota.most is not None and quota.least > quota.most:
            yield Problem("least is above most", path=where, got=f"{quota.least} and {quota.most}")
        possible = sum(cell.n for cell in plan.cells if _meet(plan.scope_of(cell), quota.path))
        if quota.least > possible:
            expected = f"{possible} or less: so many queries have {quota.path} in their scope"
            yield Problem("the quota cannot be met", path=where, expected=expected, got=str(quota.least))
    outer = [
        quota
        for quota in plan.quotas
        if not any(other is not quota and lies_in(quota.path, other.path) for other in plan.quotas)
    ]
    least = sum(quota.least for quota in outer)
    if least > plan.total:
        expected = f"{plan.total} or less, the total"
        yield Problem("the quotas cannot all be met", path="quotas", expected=expected, got=f"{least} at least")


def _of_paths(plan: Plan, snapshot: Snapshot) -> Iterator[Problem]:
    known = set(snapshot.files)
    for path in snapshot.files:
        while path := folder_of(path):
            known.add(path)
    named = [("scope", place) for place in plan.scope] + [("quotas", quota.path) for quota in plan.quotas]
    for number, cell in enumerate(plan.cells):
        named += [(f"cells[{number}].scope", place) for place in cell.scope]
        named += [(f"cells[{number}].focus", place) for place in cell.focus]
    for where, place in dict.fromkeys(named):
        if place.rstrip("/") not in known | {"", "."}:
            hint = did_you_mean(place.rstrip("/"), sorted(known))
            yield Problem("no such folder or file in the repository", path=where, got=shorten(place), hint=hint)


def _of_capacity(plan: Plan, snapshot: Snapshot) -> Iterator[Problem]:
    """Cells whose scope holds nothing to aim at, and quotas that leave no room."""
    fits: dict[str, Callable[[str], bool]] = {
        "entities": lambda path: language_of(path) not in {"", "markdown"},
        "headings": lambda path: language_of(path) == "markdown",
    }
    for number, cell in enumerate(plan.cells):
        kind = plan.targets_of(cell)
        paths = [path for path in _in_scope(snapshot, plan.scope_of(cell)) if fits.get(kind, bool)(path)]
        if not paths:
            yield Problem(f"its scope has no files with {kind}", path=f"cells[{number}]", got=", ".join(cell.scope))
        elif (room := _room(plan, paths)) is not None and room < cell.n:
            expected = f"quotas with room for {cell.n}"
            yield Problem("its quotas leave too little room", path=f"cells[{number}]", expected=expected, got=str(room))
    everything = {path for cell in plan.cells for path in _in_scope(snapshot, plan.scope_of(cell))}
    if (room := _room(plan, everything)) is not None and room < plan.total:
        yield Problem(
            "the quotas leave too little room", path="quotas", expected=f"room for {plan.total}", got=str(room)
        )


def _room(plan: Plan, paths: Iterable[str]) -> int | None:
    """The most queries whose first target is in one of these files; None: no quota limits them."""
    limits: dict[str, int] = {}
    for path in paths:
        holding = [quota for quota in plan.quotas if quota.most is not None and lies_in(path, quota.path)]
        if not holding:
            return None
        outermost = min(holding, key=lambda quota: len(quota.path))
        limits[outermost.path] = outermost.most or 0
    return sum(limits.values())


def _roles(plan: Plan) -> list[tuple[str, ModelSettings]]:
    models = plan.models
    return [(role, getattr(models, role)) for role in TYPICAL_WORK]


def _meet(scope: Sequence[str], place: str) -> bool:
    return not scope or any(lies_in(place, part) or lies_in(part, place) for part in scope)


def _in_scope(snapshot: Snapshot, scope: Sequence[str]) -> list[str]:
    return [path for path in snapshot.files if not scope or any(lies_in(path, part) for part in scope)]
