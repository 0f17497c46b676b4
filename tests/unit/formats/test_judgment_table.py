"""Judgments in a table of text, a row each."""

import gzip
import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from cranfield import load
from cranfield.base.errors import RunFormatError, TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.judgment_table import read_judgment_table, write_judgment_table
from cranfield.model import Pattern, Query, Rating, Span, TestSet
from cranfield.ranking.collected import read_run_file


def put(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'query_id,doc_id,grade\nq1,"d,1",2\nq1,d2,0\nq2,d1,-1\nq2,d2,0.5\n'),
        ("t.tsv", "query_id\tdoc_id\tgrade\nq1\td,1\t2\nq1\td2\t0\nq2\td1\t-1\nq2\td2\t0.5\n"),
        ("t.csv", 'qid, docno, relevance\r\nq1, "d,1", 2\r\nq1, d2, 0\r\n\r\nq2, d1, -1\r\nq2, d2, 0.5\r\n'),
        ("t.csv", "label;did;q_id\n2;d,1;q1\n0;d2;q1\n-1;d1;q2\n0.5;d2;q2\n".replace(",", ",")),
        (
            "t.jsonl",
            (
                '{"query_id":"q1","doc_id":"d,1","grade":2}\n{"query_id":"q1","doc_id":"d2","grade":0}\n\n'
                '{"query_id":"q2","doc_id":"d1","grade":-1.0}\n{"doc_id":"d2","query_id":"q2","grade":5e-1}\n'
            ),
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_columns_are_found_by_name_whatever_stands_between_them(tmp_path, name, text, packed):
    path = put(tmp_path, gzip.compress(text.encode(), mtime=0) if packed else text, name + (".gz" if packed else ""))
    testset = read_testset(path)
    assert (testset.name, testset.queries) == ("t", (Query("q1"), Query("q2")))
    assert testset.grades == {"q1": {"d,1": 2.0, "d2": 0.0}, "q2": {"d1": -1.0, "d2": 0.5}}


def test_texts_and_strata_have_columns_and_other_columns_are_said(tmp_path):
    text = "query_id,query,doc_id,grade,stratum.Kind,when\n1,one,d1,1,a,now\n1,one,d2,0,a,now\n2,two,d1,1,,now\n"
    testset = read_testset(put(tmp_path, text))
    assert testset.queries == (Query("1", "one", {"when": "now", "Kind": "a"}), Query("2", "two", {"when": "now"}))
    assert tuple(map(str, testset.notes)) == ("kept as stratum 'when': 1 value in 2 queries",)


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", "query,docid,label\nq,d,1\n"), ("t.jsonl", '{"query":"q","did":"d","rel":1}')]
)
def test_a_query_without_another_id_is_the_id(tmp_path, name, text):
    testset = read_testset(put(tmp_path, text, name))
    assert testset.queries == (Query("q"),)
    assert tuple(map(str, testset.notes)) == ("`query` is read as the id of the query; its text is in `query_text`",)


def test_keys_of_json_lines_may_come_and_go(tmp_path):
    rows = [
        {"query_id": 1, "doc_id": "d1", "grade": 1, "query_text": "one"},
        {"query_id": 2, "doc_id": 7, "grade": 1, "stratum.kind": True, "stratum.level": "x", "by": "me"},
    ]
    testset = read_testset(put(tmp_path, "\n".join(map(json.dumps, rows)), "t.jsonl"))
    assert testset.queries == (Query("1", "one"), Query("2", "", {"kind": "true", "level": "x"}))
    assert testset.grades["2"] == {"7": 1.0}
    assert tuple(map(str, testset.notes)) == ("not carried over: 1 value of 'by', all different",)


def test_rows_with_a_rater_are_ratings_and_an_empty_grade_is_a_slot_nobody_filled(tmp_path):
    text = "query_id,doc_id,rater,grade\nq,d1,ann,2\nq,d1,bob,\nq,d2,,1\n"
    testset = read_testset(put(tmp_path, text))
    assert testset.ratings == {"q": (Rating("d1", "ann", 2.0), Rating("d1", "bob", None))}
    assert testset.grades == {"q": {"d2": 1.0}}
    assert tuple(map(str, testset.notes)) == ("1 row without a rater: taken as final",)


