"""Existing sets that enter a run."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from cranfield.agents.protocol import ModelAnswer, Request, ToolCall
from cranfield.agents.recording import Scripted
from cranfield.base.errors import ConfigError, TestSetError
from cranfield.cli.main import run_command_line
from cranfield.formats.testsets.golden_json import read_golden_json
from cranfield.golden.existing import CARRIED, Defaults, EntryPlan, enter, gate_set, import_set
from cranfield.golden.gate import GateCheck
from cranfield.golden.index import RunFolder, RunIndex
from cranfield.golden.plan import shipped_plan, shipped_text
from cranfield.golden.records import AdversaryDraft, CitedFact, CitedLines, Evidence, OracleAnswer, QueryCandidate
from cranfield.golden.reports.golden import run_document
from cranfield.golden.run import PipelineOptions, execute, run_status
from cranfield.golden.states import EntryStep
from cranfield.model import Entity, Fact, File, Label, Lines, Pattern, Query, Span, TestSet
from cranfield.model.judging import EntityRole
from cranfield.repo.snapshot import Snapshot, take
from cranfield.reporting.renderers.text import render_text

AT = "2026-11-23T14:05:09Z"
CELL = {"task_type": "locate", "difficulty": "medium"}


def set_of(*targets: Entity | Span | File | Pattern, label: Label | None = None, strata=CELL) -> TestSet:
    labels = {} if label is None else {"q1": label}
    query = Query("q1", "where are files read", strata)
    return TestSet("old", (query,), targets={"q1": targets} if targets else {}, labels=labels)


def imported(testset: TestSet, **defaults: str):
    return import_set(testset, commit="c0ffee", at=AT, defaults=Defaults(**defaults))


def test_a_record_with_a_label_enters_whole() -> None:
    facts = (Fact("it reads", (Lines("a.py", 1, 2),)), Fact("it caches"))
    evidence = [{"file": "a.py", "start": 1, "end": 9, "read_at_step": 1}]
    label = Label(
        (EntityRole("a.py::load", "primary", "it is the one"),),
        (Lines("a.py", 1, 4),),
        facts,
        facts[1:],
        "It reads.",
        "One hop.",
        provenance={"oracle": "agent:x"},
        more={"source_evidence": evidence, "confidence": "low", "ticket": 7},
    )
    found = imported(set_of(Entity("a.py::load"), label=label))
    (candidate,), (answer,) = found.candidates, found.answers
    assert candidate.target_entity_ids == ["a.py::load"]
    assert (candidate.authored_by, candidate.difficulty_rationale) == ("imported:old", "One hop.")
    assert [(entity.role, entity.rationale) for entity in answer.expected_entities] == [("primary", "it is the one")]
    assert answer.expected_line_ranges == [CitedLines(file="a.py", start=1, end=4)]
    assert answer.must_mention_facts[0] == CitedFact(
        fact="it reads", citations=[CitedLines(file="a.py", start=1, end=2)]
    )
    assert answer.source_evidence == [Evidence(**evidence[0])]
    assert (answer.confidence, answer.canonical_narrative, answer.commit) == ("low", "It reads.", "c0ffee")
    assert found.carried == {"q1": {"provenance": {"oracle": "agent:x"}, "more": {"ticket": 7}}}
    assert found.notes == ()


def test_what_a_record_does_not_say_is_missing_and_no_mistake() -> None:
    (candidate,), (answer,) = (found := imported(set_of(Entity("a.py::load")))).candidates, found.answers
    assert (candidate.difficulty_rationale, candidate.classifier_expectation) == ("", None)
    assert (answer.confidence, answer.expected_entities[0].role, answer.source_evidence) == (None, None, [])
    assert candidate.imported_from == answer.imported_from == set_of(Entity("a.py::load")).digest
    # Of a role, the same is refused.
    for record, kind in ((candidate, QueryCandidate), (answer, OracleAnswer)):
        with pytest.raises(ValidationError):
            kind.model_validate(record.model_dump() | {"imported_from": ""})


def test_a_set_that_lists_no_files_expects_those_of_its_entities() -> None:
    (answer,) = imported(set_of(Entity("a.py::load"), Entity("b/c.py::Index.add"), Entity("a.py::save"))).answers
    assert answer.expected_files == ["a.py", "b/c.py"]


def test_graded_spans_are_targets_and_line_ranges() -> None:
    spans = [Span("a.py", 10 * n, 10 * n + 2, grade) for n, grade in ((1, 1), (2, 2), (3, 1), (4, 3))]
    found = imported(set_of(*spans))
    (candidate,), (answer,) = found.candidates, found.answers
    assert [(span.start, span.grade) for span in candidate.target_spans] == [(40, 3), (20, 2), (10, 1)]
    assert [lines.start for lines in answer.expected_line_ranges] == [10, 20, 30, 40]
    assert answer.expected_files == ["a.py"]
    assert found.notes == ("1 candidate with only the best three of their spans",)


def test_what_cannot_be_read_is_counted() -> None:
    label = Label(
        (EntityRole("a.py::load", "main"),),
        more={"source_evidence": [{"file": "a.py", "start": 0, "end": 3, "read_at_step": 1}], "confidence": "sure"},
    )
    found = imported(set_of(Entity("a.py::load"), label=label))
    assert sorted(found.notes) == [
        "1 unknown confidence value",
        "1 unknown role",
        "1 unreadable evidence entry",
    ]


def test_every_query_that_cannot_enter_is_named_with_what_it_lacks() -> None:
    queries = tuple(
        Query(f"q{n}", text, strata)
        for n, text, strata in (
            (1, "text", {"task_type": "locate"}),
            (2, "", CELL),
            (3, "text", CELL | {"task_type": "find"}),
            (4, "text", CELL),
            (5, "text", CELL),
        )
    )
    file = (File("a.py"),)
    targets = {"q1": file, "q2": file, "q3": file, "q4": (Pattern("a"),), "q5": (Span("a.py", 1, 2, 0.5),)}
    with pytest.raises(TestSetError) as caught:
        imported(TestSet("old", queries, targets=targets))
    assert [problem.message for problem in caught.value.problems] == [
        "query 'q1' has no difficulty",
        "query 'q2' has no text",
        "query 'q3' has an unknown task_type",
        "query 'q4' has unsupported targets",
        "query 'q5' has a span with an unknown grade",
    ]


def test_queries_without_a_cell_take_the_default() -> None:
    (candidate,) = imported(set_of(File("a.py"), strata={}), task_type="explain", difficulty="hard").candidates
    assert (candidate.task_type, candidate.difficulty, candidate.target_files) == ("explain", "hard", ["a.py"])


RECORDS = [
    ("q1", "src/knowcode/parser.py::Parser.parse", "locate"),
    ("q2", "src/knowcode/store.py::save", "explain"),
    ("q3", "src/knowcode/store.py::lost", "locate"),
]
"""The last one names a symbol that its file does not have."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> tuple[TestSet, Snapshot]:
    """A set in the form of KnowCode's, whose records have no facts, no narrative and no evidence; and its repository."""
    root = tmp_path_factory.mktemp("knowcode")
    (root / "repo/src/knowcode").mkdir(parents=True)
    (root / "repo/src/knowcode/parser.py").write_text("class Parser:\n    def parse(self):\n        return 1\n")
    (root / "repo/src/knowcode/store.py").write_text("def save():\n    return 2\n")
    records = [
        {
            "query_id": query_id,
            "query_text": f"what happens to the {query_id} thing",
            "task_type": task_type,
            "difficulty": "easy",
            "expected_entities": [entity],
            "expected_files": [entity.partition("::")[0]],
            "must_mention_facts": [],
            "must_not_mention_facts": [],
            "correct": True,
            "validation": {"human_reviewed": False},
        }
        for query_id, entity, task_type in RECORDS
    ]
    (root / "golden.json").write_text(json.dumps(records))
    return read_golden_json(root / "golden.json"), take(root / "repo")


