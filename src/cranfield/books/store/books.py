"""Books: their items, guidelines, calibration items and frozen versions."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from sqlalchemy import ColumnElement, func, insert, select, text, tuple_
from sqlalchemy.orm import Session

from cranfield.base.errors import InputError, ProblemList, UnknownNameError, UsageError, shorten
from cranfield.books.database.engine import Part
from cranfield.books.pool_file import Pool, PooledItem
from cranfield.books.settings import DEFAULT_GUIDELINE, BookSettings
from cranfield.books.store.queue import hand_out
from cranfield.books.store.reading import item_conditions, judgment_conditions
from cranfield.books.store.rows import (
    ChangedMeanwhileError,
    account_row,
    as_value,
    book_row,
    checked_name,
    guideline_version,
    item_row,
    seeded,
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
    ItemState,
    Origin,
    RaterKind,
    Role,
    Slot,
    SlotState,
)
from cranfield.books.store.standing import end_leases, is_stale, update_state, withdraw
from cranfield.books.store.values import BookInfo, FrozenInfo, GuidelineInfo, ItemFilter, Json
from cranfield.formats.io.files import decode, read_bytes

WITHOUT_PERSON = {"judged": RaterKind.CARRIED, "prefilled": RaterKind.RULE}
"""Fields of an item of a pool that hold a grade, with the kind, and name, of the account that gave it."""


def pool_source(pool: Pool) -> Json:
    """What a book notes of its pool."""
    return pool.model_dump(mode="json", exclude={"queries", "items", "cranfield_pool"})


def with_pool(source: Json, pool: Pool) -> Json:
    """What a book notes of its pools, with one more to a fixed depth: the runs of all, and down to where all are complete.

    The test set is that of the first pool whose test set has judgments.
    """
    if pool.n_earlier and not source.get("n_earlier"):
        made_over = pool_source(pool)
        keys = ("testset", "testset_digest", "testset_file", "queries_file", "n_earlier")
        source = {**source, **{key: made_over[key] for key in keys}}
    runs, complete, depth = source.get("runs"), source.get("complete_to"), source.get("depth")
    if pool.method != "depth" or not isinstance(runs, list | tuple):
        return source
    return {
        **source,
        "runs": [*runs, *(found for run in pool.runs if (found := run.model_dump()) not in runs)],
        "depth": max(depth, pool.depth) if isinstance(depth, int) else pool.depth,
        "complete_to": min(complete, pool.complete_to) if isinstance(complete, int) else pool.complete_to,
    }


def plan_wanted(settings: BookSettings, query: str, doc: str) -> int:
    """Persons that an item wants, which is not of the first pool of its book."""
    is_shared = seeded(settings.seed, "overlap", query, doc) < settings.overlap * 2.0**64
    return settings.raters_per_item if is_shared else 1


def add_missing(session: Session, book: Book, pool: Pool, now: int) -> int:
    """Add the queries and items that a book lacks, and the judgments of a pool; the number of new items.

    Raises:
        UsageError: a query or an item twice, an item without a query; all problems at once.
    """
    _check(pool)
    queries = _add_queries(session, book, pool)
    stored = select(Item.query_id, Item.doc_id, Item.id).where(Item.book_id == book.id, Item.origin != Origin.REPEAT)
    known = {(query, doc): number for query, doc, number in session.execute(stored)}
    new = [item for item in pool.items if (queries[item.query], item.doc) not in known]
    wanted = _wanted(settings_of(book), new)
    ids = _insert_items(session, book, new, queries, wanted)
    known.update({(queries[item.query], item.doc): number for item, number in zip(new, ids, strict=True)})
    slots = [
        {"item_id": number, "number": place, "state": SlotState.OPEN}
        for number, persons in zip(ids, wanted, strict=True)
        for place in range(1, persons + 1)
    ]
    if slots:
        session.execute(insert(Slot), slots)
    for field, kind in WITHOUT_PERSON.items():
        grades = [(known[queries[item.query], item.doc], getattr(item, field)) for item in pool.items]
        _carry(session, book, kind, [(number, grade) for number, grade in grades if grade is not None], now)
    if new and session.get_bind().dialect.name == "postgresql":
        # Until it has counted the rows of new tables, it searches them for each item instead of using their indexes.
        session.execute(text("ANALYZE book_query, item, slot, event, judgment"))
    return len(new)


def _check(pool: Pool) -> None:
    problems = ProblemList(UsageError)
    names = [query.id for query in pool.queries]
    for name in sorted({name for name in names if names.count(name) > 1}) if len(names) > len(set(names)) else ():
        problems.add(f"query {shorten(name)} is in the pool twice")
    known, seen = set(names), set()
    for item in pool.items:
        if item.query not in known:
            problems.add(f"query {shorten(item.query)} is not in the pool", path=f"document {item.doc}")
        if (item.query, item.doc) in seen:
            problems.add(f"document {shorten(item.doc)} is in the pool twice", path=f"query {item.query}")
        seen.add((item.query, item.doc))
    problems.raise_if_any()


def _add_queries(session: Session, book: Book, pool: Pool) -> dict[str, int]:
    stored = select(BookQuery.name, BookQuery.id).where(BookQuery.book_id == book.id)
    known = dict(session.execute(stored).all())
    rows = [
        {
            "book_id": book.id,
            "name": query.id,
            "text": query.text,
            "need": query.need,
            "notes": query.notes,
            "position": position,
            "strata": query.strata,
        }
        for position, query in enumerate(pool.queries, len(known))
        if query.id not in known
    ]
    if rows:
        made = session.execute(insert(BookQuery).returning(BookQuery.name, BookQuery.id), rows)
        known.update(made.all())
    return known


def _wanted(settings: BookSettings, items: Sequence[PooledItem]) -> list[int]:
    """Persons for each item: exactly the share `overlap` of those that want any is judged by several."""
    open_places = [place for place, item in enumerate(items) if item.is_open]
    open_places.sort(key=lambda place: seeded(settings.seed, "overlap", items[place].query, items[place].doc))
    wanted = [0] * len(items)
    for order, place in enumerate(open_places):
        wanted[place] = settings.raters_per_item if order < round(settings.overlap * len(open_places)) else 1
    return wanted


def _insert_items(
    session: Session, book: Book, items: Sequence[PooledItem], queries: dict[str, int], wanted: Sequence[int]
) -> list[int]:
    rows = [
        {
            "book_id": book.id,
            "query_id": queries[item.query],
            "doc_id": item.doc,
            "fields": item.fields,
            "origin": Origin.POOL,
            "wanted": persons,
            "state": ItemState.OPEN if persons else ItemState.DONE,
            "stratum": item.stratum,
            "inclusion": item.inclusion,
            "effect": item.effect,
            "runs": item.runs,
        }
        for item, persons in zip(items, wanted, strict=True)
    ]
    if not rows:
        return []
    return list(session.scalars(insert(Item).returning(Item.id, sort_by_parameter_order=True), rows))


def _carry(session: Session, book: Book, kind: RaterKind, grades: Sequence[tuple[int, float]], now: int) -> None:
    """Record grades by the account of a kind that has no person; those that it has given before stay."""
    if not grades:
        return
    account = session.scalar(select(Account).where(Account.name == kind))
    if account is None:
        account = Account(name=kind, kind=kind, role=Role.VIEWER, active=False, created_at=now)
        session.add(account)
        session.flush()
    given = select(ItemJudgment.item_id, ItemJudgment.grade).where(ItemJudgment.account_id == account.id)
    before = dict(session.execute(given).all())
    rows = [
        {
            "book_id": book.id,
            "item_id": item,
            "account_id": account.id,
            "action": Action.CARRY,
            "grade": grade,
            "reason": "",
            "at": now,
            "method": "rule" if kind is RaterKind.RULE else "import",
            "client_key": f"pool:{uuid4()}",
        }
        for item, grade in grades
        if before.get(item) != grade
    ]
    if not rows:
        return
    made = session.execute(insert(Event).returning(Event.id, Event.item_id), rows)
    events = {item: number for number, item in made}
    fresh = [
        {"item_id": item, "account_id": account.id, "event_id": events[item], "action": Action.CARRY, "grade": grade}
        for item, grade in grades
        if item not in before
    ]
    if fresh:
        session.execute(insert(ItemJudgment), fresh)
    for item in before.keys() & events.keys():
        judgment = session.get_one(ItemJudgment, (item, account.id))
        judgment.event_id, judgment.grade, judgment.stale = events[item], dict(grades)[item], False


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
                raise UsageError(f"book {name} already exists", hint="choose another name")
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
                raise UsageError("the document has no id", path="doc")
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
                    problems.add(f"query {shorten(query)} is not in the book", path=f"{query} {doc}")
                if grade not in settings.scale.grades:
                    expected = ", ".join(map(str, settings.scale.grades))
                    problems.add(
                        "the grade is not on the scale", path=f"{query} {doc}", expected=expected, got=f"{grade:g}"
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


COLUMNS = ("query", "doc", "grade")
"""Those that a file must have; `reason` may be missing."""


def read_calibration(path: Path) -> list[tuple[str, str, float, str]]:
    """Query, document, grade and reason of each line.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a line without a query, document or number.
    """
    reader = csv.DictReader(decode(read_bytes(path, InputError), path, InputError).splitlines())
    problems, rows = ProblemList(InputError), []
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        got = ", ".join(reader.fieldnames or ()) or "an empty file"
        raise InputError(
            f"no column {', '.join(missing)}", path=str(path), line=1, expected=", ".join(COLUMNS), got=got
        )
    for row in reader:
        query, doc, grade = (str(row[name] or "").strip() for name in COLUMNS)
        if not query or not doc:
            problems.add("the line has no query or no document", path=str(path), line=reader.line_num)
        try:
            rows.append((query, doc, float(grade), str(row.get("reason") or "").strip()))
        except ValueError:
            problems.add("the grade is not a number", path=str(path), line=reader.line_num, got=shorten(grade))
    problems.raise_if_any()
    return rows
