"""The pipeline over Cranfield's own source, with scripted models: every end is reached, and a run can be interrupted anywhere."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cranfield.agents.protocol import Failure, FailureKind, ModelAnswer, Request, Usage
from cranfield.agents.recording import Scripted, tree_files
from cranfield.base.errors import ConfigError, InputError, UsageError
from cranfield.golden.index import RunFolder, RunIndex, Step
from cranfield.golden.plan import Plan
from cranfield.golden.records import HumanReview
from cranfield.golden.reports.golden import run_document
from cranfield.golden.run import (
    PipelineOptions,
    PipelineOutcome,
    Until,
    create_run,
    execute,
    manifest_of,
    replace_plan,
    run_status,
)
from cranfield.golden.states import ENTERS_AT, STATES, EntryStep, State
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.tree import source_snapshot
from cranfield.reporting.renderers.text import render_text

TIMES = {"created_at", "reviewed_at", "at", "cost", "wall_s", "model_s", "usage"}


def begin(models: Any, snapshot: Snapshot, runs: Path, **changes: Any) -> Path:
    text = json.dumps(models.plan_of(**changes))
    return create_run(Plan.model_validate_json(text), text, snapshot, runs)


SMALL = {
    "total": 2,
    "cells": [
        {"task_type": "review", "difficulty": "easy", "n": 1},
        {"task_type": "explain", "difficulty": "medium", "n": 1},
    ],
}
"""Four drafts, of which two are not needed."""


def go_on(path: Path, snapshot: Snapshot, script: Any, **options: Any) -> PipelineOutcome:
    return execute(path, snapshot, PipelineOptions(source=Scripted(script), **options))


def contents(path: Path) -> dict[str, list[Any]]:
    """All records of a run, without times."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in TIMES}
        return [plain(each) for each in value] if isinstance(value, list) else value

    found: dict[str, list[Any]] = {}
    for step in Step:
        if (path / step).is_file():
            records = [plain(json.loads(line)) for line in (path / step).read_text().splitlines()]
            found[step] = sorted(records, key=lambda each: json.dumps(each, sort_keys=True))
    return found


@pytest.fixture(scope="module")
def whole(
    models: Any, snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, PipelineOutcome, Any]:
    """A run of every topic."""
    path, asked = begin(models, snapshot, tmp_path_factory.mktemp("runs")), models.Models()
    return path, go_on(path, snapshot, asked.answer), asked


def test_every_record_ends_in_the_state_that_its_models_bring_about(whole: Any, models: Any) -> None:
    path, outcome, _ = whole
    index = RunIndex(RunFolder.open(path))
    expected = {
        f"own-{task_type}-{difficulty}-{number:02d}": topic.expects
        for (task_type, difficulty), topics in models.CELLS.items()
        for number, topic in enumerate(topics, start=1)
    }
    assert {each.query_id: each.state.value for each in outcome.result.statuses} == expected
    assert len(outcome.result.statuses) == len(expected)  # counts in are counts out
    assert outcome.result.is_complete
    assert outcome.result.waiting == ()
    ends = {State(state) for state in expected.values()}
    assert ends == {state for state, info in STATES.items() if info.is_end} - {State.KEPT, State.DROPPED}
    assert Counter(each.state for each in index.statuses()) == outcome.result.counts


def test_each_end_stands_in_its_file_with_its_reasons(whole: Any) -> None:
    found = contents(whole[0])
    kinds = {
        record["query_id"]: sorted({reason["kind"] for reason in record.get("reasons", record.get("failures", []))})
        for step in (Step.GATE_FAILURES, Step.REVIEW_QUEUE, Step.REJECTED)
        for record in found[step]
    }
    reasons = {
        "own-locate-easy-02": ["leak"],
        "own-locate-easy-03": ["target_overlap"],
        "own-locate-easy-04": ["bad_output"],
        "own-locate-easy-08": ["turns"],
        "own-locate-easy-09": ["low_confidence"],
        "own-locate-easy-10": ["silent"],
        "own-locate-easy-11": ["jaccard_entities", "unsupported_structure"],
        "own-locate-easy-12": ["partial"],
        "own-locate-easy-15": ["narrative"],
        "own-locate-easy-16": ["jaccard_entities"],
    }
    assert {name: kinds[name] for name in reasons} == reasons
    assert "read" in kinds["own-locate-easy-05"]  # evidence that no tool showed
    assert "entities" in kinds["own-locate-easy-06"]
    passed = {record["query_id"] for record in found[Step.AGREEMENTS] if record["outcome"] == "passed"}
    assert passed.isdisjoint(kinds)


