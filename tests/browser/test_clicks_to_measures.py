"""From keys on the judging page to measures, by the rules of SearchTweak: a tie and what nobody graded are null."""

from __future__ import annotations

from contextlib import closing
from datetime import date

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.app.loading import load
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import SCALES, BookSettings
from cranfield.books.store.schema import Action
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.formats.testsets.storage import write_new
from cranfield.judging.book.freeze import freeze
from cranfield.judging.book.grades import contents_of

from .test_judging_page import Served, all_saved, context, grade, opened

__all__ = ["context"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]
GIVEN = {"a": (1, "1"), "b": (1, "0"), "c": (0, "0"), "d": (None, None), "t": (0, "1"), "x": (1, "1")}
"""Document to the grade of bob, and the key that the user of the page presses."""
RUN = {"some": ["a", "b", "c", "d"], "ties": ["t"], "other": ["x"]}


def test_keys_to_measures(context, tmp_path):
    fields = {"title": "A document", "text": "Its text"}
    items = tuple(PooledItem(query=query, doc=doc, fields=fields) for query, docs in RUN.items() for doc in docs)
    queries = tuple(PooledQuery(id=query, text=query) for query in RUN)
    pool = Pool(name="p", method="depth", depth=4, runs=(), queries=queries, items=items)
    settings = BookSettings(scale=SCALES["binary"], raters_per_item=2, escalate_from=10, consensus="searchtweak")
    with closing(open_store(tmp_path / "books.db")) as store:
        book, bob = store.books.create("shop", pool, settings), store.people.add("bob")
        store.people.join(book.id, bob.id)
        for item in store.reading.items(book.id):
            if (given := GIVEN[item.doc][0]) is not None:
                store.log.save(SaveRequest(book.id, item.id, bob.id, Action.GRADE, item.doc, given))
    served = Served(tmp_path / "books.db")
    try:
        page, _ = opened(context, served.address())
        for _ in GIVEN:
            key = GIVEN[page.locator(".card .doc").inner_text()][1]
            if key is None:
                page.keyboard.press("s")
                page.wait_for_selector("#skip-dialog[open]")
                key = "1"
            grade(page, key)
        all_saved(page)
        made = freeze(contents_of(served.store, "shop"), today=date(2026, 11, 23), allow_partial=True)
    finally:
        served.stop()
    write_new(made.testset, tmp_path / "set.yaml")
    names = ["P@4", "RR@4"]
    found = evaluate(load(tmp_path / "set.yaml"), RUN, measures=names, convention="searchtweak")
    values = {query: [found.value(name, query) for name in names] for query in RUN}
    # a is relevant and c is not; b is a tie, and nobody graded d: P is over two positions
    assert values == {"some": [0.5, 1.0], "ties": [None, None], "other": [1.0, 1.0]}
    assert [found.mean(name) for name in names] == [0.75, 1.0]
