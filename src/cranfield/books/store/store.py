"""The store of books: a part for each task, over one database. SQL is written in this folder only."""

from __future__ import annotations

from cranfield.books.database.engine import Clock, Database, now_ms
from cranfield.books.store.books import Books
from cranfield.books.store.calls import Calls
from cranfield.books.store.log import Log
from cranfield.books.store.people import People
from cranfield.books.store.queue import Queue
from cranfield.books.store.reading import BookReading
from cranfield.books.store.sign_ins import SignIns
from cranfield.books.store.transfer import Transfer


class Store:
    """A database of books. Use it from any thread; `close()` at the end.

    Attributes:
        books: books, their items, guidelines and frozen versions.
        people: accounts, sessions, tokens, join links, members.
        sign_ins: attempts to sign in.
        queue: what a rater judges next; leases.
        log: saves, adjudication, imports, events.
        reading: progress, coverage, ratings, items.
        calls: calls of models.
        transfer: whole books out of the database and into it.
        is_new: whether opening the database made its tables.
    """

    def __init__(self, database: Database, clock: Clock = now_ms, *, is_new: bool = False) -> None:
        self.database = database
        self.clock = clock
        self.is_new = is_new
        self.books = Books(database, clock)
        self.people = People(database, clock)
        self.sign_ins = SignIns(database, clock)
        self.queue = Queue(database, clock)
        self.log = Log(database, clock)
        self.reading = BookReading(database, clock)
        self.calls = Calls(database, clock)
        self.transfer = Transfer(database, clock)

    @property
    def where(self) -> str:
        """The database, without a password."""
        return self.database.where

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
