"""Files that are nearly of a format: the message says which, and what is otherwise."""

from __future__ import annotations

import bz2
import lzma
import zipfile
from pathlib import Path

import pytest

from cranfield import evaluate, load
from cranfield.base.errors import CranfieldError, UsageError
from cranfield.formats.sniff import read_testset, sniff_run

QRELS = "q1 0 d1 1\nq1 0 d2 0\n"
QUOTED = '"q1","0","d1","1"'
BOTH = "commas between its columns, and quotation marks around its cells"
IN_COLUMNS = "TREC qrels (lines `query iteration document grade`)"


def refused(path: Path, content: bytes | str, *, run: bool = False) -> str:
    """The message about a file."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CranfieldError) as caught:
        sniff_run(path) if run else read_testset(path)
    return str(caught.value).replace(str(path.parent) + "/", "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            'q1 0 d1 "1"\nq1 0 d2 "0"\n',
            f"a.qrels:1: not a test set: quotation marks around its cells; expected {IN_COLUMNS}, got 'q1 0 d1 \"1\"'.",
            "`tr -d '\"' < FILE > NEW` removes them",
        ),
        (
            "# judged by two\nq1,0,d1,1\nq1,0,d2,0\n",
            f"a.qrels:2: not a test set: commas between its columns; expected {IN_COLUMNS}, got 'q1,0,d1,1'.",
            "`tr ',' ' ' < FILE > NEW` puts blanks there",
        ),
        (
            f"{QUOTED}\n",
            f"a.qrels:1: not a test set: {BOTH}; expected {IN_COLUMNS}, got '{QUOTED}'.",
            "`tr -d '\"' < FILE | tr ',' ' ' > NEW` changes that",
        ),
        (
            "q1 d1 1\nq1 d2 0\n",
            "a.qrels:1: 3 columns; expected 4: query iteration document grade, got 'q1 d1 1'.",
            "add the iteration, a 0 as the second column: `awk '{print $1, 0, $2, $3}' FILE > NEW`",
        ),
        (
            "q1 0 d1 1 ann\nq1 0 d2 0 ann\n",
            "a.qrels:1: 5 columns; expected 4: query iteration document grade, got 'q1 0 d1 1 ann'.",
            "remove the column that is not one of these",
        ),
        (
            "qid  pid grade\n1 23 1\n",
            "a.qrels:1: not a test set: blanks between its columns; expected tabs or commas, got 'qid  pid grade'.",
            "`tr -s ' ' '\\t' < FILE > NEW` puts tabs there",
        ),
        (
            "qid\tpid\n1\t23\n",
            "a.qrels: not a test set: this table has no column of grades; expected grade, got 'qid\\tpid'.",
            "add a column `grade`; where all of these documents are relevant, with 1 in each row",
        ),
        (
            "testset: a.yaml\nsystems:\n  s: {command: [x]}\n",
            "a.qrels: this is a config of Cranfield; expected a test set.",
            "`cranfield run ",
        ),
    ],
)
def test_judgments_with_another_separator_quotes_or_columns(text: str, message: str, hint: str, tmp_path: Path) -> None:
    assert refused(tmp_path / "a.qrels", text).partition("\nHint: ")[0] == message
    assert hint in refused(tmp_path / "a.qrels", text).partition("\nHint: ")[2]


def test_three_columns_that_count_up_are_a_run_of_ms_marco(tmp_path: Path) -> None:
    assert "as in MS MARCO" in refused(tmp_path / "a.tsv", "q1\td7\t1\nq1\td8\t2\n")


def test_a_run_with_commas(tmp_path: Path) -> None:
    message = refused(tmp_path / "a.run", "q1,Q0,d1,1,2.5,t\nq1,Q0,d2,2,1.5,t\n", run=True)
    assert message.startswith("a.run:1: not a run: commas between its columns; expected a TREC run (lines `query Q0")


def packed_in_zip(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.qrels", QRELS)
    return path.read_bytes()


def test_what_is_packed_or_in_another_encoding_is_named_with_what_unpacks_it(tmp_path: Path) -> None:
    cases = {
        "a.bz2": (bz2.compress(QRELS.encode()), "this is packed by bzip2", "`bunzip2 -k FILE` unpacks it"),
        "a.xz": (lzma.compress(QRELS.encode()), "this is packed by xz", "`xz -dk FILE` unpacks it"),
        "a.zip": (packed_in_zip(tmp_path / "made.zip"), "this is a zip archive", "`unzip FILE` unpacks it"),
        "a.qrels": (QRELS.encode("utf-16"), "this is UTF-16 text", "`iconv -f UTF-16 -t UTF-8 FILE > NEW` does it"),
        "b.qrels": (b"\xfe\xff" + QRELS.encode("utf-16-be"), "this is UTF-16 text", "save it as UTF-8"),
    }
    for name, (content, message, hint) in cases.items():
        for run in (False, True):
            found = refused(tmp_path / name, content, run=run)
            assert found.startswith(f"{name}: {message}; expected "), name
            assert hint in found


@pytest.mark.parametrize("query_id", [b"BZh", b"BZh9", b"PK", b"7z", b"\xff\xfe", b"\xfe\xff1"])
def test_an_id_that_begins_as_a_packed_file_does_is_an_id(query_id: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_bytes(query_id + b" 0 d1 1\n")
    assert read_testset(tmp_path / "a.qrels").query_ids == (query_id.decode("utf-8", "surrogateescape"),)


def test_tables_with_semicolons_and_of_annotators_are_read(tmp_path: Path) -> None:
    (tmp_path / "case.csv").write_text("query;docid;rating\nshoes;d1;3\nshoes;d2;0\n")
    (query,) = read_testset(tmp_path / "case.csv").queries
    assert query.text == "shoes"
    (tmp_path / "raters.csv").write_text("query,docid,rating,annotator\nq1,d1,3,ann\nq1,d1,1,bob\n")
    (tmp_path / "more.csv").write_text("query_id,pid,grade,annotator\nq1,d1,3,ann\nq1,d1,1,bob\n")
    for name in ("raters.csv", "more.csv"):
        testset = read_testset(tmp_path / name)
        assert [(each.rater, each.grade) for each in testset.ratings["q1"]] == [("ann", 3.0), ("bob", 1.0)]
        assert load(tmp_path / name).grades["q1"] == {"d1": 1.0}  # the lower one of two in the middle


def test_an_iterator_that_was_read_before_is_no_empty_answer() -> None:
    testset = load({"q1": {"d1": 1}, "q2": {"d2": 1}})
    run = {"q1": iter(["d1"]), "q2": (doc_id for doc_id in ["x", "d2"])}
    assert evaluate(testset, run, measures=["RR"]).mean("RR") == 0.75  # (1 + 1/2) / 2
    with pytest.raises(UsageError) as caught:
        evaluate(testset, run, measures=["RR"])
    assert [problem.message for problem in caught.value.problems] == [
        f"the answer to query '{query_id}' is an empty iterator; it may have been read before"
        for query_id in ("q1", "q2")
    ]
    assert evaluate(testset, {"q1": [], "q2": ["d2"]}, measures=["RR"]).mean("RR") == 0.5
