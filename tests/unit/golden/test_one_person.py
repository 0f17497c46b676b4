"""One person alone reviews: two looks at a record a day apart, and what is said of it everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cranfield.cli.golden.review import _db_option
from cranfield.cli.main import command_line
from cranfield.errors import UsageError
from cranfield.golden.batch_review import planned_profile, review_of
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.index import RunIndex
from cranfield.golden.records import HumanReview, Opinion
from cranfield.golden.review import PROFILES, ReviewOutcome, unconfirmed_because
from cranfield.golden.states import State
from cranfield.judging.store.database import open_store
from cranfield.judging.store.schema import Action, RaterKind, Role, SkipReason
from cranfield.judging.store.values import SaveRequest
from cranfield.model.review import Disposition, Verdict
from cranfield.project.golden_next import after_breach, after_review, people_steps
from cranfield.project.golden_review import Collected, collect_reviews, make_review_book
from cranfield.project.golden_second_look import both_looks, fields_of_both
from cranfield.reporting.documents.golden_review import review_document
from cranfield.reporting.renderers.text import render_text

from .test_review_book import agreement, answer, repo, run  # noqa: F401 - fixtures

ALONE = "bootstrap-one-person"
HOUR_MS = 3_600_000
DROP = {"disposition": "drop", "failure_mode": "wrong_target"}
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
def author(run: Path, repo: Path, tmp_path: Path):  # noqa: F811
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
    assert report.missing.startswith("5 of 5 not looked at twice: ")
    assert "without a decision" not in render_text(review_document("r", report))
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
    assert "the second time on a page that does not show the first decision" in report.who
    assert "blind" not in report.who
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
    assert (kept.verdict, kept.reason, len(kept.edits), kept.lead) == (Verdict.MINOR_ISSUE, "Too short.", 1, "")
    assert (queued.verdict, queued.disposition) == (Verdict.WRONG, Disposition.DROP)
    assert [each.verdict for each in queued.opinions] == [Verdict.CORRECT, Verdict.WRONG]
    assert index.status("queued").state is State.DROPPED
    report = author.report()
    assert report.agreement == (
        "the same verdict both times on 3 of 5 records: agreement of one person with themselves on a later day "
        "(intra-rater), not of two people"
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
    assert RunIndex(RunFolder.open(author.run)).reviews["queued"][0].verdict is Verdict.CORRECT


def test_another_person_does_not_confirm_and_the_hint_asks_again(author: Author, tmp_path: Path) -> None:
    db = tmp_path / "alone.db"
    author.opens()
    author.looks()
    author.waits()
    author.opens()
    author.looks("r-second-look", by="another")
    found = author.collects()
    assert (found.n_new, len(found.unconfirmed)) == (0, 5)
    why = "the first look is by dee, the second by another: one person is needed"
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
    assert found.unconfirmed["queued"] == "the first look was changed after the second one"


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
    assert "one person alone: `cranfield golden review" in author.steps()
    author.waits()
    with pytest.raises(UsageError, match="drawn for another profile; expected bootstrap"):
        author.opens("scale-one-person")
    made = author.opens()
    assert (made.sample.sampled, made.second.n_new) == (drawn.sampled, 5)
    author.looks("r-second-look")
    author.collects()
    assert author.report().outcome is ReviewOutcome.PASSED
    with pytest.raises(UsageError, match="decided already"):
        author.opens("bootstrap")


def test_what_two_people_decided_is_not_called_that_of_one(author: Author) -> None:
    author.opens("bootstrap")
    for name in ("dee", "eve"):
        author.looks(by=name)
    assert author.collects().n_new == 5
    with pytest.raises(UsageError, match="decided already; expected bootstrap, got bootstrap-one-person"):
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
            "the second look is 23:59:59 (h:mm:ss) after the first, and 24 h are needed",
        ),
        ([("dee", "2026-11-23T14:00:00Z"), ("dee", "2026-11-24T14:00:00Z")], ""),
        (
            [("dee", "2026-11-23T14:00:00Z"), ("eve", "2026-11-25T14:00:00Z")],
            "the first look is by dee, the second by eve: one person is needed",
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
    with pytest.raises(UsageError, match="taken, or looks like"):
        store.people.local("DEE")
    store.people.of_file("gpt-4", RaterKind.MODEL)
    with pytest.raises(UsageError, match="gpt-4 names no person; expected the name of a person, got model"):
        store.people.local("gpt-4")
    store.close()


def judges_as(author: Author, tmp_path: Path, name: str):
    arguments = ["judge", "r", "--as", name, "--no-open", "--db", str(tmp_path / "alone.db")]
    return CliRunner().invoke(command_line("judge"), arguments)


def test_who_judges_by_a_name_is_a_member_of_the_book(
    author: Author, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cranfield.server.run.run_server", lambda *_, **__: None)
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
        ("gpt-4", "names no person"),
        ("eve", "a viewer does not judge"),
        ("bob", "bob may not sign in"),
    ):
        refused = judges_as(author, tmp_path, name)
        assert (refused.exit_code, why in refused.output) == (2, True)


def test_a_batch_is_made_again_with_the_feedback_that_there_is(tmp_path: Path) -> None:
    plan = f"`cranfield golden run {tmp_path}/plan.yaml --repo DIR"
    assert after_breach(tmp_path, "plan") == f"{plan}` makes the batch again"
    (tmp_path / "review_feedback.jsonl").touch()
    assert (
        after_breach(tmp_path, "plan") == f"{plan} --feedback {tmp_path}/review_feedback.jsonl` makes the batch again"
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