def test_ratings_alone_make_no_grades(tmp_path):
    lines = '{"query_id":"q","doc_id":"d","rater":"ann","grade":null}\n{"query_id":"q","doc_id":"d","rater":7}\n'
    testset = read_testset(put(tmp_path, lines.replace('"grade":null', '"grade":3'), "t.jsonl"))
    assert testset.ratings == {"q": (Rating("d", "ann", 3.0), Rating("d", "7", None))}
    assert testset.grades == {}


@pytest.mark.parametrize(
    ("name", "text", "complaints"),
    [
        (
            "t.csv",
            "query_id,doc_id,grade\nq,d,high\n,d,1\nq,,1\nq,d,\nq,d,1,2\n",
            [
                "t.csv:2:5: the grade is not a finite number; expected a number, got 'high'",
                "t.csv:3:1: no query_id",
                "t.csv:4:3: no doc_id",
                "t.csv:5:5: no grade",
                "t.csv:6:7: 4 cells; expected 3",
            ],
        ),
        (
            "t.csv",
            "query_id,doc_id,grade\nq,d,1\nq,e,1\nq,d,2\n",
            ["t.csv:4:5: query 'q', document 'd' is judged twice; expected 1, as on line 2, got 2"],
        ),
        (
            "t.tsv",
            "query_id\tdoc_id\tgrade\trater\nq\td\t1\tann\nq\td\t\tann\n",
            ["t.tsv:3:5: query 'q', document 'd' is judged twice by 'ann'; expected 1, as on line 2"],
        ),
        (
            "t.csv",
            "query_id,query_text,doc_id,grade\nq,a,d,1\nq,b,e,1\n",
            ["t.csv:3:3: query 'q' has a different text than in an earlier row; expected 'a', got 'b'"],
        ),
        (
            "t.jsonl",
            ('{"query_id":"q","doc_id":"d","grade":true}\n{"query_id":1.5,"doc_id":"d","grade":"1"}\n[1]\n{"a":\n'
            '{"query_id":"q","doc_id":"e","grade":1,"grade":2}\n'),
            [
                "t.jsonl:1:38: the grade is not a finite number; expected a number, got true",
                "t.jsonl:2:13: query_id is neither text nor a whole number",
                "t.jsonl:2:38: the grade is not a finite number; expected a number, got '1'",
                "t.jsonl:3: no object",
                "t.jsonl:4:6: not valid JSON",
                "t.jsonl:5: not valid JSON: the key 'grade' occurs twice",
            ],
        ),
        ("t.csv", "query_id,doc_id,rank\nq,d,1\n", ["t.csv:1: no column grade; expected grade or relevance or rel or label"]),
        ("t.jsonl", '{"query_id":"q","grade":1}\n', ["t.jsonl:1: no key doc_id"]),
        ("t.csv", "query_id,doc_id,grade\n", ["t.csv: no judgment in this file"]),
        ("t.csv", b"query_id,doc_id,grade\nq,\xff,1\n", ["t.csv:2: not UTF-8: byte 0xff at offset 24"]),
        ("t.csv", "query_id,grade,doc_id,grade\n", ["t.csv:1:23: two columns are called 'grade'"]),
    ],
)  # fmt: skip
def test_everything_that_is_wrong_is_told_at_once(tmp_path, name, text, complaints):
    with pytest.raises(TestSetError) as caught:
        read_judgment_table(put(tmp_path, text, name))
    found = [str(problem) for problem in caught.value.problems]
    assert len(found) == len(complaints)
    for line, complaint in zip(found, complaints, strict=True):
        assert f"{tmp_path}/{complaint}" in line


@pytest.mark.parametrize("grade", ["[1]", "{}", "true", '"1"', "1e999"])
def test_a_grade_in_json_is_a_finite_number(tmp_path, grade):
    path = put(
        tmp_path,
        f'{{"query_id":"q","doc_id":"a","grade":1}}\n{{"query_id":"q","doc_id":"b","grade":{grade}}}\n',
        "t.jsonl",
    )
    with pytest.raises(TestSetError, match=r"t\.jsonl:2:38: the grade is not a finite number"):
        read_judgment_table(path)


def test_what_is_judged_twice_alike_is_counted(tmp_path):
    testset = read_testset(put(tmp_path, "query_id,doc_id,grade\nq,d,1\nq,d,1.0\n"))
    assert tuple(map(str, testset.notes)) == ("1 repeated judgment with the same grade, counted once",)


