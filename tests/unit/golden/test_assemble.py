"""Versions of a golden set: what each criterion says, numbers, records and metadata."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cranfield.app.read_ahead import evaluate_files
from cranfield.base.errors import TestSetError, UsageError
from cranfield.cli.main import run_command_line
from cranfield.evaluation.options.blocks import ScoringOptions
from cranfield.formats.convert import write_testset
from cranfield.formats.io.delimited import FileVersion, file_versions, newest_version
from cranfield.formats.sniff import read_testset
from cranfield.gate.baseline import baseline_of, write_baseline
from cranfield.gate.calibration.report import CalibrationOptions, calibrate
from cranfield.gate.calibration.table import CalibrationAnswers, Correctness, ScoredAnswer
from cranfield.gate.reports.calibration import calibration_document
from cranfield.golden.assemble import (
    CRITERIA,
    OF_ONE_PERSON,
    CheckedCriterion,
    Criterion,
    CriterionResult,
    check_counts,
    check_review,
    check_similar,
    merge_records,
    next_version,
)
from cranfield.golden.batch import BatchVerdict, next_sample, waiting_records
from cranfield.golden.index import RunFolder, RunIndex, Step
from cranfield.golden.models import kept_records, model_records, read_kept
from cranfield.golden.outcomes import AgreementRecord, GateFailure, RunManifest
from cranfield.golden.records import AdversaryReport, HumanReview, OracleAnswer, QueryCandidate
from cranfield.golden.reports.review import review_document
from cranfield.golden.reports.sets import assembly_document
from cranfield.golden.retirement import SequentialTest, model_histories
from cranfield.golden.review import PROFILES, Reviewable, ReviewOutcome, Sample, assess, draw_sample
from cranfield.golden.use_cases.assemble import Assembly, SetEvidence, _harness, assemble
from cranfield.model import Entity, Query, TestSet
from cranfield.repo.snapshot import take
from cranfield.reporting.renderers.text import render_text

from .test_review import review as decision

AT, TODAY = "2026-11-23T14:05:09Z", date(2026, 11, 24)
CELL, OTHER = ("locate", "easy"), ("debug", "hard")
EASY = {"task_type": "locate", "difficulty": "easy"}
N = 15
MODELS = {"oracle": "test:o", "adversary": "test:a"}


def git(repo: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a function for each record."""
    root = tmp_path_factory.mktemp("repo")
    (root / "src").mkdir()
    for n in range(2 * N):
        (root / f"src/m{n}.py").write_text(f"def load_{n}(path):\n    return path\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def records_of(n: int, first: int = 0) -> list[tuple[QueryCandidate, OracleAnswer]]:
    found = []
    for place in range(n):
        path = f"src/m{first + place}.py"
        stamp = {"query_id": f"q{place}", "model": "test:o", "commit": "c0ffee", "created_at": AT, **EASY}
        candidate = QueryCandidate(
            **stamp | {"model": "test:w"},
            query_text=f"where is thing {chr(97 + (first + place) % 26) * (3 + first)} read",
            target_files=[path],
            authored_by="agent:author:test:w",
        )
        fact = {"fact": f"it returns {place}", "citations": [{"file": path, "start": 2, "end": 2}]}
        answer = OracleAnswer(
            **stamp,
            expected_entities=[{"entity_id": f"{path}::load_{first + place}", "role": "primary"}],
            expected_files=[path],
            expected_line_ranges=[{"file": path, "start": 1, "end": 2}],
            must_mention_facts=[fact] * 3,
            must_not_mention_facts=[{"fact": "it caches"}],
            canonical_narrative="It returns its argument.",
            source_evidence=[{"file": path, "start": 1, "end": 2, "read_at_step": 1}],
            confidence="high",
            authored_by="agent:oracle:test:o",
        )
        found.append((candidate, answer))
    return found


def run_of(runs: Path, repo: Path, *, n: int = N, n_failed: int = 0, first: int = 0, models=MODELS) -> Path:
    """A run whose records all passed, but for those that failed at the gate, and the last, which a person must see."""
    cells = f"- {{task_type: locate, difficulty: easy, n: {n}}}"
    plan = f"cranfield_plan: 1\nname: p\ntotal: {n}\ncells:\n{cells}\nmodels:\n"
    plan += "".join(f"  {role}: {{model: 'test:{role}'}}\n" for role in ("author", "oracle", "adversary", "judge"))
    commit = git(repo, "rev-parse", "HEAD")
    manifest = RunManifest(
        name="p", created_at=AT, cranfield_version="0", commit=commit, snapshot_digest="sha256:0", models=models
    )
    path = RunFolder.create(runs, manifest, {"plan.yaml": plan.encode()})
    with RunFolder.writing(path) as folder:
        for place, (candidate, answer) in enumerate(records_of(n, first)):
            about = {"query_id": candidate.query_id, "at": AT}
            folder.append(Step.CANDIDATES, candidate)
            folder.append(Step.ANSWERS, answer.model_copy(update={"model": models["oracle"]}))
            if place < n_failed:
                failure = GateFailure(**about, failures=[{"kind": "entities", "message": "none"}])
                folder.append(Step.GATE_FAILURES, failure)
                continue
            report = AdversaryReport(
                query_id=candidate.query_id,
                model=models["adversary"],
                claim_verdicts=[],
                overall_verdict="supported",
                reviewed_by="agent:adversary:test:a",
                reviewed_at=AT,
            )
            folder.append(Step.REPORTS, report)
            passed = {"outcome": "passed", "jaccard_entities": 1, "jaccard_files": 1}
            reasons = [{"kind": "low_confidence", "message": "unsure"}]
            more = {"outcome": "queued", "reasons": reasons} if place == n - 1 else {}
            folder.append(Step.AGREEMENTS, AgreementRecord(**about, **{**passed, **more}))
    return path


def review(run: Path, *, reviewers: tuple[str, ...] = ("ann", "bob"), edit: bool = False) -> None:
    """People find every record correct; or the one that they must see to need another narrative."""
    with RunFolder.writing(run) as folder:
        sample = next_sample([], waiting_records(RunIndex(folder)), "bootstrap", 0)
        folder.append(Step.REVIEW_SAMPLES, sample)
        for query_id in sample.to_review:
            decision: dict[str, object] = {"verdict": "correct"}
            if edit and query_id in sample.must_see:
                change = {"field": "canonical_narrative", "before": "It returns its argument.", "after": "It returns."}
                decision = {"verdict": "minor_issue", "failure_mode": "narrative", "reason": "long", "edits": [change]}
            opinions = [{**decision, "reviewer": name, "at": AT} for name in reviewers]
            line = HumanReview(query_id=query_id, **decision, opinions=opinions, book="b", reviewed_at=AT)
            folder.append(Step.HUMAN_REVIEWS, line)


def calibration_of(query_ids) -> dict[str, object]:
    """What `cranfield calibrate --format json` writes of these queries."""
    answers = [ScoredAnswer(name, 0.5, {Correctness.STATED: True}, {}) for name in query_ids]
    source = CalibrationAnswers("grep", "confidence", {Correctness.STATED: "correct"}, answers)
    document = calibration_document(calibrate(source, CalibrationOptions(draws=99)), answers)
    return document.payload()


def evidence_of(folder: Path, out: Path, run: Path, repo: Path) -> SetEvidence:
    """What is measured with the draft of a set: a run, a baseline that is committed, and a calibration."""
    folder.mkdir()
    draft = assemble(run, repo, out, SetEvidence(), draft=True, today=TODAY).written[0]
    testset = read_testset(draft)
    lines = [f"{query_id} Q0 {testset.targets[query_id][0].id} 1 1.0 grep" for query_id in testset.query_ids]
    (folder / "grep.run").write_text("\n".join(lines) + "\n")
    (evaluation,) = evaluate_files(testset, [folder / "grep.run"], None, ScoringOptions())
    baseline = baseline_of(evaluation, k=10, accepted="2026-11-24", commit="", reason="", config_digest="")
    write_baseline(baseline, folder / "baseline.json")
    (folder / "calibration.json").write_text(json.dumps(calibration_of(testset.query_ids)))
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return SetEvidence((folder / "grep.run",), folder / "baseline.json", folder / "calibration.json")


def golden(tmp_path: Path, repo: Path, name: str = "one", **options) -> tuple[Assembly, Path]:
    run = run_of(tmp_path / f"runs-{name}", repo, **options)
    review(run, edit=True)
    out = tmp_path / "golden"
    evidence = evidence_of(tmp_path / f"evidence-{name}", out, run, repo)
    for path in out.glob("draft*"):
        path.unlink()
    return assemble(run, repo, out, evidence, today=TODAY), out


@pytest.fixture(scope="module")
def first_version(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Path:
    """A golden set of one version: copy it before you add to it."""
    found, out = golden(tmp_path_factory.mktemp("first version"), repo)
    assert found.is_golden, found.checked
    return out


@pytest.mark.parametrize(
    ("kept", "attrition", "cells"),
    [(60, True, True), (56, True, True), (55, False, True), (48, False, True), (47, False, False)],
)
def test_attrition_and_cells_are_compared_exactly(kept: int, attrition: bool, cells: bool) -> None:
    found = check_counts({CELL: 60}, {CELL: kept})
    assert [each.is_met for each in found] == [attrition, cells]


def test_a_full_cell_does_not_make_up_for_an_empty_one() -> None:
    found = check_counts({CELL: 30, ("debug", "hard"): 4}, {CELL: 40})
    assert [each.is_met for each in found] == [False, False]
    assert found[0].found == "4 of 34 planned records are missing; at most 2 may be"
    assert found[1].found == "1 of 2 cells: debug hard has 0 of 4 records; at least 4 required"


def test_nothing_is_golden_without_people() -> None:
    assert [each.is_met for each in check_review(None, PROFILES["bootstrap"])] == [False, False]


def test_versions(tmp_path: Path) -> None:
    names = ("golden_v1.0.json", "golden_v1.10.json", "golden_v1.9.json", "golden_v01.9.json", "draft_v3.0.json")
    for name in names:
        (tmp_path / name).write_text("[]")
    assert [str(version) for version in file_versions(tmp_path, "golden")] == ["1.0", "1.9", "1.10"]
    assert newest_version(tmp_path, "golden") == tmp_path / "golden_v1.10.json"
    assert newest_version(tmp_path / names[0], "golden") == tmp_path / names[0]
    first, second = {"query_id": "q1", "query_text": "a"}, {"query_id": "q2", "query_text": "b"}
    more = merge_records([first], [second])
    assert next_version(None, more) == FileVersion(1, 0)
    assert next_version(FileVersion(1, 9), more) == FileVersion(1, 10)
    with pytest.raises(UsageError, match="no changes to version"):
        next_version(FileVersion(1, 0), merge_records([first], [first]))


def test_an_id_of_another_query_is_not_used_again() -> None:
    first, same, other = ({"query_id": "q1", "query_text": text, "n": n} for text, n in (("a", 1), ("a", 2), ("b", 3)))
    found = merge_records([first], [same, other, other | {"query_text": "c"}])
    assert [(record["query_id"], record["n"]) for record in found.records] == [("q1", 2), ("q1-2", 3), ("q1-3", 3)]
    assert (found.added, found.changed) == (("q1-2", "q1-3"), ("q1",))


def test_a_set_that_lacks_something_is_a_draft_at_most(tmp_path: Path, repo: Path) -> None:
    run, out = run_of(tmp_path / "runs", repo, n_failed=2), tmp_path / "golden"
    found = assemble(run, repo, out, SetEvidence(), today=TODAY)
    unmet = {each.criterion for each in found.checked if not each.is_met}
    assert unmet == set(Criterion) - {Criterion.CELLS, Criterion.SIMILAR}
    assert not out.exists()
    draft = assemble(run, repo, out, SetEvidence(), draft=True, today=TODAY)
    assert [path.name for path in draft.written] == ["draft_v1.0.json", "draft_v1.0.meta.json"]
    assert read_testset(draft.written[0]).meta.review == "draft 1.0, not golden: not reviewed by people"
    assert file_versions(out, "golden") == {}


def test_a_golden_set_has_its_records_and_how_they_were_made(tmp_path: Path, repo: Path) -> None:
    found, out = golden(tmp_path, repo, n_failed=1)
    assert found.is_golden, found.checked
    testset = read_testset(out)  # a folder of versions is the newest one
    assert (testset.version, len(testset.queries), testset.digest) == ("1.0", N - 1, found.testset.digest)
    assert sorted(path.name for path in out.iterdir()) == ["golden_v1.0.json", "golden_v1.0.meta.json"]
    edited = [label for label in testset.labels.values() if label.narrative == "It returns."]
    assert [label.provenance["edits"][0]["after"] for label in edited] == ["It returns."]
    label = testset.labels["q1"]
    assert label.provenance["models"] == {"author": "test:w", "oracle": "test:o", "adversary": "test:a"}
    assert (label.must_mention[0].citations[0].start, label.roles[0].role) == (2, "primary")
    assert testset.meta.commit == git(repo, "rev-parse", "HEAD")
    assert len(testset.meta.source_files) == N - 1
    (run,) = testset.meta.assembly["runs"]
    assert run["states"] == {"gate_failed": 1, "passed": N - 5, "kept": 4}
    assert run["error_rates"] | {"serious_rate_upper_95": 0} == {
        "sampled": 3,
        "serious": 0,
        "minor": 0,
        "wrong_on_easy": 0,
        "serious_rate_upper_95": 0,
        "edited": 2,  # one of them failed at the gate all the same
    }
    assert testset.meta.assembly["reviewers"] == ["ann", "bob"]
    facts = json.loads((out / "golden_v1.0.meta.json").read_text())
    assert (facts["strata_counts"], facts["human_reviewed_count"]) == ({"locate:easy": N - 1}, 4)
    assert facts["assembly"] == testset.meta.assembly
    assert facts["dataset_status"].startswith(
        "golden 1.0: reviewed by 2 people (ann, bob; not verified), same verdict on"
    )
    write_testset(testset, tmp_path / "native.yaml")
    assert read_testset(tmp_path / "native.yaml").meta.assembly == testset.meta.assembly


def test_an_existing_set_that_no_model_saw_names_no_model_and_enters_once(tmp_path: Path, repo: Path) -> None:
    names = {"q1": "src/m1.py::load_1", "q2": "src/m2.py::load_2"}
    queries = [
        {"id": key, "text": f"Where is {key}?", "strata": EASY, "entities": [name]} for key, name in names.items()
    ]
    (tmp_path / "old.yaml").write_text(json.dumps({"cranfield_testset": 1, "name": "old", "queries": queries}))
    arguments = ["golden", "enter", str(tmp_path / "old.yaml"), "--repo", str(repo), "--step", "people"]
    assert run_command_line([*arguments, "--out", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    draft = assemble(run, repo, tmp_path / "golden", SetEvidence(), draft=True, today=TODAY).testset
    (made,) = draft.meta.assembly["runs"]
    assert (made["models"], made["prompts"]) == ({}, {})
    assert draft.meta.review == "draft 1.0, not golden: not reviewed by people"
    review(run)
    again = assemble(run, repo, tmp_path / "golden", SetEvidence(), draft=True, today=TODAY)
    assert again.testset.meta.review.startswith("draft 1.0, not golden: reviewed by 2 people (ann, bob;")
    for path in again.written:
        path.rename(path.with_name(path.name.replace("draft", "golden")))
    with pytest.raises(UsageError, match=r"no changes to version 1\.0"):
        assemble(run, repo, tmp_path / "golden", SetEvidence(), today=TODAY)


def test_a_calibration_is_of_the_queries_of_the_set_and_committed(tmp_path: Path, repo: Path) -> None:
    run = run_of(tmp_path / "runs", repo)
    path = tmp_path / "calibration.json"

    def found(content: str) -> str:
        path.write_text(content)
        checked = assemble(run, repo, tmp_path / "golden", SetEvidence(calibration=path), today=TODAY).checked
        (one,) = (each for each in checked if each.criterion is Criterion.CALIBRATION)
        assert not one.is_met
        return one.found

    ids = assemble(run, repo, tmp_path / "golden", SetEvidence(), today=TODAY).testset.query_ids
    assert f"has other queries: 1 instead of {len(ids)}" in found(json.dumps(calibration_of(["q1"])))
    assert "has other queries" in found(json.dumps(calibration_of([*ids[1:], "other"])))
    assert "not in a git repository" in found(json.dumps(calibration_of(ids)))
    assert "is not a calibration in JSON" in found('{"diagnosis": "well-calibrated", "calibrations": [{}]}')
    assert "is not a calibration in JSON" in found("")


def test_one_reviewer_is_not_enough(tmp_path: Path, repo: Path) -> None:
    run = run_of(tmp_path / "runs", repo)
    review(run, reviewers=("ann",))
    found = {each.criterion: each for each in assemble(run, repo, tmp_path / "golden", SetEvidence()).checked}
    assert found[Criterion.REVIEW].is_met
    assert not found[Criterion.SECOND_LOOK].is_met


def test_the_next_version_adds_a_batch_and_names_models_that_were_exchanged(
    tmp_path: Path, repo: Path, first_version: Path
) -> None:
    shutil.copytree(first_version, tmp_path / "golden")
    found, out = golden(tmp_path, repo, "two", first=N, models={**MODELS, "oracle": "test:other"})
    assert found.is_golden, found.checked
    assert [each.criterion for each in found.checked][-1] is Criterion.SIMILAR
    testset = read_testset(out)
    assert (testset.version, len(testset.queries)) == ("1.1", 2 * N)
    assert testset.query_ids[N] == "q0-2"  # q0 is a query of the version before
    assembly = testset.meta.assembly
    assert [run["version"] for run in assembly["runs"]] == ["1.0", "1.1"]
    assert assembly["exchanged_models"] == [{"role": "oracle", "from": "test:o", "to": "test:other", "version": "1.1"}]
    assert testset.meta.previous == read_testset(out / "golden_v1.0.json").digest


def test_a_version_before_that_is_no_longer_true_is_refused(tmp_path: Path, repo: Path, first_version: Path) -> None:
    shutil.copytree(first_version, tmp_path / "golden")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    (clone / "src/m3.py").write_text("\n\ndef load_3(path):\n    return path\n")
    git(clone, "commit", "-qam", "two")
    run = run_of(tmp_path / "runs", clone, first=N)
    with pytest.raises(TestSetError, match=r"src/m3.py:1-2"):
        assemble(run, clone, tmp_path / "golden", SetEvidence())


def test_a_version_before_that_is_damaged_is_refused(tmp_path: Path, repo: Path) -> None:
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden/golden_v1.0.json").write_text('[{"query_id"')
    with pytest.raises(TestSetError, match="golden_v1"):
        assemble(run_of(tmp_path / "runs", repo), repo, tmp_path / "golden", SetEvidence())


def test_failing_models_are_found_over_all_runs(tmp_path: Path, repo: Path) -> None:
    run = run_of(tmp_path / "runs", repo, n_failed=8)
    records = model_records(RunIndex(RunFolder.open(run)))
    oracle, adversary = model_histories(read_kept(kept_records(records)), SequentialTest())
    assert (oracle.model, oracle.n, oracle.n_rejected, oracle.decision) == ("test:o", N - 1, 8, "retire")
    assert (adversary.model, adversary.n, adversary.n_rejected) == ("test:a", N - 8, 0)
    assert run_command_line(["golden", "models", str(run)]) == 1


def test_the_command_prints_every_criterion(
    tmp_path: Path, repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "runs", repo)
    arguments = ["golden", "assemble", str(run), "--repo", str(repo), "--out", str(tmp_path / "golden")]
    assert run_command_line([*arguments, "--format", "json"]) == 1
    payload = json.loads(capsys.readouterr().out)
    assert not payload["is_golden"]
    assert [each["criterion"] for each in payload["criteria"]] == list(Criterion)[:-1]
    assert run_command_line(arguments) == 1
    out = capsys.readouterr().out
    assert "Not golden: review, second look, harness, baseline, calibration. Nothing was written." in " ".join(
        out.split()
    )


BOOTSTRAP, ALONE = PROFILES["bootstrap"], PROFILES["bootstrap-one-person"]
WRONG = {"verdict": "wrong", "disposition": "drop", "failure_mode": "wrong_target", "reason": "Other."}


def found_of(checked: CheckedCriterion) -> tuple[str, str]:
    return checked.result.value, checked.found


@pytest.mark.parametrize(
    ("kept", "attrition", "cells"),
    [
        (100, ("met", "0 of 100 planned records are missing; at most 6 may be"), ("met", "1 of 1 cell full")),
        (94, ("met", "6 of 100 planned records are missing; at most 6 may be"), ("met", "0 of 1 cell full; the others have at least 80 %")),
        (93, ("not met", "7 of 100 planned records are missing; at most 6 may be"), ("met", "0 of 1 cell full; the others have at least 80 %")),
        (
            79,
            ("not met", "21 of 100 planned records are missing; at most 6 may be"),
            ("not met", "1 of 1 cell: locate easy has 79 of 100 records; at least 80 required"),
        ),
    ],
)  # fmt: skip
def test_counts(kept: int, attrition: tuple[str, str], cells: tuple[str, str]) -> None:
    found = check_counts({CELL: 100}, {CELL: kept}, "look")
    assert list(map(found_of, found)) == [attrition, cells]
    assert [each.step for each in found] == ["" if each.is_met else "look" for each in found]


def sample_of(profile: Any) -> Sample:
    records = [Reviewable(f"q{n}", *CELL) for n in range(4)] + [Reviewable("seen", *OTHER, ("partial",))]
    return draw_sample(records, profile, 0)


def twice(name: str, profile: Any, **changes: Any) -> Any:
    """A decision that is confirmed as the profile asks for, unless it is changed."""
    names = changes.pop("names", ("ann", "bob") if profile.people == 2 else ("ann", "ann"))
    given = decision(name, reviewers=names)
    values = given.model_dump() | changes
    times = ["2026-11-23T14:05:09Z", "2026-11-24T14:05:09Z"]
    looks = [
        {**each, **{key: value for key, value in changes.items() if key != "opinions"}, "at": at}
        for each, at in zip(values["opinions"], times, strict=False)
    ]
    return type(given).model_validate(values | {"opinions": looks})


@pytest.mark.parametrize("profile", [BOOTSTRAP, ALONE])
@pytest.mark.parametrize(
    ("decided", "met", "words"),
    [
        ("all", ("met", "met"), ("1 sampled: 0 major issue or wrong (at most 0)", "all 2 reviewed records confirmed")),
        (
            "breached",
            ("not met", "met"),
            (
                "ceiling reached: major issue or wrong, wrong on easy; 1 sampled: 1 major",
                "all 2 reviewed records confirmed",
            ),
        ),
        (
            "unconfirmed",
            ("met", "not met"),
            ("1 sampled: 0 major issue or wrong (at most 0)", "1 of 2 not confirmed: seen ("),
        ),
        ("open", ("not met", "not met"), ("1 of 2 without a decision: ", "1 of 2 without a decision: ")),
        ("none", ("not met", "not met"), ("2 of 2 without a decision: ", "2 of 2 without a decision: ")),
    ],
)
def test_review_and_second_look(profile: Any, decided: str, met: tuple[str, str], words: tuple[str, str]) -> None:
    sample = sample_of(profile)
    (name,) = sample.sampled
    reviews = {
        "all": [twice(name, profile), twice("seen", profile)],
        "breached": [twice(name, profile, **WRONG), twice("seen", profile)],
        "unconfirmed": [twice(name, profile), twice("seen", profile, names=("ann",))],
        "open": [twice("seen", profile)],
        "none": [],
    }[decided]
    report = assess(reviews, sample, profile)
    found = check_review(report, profile, "look")
    assert tuple(each.result for each in found) == met
    for each, text in zip(found, words, strict=True):
        assert text.replace("without a decision", profile.lacking) in each.found
        assert each.step == ("" if each.is_met else "look")
        if not each.is_met:
            assert "all 2 reviewed records" not in each.found
    assert found[1].demands == (OF_ONE_PERSON if profile.people == 1 else CRITERIA[Criterion.SECOND_LOOK])
    if decided in {"all", "breached"}:
        assert ("not agreement of two people" in found[1].found) == (profile.people == 1)
        assert ("by two independent reviewers" in found[1].found) == (profile.people == 2)
    states = {
        "all": "reviewed by",
        "breached": "review failed, ceiling reached: major issue or wrong, wrong on easy; 1 sampled: 1 major",
        "unconfirmed": "review not finished: 1 of 2 not confirmed: seen (",
        "open": f"review not finished: 1 of 2 without a decision: {name}",
        "none": "review not finished: 2 of 2 without a decision",
    }
    assert report.state.startswith(states[decided].replace("without a decision", profile.lacking))
    assert "pending" not in report.state


@pytest.mark.parametrize("profile", [BOOTSTRAP, ALONE])
def test_the_report_says_who_reviewed_and_what_it_comes_to(profile: Any) -> None:
    sample = sample_of(profile)
    reviews = [twice(name, profile) for name in sample.to_review]
    for given, outcome, sentence in (
        (reviews, ReviewOutcome.PASSED, "Review passed: every record is decided and confirmed"),
        (reviews[:1], ReviewOutcome.INCOMPLETE, "Review not finished."),
        ([twice(sample.sampled[0], profile, **WRONG)], ReviewOutcome.BREACHED, "Review failed"),
    ):
        report = assess(given, sample, profile)
        assert report.outcome is outcome
        text = " ".join(render_text(review_document(replace(report, next_steps=("`cranfield judge b`",))), 200).split())
        assert sentence in text
        assert "Next steps" in text
        who = {
            (1, True): "Reviewed by one person (ann), who saw each record twice",
            (2, True): "Reviewed by 2 people (ann, bob)",
            (1, False): "To be reviewed by one person (ann), who sees each record twice",
            (2, False): "To be reviewed by two people",
        }[profile.people, outcome is ReviewOutcome.PASSED]
        assert who in text
        assert "not verified" in text


def test_no_record_was_given_to_people() -> None:
    assert [found_of(each) for each in check_review(None, ALONE, "go")] == [
        ("not met", "no record was given to reviewers")
    ] * 2


def drift(verdict: BatchVerdict, *values: float | None) -> Any:
    metrics = [
        SimpleNamespace(
            name=f"m{n}", result=SimpleNamespace(p_two_sided=value, note="too few" if value is None else "")
        )
        for n, value in enumerate(values)
    ]
    differing = [
        each.name for each in metrics if each.result.p_two_sided is not None and each.result.p_two_sided < 0.05
    ]
    return SimpleNamespace(verdict=verdict, metrics=metrics, differing=differing)


def test_the_version_before() -> None:
    similar = check_similar(drift(BatchVerdict.SIMILAR, 0.4, 0.6), "go")
    assert found_of(similar) == (
        "met",
        "none of 2 metrics differs significantly; this does not prove that none differs",
    )
    other = check_similar(drift(BatchVerdict.REQUEUE, 0.4, 0.01), "go")
    assert (*found_of(other), other.step) == ("not met", "1 of 2 metrics differ: m1", "go")
    unknown = check_similar(drift(BatchVerdict.UNTESTED, None), "go")
    assert (*found_of(unknown), unknown.step) == ("not tested", "no metric could be tested: too few", "")


def test_what_could_not_be_tested_is_not_called_met() -> None:
    testset = TestSet("golden", (Query("q", "a"),))
    known = CheckedCriterion(Criterion.CELLS, CriterionResult.MET, "all")
    unknown = CheckedCriterion(Criterion.SIMILAR, CriterionResult.NOT_TESTED, "too few")
    text = render_text(assembly_document(Assembly(testset, FileVersion(1, 0), (known, unknown)).result(draft=False)))
    assert "The set is golden: 1 of 2 criteria are met, and not tested: similar." in text


def test_a_set_that_is_not_valid_is_named_in_the_step(repo: Path) -> None:
    unjudged = TestSet("g", (Query("q", "t"),))
    found = _harness(unjudged, (), take(repo), TODAY, Path("my sets/draft_v1.0.json"))
    assert found.step == "correct the set: `cranfield testset validate 'my sets/draft_v1.0.json'` lists the problems"
    drifted = TestSet("g", (Query("q", "t"),), targets={"q": (Entity("a.py::f"),)})
    found = _harness(drifted, (), take(repo), TODAY, Path("sets/draft_v1.0.json"))
    assert found.step == f"correct the places: `cranfield testset verify sets/draft_v1.0.json --repo {repo}` lists them"


@pytest.mark.slow  # a version is put together six times
def test_what_is_measured(tmp_path: Path, repo: Path) -> None:
    run, out = run_of(tmp_path / "runs", repo), tmp_path / "golden"
    review(run)
    evidence = evidence_of(tmp_path / "evidence", out, run, repo)

    def of(given: SetEvidence) -> dict[Criterion, CheckedCriterion]:
        return {each.criterion: each for each in assemble(run, repo, out, given, today=TODAY).checked}

    names = (Criterion.HARNESS, Criterion.BASELINE, Criterion.CALIBRATION)
    none = of(SetEvidence())
    assert [found_of(none[name]) for name in names] == [
        ("not met", "the set is valid, but no run of a system is given"),
        ("not met", "no baseline given"),
        ("not met", "no calibration given"),
    ]
    draft = f"`cranfield golden assemble {run} --repo {repo} --out {out} --draft` writes a draft to measure with; then give a run"
    assert [none[name].step.split("`, ")[0][:60] for name in names] == [
        draft[:60],
        "`cranfield baseline accept CONFIG",
        "`cranfield calibrate DRAFT RUN --format json",
    ]
    assert none[Criterion.HARNESS].step.startswith(draft)
    before = (tmp_path / "evidence" / "baseline.json").read_text()
    (tmp_path / "evidence" / "baseline.json").write_text(before + "\n")
    (tmp_path / "evidence" / "other.run").write_text("nothing Q0 d 1 1.0 other\n")
    changed = of(
        SetEvidence((tmp_path / "evidence" / "other.run",), evidence.baseline, tmp_path / "evidence" / "grep.run")
    )
    assert [changed[name].result for name in names] == [CriterionResult.NOT_MET] * 3
    assert "uncommitted changes" in changed[Criterion.BASELINE].found
    assert "commit " in changed[Criterion.BASELINE].step
    assert "is not a calibration in JSON" in changed[Criterion.CALIBRATION].found
    for name in names:
        assert changed[name].step
    (tmp_path / "evidence" / "baseline.json").write_text(before)
    good = (tmp_path / "evidence" / "grep.run").read_text()
    swapped = "".join(f"{line.split()[0]} Q0 same 1 1.0 same\n" for line in good.splitlines())
    (tmp_path / "evidence" / "same.run").write_text(swapped)  # one id for every query: no id of the set
    void = of(SetEvidence((tmp_path / "evidence" / "same.run",), evidence.baseline, evidence.calibration))
    assert void[Criterion.HARNESS].result is CriterionResult.NOT_MET
    assert "its scores are invalid: " in void[Criterion.HARNESS].found
    met = of(evidence)
    assert [found_of(met[name])[0] for name in names] == ["met"] * 3
    assert [met[name].step for name in names] == [""] * 3
    assert met[Criterion.BASELINE].found.endswith("baseline.json, of grep")
