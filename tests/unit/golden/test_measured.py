"""A dry run of a few queries: what it takes, what follows for the whole, and that the run does not pay for it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.protocol import ModelAnswer, Request, Usage
from cranfield.agents.recording import Scripted
from cranfield.base.errors import UsageError
from cranfield.cli.main import run_command_line
from cranfield.golden.index import RunFolder, RunIndex
from cranfield.golden.plan import Plan, shipped_plan
from cranfield.golden.plan_cost import RoleUse, estimate, measure, part_of
from cranfield.golden.reports.plan import cost_verdict
from cranfield.golden.run import PipelineOptions, create_run, execute
from cranfield.repo.snapshot import Snapshot

ROLES = ("author", "oracle", "adversary", "judge")
PRICES = {"models": {f"openai:{role}": {"input": 1, "output": 10} for role in ROLES}}
CELLS = [
    {"task_type": "review", "difficulty": "easy", "n": 2},
    {"task_type": "explain", "difficulty": "medium", "n": 2},
]


def plan_of(models: Any, **changes: Any) -> tuple[Plan, str]:
    text = json.dumps(models.plan_of(total=4, cells=CELLS, **changes))
    return Plan.model_validate_json(text), text


def test_a_part_of_a_plan_has_cells_at_equal_distances_and_one_draft_for_each_query() -> None:
    plan = shipped_plan()
    part = part_of(plan, 3)
    assert [cell.key for cell in part.cells] == [("explain", "easy"), ("debug", "hard"), ("review", "medium")]
    assert (part.total, [part.emitted(cell) for cell in part.cells]) == (3, [1, 1, 1])
    many = part_of(plan, plan.total)
    assert [cell.n for cell in many.cells] == [cell.n for cell in plan.cells]
    with pytest.raises(UsageError, match="more queries to measure than in the plan"):
        part_of(plan, 61)


def test_the_run_after_a_dry_run_is_that_without_one_and_asks_for_nothing_again(
    models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    def states(path: Path) -> list[tuple[str, str]]:
        return [(each.query_id, each.state) for each in RunIndex(RunFolder.open(path)).statuses()]

    alone, both = (create_run(*plan_of(models), snapshot, tmp_path / name) for name in ("alone", "both"))
    asked = Scripted(models.Models().answer)
    execute(alone, snapshot, PipelineOptions(source=asked))
    dry, rest = Scripted(models.Models().answer), Scripted(models.Models().answer)
    found = measure(both, snapshot, 3, PipelineOptions(source=dry))
    assert states(both) == []  # the screen of the run decides over all candidates
    assert {role: len(use.tokens) for role, use in found.uses.items()} == dict.fromkeys(ROLES, 3)
    outcome = execute(both, snapshot, PipelineOptions(source=rest))
    assert states(both) == states(alone)
    assert outcome.n_kept == len(dry.requests)
    assert len(dry.requests) + len(rest.requests) == len(asked.requests)
    again = measure(both, snapshot, 3, PipelineOptions(source=(nothing := Scripted(models.Models().answer))))
    assert (nothing.requests, again.uses) == ([], found.uses)


def test_the_estimate_of_the_whole_follows_from_the_measured_records(models: Any, snapshot: Snapshot) -> None:
    plan, _ = plan_of(models, budget={"tokens": 1_000, "money": 0.01, "prices": PRICES})
    uses = {
        "author": RoleUse((100, 120, 110), (0.001, 0.001, 0.001)),
        "oracle": RoleUse((300,), (0.003,)),
        "adversary": RoleUse((), (), 2),  # its model reports nothing
    }
    found = estimate(plan, snapshot, uses)
    author, oracle, adversary, judge = found.roles
    assert (author.records, author.measured, author.tokens) == (6, 3, 660)  # 6 x 110
    # 660 ± t(.975, 2) x 10 x sqrt(3 + 3 x 3 / 3) = 660 ± 4.3027 x 24.4949
    assert author.token_interval == pytest.approx((660 - 105.393, 660 + 105.393), abs=1e-3)
    assert author.money_interval == pytest.approx((0.006, 0.006))
    assert (oracle.measured, oracle.tokens, oracle.token_interval) == (1, 1_200, None)
    assert (adversary.measured, judge.measured) == (0, 0)
    assert (adversary.tokens, judge.tokens) == tuple(role.tokens for role in estimate(plan, snapshot).roles[2:])
    assert found.token_interval is None


@pytest.mark.parametrize(
    ("tokens", "budget", "verdict"),
    [
        ((100, 100, 100), 10_000, "The plan has no problems."),
        (
            (100, 100, 100),
            1_000,
            "Measured cost is over the budget: about 1,800 of 1,000 tokens (95 % interval 1,800 to 1,800).",
        ),
        ((50, 100, 150), 2_000, "Measured cost may exceed the budget: about 1,800 of 2,000 tokens (95 % interval 1,"),
    ],
)
def test_the_verdict_names_cost_interval_and_budget(
    models: Any, snapshot: Snapshot, tokens: tuple[int, ...], budget: int, verdict: str
) -> None:
    plan, _ = plan_of(models, budget={"tokens": budget})
    found = estimate(plan, snapshot, dict.fromkeys(ROLES, RoleUse(tokens)))
    assert cost_verdict(found).startswith(verdict)
    assert [each.is_likely for each in found.over_budget] == [found.tokens > budget] * (budget < 10_000)


def test_money_over_the_budget_is_named_with_its_currency(models: Any, snapshot: Snapshot) -> None:
    plan, _ = plan_of(models, budget={"money": 0.01, "prices": {**PRICES, "currency": "EUR"}})
    found = estimate(plan, snapshot)
    assert found.tokens > 0
    assert cost_verdict(found) == (
        f"Typical cost is over the budget: about {found.money:.4f} of 0.0100 EUR. A run stops at the budget, and can be resumed with a larger one."
    )


def run_cli(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run_command_line(["golden", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_says_when_typical_cost_is_over_the_budget(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    for budget, code, verdict in (
        (20_000, 1, "Typical cost is over the budget: about"),
        (10**9, 0, "The plan has no problems."),
    ):
        path.write_text(plan_of(models, budget={"tokens": budget})[1])
        for command in (("plan", path), ("run", path, "--dry-run")):
            given = ["--repo", repo, "--at", "HEAD", "--out", tmp_path / "my runs"]
            found, out, err = run_cli(capsys, *command, *given)
            assert (found, verdict in out) == (code, True)
            as_typed = f"{path} --measure 3" if code else str(path)
            name = "plan" if code else "run"
            step = f"`cranfield golden {name} {as_typed} --repo {repo} --at HEAD --out '{tmp_path}/my runs'`"
            assert (step in err) == (code == 1 or command[0] == "plan"), err


def test_the_command_measures_keeps_the_answers_and_says_how_to_go_on(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, answers = tmp_path / "plan.json", tmp_path / "answers.jsonl"
    plan.write_text(plan_of(models)[1])
    models.record(plan, repo, answers)
    at = ("--repo", repo, "--replay", answers)
    code, out, err = run_cli(capsys, "plan", plan, *at, "--out", tmp_path / "runs", "--measure", 3, "--format", "json")
    assert (code, [role["measured"] for role in json.loads(out)["roles"]]) == (0, [3, 3, 3, 3])
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"`cranfield golden run --resume {folder} --repo " in err
    assert "creates the set, and reuses these answers" in err
    assert "dry run of 3 queries: " in err
    again = run_cli(capsys, "plan", "--resume", folder, *at, "--measure", 3, "--format", "json")
    assert (again[0], again[1]) == (0, out)
    assert run_cli(capsys, "run", "--resume", folder, *at)[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--measure", "5"), "more queries to measure than in the plan; expected 4 or less"),
        (("--replay", "answers.jsonl"), "--replay without a dry run; expected --measure N"),
    ],
)
def test_a_dry_run_that_cannot_be_is_refused_before_a_folder_is_made(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(plan_of(models)[1])
    code, _, err = run_cli(capsys, "plan", plan, "--repo", repo, "--out", tmp_path / "runs", *options)
    assert (code, message in err, (tmp_path / "runs").exists()) == (2, True, False)


def test_a_dry_run_that_the_budget_ends_says_how_it_goes_on(
    models: Any, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(plan_of(models, base_url="http://127.0.0.1:1/v1", budget={"tokens": 10})[1])
    code, out, err = run_cli(capsys, "plan", plan, "--repo", repo, "--out", tmp_path / "runs", "--measure", 3)
    (folder,) = (tmp_path / "runs").iterdir()
    assert (code, out) == (3, "")
    assert f"next: `cranfield golden plan --measure 3 --resume {folder} --repo " in err
    _, _, err = run_cli(capsys, "plan", "--resume", folder, "--repo", repo, "--at", "HEAD", "--measure", 3)
    assert f"next: `cranfield golden plan --measure 3 --resume {folder} --repo {repo} --at HEAD` continues" in err


def test_an_answer_without_a_report_of_tokens_is_no_measure(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    class Silent(Scripted):
        async def ask(self, request: Request) -> ModelAnswer:
            return replace(await super().ask(request), usage=Usage(unmeasured=1))

    path = create_run(*plan_of(models), snapshot, tmp_path)
    found = measure(path, snapshot, 1, PipelineOptions(source=Silent(models.Models().answer)))
    assert {(use.tokens, use.n_unreported) for use in found.uses.values()} == {((), 1)}
    assert not estimate(plan_of(models)[0], snapshot, found.uses).is_measured
