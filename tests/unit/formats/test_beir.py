"""BEIR folders."""

import gzip
import json
from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets import beir
from cranfield.formats.testsets.beir import read_beir, write_beir
from cranfield.model import Pattern, Query, TestSet

QUERIES = [
    {"_id": "q1", "text": "one", "metadata": {"kind": "a", "url": "u1"}},
    {"_id": "q2", "text": "two", "metadata": {"kind": "a", "url": "u2", "strata": {"level": "hard"}}},
    {"_id": "q3", "text": "three", "metadata": {}},
]
HEADER = "query-id\tcorpus-id\tscore\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "scifact"
    (path / "qrels").mkdir(parents=True)
    (path / "queries.jsonl").write_text("\n".join(map(json.dumps, QUERIES)))
    (path / "qrels" / "test.tsv").write_text(HEADER + "q1\td1\t1\nq2\td2\t2\nq2\td3\t0\n")
    return path


def test_a_folder_stands_for_its_split_test(folder):
    (folder / "qrels" / "dev.tsv").write_text(HEADER + "q3\td1\t1\n")
    testset = read_testset(folder)
    assert testset.name == "scifact"
    assert testset.queries == (Query("q1", "one", {"kind": "a"}), Query("q2", "two", {"kind": "a", "level": "hard"}))
    assert testset.grades == {"q1": {"d1": 1.0}, "q2": {"d2": 2.0, "d3": 0.0}}
    assert tuple(map(str, testset.notes)) == (
        "judgments are of test.tsv; naming dev.tsv in qrels takes another split",
        "left out: 1 query of queries.jsonl that these qrels do not judge",
        "kept as stratum 'kind': 1 value in 2 queries",
        "not carried over: 2 values of 'url', all different",
    )


def test_splits_may_be_packed(folder):
    (folder / "qrels" / "test.tsv.gz").write_bytes(gzip.compress((folder / "qrels" / "test.tsv").read_bytes()))
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels" / "dev.tsv.gz").write_bytes(gzip.compress((HEADER + "q3\td1\t1\n").encode()))
    testset = read_testset(folder)
    assert testset.grades == {"q1": {"d1": 1.0}, "q2": {"d2": 2.0, "d3": 0.0}}
    assert "judgments are of test.tsv.gz; naming dev.tsv.gz in qrels takes another split" in map(str, testset.notes)


def test_naming_the_qrels_takes_another_split_with_the_texts_of_the_folder(folder):
    (folder / "qrels" / "dev.tsv").write_text(HEADER + "q3\td1\t1\nq9\td1\t1\n")
    testset = read_testset(folder / "qrels" / "dev.tsv")
    assert (testset.name, testset.queries) == ("scifact-dev", (Query("q3", "three"), Query("q9")))
    assert "without a text: 1 judged query not in queries.jsonl" in map(str, testset.notes)


def test_qrels_alone_have_no_texts(tmp_path):
    (tmp_path / "some.tsv").write_text(HEADER + "q1\td1\t1\n")
    testset = read_testset(tmp_path / "some.tsv")
    assert (testset.name, testset.queries) == ("some", (Query("q1"),))
    assert tuple(map(str, testset.notes)) == ("queries.jsonl is missing: the queries have no text",)


def test_judged_documents_that_the_corpus_does_not_hold_are_counted(folder, monkeypatch):
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": "a"}\n{"_id": "d2", "text": "b"}\n{broken\n')
    notes = [*map(str, read_beir(folder).notes)]
    assert "not in corpus.jsonl: 1 judged document, 'd3'" in notes
    assert "corpus.jsonl: 1 bad line, the first 3" in notes
    monkeypatch.setattr(beir, "SMALL_CORPUS_BYTES", 10)
    assert "corpus.jsonl is large: it was not searched for the judged documents" in map(str, read_beir(folder).notes)


def test_trec_qrels_beside_the_queries_will_do(tmp_path):
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "one"}\n')
    (tmp_path / "qrels.txt").write_text("1 0 d1 2\n")
    testset = read_testset(tmp_path)
    assert (testset.queries, testset.grades) == ((Query("1", "one"),), {"1": {"d1": 2.0}})


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("qrels/test.tsv", HEADER + "q1\td1\thigh\n", r"test\.tsv:2:7: the grade is not a finite number"),
        ("qrels/test.tsv", "query\tdoc\tscore\nq1\td1\t1\n", r"test\.tsv:1: not a header of BEIR qrels"),
        ("queries.jsonl", '{"_id": "q1"}\n', r"queries\.jsonl:1: query 'q1' has no text"),
        ("queries.jsonl", '{"text": "a"}\n', r"queries\.jsonl:1: no object with an _id"),
        ("queries.jsonl", '\n{"_id": "q1", }\n', r"queries\.jsonl:2:15: not valid JSON"),
        (
            "queries.jsonl",
            '{"_id":"a","text":"a"}\n{"_id":"a","text":"b"}\n',
            r"queries\.jsonl:2: query 'a' occurs twice",
        ),
    ],
)
def test_a_bad_line_is_named(folder, name, text, complaint):
    (folder / name).write_text(text)
    with pytest.raises(TestSetError, match=complaint):
        read_beir(folder)


def test_splits_of_which_none_is_test_are_asked_for(folder):
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "dev.tsv")
    (folder / "qrels" / "train.tsv").write_text(HEADER + "q1\td1\t1\n")
    with pytest.raises(TestSetError, match=r"no default judgments in this folder.*got dev\.tsv, train\.tsv"):
        read_beir(folder)


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    testset = TestSet("t", (Query("q1", "one", {"kind": "a"}),), {"q1": {"d1": 2.0}})
    write_beir(testset, tmp_path / "new")
    assert read_testset(tmp_path / "new").digest == testset.digest
    assert (tmp_path / "new" / "qrels" / "test.tsv").read_text() == HEADER + "q1\td1\t2\n"
    with pytest.raises(TestSetError, match="the folder already exists"):
        write_beir(testset, tmp_path / "new")
    with pytest.raises(TestSetError, match="contains a tab or a line break"):
        write_beir(TestSet("t", (Query("q\t1", "one"),), {"q\t1": {"d1": 2.0}}), tmp_path / "other")
    with pytest.raises(TestSetError, match="judged by a rule"):
        write_beir(TestSet("t", (Query("q", "one"),), targets={"q": (Pattern("x"),)}), tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_what_is_wrong_in_both_files_of_a_folder_is_told_at_once(tmp_path):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\thigh\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1"}\n')
    with pytest.raises(TestSetError) as caught:
        read_beir(tmp_path)
    assert [problem.line for problem in caught.value.problems] == [2, 1]
