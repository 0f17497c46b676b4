"""A plan against itself and a snapshot, before anything is asked of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from cranfield.base.errors import CranfieldError, Problem, did_you_mean, shorten
from cranfield.base.words import count_noun
from cranfield.golden.parsed import files_in, folder_of, lies_in
from cranfield.golden.plan import Plan
from cranfield.golden.records import MAX_SPANS
from cranfield.golden.rules import RULES
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.symbols import language_of


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
        got = f"{count_noun(len(plan.cells), 'cells')} with {total}"
        yield Problem("the cells do not sum to the total", path="total", expected=str(plan.total), got=got)
    for (task_type, difficulty), times in Counter(cell.key for cell in plan.cells).items():
        if times > 1:
            yield Problem(f"{times} cells of {task_type}, {difficulty}", path="cells", expected="one")
    for number, cell in enumerate(plan.cells):
        rule = RULES[cell.key]
        if plan.targets_of(cell) == "spans" and max(rule.entities.least, rule.files.least) > MAX_SPANS:
            expected = f"targets of another kind: a query has at most {MAX_SPANS} spans, in {rule.files} files"
            yield Problem("spans cannot satisfy its rule", path=f"cells[{number}]", expected=expected)
        for place in cell.focus:
            if plan.scope_of(cell) and not any(lies_in(place, scope) for scope in plan.scope_of(cell)):
                expected = ", ".join(plan.scope_of(cell))
                yield Problem(
                    "outside of the scope", path=f"cells[{number}].focus", expected=f"a place in {expected}", got=place
                )


def model_problems(plan: Plan) -> Iterator[Problem]:
    """What is wrong with the models of a plan."""
    from cranfield.agents.settings import Connection

    models = plan.models
    if models.oracle.model == models.adversary.model and not plan.allow_same_model:
        yield Problem(
            "oracle and adversary are the same model, so they share their errors",
            path="models.adversary.model",
            got=shorten(models.adversary.model),
            hint="name another model, or set `allow_same_model: true`, which is recorded",
        )
    for role, settings in plan.roles.items():
        try:
            Connection(settings.model, settings.base_url)
        except CranfieldError as error:
            for problem in error.problems:
                yield replace(problem, path=f"models.{role}")
        if plan.budget.money is not None and settings.model not in plan.budget.prices.models:
            yield Problem(
                "the budget limits money, but the model has no price",
                path=f"models.{role}.model",
                got=shorten(settings.model),
                hint="add it to budget.prices.models",
            )


def _of_quotas(plan: Plan) -> Iterator[Problem]:
    for path, times in Counter(quota.path.rstrip("/") for quota in plan.quotas).items():
        if times > 1:
            yield Problem(f"{times} quotas for the same place", path="quotas", expected="one", got=path)
    for number, quota in enumerate(plan.quotas):
        where = f"quotas[{number}]"
        if quota.most is not None and quota.least > quota.most:
            yield Problem("least is greater than most", path=where, got=f"{quota.least} and {quota.most}")
        possible = sum(cell.n for cell in plan.cells if _meet(plan.scope_of(cell), quota.path))
        if quota.least > possible:
            expected = f"{possible} or less, the number of queries with {quota.path} in their scope"
            yield Problem("the quota cannot be satisfied", path=where, expected=expected, got=str(quota.least))
    outer = [
        quota
        for quota in plan.quotas
        if not any(other is not quota and lies_in(quota.path, other.path) for other in plan.quotas)
    ]
    least = sum(quota.least for quota in outer)
    if least > plan.total:
        expected = f"{plan.total} or less, the total"
        yield Problem("the quotas cannot all be satisfied", path="quotas", expected=expected, got=f"{least} at least")


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
            yield Problem("folder or file not found in the repository", path=where, got=shorten(place), hint=hint)


def _of_capacity(plan: Plan, snapshot: Snapshot) -> Iterator[Problem]:
    """Cells whose scope holds nothing to aim at, and quotas that leave no room."""
    fits: dict[str, Callable[[str], bool]] = {
        "entities": lambda path: language_of(path) not in {"", "markdown"},
        "headings": lambda path: language_of(path) == "markdown",
    }
    for number, cell in enumerate(plan.cells):
        kind = plan.targets_of(cell)
        paths = [path for path in files_in(snapshot, plan.scope_of(cell)) if fits.get(kind, bool)(path)]
        if not paths:
            yield Problem(f"its scope has no files with {kind}", path=f"cells[{number}]", got=", ".join(cell.scope))
        elif (room := _room(plan, paths)) is not None and room < cell.n:
            expected = f"quotas with room for {cell.n}"
            yield Problem("its quotas leave too little room", path=f"cells[{number}]", expected=expected, got=str(room))
    everything = {path for cell in plan.cells for path in files_in(snapshot, plan.scope_of(cell))}
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


def _meet(scope: Sequence[str], place: str) -> bool:
    return not scope or any(lies_in(place, part) or lies_in(part, place) for part in scope)
