"""Lists of queries and patterns."""

from pathlib import Path

import pytest
from tests.by_text import under_texts

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.pattern_list import read_pattern_list, write_pattern_list
from cranfield.model import Negative, Pattern, Query, TestSet, content_id


def put(folder: Path, text: str, name: str = "list.tsv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_letter_of_a_class_is_the_query_class_and_a_stratum(tmp_path):
    testset = under_texts(
        read_testset(put(tmp_path, "query\tpattern\tclass\nHashable\t/hashable(/|$)\tA\nSwiftUI\t^x\troot\n"))
    )
    assert testset.queries == (
        Query("Hashable", "Hashable", {"class": "A"}, query_class="canonical"),
        Query("SwiftUI", "SwiftUI", {"class": "root"}, query_class="root"),
    )
    assert testset.targets == {"Hashable": (Pattern("/hashable(/|$)"),), "SwiftUI": (Pattern("^x"),)}


def test_rows_of_one_query_are_its_patterns(tmp_path):
    text = "query,pattern,grade,credit,expected_count\nq,^a$,2,,\nr,b,,every,3\nq,c,,,\n"
    testset = under_texts(read_testset(put(tmp_path, text, "list.csv")))
    assert testset.targets == {"q": (Pattern("^a$", 2), Pattern("c")), "r": (Pattern("b", 1, "every", 3),)}
    assert tuple(map(str, testset.notes[1:])) == ("1 query of several rows: each row is a pattern of its query",)


def test_tabs_separate_and_quotes_are_characters(tmp_path):
    testset = under_texts(read_testset(put(tmp_path, 'query\tpattern\n"exact, words"\t"x"\n')))
    assert testset.queries[0].text == '"exact, words"'
    assert testset.targets['"exact, words"'] == (Pattern('"x"'),)


def test_a_negative_query_has_no_pattern(tmp_path):
    testset = under_texts(read_testset(put(tmp_path, "query\tpattern\tclass\nnothing\t\tN\n")))
    assert testset.queries == (
        Query("nothing", "nothing", {"class": "N"}, query_class="negative", negative=Negative()),
    )
    with pytest.raises(TestSetError, match=r"list\.tsv:2:3: a negative query has a pattern"):
        read_pattern_list(put(tmp_path, "query\tpattern\tnegative\nq\tx\tyes\n"))


@pytest.mark.parametrize(
    ("row", "column", "complaint"),
    [
        ("q\t(a\t\t\t\t", 3, "the pattern does not compile: missing ), unterminated subpattern at position 0"),
        ("q\t\t\t\t\t", 3, "no pattern; expected a regular expression"),
        ("\tx\t\t\t\t", 1, "no query"),
        ("q\tx\tbest\t\t\t", 5, "the grade is not a finite number; expected a number, got 'best'"),
        ("q\tx\t\ttwice\t\t", 6, "unknown credit; expected once or every, got 'twice'"),
        ("q\tx\t\tevery\t0\t", 12, "no count; expected a whole number of 1 or more, got '0'"),
        ("q\tx\t\tonce\t4\t", 11, "the pattern is credited once but expects 4"),
        ("q\tx\t\t\t\tcanonicle", 8, "unknown query class in column 'query_class'"),
    ],
)
def test_a_bad_cell_is_named_with_its_line_and_column(tmp_path, row, column, complaint):
    header = "query\tpattern\tgrade\tcredit\texpected_count\tquery_class"
    with pytest.raises(TestSetError) as caught:
        read_pattern_list(put(tmp_path, f"{header}\nfine\tx\t\t\t\t\n{row}\n"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, column)
    assert complaint in str(problem)


def test_rows_of_one_id_that_contradict_are_an_error(tmp_path):
    with pytest.raises(
        TestSetError, match=r"list\.csv:3: query 'x' has a different text, class or stratum than on line 2"
    ):
        read_pattern_list(put(tmp_path, "id,query,pattern\nx,one,a\nx,two,b\n", "list.csv"))


def test_only_the_columns_that_say_something_are_written(tmp_path):
    queries = (
        Query(content_id("a"), "a", {"class": "A"}, query_class="canonical"),
        Query(content_id("b"), "b", {"class": "B"}, query_class="root"),
    )
    targets = {queries[0].id: (Pattern("x,y"),), queries[1].id: (Pattern("z"),)}
    write_pattern_list(TestSet("t", queries, targets=targets), tmp_path / "l.csv")
    assert (tmp_path / "l.csv").read_text() == 'query,pattern,class\na,"x,y",A\nb,z,B\n'


def test_a_tab_cannot_be_written_between_tabs(tmp_path):
    testset = TestSet("t", (Query("1", "a\tb"),), targets={"1": (Pattern("x"),)})
    with pytest.raises(TestSetError, match="contains a tab or a line break"):
        write_pattern_list(testset, tmp_path / "l.tsv")
    write_pattern_list(testset, tmp_path / "l.csv")
    assert read_testset(tmp_path / "l.csv").queries == testset.queries