def adversary(request: Request) -> ModelAnswer | str:
    """Reads each file, and finds every claim supported."""
    assert request.output is AdversaryDraft
    (part,) = re.findall(r'part="claims">\n(.*?)\n</', request.messages[0].text, re.DOTALL)
    claims = [json.loads(line) for line in part.splitlines()]
    files = {each["claim"]: each["claim"].partition("::")[0] for each in claims}
    if len(request.messages) == 1:
        calls = (ToolCall(name, "read_file", json.dumps({"path": name})) for name in sorted(set(files.values())))
        return ModelAnswer(tool_calls=tuple(calls))
    verdicts = [
        {
            "claim_type": each["claim_type"],
            "claim": each["claim"],
            "verdict": "supported",
            "citation": {"file": files[each["claim"]], "start": 1, "end": 1},
        }
        for each in claims
    ]
    return json.dumps({"claim_verdicts": verdicts, "overall_verdict": "supported"})


def entered(old: tuple[TestSet, Snapshot], runs: Path, step: EntryStep) -> tuple[dict[str, str], int]:
    """Ids to states after the pipeline, and the requests that it took."""
    given = EntryPlan(shipped_plan("phase1"), shipped_text("phase1"))
    path = enter(*old, runs, step, given, Defaults()).folder
    execute(path, old[1], PipelineOptions(source=(backend := Scripted(adversary))))
    return {each.query_id: each.state for each in RunIndex(RunFolder.open(path)).statuses()}, len(backend.requests)


