"""A whole book out of a database, and into one: every row of it, so that what comes back is what went out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from cranfield.base.errors import Problem, ProblemList, UsageError, shorten
from cranfield.books.database.base import Base
from cranfield.books.database.engine import Part
from cranfield.books.store import book_records as records
from cranfield.books.store.rows import book_row, name_of_file
from cranfield.books.store.schema import (
    Account,
    Book,
    BookQuery,
    Event,
    Frozen,
    Guideline,
    Item,
    ItemJudgment,
    Member,
    ModelCall,
    RaterKind,
    Role,
    Slot,
    SlotState,
)

Row = TypeVar("Row", bound=Base)
Made = TypeVar("Made", bound=records.BookLine)


class Transfer(Part):
    """Whole books."""

    def dump(self, book: str | int, *, pseudonyms: bool = False) -> records.BookDump:
        """Read a book. Items that a rater holds at the moment are free in it.

        Args:
            book: name or id.
            pseudonyms: persons are called `NAME/rater 1`, ...; frozen versions lose their manifests, which name them.

        Raises:
            UnknownNameError: there is no such book.
        """
        with self._database.read() as session:
            return _Reading(session, book_row(session, book), pseudonyms=pseudonyms).dump()

    def restore(self, dump: records.BookDump, name: str | None = None) -> int:
        """Make a book of what was dumped; its id. Raters go by name: those that are not there get an account without a password.

        Args:
            dump: the book.
            name: of the new book; None: as it was called.

        Raises:
            UsageError: the name is taken, a rater is of another kind here, or references that lead nowhere; all at once.
        """
        with self._database.write() as session:
            return _Writing(session, dump, name or dump.book.name, self._clock()).restore()


def _values(row: object, record: type[records.BookLine], **more: Any) -> dict[str, Any]:
    """The columns that a record has too."""
    return {key: getattr(row, key) for key in record.model_fields if key not in more and hasattr(row, key)} | more


class _Reading:
    def __init__(self, session: Session, book: Book, *, pseudonyms: bool) -> None:
        self.session, self.book, self.pseudonyms = session, book, pseudonyms
        self.items = self._all(select(Item).where(Item.book_id == book.id).order_by(Item.id))
        self.events = self._all(select(Event).where(Event.book_id == book.id).order_by(Event.id))
        self.item_number = {item.id: place for place, item in enumerate(self.items, start=1)}
        self.event_number = {event.id: place for place, event in enumerate(self.events, start=1)}
        self.accounts: dict[int, Account] = {row.id: row for row in self._all(select(Account).order_by(Account.id))}
        self.used: dict[int, str] = {}

    def _all(self, query: Any) -> Sequence[Any]:
        return self.session.scalars(query).all()

    def _of_items(self, table: Any) -> Sequence[Any]:
        of_book = select(Item.id).where(Item.book_id == self.book.id)
        return self._all(select(table).where(table.item_id.in_(of_book)).order_by(*table.__table__.primary_key))

    def _name(self, account_id: int | None) -> str | None:
        return None if account_id is None else self._rater(account_id)

    def _rater(self, account_id: int) -> str:
        account = self.accounts[account_id]
        hidden = self.pseudonyms and account.kind == RaterKind.PERSON
        return self.used.setdefault(account_id, f"{self.book.name}/rater {account_id}" if hidden else account.name)

    def dump(self) -> records.BookDump:
        book = self.book
        queries = self._all(select(BookQuery).where(BookQuery.book_id == book.id).order_by(BookQuery.position))
        names = {query.id: query.name for query in queries}
        members = self._all(select(Member).where(Member.book_id == book.id))
        calls = self._all(select(ModelCall).where(ModelCall.book_id == book.id).order_by(ModelCall.id))
        guidelines = self._all(select(Guideline).where(Guideline.book_id == book.id).order_by(Guideline.version))
        frozen = self._all(select(Frozen).where(Frozen.book_id == book.id).order_by(Frozen.number))
        slots: dict[int, list[dict[str, Any]]] = {}
        for slot in self._of_items(Slot):
            is_free = slot.state == SlotState.LEASED
            free = {"state": SlotState.OPEN, "account": None} if is_free else {"account": self._name(slot.account_id)}
            slots.setdefault(slot.item_id, []).append(_values(slot, records.SlotRecord, **free))
        lines: dict[str, list[dict[str, Any]]] = {
            "query": [_values(query, records.BookQueryRecord) for query in queries],
            "item": [self._item(item, names, slots.get(item.id, [])) for item in self.items],
            "event": [self._event(event) for event in self.events],
            "judgment": sorted(
                map(self._judgment, self._of_items(ItemJudgment)), key=lambda row: (row["item"], row["account"])
            ),
            "call": [self._call(row) for row in calls],
        }
        parts = {
            "guidelines": [
                _values(row, records.GuidelineRecord, account=self._name(row.account_id)) for row in guidelines
            ],
            "members": sorted(map(self._member, members), key=lambda row: str(row["account"])),
            "frozen": [
                _values(row, records.FrozenRecord, **({"manifest": {}} if self.pseudonyms else {})) for row in frozen
            ],
        }
        header = _values(
            book, records.BookHeader, cranfield_book=1, pseudonyms=self.pseudonyms, raters=self._raters(), **parts
        )
        return records.BookDump.model_validate({"book": header, **lines})

    def _raters(self) -> list[dict[str, Any]]:
        used = sorted((name, self.accounts[account_id]) for account_id, name in self.used.items())
        return [
            {
                "name": name,
                "kind": account.kind,
                "settings": account.settings if account.kind == RaterKind.MODEL else {},
            }
            for name, account in used
        ]

    def _member(self, row: Member) -> dict[str, Any]:
        return _values(row, records.MemberRecord, account=self._rater(row.account_id))

    def _item(self, item: Item, names: dict[int, str], slots: list[dict[str, Any]]) -> dict[str, Any]:
        return _values(
            item,
            records.ItemRecord,
            number=self.item_number[item.id],
            query=names[item.query_id],
            repeat_of=None if item.repeat_of is None else self.item_number[item.repeat_of],
            repeat_for=self._name(item.repeat_for),
            slots=slots,
        )

    def _event(self, event: Event) -> dict[str, Any]:
        more = {"account": self._rater(event.account_id), "subject": self._name(event.subject_id)}
        numbers = {"number": self.event_number[event.id], "item": self.item_number[event.item_id]}
        return _values(event, records.EventRecord, **numbers, **more)

    def _judgment(self, row: ItemJudgment) -> dict[str, Any]:
        numbers = {"event": self.event_number[row.event_id], "item": self.item_number[row.item_id]}
        return _values(row, records.JudgmentRecord, account=self._rater(row.account_id), **numbers)

    def _call(self, row: ModelCall) -> dict[str, Any]:
        listed = row.item_ids.get("items")
        items = [self.item_number[number] for number in listed] if isinstance(listed, list) else []
        return _values(row, records.CallRecord, account=self._rater(row.account_id), items=items)


class _Writing:
    def __init__(self, session: Session, dump: records.BookDump, name: str, now: int) -> None:
        self.session, self.dump, self.name, self.now = session, dump, name, now
        self.problems = ProblemList(UsageError)

    def restore(self) -> int:
        if self.session.scalar(select(Book.id).where(Book.name == self.name)) is not None:
            self.problems.add(f"book {self.name} already exists", hint="import it under another name with {name=NAME}")
        self.problems.problems += dangling(self.dump)
        accounts = self._accounts()
        self.problems.raise_if_any()
        header = self.dump.book
        book = Book(
            name=self.name,
            state=header.state,
            settings=header.settings.model_dump(mode="json"),
            source=header.source,
            created_at=header.created_at,
        )
        self.session.add(book)
        self.session.flush()
        self._about(book.id, accounts)
        items = self._items(book.id, accounts)
        self._log(book.id, accounts, items)
        return book.id

    def _accounts(self) -> dict[str | None, int | None]:
        """Name to id; those that are not there are made."""
        known = {row.name: row for row in self.session.scalars(select(Account))}
        ids: dict[str | None, int | None] = {None: None}
        for rater in self.dump.book.raters:
            name = name_of_file(rater.name, rater.kind)
            account = known.get(name)
            if account is None:
                person = rater.kind is RaterKind.PERSON
                role = Role.RATER if person else Role.VIEWER
                account = Account(name=name, kind=rater.kind, role=role, active=person, created_at=self.now)
                account.settings = rater.settings
                self.session.add(account)
                self.session.flush()
            elif account.kind != rater.kind:
                what = f"rater {shorten(rater.name)} already exists as a rater of another kind"
                self.problems.add(what, expected=rater.kind.value, got=account.kind)
            ids[rater.name] = account.id
        return ids

    def _insert(self, table: type[Base], rows: list[dict[str, Any]]) -> None:
        if rows:
            self.session.execute(insert(table), rows)

    def _inserted(self, table: Any, rows: list[dict[str, Any]]) -> list[int]:
        """Ids in the order of the rows."""
        if not rows:
            return []
        made = insert(table).returning(table.id, sort_by_parameter_order=True)
        return list(self.session.scalars(made, rows))

    def _about(self, book_id: int, accounts: dict[str | None, int | None]) -> None:
        header = self.dump.book
        for table, listed in ((Guideline, header.guidelines), (Member, header.members), (Frozen, header.frozen)):
            rows = [{"book_id": book_id, **_plain(record, accounts)} for record in listed]
            self._insert(table, rows)

    def _items(self, book_id: int, accounts: dict[str | None, int | None]) -> list[int]:
        """Ids of the items by their number; 0 is none."""
        queries = [{"book_id": book_id, **_plain(query, accounts)} for query in self.dump.query]
        names = dict(zip((query.name for query in self.dump.query), self._inserted(BookQuery, queries), strict=True))
        rows = [self._item_row(item, book_id, names, accounts) for item in self.dump.item]
        ids = [0, *self._inserted(Item, rows)]
        for item in self.dump.item:
            if item.repeat_of is not None:
                again = update(Item).where(Item.id == ids[item.number]).values(repeat_of=ids[item.repeat_of])
                self.session.execute(again)
        slots = [
            {"item_id": ids[item.number], **_plain(slot, accounts)} for item in self.dump.item for slot in item.slots
        ]
        self._insert(Slot, slots)
        return ids

    def _item_row(
        self, item: records.ItemRecord, book_id: int, names: dict[str, int], accounts: dict[str | None, int | None]
    ) -> dict[str, Any]:
        row = item.model_dump(exclude={"number", "query", "slots", "repeat_of", "repeat_for"})
        return {"book_id": book_id, **row, "query_id": names[item.query], "repeat_for": accounts[item.repeat_for]}

    def _log(self, book_id: int, accounts: dict[str | None, int | None], items: list[int]) -> None:
        rows = [
            {
                "book_id": book_id,
                **_plain(event, accounts, leave=("number", "item", "subject")),
                "item_id": items[event.item],
                "subject_id": accounts[event.subject],
                "client_key": f"restored:{book_id}:{event.number}",
            }
            for event in self.dump.event
        ]
        events = [0, *self._inserted(Event, rows)]
        judgments = [
            {
                **_plain(row, accounts, leave=("item", "event")),
                "item_id": items[row.item],
                "event_id": events[row.event],
            }
            for row in self.dump.judgment
        ]
        self._insert(ItemJudgment, judgments)
        calls = [
            {
                "book_id": book_id,
                **_plain(row, accounts, leave=("items",)),
                "item_ids": {"items": [items[number] for number in row.items]},
            }
            for row in self.dump.call
        ]
        self._insert(ModelCall, calls)


def _plain(
    record: records.BookLine, accounts: dict[str | None, int | None], leave: Iterable[str] = ()
) -> dict[str, Any]:
    """The columns of a record; `account` as its id."""
    row = record.model_dump(exclude=set(leave))
    if "account" in row:
        row["account_id"] = accounts[row.pop("account")]
    return row


def dangling(dump: records.BookDump) -> list[Problem]:
    """Names and numbers in a book that lead nowhere, or stand twice."""
    raters: set[str | None] = {None, *(rater.name for rater in dump.book.raters)}
    queries = {query.name for query in dump.query}
    n_items, n_events = len(dump.item), len(dump.event)
    found: list[tuple[str, object]] = []
    found += [("query", item.query) for item in dump.item if item.query not in queries]
    found += [("item", row.number) for place, row in enumerate(dump.item, start=1) if row.number != place]
    found += [("event", row.number) for place, row in enumerate(dump.event, start=1) if row.number != place]
    found += [("item", item.repeat_of) for item in dump.item if item.repeat_of is not None and item.repeat_of > n_items]
    on_items = [*(row.item for row in dump.event), *(row.item for row in dump.judgment)]
    found += [("item", number) for number in on_items if number > n_items]
    found += [("item", number) for row in dump.call for number in row.items if number > n_items]
    found += [("event", row.event) for row in dump.judgment if row.event > n_events]
    named: list[str | None] = [event.account for event in dump.event]
    named += [row.account for row in dump.judgment]
    named += [row.account for row in dump.call] + [row.account for row in dump.book.members]
    named += [row.account for row in dump.book.guidelines]
    named += [event.subject for event in dump.event] + [item.repeat_for for item in dump.item]
    named += [slot.account for item in dump.item for slot in item.slots]
    found += [("rater", name) for name in dict.fromkeys(named) if name not in raters]
    if len(queries) < len(dump.query):
        found.append(("query", "one stands twice"))
    return [
        Problem(f"not a whole book: {kind} {shorten(str(value))} is missing or out of order") for kind, value in found
    ]
