"""Run folders: append-only, one writer, cut lines removed, the schema of each line checked; and the states of records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cranfield.base.errors import InputError, UsageError
from cranfield.formats.io.validation import schema_text
from cranfield.golden.index import FEEDBACK, RunFolder, RunIndex, Step
from cranfield.golden.outcomes import (
    AgreementRecord,
    GateFailure,
    RecordFinding,
    Rejection,
    RunManifest,
    TranscriptLine,
)
from cranfield.golden.record_schema import SCHEMA_FILE, run_schema
from cranfield.golden.records import HumanReview, OracleAnswer, QueryCandidate
from cranfield.golden.states import REJECTIONS, STATES, State

AT = "2026-11-23T14:05:09Z"


def manifest(**changes: Any) -> RunManifest:
    fields = {"name": "phase1", "created_at": AT, "cranfield_version": "0", "snapshot_digest": "sha256:0"}
    return RunManifest(**{**fields, **changes})


def candidate(query_id: str = "q1") -> QueryCandidate:
    return QueryCandidate(
        query_id=query_id,
        query_text="Where is it?",
        task_type="locate",
        difficulty="easy",
        target_files=["a.py"],
        authored_by="agent:author",
        created_at=AT,
    )


def answer(query_id: str = "q1", attempt: int = 1) -> OracleAnswer:
    return OracleAnswer(
        query_id=query_id,
        attempt=attempt,
        task_type="locate",
        difficulty="easy",
        expected_entities=[],
        expected_files=["a.py"],
        expected_line_ranges=[],
        must_mention_facts=[],
        must_not_mention_facts=[],
        canonical_narrative="",
        source_evidence=[],
        confidence="high",
        authored_by="agent:oracle",
        created_at=AT,
    )


def agreement(outcome: str, query_id: str = "q1", attempt: int = 1) -> AgreementRecord:
    reasons = [] if outcome == "passed" else [RecordFinding(kind="partial", message="entity f")]
    return AgreementRecord(
        query_id=query_id,
        attempt=attempt,
        at=AT,
        outcome=outcome,
        reasons=reasons,
        jaccard_entities=1,
        jaccard_files=1,
    )


def review(disposition: str, query_id: str = "q1") -> HumanReview:
    decision = {
        "verdict": "correct" if disposition == "keep" else "wrong",
        "disposition": disposition,
        **({} if disposition == "keep" else {"failure_mode": "false_fact", "reason": "not so", "hint": "see b.py"}),
    }
    opinion = {**decision, "reviewer": "ann", "at": AT}
    return HumanReview(query_id=query_id, book="b", reviewed_at=AT, opinions=[opinion], **decision)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return RunFolder.create(tmp_path / "runs", manifest(), {"plan.yaml": b"cranfield_plan: 1\n"})


def test_a_folder_has_the_time_and_the_name_and_two_in_a_second_differ(path: Path) -> None:
    again = RunFolder.create(path.parent, manifest())
    assert [path.name, again.name] == ["2026-11-23T14-05-09Z-phase1", "2026-11-23T14-05-09Z-phase1-2"]
    assert (path / "plan.yaml").read_text() == "cranfield_plan: 1\n"
    assert RunFolder.open(path).manifest == manifest()
    with pytest.raises(UsageError, match="used in the folder name"):
        RunFolder.create(path.parent, manifest(name="../up"))


def test_a_withheld_file_whose_name_is_no_unicode_stays_withheld(tmp_path: Path) -> None:
    withheld = {"\udcff.env": "name"}
    assert RunFolder.open(RunFolder.create(tmp_path, manifest(withheld=withheld))).manifest.withheld == withheld


def test_records_come_back_in_their_order(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        for name in ("q2", "q1", "q3"):
            folder.append(Step.CANDIDATES, candidate(name))
        assert [each.query_id for each in folder.read(Step.CANDIDATES, QueryCandidate)] == ["q2", "q1", "q3"]
    assert RunFolder.open(path).read(Step.CANDIDATES, QueryCandidate)[1] == candidate()
    assert RunFolder.open(path).read(Step.ANSWERS, OracleAnswer) == []
    with pytest.raises(UsageError, match="open for reading"):
        RunFolder.open(path).append(Step.CANDIDATES, candidate())


def test_half_a_character_of_a_model_comes_back(path: Path) -> None:
    line = {"query_id": "q1", "role": "oracle", "at": AT, "schema_version": "1.0.0", "uses": [{"arguments": "\ud83d"}]}
    with RunFolder.writing(path) as folder:
        folder.append(Step.TRANSCRIPTS, TranscriptLine.model_validate(line))
    assert RunFolder.open(path).read(Step.TRANSCRIPTS, TranscriptLine)[0].model_extra == {"uses": line["uses"]}


def test_a_cut_last_line_is_no_line_and_is_removed_by_a_writer(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        folder.append(Step.CANDIDATES, candidate())
    file = path / Step.CANDIDATES
    whole = file.read_bytes()
    for cut in (1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole + whole[:cut])
        assert len(RunFolder.open(path).read(Step.CANDIDATES, QueryCandidate)) == 1
    with RunFolder.writing(path) as folder:
        folder.append(Step.CANDIDATES, candidate("q2"))
    assert [each.query_id for each in RunFolder.open(path).read(Step.CANDIDATES, QueryCandidate)] == ["q1", "q2"]


def test_every_damaged_line_is_reported_with_its_place(path: Path) -> None:
    good = candidate().model_dump(mode="json")
    lines = [good, {**good, "schema_version": "2.0.0"}, {**good, "difficulty": "odd"}, {**good, "target_files": []}]
    text = "".join(json.dumps(line) + "\n" for line in lines) + "no json\n"
    (path / Step.CANDIDATES).write_text(text)
    with pytest.raises(InputError) as caught:
        RunFolder.open(path).read(Step.CANDIDATES, QueryCandidate)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5]
    schema = caught.value.problems[0]
    assert (schema.expected, schema.got) == ("1.0.0", "'2.0.0'")


def test_there_is_one_writer(path: Path) -> None:
    code = (
        "import sys, pathlib; from cranfield.golden.index import RunFolder\n"
        "with RunFolder.writing(pathlib.Path(sys.argv[1])): print('writes', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"writes\n"
        with pytest.raises(UsageError, match="another process"), RunFolder.writing(path):
            pass
        assert RunFolder.open(path).read(Step.CANDIDATES, QueryCandidate) == []
        other.kill()
    with RunFolder.writing(path) as folder:  # the lock ended with the process
        folder.append(Step.CANDIDATES, candidate())


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"run\.json"):
        RunFolder.open(tmp_path)


LINES: dict[State, list[tuple[Step, Any]]] = {
    State.AUTHORED: [],
    State.ANSWERED: [(Step.ANSWERS, answer())],
    State.GATE_FAILED: [
        (Step.ANSWERS, answer()),
        (
            Step.GATE_FAILURES,
            GateFailure(query_id="q1", at=AT, failures=[RecordFinding(kind="files", message="no a.py")]),
        ),
    ],
    **{state: [(Step.AGREEMENTS, agreement(state))] for state in (State.PASSED, State.QUEUED, State.BLOCKED)},
    **{state: [(Step.REJECTED, Rejection(query_id="q1", at=AT, state=state))] for state in sorted(REJECTIONS)},
    State.KEPT: [(Step.AGREEMENTS, agreement("queued")), (Step.HUMAN_REVIEWS, review("keep"))],
}


@pytest.mark.parametrize("state", LINES)
def test_a_record_has_the_state_that_its_lines_give(path: Path, state: State) -> None:
    with RunFolder.writing(path) as folder:
        folder.append(Step.CANDIDATES, candidate())
        for step, record in LINES[state]:
            folder.append(step, record)
        (found,) = RunIndex(folder).statuses()
    assert (found.state, found.attempt) == (state, 1)
    assert set(STATES) == set(State)


def test_people_come_after_the_steps(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        for number, (outcome, decision) in enumerate(
            [("blocked", "keep"), ("passed", "keep"), ("passed", "drop"), ("queued", "send_back")]
        ):
            folder.append(Step.CANDIDATES, candidate(f"q{number}"))
            folder.append(Step.AGREEMENTS, agreement(outcome, f"q{number}"))
            folder.append(Step.HUMAN_REVIEWS, review(decision, f"q{number}"))
        index = RunIndex(folder)
        states = [(each.state, each.attempt) for each in index.statuses()]
        assert states == [(State.BLOCKED, 1), (State.KEPT, 1), (State.DROPPED, 1), (State.AUTHORED, 2)]
        assert (index.hint("q3"), index.hint("q1")) == ("see b.py", "")
        index.add(Step.ANSWERS, answer("q3", attempt=2))
        assert index.status("q3").state is State.ANSWERED
        index.add(Step.AGREEMENTS, agreement("passed", "q3", attempt=2))
        assert index.status("q3").state is State.PASSED


def test_a_record_with_two_ends_is_refused(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        folder.append(Step.CANDIDATES, candidate())
        folder.append(Step.AGREEMENTS, agreement("passed"))
        folder.append(Step.REJECTED, Rejection(query_id="q1", at=AT, state=State.NO_REPORT))
    with pytest.raises(InputError, match="05_rejected"):
        RunIndex(RunFolder.open(path))


def test_a_draft_that_became_no_candidate_is_counted(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        lost = Rejection(query_id="q9", at=AT, state=State.NOT_AUTHORED, task_type="debug", difficulty="hard")
        folder.append(Step.REJECTED, lost)
        folder.append(Step.CANDIDATES, candidate())
    found = RunIndex(RunFolder.open(path)).statuses()
    assert [(each.query_id, each.task_type, each.state) for each in found] == [
        ("q1", "locate", State.AUTHORED),
        ("q9", "debug", State.NOT_AUTHORED),
    ]


def test_the_published_schema_is_that_of_the_models_and_has_every_file() -> None:
    hint = "python -m cranfield.golden.record_schema writes it anew"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(run_schema()), hint
    assert set(run_schema()["properties"]) == {*map(str, Step), FEEDBACK}


def test_the_schema_accepts_what_a_run_writes_and_refuses_what_it_cannot_read(path: Path) -> None:
    with RunFolder.writing(path) as folder:
        folder.append(Step.CANDIDATES, candidate())
    line = json.loads((path / Step.CANDIDATES).read_text())
    validator = jsonschema.Draft202012Validator(run_schema())
    validator.validate({Step.CANDIDATES.value: [line]})
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({Step.CANDIDATES.value: [{**line, "task_type": "guess"}]})
