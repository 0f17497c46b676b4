"""Quepid's ratings of a case: CSV in both shapes, and lines for learning to rank."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.tools.quepid import read_quepid_csv, read_quepid_ltr, write_quepid_csv, write_quepid_ltr
from cranfield.model import Query, TestSet

# As the export makes it: a blank line first, a query without ratings, no line end at the end.
BASIC = '\nquery,docid,rating\nstar wars,11,3\nstar wars,1895,\n"luke, i am",11,0.5\n -1 day,7,1\nempty,,'
DETAILED = (
    "Team Name,Case Name,Case ID,Query Text,Doc ID,Doc Position,Title,Rating,genre\r\n"
    'Us,Movies,6,star wars,11,1,"Star Wars, IV",3,sf\r\n'
    "Us,Movies,6,star wars,1895,2,Revenge,,sf\r\n"
    "Us,Movies,6,nothing found\r\n"
)
LTR = "\n3 qid:1 # 11 star wars\n\n0    qid:1 #    1895 star wars\n2 qid:12 # 7 luke\n"

WORDS = st.from_regex(r"[^\W_]{1,4}( [-+=@,\"'\w]{1,4}){0,2}", fullmatch=True)
GRADES = st.sampled_from([0.0, 1.0, 2.0, 0.25])


@pytest.fixture
def file(tmp_path):
    def write(text, name="ratings.csv"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / name

    return write


def test_ratings_are_read_by_text(file):
    testset = under_texts(read_testset(file(BASIC)))
    assert testset.query_ids == ("star wars", "luke, i am", "-1 day", "empty")
    assert testset.grades == {"star wars": {"11": 3}, "luke, i am": {"11": 0.5}, "-1 day": {"7": 1}}
    assert tuple(map(str, testset.notes)) == (MADE_IDS, "not carried over: 1 document without a rating")
    assert testset.name == "ratings"


def test_the_detailed_export_is_read(file):
    testset = under_texts(read_testset(file(DETAILED)))
    assert testset.query_ids == ("star wars", "nothing found")
    assert testset.grades == {"star wars": {"11": 3}}
    assert tuple(map(str, testset.notes)) == (
        MADE_IDS,
        "not carried over: 1 document without a rating",
        "not carried over: 1 column with fields of documents",
    )


def test_quotes_that_the_browser_doubles_without_quoting_the_cell_are_read(file):
    rows = [
        'Us,Movies,6,""star wars"",11,1,"a, ""b"" c,""d"" e",3,sf',
        'Us,Movies,6,say ""hi"",12,1,"two\n""lines""",2,""',
        "Us,Movies,6,plain,13,1,x,1,y",
    ]
    testset = under_texts(read_testset(file(DETAILED.split("\r\n", maxsplit=1)[0] + "\r\n" + "\r\n".join(rows))))
    assert testset.grades == {'"star wars"': {"11": 3}, 'say "hi"': {"12": 2}, "plain": {"13": 1}}


def test_it_is_read_packed(file):
    assert read_testset(file(gzip.compress(BASIC.encode()), "ratings.csv.gz")).name == "ratings"


def test_every_bad_row_is_named_with_its_line(file):
    rows = [
        "query,docid,rating",
        "a,1,3",
        "a,1,2",
        "a,2,high",
        ",3,1",
        "a,,1",
        "a,4,1,no commas",
        "b,1,nan",
        'c,"1"x,2',
    ]
    with pytest.raises(TestSetError) as caught:
        read_quepid_csv(file("\n".join(rows)))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (3, "query 'a', document '1' is judged twice"),
        (4, "the rating is not a number"),
        (5, "the query is empty"),
        (6, "a rating without a document"),
        (7, "4 cells"),
        (8, "the rating is not a number"),
        (9, "not a row of cells: ',' expected after '\"'"),
    ]
    assert caught.value.problems[0].expected == "3, as on line 2"
    assert caught.value.problems[0].got == "2"


