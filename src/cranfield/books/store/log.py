"""Saves. Every action is an event of the append-only log; judgments, slots and states of items follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from cranfield.base.errors import Problem, ProblemList, UsageError, shorten
from cranfield.base.words import count_noun
from cranfield.books.database.engine import Part
from cranfield.books.review import review_problems
from cranfield.books.settings import BookSettings, Mode
from cranfield.books.store.queue import member_row, quota_left, was_given
from cranfield.books.store.rows import account_row, as_value, book_row, guideline_version, item_row, settings_of
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    BookState,
    Event,
    HandOut,
    Item,
    ItemJudgment,
    ItemState,
    RaterKind,
    SkipReason,
)
from cranfield.books.store.standing import apply, apply_many, refuse_own, update_state
from cranfield.books.store.values import (
    BookClosedError,
    EventRow,
    ImportedJudgment,
    Json,
    NotAllowedError,
    SavedJudgment,
    SaveRequest,
)

RATER_ACTIONS = frozenset({Action.GRADE, Action.SKIP, Action.LATER, Action.FLAG, Action.UNFLAG, Action.UNDO})
PREFERENCES = (0, 1, 2)
"""Tie, list `a` is better, list `b` is better."""
ANY = -1
"""Whatever was decided before."""
BATCH = 500
"""Imported judgments that are recorded by the same statements."""


def grades_of(settings: BookSettings) -> tuple[int, ...]:
    """The grades that a rater may give in a book."""
    return PREFERENCES if settings.mode is Mode.PREFERENCE else settings.scale.grades


class Log(Part):
    """The log."""

    def save(self, request: SaveRequest) -> SavedJudgment:
        """Record an action of a rater; once, however often the same `client_key` is sent.

        A grade that comes after the lease has expired is kept: it takes a free slot of the item, or none (`SavedJudgment.extra`).
        `undo` withdraws the rater's last grade, skip or `later` of the item, and the slot returns to the rater.
        Models, rules and carried judgments fill no slot.

        Raises:
            BookClosedError: nothing was saved.
            NotAllowedError: of what has to be given: the item was not given to the rater, or the quota is used up.
            UnknownNameError: there is no such book, item or account.
            UsageError: a grade that is not of the scale, a skip without a reason, an action that needs another call; of
                what has to be given, other guidelines than those that were shown.
        """
        with self._database.write() as session:
            book = book_row(session, request.book_id, lock=True)
            if (first := _first(session, request.account_id, request.client_key, request.item_id)) is not None:
                return first
            account, settings = account_row(session, request.account_id), settings_of(book)
            item = item_row(session, request.item_id, book.id)
            if request.action not in RATER_ACTIONS:
                raise UsageError(f"action {request.action} cannot be saved")
            _check(request, settings, item.fields)
            if book.state == BookState.CLOSED:
                raise BookClosedError(
                    f"book {book.name} is closed and accepts no judgments", hint="a lead can reopen it"
                )
            judging = _Judging(session, book, settings, account) if request.given else None
            if judging is not None:
                request = replace(request, guideline_version=judging.check(item, request.guideline_version))
            if item.doc_digest is None:
                item.doc_digest = request.doc_digest
            event = _event(session, book.id, request, self._clock())
            extra = apply(session, item, account, request.action, settings, self._clock())
            if judging is not None:
                judging.check_quota()
            return SavedJudgment(event.id, duplicate=False, item_state=ItemState(item.state), extra=extra)

    def adjudicate(
        self,
        item_id: int,
        account_id: int,
        grade: float,
        reason: str,
        client_key: str,
        *,
        seen: int | None = ANY,
        data: Json | None = None,
    ) -> SavedJudgment:
        """Set the final grade of an item; the raters' grades are kept. A closed book can be adjudicated.

        Args:
            item_id: the item.
            account_id: who decides.
            grade: the final grade.
            reason: for it.
            client_key: of this decision.
            seen: `ItemView.final_at` when the account looked; another decision in between refuses this one.
            data: in a book of reviews, the whole decision.

        Raises:
            NotAllowedError: the account has graded the item, or another account has decided it since.
            UsageError: no reason, or a grade that is not of the scale.
        """
        with self._database.write() as session:
            book = book_row(session, item_row(session, item_id).book_id, lock=True)
            if (first := _first(session, account_id, client_key, item_id)) is not None:
                return first
            item, settings = item_row(session, item_id), settings_of(book)
            account_row(session, account_id)
            request = SaveRequest(
                book.id,
                item_id,
                account_id,
                Action.ADJUDICATE,
                client_key,
                grade,
                reason=reason.strip(),
                method="lead",
                data=data,
            )
            _check(request, settings, item.fields)
            refuse_own(session.get(ItemJudgment, (item_id, account_id)))
            if seen not in {ANY, _decided_at(session, item)}:
                raise NotAllowedError("the final grade of this item has been changed in the meantime")
            event = _event(session, book.id, request, self._clock())
            item.final = grade
            update_state(session, item, settings, self._clock())
            return SavedJudgment(event.id, duplicate=False, item_state=ItemState(item.state))

    def import_many(
        self, book_id: int, judgments: Iterable[ImportedJudgment], *, by: int | None = None
    ) -> tuple[ImportedJudgment, ...]:
        """Record judgments and final grades that were made elsewhere, all or none; those that are new.

        Args:
            book_id: of the book.
            judgments: of persons, models or files.
            by: the account of a person who judges, and whose judgments they all are: they are checked as those that have to be given.

        Raises:
            NotAllowedError: with `by`: an item that was not given to the rater, or more than the quota.
            UsageError: an item that the book does not have, or a grade that is not of the scale; all problems at once.
        """
        rows = list(judgments)
        with self._database.write() as session:
            book = book_row(session, book_id, lock=True)
            settings, now = settings_of(book), self._clock()
            items = {item.id: item for item in session.scalars(select(Item).where(Item.book_id == book_id))}
            raters = set(session.scalars(select(Account.id)))
            problems = ProblemList(UsageError)
            for row in rows:
                problems.problems += _import_problems(row, settings, items, raters)
            problems.raise_if_any()
            keys = select(Event.account_id, Event.client_key).where(Event.book_id == book_id)
            seen = {(account, key) for account, key in session.execute(keys)}
            given = {(row.account_id, row.client_key): row for row in reversed(rows)}
            new = tuple(row for key, row in reversed(given.items()) if key not in seen)
            judging = None if by is None else _Judging(session, book, settings, account_row(session, by))
            if judging is not None:
                new = judging.check_all(new, items)
            version = guideline_version(session, book_id)
            for start in range(0, len(new), BATCH):
                events = [_imported_event(row, book_id, version, now) for row in new[start : start + BATCH]]
                session.add_all(events)
                session.flush()
                apply_many(session, events, items, settings, now)
            if judging is not None:
                judging.check_quota()
            return new

    def events(self, book_id: int, after: int = 0, limit: int | None = None) -> tuple[EventRow, ...]:
        """The events of a book with a larger id than `after`, in the order in which they were recorded."""
        subject = aliased(Account)
        query = (
            select(Event, Account.name, Account.kind, BookQuery.name, Item.doc_id, subject.name)
            .join(Account, Account.id == Event.account_id)
            .join(Item, Item.id == Event.item_id)
            .join(BookQuery, BookQuery.id == Item.query_id)
            .outerjoin(subject, subject.id == Event.subject_id)
            .where(Event.book_id == book_id, Event.id > after)
            .order_by(Event.id)
            .limit(limit)
        )
        with self._database.read() as session:
            return tuple(_event_row(*row) for row in session.execute(query))


class _Judging:
    """What a person may save, who judges in a book."""

    def __init__(self, session: Session, book: Book, settings: BookSettings, account: Account) -> None:
        self.session, self.book, self.settings, self.account = session, book, settings, account
        self.member = member_row(session, book.id, account.id)
        self.left_before = self._left()

    def _left(self) -> int | None:
        return None if self.member is None else quota_left(self.session, self.book, self.settings, self.member)

    def check(self, item: Item, version: int | None) -> int:
        """Refuse an item that was not given, or other guidelines than those that were shown; the version of these."""
        if not was_given(self.session, item, self.account):
            raise NotAllowedError(
                f"document {shorten(item.doc_id)} is not assigned to {self.account.name}",
                hint="reload the page to get your items",
            )
        given = self.session.get(HandOut, (item.id, self.account.id))
        latest = guideline_version(self.session, self.book.id)
        shown = latest if given is None else given.guideline_version
        if version is not None and not (version <= latest and (given is None or version >= shown)):
            raise UsageError(
                "the judgment uses a different version of the guidelines than the assigned item",
                path="guideline_version",
                expected=f"version {shown}",
                got=str(version),
                hint="reload the page, and read the guidelines",
            )
        return shown if version is None else version

    def check_all(self, rows: Iterable[ImportedJudgment], items: Mapping[int, Item]) -> tuple[ImportedJudgment, ...]:
        """The judgments with their guidelines; raises as `check`, with all problems at once."""
        checked, problems = [], ProblemList(NotAllowedError)
        for row in rows:
            try:
                version = self.check(items[row.item_id], row.guideline_version)
                checked.append(replace(row, guideline_version=version))
            except UsageError as error:
                problems.problems += error.problems
        problems.raise_if_any()
        return tuple(checked)

    def check_quota(self) -> None:
        """Refuse what gave the rater more grades than the quota."""
        left = self._left()
        if left is not None and left < 0 and left < (self.left_before or 0):
            n = (self.left_before or 0) - left
            raise NotAllowedError(
                f"the quota of {self.account.name} in book {self.book.name} is used up",
                expected=f"{count_noun(max(self.left_before or 0, 0), 'grades')} at most",
                got=str(n),
                hint="a lead can raise the quota",
            )


def _decided_at(session: Session, item: Item) -> int | None:
    """When the final grade of an item was set; None where it has none."""
    query = select(Event.at).where(Event.item_id == item.id, Event.action == Action.ADJUDICATE)
    return None if item.final is None else session.scalar(query.order_by(Event.id.desc()).limit(1))


def _first(session: Session, account_id: int, client_key: str, item_id: int) -> SavedJudgment | None:
    """What the key was saved as before.

    Raises:
        UsageError: that was for another item.
    """
    query = select(Event).where(Event.account_id == account_id, Event.client_key == client_key)
    event = session.scalar(query)
    if event is None:
        return None
    if event.item_id != item_id:
        raise UsageError(f"the key {shorten(client_key)} was used for another item", hint="use a new key for each save")
    return SavedJudgment(event.id, duplicate=True, item_state=ItemState(item_row(session, event.item_id).state))


def _check(request: SaveRequest, settings: BookSettings, fields: Json) -> None:
    problems = ProblemList(UsageError)
    if not 0 < len(request.client_key) <= Event.client_key.type.length:
        problems.add(
            "the key of a save must have 1 to 80 characters", path="client_key", got=str(len(request.client_key))
        )
    problems.problems += _grade_problems(request.action, request.grade, settings)
    if request.action is Action.SKIP and request.skip_reason is None:
        problems.add("a skip requires a reason", path="skip_reason", expected=", ".join(SkipReason))
    if request.action is Action.ADJUDICATE and not request.reason:
        problems.add("a final grade requires a reason", path="reason")
    if settings.mode is Mode.REVIEW and request.grade in grades_of(settings):
        problems.problems += review_problems(fields, request.grade, request.reason, request.data)
    problems.raise_if_any()


def _grade_problems(action: Action, grade: float | None, settings: BookSettings) -> list[Problem]:
    grades = grades_of(settings)
    is_graded = action in (Action.GRADE, Action.ADJUDICATE)
    if is_graded and grade not in grades:
        got = "none" if grade is None else f"{grade:g}"
        return [Problem("the grade is not on the scale", path="grade", expected=", ".join(map(str, grades)), got=got)]
    if not is_graded and action is not Action.CARRY and grade is not None:
        return [Problem(f"`{action}` takes no grade", path="grade", got=f"{grade:g}")]
    return []


def _import_problems(
    row: ImportedJudgment, settings: BookSettings, items: dict[int, Item], raters: set[int]
) -> list[Problem]:
    found = _grade_problems(row.action, row.grade, settings)
    if row.item_id not in items:
        found.append(Problem(f"the book has no item {row.item_id}"))
    elif settings.mode is Mode.REVIEW and not found and row.grade is not None:
        found += review_problems(items[row.item_id].fields, row.grade, row.reason, row.data)
    if row.account_id not in raters:
        found.append(Problem(f"account {row.account_id} not found"))
    return found


def _event(session: Session, book_id: int, request: SaveRequest, at: int) -> Event:
    version = request.guideline_version
    event = _event_of(request, book_id, guideline_version(session, book_id) if version is None else version, at)
    session.add(event)
    session.flush()
    return event


def _imported_event(row: ImportedJudgment, book_id: int, version: int, now: int) -> Event:
    at = now if row.at is None else row.at
    return _event_of(row, book_id, version if row.guideline_version is None else row.guideline_version, at)


def _event_of(request: SaveRequest | ImportedJudgment, book_id: int, version: int, at: int) -> Event:
    skip_reason = request.skip_reason if request.action is Action.SKIP else None
    fields = {name: value for name, value in asdict(request).items() if name != "given"}
    given = fields | {"book_id": book_id, "skip_reason": skip_reason, "guideline_version": version, "at": at}
    return Event(**given)


def _event_row(event: Event, account: str, kind: str, query: str, doc: str, subject: str | None) -> EventRow:
    return as_value(
        EventRow,
        event,
        query=query,
        doc=doc,
        account=account,
        kind=RaterKind(kind),
        action=Action(event.action),
        skip_reason=None if event.skip_reason is None else SkipReason(event.skip_reason),
        subject=subject,
    )