def test_what_the_adversary_adds_stands_wherever_the_jaccard_index_stands(whole: Any) -> None:
    index, query_id = RunIndex(RunFolder.open(whole[0])), "own-locate-easy-16"
    missing = "src/cranfield/agents/budget.py::Estimate"
    agreement, queued = index.agreements[query_id, 1], index.queue[query_id, 1]
    assert (agreement.jaccard_entities, agreement.missing_entities) == (0.5, (missing,))
    message = f"Jaccard index of entities 0.500, at least 0.8 required: the adversary adds {missing}"
    assert [each.message for each in queued.reasons] == [message]
    document = run_document(run_status(index.folder))
    assert re.search(rf"{query_id} +0\.5 +1(\.0)? +{missing}\n", render_text(document))
    record = next(each for each in document.payload()["records"] if each["query_id"] == query_id)
    assert record["agreement"] == agreement.model_dump(mode="json")


def test_what_a_role_wrote_has_its_provenance(whole: Any, snapshot: Snapshot) -> None:
    index = RunIndex(RunFolder.open(whole[0]))
    manifest = index.folder.manifest
    for record in (*index.answers, *index.reports, *index.candidates.values()):
        assert record.commit == manifest.commit == snapshot.commit
        assert record.prompt is not None
        assert manifest.prompts[record.prompt.label] == record.prompt.digest
        assert record.model in manifest.models.values()
        assert record.tool_versions == manifest.tool_versions
        assert record.cost is not None
        assert record.cost.total_tokens == 1_100 * record.cost.turns
    assert manifest.withheld == {".env": "name"}
    texts = (whole[0] / Step.TRANSCRIPTS).read_text()
    assert "not-for-models" not in texts
    judged = [each for each in index.agreements if each.ratings]
    assert 0 < sum(each.spot_check for each in judged) < len(judged)


def test_a_run_that_has_ended_asks_nothing_and_writes_nothing(small: Any, models: Any, snapshot: Snapshot) -> None:
    path = small[0]
    outcome = go_on(path, snapshot, models.Models().answer)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    again = go_on(path, snapshot, lambda request: pytest.fail("a request was sent"))
    assert again.result == outcome.result
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert again.spent.tokens == outcome.spent.tokens


def test_a_replayed_run_gives_the_same_records_without_a_model(
    whole: Any, models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    path = begin(models, snapshot, tmp_path)
    outcome = execute(path, snapshot, PipelineOptions(replay=whole[0] / "calls.jsonl"))
    assert outcome.result.counts == whole[1].result.counts
    assert contents(path) == contents(whole[0])


def test_the_commands_run_a_plan_and_show_its_states(
    small: Any, models: Any, repo: Path, call: Any, tmp_path: Path
) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(models.plan_of(**SMALL)))
    arguments = ("--repo", repo, "--out", tmp_path / "runs", "--replay", small[0] / "calls.jsonl")
    run = call("golden", "run", tmp_path / "plan.json", *arguments)
    assert run.returncode == 0, run.stderr
    (path,) = (tmp_path / "runs").iterdir()
    assert f"run folder: {path}" in run.stderr
    assert contents(path) == contents(small[0])
    assert "own-review-easy-02 reserve" in run.stderr
    assert call("golden", "status", path).stdout == run.stdout
    status = json.loads(call("golden", "status", path, "--format", "json").stdout)
    assert {name: n for name, n in status["states"].items() if n} == {"passed": 2, "reserve": 2}
    page = tmp_path / "transcripts.html"
    assert call("golden", "transcripts", path, "--html", page, "--record", "own-review-easy-01").returncode == 0
    text = page.read_text()
    assert "own-review-easy-01" in text
    assert "own-explain-medium-01" not in text
    unknown = call("golden", "transcripts", path, "--html", page, "--record", "own-review-easy-1")
    assert unknown.returncode == 2
    assert "own-review-easy-01" in unknown.stderr
    (tmp_path / "no.jsonl").touch()
    lost = call("golden", "run", tmp_path / "plan.json", *arguments[:-1], tmp_path / "no.jsonl")
    assert lost.returncode == 3
    assert "without an answer: not_recorded (" in lost.stderr
    assert "not written yet" not in run.stdout
    assert re.search(r"not written yet +4 of 4 drafts", lost.stdout)


