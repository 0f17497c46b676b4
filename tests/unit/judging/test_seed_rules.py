"""From the raters' clicks to the measures, by the rules of SearchTweak: slots, ties, and what is null.

Each case is judged through the calls that the judging page makes, frozen, written, read back and evaluated under the
convention `searchtweak`; the expected values follow from its documentation by hand.
"""

from __future__ import annotations

from datetime import date
from math import log2

import pytest

from cranfield.app.evaluate import evaluate
from cranfield.app.loading import load
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import SCALES, BookSettings
from cranfield.books.store.schema import Action, Role, SkipReason
from cranfield.books.store.store import open_store
from cranfield.books.store.values import SaveRequest
from cranfield.formats.testsets.storage import write_new
from cranfield.judging.book.freeze import freeze
from cranfield.judging.book.grades import contents_of

pytestmark = pytest.mark.slow
DOCS = ("a", "b", "c", "d")
RUN = {"q": list(DOCS), "other": ["x"]}
"""The second query has a value where nothing of the first is graded."""


def judged(store, name, scale, slots):
    """A book in which three raters lease, and grade or skip, every document of the query; None: put off."""
    pool = Pool(
        name=name,
        method="depth",
        depth=4,
        runs=(PooledRun(name="bm25", digest="sha256:1"),),
        queries=(PooledQuery(id="q", text="a query"), PooledQuery(id="other", text="another")),
        items=(
            *(PooledItem(query="q", doc=doc, runs={"bm25": rank}) for rank, doc in enumerate(DOCS, 1)),
            PooledItem(query="other", doc="x"),
        ),
    )
    settings = BookSettings(scale=SCALES[scale], raters_per_item=3, escalate_from=10, consensus="searchtweak")
    info = store.books.create(name, pool, settings)
    given = {**{("q", doc): grades for doc, grades in zip(DOCS, slots, strict=True)}, ("other", "x"): (1, 1, 1)}
    raters = [store.people.find(n) or store.people.add(n, Role.RATER) for n in ("ann", "bob", "cas")]
    for number, rater in enumerate(raters):
        store.people.join(info.id, rater.id)
        for count in range(len(given)):
            (item, *_) = store.queue.next_items(info.id, rater.id, 1)
            grade = given[item.query, item.doc][number]
            action = Action.SKIP if grade is None else Action.GRADE
            skip = SkipReason.UNCLEAR_DOCUMENT if grade is None else None
            key = f"{name}:{rater.id}:{count}"
            store.log.save(
                SaveRequest(info.id, item.item_id, rater.id, action, key, grade, skip_reason=skip, method="key")
            )
    return info


def measures(tmp_path, name, scale, slots, names):
    store = open_store(tmp_path / "books.db")
    try:
        judged(store, name, scale, slots)
        made = freeze(contents_of(store, name), today=date(2026, 11, 23), allow_partial=True)
    finally:
        store.close()
    write_new(made.testset, tmp_path / "set.yaml")
    evaluation = evaluate(load(tmp_path / "set.yaml"), RUN, measures=names, convention="searchtweak")
    values = [evaluation.value(measure, "q") for measure in names]
    for measure, value in zip(names, values, strict=True):  # the mean is over the queries that have a value
        other = evaluation.value(measure, "other")
        assert evaluation.mean(measure) == pytest.approx(other if value is None else (value + other) / 2)
    return values


N = None
BINARY = ["P@4", "AP@4", "RR@4"]
GRADED = ["CG@4", "DCG@4", "nDCG@4"]
CASES = {
    # majority of three; a tie of two filled slots (1,0,null) is null, and out of the denominator of P
    "majority and tie": ("binary", [(1, 1, 0), (1, 0, N), (0, 0, 1), (1, N, N)], BINARY, [2 / 3, (1 + 2 / 4) / 2, 1.0]),
    "a tie first": ("binary", [(1, 0, N), (1, 1, 1), (0, 0, 0), (N, N, N)], BINARY, [1 / 2, 1 / 2, 1 / 2]),
    "nothing relevant is 0": ("binary", [(0, 0, 0), (0, 0, 1), (N, N, N), (1, 0, N)], BINARY, [0.0, 0.0, 0.0]),
    "all tied is null": ("binary", [(1, 0, N)] * 4, BINARY, [N, N, N]),
    "all ungraded is null": ("binary", [(N, N, N)] * 4, BINARY, [N, N, N]),
    # the mean of the filled slots; an ungraded position adds 0
    "means": (
        "graded",
        [(3, 2, 1), (N, N, N), (0, 1, N), (3, 3, 3)],
        GRADED,
        [
            2 + 0 + 0.5 + 3,
            2 / log2(2) + 0.5 / log2(4) + 3 / log2(5),
            (2 / log2(2) + 0.5 / log2(4) + 3 / log2(5)) / (3 / log2(2) + 2 / log2(3) + 0.5 / log2(4)),
        ],
    ),
    "an ideal of 0 is 0": ("graded", [(0, 0, 0), (0, N, N), (0, 0, 0), (N, N, N)], GRADED, [0.0, 0.0, 0.0]),
    "graded, all ungraded is null": ("graded", [(N, N, N)] * 4, GRADED, [N, N, N]),
    # each rating is mapped to the binary scale before the vote: 1, 1, 0 is relevant although the mean is 2/3
    "mapped before the vote": ("graded", [(1, 1, 0), (3, 0, 0), (2, N, N), (2, 0, N)], ["P@4"], [2 / 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_clicks_to_measures(name, tmp_path):
    scale, slots, names, expected = CASES[name]
    found = measures(tmp_path, name, scale, slots, names)
    assert found == [value if value is None else pytest.approx(value, abs=1e-12) for value in expected]