def test_another_header_is_an_error(file):
    with pytest.raises(TestSetError, match=r"not a header of Quepid; expected query,docid,rating, got 'a,b'\."):
        read_quepid_csv(file("a,b\n1,2\n"))


def test_a_file_that_is_no_unicode_is_an_error(file):
    with pytest.raises(TestSetError, match=r"ratings.csv:2: not UTF-8: byte 0xff at offset 19"):
        read_quepid_csv(file(b"query,docid,rating\n\xff,1,1\n"))


def test_a_header_alone_is_an_error(file):
    with pytest.raises(TestSetError, match="no query in this file; expected queries with judgments"):
        read_quepid_csv(file("query,docid,rating\n"))


def test_what_a_spreadsheet_would_run_is_written_with_a_blank_before_it(tmp_path):
    write_quepid_csv(TestSet("t", (Query("x", "=1+1"), Query("y", "b")), {"x": {"d,1": 2}}), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'query,docid,rating\n" =1+1","d,1",2\nb,,\n'


def test_an_id_that_a_blank_begins_is_not_written(tmp_path):
    testset = TestSet("t", (Query("x", "a"),), {"x": {" d": 1, "\ud800": 1}})
    with pytest.raises(TestSetError) as caught:
        write_quepid_csv(testset, tmp_path / "out.csv")
    assert [problem.message for problem in caught.value.problems] == [
        "not written: document id ' d' begins or ends with a blank",
        r"not written: document id '\ud800' is not valid Unicode",
    ]
    assert not (tmp_path / "out.csv").exists()


@given(st.dictionaries(WORDS, st.dictionaries(WORDS, GRADES, max_size=3), min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, judged):
    testset = TestSet("t", tuple(Query(text, text) for text in judged), {q: docs for q, docs in judged.items() if docs})
    path = tmp_path_factory.mktemp("q") / "t.csv"
    write_quepid_csv(testset, path)
    assert under_texts(read_testset(path)) == testset


def test_lines_for_learning_to_rank_are_read_with_their_ids(file):
    testset = read_testset(file(LTR, "case.txt"))
    assert testset.queries == (Query("1", "star wars"), Query("12", "luke"))
    assert testset.grades == {"1": {"11": 3, "1895": 0}, "12": {"7": 2}}
    assert tuple(map(str, testset.notes)) == ()


def test_bad_lines_for_learning_to_rank_are_named(file):
    with pytest.raises(TestSetError) as caught:
        read_quepid_ltr(file("3 qid:1 # 11 a\nx qid:1 # 12 a\n3 qid:1\n2 qid:1 # 11 b\n"))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "the rating is not a number"),
        (3, "not a rating"),
        (4, "query '1' has two texts"),
        (4, "query '1', document '11' is judged twice"),
    ]


def test_ids_of_several_words_are_not_written_for_learning_to_rank(tmp_path):
    testset = TestSet("t", (Query("a b", "x\ny"),), {"a b": {"d e": 1}})
    with pytest.raises(TestSetError) as caught:
        write_quepid_ltr(testset, tmp_path / "out.txt")
    assert [problem.message for problem in caught.value.problems] == [
        "not written: query id 'a b' is not a single word",
        "not written: document id 'd e' is not a single word",
        "not written: the text of query 'a b' is not a single line",
    ]


@given(
    st.dictionaries(
        st.from_regex(r"[^\W_]{1,4}", fullmatch=True),
        st.tuples(
            WORDS, st.dictionaries(st.from_regex(r"[^\s#]{1,4}", fullmatch=True), GRADES, min_size=1, max_size=3)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_lines_for_learning_to_rank_that_are_written_are_read(tmp_path_factory, judged):
    queries = tuple(Query(query_id, text) for query_id, (text, _) in judged.items())
    testset = TestSet("t", queries, {query_id: docs for query_id, (_, docs) in judged.items()})
    path = tmp_path_factory.mktemp("q") / "t.txt"
    write_quepid_ltr(testset, path)
    assert read_testset(path) == testset
