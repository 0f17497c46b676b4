"""The report of an experiment, and the gate on its result."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pydantic import ValidationError
from tests.unit.benefit.test_analysis import cell, plan
from tests.unit.benefit.test_result import PLAN_RECORD, C, T, absent, experiment, result
from tests.unit.reporting.test_transcripts import record as transcript
from typer.testing import CliRunner

from cranfield.agents.answers.rows import Named
from cranfield.base.errors import InputError, UsageError
from cranfield.benefit.analysis.analyse import analyse
from cranfield.benefit.assemble import sentence
from cranfield.benefit.folder import ExperimentFolder
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.reading import arm_reading, cell_reading
from cranfield.benefit.records import ReadLines
from cranfield.benefit.reports.benefit import benefit_document
from cranfield.benefit.reports.history import benefit_history_document
from cranfield.benefit.reports.sections import recall_by_turn
from cranfield.benefit.result import (
    BenefitResult,
    CostVerdict,
    Estimate,
    StratumKind,
    StratumVerdict,
    SuccessVerdict,
    Validity,
    ValidityKind,
)
from cranfield.benefit.use_cases import (
    BenefitRules,
    Requirement,
    RuleState,
    judge_result,
    loss_transcripts,
    parse_requirement,
    publish,
    read_results,
)
from cranfield.cli.main import command_line
from cranfield.model import MatchingRules
from cranfield.model.judging import Lines
from cranfield.reporting import render
from cranfield.reporting.charts.spec import SCREENS, Screen
from cranfield.reporting.document import VOID_STAMP, Chart, Table, TonedCell, cell_value
from cranfield.reporting.renderers.text import render_brief, table_lines

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> BenefitResult:
    """Eight tasks in two cells of four, with a rule that takes four as enough."""
    folder = tmp_path_factory.mktemp("report")
    return result(experiment(folder, plan={"rule": {"min_tasks": 4}}), absent)


def with_verdicts(found: BenefitResult, explain: StratumVerdict, locate: StratumVerdict) -> BenefitResult:
    """The verdicts of both cells; all margins show no difference."""
    verdicts = {"explain": explain, "locate": locate}
    strata = [
        row.model_copy(
            update={
                "verdict": verdicts[row.stratum["task_type"]]
                if row.kind is StratumKind.CELL
                else StratumVerdict.NO_DIFFERENCE
            }
        )
        for row in found.strata
    ]
    return found.model_copy(update={"strata": tuple(strata)})


def test_no_blended_headline(found: BenefitResult) -> None:
    document = benefit_document(with_verdicts(found, StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST))
    verdict = document.verdict
    assert verdict is not None
    assert "1 pays off, 1 net cost" in verdict.sentence
    assert [(fact.label, fact.text, fact.tone) for fact in verdict.facts] == [
        ("explain, easy", "pays off", "good"),
        ("locate, easy", "net cost", "bad"),
    ]
    names = [section.name for section in document.sections]
    assert names.index("cell") < names.index("margin") < names.index("baseline_answerable") < names.index("all")


def test_the_table_has_each_cell_with_its_interval(found: BenefitResult) -> None:
    document = benefit_document(found)
    table = next(block for block in document.sections[0].blocks if isinstance(block, Table))
    titles = [column.title for column in table.columns]
    assert titles == [
        "task type",
        "difficulty",
        "verdict",
        "success, cost",
        "n",
        "Δ success",
        "95 % CI",
        "net tokens/task",
        "95 % CI",
        "Δ tool calls",
    ]
    # q1, q3 (right in both arms), q5, q7 (right in the treatment alone): deltas 0, 0, 1, 1.
    # Mean .5, standard deviation sqrt(1/3), t(.975, 3) = 3.1824: .5 -+ 3.1824 * .5774 / 2 = -.4187 to 1.4187, cut at 1.
    row = next(row for row in table.rows if row[0] == "locate")
    assert row[3:8] == ("neither differs significantly", 4, "+50.0", "−41.9 to +100.0", "−500")


def test_the_short_form_names_ties_within_the_brackets_of_the_interval(found: BenefitResult) -> None:
    tied = Estimate(value=0.0, low=-0.522, high=0.522, n=4, note="the same success in every task")
    strata = tuple(row.model_copy(update={"success_lift": tied}) for row in found.strata)
    short = render_brief(benefit_document(found.model_copy(update={"strata": strata})))
    assert short.count("+0.0 (\N{MINUS SIGN}52.2 to +52.2, ties)") == 2


def test_a_narrow_terminal_keeps_the_verdict_and_drops_other_columns(found: BenefitResult) -> None:
    document = benefit_document(found)
    table = next(block for block in document.sections[0].blocks if isinstance(block, Table))
    for line in (80, 60):
        text = "\n".join(table_lines(table, line, compact=True))
        assert "verdict" in text
        assert "tool calls" not in text
        assert text.count("insufficient") == 2
        assert text.count("neither") == 2


def test_at_80_columns_three_strata_have_their_verdicts_of_success_and_of_cost_whole(found: BenefitResult) -> None:
    (row, *_) = found.first_strata
    told = (
        (StratumVerdict.PAYS_OFF, SuccessVerdict.SAME, CostVerdict.CHEAPER),
        (StratumVerdict.NET_COST, SuccessVerdict.LOWER, CostVerdict.DEARER),
        (StratumVerdict.NO_DIFFERENCE, SuccessVerdict.NOT_SHOWN, CostVerdict.CHEAPER),
    )
    strata = [
        row.model_copy(
            update={
                "stratum": {"task_type": f"cross-file-refactoring-{n}", "difficulty": "very-difficult"},
                "verdict": verdict,
                "success": success,
                "cost": cost,
            }
        )
        for n, (verdict, success, cost) in enumerate(told)
    ]
    document = benefit_document(found.model_copy(update={"strata": (*strata,)}))
    table = next(block for block in document.sections[0].blocks if isinstance(block, Table))
    _, heading, *lines = table_lines(table, 80, compact=True)
    assert max(map(len, lines)) <= 80
    starts = [heading.index(title) for title in ("verdict", "cost", "  n ")]
    of_verdict, of_both = (
        " ".join(line[start:end].strip() for line in lines if line[start:end].strip())
        for start, end in pairwise(starts)
    )
    assert of_verdict == "pays off net cost no difference shown"
    assert of_both == ("same success, cheaper lower success, more expensive no difference in success shown, cheaper")


def test_the_sentence_and_the_table_have_the_same_rate_of_the_control(found: BenefitResult) -> None:
    """Nine tasks of three seeds: 16 of 27 cells succeed (59.3 %), and most seeds of 5 of 9 tasks do (55.6 %)."""
    wins = (3, 3, 3, 3, 2, 1, 1, 0, 0)  # 16 cells; 5 tasks with 2 or more
    cells = [
        cell(f"t{place}", arm, seed, seed < (n if arm is ArmRole.CONTROL else 3))
        for place, n in enumerate(wins)
        for arm in ArmRole
        for seed in range(3)
    ]
    (*_, whole) = strata = analyse(cells, plan()).strata
    assert (whole.mcnemar.both + whole.mcnemar.only_control, whole.mcnemar.n) == (5, 9)
    headline = sentence(plan(), strata, ())
    assert "from 59.3 % to 100.0 % on 9 tasks" in headline
    document = benefit_document(found.model_copy(update={"strata": strata, "sentence": headline}))
    costs = next(each for each in document.sections if each.name == "cost")
    table = next(block for block in costs.blocks if isinstance(block, Table))
    assert table.rows[0] == ("success", "100.0 %", "59.3 %")
    shown = render(document, "text")
    assert "from 59.3 % to 100.0 %" in shown
    assert "55.6 %" not in shown


def test_the_same_success_for_fewer_tokens_is_a_finding(found: BenefitResult) -> None:
    (row, *_) = found.first_strata
    changed = {"verdict": StratumVerdict.NO_DIFFERENCE, "success": SuccessVerdict.SAME, "cost": CostVerdict.CHEAPER}
    document = benefit_document(
        found.model_copy(update={"strata": (row.model_copy(update=changed), *found.strata[1:])})
    )
    assert document.verdict is not None
    fact = document.verdict.facts[0]
    assert (fact.text, fact.tone) == ("no difference shown", "even")
    assert fact.note.startswith("Same success, cheaper. ")
    table = next(block for block in document.sections[0].blocks if isinstance(block, Table))
    assert table.rows[0][3] == "same success, cheaper"


def test_cells_that_were_not_run_are_not_counted_as_scored(tmp_path: Path) -> None:
    """Of eight tasks in two seeds, one has no cell in the control arm, and another failed by its infrastructure once."""

    def change(cell: dict[str, Any]) -> dict[str, Any] | None:
        task_id, arm, seed = (cell["key"][name] for name in ("task_id", "arm", "seed"))
        if (task_id, arm) == ("q1", "control"):
            return None
        is_broken = (task_id, arm, seed) == ("q3", "treatment", 0)
        return cell | {"end": "infrastructure", "error": "server_error"} if is_broken else cell

    document = benefit_document(result(experiment(tmp_path, change=change, plan={"rule": {"min_tasks": 3}}), absent))
    tables = {
        each.name: next(b for b in each.blocks if isinstance(b, Table))
        for each in document.sections
        if each.name in {"cell", "delivery", "errors"}
    }
    assert {row[0]: row[4] for row in tables["cell"].rows} == {"explain": 4, "locate": "3 of 4"}
    assert [row[1] for row in tables["delivery"].rows] == [15, 14]
    assert [column.title for column in tables["errors"].columns][1:3] == ["planned cells", "scored"]
    assert [row[1:] for row in tables["errors"].rows] == [(16, 15, 0, 0, 1), (16, 14, 0, 0, 2)]


def test_tasks_without_strata_have_their_verdict_with_its_reason(found: BenefitResult) -> None:
    document = benefit_document(found.model_copy(update={"strata": found.strata[-1:]}))
    assert document.verdict is not None
    assert document.verdict.sentence.startswith(
        "Net cost (no difference in success shown, more expensive), over all tasks (no strata). More tokens are used"
    )
    (table, *_) = document.sections[0].blocks
    assert isinstance(table, Table)
    assert [row[:2] for row in table.rows] == [("all tasks", TonedCell("net cost", "bad"))]


def test_regions_of_the_page_have_names_of_their_own(found: BenefitResult) -> None:
    captions = [
        block.caption for each in benefit_document(found).sections for block in each.blocks if isinstance(block, Table)
    ]
    assert len(captions) == len(set(captions))


def test_a_void_comparison_has_no_verdict_and_no_colours(found: BenefitResult, tmp_path: Path) -> None:
    broken = result(experiment(tmp_path, preflight=({"ok": False, "message": "it serves another index"},)))
    document = benefit_document(broken)
    assert document.verdict is not None
    assert document.verdict.name == "invalid"
    assert "another index" in document.verdict.sentence
    assert document.stamps == (VOID_STAMP,)
    text = render(document, "text")
    assert text.index("No verdict") < text.index("Verdicts")
    assert 'class="good"' not in render(document, "html")
    assert render(benefit_document(found), "text").lower().count("no verdict") < text.lower().count("no verdict")


@pytest.mark.parametrize(
    ("measured", "estimated", "text"), [(79.0, 75.0, "79"), (None, 75.0, "75 (estimated)"), (None, None, "–")]
)
def test_the_schema_that_could_not_be_measured_is_estimated(
    found: BenefitResult, measured: float | None, estimated: float | None, text: str
) -> None:
    (whole,) = (row for row in found.strata if row.kind is StratumKind.ALL)
    tokens = {"schema_tokens": measured, "schema_tokens_estimated": estimated}
    arms = {**whole.arms, ArmRole.TREATMENT: whole.arms[ArmRole.TREATMENT].model_copy(update=tokens)}
    rows = [row.model_copy(update={"arms": arms}) if row is whole else row for row in found.strata]
    document = benefit_document(found.model_copy(update={"strata": tuple(rows)}))
    (cost,) = (section for section in document.sections if section.name == "cost")
    table = cost.blocks[0]
    assert isinstance(table, Table)
    assert {row[0]: row[1] for row in table.rows}["schema of the tool, each request"] == text


def test_losses_are_shown_and_link_transcripts(found: BenefitResult) -> None:
    html = render(benefit_document(found, "report.transcripts.html"), "html")
    assert found.losses
    assert 'href="report.transcripts.html"' in html


def test_checks_of_code_are_counted_by_arm_and_each_finding_has_its_place(found: BenefitResult) -> None:
    finding = {
        "check": "symbols",
        "file": "main.py",
        "line": 3,
        "symbol": "os.<b>",
        "message": "no such",
        "current": "",
    }
    whole = {"check": "tests", "file": "", "line": 0, "symbol": "", "message": "exit status 1", "current": ""}
    states = {T: {"compiles": "passed", "symbols": "passed"}, C: {"compiles": "passed", "symbols": "failed"}}
    first, *others = found.tasks
    cells = {
        role: tuple(
            cell.model_copy(update={"checks": states[role], "findings": (finding, whole) if role is C else ()})
            for cell in first.arms[role]
        )
        for role in (T, C)
    }
    cells[T] = (cells[T][0].model_copy(update={"checks": {"compiles": "failed", "symbols": "missing"}}), *cells[T][1:])
    document = benefit_document(found.model_copy(update={"tasks": (first.model_copy(update={"arms": cells}), *others)}))
    passed, listed = (block for each in document.sections if each.name == "code" for block in each.blocks)
    assert isinstance(passed, Table)
    assert isinstance(listed, Table)
    assert list(passed.rows) == [("compiles", "1 of 2", "2 of 2"), ("symbols", "1 of 2, 1 not decided", "0 of 2")]
    rows = [("symbols", "main.py:3", "os.<b>", "no such", ""), ("tests", "", "", "exit status 1", "")]
    assert list(listed.rows) == [(first.task_id, "control", seed, *row) for seed in (0, 1) for row in rows]
    assert "os.&lt;b&gt;" in render(document, "html")
    assert "code" not in {each.name for each in benefit_document(found).sections}


def test_what_was_used_is_a_share_of_all_gold_spans(found: BenefitResult) -> None:
    """Of an arm that read one gold span of four, and named it: not 100 % of what it read."""
    lines = [Lines("src/f.py", 10 * n + 1, 10 * n + 5) for n in range(4)]
    reads = [ReadLines(path="src/f.py", start=1, end=5, turn=1, tool="read_file")]
    named = Named(frozenset(), frozenset(), frozenset({Lines("src/f.py", 2, 3)}))
    reading = arm_reading({"q0": [cell_reading(reads, lines, named, 1, MatchingRules())]})
    document = benefit_document(found.model_copy(update={"reading": {T: reading}}))
    blocks = [block for each in document.sections if each.name == "reading" for block in each.blocks]
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert [column.title for column in table.columns][2:4] == [
        "gold lines read (explored)",
        "gold spans read and named in the answer (used)",
    ]
    assert table.rows[0][2:4] == ("25.0 %", "25.0 %")


def test_hostile_text_is_escaped(found: BenefitResult) -> None:
    hostile = found.model_copy(update={"arms": {**found.arms, T: "<script>alert(1)</script>"}, "name": "<img src=x>"})
    html = render(benefit_document(hostile), "html")
    assert "<script>alert(1)" not in html
    assert "<img src=x>" not in html


@pytest.mark.parametrize(
    "edit",
    [{"rule": {}}, {"rule": {"alpha": "x"}}, {"arms": {"control": "c"}}, {"strata": []}],
)
def test_a_result_that_was_edited_is_refused(found: BenefitResult, edit: dict[str, Any]) -> None:
    record = json.loads(found.model_dump_json())
    with pytest.raises(ValidationError):
        BenefitResult.model_validate(record | edit)
    record["strata"][0]["arms"] = {}
    with pytest.raises(ValidationError):
        BenefitResult.model_validate(record)


def test_json_is_the_result(found: BenefitResult) -> None:
    assert BenefitResult.model_validate_json(render(benefit_document(found), "json")) == found


def test_rows_for_other_programs(found: BenefitResult) -> None:
    lines = render(benefit_document(found), "csv").splitlines()
    assert lines[0].startswith("kind,stratum,tasks,seeds,verdict,quantity,value")
    assert sum(line.startswith("cell,") for line in lines) == 2 * 10  # quantities of two cells


@pytest.mark.parametrize(
    ("verdicts", "state"),
    [
        ((StratumVerdict.PAYS_OFF, StratumVerdict.NO_DIFFERENCE), RuleState.PASSED),
        ((StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST), RuleState.FAILED),
    ],
)
def test_gate(found: BenefitResult, verdicts: tuple[StratumVerdict, StratumVerdict], state: RuleState) -> None:
    gate = judge_result(with_verdicts(found, *verdicts), BenefitRules(), NOW)
    assert gate.state is state
    broken = gate.outcomes[0].text.splitlines()[1:]
    assert bool(broken) is (state is RuleState.FAILED)
    assert not broken or broken[0].startswith("  task_type=locate, difficulty=easy: ")


def test_gate_without_enough_data(found: BenefitResult) -> None:
    rows = [row.model_copy(update={"verdict": StratumVerdict.INSUFFICIENT}) for row in found.strata]
    nothing = found.model_copy(update={"strata": tuple(rows)})
    assert judge_result(nothing, BenefitRules(), NOW).state is RuleState.INCONCLUSIVE


def test_gate_on_tasks_without_strata_judges_all_of_them(found: BenefitResult) -> None:
    row = found.strata[-1].model_copy(update={"verdict": StratumVerdict.NET_COST})
    gate = judge_result(found.model_copy(update={"strata": (row,)}), BenefitRules(), NOW)
    assert gate.state is RuleState.FAILED
    assert gate.outcomes[0].text.startswith("1 of 1 stratum:\n  all tasks: ")


def test_gate_on_a_void_comparison_judges_nothing(found: BenefitResult, tmp_path: Path) -> None:
    broken = result(experiment(tmp_path, preflight=({"ok": False},)))
    gate = judge_result(broken, BenefitRules(), NOW)
    assert {each.state for each in gate.outcomes} == {RuleState.INVALID}


def test_gate_refuses_old_results_and_other_commits(found: BenefitResult) -> None:
    dated = found.model_copy(update={"made_at": "2026-06-01T00:00:00Z", "commit": "abcdef0123"})
    rules = BenefitRules(max_age=timedelta(days=92), commit="0123456")
    assert [each.state for each in judge_result(dated, rules, NOW).outcomes] == [RuleState.INVALID] * 2
    future = found.model_copy(update={"made_at": (NOW + timedelta(hours=2)).isoformat()})
    (only,) = judge_result(future, (rules_of_age := BenefitRules(max_age=timedelta(days=92))), NOW).outcomes
    assert only.state is RuleState.INVALID
    assert only.sentence.endswith("which is in the future")
    soon = future.model_copy(update={"made_at": (NOW + timedelta(minutes=30)).isoformat()})  # of another clock
    assert RuleState.INVALID not in {each.state for each in judge_result(soon, rules_of_age, NOW).outcomes}
    same = BenefitRules(max_age=timedelta(days=183), commit="abcdef0")
    assert RuleState.INVALID not in {each.state for each in judge_result(dated, same, NOW).outcomes}


def test_required_verdicts(found: BenefitResult) -> None:
    required = parse_requirement("task_type=locate,difficulty=easy:pays off")
    assert required == Requirement({"task_type": "locate", "difficulty": "easy"}, StratumVerdict.PAYS_OFF)
    rules = BenefitRules((), (required,))
    assert (
        judge_result(with_verdicts(found, StratumVerdict.NET_COST, StratumVerdict.PAYS_OFF), rules, NOW).state
        is RuleState.PASSED
    )
    assert (
        judge_result(with_verdicts(found, StratumVerdict.PAYS_OFF, StratumVerdict.NET_COST), rules, NOW).state
        is RuleState.FAILED
    )
    with pytest.raises(InputError, match="no such stratum"):
        judge_result(found, BenefitRules((), (Requirement({"task_type": "none"}, StratumVerdict.PAYS_OFF),)), NOW)
    with pytest.raises(UsageError, match="not a stratum and its verdict"):
        parse_requirement("pays off")


def test_transcripts_of_any_cell(tmp_path: Path) -> None:
    kept: list[dict[str, Any]] = []

    def change(cell: dict[str, Any]) -> dict[str, Any]:
        key = cell["key"]
        kept.append(transcript("", "", text=f"<script>{key['task_id']}-{key['arm']}-{key['seed']}"))
        text = json.dumps(kept[-1], ensure_ascii=True, sort_keys=True)
        failed = {"end": "infrastructure"} if key == {"task_id": "q5", "arm": "control", "seed": 1} else {}
        return cell | failed | {"transcript": f"sha256-{sha256(text.encode()).hexdigest()}.json"}

    run = experiment(tmp_path, change=change)
    folder = ExperimentFolder.open(run)
    for each in kept:
        folder.keep_transcript(each)
    page = tmp_path / "page.html"

    def call(*arguments: str) -> Any:
        words = ["benefit", "transcripts", str(run), "--html", str(page), *arguments]
        return CliRunner().invoke(command_line(*words[:2]), words)

    def shown() -> list[str]:
        return re.findall(r"&lt;script&gt;(q\d-\w+-\d)", page.read_text())

    assert call().output == f"wrote {page}: 32 transcripts\n"
    assert len(shown()) == 32
    assert call("--task", "q5", "--task", "q0").exit_code == 0
    cells = [f"{task}-{arm}-{seed}" for task in ("q5", "q0") for seed in (0, 1) for arm in ("treatment", "control")]
    assert shown() == cells
    assert call("--task", "q0", "--arm", "control").exit_code == 0
    assert shown() == ["q0-control-0", "q0-control-1"]
    assert "<script>" not in page.read_text()
    found = result(run)
    assert call("--task", "q5").exit_code == 0
    assert list(dict.fromkeys(re.findall(r"(?:treatment|control) \([^<]+(?=, vote 2)", page.read_text()))) == [
        "treatment (acme), seed 0: success",
        "control (plain), seed 0: no success, fact_missing (must_mention.1: The parser is `parse_5`.)",
        "treatment (acme), seed 1: success",
        "control (plain), seed 1: failed, not scored",
    ]
    assert loss_transcripts(found, run, page) == [page]
    assert "<h1>trial: tasks where the treatment was worse</h1>" in page.read_text()
    assert {name.split("-")[0] for name in shown()} == {loss.task_id for loss in found.losses} == {"q0"}
    wrong = call("--task", "q9", "--task", "p1")
    assert wrong.exit_code == 2
    assert "unknown task 'q9'" in wrong.output
    assert "unknown task 'p1'" in wrong.output
    assert "unknown arm 'both'" in call("--arm", "both").output


def test_runs_without_a_transcript_are_counted(tmp_path: Path) -> None:
    empty = f"sha256-{sha256(b'{}').hexdigest()}.json"
    run = experiment(tmp_path, change=lambda cell: cell | {"end": "infrastructure", "transcript": empty})
    ExperimentFolder.open(run).keep_transcript({})
    words = ["benefit", "transcripts", str(run), "--html", str(tmp_path / "page.html"), "--task", "q1"]
    done = CliRunner().invoke(command_line(*words[:2]), words)
    assert "0 transcripts" in done.stdout
    assert "4 runs without a transcript: q1/treatment/0, q1/control/0" in done.stderr
    words[-1] = "q2"
    next((run / "transcripts").iterdir()).write_text("{ }")
    assert "a transcript has been changed" in CliRunner().invoke(command_line(*words[:2]), words).output


def test_commands(tmp_path: Path) -> None:
    run = experiment(tmp_path, plan={"rule": {"min_tasks": 4}, "success": {"by": "facts"}, "name": PLAN_RECORD["name"]})
    runner = CliRunner()

    def call(*arguments: object) -> Any:
        words = ["benefit", *map(str, arguments)]
        return runner.invoke(command_line(*words[:2]), words)

    assert call("score", run).exit_code == 0
    report = call("report", run, "--format", "json")
    assert report.exit_code == 0, report.output
    saved = tmp_path / "benefit_v1.0.json"
    saved.write_text(report.stdout)
    assert json.loads(report.stdout)["name"] == "trial"
    junit = tmp_path / "gate.xml"
    gate = call("gate", saved, "--require", "task_type=locate,difficulty=easy:insufficient data", "--junit", junit)
    assert gate.exit_code == 1, gate.output  # 500 tokens more in each of eight tasks, and no lift shown
    suite = ET.fromstring(junit.read_text()).find("testsuite")
    assert suite is not None
    assert [(case.get("name"), [each.tag for each in case]) for case in suite] == [
        ("no stratum has the verdict net cost", ["failure"]),
        ("locate, easy: insufficient data", []),
    ]
    assert "unknown verdict" in call("gate", saved, "--forbid", "cheap").output
    newer = json.loads(report.stdout) | {"version": "1.10", "run": "newer"}
    (tmp_path / "benefit_v1.10.json").write_text(json.dumps(newer))
    assert "result of trial, version 1.10, run newer" in call("gate", tmp_path).stderr
    (run / "benefit_v1.10.json").write_text(json.dumps(newer))
    assert f"result of trial, run {run.name}" in call("gate", run).stderr  # made anew
    found = BenefitResult.model_validate_json(report.stdout)
    hostile = "\x1b[2J\npassed: every rule"
    rows = [row.model_copy(update={"reason": hostile}) for row in found.strata]
    caveat = Validity(kind=ValidityKind.LEAK, is_void=False, message=hostile)
    saved.write_text(found.model_copy(update={"strata": tuple(rows), "validity": (caveat,)}).model_dump_json())
    shown = call("gate", saved).output
    assert "\x1b" not in shown
    assert not [line for line in shown.splitlines() if line.startswith("passed: every rule")]
    assert "caveat: \\x1b[2J passed: every rule" in shown


def test_history_joins_results_of_one_plan_and_marks_void_ones(found: BenefitResult, tmp_path: Path) -> None:
    broken = result(experiment(tmp_path, preflight=({"ok": False, "message": "it serves another index"},)))
    same = {"name": "trial", "plan_digest": found.plan_digest, "labels_digest": found.labels_digest}
    runs = [
        found.model_copy(update={"run": "first"}),
        broken.model_copy(update={"run": "second", **same}),
        found.model_copy(update={"run": "third"}),
        found.model_copy(update={"run": "fourth", "plan_digest": "sha256:other"}),
    ]
    for each in runs:
        publish(each, tmp_path / "results")
    document = benefit_history_document(read_results(tmp_path / "results"))
    assert [section.title for section in document.sections] == ["trial: explain, easy", "trial: locate, easy"]
    figure, table = document.sections[0].blocks
    assert isinstance(figure, Chart)
    assert isinstance(table, Table)
    assert [(cell_value(row[0]), cell_value(row[8]), row[9]) for row in table.rows] == [
        ("2.0", "insufficient data", "another plan"),
        ("1.2", "insufficient data", ""),
        ("1.1", "invalid", broken.sentence),
        ("1.0", "insufficient data", ""),
    ]
    drawn = {value["stretch"] for value in figure.spec["data"]["values"] if "stretch" in value}
    assert len(drawn) == 3  # before the void result, after it, and of the other plan


def test_history_command(found: BenefitResult, tmp_path: Path) -> None:
    publish(found, tmp_path / "results")
    words = ["benefit", "history", str(tmp_path / "results"), "--html", str(tmp_path / "history.html")]
    done = CliRunner().invoke(command_line(*words[:2]), words)
    assert done.exit_code == 0, done.output
    assert "trial: explain, easy" in done.output
    assert 'href="results/benefit_v1.0.json"' in (tmp_path / "history.html").read_text()
    words[2] = str(tmp_path / "empty")
    none = CliRunner().invoke(command_line(*words[:2]), words)
    assert none.exit_code == 2
    assert "not a result of an experiment" in none.output


@pytest.mark.parametrize("screen", SCREENS)
def test_the_axis_of_turns_has_whole_turns_and_both_lines_end_at_the_last(screen: Screen) -> None:
    for most in (1, 2, 3, 40):
        spec = recall_by_turn({"with": (0.5,), "without": tuple(0.01 * turn for turn in range(most))}, screen)
        ticks = spec["layer"][0]["encoding"]["x"]["axis"]["values"]
        assert ticks[0] == 1
        assert all(isinstance(tick, int) for tick in ticks)
        assert len(ticks) <= screen.ticks
        ends = {each["arm"]: (each["turn"], each["recall"]) for each in spec["data"]["values"]}
        assert ends == {"with": (most, 0.5), "without": (most, 0.01 * (most - 1))}
