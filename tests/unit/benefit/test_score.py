"""Scores that do not know the arm: sealing, redaction, facts, structure, code, what was read, tasks that cannot be scored."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield.agents.answers import score as answer_scores
from cranfield.agents.answers.judge import Judge, JudgeSettings
from cranfield.agents.answers.rows import Named
from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request
from cranfield.agents.recording import Scripted
from cranfield.benefit import score as scores
from cranfield.benefit.codecheck.report import CheckReport, CheckState, CodeCheck, CodeFinding, Target
from cranfield.benefit.coding import CodingTask, TargetSettings, Trap
from cranfield.benefit.plan import Agent, Arm, ArmRole, BenefitPlan, Success, SuccessBy, TaskSource, ToolServer
from cranfield.benefit.reading import arm_reading, cell_reading
from cranfield.benefit.records import (
    CellEnd,
    CellKey,
    CellRecord,
    CellUsage,
    LineRange,
    NamedPlaces,
    PreflightRecord,
    ReadLines,
    ScoreReason,
    ScoreRecord,
    ToolCount,
)
from cranfield.benefit.redaction import MACHINE, MCP, LeakFinder, redaction_of
from cranfield.benefit.result import ValidityKind
from cranfield.benefit.score import Scorer, SealedAnswer, seal, unscored, unseal
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.benefit.tool_check import ScoringFault, check_scoring, scoring_problems
from cranfield.benefit.validity import ExperimentRecords, validity
from cranfield.model import Entity, MatchingRules, Query, TestSet
from cranfield.model.judging import Fact, Label, Lines

OPEN = "src/index.py::Index.open"
LOCK, ERROR, TWICE = "`Index.open` takes a lock.", "A missing file is an error.", "The index is opened twice."
SPAN = Lines("src/index.py", 11, 20)
TESTSET = TestSet(
    "set",
    (Query("q1", "How is the index opened?"), Query("q2", "Where does acme_search stand?")),
    targets={"q1": (Entity(OPEN),)},
    labels={
        "q1": Label(must_mention=(Fact(LOCK), Fact(ERROR)), must_not_mention=(Fact(TWICE),), narrative="It opens."),
        "q2": Label(must_mention=(Fact("`acme_search` stands in `find.py`."),)),
    },
)
TASKS = TaskSet(
    (
        Task("q1", "How is the index opened?", gold=(SPAN,), query=TESTSET.queries[0]),
        Task("q2", "Where does acme_search stand?", query=TESTSET.queries[1]),
    ),
    TESTSET,
)
T, C = ArmRole.TREATMENT, ArmRole.CONTROL


def plan(success: Success | None = None, **tools: ToolServer) -> BenefitPlan:
    return BenefitPlan(
        cranfield_benefit=1,
        name="trial",
        tasks=TaskSource(testset="set.json"),
        repo="/srv/checkout",
        agent=Agent(),
        tools=tools or {"acme": ToolServer(command=("uvx", "acme-code-mcp==0.5"), tools=("acme_search", "lookup"))},
        arms={T: Arm(name="acme-0.5", tools=tuple(tools or ("acme",))), C: Arm(name="baseline")},
        success=success or Success(by=SuccessBy.FACTS, redact=(r"Initech\w*",)),
    )


def cell(
    task_id: str, arm: ArmRole, answer: str = "", *, seed: int = 0, end: CellEnd = CellEnd.ANSWERED, **more: object
) -> CellRecord:
    given_fields = {"usage": CellUsage(wall_s=1.0, total=100, turns=3), **more}
    return CellRecord.model_validate(
        {"key": CellKey(task_id=task_id, arm=arm, seed=seed), "attempt": 1, "position": 0, "started_at": "2026-11-23",
         "end": end, "answer": answer, **given_fields}
    )  # fmt: skip


def score_all(
    cells: list[CellRecord], scorer: Scorer, experiment: BenefitPlan | None = None
) -> dict[CellKey, ScoreRecord]:
    async def run() -> dict[str, scores.SealedScore]:
        return {answer.sealed_id: await scorer.score(answer) for answer in sealed.answers}

    sealed = seal(cells, 7)
    leaks = LeakFinder(redaction_of(experiment or plan(), cells), scorer.tasks)
    records = unseal(sealed, asyncio.run(run()), {each.key: each for each in cells}, scorer.tasks, leaks)
    return {record.key: record for record in records}


def judge(script: Callable[[Request], str | ModelAnswer]) -> tuple[Judge, Scripted]:
    source = Scripted(script)
    return Judge(source, JudgeSettings("scripted:judge")), source


def says_lock(request: Request) -> str:
    """Supports the fact on the lock where the answer speaks of a lock."""
    text = request.messages[0].text
    statement, _, answer = text.partition("</part-")
    is_lock = LOCK in statement and "locks" in answer
    return json.dumps({"quote": "locks" if is_lock else "", "verdict": "supported" if is_lock else "absent"})


# The scorer cannot tell the arm


def test_the_same_answer_of_both_arms_is_the_same_request() -> None:
    sent = {}
    for arm in ArmRole:
        model, source = judge(says_lock)
        score_all([cell("q1", arm, "Index.open locks the file.")], Scorer(TASKS, plan().success, judge=model))
        sent[arm] = [json.dumps(request.record()) for request in source.requests]
    assert sent[T] == sent[C]
    assert sent[T]


def test_both_arms_share_the_votes_of_one_judge() -> None:
    model, source = judge(says_lock)
    cells = [cell("q1", arm, "Index.open locks the file.", seed=seed) for arm in ArmRole for seed in range(3)]
    found = score_all(cells, Scorer(TASKS, plan().success, judge=model))
    assert len({(score.success, score.why, score.facts_score) for score in found.values()}) == 1
    assert len({request.digest for request in source.requests}) == len(source.requests)


def test_an_answer_that_names_its_tool_is_sent_without_the_name() -> None:
    answer = (
        "Using acme's `acme_search` (mcp__acme__lookup, the lookup tool of Acme Code MCP 0.5) I read "
        "/srv/checkout/src/index.py: Initech locks it."
    )
    model, source = judge(says_lock)
    experiment = plan()
    cells = [cell("q1", T, answer), cell("q1", C, "It locks it.")]
    scorer = Scorer(TASKS, experiment.success, redact=redaction_of(experiment, cells), judge=model)
    found = score_all(cells, scorer, experiment)
    sent = "".join(request.system + request.messages[0].text for request in source.requests).lower()
    for secret in ("acme", "lookup", "mcp", "checkout", "initech", "treatment", "control", "baseline"):
        assert secret not in sent, secret
    treated, plain = found[cells[0].key], found[cells[1].key]
    assert set(treated.redacted) == {"acme", "acme_search", "lookup", "acme-code-mcp", "acme-0.5", MCP, MACHINE} - {
        "acme-0.5"
    }
    assert plain.redacted == ()
    assert (treated.success, treated.why, treated.facts_score) == (plain.success, plain.why, plain.facts_score)


def test_a_name_that_the_task_says_is_no_leak_and_is_redacted_in_its_label_too() -> None:
    experiment = plan()
    answer = "`acme_search` stands in `find.py`."
    scorer = Scorer(TASKS, experiment.success, redact=redaction_of(experiment))
    found = score_all([cell("q2", C, answer)], scorer)
    (score,) = found.values()
    assert (score.success, score.redacted) == (True, ())  # stated verbatim, after the same name was removed from both


def test_tools_with_names_of_prose_are_redacted_as_code_alone() -> None:
    redact = redaction_of(plan(index=ToolServer(url="http://localhost:1", tools=("search", "context"))))
    text = (
        "The search of the index needs context: `search`, search(x), the search tool, tool context, mcp__index__search."
    )
    assert redact(text) == (
        "The search of the index needs context: `[redacted]`, [redacted](x), the [redacted] tool, tool [redacted], [redacted]."
    )


def test_names_that_a_server_lists_or_an_agent_calls_are_redacted() -> None:
    record = PreflightRecord(arm=T, tool="acme", ok=True, server="OmniFind 2.1", tools=("fetchContext",))
    called = cell(
        "q1", T, usage=CellUsage(wall_s=1, tool_calls={"grep_all": ToolCount(ok=1), "read_file": ToolCount()})
    )
    redact = redaction_of(plan(), [called], [record])
    assert (
        redact("omnifind, fetch-context and grep_all, then read_file")
        == "[redacted], [redacted] and [redacted], then read_file"
    )


def test_a_native_tool_of_one_arm_is_redacted() -> None:
    arms = {
        T: Arm(name="acme-0.5", native=("search", "read_file"), tools=("acme",)),
        C: Arm(name="bare", native=("search",)),
    }
    redact = redaction_of(plan().model_copy(update={"arms": arms}))
    assert redact("`search`, then `read_file`") == "`search`, then `[redacted]`"


@given(st.text(max_size=200))
def test_what_is_redacted_holds_no_name_of_any_tool(text: str) -> None:
    redact = redaction_of(plan())
    assert not redact.found(redact(text + " acme_search " + text))


def test_no_function_of_scoring_takes_an_arm() -> None:
    for function in (
        scores.Scorer.score,
        scores.Scorer.__init__,
        answer_scores.score_answer,
        answer_scores.blind_answer,
    ):
        names = inspect.signature(function).parameters
        assert not {"arm", "arms", "role", "cell", "cells", "key", "plan"} & set(names), function
    fields = {name for kind in (SealedAnswer, answer_scores.BlindAnswer) for name in kind.__dataclass_fields__}
    assert not fields & {"arm", "key", "seed", "transcript", "delivery", "usage", "cell"}


def test_the_order_of_sealed_answers_does_not_depend_on_the_arm() -> None:
    """Rank sums of one arm against those of shuffled arms: of 20 seeds, about 1 lies outside of a 95 % range."""
    cells = [cell(f"t{n}", arm) for n in range(30) for arm in ArmRole]
    n = len(cells)
    mean, deviation = n / 2 * (n - 1) / 2, (n / 2 * n / 2 * (n + 1) / 12) ** 0.5
    outside = 0
    for seed in range(20):
        sealed = seal(cells, seed)
        ranks = [place for place, answer in enumerate(sealed.answers) if sealed.keys[answer.sealed_id].arm is T]
        outside += abs(sum(ranks) - mean) > 1.96 * deviation
        assert sealed == seal(cells[::-1], seed)
    assert outside <= 4  # P(more) under chance is .003
    assert seal(cells, 0).answers != seal(cells, 1).answers


# Success


def test_success_by_facts_and_why_not() -> None:
    def vote(request: Request) -> str | ModelAnswer:
        text = request.messages[0].text
        if "breaks" in text:
            return ModelAnswer(failure=Failure(FailureKind.BAD_OUTPUT, "no vote"))
        if "unsure" in text:
            return json.dumps({"quote": "", "verdict": "unclear"})
        wrong = TWICE in text.partition("</part-")[0] and "twice" in text
        return json.dumps({"quote": "twice" if wrong else "", "verdict": "supported" if wrong else "absent"})

    both = f"- {LOCK}\n- {ERROR}"
    answers = {
        0: both,
        1: f"- {LOCK}",
        2: f"{both}\nIt is opened twice.",
        3: f"{both}\nIt breaks.",
        4: f"{both}\nI am unsure.",
        5: "",
    }
    model, _ = judge(vote)
    cells = [cell("q1", T, text, seed=seed) for seed, text in answers.items()]
    found = score_all(cells, Scorer(TASKS, plan().success, judge=model))
    assert [(found[each.key].success, found[each.key].why) for each in cells] == [
        (True, None),
        (False, ScoreReason.FACT_MISSING),
        (False, ScoreReason.WRONG_STATEMENT),
        (None, ScoreReason.JUDGE_FAILED),
        (None, ScoreReason.NO_MAJORITY),
        (False, ScoreReason.FACT_MISSING),
    ]
    again = unscored(cells, found.values())
    assert [each.key.seed for each in again] == [3]  # a missing majority is a result, a failed judge is not


def test_a_cell_that_reached_a_limit_fails_whatever_its_text_says() -> None:
    cells = [cell("q1", T, f"- {LOCK}\n- {ERROR}", seed=n, end=end) for n, end in enumerate(scores.ENDS)]
    found = score_all(cells, Scorer(TASKS, plan().success))
    assert [(found[each.key].success, found[each.key].facts_score) for each in cells] == [(False, 0.0)] * len(cells)
    assert [found[each.key].why for each in cells] == list(scores.ENDS.values())


def test_success_by_structure_reads_fields_or_the_text() -> None:
    success = Success(by=SuccessBy.STRUCTURE)
    fields = NamedPlaces(entities=(OPEN,), lines=(LineRange(path="src/index.py", start=11, end=20),))
    cells = [cell("q1", T, f"See {OPEN}."), cell("q1", C, "?", named=fields), cell("q1", C, "See it.", seed=1)]
    model, source = judge(says_lock)
    found = score_all(cells, Scorer(TASKS, success, judge=model))
    assert [found[each.key].success for each in cells] == [True, True, False]
    assert found[cells[2].key].why is ScoreReason.STRUCTURE
    assert not source.requests


class ByText:
    """A checker by words of the code: `fail:CHECK`, `miss:CHECK`."""

    def __init__(self) -> None:
        self.n = 0

    async def check(self, files: Mapping[str, str], target: Target, tests: str = "") -> CheckReport:
        self.n += 1
        text = "".join(files.values())
        states = dict.fromkeys(CodeCheck, CheckState.PASSED)
        states |= {check: CheckState.FAILED for check in CodeCheck if f"fail:{check}" in text}
        states |= {check: CheckState.MISSING for check in CodeCheck if f"miss:{check}" in text}
        states |= {CodeCheck.TESTS: CheckState.FAILED} if text == "pass\n" and tests != "assert True" else {}
        found = tuple(
            CodeFinding(check, "a.py", 1, "os.nope", "no such symbol") for check in CodeCheck if f"fail:{check}" in text
        )
        return CheckReport(states, found, notes=("no such compiler",) if "miss:" in text else ("a note",))


def coding(**more: object) -> TaskSet:
    given_fields = {"id": "c1", "prompt": "Write it.", "writes": ("a.py",), "target": TargetSettings(language="python", version="3.11"),
                    "reference": {"a.py": "good = 1"}, "tests": "import a", **more}  # fmt: skip
    task = CodingTask.model_validate(given_fields)
    return TaskSet((Task("c1", task.full_prompt, coding=task),))


@pytest.mark.parametrize(
    ("code", "success", "why"),
    [
        ("x = 1", True, None),
        ("fail:symbols fail:available", False, ScoreReason.SYMBOLS),
        ("miss:available", None, ScoreReason.CHECK_MISSING),
        ("miss:available fail:compiles", False, ScoreReason.COMPILES),
        ("fail:tests", False, ScoreReason.TESTS),
        (" \n", False, ScoreReason.NO_CODE),
    ],
)
def test_success_by_code(code: str, success: bool | None, why: ScoreReason | None) -> None:
    checker = ByText()
    cells = [cell("c1", arm, files={"a.py": code}) for arm in ArmRole]
    found = score_all(cells, Scorer(coding(), Success(by=SuccessBy.CODE), checkers=lambda _: checker))
    assert {(score.success, score.why) for score in found.values()} == {(success, why)}
    assert checker.n <= 1  # the same code is checked once for both arms
    if "fail" in code:
        assert found[cells[0].key].findings[0]["symbol"] == "os.nope"
    assert {score.notes for score in found.values()} == {("no such compiler",) if success is None else ()}


def test_the_same_code_is_checked_with_the_tests_of_each_task() -> None:
    (first,), (second,) = coding(tests="assert True").tasks, coding(id="c2").tasks
    tasks = TaskSet((first, Task("c2", second.prompt, coding=second.coding)))
    cells = [cell(task.id, T, files={"a.py": "pass\n"}) for task in tasks.tasks]
    found = score_all(cells, Scorer(tasks, Success(by=SuccessBy.CODE), checkers=lambda _: ByText()))
    assert [found[each.key].success for each in cells] == [True, False]


def test_a_plan_may_leave_tests_out() -> None:
    success = Success(by=SuccessBy.CODE, checks=("compiles",))
    scores = score_all(
        [cell("c1", T, files={"a.py": "fail:tests"})], Scorer(coding(), success, checkers=lambda _: ByText())
    )
    assert next(iter(scores.values())).success is True
    given = ExperimentRecords(plan(success), [], [], scores, [], "", "")
    assert ValidityKind.CODE_NOT_RUN in {each.kind for each in validity(given)}
    tested = ExperimentRecords(plan(Success(by=SuccessBy.CODE)), [], [], scores, [], "", "")
    assert ValidityKind.CODE_NOT_RUN not in {each.kind for each in validity(tested)}


def test_code_without_a_checker_is_undecided() -> None:
    (score,) = score_all([cell("c1", T, files={"a.py": "x"})], Scorer(coding(), Success(by=SuccessBy.CODE))).values()
    assert (score.success, score.why) == (None, ScoreReason.CHECK_MISSING)


# Tasks that cannot be scored


def faults(tasks: TaskSet, success: Success) -> list[tuple[str, ScoringFault]]:
    checker = ByText()
    return [
        (fault.task_id, fault.kind) for fault in asyncio.run(check_scoring(plan(success), tasks, lambda _: checker))
    ]


def test_gold_answers_succeed_and_empty_ones_fail() -> None:
    assert faults(TASKS, Success(by=SuccessBy.FACTS)) == []
    assert faults(coding(), Success(by=SuccessBy.CODE)) == []
    only_wrong = TestSet("set", TESTSET.queries[:1], labels={"q1": Label(must_not_mention=(Fact(TWICE),))})
    tasks = TaskSet(TASKS.tasks[:1], only_wrong)
    assert faults(tasks, Success(by=SuccessBy.FACTS)) == [("q1", ScoringFault.EMPTY_PASSES)]
    assert faults(tasks, Success(by=SuccessBy.STRUCTURE)) == [("q1", ScoringFault.GOLD_FAILS)]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"reference": {}}, ScoringFault.NO_REFERENCE),
        ({"reference": {"a.py": "fail:symbols"}}, ScoringFault.GOLD_FAILS),
        ({"reference": {"a.py": "miss:symbols"}}, ScoringFault.NOT_CHECKED),
        ({"tests": "assert True"}, ScoringFault.EMPTY_PASSES),
        ({"traps": (Trap(fails=CodeCheck.SYMBOLS, files={"a.py": "passes"}),)}, ScoringFault.TRAP_PASSES),
    ],
)
def test_coding_tasks_that_cannot_be_scored(more: dict[str, object], kind: ScoringFault) -> None:
    assert faults(coding(**more), Success(by=SuccessBy.CODE)) == [("c1", kind)]


def test_what_a_machine_lacks_is_one_problem_of_all_tasks_and_says_what_it_is() -> None:
    (first,) = coding(reference={"a.py": "miss:tests"}).tasks
    tasks = TaskSet(tuple(Task(f"c{n}", first.prompt, coding=first.coding) for n in range(3)))
    found = asyncio.run(check_scoring(plan(Success(by=SuccessBy.CODE)), tasks, lambda _: ByText()))
    (problem,) = scoring_problems(found)
    assert problem.message == "task c0 and 2 more: a check required by the plan cannot run here: no such compiler"
    assert problem.got == "tests missing"
    wrong = asyncio.run(
        check_scoring(plan(Success(by=SuccessBy.CODE)), coding(reference={"a.py": "fail:symbols"}), lambda _: ByText())
    )
    assert [each.message for each in scoring_problems(wrong)] == ["task c1: the gold answer is not a success (symbols)"]


# What was read


def lines(path: str, start: int, end: int, turn: int) -> ReadLines:
    return ReadLines(path=path, start=start, end=end, turn=turn, tool="read_file")


def test_recall_of_gold_lines_over_turns() -> None:
    reads = [lines("src/index.py", 1, 15, 1), lines("src/other.py", 1, 5, 2), lines("src/index.py", 14, 18, 3)]
    gold = [SPAN, Lines("src/other.py", 90, 99)]
    named = Named(frozenset(), frozenset({"src/index.py"}), frozenset())
    found = cell_reading(reads, gold, named, 4, MatchingRules())
    assert found.by_turn == (5 / 20, 5 / 20, 8 / 20, 8 / 20)  # 11-15, then 16-18, of 10 + 10 gold lines
    assert (found.recall, found.used, found.lines) == (8 / 20, 1 / 2, 18 + 5)
    elsewhere = Named(frozenset(), frozenset({"src/index.py"}), frozenset({Lines("src/index.py", 40, 50)}))
    assert cell_reading(reads, gold, elsewhere, 4, MatchingRules()).used == 0.0
    assert cell_reading(reads, (), named, 4, MatchingRules()).recall is None


_READS = st.lists(
    st.builds(lines, st.sampled_from(["a.py", "b.py"]), st.integers(1, 30), st.integers(30, 60), st.integers(1, 6)),
    max_size=8,
)


@given(_READS, st.integers(1, 50), st.integers(0, 20))
def test_recall_grows_with_the_turns_and_is_that_of_a_set_of_lines(
    reads: list[ReadLines], start: int, more: int
) -> None:
    gold = [Lines("a.py", start, start + more)]
    found = cell_reading(reads, gold, None, 6, MatchingRules())
    seen = {line for read in reads if read.path == "a.py" for line in range(read.start, read.end + 1)}
    wanted = set(range(start, start + more + 1))
    assert list(found.by_turn) == sorted(found.by_turn)
    assert found.recall == pytest.approx(len(seen & wanted) / len(wanted))
    assert found.lines == len({(read.path, line) for read in reads for line in range(read.start, read.end + 1)})


def test_the_recall_of_an_arm_is_a_mean_over_tasks() -> None:
    named = Named(frozenset(), frozenset({"src/index.py"}), frozenset())
    full = cell_reading([lines("src/index.py", 1, 99, 2)], [SPAN], named, 2, MatchingRules())
    none = cell_reading([], [SPAN], named, 1, MatchingRules())
    found = arm_reading({"q1": [full, none], "q2": [full]})
    assert (found.n_tasks, found.gold_recall, found.gold_used) == (2, 0.75, 0.75)
    assert found.recall_by_turn == (0.0, 0.75)
