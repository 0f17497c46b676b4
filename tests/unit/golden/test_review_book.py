"""A run in front of people: its book, the decisions that come back, and the outcome that the commands print; of two people, and of one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.base.errors import UsageError
from cranfield.books.review import ReviewMaterial
from cranfield.books.store.schema import Action, RaterKind, Role, SkipReason
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.cli.main import command_line
from cranfield.golden.batch import ReviewCase, planned_profile, read_sample, review_of
from cranfield.golden.commands import _db_option
from cranfield.golden.index import RunFolder, RunIndex, Step
from cranfield.golden.outcomes import AgreementRecord, RecordFinding, RunManifest
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import AdversaryReport, HumanReview, Opinion, OracleAnswer, QueryCandidate, TargetSpan
from cranfield.golden.reports.review import review_document
from cranfield.golden.review import PROFILES, Reviewable, ReviewOutcome, apply_edits, unconfirmed_because
from cranfield.golden.states import State
from cranfield.golden.use_cases.review import (
    Collected,
    after_breach,
    after_review,
    both_looks,
    collect_reviews,
    fields_of_both,
    make_review_book,
    material_of,
    people_steps,
)
from cranfield.model.judging import Disposition, FailureMode, ReviewVerdict
from cranfield.repo.snapshot import snapshot_digest, take
from cranfield.reporting.renderers.text import render_text

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
    reasons = [] if outcome == "passed" else [RecordFinding(kind="partial", message="file a.py: partially supported")]
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
    with pytest.raises(UsageError, match="no record of this run was given to reviewers"):
        collect_reviews(run, store)


def test_the_lines_are_those_that_the_run_read(run, repo, store) -> None:
    (repo / "a.py").write_text("")
    with pytest.raises(UsageError, match="differ from those that the run read"):
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
    assert (queued.verdict, queued.reviewers) == (ReviewVerdict.MINOR_ISSUE, ("ann", "bob"))
    assert queued.reason == "ann: too short. / bob: too short."
    assert apply_edits(index.answers.get("queued", 1), queued).canonical_narrative == "It is f0 in a.py."
    (spot,) = index.reviews["spot"]
    assert (spot.verdict, spot.lead, len(spot.opinions)) == (ReviewVerdict.CORRECT, "lee", 2)
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
    assert "sample: 2 of 11 records; 2 required by the share, 1 by one of each cell" in result.output
    decide_rest(store)
    result = runner.invoke(
        command_line("golden", "reviewed"), ["golden", "reviewed", str(run), "--db", db, "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    payload = json.loads(result.stdout)
    assert (payload["outcome"], payload["tally"]["n"]) == ("passed", 2)
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
        waiting = ReviewCase(index.status(query_id), Reviewable(query_id, "locate", "easy"), (), may_keep=True)
        shown[query_id] = material_of(index, waiting, source)
    assert shown["q6"].targets == ["a.py", "a.py:5-6"]
    assert (shown["q6"].confidence, shown["q6"].expected_entities[0].role) == ("", "")
    lines = {name: [(each.start, each.end, each.problem) for each in found.sources] for name, found in shown.items()}
    assert lines["q6"] == [(5, 6, "")]
    assert lines["q7"] == [(1, 1, "a.py::lost: the file has no such symbol")]
    assert lines["q8"] == [(1, 800, "500 more lines are not shown.")]


ALONE = "bootstrap-one-person"
HOUR_MS = 3_600_000
LINES = {"failure_mode": "wrong_lines", "edits": [{"field": "canonical_narrative", "before": "b", "after": "a"}]}
BACK = {"disposition": "send_back", "failure_mode": "wrong_target", "hint": "Look at f1."}


class Author:
    """One person with a clock."""

    def __init__(self, folder: Path, source: Path, db: Path) -> None:
        self.run, self.repo, self.now = folder, source, 1_780_000_000_000
        self.store = open_store(db, clock=lambda: self.now)

    def opens(self, profile: str | None = ALONE):
        return make_review_book(self.run, self.repo, self.store, name="r", profile=profile)

    def looks(self, book: str = "r", by: str = "dee", **decisions: tuple[int, str, dict[str, object]]) -> list[str]:
        """At everything that is given; correct, but for what is decided otherwise."""
        number, account, given = self.store.books.get(book).id, self.store.people.local(by).id, []
        self.store.people.join(number, account)
        while found := self.store.queue.next_items(number, account, 1):
            (item,) = found
            assert (item.grade, item.data) == (None, None)
            default = (4, "Not kept.", DROP) if item.query == "blocked" else (1, "", {})
            self.decides(number, item.item_id, account, *decisions.get(item.query, default))
            given.append(item.query)
        return given

    def decides(self, book: int, item: int, account: int, grade: int, reason: str, data: dict[str, object]) -> None:
        key = f"{book} {item} {self.now} {len(self.store.log.events(book))}"
        save = SaveRequest(book, item, account, Action.GRADE, key, grade, reason=reason, data=data or None)
        self.store.log.save(save)
        self.now += 1_000

    def waits(self, hours: float = 24) -> None:
        self.now += round(hours * HOUR_MS)

    def collects(self) -> Collected:
        return collect_reviews(self.run, self.store)

    def report(self):
        return review_of(RunFolder.open(self.run))

    def steps(self) -> str:
        return "\n".join(after_review(self.run, self.collects(), self.report(), "plan"))


@pytest.fixture
def author(run: Path, repo: Path, tmp_path: Path):
    found = Author(run, repo, tmp_path / "alone.db")
    yield found
    found.store.close()


def test_two_looks_a_day_apart_pass_and_the_order_is_another(author: Author) -> None:
    made = author.opens()
    assert (made.second.n_new, made.second.opened, made.is_open) == (0, (), True)
    first = author.looks()
    assert len(first) == 5
    found = author.collects()
    assert (found.n_new, found.undecided, len(found.second.early)) == (0, (), 5)
    report = author.report()
    assert report.outcome is ReviewOutcome.INCOMPLETE
    assert report.missing.startswith("5 of 5 not reviewed twice: ")
    assert "without a decision" not in render_text(review_document(report))
    assert "from 2026-05-" in author.steps()
    author.waits(23.9)
    assert author.opens().second.n_new == 0
    author.waits(0.1)
    assert author.opens(None).second.n_new == 5
    assert "`cranfield judge r-second-look`: 5 records wait for the second look" in author.steps()
    second = author.looks("r-second-look")
    assert (sorted(second), second != first) == (sorted(first), True)
    assert author.collects().n_new == 5
    report = author.report()
    assert (report.outcome, report.n_same, report.n_twice, report.reviewers) == (ReviewOutcome.PASSED, 5, 5, ("dee",))
    assert "the second time without seeing the first decision" in report.reviewed_by
    assert "blind" not in report.reviewed_by
    assert author.steps() == f"`cranfield golden assemble {author.run} --repo DIR`"


def test_each_record_is_due_by_its_own_first_look(author: Author) -> None:
    author.opens()
    book, account = author.store.books.get("r"), author.store.people.local("dee").id
    author.store.people.join(book.id, account)
    (item,) = author.store.queue.next_items(book.id, account, 1)
    author.decides(book.id, item.item_id, account, 3, "Other lines.", DROP)
    author.waits()
    author.looks()
    second = author.opens().second
    assert (second.n_new, second.opened, len(second.early)) == (1, (item.query,), 4)


def test_the_stricter_look_holds_and_the_agreement_says_how_often_they_differ(author: Author) -> None:
    sampled = author.opens().sample.sampled[0]
    edit = {"field": "canonical_narrative", "before": "It is in a.py.", "after": "It is f0 in a.py."}
    minor = (2, "Too short.", {"failure_mode": "narrative", "edits": [edit]})
    author.looks(**{sampled: minor})
    author.waits()
    author.opens()
    author.looks("r-second-look", queued=(4, "Another file.", DROP))
    author.collects()
    index = RunIndex(RunFolder.open(author.run))
    (kept,), (queued,) = index.reviews[sampled], index.reviews["queued"]
    assert (kept.verdict, kept.reason, len(kept.edits), kept.lead) == (ReviewVerdict.MINOR_ISSUE, "Too short.", 1, "")
    assert (queued.verdict, queued.disposition) == (ReviewVerdict.WRONG, Disposition.DROP)
    assert [each.verdict for each in queued.opinions] == [ReviewVerdict.CORRECT, ReviewVerdict.WRONG]
    assert index.status("queued").state is State.DROPPED
    report = author.report()
    assert report.agreement == (
        "the same verdict both times on 3 of 5 records: intra-rater agreement of one person on a later day, "
        "not agreement of two people"
    )


@pytest.mark.parametrize(
    ("first", "second", "holds"),
    [
        ({"verdict": "correct"}, {"verdict": "correct"}, ("correct", "keep", "")),
        ({"verdict": "wrong", **DROP}, {"verdict": "correct"}, ("wrong", "drop", "First.")),
        ({"verdict": "correct"}, {"verdict": "wrong", **DROP}, ("wrong", "drop", "Second.")),
        ({"verdict": "wrong", **DROP}, {"verdict": "wrong", **BACK}, ("wrong", "drop", "First. / Second.")),
        ({"verdict": "wrong", **BACK}, {"verdict": "wrong", **DROP}, ("wrong", "drop", "First. / Second.")),
        (
            {"verdict": "major_issue", **LINES},
            {"verdict": "minor_issue", **DROP},
            ("major_issue", "drop", "First. / Second."),
        ),
        (
            {"verdict": "minor_issue", **BACK},
            {"verdict": "major_issue", **LINES},
            ("major_issue", "send_back", "First. / Second."),
        ),
    ],
)
def test_of_two_looks_the_worse_verdict_and_the_disposition_further_from_keeping_hold(first, second, holds) -> None:
    looks = opinions(first, second)
    found = HumanReview.model_validate(
        both_looks(*looks) | {"query_id": "q", "opinions": looks, "book": "b", "reviewed_at": "x"}
    )
    assert (found.verdict, found.disposition, found.reason) == holds
    assert ("Look at f1." in found.hint) == (BACK.items() <= first.items() or BACK.items() <= second.items())


def edited(field: str, after: str) -> dict[str, object]:
    return {
        "verdict": "minor_issue",
        "failure_mode": "narrative",
        "edits": [{"field": field, "before": "b", "after": after}],
    }


def test_edits_of_both_looks_are_kept_and_of_one_field_those_of_the_stricter_verdict() -> None:
    facts = [{"fact": "f", "citations": []}]
    of_facts = {"field": "must_mention_facts", "before": [], "after": facts}
    one = edited("canonical_narrative", "first")
    other = {**edited("canonical_narrative", "x"), "edits": [of_facts]}
    assert [each["field"] for each in both_looks(*opinions(one, other))["edits"]] == [
        "must_mention_facts",
        "canonical_narrative",
    ]
    both = opinions({**one, "verdict": "major_issue"}, edited("canonical_narrative", "second"))
    assert [each["after"] for each in both_looks(*both)["edits"]] == ["first"]
    both = opinions(one, edited("canonical_narrative", "second"))
    assert [each["after"] for each in both_looks(*both)["edits"]] == ["second"]
    assert fields_of_both(*both) == ("canonical_narrative",)


def test_a_field_that_both_looks_edit_is_named(author: Author) -> None:
    query = author.opens().sample.sampled[0]
    for book, after in (("r", "It is f0 in a.py."), ("r-second-look", "It is f0.")):
        edit = {"field": "canonical_narrative", "before": "It is in a.py.", "after": after}
        author.looks(book, **{query: (2, "Short.", {"failure_mode": "narrative", "edits": [edit]})})
        author.waits()
        author.opens()
    assert author.collects().edited_twice == (f"{query} (canonical_narrative)",)


def opinions(*looks: dict[str, object]) -> list[Opinion]:
    return [
        Opinion(
            reviewer="dee",
            at="2026-11-23T14:05:09Z",
            **{"reason": "" if each["verdict"] == "correct" else reason, **each},
        )
        for each, reason in zip(looks, ("First.", "Second."), strict=True)
    ]


def test_what_is_compared_stays(author: Author) -> None:
    author.opens()
    author.looks()
    author.waits()
    author.opens()
    author.looks("r-second-look")
    author.collects()
    book = author.store.books.get("r-second-look").id
    item = next(each for each in author.store.reading.items(book) if each.query == "queued")
    author.decides(book, item.id, author.store.people.local("dee").id, 4, "After all.", DROP)
    assert author.collects().late == ("queued",)
    assert RunIndex(RunFolder.open(author.run)).reviews["queued"][0].verdict is ReviewVerdict.CORRECT


def test_another_person_does_not_confirm_and_the_hint_asks_again(author: Author, tmp_path: Path) -> None:
    db = tmp_path / "alone.db"
    author.opens()
    author.looks()
    author.waits()
    author.opens()
    author.looks("r-second-look", by="another")
    found = author.collects()
    assert (found.n_new, len(found.unconfirmed)) == (0, 5)
    why = "the first look is by dee, the second by another: the profile requires one person"
    assert set(found.unconfirmed.values()) == {why}
    assert f"`cranfield book reopen r-second-look --query queued`: {why}" in author.steps()
    assert author.report().outcome is ReviewOutcome.INCOMPLETE
    for query in found.unconfirmed:
        arguments = ["book", "reopen", "r-second-look", "--query", query, "--reason", "Of another.", "--db", str(db)]
        assert CliRunner().invoke(command_line("book", "reopen"), arguments).exit_code == 0
    assert len(author.looks("r-second-look")) == 5
    author.collects()
    assert (author.report().outcome, author.report().reviewers) == (ReviewOutcome.PASSED, ("dee",))


def test_a_first_look_that_is_changed_after_the_second_confirms_nothing(author: Author) -> None:
    author.opens()
    author.looks()
    author.waits()
    author.opens()
    author.looks("r-second-look")
    book = author.store.books.get("r").id
    item = next(each for each in author.store.reading.items(book) if each.query == "queued")
    author.decides(book, item.id, author.store.people.local("dee").id, 4, "After all.", DROP)
    found = author.collects()
    assert "queued" in found.unconfirmed
    assert found.unconfirmed["queued"] == "the first look was changed after the second"


def test_a_record_that_could_not_be_judged_waits_for_the_same_person_as_a_lead(author: Author) -> None:
    author.opens()
    book, account = author.store.books.get("r"), author.store.people.local("dee").id
    author.store.people.join(book.id, account)
    (item,) = author.store.queue.next_items(book.id, account, 1)
    skip = SaveRequest(book.id, item.item_id, account, Action.SKIP, "skip it", skip_reason=SkipReason.EXPERT)
    author.store.log.save(skip)
    author.looks()
    assert author.collects().differing == (item.query,)
    assert "`cranfield judge r`, page Adjudicate: 1 record for the same person as a lead" in author.steps()
    data = DROP if item.query == "blocked" else None
    author.store.log.adjudicate(item.item_id, account, 4 if data else 1, "Looked it up.", "final", data=data)
    author.waits()
    assert author.opens().second.n_new == 5
    author.looks("r-second-look")
    author.collects()
    assert author.report().outcome is ReviewOutcome.PASSED


def skips(author: Author, book: str) -> str:
    """The name of a record that cannot be judged."""
    number, account = author.store.books.get(book).id, author.store.people.local("dee").id
    author.store.people.join(number, account)
    (item,) = author.store.queue.next_items(number, account, 1)
    save = SaveRequest(
        number, item.item_id, account, Action.SKIP, f"skip {item.item_id}", skip_reason=SkipReason.EXPERT
    )
    author.store.log.save(save)
    return item.query


def test_a_second_look_that_cannot_be_judged_is_decided_as_a_lead(author: Author) -> None:
    author.opens()
    author.looks()
    author.waits()
    author.opens()
    query = skips(author, "r-second-look")
    author.looks("r-second-look")
    found = author.collects()
    assert (found.n_new, found.second.opened, found.second.skipped) == (4, (), (query,))
    assert author.steps() == (
        "`cranfield judge r-second-look`, page Adjudicate: 1 record for the same person as a lead"
    )
    account, book = author.store.people.local("dee").id, author.store.books.get("r-second-look").id
    item = next(each for each in author.store.reading.items(book) if each.query == query)
    data = DROP if query == "blocked" else None
    author.store.log.adjudicate(item.id, account, 4 if data else 1, "Looked it up.", "final", data=data)
    assert author.collects().n_new == 1
    assert author.report().outcome is ReviewOutcome.PASSED


def test_what_one_of_two_cannot_judge_is_asked_again_once_the_person_is_alone(author: Author, tmp_path: Path) -> None:
    author.opens("bootstrap")
    query = skips(author, "r")
    author.looks()
    author.opens()
    found = author.collects()
    assert (found.undecided, found.differing, found.skipped) == ((), (), (query,))
    assert f"`cranfield book reopen r --query {query}`" in author.steps()
    arguments = ["book", "reopen", "r", "--query", query, "--db", str(tmp_path / "alone.db")]
    assert CliRunner().invoke(command_line("book", "reopen"), arguments).exit_code == 0
    assert author.opens().is_open
    assert author.looks() == [query]


def test_a_book_of_two_that_one_person_has_seen_waits_for_nobody(author: Author) -> None:
    author.opens("bootstrap")
    author.looks()
    assert author.opens("bootstrap").is_open
    assert not author.opens().is_open
    author.waits()
    author.opens()
    author.looks("r-second-look")
    assert not author.opens().is_open


def test_a_record_that_was_sent_back_is_looked_at_twice_again(author: Author) -> None:
    author.opens()
    for book in ("r", "r-second-look"):
        author.looks(book, queued=(3, "It is f1.", BACK))
        author.waits()
        author.opens()
    assert author.collects().sent_back == ("queued",)
    assert f"`cranfield golden run --resume {author.run} --repo DIR`: 1 record sent back" in author.steps()
    with RunFolder.writing(author.run) as folder:
        folder.append(Step.ANSWERS, answer("queued", 2))
        folder.append(Step.AGREEMENTS, agreement("queued", attempt=2))
    assert author.opens().n_new == 1
    assert author.looks() == ["queued"]
    assert author.collects().second.early == ("queued",)
    author.waits()
    assert author.opens().second.n_new == 1
    assert author.looks("r-second-look") == ["queued"]
    author.collects()
    assert author.report().outcome is ReviewOutcome.PASSED


def test_one_person_may_go_on_with_what_was_drawn_for_two(author: Author) -> None:
    drawn = author.opens("bootstrap").sample
    author.looks()
    assert "a single reviewer: `cranfield golden review" in author.steps()
    author.waits()
    with pytest.raises(UsageError, match="drawn for a different profile; expected bootstrap"):
        author.opens("scale-one-person")
    made = author.opens()
    assert (made.sample.sampled, made.second.n_new) == (drawn.sampled, 5)
    author.looks("r-second-look")
    author.collects()
    assert author.report().outcome is ReviewOutcome.PASSED
    with pytest.raises(UsageError, match="already decided"):
        author.opens("bootstrap")


def test_what_two_people_decided_is_not_called_that_of_one(author: Author) -> None:
    author.opens("bootstrap")
    for name in ("dee", "eve"):
        author.looks(by=name)
    assert author.collects().n_new == 5
    with pytest.raises(UsageError, match="already decided; expected bootstrap, got bootstrap-one-person"):
        author.opens()


def test_the_profile_is_that_of_the_plan(author: Author) -> None:
    assert planned_profile(author.run) == "bootstrap"
    models = "".join(f"  {role}: {{model: 'test:{role}'}}\n" for role in ("author", "oracle", "adversary", "judge"))
    text = f"cranfield_plan: 1\nname: p\ntotal: 1\nprofile: {ALONE}\ncells:\n- {{task_type: locate, difficulty: easy, n: 1}}\n"
    (author.run / "plan.yaml").write_text(f"{text}models:\n{models}")
    assert author.opens(None).sample.profile == ALONE


def review(*looks: tuple[str, str]) -> HumanReview:
    opinions = [{"verdict": "correct", "reviewer": name, "at": at} for name, at in looks]
    return HumanReview(query_id="q", verdict="correct", opinions=opinions, book="b", reviewed_at=looks[-1][1])


@pytest.mark.parametrize(
    ("looks", "why"),
    [
        ([("dee", "2026-11-23T14:00:00Z")], "no second look"),
        (
            [("dee", "2026-11-23T14:00:00Z"), ("dee", "2026-11-24T13:59:59Z")],
            "the second look is 23:59:59 (h:mm:ss) after the first; 24 h required",
        ),
        ([("dee", "2026-11-23T14:00:00Z"), ("dee", "2026-11-24T14:00:00Z")], ""),
        (
            [("dee", "2026-11-23T14:00:00Z"), ("eve", "2026-11-25T14:00:00Z")],
            "the first look is by dee, the second by eve: the profile requires one person",
        ),
    ],
)
def test_a_second_look_confirms_a_day_later_by_the_same_person(looks: list[tuple[str, str]], why: str) -> None:
    assert unconfirmed_because(review(*looks), PROFILES[ALONE]) == why


def test_profiles_of_one_person_have_the_bounds_of_two() -> None:
    for name in ("bootstrap", "scale"):
        two, one = PROFILES[name], PROFILES[f"{name}-one-person"]
        assert (one.people, two.people) == (1, 2)
        assert (one.share, one.serious, one.minor, one.batch) == (two.share, two.serious, two.minor, two.batch)


def test_a_name_that_is_stated_is_no_sign_in(tmp_path: Path) -> None:
    store = open_store(tmp_path / "books.db")
    assert store.people.local("dee").id == store.people.local("dee").id != store.people.local().id
    store.people.add("ann", password_hash="x")
    with pytest.raises(UsageError, match="ann signs in with a password"):
        store.people.local("ann")
    with pytest.raises(UsageError, match="taken, or too similar"):
        store.people.local("DEE")
    store.people.of_file("gpt-4", RaterKind.MODEL)
    with pytest.raises(UsageError, match="gpt-4 is not the name of a person; expected the name of a person, got model"):
        store.people.local("gpt-4")
    store.close()


def judges_as(author: Author, tmp_path: Path, name: str):
    arguments = ["judge", "r", "--as", name, "--no-open", "--db", str(tmp_path / "alone.db")]
    return CliRunner().invoke(command_line("judge"), arguments)


def test_who_judges_by_a_name_is_a_member_of_the_book(
    author: Author, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cranfield.workbench.server.run.run_server", lambda *_, **__: None)
    author.opens()
    people, book = author.store.people, author.store.books.get("r").id
    ann = people.of_file("ann", RaterKind.PERSON)
    people.of_file("gpt-4", RaterKind.MODEL)
    assert judges_as(author, tmp_path, "ann").exit_code == 0
    assert people.is_member(book, ann.id)
    people.join(book, ann.id, 3)
    judges_as(author, tmp_path, "ann")
    assert [each.quota for each in people.members(book)] == [3]
    people.add("eve", Role.VIEWER)
    people.set_active(people.add("bob").id, active=False)
    for name, why in (
        ("gpt-4", "is not the name of a person"),
        ("eve", "a viewer cannot judge"),
        ("bob", "bob may not sign in"),
    ):
        refused = judges_as(author, tmp_path, name)
        assert (refused.exit_code, why in refused.output) == (2, True)


def test_a_batch_is_made_again_with_the_feedback_that_there_is(tmp_path: Path) -> None:
    plan = f"`cranfield golden run {tmp_path}/plan.yaml --repo DIR"
    assert after_breach(tmp_path, "plan") == f"{plan}` creates the batch again"
    (tmp_path / "review_feedback.jsonl").touch()
    assert (
        after_breach(tmp_path, "plan") == f"{plan} --feedback {tmp_path}/review_feedback.jsonl` creates the batch again"
    )


def test_the_command_says_who_reviews_and_what_is_next(author: Author, tmp_path: Path) -> None:
    db = str(tmp_path / "alone.db")
    arguments = ["golden", "review", str(author.run), "--repo", str(author.repo), "--book", "r", "--db", db]
    result = CliRunner().invoke(command_line("golden", "review"), [*arguments, "--profile", ALONE])
    assert result.exit_code == 0, result.output
    for text in (
        "book r: 5 new records for one reviewer, the first look",
        "book r-second-look: 0 new records, the second look",
        f"next: `cranfield judge r --db {db}`",
    ):
        assert text in result.output
    reviewed = CliRunner().invoke(
        command_line("golden", "reviewed"), ["golden", "reviewed", str(author.run), "--db", db]
    )
    assert any(line.startswith(f"- `cranfield judge r --db {db}`:") for line in reviewed.stdout.splitlines())
    two = people_steps(author.run, PROFILES["bootstrap"], "my book", db=" --db x.db")
    for command in ("judge 'my book' --as NAME", "people add NAME", "serve --accounts", "golden review"):
        assert re.search(f"`cranfield {command}[^`]* --db x.db`|`cranfield {command} --db x.db`", " ".join(two)), (
            command
        )
    assert "secret" not in _db_option("postgresql://u:secret@host/db")
    other = CliRunner().invoke(command_line("golden", "review"), [*arguments, "--profile", "solo"])
    assert "bootstrap-one-person" in other.output
