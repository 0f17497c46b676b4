"""SearchTweak's export of an evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.tools.searchtweak import MEANS, read_searchtweak_csv, write_searchtweak_csv
from cranfield.model import Query, TestSet

EXPORT = 'grade,keyword,doc\n3,boots,B1\n0.33,boots,"B,2"\n1,"red, dress",B1\n'
WORDS = st.from_regex(r"[\w,\"'-]{1,4}( [\w,\"]{1,3})?", fullmatch=True)


@pytest.fixture
def file(tmp_path):
    def write(text):
        (tmp_path / "export.csv").write_text(text)
        return tmp_path / "export.csv"

    return write


def test_grades_are_means_and_may_be_fractions(file):
    testset = under_texts(read_testset(file(EXPORT)))
    assert testset.queries == (Query("boots", "boots"), Query("red, dress", "red, dress"))
    assert testset.grades == {"boots": {"B1": 3, "B,2": 0.33}, "red, dress": {"B1": 1}}
    assert tuple(map(str, testset.notes)) == (MADE_IDS, MEANS)


def test_every_bad_row_is_named_with_its_line(file):
    with pytest.raises(TestSetError) as caught:
        read_searchtweak_csv(file('grade,keyword,doc\n1,a,d\nhigh,,d\n2,a\n2,a,d\n1,b,\n1,c,"d\n'))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (3, "the grade is not a number"),
        (3, "the keyword is empty"),
        (4, "the doc is empty"),
        (5, "query 'a', document 'd' is judged twice"),
        (6, "the doc is empty"),
        (7, "not a row of cells: unexpected end of data"),
    ]


def test_another_header_is_an_error(file):
    with pytest.raises(TestSetError, match=r"export.csv:1: not a header of SearchTweak; expected grade,keyword,doc"):
        read_searchtweak_csv(file("grade,doc\n1,a\n"))
    with pytest.raises(TestSetError, match="not a row of cells"):
        read_searchtweak_csv(file('"'))


@given(
    st.dictionaries(
        WORDS, st.dictionaries(WORDS, st.sampled_from([0.0, 2.0, 0.67]), min_size=1, max_size=3), min_size=1, max_size=3
    )
)
def test_what_is_written_is_read(tmp_path_factory, judged):
    testset = TestSet("t", tuple(Query(text, text) for text in judged), judged)
    path = tmp_path_factory.mktemp("s") / "t.csv"
    write_searchtweak_csv(testset, path)
    assert under_texts(read_testset(path)) == testset
