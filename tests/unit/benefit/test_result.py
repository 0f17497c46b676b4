"""From the folder of an experiment to its result: scores, validity, sentence, versions of the file, history."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request
from cranfield.agents.recording import PLAN, Scripted
from cranfield.base.errors import InputError, UsageError
from cranfield.base.numbers import format_points
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder, ExperimentManifest
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellKey, CellRecord, PreflightRecord, ScoreReason
from cranfield.benefit.reports.benefit import benefit_document
from cranfield.benefit.result import BenefitResult, StratumKind, StratumVerdict, ValidityKind, read_result, write_result
from cranfield.benefit.result_schema import SCHEMA_FILE, result_schema
from cranfield.benefit.runner import schedule
from cranfield.benefit.status import status_of
from cranfield.benefit.use_cases import (
    FILE,
    BenefitRules,
    RuleState,
    judge_result,
    publish,
    read_results,
    result_of,
    score_experiment,
)
from cranfield.benefit.validity import ExperimentRecords, validity
from cranfield.formats.io.delimited import file_versions
from cranfield.formats.io.validation import schema_text
from cranfield.reporting import render
from cranfield.reporting.renderers.text import render_brief

T, C = ArmRole.TREATMENT, ArmRole.CONTROL
N, SEEDS = 8, 2
FACT = "The parser is `parse_{}`."
PLAN_RECORD: dict[str, Any] = {
    "cranfield_benefit": 1,
    "name": "trial",
    "tasks": {"testset": "tasks/set.json"},
    "repo": ".",
    "agent": {"model": {"model": "scripted:agent"}},
    "tools": {"acme": {"command": ["acme-mcp"], "tools": ["acme_search"]}},
    "arms": {"treatment": {"name": "acme", "tools": ["acme"]}, "control": {"name": "plain"}},
    "seeds": SEEDS,
    "success": {"by": "facts", "judge": {"model": "scripted:judge"}},
}
SET = [
    {
        "query_id": f"q{n}",
        "query_text": f"How is format {n} parsed?",
        "task_type": "locate" if n % 2 else "explain",
        "difficulty": "easy",
        "expected_files": [f"src/f{n}.py"],
        "expected_line_ranges": [{"file": f"src/f{n}.py", "start": 1, "end": 10}],
        "must_mention_facts": [FACT.format(n)],
        "baseline_answerable": True,
    }
    for n in range(N)
]


def cell_record(key: CellKey, *, answer: str, **more: Any) -> dict[str, Any]:
    is_treated = key.arm is T
    delivery = gave(None) if is_treated else None
    reads = [
        {
            "path": f"src/f{key.task_id[1:]}.py",
            "start": 1,
            "end": 10 if is_treated else 5,
            "turn": 2,
            "tool": "read_file",
        }
    ]
    usage = {"total": 1500 if is_treated else 1000, "turns": 3, "wall_s": 2.0, "tool_calls": {"read_file": {"ok": 2}}}
    return {
        "key": key.model_dump(),
        "attempt": 1,
        "position": 0,
        "started_at": "2026-11-23T10:00:00Z",
        "end": "answered",
        "answer": answer,
        "usage": usage,
        "delivery": delivery,
        "reads": reads,
        "models": ["agent-1"],
        **more,
        "versions": {"agent": "1.0"},
        "transcript": f"sha256-{key.task_id}-{key.arm}-{key.seed}.json",
    }


def right(n: str) -> str:
    return f"- {FACT.format(n)}"


def answer_of(key: CellKey) -> str:
    """The treatment is right everywhere but on q0; the control on the first half."""
    n = int(key.task_id[1:])
    return right(str(n)) if (n > 0 if key.arm is T else n < N // 2) else "I do not know."


def experiment(
    tmp_path: Path,
    name: str = "run",
    change: Callable[[dict[str, Any]], Mapping[str, Any] | None] = lambda record: record,
    preflight: tuple[Mapping[str, Any], ...] = ({},),
    plan: Mapping[str, Any] | None = None,
) -> Path:
    """A folder with all cells; `change` edits a cell, or drops it."""
    record = {**PLAN_RECORD, **(plan or {})}
    parsed = BenefitPlan.model_validate(record)
    manifest = ExperimentManifest(
        name=name, created_at="2026-11-23T10:00:00Z", cranfield_version="0", plan_digest=parsed.digest
    )
    files = {PLAN: yaml.safe_dump(record).encode(), "tasks/set.json": json.dumps(SET).encode()}
    path = ExperimentFolder.create(tmp_path / "runs", manifest, files)
    with ExperimentFolder.writing(path) as folder:
        for given in preflight:
            served = {"ok": True, "server": "Acme 1.0", "found": {"index": "main"}}
            found = {"arm": "treatment", "tool": "acme", **served, **given}
            folder.append(ExperimentFile.PREFLIGHT, PreflightRecord.model_validate(found))
        for key in schedule(parsed, folder.tasks().tasks):
            changed = change(cell_record(key, answer=answer_of(key)))
            if changed is not None:
                folder.append(ExperimentFile.CELLS, CellRecord.model_validate(changed))
    return path


def absent(_: Request) -> str:
    return json.dumps({"quote": "", "verdict": "absent"})


def result(path: Path, script: Callable[[Request], str | ModelAnswer] = absent) -> BenefitResult:
    score_experiment(path, source=Scripted(script))
    return result_of(path)


def kinds(found: BenefitResult) -> set[tuple[ValidityKind, bool]]:
    return {(each.kind, each.is_void) for each in found.validity}


def test_a_result_from_a_folder(tmp_path: Path) -> None:
    found = result(experiment(tmp_path))
    everything = found.strata[-1]
    assert everything.kind is StratumKind.ALL
    assert (everything.n_tasks, everything.n_seeds) == (N, SEEDS)
    assert [each.stratum["task_type"] for each in found.strata[:2]] == ["explain", "locate"]  # as the tasks are ordered
    assert everything.success_lift.value == pytest.approx((N - 1) / N - 1 / 2)
    assert everything.token_ratio.value == pytest.approx(1.5)
    assert found.losses[0].task_id == "q0"
    # Right in both: q1 to q3; in the treatment only: q4 to q7; in the control only: q0. p = 2 * (1 + 5) / 32
    assert found.sentence == (
        "acme raised the rate of answers with correct facts from 50.0 % to 87.5 % on 8 tasks, McNemar p .3750: no significant difference."
    )
    assert not found.is_void
    assert found.reading[T].gold_recall == 1.0
    assert found.reading[C].recall_by_turn == (0.0, 0.5, 0.5)
    (row, *_) = found.tasks[1].arms[T]
    assert (row.query_id, row.success, row.total_tokens, row.tool_calls, row.turns, row.wall_clock_s, row.money) == (
        "q1",
        True,
        1500,
        2,
        3,
        2.0,
        None,
    )
    text = found.model_dump_json()
    assert BenefitResult.model_validate_json(text) == found
    jsonschema.Draft202012Validator(result_schema()).validate(json.loads(text))


def test_rates_of_some_tasks_only_say_of_how_many(tmp_path: Path) -> None:
    def change(record: dict[str, Any]) -> dict[str, Any]:
        return lost("control", 1)(lost("treatment", 1)(record))

    some = experiment(tmp_path, change=change, plan={"competence": {"success": 0.1}})
    assert "on 7 of 8 tasks" in result(some).sentence


def test_a_void_comparison_has_no_other_verdict(tmp_path: Path) -> None:
    found = result(experiment(tmp_path, preflight=({"ok": False, "message": "another index"},)))
    assert {(row.verdict, row.reason) for row in found.strata} == {(StratumVerdict.VOID, "The comparison is invalid.")}
    assert found.strata[-1].success_lift.value is not None


def test_addresses_of_models_and_variables_of_checkers_are_not_in_the_result(tmp_path: Path) -> None:
    judge = {"model": "scripted:judge", "base_url": "http://u:hush-4711@127.0.0.1:9/v1", "api_key_env": "HUSH_4711"}
    checker = {"command": ["lint"], "line": "(?P<file>x)", "env": {"TOKEN": "hush-4711"}}
    success = {"by": "facts", "judge": judge, "checkers": {"lua": checker}}
    agent = {"model": {"model": "scripted:agent", "base_url": "http://u:hush-4711@127.0.0.1:9/v1"}}
    found = result(experiment(tmp_path, plan={"success": success, "agent": agent}))
    assert "hush" not in found.model_dump_json().lower()
    assert found.rule["success"]["judge"]["model"] == "scripted:judge"
    assert found.rule["success"]["checkers"]["lua"]["command"] == ["lint"]


def test_a_result_is_as_old_as_its_cells(tmp_path: Path) -> None:
    assert result(experiment(tmp_path)).made_at == "2026-11-23T10:00:00Z"


def test_the_published_schema_is_that_of_the_model() -> None:
    hint = "run: python -m cranfield.benefit.result_schema"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(result_schema()), hint


def test_scoring_goes_on_where_it_ended_and_asks_nothing_twice(tmp_path: Path) -> None:
    path = experiment(
        tmp_path,
        change=lambda record: {**record, "answer": f"parse_{record['key']['task_id'][1:]} it is"},
        plan={"budget": {"tokens": 1, "judge_tokens": 100_000}},  # the agents used up theirs
    )
    down = ModelAnswer(failure=Failure(FailureKind.REJECTED, "no credit", status=403))
    first = score_experiment(path, source=Scripted(lambda _: down))
    assert (first.n_scored, first.n_undecided) == (2 * N * SEEDS, 2 * N * SEEDS)
    assert first.judge is not None
    assert first.judge.stopped is not None
    source = Scripted(absent)
    second = score_experiment(path, source=source)
    assert second.judge is not None
    assert (second.n_scored, second.n_undecided, second.judge.stopped) == (2 * N * SEEDS, 0, None)
    assert len(source.requests) == 2 * N  # the same answer in every cell of a task: two equal votes
    third = score_experiment(path, source=source)
    assert (third.n_scored, len(source.requests)) == (0, 2 * N)
    assert third.spent == second.spent  # charged once
    assert (second.spent.requests, second.spent.unmeasured) == (2 * N, 0)
    assert 2 * N * 100 < second.spent.tokens < 100_000
    assert len((path / ExperimentFile.SCORES).read_text().splitlines()) == 4 * N * SEEDS
    assert result_of(path).strata[-1].arms[T].success == 0.0


def test_a_result_needs_cells_and_their_scores(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cell of this experiment is finished"):
        result_of(experiment(tmp_path, change=lambda _: None))
    with pytest.raises(UsageError, match="32 cells without a score"):
        result_of(experiment(tmp_path))


def test_calls_that_are_not_known_are_missing_and_not_zero(tmp_path: Path) -> None:
    unknown = {"offered": True, "called": None, "answered": None}

    def change(record: dict[str, Any]) -> dict[str, Any]:
        usage = record["usage"] | {"tool_calls": None}
        return record | {"usage": usage, "reads": None, "delivery": unknown if record["delivery"] else None}

    path = experiment(tmp_path, change=change)
    found = result(path)
    assert kinds(found) == {(ValidityKind.CALLS_UNKNOWN, False), (ValidityKind.COMPETENCE_UNKNOWN, False)}
    whole = found.strata[-1]
    treatment = whole.arms[ArmRole.TREATMENT]
    assert (treatment.tool_calls, treatment.called, treatment.answered, treatment.offered) == (None, None, None, 1)
    assert (whole.tool_calls.n, whole.tool_calls.value) == (0, None)
    assert whole.per_protocol_lift is not None
    assert whole.per_protocol_lift.n == 0
    assert {reading.gold_recall for reading in found.reading.values()} == {None}
    assert {row.tool_calls for task in found.tasks for rows in task.arms.values() for row in rows} == {None}
    assert [arm.called for arm in status_of(ExperimentFolder.open(path)).arms] == [None, 0]


def test_an_answer_that_names_the_tool_is_a_caveat(tmp_path: Path) -> None:
    def leak(record: dict[str, Any]) -> dict[str, Any]:
        name = "By acme_search: " if record["key"]["arm"] == "treatment" else ""
        return {**record, "answer": f"{name}\n{record['answer']}"}

    found = result(experiment(tmp_path, change=leak))
    (leaked,) = (each for each in found.validity if each.kind is ValidityKind.LEAK)
    assert not leaked.is_void
    assert "16 of treatment (acme) and 0 of control (plain) (acme_search)" in leaked.message
    assert found.strata[-1].success_lift.value == pytest.approx((N - 1) / N - 1 / 2)


# What makes a comparison invalid


@dataclass
class Case:
    """An experiment with something wrong, and how it is reported."""

    kind: ValidityKind
    is_void: bool
    change: Callable[[dict[str, Any]], Mapping[str, Any] | None] = lambda record: record
    preflight: tuple[Mapping[str, Any], ...] = ({},)
    plan: Mapping[str, Any] = field(default_factory=dict)
    read_commit: str = ""


def of_arm(arm: str, most: int = 99, **values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Values for the cells of tasks under a number in an arm."""

    def change(record: dict[str, Any]) -> dict[str, Any]:
        key = record["key"]
        return {**record, **values} if key["arm"] == arm and int(key["task_id"][1:]) < most else record

    return change


