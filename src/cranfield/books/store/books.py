"""Books: their items, guidelines, calibration items and frozen versions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import uuid4

from sqlalchemy import ColumnElement, func, select, tuple_
from sqlalchemy.orm import Session

from cranfield.base.errors import ProblemList, UnknownNameError, UsageError, shorten
from cranfield.books.database.engine import Part
from cranfield.books.pool_file import Pool
from cranfield.books.settings import DEFAULT_GUIDELINE, BookSettings
from cranfield.books.store.adding import add_missing, plan_wanted, pool_source, with_pool
from cranfield.books.store.filters import item_conditions, judgment_conditions
from cranfield.books.store.rows import (
    ChangedMeanwhileError,
    account_row,
    as_value,
    book_row,
    checked_name,
    guideline_version,
    item_row,
    settings_of,
)
from cranfield.books.store.schema import (
    Account,
    Action,
    Book,
    BookQuery,
    BookState,
    Event,
    Frozen,
    Guideline,
    Item,
    ItemJudgment,
    Origin,
    RaterKind,
    Slot,
)
from cranfield.books.store.standing import end_leases, is_stale, update_state, withdraw
from cranfield.books.store.supply import hand_out
from cranfield.books.store.values import BookInfo, FrozenInfo, GuidelineInfo, ItemFilter, Json


class Books(Part):
    """Books."""

    def create(
        self, name: str, pool: Pool, settings: BookSettings, *, guideline: str | None = None, by: int | None = None
    ) -> BookInfo:
        """Make a book of a pool. Carried-over judgments go to the account `carried`, prefilled ones to the account `rule`.

        Items with such a judgment want no person; of the others the share `overlap`, chosen by the seed, wants
        `raters_per_item` persons, and the rest one.

        Raises:
            UsageError: the name is taken or is none, or the pool is inconsistent; all problems at once.
        """
        name = checked_name(name, refused="/\\")
        with self._database.write() as session:
            if session.scalar(select(Book.id).where(Book.name == name)) is not None:
                raise UsageError(f"there is a book {name} already", hint="choose another name")
            now = self._clock()
            book = Book(
                name=name,
                state=BookState.OPEN,
                settings=settings.model_dump(mode="json"),
                source=pool_source(pool),
                created_at=now,
            )
            session.add(book)
            session.flush()
            session.add(
                Guideline(
                    book_id=book.id, version=1, text=guideline or DEFAULT_GUIDELINE, created_at=now, account_id=by
                )
            )
            add_missing(session, book, pool, now)
            return _info(session, book)

    def all(self) -> tuple[BookInfo, ...]:
        """All books, by name."""
        with self._database.read() as session:
            return _infos(session, session.scalars(select(Book).order_by(Book.name)).all())

    def get(self, book: str | int) -> BookInfo:
        """A book by name or id.

        Raises:
            UnknownNameError: there is none.
        """
        with self._database.read() as session:
            return _info(session, book_row(session, book))

    def add_pool(self, book: str | int, pool: Pool) -> int:
        """Add what a pool has and the book lacks; the number of new items. Judgments of items that it has are carried over."""
        with self._database.write() as session:
            row = book_row(session, book, lock=True)
            row.source = with_pool(row.source, pool)
            return add_missing(session, row, pool, self._clock())

    def renew_fields(self, book_id: int, fields: Mapping[int, Json]) -> dict[int, tuple[str, Json, str | None]]:
        """Set the fields of items, by id; each with its document, the new fields, and the digest of the text shown before."""
        with self._database.write() as session:
            book_row(session, book_id, lock=True)
            items = {item_id: item_row(session, item_id, book_id) for item_id in fields}
            for item_id, item in items.items():
                item.fields = fields[item_id]
            return {item_id: (item.doc_id, item.fields, item.doc_digest) for item_id, item in items.items()}

    def add_item(self, book_id: int, query: str, doc: str, fields: Json, by: int) -> int:
        """Add a document that no system returned (origin `added`), which is given to who adds it; its item id.

        The item that is there, where it is there: that is given to no rater.
        """
        with self._database.write() as session:
            book = book_row(session, book_id, lock=True)
            account_row(session, by)
            query_row = _query(session, book_id, query)
            if (found := _item_of(session, query_row.id, doc)) is not None:
                return found.id
            if not doc.strip():
                raise UsageError("a document needs an id", path="doc")
            settings = settings_of(book)
            item = Item(book_id=book_id, query_id=query_row.id, doc_id=doc, fields=fields, origin=Origin.ADDED)
            item.wanted = plan_wanted(settings, query, doc)
            session.add(item)
            session.flush()
            hand_out(session, [item], by, guideline_version(session, book_id))
            update_state(session, item, settings, self._clock())
            return item.id

    def set_guideline(self, book_id: int, text: str, by: int | None = None) -> int:
        """Make a new version of the guidelines; its number. The same text makes none."""
        with self._database.write() as session:
            book_row(session, book_id, lock=True)
            version = guideline_version(session, book_id)
            if _guideline(session, book_id, version) == text:
                return version
            row = Guideline(book_id=book_id, version=version + 1, text=text, created_at=self._clock(), account_id=by)
            session.add(row)
            return row.version

    def guidelines(self, book_id: int) -> tuple[GuidelineInfo, ...]:
        """All versions, the earliest first."""
        query = (
            select(Guideline, Account.name)
            .outerjoin(Account, Account.id == Guideline.account_id)
            .where(Guideline.book_id == book_id)
            .order_by(Guideline.version)
        )
        with self._database.read() as session:
            return tuple(
                GuidelineInfo(row.version, row.text, row.created_at, name) for row, name in session.execute(query)
            )

    def close(self, book_id: int) -> None:
        """Take no more judgments; leases end. Open items can still be adjudicated."""
        with self._database.write() as session:
            book_row(session, book_id, lock=True).state = BookState.CLOSED
            end_leases(session, Slot.item_id.in_(select(Item.id).where(Item.book_id == book_id)))

    def open(self, book_id: int) -> None:
        """Take judgments again."""
        with self._database.write() as session:
            book_row(session, book_id, lock=True).state = BookState.OPEN

    def reopen(
        self, book_id: int, which: Sequence[int] | Mapping[int, Collection[int]] | ItemFilter, by: int, reason: str = ""
    ) -> int:
        """Ask again: withdraw judgments of persons and the final grade, by an event each; the number of items.

        With item ids, or a filter of items, the judgments of all persons are withdrawn; with a mapping of item ids to
        accounts those of these accounts; with a filter of judgments
        (`rater`, `stale`, `before_guideline`, `skipped`) only those that match. The log keeps everything.
        An item that wanted no person, since its judgment was carried over, wants them now.
        """
        with self._database.write() as session:
            book = book_row(session, book_id, lock=True)
            account_row(session, by)
            where = which if isinstance(which, ItemFilter) else ItemFilter()
            query = select(Item).where(Item.book_id == book_id, Item.origin != Origin.REPEAT).order_by(Item.id)
            if isinstance(which, ItemFilter):
                query = query.where(*item_conditions(which))
            else:
                for item_id in which:
                    item_row(session, item_id, book_id)
            chosen = None if isinstance(which, ItemFilter) else set(which)
            items = [item for item in session.scalars(query) if chosen is None or item.id in chosen]
            for item in items:
                conditions = judgment_conditions(where)
                if isinstance(which, Mapping):
                    conditions.append(ItemJudgment.account_id.in_(which[item.id]))
                self._reopen(session, book, item, conditions, by, reason)
            return len(items)

    def _reopen(
        self, session: Session, book: Book, item: Item, conditions: list[ColumnElement[bool]], by: int, reason: str
    ) -> None:
        settings, now = settings_of(book), self._clock()
        withdrawn = session.scalars(
            select(ItemJudgment.account_id)
            .join(Account, Account.id == ItemJudgment.account_id)
            .join(Event, Event.id == ItemJudgment.event_id)
            .where(ItemJudgment.item_id == item.id, Account.kind == RaterKind.PERSON, *conditions)
            .order_by(ItemJudgment.account_id)
        ).all()
        version = guideline_version(session, book.id)
        for subject in withdrawn or (None,):
            event = Event(
                book_id=book.id,
                item_id=item.id,
                account_id=by,
                action=Action.REOPEN,
                reason=reason,
                at=now,
                guideline_version=version,
                method="lead",
                client_key=f"reopen:{uuid4()}",
                subject_id=subject,
            )
            session.add(event)
        item.final = None
        if not item.wanted:
            item.wanted = plan_wanted(settings, session.get_one(BookQuery, item.query_id).name, item.doc_id)
        withdraw(session, item, withdrawn, settings, now)

    def calibration(self, book_id: int, rows: Iterable[tuple[str, str, float, str]]) -> int:
        """Make items with a known grade, of (query, doc, grade, reason); how many. They are judged as other items are.

        Of the grades that a rater gives one, the first one counts.

        Raises:
            UsageError: a query that the book does not have, or a grade that is not of the scale; all problems at once.
        """
        with self._database.write() as session:
            book = book_row(session, book_id, lock=True)
            settings, problems, given = settings_of(book), ProblemList(UsageError), list(rows)
            names = select(BookQuery.name, BookQuery.id).where(BookQuery.book_id == book_id)
            queries = dict(session.execute(names).all())
            for query, doc, grade, _ in given:
                if query not in queries:
                    problems.add(f"the book has no query {shorten(query)}", path=f"{query} {doc}")
                if grade not in settings.scale.grades:
                    expected = ", ".join(map(str, settings.scale.grades))
                    problems.add(
                        "the grade is not of the scale", path=f"{query} {doc}", expected=expected, got=f"{grade:g}"
                    )
            problems.raise_if_any()
            for query, doc, grade, reason in given:
                item = _item_of(session, queries[query], doc)
                if item is None:
                    item = Item(book_id=book_id, query_id=queries[query], doc_id=doc, origin=Origin.CALIBRATION)
                    item.wanted, item.fields = 0, _fields_of(session, book_id, doc)
                    session.add(item)
                item.wanted = item.wanted or plan_wanted(settings, query, doc)
                item.gold, item.gold_reason = grade, reason
                update_state(session, item, settings, self._clock())
            return len(given)

    def set_digest(self, item_id: int, digest: str) -> bool:
        """Note the digest of the text that is shown. Judgments of another text become stale; whether there are any."""
        with self._database.write() as session:
            item = item_row(session, item_id)
            book_row(session, item.book_id, lock=True)
            item.doc_digest = digest
            query = select(ItemJudgment, Event).join(Event, Event.id == ItemJudgment.event_id)
            rows = session.execute(query.where(ItemJudgment.item_id == item_id)).all()
            for judgment, event in rows:
                judgment.stale = is_stale(event, item)
            return any(judgment.stale for judgment, _ in rows)

    def frozen(self, book_id: int) -> tuple[FrozenInfo, ...]:
        """The versions made of a book, the earliest first."""
        query = select(Frozen).where(Frozen.book_id == book_id).order_by(Frozen.number)
        with self._database.read() as session:
            return tuple(as_value(FrozenInfo, row) for row in session.scalars(query))

    def add_frozen(self, book_id: int, digest: str, manifest: Json, number: int | None = None) -> FrozenInfo:
        """Note a version; it gets the next number.

        Args:
            book_id: of the book.
            digest: of its test set.
            manifest: the test set.
            number: that it says of itself.

        Raises:
            ChangedMeanwhileError: that number is another version's.
        """
        with self._database.write() as session:
            book_row(session, book_id, lock=True)
            last = session.scalar(select(func.max(Frozen.number)).where(Frozen.book_id == book_id)) or 0
            if number is not None and number != last + 1:
                raise ChangedMeanwhileError.of(f"the book {book_row(session, book_id).name}")
            row = Frozen(book_id=book_id, number=last + 1, digest=digest, manifest=manifest, at=self._clock())
            session.add(row)
            return as_value(FrozenInfo, row)


def _info(session: Session, book: Book) -> BookInfo:
    return _infos(session, [book])[0]


def _infos(session: Session, books: Sequence[Book]) -> tuple[BookInfo, ...]:
    """Books as values: three queries, however many books."""
    numbers = [book.id for book in books]
    queries = select(BookQuery.book_id, func.count()).where(BookQuery.book_id.in_(numbers)).group_by(BookQuery.book_id)
    n_queries = dict(session.execute(queries).all())
    counted = Item.book_id.in_(numbers), Item.origin != Origin.REPEAT
    items = select(Item.book_id, func.count()).where(*counted).group_by(Item.book_id)
    n_items = dict(session.execute(items).all())
    latest = select(Guideline.book_id, func.max(Guideline.version)).where(Guideline.book_id.in_(numbers))
    texts = select(Guideline).where(
        tuple_(Guideline.book_id, Guideline.version).in_(latest.group_by(Guideline.book_id))
    )
    guidelines = {each.book_id: each for each in session.scalars(texts)}
    return tuple(
        as_value(
            BookInfo,
            book,
            state=BookState(book.state),
            settings=settings_of(book),
            n_queries=n_queries.get(book.id, 0),
            n_items=n_items.get(book.id, 0),
            guideline_version=guidelines[book.id].version if book.id in guidelines else 0,
            guideline=guidelines[book.id].text if book.id in guidelines else "",
        )
        for book in books
    )


def _guideline(session: Session, book_id: int, version: int) -> str:
    query = select(Guideline.text).where(Guideline.book_id == book_id, Guideline.version == version)
    return session.scalar(query) or ""


def _query(session: Session, book_id: int, name: str) -> BookQuery:
    found = session.scalar(select(BookQuery).where(BookQuery.book_id == book_id, BookQuery.name == name))
    if found is None:
        names = session.scalars(select(BookQuery.name).where(BookQuery.book_id == book_id))
        raise UnknownNameError.among("query", name, names)
    return found


def _fields_of(session: Session, book_id: int, doc: str) -> Json:
    """What a book knows of a document by another query: without it a calibration item would look bare."""
    query = select(Item.fields).where(Item.book_id == book_id, Item.doc_id == doc).order_by(Item.id).limit(1)
    return dict(session.scalar(query) or {})


def _item_of(session: Session, query_id: int, doc: str) -> Item | None:
    query = select(Item).where(Item.query_id == query_id, Item.doc_id == doc, Item.origin != Origin.REPEAT)
    return session.scalar(query)