def test_a_damaged_replay_and_an_empty_repository_are_refused_before_a_folder_is_made(
    models: Any, repo: Path, call: Any, tmp_path: Path
) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(models.plan_of(**SMALL)))
    (tmp_path / "damaged.jsonl").write_text("no answer\n")
    (tmp_path / "empty").mkdir()
    command = ("golden", "run", tmp_path / "plan.json", "--out", tmp_path / "runs", "--repo")
    damaged = call(*command, repo, "--replay", tmp_path / "damaged.jsonl")
    assert (damaged.returncode, "not a valid line of a file of stored answers" in damaged.stderr) == (2, True)
    empty = call(*command, tmp_path / "empty")
    assert (empty.returncode, "no files to read" in empty.stderr) == (2, True)
    assert not (tmp_path / "runs").exists()


class Interrupted(BaseException):
    """Ctrl-C between two requests."""


@pytest.fixture(scope="module")
def small(models: Any, snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run of four drafts."""
    path, asked = begin(models, snapshot, tmp_path_factory.mktemp("runs"), **SMALL), models.Models()
    go_on(path, snapshot, asked.answer)
    return path, asked


@pytest.mark.parametrize("after", [9])
def test_an_interrupted_run_goes_on_with_the_same_records_and_asks_nothing_twice(
    after: int, small: Any, models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    path, partly = begin(models, snapshot, tmp_path, **SMALL), models.Models()

    def interrupted(request: Request) -> Any:
        if partly.n_requests == after:
            raise Interrupted
        return partly.answer(request)

    with pytest.raises(Interrupted):
        go_on(path, snapshot, interrupted)
    for file in path.glob("*.jsonl"):  # what a kill leaves of a line
        file.write_bytes(file.read_bytes() + b'{"query_id": "own')
    go_on(path, snapshot, partly.answer)
    assert contents(path) == contents(small[0])
    assert partly.n_requests == small[1].n_requests > 13


def test_a_step_is_the_last_one_and_the_next_call_goes_on(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path, asked = begin(models, snapshot, tmp_path, **SMALL), models.Models()
    expected = {
        Until.SCREEN: {State.AUTHORED: 4},
        Until.GATE: {State.ANSWERED: 2, State.AUTHORED: 2},
        Until.ADVERSARY: {State.REPORTED: 2, State.AUTHORED: 2},
        Until.AGREE: {State.PASSED: 2, State.RESERVE: 2},
    }
    assert {until: go_on(path, snapshot, asked.answer, until=until).result.counts for until in expected} == expected


def test_a_budget_that_is_used_up_stops_the_run_and_another_one_lets_it_go_on(
    models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    short = {**SMALL, "budget": {"tokens": 30_000}}
    path, asked = begin(models, snapshot, tmp_path, **short), models.Models()
    outcome = go_on(path, snapshot, asked.answer)
    assert {each.kind for each in outcome.result.waiting} == {"budget"}
    assert 0 < outcome.spent.tokens <= 30_000
    n_before = asked.n_requests
    again = go_on(path, snapshot, asked.answer)  # what was spent is known again
    assert (again.spent.tokens, asked.n_requests) == (outcome.spent.tokens, n_before)
    text = json.dumps(models.plan_of("http://127.0.0.1:9/v1", **SMALL))
    replace_plan(path, Plan.model_validate_json(text), text)
    assert go_on(path, snapshot, asked.answer).result.counts == {State.PASSED: 2, State.RESERVE: 2}
    changed = json.dumps(models.plan_of(**SMALL, headroom=2))
    with pytest.raises(UsageError, match="a different plan"):
        replace_plan(path, Plan.model_validate_json(changed), changed)


def test_a_key_that_is_refused_is_no_end(models: Any, snapshot: Snapshot, tmp_path: Path) -> None:
    path, asked = begin(models, snapshot, tmp_path, **SMALL), models.Models()
    refusal = ModelAnswer(failure=Failure(FailureKind.REJECTED, "HTTP 401", 401), usage=Usage(input=0, output=0))
    outcome = go_on(
        path, snapshot, lambda request: refusal if request.model == "openai:oracle" else asked.answer(request)
    )
    waiting = {(each.role, each.query_id, each.kind) for each in outcome.result.waiting}
    assert waiting == {("oracle", f"own-{cell}-01", "rejected") for cell in ("review-easy", "explain-medium")}
    assert not outcome.result.is_complete
    assert go_on(path, snapshot, asked.answer).result.counts == {State.PASSED: 2, State.RESERVE: 2}


def test_a_record_that_a_person_sent_back_is_answered_again_with_the_hint(
    small: Any, models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    path, asked = shutil.copytree(small[0], tmp_path / "run"), models.Models()
    decision = {"verdict": "wrong", "disposition": "send_back", "failure_mode": "false_fact", "reason": "no"}
    sent = {**decision, "hint": "Look at the lock."}
    opinion = {**sent, "reviewer": "ann", "at": "2026-11-23T00:00:00Z"}
    review = HumanReview(query_id="own-review-easy-01", book="b", reviewed_at="", opinions=[opinion], **sent)
    with RunFolder.writing(path) as folder:
        folder.append(Step.HUMAN_REVIEWS, review)
    prompts = []

    def noted(request: Request) -> Any:
        prompts.append((request.model, request.messages[0].text))
        return asked.answer(request)

    statuses = {each.query_id: each for each in go_on(path, snapshot, noted).result.statuses}
    assert (statuses["own-review-easy-01"].state, statuses["own-review-easy-01"].attempt) == (State.PASSED, 2)
    assert statuses["own-explain-medium-01"].attempt == 1
    oracle = [text for model, text in prompts if model == "openai:oracle"]
    assert oracle
    assert all("Look at the lock." in text for text in oracle)
    assert not any("Look at the lock." in text for model, text in prompts if model != "openai:oracle")


@pytest.mark.parametrize(
    ("entry", "state"),
    [(EntryStep.GATE, State.GATE_FAILED), (EntryStep.ADVERSARY, State.PASSED), (EntryStep.PEOPLE, State.PASSED)],
)
def test_an_existing_set_goes_on_from_where_it_enters(
    entry: EntryStep, state: State, whole: Any, models: Any, snapshot: Snapshot, tmp_path: Path
) -> None:
    plan = Plan.model_validate(models.plan_of())
    manifest = manifest_of(plan, snapshot, source="places").model_copy(update={"more": {ENTERS_AT: entry}})
    files = {"plan.yaml": json.dumps(models.plan_of()).encode(), **tree_files(snapshot)}
    path, asked = RunFolder.create(tmp_path, manifest, files), models.Models()
    index = RunIndex(RunFolder.open(whole[0]))
    with RunFolder.writing(path) as folder:  # an answer with an entity that does not exist
        for step, record in (
            (Step.CANDIDATES, index.candidates["own-locate-easy-06"]),
            (Step.ANSWERS, index.answers.get("own-locate-easy-06", 1)),
        ):
            assert record is not None
            folder.append(step, record.model_copy(update={"imported_from": "sha256:0"}))
    (found,) = go_on(path, snapshot, asked.answer).result.statuses
    assert found.state is state
    assert (asked.n_requests > 0) == (entry is EntryStep.ADVERSARY)


def test_another_source_is_refused(whole: Any, repo: Path, models: Any, tmp_path: Path) -> None:
    changed = tmp_path / "repo"
    shutil.copytree(repo, changed)
    shutil.rmtree(changed / ".git")
    (changed / "src" / "cranfield" / "agents" / "new.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="a different source"):
        execute(whole[0], source_snapshot(changed), PipelineOptions())
    plan = models.plan_of(total=3)
    with pytest.raises(ConfigError, match="do not sum"):
        create_run(Plan.model_validate(plan), json.dumps(plan), source_snapshot(changed), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    feedback = tmp_path / "feedback.jsonl"
    feedback.write_text('{"schema_version": "1.0.0"}\n')
    text = json.dumps(models.plan_of(**SMALL))
    with pytest.raises(InputError, match="Field required"):
        create_run(Plan.model_validate_json(text), text, source_snapshot(changed), tmp_path / "runs", feedback=feedback)