EVERY = TestSet(
    "t",
    (Query("q1", "one", {"kind": "a, b"}), Query("q2")),
    {"q1": {"d1": 1.0, "d2": 0.5}},
    ratings={"q1": (Rating("d1", "ann", 2.0), Rating("d1", "bob", None)), "q2": (Rating("d1", "ann", 0.0),)},
)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_grades_and_ratings_come_back(tmp_path, name):
    write_judgment_table(EVERY, tmp_path / name)
    assert read_testset(tmp_path / name).digest == EVERY.digest


def test_rules_are_not_written(tmp_path):
    testset = TestSet("t", (Query("q"),), targets={"q": (Pattern("x"),)})
    with pytest.raises(TestSetError, match="not written: query 'q' is judged by a rule"):
        write_judgment_table(testset, tmp_path / "t.csv")


def test_reason_time_and_adjudication_of_ratings(tmp_path):
    text = (
        "query_id,doc_id,rater,grade,reason,time,final\n"
        "q,d1,ann,2,it says so,2026-11-23T10:30:00+01:00,\n"
        "q,d1,lead,3,,1970-01-01T00:00:01.5,yes\n"
        "q,d2,ann,0,,,no\n"
    )
    path = tmp_path / "set.csv"
    path.write_text(text, encoding="utf-8")
    assert read_testset(path).ratings["q"] == (
        Rating("d1", "ann", 2.0, reason="it says so", at=1_795_426_200_000),
        Rating("d1", "lead", 3.0, final=True, at=1500),
        Rating("d2", "ann", 0.0),
    )
    path.write_text("query_id,doc_id,rater,grade,time,final\nq,d1,ann,2,noon,maybe\n", encoding="utf-8")
    with pytest.raises(TestSetError) as caught:
        read_testset(path)
    assert [(problem.line, problem.got) for problem in caught.value.problems] == [(2, "'noon'"), (2, "'maybe'")]


COLUMNS = "query_id,doc_id,grade,query,kind,query_class,negative,page\n"
TABLE = (
    COLUMNS
    + "q1,d1,1,what is x,howto,canonical,,7\nq1,d2,2,what is x,howto,canonical,,8\n"
    + "q2,d2,1,how to y,howto,,,9\nq3,,,nowhere,howto,,yes,\n"
)
"""`page` differs within q1, and is about the judgments; `kind` is the same for all queries."""


def test_a_frame_keeps_what_the_same_csv_keeps(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    by_file = read_judgment_table(path)
    assert [(q.id, q.text, dict(q.strata), q.query_class, q.negative is not None) for q in by_file.queries] == [
        ("q1", "what is x", {"kind": "howto"}, "canonical", False),
        ("q2", "how to y", {"kind": "howto"}, "", False),
        ("q3", "nowhere", {"kind": "howto"}, "", True),
    ]
    assert by_file.grades == {"q1": {"d1": 1.0, "d2": 2.0}, "q2": {"d2": 1.0}}
    notes = {
        "column 'query_class' is read as the query class",
        "kept as stratum 'kind': 1 value in 3 queries",
        "not carried over: column 'page': not the same in all rows of a query",
    }
    assert notes <= set(map(str, by_file.notes))
    frames = [pd.read_csv(path), pl.read_csv(path), tmp_path / "t.parquet"]
    frames[0].to_parquet(frames[2])
    for frame in frames:
        testset = load(frame)
        assert testset.digest == by_file.digest
        assert testset.queries == by_file.queries
        assert set(map(str, testset.notes)) == notes


def test_the_error_of_a_row_without_a_document_says_how_a_negative_query_is_written(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("query_id,doc_id,grade\nq1,,\n")
    with pytest.raises(TestSetError, match="`yes` under `negative` marks a query for which nothing should be found"):
        read_judgment_table(path)


def test_what_is_not_used_is_named_on_stderr_by_every_door(tmp_path, caplog):
    text = "query_id,doc_id,grade,page\nq1,d1,1,7\nq1,d2,1,8\n"
    path = put(tmp_path, text)
    line = "not carried over: column 'page': not the same in all rows of a query"
    load(path)
    load(pd.read_csv(path))
    assert caplog.messages == [f"note: {path}: {line}", f"note: qrels: {line}"]


@pytest.mark.parametrize("text", ["Query,Result,Relevant\na,b,1\n", "Suchwort;Treffer;Note\na;b;1\n"])
def test_a_table_with_other_names_is_told_the_names_that_are_known(tmp_path, text):
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, text))
    (problem,) = caught.value.problems
    assert problem.message == "not a test set: the columns of this table have other names"
    assert problem.expected == "query_id, doc_id and grade, or query and pattern"
    hint = problem.hint_sentence().splitlines()
    assert max(map(len, hint)) <= 80
    assert hint[1] == "  query_id: query_id, q_id, qid, query-id, query"
    assert any(line.startswith("  doc_id: doc_id, docno, docid, did, document_id, doc, ") for line in hint)
    assert "`yes` under `negative` marks a query for which nothing should be found." in hint
    run = tmp_path / "run.csv"
    run.write_text("Suchwort;Treffer;Rang\na;b;1\n")
    with pytest.raises(RunFormatError) as of_run:
        read_run_file(run)
    (problem,) = of_run.value.problems
    assert problem.expected == "query_id, doc_id, and rank or score"
    assert problem.hint_sentence().splitlines()[-1] == "  also rank, score, title."


