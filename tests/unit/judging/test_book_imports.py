"""Judgments into a book and out of it, in the formats of other tools."""

from __future__ import annotations

import pytest

from cranfield.app.commands.convert import convert_command
from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.settings import BookSettings
from cranfield.books.store.book_records import RaterRecord
from cranfield.books.store.schema import RaterKind, Role
from cranfield.books.store.store import open_store
from cranfield.formats.convert import write_run, write_testset
from cranfield.formats.sniff import read_testset
from cranfield.judging.book.exports import judgments_of, pooled_run
from cranfield.judging.book.grades import contents_of, rated_book
from cranfield.judging.book.imports import book_of, import_judgments, scale_for
from cranfield.model import Answer, Hit, Outcome, Query, Rating, Run, TestSet

CSV = (
    "query_id,query_text,doc_id,grade,rater,reason,time,final\n"
    "q1,wool socks,sock,3,ann,of wool,2026-01-02T03:04:05Z,\n"
    "q1,wool socks,sock,1,bob,,,\n"
    "q1,wool socks,sock,2,lead,clause 2,2026-01-02T04:00:00Z,yes\n"
    "q1,wool socks,hat,0,,,,\n"
    "q2,blue,shirt,2,ann,,,\n"
)
POOL = Pool(
    name="p",
    method="depth",
    depth=3,
    runs=(PooledRun(name="bm25", digest="sha256:1"),),
    queries=(PooledQuery(id="q1", text="wool socks"), PooledQuery(id="q2", text="blue")),
    items=tuple(
        PooledItem(query=query, doc=doc, runs={"bm25": rank})
        for query, doc, rank in [("q1", "hat", 2), ("q1", "sock", 1), ("q1", "zebra", 3), ("q2", "shirt", 1)]
    ),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = open_store(tmp_path_factory.mktemp("books") / "books.db")
    yield made
    made.close()


@pytest.fixture(scope="module")
def lead(store):
    return store.people.add("admin", Role.ADMIN).id


@pytest.fixture(scope="module")
def book(store, lead, tmp_path_factory):
    """A book with the judgments of the table."""
    path = tmp_path_factory.mktemp("csv") / "judged.csv"
    path.write_text(CSV, "utf-8")
    store.books.create("shop", POOL, BookSettings(raters_per_item=2))
    done = import_judgments(store, "shop", read_testset(path), path, by=lead)
    assert (done.n_new, done.n_known, done.n_final) == (4, 0, 1)
    again = import_judgments(store, "shop", read_testset(path), path, by=lead)
    assert (again.n_new, again.n_known, again.n_final) == (0, 5, 0)
    return contents_of(store, "shop")


def test_rater_reason_time_and_adjudication_arrive(book):
    sock = next(item for item in book.items if item.doc == "sock")
    rows = {row.rater: row for row in sock.ratings}
    assert (rows["ann"].kind, rows["ann"].grade, rows["ann"].reason) == (RaterKind.PERSON, 3, "of wool")
    assert rows["ann"].at == 1_767_323_045_000
    assert (sock.final, sock.final_by, sock.final_reason) == (2, "lead", "clause 2")
    assert [(row.rater, row.kind) for item in book.items if item.doc == "hat" for row in item.ratings] == [
        ("carried", RaterKind.CARRIED)
    ]


def test_qrels_keep_judged_0_pooled_and_unjudged_and_never_pooled_apart(book, tmp_path):
    write_testset(judgments_of(book), tmp_path / "out.qrels", "qrels")
    lines = sorted(line.split() for line in (tmp_path / "out.qrels").read_text().splitlines())
    assert lines == [
        ["q1", "0", "hat", "0"],
        ["q1", "0", "sock", "2"],
        ["q1", "0", "zebra", "-1"],
        ["q2", "0", "shirt", "2"],
    ]


@pytest.mark.parametrize("name", ["table", "judges", "quepid-book", "quepid-csv", "rre", "quepid-ltr", "searchtweak"])
def test_judgments_in_the_formats_of_other_tools_read_back(name, book, tmp_path):
    path = tmp_path / f"out.{'csv' if name == 'table' else 'data'}"
    write_testset(judgments_of(book, by_judge=name == "judges"), path, name)
    again = read_testset(path, name)
    grades = {grade for judged in again.grades.values() for grade in judged.values()}
    rated = {(r.rater, r.grade, r.reason) for given in again.ratings.values() for r in given}
    if name == "table":
        assert {("ann", 3, "of wool"), ("bob", 1, ""), ("lead", 2, "clause 2"), ("carried", 0, "")} <= rated
    elif name == "quepid-book":
        assert ("lead", 2, "clause 2") in rated  # it stands in the place of the others
    elif name == "judges":
        assert {group.group for given in again.groups.values() for group in given} >= {"ann", "bob", "lead"}
    else:
        assert grades == {0, 2}


def test_a_table_goes_round(book, store, lead, tmp_path):
    path = tmp_path / "out.csv"
    write_testset(judgments_of(book), path, "table")
    store.books.create("round", POOL, BookSettings(raters_per_item=2))
    import_judgments(store, "round", read_testset(path), path, by=lead)
    there, here = rated_book(contents_of(store, "round")), rated_book(book)
    assert there.testset.grades == here.testset.grades
    again = tmp_path / "again.csv"
    write_testset(judgments_of(contents_of(store, "round")), again, "table")
    kept = [
        line
        for line in path.read_text().splitlines()
        if "carried" not in line and "lead" not in line and ",bob," not in line
    ]
    assert all(line in again.read_text().splitlines() for line in kept if "2026-01-02" in line)


HOSTILE = ["a b", "tab\tx", "new\nline", " lead", "null", '=HYPERLINK("u")', "-2+3", '日本, "x"']


def test_raters_and_names_of_any_form_go_round(store, lead, tmp_path):
    """Through a table into a book and out of it, and through qrels by judge, which have no room for blanks."""
    for name, rater, docs in (("table", "a b", HOSTILE), ("judges", "a_b", ["=1+1", "日本", "a,b"])):
        given = {(doc, who, float((n + len(who)) % 4)) for n, doc in enumerate(docs) for who in ("a b", "c")}
        ratings = {"q": tuple(Rating(*row) for row in sorted(given))}
        info = book_of(store, name, testset := TestSet("names", (Query("q", "+1 wool"),), {}, ratings=ratings))
        import_judgments(store, info.id, testset, tmp_path, by=lead)
        exported = judgments_of(contents_of(store, info.id), by_judge=name == "judges")
        notes = [*map(str, exported.notes), *write_testset(exported, tmp_path / f"{name}.csv", name)]
        again = read_testset(tmp_path / f"{name}.csv", name)
        copy = book_of(store, f"copy of {name}", again)
        import_judgments(store, copy.id, again, tmp_path, by=lead)
        rows = [(item.doc, row.rater, row.grade) for item in contents_of(store, copy.id).items for row in item.ratings]
        assert set(rows) == {(doc, rater if who == "a b" else who, grade) for doc, who, grade in given}
        assert any("cells would run as a formula" in note for note in notes) == (name == "table")
        assert any("written as _: a b" in note for note in notes) == (name == "judges")


RATERS = [
    "gold",
    "adjudicator",
    "Person",
    "model",
    "a b",
    "a_b",
    "a\tb",
    "a\u200bb",
    " ",
    "x" * 300,
    "x" * 301,
    "rater 1",
    "-1",
    '=1, "x"',
]


def test_a_book_with_any_names_of_raters_is_exported_and_read_again(store, lead, tmp_path):
    ratings = {"q1": tuple(Rating("hat", name, float(place % 4)) for place, name in enumerate(RATERS))}
    store.books.create("named", POOL, BookSettings())
    testset = TestSet("names", (Query("q1", "wool"),), {}, ratings=ratings)
    for _ in range(2):
        done = import_judgments(store, "named", testset, tmp_path, by=lead)
    assert (done.n_new, done.n_known) == (0, len(RATERS))
    store.books.calibration(store.books.get("named").id, [("q1", "hat", 3, "clear")])
    contents = contents_of(store, "named")
    assert sorted(row.grade for row in contents.items[0].ratings) == sorted(place % 4 for place in range(len(RATERS)))
    for name in ("table", "yaml", "judges"):
        for pseudonyms in (False, True):
            exported = judgments_of(contents, by_judge=name == "judges", pseudonyms=pseudonyms)
            write_testset(exported, tmp_path / f"{name}.csv", name)
            again = read_testset(tmp_path / f"{name}.csv", name)
            rows = again.groups if name == "judges" else again.ratings
            assert len(rows["q1"]) == len(RATERS) + 1, name
    final = [rating for rating in judgments_of(contents).ratings["q1"] if rating.final]
    assert [(rating.rater, rating.grade) for rating in final] == [("gold", 3)]
    copy = store.transfer.restore(store.transfer.dump("named"), "copy")
    assert len(contents_of(store, copy).items[0].ratings) == len(RATERS)


def test_a_book_file_with_a_rater_called_gold_makes_no_such_account(store, lead):
    store.books.create("with a rater", POOL, BookSettings())
    dump = store.transfer.dump("with a rater")
    header = dump.book.model_copy(update={"raters": [RaterRecord(name="gold", kind=RaterKind.PERSON, settings={})]})
    store.transfer.restore(dump.model_copy(update={"book": header}), "gold copy")
    assert "gold (rater)" in {account.name for account in store.people.all()}
    assert store.people.find("gold") is None


def test_pseudonyms(book, tmp_path):
    write_testset(judgments_of(book, pseudonyms=True), tmp_path / "out.csv", "table")
    text = (tmp_path / "out.csv").read_text()
    assert "rater 1" in text
    assert not any(name in text for name in ("ann", "bob", "lead"))


def test_everything_that_the_book_does_not_have_is_named_at_its_line(book, store, lead, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("query_id,doc_id,grade\nq1,hat,7\nq1,cap,1\nq9,hat,1\n", "utf-8")
    with pytest.raises(UsageError) as caught:
        import_judgments(store, "shop", read_testset(path), path, by=lead)
    problems = {(problem.line, problem.message.split(" of ")[0]) for problem in caught.value.problems}
    assert problems == {
        (4, "query 'q9' is not in the book"),
        (2, "the grade"),
        (3, "document 'cap'"),
    }


def test_unknown_documents_are_added_or_left_out(store, lead, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("query_id,doc_id,grade\nq1,cap,1\nq9,hat,1\n", "utf-8")
    store.books.create("small", POOL, BookSettings())
    done = import_judgments(store, "small", read_testset(path), path, by=lead, unknown="skip")
    assert (done.n_new, done.skipped) == (0, ("q9", "q1 cap"))
    path.write_text("query_id,doc_id,grade\nq1,cap,1\n", "utf-8")
    done = import_judgments(store, "small", read_testset(path), path, by=lead, unknown="add")
    assert (done.n_new, done.n_added) == (1, 1)
    assert rated_book(contents_of(store, "small")).testset.grades["q1"]["cap"] == 1


def test_a_rater_who_is_a_model_here_stays_one(store, lead, tmp_path):
    store.people.add("judge-model", Role.VIEWER, RaterKind.MODEL)
    path = tmp_path / "other.csv"
    path.write_text("query_id,doc_id,grade,rater\nq1,hat,1,judge-model\n", "utf-8")
    store.books.create("with a model", POOL, BookSettings())
    import_judgments(store, "with a model", read_testset(path), path, by=lead)
    rated = rated_book(contents_of(store, "with a model"))
    assert rated.testset.grades["q1"]["hat"] == -1


def test_a_book_is_made_of_a_book_of_quepid(store, lead, tmp_path):
    path = tmp_path / "book.json"
    path.write_text(
        '{"name":"Movies","scale":[0,1,2,3],"query_doc_pairs":[{"query_text":"star wars","doc_id":"11","judgements":['
        '{"rating":3.0,"user_email":"a@x.org","explanation":"It is."},{"rating":1.0,"user_email":"b@x.org"}]}]}',
        "utf-8",
    )
    testset = read_testset(path)
    info = book_of(store, "movies", testset)
    assert (info.settings.raters_per_item, info.settings.consensus) == (2, "quepid")
    import_judgments(store, "movies", testset, path, by=lead)
    (item,) = contents_of(store, "movies").items
    assert [(row.rater, row.grade, row.reason) for row in item.ratings] == [
        ("a@x.org", 3, "It is."),
        ("b@x.org", 1, ""),
    ]


def test_a_scale_that_no_book_has_is_refused(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("query_id,doc_id,grade\nq1,a,0.5\nq1,b,7\n", "utf-8")
    with pytest.raises(UsageError, match="invalid scale for a book"):
        scale_for(read_testset(path))


@pytest.mark.parametrize(
    ("grades", "scale"),
    [
        ((1,), (0, 1)),
        ((0, 3), (0, 1, 2, 3)),
        ((1, 4), (0, 1, 2, 3, 4)),
        ((1, 10), tuple(range(1, 11))),
        ((0, 10), tuple(range(11))),
    ],
)
def test_a_test_set_without_a_declared_scale_is_judged_on_one_that_ends_where_its_grades_end(grades, scale):
    judged = {f"d{grade}": grade for grade in grades}
    assert scale_for(TestSet("t", (Query("q"),), {"q": judged})).grades == scale


def test_the_pooled_results_of_a_run_as_trec(book, tmp_path):
    write_run(pooled_run(book, "bm25"), tmp_path / "out.run", "trec")
    assert (tmp_path / "out.run").read_text().splitlines() == [
        "q1 Q0 sock 1 3.0 bm25",
        "q1 Q0 hat 2 2.0 bm25",
        "q1 Q0 zebra 3 1.0 bm25",
        "q2 Q0 shirt 1 1.0 bm25",
    ]
    with pytest.raises(UnknownNameError, match="bm25"):
        pooled_run(book, "bm52")


def test_a_run_as_a_table_counts_cells_that_a_spreadsheet_would_run(tmp_path):
    run = Run("r", {"q1": Answer(Outcome.ANSWERED, (Hit("=1+1", 2.0), Hit("-5", 1.0)))})
    assert [note.partition(" ")[0] for note in write_run(run, tmp_path / "r.csv")] == ["1"]
    assert write_run(run, tmp_path / "r.run") == ()


def test_queries_without_results_are_not_carried_over_to_trec_and_that_is_said(tmp_path, capsys):
    found = {"q1": Answer(Outcome.ANSWERED, (Hit("a", 2.5), Hit("b", 2.5))), "q2": Answer(Outcome.ANSWERED, ())}
    write_run(Run("r", found), tmp_path / "r.jsonl")
    convert_command(tmp_path / "r.jsonl", tmp_path / "r.run")
    assert "not carried over: 1 query without results" in capsys.readouterr().err
    lines = [line.split() for line in (tmp_path / "r.run").read_text().splitlines()]
    assert sorted((query, doc) for query, _, doc, *_ in lines) == [("q1", "a"), ("q1", "b")]
    convert_command(tmp_path / "r.jsonl", tmp_path / "again.jsonl")
    assert "not carried" not in capsys.readouterr().err