@pytest.mark.parametrize(
    ("step", "states", "n_requests"),
    [
        # A record without a narrative gives the judge nothing to compare, which is no disagreement.
        (EntryStep.GATE, {"q1": "passed", "q2": "passed", "q3": "gate_failed"}, 4),
        (EntryStep.ADVERSARY, {"q1": "passed", "q2": "passed", "q3": "passed"}, 6),
        (EntryStep.PEOPLE, {"q1": "passed", "q2": "passed", "q3": "passed"}, 0),
    ],
)
def test_a_set_goes_on_from_the_step_where_it_enters(
    step: EntryStep, states: dict[str, str], n_requests: int, old: tuple[TestSet, Snapshot], tmp_path: Path
) -> None:
    assert entered(old, tmp_path, step) == (states, n_requests)


def test_the_gate_says_on_how_many_records_each_check_could_run(old: tuple[TestSet, Snapshot]) -> None:
    reports = gate_set(old[0], imported(old[0]), old[1]).records
    counts = {
        check: Counter(report.checks[check].status.value for report in reports.values())
        for check in (
            GateCheck.ENTITIES,
            GateCheck.FACTS,
            GateCheck.NARRATIVE,
            GateCheck.EVIDENCE,
            GateCheck.READ,
            GateCheck.ROLES,
        )
    }
    assert counts.pop(GateCheck.ENTITIES) == {"passed": 2, "failed": 1}
    assert all(found == {"missing": 3} for found in counts.values())
    assert [query_id for query_id, report in reports.items() if not report.passed] == ["q3"]


def test_a_record_whose_lines_end_before_they_start_fails_the_gate_alone(old: tuple[TestSet, Snapshot]) -> None:
    testset, snapshot = old
    path = testset.targets["q1"][0].label.partition("::")[0]
    label = replace(testset.labels.get("q1", Label()), line_ranges=(Lines(path, 4, 1),))
    changed = replace(testset, labels={**testset.labels, "q1": label})
    reports = gate_set(changed, imported(changed), snapshot).records
    assert [query_id for query_id, report in reports.items() if not report.passed] == ["q1", "q3"]
    assert f"{path}:4-1: ends before it starts" in str(reports["q1"].checks)


def test_lines_outside_every_expected_entity_fail_in_a_set(
    old: tuple[TestSet, Snapshot], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, path = old[1].root.parent, "src/knowcode/parser.py"
    record = json.loads((root / "golden.json").read_text())[0] | {"expected_entities": [f"{path}::Parser.parse"]}
    for line, code in ((1, 1), (2, 0)):
        given = record | {"expected_line_ranges": [{"file": path, "start": line, "end": line}]}
        (tmp_path / "golden.json").write_text(json.dumps([given]))
        assert run_command_line(["golden", "gate", str(tmp_path / "golden.json"), "--repo", str(old[1].root)]) == code
        message = f"{path}:1-1: outside every expected entity; {path}::Parser holds it"
        assert (message in " ".join(capsys.readouterr().out.split())) == bool(code)


def test_what_a_run_has_no_place_for_is_in_its_manifest(old: tuple[TestSet, Snapshot], tmp_path: Path) -> None:
    given = EntryPlan(shipped_plan("phase1"), shipped_text("phase1"))
    path = enter(*old, tmp_path, EntryStep.PEOPLE, given, Defaults()).folder
    more = RunFolder.open(path).manifest.more
    assert more[CARRIED]["q1"]["more"] == {"validation": {"human_reviewed": False}, "correct": True}


def test_the_command_makes_a_run(old, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = old[1].root.parent
    arguments = ["golden", "enter", str(root / "golden.json"), "--repo", str(old[1].root), "--out", str(tmp_path)]
    assert run_command_line(arguments) == 0
    out, err = capsys.readouterr()
    assert "src/knowcode/store.py::lost: the file has no such symbol" in out
    assert "3 records entered; next step: gate" in err
    (run,) = tmp_path.iterdir()
    assert f"next: `cranfield golden run --resume {run} --repo {old[1].root}`" in err


def test_a_run_says_which_steps_its_records_did_not_take(old, tmp_path: Path) -> None:
    given = EntryPlan(shipped_plan("phase1"), shipped_text("phase1"))
    for step, skipped in ((EntryStep.GATE, "author, oracle"), (EntryStep.PEOPLE, "gate, adversary, judge")):
        run = RunFolder.open(enter(*old, tmp_path, step, given, Defaults()).folder)
        text = render_text(run_document(run_status(run)))
        assert re.search(rf"steps that did not run +.*{skipped}\n", text)
    assert "passed every step that ran" in text


def test_models_that_cannot_work_together_are_refused_before_anything_is_written(old, tmp_path: Path) -> None:
    plan = shipped_plan("phase1")
    same = plan.models.model_copy(update={"adversary": plan.models.oracle})
    given = EntryPlan(plan.model_copy(update={"models": same}), shipped_text("phase1"))
    with pytest.raises(ConfigError, match="oracle and adversary are the same model"):
        enter(*old, tmp_path, EntryStep.GATE, given, Defaults())
    assert not list(tmp_path.iterdir())
