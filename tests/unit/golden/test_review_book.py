"""A run in front of people: its book, the decisions that come back, and the outcome that the commands print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.cli.main import command_line
from cranfield.errors import UsageError
from cranfield.golden.batch_review import Waiting, read_sample, review_of
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.index import RunIndex
from cranfield.golden.outcomes import AgreementRecord, Finding, RunManifest
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import AdversaryReport, HumanReview, OracleAnswer, QueryCandidate, TargetSpan
from cranfield.golden.review import Reviewable, ReviewOutcome, apply_edits
from cranfield.golden.states import State
from cranfield.judging.review import ReviewMaterial
from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Action, Role
from cranfield.judging.store.values import SaveRequest
from cranfield.model.review import Disposition, FailureMode, Verdict
from cranfield.project.golden_review import collect_reviews, make_review_book, material_of
from cranfield.repo.snapshot import snapshot_digest, take

AT = "2026-11-23T14:05:09Z"
SOURCE = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(200))
STAMP = {"model": "openai:SECRET-model", "task_type": "locate", "difficulty": "easy", "created_at": AT}
CITED = {"file": "a.py", "start": 1, "end": 2}
SPAN = TargetSpan(file="a.py", start=5, end=6)


def candidate(query_id: str) -> QueryCandidate:
    return QueryCandidate(
        query_id=query_id,
        query_text="Where is 0 returned?",
        target_files=["a.py"],
        authored_by="SECRET-author",
        **STAMP,
    )


def answer(query_id: str, attempt: int = 1, confidence: str = "high") -> OracleAnswer:
    return OracleAnswer(
        query_id=query_id,
        attempt=attempt,
        expected_entities=[{"entity_id": "a.py::f0", "role": "primary"}],
        expected_files=["a.py"],
        expected_line_ranges=[CITED],
        must_mention_facts=[{"fact": "It returns 0.", "citations": [CITED]}],
        must_not_mention_facts=[],
        canonical_narrative="It is in a.py.",
        source_evidence=[CITED | {"start": 700, "end": 702, "read_at_step": 1}],
        confidence=confidence,
        uncertainty_notes="unclear" if confidence == "low" else None,
        authored_by="SECRET-oracle",
        **STAMP,
    )


def report(query_id: str, attempt: int = 1) -> AdversaryReport:
    claims = [
        {
            "claim_type": "file",
            "claim": "a.py",
            "verdict": "partial",
            "citation": {"file": "no.py", "start": 1, "end": 1},
        },
        {
            "claim_type": "file",
            "claim": "a.py",
            "verdict": "partial",
            "citation": {"file": "a.py", "start": 9, "end": 400},
        },
    ]
    return AdversaryReport(
        query_id=query_id,
        attempt=attempt,
        claim_verdicts=claims,
        overall_verdict="partial",
        reviewed_by="SECRET",
        reviewed_at=AT,
    )


def agreement(query_id: str, outcome: str = "passed", attempt: int = 1, *, spot_check: bool = False) -> AgreementRecord:
    reasons = [] if outcome == "passed" else [Finding(kind="partial", message="file a.py: partially supported")]
    return AgreementRecord(
        query_id=query_id,
        attempt=attempt,
        at=AT,
        outcome=outcome,
        reasons=reasons,
        jaccard_entities=1,
        jaccard_files=1,
        spot_check=spot_check,
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text(SOURCE)
    return tmp_path / "repo"


@pytest.fixture
def run(tmp_path: Path, repo: Path) -> Path:
    """Eight records that passed, one that is queued, one that is blocked, and one whose narrative is spot-checked."""
    manifest = RunManifest(
        name="r", created_at=AT, cranfield_version="0", snapshot_digest=snapshot_digest(take(repo)), seed=5
    )
    path = RunFolder.create(tmp_path / "runs", manifest)
    with RunFolder.writing(path) as folder:
        for query_id in [*(f"p{n}" for n in range(8)), "queued", "blocked", "spot"]:
            folder.append(Step.CANDIDATES, candidate(query_id))
            folder.append(Step.ANSWERS, answer(query_id))
            folder.append(Step.REPORTS, report(query_id))
            outcome = query_id if query_id in {"queued", "blocked"} else "passed"
            folder.append(Step.AGREEMENTS, agreement(query_id, outcome, spot_check=query_id == "spot"))
    return path


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "books.db")
    for name in ("ann", "bob"):
        opened.people.add(name, Role.LEAD)
    opened.people.add("lee", Role.LEAD)
    yield opened
    opened.close()


def decide(store, name: str, query: str, grade: int = 1, reason: str = "", *, attempt: int = 1, **data: object) -> None:
    book = store.books.get("r")
    account = store.people.get(name).id
    store.people.join(book.id, account)
    items = {(item.query, item.doc): item.id for item in store.reading.items(book.id)}
    item, key = items[query, f"attempt {attempt}"], f"{name} {query} {attempt} {len(store.log.events(book.id))}"
    save = SaveRequest(book.id, item, account, Action.GRADE, key, grade, reason=reason, data=data or None)
    store.log.save(save)


def decide_rest(store, *but: str) -> None:
    for item in store.reading.items(store.books.get("r").id):
        if item.query not in but and not item.ratings:
            for name in ("ann", "bob"):
                decide(
                    store,
                    name,
                    item.query,
                    *((4, "Not kept.") if item.query == "blocked" else ()),
                    **(DROP if item.query == "blocked" else {}),
                )


DROP = {"disposition": "drop", "failure_mode": "wrong_target"}


def made(run: Path, repo: Path, store):
    return make_review_book(run, repo, store, name="r")


def test_a_book_has_the_sample_and_what_must_be_seen(run, repo, store) -> None:
    book = made(run, repo, store)
    assert (book.sample.n_batch, book.sample.n_by_share, len(book.sample.sampled)) == (11, 2, 2)
    assert book.sample.must_see == {
        "queued": ("partial",),
        "blocked": ("partial",),
        "spot": ("narrative_spot_check",),
    }
    assert book.n_new == 5
    materials = {item.query: ReviewMaterial.model_validate(item.fields) for item in store.reading.items(book.book.id)}
    assert {name for name, each in materials.items() if not each.may_keep} == {"blocked"}
    assert "SECRET" not in json.dumps([each.model_dump(mode="json") for each in materials.values()])
    assert "def f0():\n    return 0" in materials["queued"].sources[0].text
    again = made(run, repo, store)
    assert (again.n_new, again.sample) == (0, book.sample)


def test_lines_near_each_other_are_shown_once_and_long_ones_are_cut(run, repo, store) -> None:
    made(run, repo, store)
    item = next(item for item in store.reading.items(store.books.get("r").id) if item.query == "queued")
    first, second, missing = ReviewMaterial.model_validate(item.fields).sources
    assert [(each.file, each.start, each.end) for each in (first, second)] == [("a.py", 1, 2), ("a.py", 9, 400)]
    assert (second.text.count("\n") + 1, second.problem) == (300, "92 more lines are not shown.")
    assert "not in the snapshot" in missing.problem


def test_a_run_that_is_not_finished_is_not_given_to_people(run, repo, store) -> None:
    with RunFolder.writing(run) as folder:
        folder.append(Step.CANDIDATES, candidate("late"))
    with pytest.raises(UsageError, match=r"1 record waits for a step: late"):
        made(run, repo, store)
    with pytest.raises(UsageError, match="no record of this run was given to people"):
        collect_reviews(run, store)


def test_the_lines_are_those_that_the_run_read(run, repo, store) -> None:
    (repo / "a.py").write_text("")
    with pytest.raises(UsageError, match="not those that the run read"):
        made(run, repo, store)


def test_a_reviewed_batch_passes_and_its_decisions_are_written_once(run, repo, store) -> None:
    made(run, repo, store)
    edit = {"field": "canonical_narrative", "before": "It is in a.py.", "after": "It is f0 in a.py."}
    for name in ("ann", "bob"):
        reason = f"{name}: too short."
        decide(store, name, "queued", 2, reason, failure_mode="narrative", edits=[edit])
    decide(store, "ann", "spot")
    decide(
        store,
        "bob",
        "spot",
        4,
        "Another question.",
        disposition="send_back",
        failure_mode="query_unclear",
        hint="Ask f0.",
    )
    decide_rest(store, "queued", "spot")
    first = collect_reviews(run, store)
    assert (first.n_new, first.undecided, first.differing) == (4, (), ("spot",))
    assert review_of(RunFolder.open(run)).outcome is ReviewOutcome.INCOMPLETE
    item = next(item for item in store.reading.items(store.books.get("r").id) if item.query == "spot")
    store.log.adjudicate(item.id, store.people.get("lee").id, 1, "Ann is right.", "lead", data=None)
    assert collect_reviews(run, store).n_new == 1
    assert collect_reviews(run, store).n_new == 0
    index = RunIndex(RunFolder.open(run))
    (queued,) = index.reviews["queued"]
    assert (queued.verdict, queued.reviewers) == (Verdict.MINOR_ISSUE, ("ann", "bob"))
    assert queued.reason == "ann: too short. / bob: too short."
    assert apply_edits(index.answers.get("queued", 1), queued).canonical_narrative == "It is f0 in a.py."
    (spot,) = index.reviews["spot"]
    assert (spot.verdict, spot.lead, len(spot.opinions)) == (Verdict.CORRECT, "lee", 2)
    assert index.status("blocked").state is State.DROPPED
    assert ("blocked", 1) in index.dropped
    found = review_of(RunFolder.open(run))
    assert found.outcome is ReviewOutcome.PASSED
    assert (found.n_spot_checked, found.n_spot_failed, found.n_edited) == (1, 0, 1)


@pytest.mark.slow  # 0.9 s: a record goes round twice
def test_a_record_that_is_sent_back_is_reviewed_again_and_its_first_verdict_counts(run, repo, store) -> None:
    sampled = made(run, repo, store).sample.sampled[0]
    back = {"disposition": "send_back", "failure_mode": "wrong_target", "hint": "Look at f1."}
    for name in ("ann", "bob"):
        decide(store, name, sampled, 3, "It is f1.", **back)
    decide_rest(store, sampled)
    collect_reviews(run, store)
    assert RunIndex(RunFolder.open(run)).hint(sampled) == "Look at f1."
    with pytest.raises(UsageError, match="is not finished"):
        made(run, repo, store)
    with RunFolder.writing(run) as folder:
        folder.append(Step.ANSWERS, answer(sampled, 2))
        folder.append(Step.AGREEMENTS, agreement(sampled, attempt=2))
    again = made(run, repo, store)
    assert again.n_new == 1
    assert read_sample(RunFolder.open(run)).attempts[sampled] == 2
    before = review_of(RunFolder.open(run))
    assert before.unreviewed == (sampled,)
    for name in ("ann", "bob"):
        decide(store, name, sampled, attempt=2)
    collect_reviews(run, store)
    after = review_of(RunFolder.open(run))
    assert (after.unreviewed, after.tally.serious, after.outcome) == ((), 1, ReviewOutcome.BREACHED)
    assert after.dispositions[Disposition.SEND_BACK] == 0
    assert [each.failure_mode for each in after.feedback].count(FailureMode.WRONG_TARGET) == 2
    decide(store, "ann", "blocked", 3, "Sent back after all.", **back)
    decide(store, "bob", "blocked", 3, "Sent back after all.", **back)
    assert collect_reviews(run, store).late == ("blocked",)
    assert RunIndex(RunFolder.open(run)).status("blocked").state is State.DROPPED


def test_the_commands_make_the_book_and_judge_the_batch(run, repo, store) -> None:
    db, runner = str(store.database.where), CliRunner()
    result = runner.invoke(
        command_line("golden", "review"), ["golden", "review", str(run), "--repo", str(repo), "--book", "r", "--db", db]
    )
    assert result.exit_code == 0, result.output
    assert "book r: 5 new records for two reviewers" in result.output
    assert "sample: 2 of 11 records; the share asks for 2, one of each cell for 1" in result.output
    decide_rest(store)
    result = runner.invoke(
        command_line("golden", "reviewed"), ["golden", "reviewed", str(run), "--db", db, "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    payload = json.loads(result.stdout)
    assert (payload["outcome"], payload["sample"]["n"]) == ("passed", 2)
    sampled = read_sample(RunFolder.open(run)).sampled[0]
    for name in ("ann", "bob"):
        decide(store, name, sampled, 4, "Another file.", **DROP)
    result = runner.invoke(command_line("golden", "reviewed"), ["golden", "reviewed", str(run), "--db", db])
    assert result.exit_code == 1, result.output
    for text in ("breached", "1 of 2", "under 5.0 %", "wrong target: Another file."):
        assert text in " ".join(result.output.split())
    lines = (run / "review_feedback.jsonl").read_text().splitlines()
    assert {json.loads(line)["failure_mode"] for line in lines} == {"wrong_target"}
    assert len(RunFolder.open(run).read(Step.HUMAN_REVIEWS, HumanReview)) == 6


def test_records_of_an_existing_set_are_shown_with_the_lines_of_what_they_expect(run: Path, repo: Path) -> None:
    entities = {"q6": ["a.py::f1"], "q7": ["a.py::lost"], "q8": []}
    with RunFolder.writing(run) as folder:
        for query_id, ids in entities.items():
            entered = {"imported_from": "sha256:0", "query_id": query_id}
            bare = {"expected_line_ranges": [], "must_mention_facts": [], "source_evidence": [], "confidence": None}
            bare |= {"expected_entities": [{"entity_id": each} for each in ids], **entered}
            folder.append(Step.CANDIDATES, candidate(query_id).model_copy(update=entered | {"target_spans": [SPAN]}))
            folder.append(Step.ANSWERS, OracleAnswer.model_validate(answer(query_id).model_dump() | bare))
        index, source = RunIndex(folder), ParsedSource(take(repo))
    shown = {}
    for query_id in entities:
        waiting = Waiting(index.status(query_id), Reviewable(query_id, "locate", "easy"), (), may_keep=True)
        shown[query_id] = material_of(index, waiting, source)
    assert shown["q6"].targets == ["a.py", "a.py:5-6"]
    assert (shown["q6"].confidence, shown["q6"].expected_entities[0].role) == ("", "")
    lines = {name: [(each.start, each.end, each.problem) for each in found.sources] for name, found in shown.items()}
    assert lines["q6"] == [(5, 6, "")]
    assert lines["q7"] == [(1, 1, "a.py::lost: the file has no such symbol")]
    assert lines["q8"] == [(1, 800, "500 more lines are not shown.")]
