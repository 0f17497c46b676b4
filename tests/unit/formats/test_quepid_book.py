"""Quepid's book of judgements: several raters, slots that are not filled, and no grades."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.tools.quepid import read_quepid_book, write_quepid_book
from cranfield.model import Query, Rating, TestSet


def judgement(rating, email=None, **more):
    user = {} if email is None else {"user_email": email}
    return {"rating": rating, "unrateable": rating is None, "judge_later": False, "explanation": None} | user | more


BOOK = {
    "name": "Movies",
    "show_rank": False,
    "support_implicit_judgements": False,
    "scale": [0, 1, 2, 3],
    "scale_with_labels": {"0": "Poor", "3": "Perfect"},
    "query_doc_pairs": [
        {
            "query_text": "star wars",
            "doc_id": "11",
            "position": 1,
            "document_fields": {"title": "Star Wars"},
            "information_need": "films of the series",
            "notes": "not the toys",
            "options": {},
            "judgements": [judgement(3.0, "a@x.org", explanation="It is."), judgement(2.0, "b@x.org"), judgement(1.5)],
        },
        {
            "query_text": "star wars",
            "doc_id": "12",
            "judgements": [judgement(None, "a@x.org"), judgement(None, "b@x.org", judge_later=True)],
        },
        {"query_text": "luke", "doc_id": "13", "judgements": []},
    ],
}


@pytest.fixture
def file(tmp_path):
    def write(book):
        (tmp_path / "book.json").write_text(book if isinstance(book, str) else json.dumps(book, indent=1))
        return tmp_path / "book.json"

    return write


def test_a_book_gives_ratings_by_rater_and_leaves_the_grades_to_the_rule(file):
    testset = under_texts(read_testset(file(BOOK)))
    assert testset.queries == (
        Query("star wars", "star wars", need="films of the series", notes="not the toys"),
        Query("luke", "luke"),
    )
    assert testset.ratings == {
        "star wars": (
            Rating("11", "a@x.org", 3.0, reason="It is."),
            Rating("11", "b@x.org", 2.0),
            Rating("11", "anonymous", 1.5),
            Rating("12", "a@x.org", None),
            Rating("12", "b@x.org", None),
        )
    }
    assert (testset.grades, testset.consensus, testset.name) == ({}, "quepid", "Movies")
    assert testset.meta.scale == (0, 1, 2, 3)
    assert tuple(map(str, testset.notes)) == (
        MADE_IDS,
        "not carried over: 1 position",
        "not carried over: 1 field of documents",
        "1 unrated pair",
        "1 empty rating: put off",
        "1 empty rating: not rateable",
    )


def test_raters_without_a_name_are_told_apart(file):
    pair = {"query_text": "q", "doc_id": "d", "judgements": [judgement(1), judgement(2)]}
    testset = under_texts(read_testset(file({"query_doc_pairs": [pair], "support_implicit_judgements": True})))
    assert testset.ratings["q"] == (Rating("d", "anonymous", 1), Rating("d", "anonymous 2", 2))
    assert str(testset.notes[-1]) == "the book takes implicit judgements: Quepid does not round the combined ratings"


def test_everything_that_is_wrong_is_said_with_its_place(file):
    text = """{"query_doc_pairs": [
 {"query_text": "q", "doc_id": "d", "judgements": [{"rating": 1, "user_email": "a"}]},
 {"query_text": "q", "doc_id": "d", "judgements": [{"rating": 2, "user_email": "a"}]},
 {"query_text": "q", "doc_id": "e", "judgements": [{"rating": "high"}]},
 {"query_text": "", "judgements": 3}
]}"""
    with pytest.raises(TestSetError) as caught:
        read_quepid_book(file(text))
    assert [(p.line, p.column, p.message) for p in caught.value.problems] == [
        (3, 52, "query 'q', document 'd' is judged twice by 'a'"),
        (4, 63, "wrong value for query_doc_pairs[2].judgements[0].rating"),
        (5, 17, "query_doc_pairs[3].query_text is empty"),
        (5, 2, "missing key 'doc_id' in query_doc_pairs[3]"),
        (5, 35, "wrong value for query_doc_pairs[3].judgements"),
    ]
    assert caught.value.problems[0].expected == "1, as on line 2"
    assert caught.value.problems[1].expected == "a number"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"query_doc_pairs": [}', r"book.json:1:22: not valid JSON: no value here"),
        ("[]", r"book.json:1: no object at the top of the file; expected `{…}`"),
        ('{"query_doc_pairs": []}', "no query in this file"),
        ('{"name": "x"}', "missing key 'query_doc_pairs'"),
    ],
)
def test_what_is_no_book_is_an_error(file, text, message):
    with pytest.raises(TestSetError, match=message):
        read_quepid_book(file(text))


def test_a_book_as_csv_has_a_column_per_rater(tmp_path):
    path = tmp_path / "book.csv"
    path.write_text('query,docid,Ann A,Anonymous,Ann A\nstar wars,11,3.0,,1\n" -x",12,,2,\nstar wars,11,3.0,,1\n')
    testset = under_texts(read_testset(path, "quepid-book-csv"))
    assert testset.ratings == {
        "star wars": (Rating("11", "Ann A", 3), Rating("11", "Ann A (2)", 1)),
        "-x": (Rating("12", "Anonymous", 2),),
    }
    assert (testset.grades, testset.consensus) == ({}, "quepid")
    assert tuple(map(str, testset.notes[1:])) == ("2 repeated judgments with the same grade, counted once",)


def test_bad_rows_of_a_book_as_csv_are_named(tmp_path):
    path = tmp_path / "book.csv"
    path.write_text("query,docid,Ann\na,1,2\na,1,3\na,,2\na,2,good\na,2,1,1\n")
    with pytest.raises(TestSetError) as caught:
        read_testset(path, "quepid-book-csv")
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (3, "query 'a', document '1' is judged twice by 'Ann'"),
        (4, "not a row of a book"),
        (5, "the rating of Ann is not a number"),
        (6, "4 cells"),
    ]
    path.write_text("query,docid\na,1\n")
    with pytest.raises(TestSetError, match=r"book.csv:1: not a header of a book; expected query,docid and a column"):
        read_testset(path, "quepid-book-csv")


def test_grades_without_a_rater_are_written_as_judgements_without_a_user(tmp_path):
    testset = TestSet("t", (Query("1", "q"),), {"1": {"d": 2, "half": 0.5}})
    write_quepid_book(testset, tmp_path / "book.json")
    written = under_texts(read_testset(tmp_path / "book.json"))
    assert written.ratings == {"q": (Rating("d", "anonymous", 2),)}
    assert json.loads((tmp_path / "book.json").read_text())["scale"] == [2]


def test_a_book_of_nothing_is_not_written(tmp_path):
    with pytest.raises(TestSetError, match="not written: no document is rated"):
        write_quepid_book(TestSet("t", (Query("1", "q"),)), tmp_path / "book.json")
    assert list(tmp_path.iterdir()) == []


WORDS = st.from_regex(r"[a-zé]{1,4}", fullmatch=True)
RATERS = st.dictionaries(
    WORDS | st.just("anonymous"), st.none() | st.sampled_from([0.0, 1.0, 2.5]), min_size=1, max_size=3
)
SAID = st.dictionaries(WORDS, RATERS, min_size=1, max_size=3)


@given(st.dictionaries(WORDS, SAID, min_size=1, max_size=3), WORDS)
def test_a_book_that_is_written_is_read(tmp_path_factory, said, name):
    ratings = {
        query: tuple(Rating(doc, rater, grade) for doc, by_rater in docs.items() for rater, grade in by_rater.items())
        for query, docs in said.items()
    }
    testset = TestSet(name, tuple(Query(q, q) for q in said), ratings=ratings, consensus="quepid")
    path = tmp_path_factory.mktemp("b") / "book.json"
    write_quepid_book(testset, path)
    assert under_texts(read_testset(path)) == testset
