"""Review of a golden run by people: its book in the workbench, and the decisions that come back from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cranfield.errors import UnknownNameError, UsageError
from cranfield.formats.io.files import shown
from cranfield.golden.batch_review import (
    Waiting,
    drawn_sample,
    merged,
    next_sample,
    planned_profile,
    waiting_records,
)
from cranfield.golden.folder import RunFolder, Step
from cranfield.golden.index import RunIndex
from cranfield.golden.outcomes import Finding, Rejection
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import CitedLines, HumanReview, OracleAnswer
from cranfield.golden.review import PROFILES, Sample, unconfirmed_because
from cranfield.golden.states import STATES, State
from cranfield.judging.pools.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.judging.review import VERDICTS, ReviewMaterial, SourceLines, data_of, review_settings
from cranfield.judging.settings import Mode
from cranfield.judging.store.schema import Action, ItemState, RaterKind
from cranfield.judging.store.store import Store
from cranfield.judging.store.values import BookInfo, ItemView
from cranfield.matching.place import ENTITY_MARK
from cranfield.model.review import Disposition
from cranfield.project.golden_second_look import (
    SecondLook,
    attempt_of,
    confirmed_review,
    fields_of_both,
    looks,
    open_second_look,
    opinions_of,
    second_items,
    second_look,
    time_text,
)
from cranfield.repo.snapshot import Snapshot, snapshot_digest, take

NEAR = 5
"""Lines between two cited places that are shown as well."""
MOST_LINES = 300
"""Of one place."""
_SKIPPED = "skipped"
GUIDELINE = """\
Read the question, the answer and the cited lines.

- The verdict is on the record as it was, before your edits.
- Edit facts and narrative where that repairs the record. A wrong record is sent back or dropped.
- Say what is wrong so that an author who has not seen the record understands it.
"""


@dataclass(frozen=True, slots=True)
class MadeBook:
    """A book of reviews."""

    book: BookInfo
    sample: Sample
    n_new: int
    """Records that were added to it."""
    second: SecondLook | None = None
    """Of a profile of one person."""
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
            raise UsageError("records of this run are decided already", path=shown(run), expected=before, got=wanted)
        sample = next_sample(samples, list(waiting.values()), wanted, manifest.seed if seed is None else seed)
        snapshot = take(repo, manifest.commit or None)
        if not manifest.commit and snapshot_digest(snapshot) != manifest.snapshot_digest:
            raise UsageError("the files are not those that the run read", path=shown(repo))
        shown_ones = [waiting[query_id] for query_id in sample.to_review]
        name = (samples[0].book if samples else name) or run.resolve().name
        pool = _pool(name, manifest.snapshot_digest, index, shown_ones, ParsedSource(snapshot))
        if not samples and not shown_ones:
            raise UsageError("no record of this run has an answer that a person could review", path=shown(run))
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
        raise UsageError(f"there is a book {name} already, of something else", hint="choose another name")
    return book, store.books.add_pool(book.id, pool)


def _pool(name: str, digest: str, index: RunIndex, records: Iterable[Waiting], source: ParsedSource) -> Pool:
    queries, items = {}, []
    for each in records:
        query_id, attempt = each.reviewable.query_id, each.status.attempt
        candidate = index.candidates[query_id]
        strata: dict[str, str] = {"task_type": candidate.task_type, "difficulty": candidate.difficulty}
        queries[query_id] = PooledQuery(id=query_id, text=candidate.query_text, strata=strata)
        material = material_of(index, each, source)
        items.append(PooledItem(query=query_id, doc=_doc(attempt), fields=material.model_dump(mode="json")))
    runs = (PooledRun(name=index.folder.path.resolve().name, digest=digest),)
    return Pool(name=name, method="depth", depth=1, runs=runs, queries=tuple(queries.values()), items=tuple(items))


def _doc(attempt: int) -> str:
    return f"attempt {attempt}"


def material_of(index: RunIndex, waiting: Waiting, source: ParsedSource) -> ReviewMaterial:
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
        return SourceLines(file=file, start=start, end=end, problem="This file is not in the snapshot, or is no text.")
    lines = text.removesuffix("\n").split("\n")
    if start > len(lines):
        problem = f"The file has {len(lines):,} lines: {start}-{end} are none of them."
        return SourceLines(file=file, start=start, end=end, problem=problem)
    part = lines[start - 1 : min(end, start - 1 + MOST_LINES)]
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
    """Of a profile of one person."""
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
            *(book.name, n_new, tuple(waits[ItemState.OPEN]), tuple(waits[ItemState.ADJUDICATE])),
            *(tuple(waits[_SKIPPED]), tuple(late)),
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
        reasons=(Finding(kind=kind, message=review.reason),),
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