@pytest.mark.parametrize(
    "header", ["query_id,query,doc_id,start_line,end_line,grade", "query_id,query,file,lines,grade"], ids=["two", "one"]
)
def test_lines_of_documents_are_spans(tmp_path, header):
    first, second = ("50,60", "7,7") if "end_line" in header else ("50-60", "7")
    rows = f"q1,foo bar,src/a.py,{first},2\nq1,foo bar,src/a.py,{second},1\n"
    found = read_testset(put(tmp_path, f"{header}\n{rows}"))
    assert found.targets == {"q1": (Span("src/a.py", 50, 60, 2), Span("src/a.py", 7, 7, 1))}
    assert not found.grades
    lines = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows.splitlines()]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({**line, "grade": int(line["grade"])}) + "\n" for line in lines))
    assert read_testset(path).targets == found.targets


def test_wrong_lines_are_named_all_at_once(tmp_path):
    rows = "q1,a.py,60,50,2\nq1,a.py,0,5,1\nq1,a.py,x,9,1\nq1,a.py,5,,1\n"
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, f"query_id,doc_id,start_line,end_line,grade\n{rows}"))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "the range ends before it starts"),
        (3, "no line number"),
        (4, "no line number"),
        (5, "no line number"),
    ]
    table = pd.DataFrame({"query_id": ["q", "p"], "doc_id": ["a", "b"], "grade": [1, 1], "start": ["x", "x"]})
    assert load(table).grades == {"q": {"a": 1}, "p": {"b": 1}}  # a start alone says no lines
    with pytest.raises(TestSetError, match="judgments of lines are not read from a frame"):
        load(pd.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [1], "start_line": [1], "end_line": [2]}))


@pytest.mark.parametrize("document", ["doc", "document", "expected_doc", "path"])
def test_a_column_of_questions_is_their_text_and_not_their_id(tmp_path, document):
    found = read_testset(put(tmp_path, f"query,{document},grade\nrefund problem,d1,2\nshipping late,d2,1\n"))
    assert [query.text for query in found.queries] == ["refund problem", "shipping late"]
    assert list(found.grades.values()) == [{"d1": 2}, {"d2": 1}]
    assert found.query_ids[0].startswith("refund-problem-")  # made from the question
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"query": "refund problem", document: "d1", "grade": 2}]))
    assert [query.text for query in read_testset(path).queries] == ["refund problem"]


def test_two_classes_of_one_query_are_an_error_and_not_the_end_of_all_classes(tmp_path):
    rows = "q1,d03,2,canonical\nq2,d05,1,root\nq2,d07,1,nosuch\n"
    with pytest.raises(TestSetError) as caught:
        read_testset(put(tmp_path, f"qid,doc_id,grade,query_class\n{rows}"))
    (problem,) = caught.value.problems
    assert (problem.message, problem.got) == (
        "column 'query_class' has several values for query 'q2'",
        "'root, nosuch'",
    )


def test_a_blank_document_is_none(tmp_path):
    with pytest.raises(TestSetError, match="no doc_id"):
        read_testset(put(tmp_path, "query_id,doc_id,grade\nq1,  ,1\n"))
