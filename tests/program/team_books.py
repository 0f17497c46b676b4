"""A database of books as a team has it: accounts of each role, a book that is half judged, another team's book."""

from __future__ import annotations

import random
from pathlib import Path

from argon2 import PasswordHasher

from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, RaterKind, Role
from cranfield.books.store.store import Store, open_store
from cranfield.books.store.values import ImportedJudgment

PASSWORD = "a long sentence of words"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
"""Of the password: its parameters are in the hash, so that tests need no 64 MB."""
PEOPLE = {
    "alex": Role.ADMIN,
    "lee": Role.LEAD,
    "vic": Role.VIEWER,
    "ann": Role.RATER,
    "bob": Role.RATER,
    "cas": Role.RATER,
    "oto": Role.RATER,
}
MEMBERS = {"shop": ("ann", "bob", "cas"), "other": ("oto",)}
TEXTS = ("wool socks", "blue shirt", "rain coat", "hiking boots", "winter hat", "running shoes")
NOON = 1_795_435_200_000
"""2026-11-23 12:00 UTC."""
DAY = 86_400_000


def pool(name: str, n_docs: int = 20) -> Pool:
    queries = tuple(
        PooledQuery(id=f"q{place}", text=text, need=f"Where can I buy {text}, and what do they cost?")
        for place, text in enumerate(TEXTS, 1)
    )
    items = tuple(
        PooledItem(
            query=query.id,
            doc=f"{query.id}-d{doc:02}",
            fields={
                "title": f"{query.text.capitalize()}, model {doc}",
                "text": f"We sell {query.text} of kind {doc}. " * 4,
            },
            runs={"bm25": doc},
        )
        for query in queries
        for doc in range(1, n_docs + 1)
    )
    run = PooledRun(name="bm25", digest="sha256:" + "0" * 64)
    return Pool(name=name, method="depth", depth=n_docs, runs=(run,), queries=queries, items=items)


def fill(path: Path) -> None:
    """`shop`: 62 of 120 items judged twice, some thrice; cas grades at random. `other`: nothing judged."""
    store = open_store(path, clock=lambda: NOON)
    for name, role in PEOPLE.items():
        store.people.add(name, role, password_hash=QUICK)
    settings = BookSettings(raters_per_item=2, most_raters=3, repeats=0.05)
    for name, members in MEMBERS.items():
        book = store.books.create(name, pool(name), settings, by=store.people.get("alex").id)
        for member in members:
            store.people.join(book.id, store.people.get(member).id)
    store.books.calibration(
        store.books.get("shop").id, [("q1", f"q1-d{doc:02}", 2.0, "as in the guideline") for doc in (1, 2, 3)]
    )
    _judge(store)
    store.close()


def _judge(store: Store) -> None:
    rng = random.Random(3)
    book = store.books.get("shop")
    accounts = {name: store.people.get(name) for name in MEMBERS["shop"]}
    model = store.people.add("gpt-x", Role.RATER, RaterKind.MODEL)
    rows = []
    for place, item in enumerate(store.reading.items(book.id)[:62]):
        true = rng.choice([0, 0, 1, 2, 3])
        given = {"ann": true, "bob": min(3, max(0, true + rng.choice([0, 0, 0, 0, -1, 1])))}
        if place % 3 == 0:
            given["cas"] = rng.randrange(4)
        if place == 5:
            given = {"ann": 0, "bob": 3, "cas": 0}
        for name, grade in given.items():
            reason = f"{name} thinks so" if place == 5 else ""
            fast = name == "cas" and place % 6 == 0
            at = NOON - DAY * (2 - place // 25)
            rows.append(
                ImportedJudgment(
                    item.id, accounts[name].id, f"k{place}", float(grade), Action.GRADE,
                    reason=reason, at=at, duration_ms=400 if fast else 4000, method="key",
                )
            )  # fmt: skip
        if place < 20:
            rows.append(ImportedJudgment(item.id, model.id, f"m{place}", float(true), Action.GRADE, method="model"))
    store.log.import_many(book.id, rows)
