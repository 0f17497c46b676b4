"""Review golden sets: books for the first and the second look, and the next step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cranfield.agents.recording import PLAN
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.words import command_word, count_noun
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.review import EDITED_FIELDS, VERDICTS, ReviewMaterial, SourceLines, data_of, review_settings
from cranfield.books.settings import Mode
from cranfield.books.store.schema import Action, ItemState, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import BookInfo, ItemView, RatingRow
from cranfield.formats.io.files import shown
from cranfield.golden.batch import (
    FEEDBACK,
    ReviewCase,
    drawn_sample,
    merged,
    next_sample,
    planned_profile,
    read_sample,
    review_of,
    waiting_records,
)
from cranfield.golden.index import RecordStatus, RunFolder, RunIndex, Step
from cranfield.golden.outcomes import RecordFinding, Rejection
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import CitedLines, HumanReview, Opinion, OracleAnswer
from cranfield.golden.review import (
    HOURS,
    LATER,
    ONE_PERSON,
    PROFILES,
    ReviewOutcome,
    ReviewProfile,
    ReviewReport,
    Sample,
    unconfirmed_because,
)
from cranfield.golden.states import PLANNED, STATES, State
from cranfield.model.judging import Disposition, ReviewVerdict
from cranfield.ranking.matching.place import ENTITY_MARK
from cranfield.repo.snapshot import Snapshot, snapshot_digest, take

SECOND_GUIDELINE = f"""\
This is the second look, at least {LATER // timedelta(hours=1)} hours after the first and by the same person. The first decision
is not shown, and the order is new.

- Decide as if you saw each record for the first time.
"""
_VERDICTS, _DISPOSITIONS = tuple(ReviewVerdict), (Disposition.KEEP, Disposition.SEND_BACK, Disposition.DROP)


def opinions_of(item: ItemView) -> list[Opinion]:
    """What reviewers decided of a record, in the order in which they did."""
    rows = [row for row in item.ratings if row.kind is RaterKind.PERSON and row.action is Action.GRADE]
    return [_opinion(row, row.rater, row.at, row.grade, row.reason) for row in rows]


def looks(item: ItemView) -> list[Opinion]:
    """The same of one person, who may have decided as a lead what he or she did not review."""
    if item.final is None:
        return opinions_of(item)
    return [_opinion(item, item.final_by or "", item.final_at or 0, item.final, item.final_reason)]


def _opinion(row: RatingRow | ItemView, reviewer: str, at: int, grade: float | None, reason: str) -> Opinion:
    decided = {"verdict": VERDICTS[grade or 0], "reason": reason, "reviewer": reviewer, "at": time_text(at)}
    return Opinion.model_validate(data_of(row).model_dump(mode="json") | decided)


def time_text(at: int) -> str:
    """Milliseconds since 1970 as `2026-11-23T14:05:09Z`."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def confirmed_review(first: ItemView, second: ItemView, book: str) -> HumanReview | None:
    """What both looks of one person come to; None where one is missing."""
    later, earlier = looks(second)[:1], looks(first)
    same = [each for each in earlier if later and each.reviewer == later[0].reviewer]
    opinions = [*(same or earlier)[:1], *later]
    if len(opinions) < 2:
        return None
    about = {"query_id": first.query, "attempt": attempt_of(first), "book": book}
    return HumanReview.model_validate(
        both_looks(*opinions) | about | {"opinions": opinions, "reviewed_at": later[0].at}
    )


def attempt_of(item: ItemView) -> int:
    """Attempt of the oracle that is reviewed."""
    return int(item.doc.removeprefix("attempt "))


def both_looks(first: Opinion, second: Opinion) -> dict[str, Any]:
    """The decision that two looks come to: the worse verdict, what is further from keeping, and the edits, reasons and hints of both.

    Of a field that both edit, the text of the look with the worse verdict holds; of two alike, that of the second.
    """
    worse, other = (
        (first, second) if _VERDICTS.index(first.verdict) > _VERDICTS.index(second.verdict) else (second, first)
    )
    edits = {edit.field: edit for edit in (*other.edits, *worse.edits)}
    texts = {
        name: " / ".join(dict.fromkeys(filter(None, (getattr(each, name) for each in (first, second)))))
        for name in ("reason", "hint")
    }
    holds = {
        "disposition": max(first.disposition, second.disposition, key=_DISPOSITIONS.index),
        "edits": [edits[name].model_dump(mode="json") for name in EDITED_FIELDS if name in edits],
    }
    return worse.model_dump(mode="json", exclude={"reviewer", "at"}) | texts | holds


def fields_of_both(first: Opinion, second: Opinion) -> tuple[str, ...]:
    """The fields that two looks edit, each to another text: of these only one holds."""
    before = {edit.field: edit.after for edit in first.edits}
    return tuple(edit.field for edit in second.edits if before.get(edit.field, edit.after) != edit.after)


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What a run waits for that one person reviews."""

    book: str
    """Its name, whether it is there or not."""
    opened: tuple[str, ...] = ()
    """Records that are in the book, and wait there for the person."""
    skipped: tuple[str, ...] = ()
    """Records that the person could not judge there, and decides as a lead."""
    due: tuple[str, ...] = ()
    """Records whose first look is `LATER` ago, and which are not in the book yet."""
    early: tuple[str, ...] = ()
    """Records whose first look is less than that ago."""
    due_at: str = ""
    """When the last of these is due; empty where there are none."""
    n_new: int = 0
    """Records that were added to the book now."""


def second_items(store: Store, first: str) -> dict[tuple[str, str], ItemView]:
    """The items of the second look by query and document; none where the book is not there yet."""
    try:
        book = store.books.get(_name(first))
    except UnknownNameError:
        return {}
    return {(item.query, item.doc): item for item in store.reading.items(book.id)}


def second_look(store: Store, book: BookInfo) -> SecondLook:
    """Where the second look stands of what is in the book of the first one."""
    return _sorted(store, book)[0]


def open_second_look(store: Store, book: BookInfo, seed: int) -> SecondLook:
    """Put what is due into the book of the second look, which is made where there is none.

    Raises:
        UsageError: there is a book of this name of something else.
    """
    waits, due = _sorted(store, book)
    if not due:
        return waits
    queries = {item.query: PooledQuery(id=item.query, text=item.query_text) for item in due}
    items = tuple(PooledItem(query=item.query, doc=item.doc, fields=item.fields) for item in due)
    pool = Pool(name=waits.book, method="depth", depth=1, runs=(), queries=tuple(queries.values()), items=items)
    try:
        store.books.add_pool(store.books.get(waits.book).id, pool)
    except UnknownNameError:
        store.books.create(waits.book, pool, review_settings(1, seed + 1), guideline=SECOND_GUIDELINE)
    return replace(waits, opened=(*waits.opened, *waits.due), due=(), n_new=len(due))


def _sorted(store: Store, book: BookInfo) -> tuple[SecondLook, list[ItemView]]:
    """Where the second look stands, and the items that are due."""
    there, now = second_items(store, book.name), datetime.fromtimestamp(store.clock() / 1000, UTC)
    looked = [
        (item, datetime.fromisoformat(found[0].at) + LATER)
        for item in store.reading.items(book.id)
        if (item.query, item.doc) not in there and (found := looks(item))
    ]
    due = [item for item, at in looked if at <= now]
    last = max((at for _, at in looked if at > now), default=None)
    waits = SecondLook(
        _name(book.name),
        opened=tuple(each.query for each in there.values() if each.state is ItemState.OPEN),
        skipped=tuple(each.query for each in there.values() if each.state is ItemState.ADJUDICATE),
        due=tuple(item.query for item in due),
        early=tuple(item.query for item, at in looked if at > now),
        due_at="" if last is None else f"{last:%Y-%m-%dT%H:%M:%SZ}",
    )
    return waits, due


def _name(first: str) -> str:
    return f"{first}-second-look"


NEAR = 5
"""Lines between two cited places that are shown as well."""
MAX_LINES = 300
"""Most lines of one place."""
_SKIPPED = "skipped"
GUIDELINE = """\
Read the question, the answer and the cited lines.

- The verdict applies to the record before your edits.
- Edit facts and narrative if that repairs the record. Send back or drop a wrong record.
- Describe the problem so that an author who has not seen the record understands it.
"""


@dataclass(frozen=True, slots=True)
class MadeBook:
    """A book of reviews."""

    book: BookInfo
    sample: Sample
    n_new: int
    """Records that were added to it."""
    second: SecondLook | None = None
    """Second look, for a profile of one person."""
    is_open: bool = True
    """Whether a record of the book waits for a reviewer."""


def make_review_book(
    run: Path, repo: Path, store: Store, *, name: str | None = None, profile: str | None = None, seed: int | None = None
) -> MadeBook:
    """Draw the sample of a run, and make the book of everything that people see of it.

    Once there is a sample it stays; records that came back from the oracle since are added to the book. Where one person
    reviews, those that he or she looked at a day ago are put into the book of the second look.

    Args:
        run: folder of a finished run.
        repo: its repository; the lines are those of the run's commit.
        store: database of books.
        name: of the book; None: that of the folder.
        profile: a name of `PROFILES`; None: that of the sample, or of the plan.
        seed: of the sample; None: that of the run.

    Raises:
        UsageError: the run is not finished, the files have changed, there is a book of this name of something else, or the
            profile is another one than that by which records were decided.
        UnknownNameError: no such profile.
    """
    if profile is not None and profile not in PROFILES:
        raise UnknownNameError.among("profile", profile, PROFILES)
    with RunFolder.writing(run) as folder:
        index, manifest = RunIndex(folder), folder.manifest
        waiting = {each.reviewable.query_id: each for each in waiting_records(index)}
        samples = folder.read(Step.REVIEW_SAMPLES, Sample)
        wanted = profile or (samples[-1].profile if samples else planned_profile(run))
        if samples and wanted != (before := samples[-1].profile) and index.reviews:
            raise UsageError("records of this run are already decided", path=shown(run), expected=before, got=wanted)
        sample = next_sample(samples, list(waiting.values()), wanted, manifest.seed if seed is None else seed)
        snapshot = take(repo, manifest.commit or None)
        if not manifest.commit and snapshot_digest(snapshot) != manifest.snapshot_digest:
            raise UsageError("the files differ from those that the run read", path=shown(repo))
        shown_ones = [waiting[query_id] for query_id in sample.to_review]
        name = (samples[0].book if samples else name) or run.resolve().name
        pool = _pool(name, manifest.snapshot_digest, index, shown_ones, ParsedSource(snapshot))
        if not samples and not shown_ones:
            raise UsageError("no record of this run has an answer to review", path=shown(run))
        people = PROFILES[sample.profile].people
        book, n_new = _stored(store, name, pool, people, sample.seed)
        if not samples or shown_ones or sample.profile != samples[-1].profile:
            folder.append(Step.REVIEW_SAMPLES, sample.model_copy(update={"book": name}))
        second = open_second_look(store, book, sample.seed) if people == 1 else None
        waits = (_waiting_for(item, is_alone=people == 1) for item in store.reading.items(book.id))
        is_open = ItemState.OPEN in waits
        return MadeBook(book, merged(folder.read(Step.REVIEW_SAMPLES, Sample)), n_new, second, is_open)


def _stored(store: Store, name: str, pool: Pool, reviewers: int, seed: int) -> tuple[BookInfo, int]:
    """The book with the items of a pool: a new one, or that of the same run."""
    try:
        book = store.books.get(name)
    except UnknownNameError:
        book = store.books.create(name, pool, review_settings(reviewers, seed), guideline=GUIDELINE)
        return book, book.n_items
    if book.settings.mode is not Mode.REVIEW or book.source.get("runs") != [run.model_dump() for run in pool.runs]:
        raise UsageError(f"a different book {name} already exists", hint="choose another name")
    return book, store.books.add_pool(book.id, pool)


def _pool(name: str, digest: str, index: RunIndex, records: Iterable[ReviewCase], source: ParsedSource) -> Pool:
    queries, items = {}, []
    for each in records:
        query_id, attempt = each.reviewable.query_id, each.status.attempt
        candidate = index.candidates[query_id]
        strata: dict[str, str] = {"task_type": candidate.task_type, "difficulty": candidate.difficulty}
        queries[query_id] = PooledQuery(id=query_id, text=candidate.query_text, strata=strata)
        material = material_of(index, each, source)
        items.append(PooledItem(query=query_id, doc=f"attempt {attempt}", fields=material.model_dump(mode="json")))
    runs = (PooledRun(name=index.folder.path.resolve().name, digest=digest),)
    return Pool(name=name, method="depth", depth=1, runs=runs, queries=tuple(queries.values()), items=tuple(items))


def material_of(index: RunIndex, waiting: ReviewCase, source: ParsedSource) -> ReviewMaterial:
    """A record as its reviewers see it. No model is named."""
    query_id, attempt = waiting.reviewable.query_id, waiting.status.attempt
    candidate, answer = index.candidates[query_id], index.answers[query_id, attempt]
    report, agreement = index.reports.get(query_id, attempt), index.agreements.get(query_id, attempt)
    cited = [each.citation for each in report.claim_verdicts if each.citation] if report else []
    same = {"task_type", "difficulty", "expected_entities", "expected_files", "expected_line_ranges", "confidence"}
    same |= {"must_mention_facts", "must_not_mention_facts", "canonical_narrative"}
    spans = [f"{each.file}:{each.start}-{each.end}" for each in candidate.target_spans]
    return ReviewMaterial.model_validate(
        answer.model_dump(mode="json", include=same, exclude_none=True)  # what an existing set does not say
        | {
            "difficulty_rationale": candidate.difficulty_rationale,
            "targets": [*candidate.target_entity_ids, *candidate.target_files, *spans],
            "uncertainty_notes": answer.uncertainty_notes or "",
            "reasons": list(waiting.messages),
            "may_keep": waiting.may_keep,
            "claims": [each.model_dump(mode="json") for each in report.claim_verdicts] if report else [],
            "findings": report.findings if report else "",
            "missing": [*agreement.missing_entities, *agreement.missing_files] if agreement else [],
            "sources": [each.model_dump() for each in _sources(answer, cited, source)],
            "commit": index.folder.manifest.commit,
        }
    )


def _sources(answer: OracleAnswer, more: Iterable[CitedLines], source: ParsedSource) -> list[SourceLines]:
    """The lines that a record cites; of one that cites none, those of what it expects."""
    facts = [*answer.must_mention_facts, *answer.must_not_mention_facts]
    places = [*answer.expected_line_ranges, *(place for fact in facts for place in fact.citations)]
    places = places or [*answer.source_evidence]
    problems = []
    if not places:
        ids = [each.entity_id for each in answer.expected_entities]
        found = [(each.partition(ENTITY_MARK)[0], *lines) for each in ids for lines in source.ranges(each)]
        wrong = [(each, problem) for each in ids if (problem := source.entity_problem(each))]
        problems = [
            SourceLines(file=each.partition(ENTITY_MARK)[0], start=1, end=1, problem=why) for each, why in wrong
        ]
        if not ids:
            found = [(path, 1, max(1, len(source.lines(path) or ()))) for path in answer.expected_files]
        places = [CitedLines(file=file, start=start, end=end) for file, start, end in found]
    return [*cited_lines([*places, *more], source.snapshot), *problems]


def cited_lines(places: Iterable[CitedLines], snapshot: Snapshot) -> list[SourceLines]:
    """The lines of the places, file by file; places that are near each other are one."""
    ranges: dict[str, list[list[int]]] = defaultdict(list)
    for place in sorted(places, key=lambda each: (each.start, each.end)):
        of_file = ranges[place.file]
        if of_file and place.start <= of_file[-1][1] + NEAR:
            of_file[-1][1] = max(of_file[-1][1], place.end)
        else:
            of_file.append([place.start, place.end])
    return [_lines(file, start, end, snapshot) for file in sorted(ranges) for start, end in ranges[file]]


def _lines(file: str, start: int, end: int, snapshot: Snapshot) -> SourceLines:
    text = snapshot.text(file)
    if text is None:
        return SourceLines(file=file, start=start, end=end, problem="This file is not in the snapshot, or is not text.")
    lines = text.removesuffix("\n").split("\n")
    if start > len(lines):
        problem = f"The file has {len(lines):,} lines, so lines {start}-{end} do not exist."
        return SourceLines(file=file, start=start, end=end, problem=problem)
    part = lines[start - 1 : min(end, start - 1 + MAX_LINES)]
    more = min(end, len(lines)) - (start - 1) - len(part)
    plain = "\n".join(part).replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return SourceLines(
        file=file, start=start, end=end, text=plain, problem=f"{more:,} more lines are not shown." if more > 0 else ""
    )


@dataclass(frozen=True, slots=True)
class Collected:
    """What came back from a book."""

    book: str
    n_new: int
    """Decisions that were not in the run folder yet."""
    undecided: tuple[str, ...]
    """Records that wait for a reviewer."""
    differing: tuple[str, ...]
    """Records that wait for a lead."""
    skipped: tuple[str, ...]
    """Records of a book for two, which the one person who reviews could not judge: no other reviewer is asked."""
    late: tuple[str, ...]
    """Changed after they were sent back or dropped, or after both looks of one person were compared: that stays as it is."""
    edited_twice: tuple[str, ...] = ()
    """Records kept with a field that both looks edited, each to another text; with the field."""
    second: SecondLook | None = None
    """Second look, for a profile of one person."""
    unconfirmed: Mapping[str, str] = field(default_factory=dict)
    """Records whose second look confirms nothing, and why."""
    sent_back: tuple[str, ...] = ()
    """Records that wait for a step of the run again."""


def collect_reviews(run: Path, store: Store) -> Collected:
    """Write the decisions of a book into the run folder, each once: `human_reviews.jsonl`, and `05_rejected.jsonl` of what is dropped.

    Raises:
        UsageError: no record of the run was given to people.
    """
    with RunFolder.writing(run) as folder:
        sample = drawn_sample(folder)
        index, book = RunIndex(folder), store.books.get(sample.book)
        before = {(each.query_id, each.attempt): each for lines in index.reviews.values() for each in lines}
        profile, unconfirmed = PROFILES[sample.profile], dict[str, str]()
        is_alone = profile.people == 1
        again = second_items(store, book.name) if is_alone else {}
        n_new, late, waits = 0, [], defaultdict[str, list[str]](list)
        for item in store.reading.items(book.id):
            review = _decided(item, again.get((item.query, item.doc)), book.name, is_alone=is_alone)
            if review is None:
                waits[_waiting_for(item, is_alone=is_alone)].append(item.query)
                continue
            if is_alone and (why := unconfirmed_because(review, profile)):
                unconfirmed[item.query] = why
                continue
            old = before.get((review.query_id, review.attempt))
            if old is not None and old != review and (is_alone or old.disposition is not Disposition.KEEP):
                late.append(item.query)
            elif old != review:
                folder.append(Step.HUMAN_REVIEWS, review)
                n_new += 1
                old = review
            if old.disposition is Disposition.DROP and (old.query_id, old.attempt) not in index.dropped:
                folder.append(Step.REJECTED, _dropped(old))
        index = RunIndex(folder)
        return Collected(
            book.name,
            n_new,
            tuple(waits[ItemState.OPEN]),
            tuple(waits[ItemState.ADJUDICATE]),
            tuple(waits[_SKIPPED]),
            tuple(late),
            edited_twice=tuple(_edited_twice(index)) if is_alone else (),
            second=second_look(store, book) if is_alone else None,
            unconfirmed=unconfirmed,
            sent_back=tuple(each.query_id for each in index.statuses() if not STATES[each.state].is_end),
        )


def _waiting_for(item: ItemView, *, is_alone: bool) -> str:
    """What a record without a review waits for: a state of its item, that no reviewer is left to ask, or empty: the second look."""
    if is_alone and looks(item):
        return ""
    actions = {row.action for row in item.ratings if row.kind is RaterKind.PERSON}
    return _SKIPPED if is_alone and item.state is ItemState.OPEN and actions == {Action.SKIP} else item.state


def _edited_twice(index: RunIndex) -> Iterator[str]:
    for query_id, lines in index.reviews.items():
        for each in lines:
            fields = fields_of_both(*each.opinions[:2]) if each.disposition is Disposition.KEEP else ()
            if fields:
                yield f"{query_id} ({', '.join(fields)})"


def _decided(item: ItemView, again: ItemView | None, book: str, *, is_alone: bool) -> HumanReview | None:
    """What was decided of a record; None while a reviewer, or the second look, is waited for."""
    if is_alone:
        return None if again is None else confirmed_review(item, again, book)
    return human_review(item, book) if item.state in {ItemState.DONE, ItemState.ADJUDICATED} else None


def _dropped(review: HumanReview) -> Rejection:
    kind = review.failure_mode.value if review.failure_mode else review.verdict.value
    return Rejection(
        query_id=review.query_id,
        attempt=review.attempt,
        at=review.reviewed_at,
        state=State.DROPPED,
        reasons=(RecordFinding(kind=kind, message=review.reason),),
    )


def human_review(item: ItemView, book: str) -> HumanReview:
    """The decision that holds of an item: that of the lead, or the one that all reviewers gave."""
    opinions = opinions_of(item)
    if item.final is not None:
        decision = {"verdict": VERDICTS[item.final], "reason": item.final_reason} | data_of(item).model_dump(
            mode="json"
        )
    else:
        first = opinions[0]
        decision = first.model_dump(mode="json", exclude={"reviewer", "at"})
        for field in ("reason", "hint"):
            decision[field] = " / ".join(dict.fromkeys(filter(None, (getattr(each, field) for each in opinions))))
    at = (
        max((each.at for each in opinions), default=time_text(0)) if item.final_at is None else time_text(item.final_at)
    )
    return HumanReview.model_validate(
        decision
        | {
            "query_id": item.query,
            "attempt": attempt_of(item),
            "opinions": opinions,
            "lead": item.final_by or "",
            "book": book,
            "reviewed_at": at,
        }
    )


UNKNOWN = "DIR"
"""For a folder of the repository that the command was not given."""


def after_run(run: Path, statuses: Sequence[RecordStatus], repo: Path | str = UNKNOWN) -> str:
    """Next step of a run: resume it, or let people review it, after which no reply is asked for again."""
    review = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}`"
    resume = f"`cranfield golden run --resume {command_word(run)} --repo {command_word(repo)}`"
    if not all(STATES[each.state].is_end for each in statuses):
        return resume
    n_unreadable = sum(each.is_unreadable for each in statuses)
    if not any(STATES[each.state].fills_cell or STATES[each.state].with_person for each in statuses):
        review = f"no record can be reviewed: `cranfield golden status {command_word(run)}` shows why"
    if not n_unreadable or (run / Step.REVIEW_SAMPLES).is_file():
        return review
    records = f"{count_noun(n_unreadable, 'records')} without a readable reply again, if their cells are not full"
    return f"{resume} requests {records}; or {review}, after which nothing is requested again"


def after_status(folder: RunFolder, statuses: Sequence[RecordStatus]) -> str:
    """Next step of a run as it stands: as `after_run`; with a sample, what the review says; once passed, the set."""
    if read_sample(folder) is None or not all(STATES[each.state].is_end for each in statuses):
        return after_run(folder.path, statuses)
    if review_of(folder).outcome is ReviewOutcome.PASSED:
        return f"`cranfield golden assemble {command_word(folder.path)} --repo {UNKNOWN}`"
    return f"`cranfield golden reviewed {command_word(folder.path)}`"


def after_breach(run: Path, source: str, repo: Path | str = UNKNOWN) -> str:
    """Next step of a batch with too many defects: the whole of it is made again."""
    if source == PLANNED:
        given = f" --feedback {command_word(run / FEEDBACK)}" if (run / FEEDBACK).is_file() else ""
        return (
            f"`cranfield golden run {command_word(run / PLAN)} --repo {command_word(repo)}{given}` creates the "
            "batch again"
        )
    return f"correct the set, then `cranfield golden enter SET --repo {command_word(repo)}` enters it again"


def after_review(run: Path, found: Collected, report: ReviewReport, source: str, db: str = "") -> tuple[str, ...]:
    """Next steps after a review, in their order.

    Args:
        run: folder of the run.
        found: what came back from the books.
        report: what it comes to.
        source: of the records: `plan`, or the name of an existing set.
        db: option of the commands over books, with a space before it; empty: they are in the default database.
    """
    steps = []
    if found.sent_back:
        n = count_noun(len(found.sent_back), "records")
        steps.append(
            f"`cranfield golden run --resume {command_word(run)} --repo {UNKNOWN}`: {n} sent back to the oracle"
        )
        steps.append(f"then `cranfield golden review {command_word(run)} --repo {UNKNOWN}{db}` adds them to the book")
    if report.outcome is ReviewOutcome.BREACHED:
        return (*steps, after_breach(run, source))
    if found.undecided:
        steps += _to_judge(found.book, len(found.undecided), "a reviewer", db)
        steps += people_steps(run, report.rules, found.book, db=db)
    who = "the same person as a lead" if found.second else "a lead who did not review them"
    steps += _to_lead(found.book, len(found.differing), who, db)
    for name in found.skipped:
        again = f"`cranfield book reopen {command_word(found.book)} --query {command_word(name)}{db}`"
        steps.append(f"{again}: no other reviewer can judge it; then decide on it")
    if found.second is not None:
        steps += second_look_steps(run, found.second, found.unconfirmed, db=db)
    if not steps and report.outcome is ReviewOutcome.PASSED:
        steps.append(f"`cranfield golden assemble {command_word(run)} --repo {UNKNOWN}`")
    return tuple(steps)


def _to_judge(book: str, n: int, what: str, db: str) -> list[str]:
    """The page of a book, where so many records wait."""
    wait = "waits" if n == 1 else "wait"
    return [f"`cranfield judge {command_word(book)}{db}`: {count_noun(n, 'records')} {wait} for {what}"] if n else []


def _to_lead(book: str, n: int, who: str, db: str) -> list[str]:
    """The page of a book on which a lead decides so many records."""
    return (
        [f"`cranfield judge {command_word(book)}{db}`, page Adjudicate: {count_noun(n, 'records')} for {who}"]
        if n
        else []
    )


def second_look_steps(
    run: Path,
    second: SecondLook,
    unconfirmed: Mapping[str, str] = MappingProxyType({}),
    repo: Path | str = UNKNOWN,
    db: str = "",
) -> list[str]:
    """Next steps of the second look of one person."""
    steps = _to_judge(second.book, len(second.opened), "the second look", db)
    steps += _to_lead(second.book, len(second.skipped), "the same person as a lead", db)
    again = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)}{db}`"
    if second.due:
        steps.append(f"{again}: the second look at {count_noun(len(second.due), 'records')} is due")
    if second.early:
        n = count_noun(len(second.early), "records")
        steps.append(f"from {second.due_at} on, {again}: the second look at {n}, {HOURS} after the first")
    for name, why in unconfirmed.items():
        steps.append(f"`cranfield book reopen {command_word(second.book)} --query {command_word(name)}{db}`: {why}")
    return steps


def people_steps(run: Path, profile: ReviewProfile, book: str, repo: Path | str = UNKNOWN, db: str = "") -> list[str]:
    """Under which names two people review, and what one person alone does; nothing of a profile of one person."""
    if profile.people == 1:
        return []
    profile_name = f"{profile.name}-{ONE_PERSON}"
    alone = f"`cranfield golden review {command_word(run)} --repo {command_word(repo)} --profile {profile_name}{db}`"
    return [
        (
            "two people review, each under a name (not verified): "
            f"`cranfield judge {command_word(book)} --as NAME{db}` on this machine; "
            f"or by accounts, `cranfield people add NAME{db}` and `cranfield serve --accounts{db}`"
        ),
        f"a single reviewer: {alone}, with a second review of each record a day later",
    ]