def lost(arm: str, most: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return of_arm(arm, most, end="infrastructure", error="server_down", answer="")


def gave(*flaws: str | None, answered: int = 1, call: str = "a", **note: bool) -> dict[str, Any]:
    """What became of a tool that was called once for each result; None: it has content."""
    shared = {"tool": "acme_search", "arguments": call, "text": "t"}
    results = [{**shared, "flaws": [flaw] if flaw else [], "shows_lines": not flaw, **note} for flaw in flaws]
    return {"offered": True, "called": len(results), "answered": answered, "results": results}


_NO_TOOL = {"offered": False, "missing": ["acme_search"]}
_ONE = {"task_id": "q1", "arm": "treatment", "seed": 0}
_NATIVE = PLAN_RECORD["arms"]["treatment"]
CASES = [
    Case(
        ValidityKind.CONTROL_WITHOUT_NATIVE,
        False,
        plan={"arms": {"treatment": _NATIVE, "control": {"name": "c", "native": []}}},
    ),
    Case(
        ValidityKind.NATIVE_TOOLS_DIFFER,
        True,
        plan={"arms": {"treatment": _NATIVE, "control": {"name": "c", "native": ["search"]}}},
    ),
    Case(ValidityKind.PREFLIGHT_FAILED, True, preflight=({"ok": False, "message": "index old, expected new"},)),
    Case(ValidityKind.PREFLIGHT_FAILED, True, preflight=()),
    Case(ValidityKind.INDEX_UNKNOWN, False, preflight=({"found": {}},)),
    Case(ValidityKind.TOOL_CHANGED, True, preflight=({}, {"server": "Acme 1.1"})),
    Case(ValidityKind.TOOL_CHANGED, True, preflight=({"found": {"index": "a"}}, {"found": {"index": "b"}})),
    Case(ValidityKind.COMMIT_DIFFERS, True, read_commit="b" * 40),
    Case(ValidityKind.COMMIT_DIFFERS, True, preflight=({"found": {"commit": "bbbbbbb"}},)),
    Case(ValidityKind.TOOL_NOT_DELIVERED, True, of_arm("treatment", 1, delivery=_NO_TOOL)),  # 2 of 16 cells
    Case(ValidityKind.TOOL_NOT_DELIVERED, True, of_arm("treatment", delivery=None)),
    Case(ValidityKind.TOOL_NOT_DELIVERED, True, lambda r: {**lost("treatment", 2)(r), "error": "tool_not_started"}),
    Case(ValidityKind.TOOL_NOT_DELIVERED, False, lambda r: {**r, "delivery": _NO_TOOL} if r["key"] == _ONE else r),
    Case(ValidityKind.TOOL_NEVER_CALLED, False, of_arm("treatment", delivery={"offered": True})),
    Case(
        *(ValidityKind.CALLS_UNKNOWN, False),
        of_arm("treatment", 1, delivery={"offered": True, "called": None, "answered": None, "payload_tokens": None}),
    ),
    Case(ValidityKind.TOOL_NOT_ANSWERED, True, of_arm("treatment", 5, delivery={"offered": True, "called": 2})),
    Case(ValidityKind.TOOL_NOT_ANSWERED, False, of_arm("treatment", 2, delivery={"offered": True, "called": 2})),
    Case(ValidityKind.TOOL_NOT_ANSWERED, True, of_arm("treatment", 5, delivery=gave("empty", answered=0))),
    Case(ValidityKind.RESULTS_FLAWED, False, of_arm("treatment", delivery=gave("empty", None, None, answered=2))),
    Case(ValidityKind.RESULTS_FLAWED, False, of_arm("treatment", delivery=gave("cut"))),
    Case(
        ValidityKind.RESULTS_UNKNOWN,
        False,
        of_arm("treatment", 1, delivery={"offered": True, "called": 1, "answered": 1}),
    ),
    Case(ValidityKind.RESULTS_FLAWED, False, of_arm("treatment", 3, delivery=gave("reads as an error", None))),
    Case(ValidityKind.RESULTS_FLAWED, False, lambda r: of_arm("treatment", delivery=gave(None, call=str(r["key"])))(r)),
    Case(ValidityKind.RESULTS_FLAWED, False, of_arm("treatment", delivery=gave(None, shows_lines=False))),
    Case(
        *(ValidityKind.RESULTS_OF_OTHER_SOURCE, True),
        lambda r: {**r, "delivery": gave("of another index", None)} if r["key"] == _ONE else r,
    ),
    Case(ValidityKind.TOOL_CHANGED, True, preflight=({}, {"after_run": True, "found": {"index": "b"}})),
    Case(
        *(ValidityKind.TOOL_CHANGED, True),
        preflight=({}, {"after_run": True, "ok": False, "message": "x", "found": {"index": "b"}}),
    ),
    Case(ValidityKind.ANSWERS_NOT_READ, False, of_arm("treatment", 4, reads=[])),  # 3 of 7 tasks that succeed
    Case(ValidityKind.ANSWERS_NOT_READ, False, of_arm("control", reads=[])),
    Case(ValidityKind.INCOMPLETE, False, lambda record: None if record["key"]["task_id"] == "q1" else record),
    Case(ValidityKind.INCOMPLETE, True, lambda record: None if int(record["key"]["task_id"][1:]) > 2 else record),
    Case(ValidityKind.INFRASTRUCTURE_DIFFERS, True, lost("treatment", 2)),
    Case(ValidityKind.MODEL_DIFFERS, True, of_arm("control", models=["agent-2"])),
    Case(ValidityKind.MODEL_DIFFERS, True, of_arm("control", 2, models=["agent-2"])),
    Case(ValidityKind.MODEL_DIFFERS, False, lambda r: {**r, "models": ["agent-1" if r["key"]["seed"] else "agent-0"]}),
    Case(ValidityKind.MODEL_UNKNOWN, False, of_arm("control", models=[])),
    Case(ValidityKind.AGENT_DIFFERS, True, lambda r: {**r, "versions": {"agent": r["key"]["arm"]}}),
    Case(ValidityKind.UNDECIDED, True, of_arm("treatment", 2, answer="parse_0 or parse_1, I am unsure.")),
    Case(ValidityKind.SAME_ANSWERS, False, lambda record: {**record, "answer": "I do not know."}),
    Case(ValidityKind.UNMEASURED_TOKENS, False, of_arm("control", 1, usage={"wall_s": 1.0})),
    Case(ValidityKind.JUDGE_IS_AGENT, False, plan={"success": {"by": "facts", "judge": {"model": "scripted:agent"}}}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{'void' if case.is_void else 'caveat'}")
def test_rules_of_validity(case: Case, tmp_path: Path) -> None:
    def unsure(request: Request) -> str:
        is_unsure = "unsure" in request.messages[0].text
        return json.dumps({"quote": "", "verdict": "unclear" if is_unsure else "absent"})

    path = experiment(tmp_path, change=case.change, preflight=case.preflight, plan=case.plan)
    score_experiment(path, source=Scripted(unsure))
    folder = ExperimentFolder.open(path)
    scores = {score.key: score for score in folder.scores()}
    evidence = ExperimentRecords(
        folder.plan,
        schedule(folder.plan, folder.tasks().tasks),
        folder.cells(),
        scores,
        folder.preflights(),
        "a" * 40,
        case.read_commit,
    )
    assert (case.kind, case.is_void) in {(each.kind, each.is_void) for each in validity(evidence)}


def test_undecided_code_says_why_a_check_could_not_run(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    score_experiment(path, source=Scripted(absent))
    folder = ExperimentFolder.open(path)
    why = {"success": None, "why": ScoreReason.CHECK_MISSING, "notes": ("no such compiler",)}
    scores = {score.key: score.model_copy(update=why if score.key.arm is T else {}) for score in folder.scores()}
    planned = schedule(folder.plan, folder.tasks().tasks)
    found = validity(
        ExperimentRecords(folder.plan, planned, folder.cells(), scores, folder.preflights(), "a" * 40, "a" * 40)
    )
    assert [each.message for each in found if each.kind is ValidityKind.UNDECIDED] == [
        "16 of 16 cells of treatment (acme) are not decided: check_missing ('no such compiler')"
    ]


def test_a_preflight_that_ended_a_call_says_nothing_of_the_cells_that_were_run(tmp_path: Path) -> None:
    refused = {"ok": False, "message": "the tool has changed since the experiment began", "found": {"index": "b"}}
    found = result(experiment(tmp_path, preflight=({}, refused)))
    assert kinds(found) == set()
    assert found.tools["acme"]["preflight"]["found"] == {"index": "main"}


def test_a_control_with_another_index_is_not_called_one_that_cannot_look(tmp_path: Path) -> None:
    tools = {name: {"command": ["acme-mcp"]} for name in ("acme", "old")}
    arms = {
        "treatment": {"name": "b", "tools": ["acme"], "native": []},
        "control": {"name": "a", "tools": ["old"], "native": []},
    }
    found = result(experiment(tmp_path, plan={"tools": tools, "arms": arms}))
    assert ValidityKind.CONTROL_WITHOUT_NATIVE not in {kind for kind, _ in kinds(found)}


def test_every_kind_of_validity_is_tested() -> None:
    elsewhere = {
        ValidityKind.CODE_NOT_RUN,
        ValidityKind.SYMBOLS_UNKNOWN,
        ValidityKind.LEAK,
        ValidityKind.CONTROL_INCOMPETENT,
        ValidityKind.COMPETENCE_UNKNOWN,
        ValidityKind.UNCOMMITTED,
        ValidityKind.TREE_CHANGED,
        ValidityKind.FOLDER_HAS_MORE,  # in test_source
    }
    assert {case.kind for case in CASES} | elsewhere == set(ValidityKind)


def test_every_kind_of_validity_is_on_the_page(checkout: Path) -> None:
    page = (checkout / "docs/how-to/benefit-experiment.md").read_text(encoding="utf-8")
    assert [kind for kind in ValidityKind if f"`{kind}`" not in page] == []


def test_what_changes_how_a_verdict_is_read_stands_before_it(tmp_path: Path) -> None:
    told = result(experiment(tmp_path, change=of_arm("treatment", reads=[])))
    caution = "in 14 of 14 successes of treatment (acme) no gold line was read, from the repository or from a result, so the answers seem to come from elsewhere (the plan allows 20%)"
    assert not told.is_void
    assert told.cautions == (caution,)
    assert told.sentence.startswith(f"Caution: {caution}. acme raised the rate")
    document = benefit_document(told)
    assert document.verdict is not None
    assert document.verdict.sentence.startswith(f"Caution: {caution}. Of 2 strata: ")
    assert caution not in document.verdict.caveats
    gate = judge_result(told, BenefitRules(), datetime.now(UTC))  # with a net cost, which would fail it
    assert gate.state is RuleState.INCONCLUSIVE
    assert (told.reading[T].n_unread, told.reading[T].n_successes, told.reading[C].n_unread) == (14, 14, 0)


def test_a_plan_may_declare_a_tool_that_gives_answers_and_no_lines(tmp_path: Path) -> None:
    plan = {"delivery": {"unread": 1}}
    assert kinds(result(experiment(tmp_path, change=of_arm("treatment", reads=[]), plan=plan))) == set()


@pytest.mark.parametrize(
    ("delivery", "kinds_told"),
    [
        (gave("empty", None, None, None, None, answered=4), set()),  # 20 % is allowed
        (gave("empty", None, None, None, answered=3), {(ValidityKind.RESULTS_FLAWED, False)}),
        (gave("cut", None, None, None, None, answered=5), set()),
    ],
)
def test_results_up_to_the_bound_are_no_caution(delivery: dict[str, Any], kinds_told: set[Any], tmp_path: Path) -> None:
    found = result(experiment(tmp_path, change=of_arm("treatment", delivery=delivery)))
    assert kinds(found) == kinds_told
    n = len(delivery["results"])
    assert (found.delivered[T].n, found.delivered[T].with_lines) == (n * 16, (n - 1) * 16)


def test_no_figure_of_the_short_form_is_cut(tmp_path: Path) -> None:
    """`+57.3 to +1…` would be read as another interval."""
    found = result(experiment(tmp_path))
    text = render_brief(benefit_document(found))
    lift = found.first_strata[0].success_lift
    assert f"{format_points(lift.value)} ({format_points(lift.low)} to {format_points(lift.high)})" in text
    assert found.first_strata[0].verdict.value in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_weak_control_says_how_it_fails_and_whether_the_other_arm_does_too(tmp_path: Path) -> None:
    alike = result(experiment(tmp_path, change=lambda record: {**record, "answer": "I do not know."}))
    (weak,) = (each for each in alike.validity if each.kind is ValidityKind.CONTROL_INCOMPETENT)
    assert weak.message == (
        "control (plain) succeeds at 0% on 8 tasks that can be done without the tool; the plan requires 50% "
        "(16 failed: 16 fact_missing); treatment (acme) succeeds at 0% there: check the replies, the judge and the facts first"
    )


def test_a_silent_tool_has_no_verdict_and_its_cells_are_listed(tmp_path: Path) -> None:
    found = result(experiment(tmp_path, change=of_arm("treatment", delivery=gave("empty", "empty", answered=0))))
    assert found.sentence.startswith(
        "No verdict: no result of the tool had content in 16 of 16 cells of treatment (acme) that called it: of 32 results 32 empty"
    )
    text = render(benefit_document(found), "text")
    assert "Cells that called the tool and received no content" in text
    assert "2 empty" in text


def test_a_sound_experiment_has_no_caveat(tmp_path: Path) -> None:
    assert kinds(result(experiment(tmp_path))) == set()


def test_a_void_comparison_has_no_sentence_on_its_rates(tmp_path: Path) -> None:
    found = result(experiment(tmp_path, change=of_arm("treatment", delivery=_NO_TOOL)))
    assert found.is_void
    assert found.sentence == "No verdict: the tool did not start in 16 of 16 cells of treatment (acme)."


# Files and history


def test_versions_of_results(tmp_path: Path) -> None:
    out = tmp_path / "out"
    base = result(experiment(tmp_path, "first"))
    again, other = (
        base.model_copy(update={"run": "second"}),
        base.model_copy(update={"run": "x", "plan_digest": "sha256:0"}),
    )
    names = [
        publish(each, out)[0].name for each in (base, again, other, base.model_copy(update={"run": "third"}), again)
    ]
    assert names == [
        "benefit_v1.0.json",
        "benefit_v1.1.json",
        "benefit_v2.0.json",
        "benefit_v1.2.json",
        "benefit_v1.1.json",
    ]
    assert [str(version) for version in file_versions(out, "benefit")] == ["1.0", "1.1", "1.2", "2.0"]
    assert read_result(out / "benefit_v1.2.json") == base.model_copy(update={"run": "third", "version": "1.2"})
    history = read_results(out)
    assert [(past.run, past.version) for past in history.results] == [
        (base.run, "1.0"), ("x", "2.0"), ("third", "1.2"), ("second", "1.1"),
    ]  # fmt: skip
    assert history.results[0].strata[-1].success_lift == base.strata[-1].success_lift


def test_a_void_result_is_marked_in_the_history(tmp_path: Path) -> None:
    out = tmp_path / "out"
    publish(result(experiment(tmp_path, "void", change=of_arm("treatment", delivery=_NO_TOOL))), out)
    publish(result(experiment(tmp_path, "good")), out)
    assert [past.is_void for past in read_results(out).results] == [True, False]


def test_results_without_a_line_in_the_history_are_read_from_their_files(tmp_path: Path) -> None:
    """As in a clone: git ignores the history."""
    out, base = tmp_path / "out", result(experiment(tmp_path))
    for number, run in enumerate(("first", "second"), 1):
        publish(base.model_copy(update={"run": run, "made_at": f"2026-11-0{number}T10:00:00Z"}), out)
    before = read_results(out).results
    (out / ".cranfield" / FILE).unlink()
    found = read_results(out).results
    assert [(past.run, past.file, past.time) for past in found] == [
        ("first", "benefit_v1.0.json", "2026-11-01T10:00:00Z"), ("second", "benefit_v1.1.json", "2026-11-02T10:00:00Z"),
    ]  # fmt: skip
    assert [past.strata for past in found] == [past.strata for past in before]
    publish(base.model_copy(update={"run": "third"}), out)
    assert [(past.run, past.version) for past in read_results(out).results] == [
        ("first", "1.0"), ("second", "1.1"), ("third", "1.2"),
    ]  # fmt: skip
    (out / "benefit_v1.1.json").write_text("{}")
    with pytest.raises(InputError, match=r"benefit_v1\.1\.json"):
        read_results(out)


def test_damaged_files_are_reported(tmp_path: Path) -> None:
    out = tmp_path / "out"
    path, _ = publish(result(experiment(tmp_path)), out)
    with (out / ".cranfield" / FILE).open("a") as file:
        file.write('{"cranfield_benefit_history": 1}\n?\n')
    history = read_results(out)
    assert len(history.results) == 1
    assert [each.line for each in history.damaged] == [2, 3]
    path.write_text(path.read_text().replace('"sentence"', '"sentense"'))
    with pytest.raises(InputError, match="sentence") as caught:
        read_result(path)
    assert "benefit_v1.0.json" in str(caught.value)
    with pytest.raises(InputError):
        write_result(BenefitResult.model_construct(run="z", plan_digest=""), out)
    assert read_results(tmp_path / "nowhere").results == ()


# Commands


def test_the_commands_score_and_write(tmp_path: Path, call: Any) -> None:
    plan = {"success": {"by": "structure"}, "competence": {"success": 0}}
    path, out = experiment(tmp_path, plan=plan), tmp_path / "out"
    early = call("benefit", "result", path, "--out", out)
    assert (early.returncode, "cranfield benefit score" in early.stderr) == (2, True)
    scored = call("benefit", "score", path)
    assert (scored.returncode, scored.stdout) == (0, "scored 32 cells; 32 have ended\n")
    written = call("benefit", "result", path, "--out", out)
    assert written.returncode == 0
    assert "left the rate of complete answers at 0.0 % on 8 tasks" in written.stdout
    assert (out / "benefit_v1.0.json").is_file()
    void = experiment(tmp_path, plan=plan, preflight=())
    assert call("benefit", "score", void).returncode == 0
    invalid = call("benefit", "result", void, "--out", out)
    assert (invalid.returncode, invalid.stdout.startswith("No verdict: ")) == (4, True)
    assert call("benefit", "score", tmp_path).returncode == 2


@pytest.mark.slow  # the libraries that call models take seconds to import
def test_a_judge_that_fails_has_an_exit_code_of_its_own(tmp_path: Path, call: Any) -> None:
    def judged(budget: dict[str, int]) -> Path:
        judge = {"model": "openai:judge", "base_url": "http://127.0.0.1:9", "attempts": 1}
        return experiment(
            tmp_path,
            change=lambda record: {**record, "answer": f"parse_{record['key']['task_id'][1:]} it is"},
            plan={"success": {"by": "facts", "judge": judge}, "budget": budget},
        )

    unsure = judged({"judge_tokens": 1})
    scored = call("benefit", "score", unsure)
    assert scored.returncode == 4
    assert "stopped: budget: the budget limit was reached: the budget of tokens" in scored.stderr
    assert f"cranfield benefit run PLAN --resume {unsure}`, then `cranfield benefit score" in scored.stderr
    down = judged({})
    scored = call("benefit", "score", down)
    assert scored.returncode == 3
    assert (
        "stopped: connection: the server of the model cannot be reached (5 calls of the judge in a row)"
        in scored.stderr
    )
    assert f"Hint: start the server of the judge, then `cranfield benefit score {down}` goes on." in scored.stderr
