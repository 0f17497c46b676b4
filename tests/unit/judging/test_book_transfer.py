"""A whole book out of a database and into another: the same bytes."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import Action, RaterKind, Role, SkipReason
from cranfield.books.store.store import open_store
from cranfield.books.store.values import CallRow, SaveRequest
from cranfield.judging.book.exports import BookFileError, is_book, read_book, write_book
from cranfield.judging.book.freeze import freeze, record_frozen
from cranfield.judging.book.grades import contents_of, rated_book

TEXTS = st.sampled_from(["", "because", "zwei\nZeilen", '"quoted", 日本', "'=1+1"])


@pytest.fixture(scope="module")
def two_stores(tmp_path_factory):
    """Two databases that all cases use; each has a book of another name."""
    folder = tmp_path_factory.mktemp("books")
    ticks = iter(range(1_000, 10**9, 250))
    stores = [open_store(folder / f"{name}.db", clock=lambda: next(ticks)) for name in ("first", "second")]
    yield stores
    for store in stores:
        store.close()


def pool_of(n_queries, n_docs):
    return Pool(
        name="pool",
        method="depth",
        depth=3,
        runs=(PooledRun(name="bm25", digest="sha256:1"),),
        queries=tuple(PooledQuery(id=f"q{q}", text=f"text {q}", strata={"kind": "head"}) for q in range(n_queries)),
        items=tuple(
            PooledItem(query=f"q{q}", doc=f"d{d}", fields={"title": f"T {d}"}, runs={"bm25": d + 1}, judged=carried)
            for q in range(n_queries)
            for d, carried in enumerate([2.0, *[None] * (n_docs - 1)])
        ),
    )


ACTIONS = st.tuples(
    st.integers(0, 10**6),  # item
    st.integers(0, 3),  # rater
    st.sampled_from(["grade", "grade", "grade", "skip", "later", "flag", "undo", "adjudicate", "call", "guideline"]),
    st.integers(0, 3),
    TEXTS,
)
CASES = iter(range(10**6))


def account(store, name, kind=RaterKind.PERSON):
    known = {row.name: row for row in store.people.all()}
    return known[name] if name in known else store.people.add(name, Role.LEAD, kind)


def filled(store, actions, n_queries, n_docs):
    """A new book in which raters did all that."""
    number = next(CASES)
    info = store.books.create(f"book {number}", pool_of(n_queries, n_docs), BookSettings(raters_per_item=2))
    people = [account(store, name) for name in ("ann", "bob", "Ünal")] + [account(store, "gpt", RaterKind.MODEL)]
    lead = account(store, "lead")
    store.people.join(info.id, people[0].id, quota=7)
    items = store.reading.items(info.id)
    for place, (which, who, what, grade, text) in enumerate(actions):
        item, rater, key = items[which % len(items)], people[who], f"{number}:{place}"
        if what == "guideline":
            store.books.set_guideline(info.id, f"Guideline {place}", lead.id)
        elif what == "adjudicate":
            store.log.adjudicate(item.id, lead.id, grade, text or "as agreed", key)
        elif what == "call":
            call = CallRow(
                info.id, people[3].id, key, (item.id,), {"p": text}, {"grade": grade}, "ok", "", 5, 1, None, 9
            )
            store.calls.add(call)
        else:
            is_grade, is_skip = what == "grade", what == "skip"
            store.log.save(
                SaveRequest(
                    info.id,
                    item.id,
                    rater.id,
                    Action(what),
                    key,
                    grade if is_grade else None,
                    skip_reason=SkipReason.EXPERT if is_skip else None,
                    reason=text,
                    duration_ms=place,
                    method="key",
                )
            )
    return info


@settings(max_examples=min(10, settings().max_examples // 6), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(ACTIONS, max_size=25), st.integers(1, 3), st.integers(1, 4))
def test_book_to_file_to_book_to_file_is_the_same_bytes(two_stores, tmp_path, actions, n_queries, n_docs):
    first, second = two_stores
    info = filled(first, actions, n_queries, n_docs)
    one, two = tmp_path / "one.book.jsonl", tmp_path / "two.book.jsonl"
    write_book(first.transfer.dump(info.name), one)
    assert is_book(one)
    second.transfer.restore(read_book(one))
    write_book(second.transfer.dump(info.name), two)
    assert two.read_bytes() == one.read_bytes()
    here, there = (rated_book(contents_of(store, info.name)) for store in (first, second))
    assert there.testset.digest == here.testset.digest
    assert there.decided_by == here.decided_by


@pytest.fixture
def book(two_stores):
    actions = [
        (1, 0, "grade", 3, "ann is sure"),
        (1, 1, "grade", 1, ""),
        (0, 2, "skip", 0, ""),
        (1, 0, "adjudicate", 2, "x"),
    ]
    return two_stores[0], filled(two_stores[0], actions, 2, 3)


def test_a_restored_book_goes_on(book, two_stores, tmp_path):
    _, info = book
    write_book(two_stores[0].transfer.dump(info.name), tmp_path / "b.book.jsonl")
    store = two_stores[1]
    book_id = store.transfer.restore(read_book(tmp_path / "b.book.jsonl"), "another name")
    rater = account(store, "new rater")
    store.people.join(book_id, rater.id)
    (assignment, *_) = store.queue.next_items(book_id, rater.id, 3)
    saved = store.log.save(SaveRequest(book_id, assignment.item_id, rater.id, Action.GRADE, f"again {book_id}", 2))
    assert not saved.duplicate


def test_pseudonyms_name_no_person_anywhere(book, tmp_path):
    store, info = book
    path = tmp_path / "b.book.jsonl"
    contents = contents_of(store, info.name)
    record_frozen(store, contents, freeze(contents, today=date(2026, 11, 23), allow_partial=True))
    assert "ann" in str(store.transfer.dump(info.name).book.frozen[0].manifest)
    write_book(store.transfer.dump(info.name, pseudonyms=True), path)
    assert [frozen.manifest for frozen in read_book(path).book.frozen] == [{}]
    kinds = {rater.name: rater.kind for rater in read_book(path).book.raters}
    assert all(name.startswith(f"{info.name}/rater ") for name, kind in kinds.items() if kind is RaterKind.PERSON)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    accounts = {
        value["account"] for line in lines for value in line.values() if isinstance(value, dict) and "account" in value
    }
    assert accounts <= set(kinds)
    assert not accounts & {"ann", "bob", "Ünal", "lead"}


def test_a_name_that_is_taken_and_a_rater_of_another_kind_are_refused_at_once(book, two_stores, tmp_path):
    store, info = book
    dump = store.transfer.dump(info.name)
    wrong = dump.model_copy(
        update={
            "book": dump.book.model_copy(
                update={"raters": [r.model_copy(update={"kind": RaterKind.RULE}) for r in dump.book.raters]}
            )
        }
    )
    with pytest.raises(UsageError) as caught:
        store.transfer.restore(wrong)
    messages = [problem.message for problem in caught.value.problems]
    assert f"book {info.name} already exists" in messages
    assert "rater 'ann' already exists as a rater of another kind" in messages


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda lines: [*lines, '{"event":{"number":1}}'], "field required"),
        (lambda lines: [*lines, '{"what":{}}'], "not a valid line of a book file"),
        (lambda lines: [*lines, "{"], "not valid json"),
        (lambda lines: ['{"cranfield_book":2}'], "cranfield_book"),
        (lambda _: [], "the file is empty"),
    ],
)
def test_a_malformed_line_is_named(change, expected, book, tmp_path):
    store, info = book
    path = tmp_path / "b.book.jsonl"
    write_book(store.transfer.dump(info.name), path)
    lines = change(path.read_text("utf-8").splitlines())
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    with pytest.raises(BookFileError) as caught:
        read_book(path)
    assert expected in str(caught.value).lower()
    assert caught.value.problems[0].line in {None, len(lines)}


def test_references_that_lead_nowhere_are_refused(book, two_stores):
    store, info = book
    dump = store.transfer.dump(info.name)
    lost = dump.model_copy(update={"item": dump.item[:1], "query": []})
    with pytest.raises(UsageError, match="not a whole book"):
        two_stores[1].transfer.restore(lost, "lost")
