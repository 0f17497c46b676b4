"""Telling formats by content."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from cranfield.base.errors import RunFormatError, TestSetError
from cranfield.formats.features import FEATURES
from cranfield.formats.runs.jsonl import write_run
from cranfield.formats.sniff import FORMATS, format_names, read_testset, sniff_run
from cranfield.model import Answer, Outcome, Run, TestSet

YAML = "cranfield_testset: 1\nname: n\nqueries:\n  - {id: q1, text: t, judgments: {d1: 1}}\n"
JSON = '{"cranfield_testset": 1, "name": "n", "queries": [{"id": "q1", "text": "t", "judgments": {"d1": 1}}]}'
QRELS = "q1 0 d1 1\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (YAML, "t"),
        (JSON, "t"),
        (JSON.replace(", ", ",\n"), "t"),
        ("# made by hand\n\n" + YAML, "t"),
        ("---\n" + YAML, "t"),
        ("description: words that say 4\n" + YAML, "t"),  # four columns, the last a number
        (b"\xef\xbb\xbf" + YAML.encode(), "t"),
        ('"cranfield_testset": 1\n' + YAML.split("\n", 1)[1], "t"),
        (YAML.replace("\n", "\r\n"), "t"),
        (gzip.compress(YAML.encode(), mtime=0), "t"),
        (QRELS, ""),
        ("# comment\n\n" + QRELS, ""),
        ("q1\t0\td1\t1.5\r\n", ""),
        (gzip.compress(QRELS.encode(), mtime=0), ""),
    ],
)
@pytest.mark.parametrize("name", ["a", "a.txt", "a.qrels"])
def test_a_test_set_is_told_by_its_content_whatever_its_name(
    tmp_path: Path, name: str, content: str | bytes, text: str
) -> None:
    testset = read_testset(put(tmp_path / name, content))
    assert [(query.id, query.text) for query in testset.queries] == [("q1", text)]
    assert list(testset.grades["q1"]) == ["d1"]


def test_a_test_set_without_its_version_is_told_by_its_queries(tmp_path: Path) -> None:
    path = put(tmp_path / "t.yaml", YAML.split("\n", 1)[1])
    with pytest.raises(TestSetError, match=r"t\.yaml:1:1: missing key 'cranfield_testset'"):
        read_testset(path)


def test_a_named_format_is_believed(tmp_path: Path) -> None:
    path = put(tmp_path / "a", "q1 0 d1 high\n")
    with pytest.raises(TestSetError, match="a: not a test set"):
        read_testset(path)
    with pytest.raises(TestSetError, match="a:1: the grade is not a finite number"):
        read_testset(path, "qrels")
    with pytest.raises(TestSetError, match="a:1:1: 'q1 0 d1 high' at the top of the file"):
        read_testset(path, "yaml")
    assert sniff_run(path, "jsonl").name == "jsonl"
    assert sniff_run(path, "trec").name == "trec"


@pytest.mark.parametrize(
    "content",
    [
        "q1 Q0 d1 1 0.5 tag\n",
        "# comment\n\nq1 Q0 d1 1 0.5 tag\n",
        "q1\tQ0\td1\t1\t1e-5\ttag\r\n",
        "q1 Q0 d1 1 0.5 tag with words\n",
        gzip.compress(b"q1 Q0 d1 1 0.5 tag\n", mtime=0),
    ],
)
def test_a_trec_run_is_told_by_its_columns(tmp_path: Path, content: str | bytes) -> None:
    assert sniff_run(put(tmp_path / "r.jsonl", content)).name == "trec"


def test_a_collected_run_is_told_by_its_header(tmp_path: Path) -> None:
    config = {"queries": "x", "cranfield_testset": 1, "env": {"A": "b" * 100_000}}
    write_run(Run("r", {"q": Answer(Outcome.EMPTY)}, config=config), tmp_path / "r.trec")
    assert sniff_run(tmp_path / "r.trec").name == "jsonl"
    packed = put(tmp_path / "r", gzip.compress((tmp_path / "r.trec").read_bytes()))
    assert sniff_run(packed).name == "jsonl"


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 1}', "q1 Q0 d1 1 high tag", "\0\1\2", b"\xff\xfa", "q1 0 d1 1"])
def test_what_is_no_run_is_refused(tmp_path: Path, content: str | bytes) -> None:
    with pytest.raises(RunFormatError, match="not a run; expected a collected run"):
        sniff_run(put(tmp_path / "r", content))


def test_real_qrels_and_runs_are_told(shared_data: Path) -> None:
    folder = shared_data / "trec_eval"
    for name in ("qrels.test", "qrels.test.with-comments", "qrels.comment.test", "qrels.rel_level"):
        assert isinstance(read_testset(folder / name), TestSet)
    for name in ("results.test", "results.trunc", "results.comment.test"):
        assert sniff_run(folder / name).name == "trec"
    # Preferences have five columns: neither one.
    with pytest.raises(TestSetError, match="not a test set"):
        read_testset(folder / "prefs.test")


def test_every_format_has_its_row() -> None:
    own = ("yaml", "qrels", "parquet-qrels", "subtopics", "judges", "preferences", "mapped")
    assert format_names("testset")[-len(own) :] == own
    assert format_names("run")[-4:] == ("jsonl", "trec", "parquet", "mapped-run")
    assert format_names("queries") == (
        "topics",
        "queries-jsonl",
        "queries-csv",
        "queries-tsv",
        "query-log",
    )
    assert [name for name, entry in FORMATS.items() if entry.read is None] == ["trec", "parquet"]
    assert all(name == entry.name for name, entry in FORMATS.items())


def test_every_format_says_whose_it_is_and_what_it_holds() -> None:
    assert [name for name, entry in FORMATS.items() if entry.kind != "run" and not entry.source] == []
    assert [name for name, entry in FORMATS.items() if entry.kind != "run" and not entry.holds] == []
    assert [name for name, entry in FORMATS.items() if (entry.holds | entry.needs) - FEATURES.keys()] == []


def test_qrels_are_read_without_the_libraries_of_yaml(tmp_path: Path) -> None:
    put(tmp_path / "a.qrels", QRELS)
    code = (
        "import sys; from cranfield.formats.sniff import read_testset; read_testset('a.qrels');"
        "print(sorted({'yaml', 'pydantic', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "line", "grouping"),
    [
        ("subtopics", "q1 2 d1 1", "subtopic"),
        ("judges", "q1 2 d1 1", "judge"),
        ("preferences", "q1 1 1 d1 2.0", "preference"),
    ],
)
def test_qrels_whose_second_column_says_something_are_named(
    tmp_path: Path, name: str, line: str, grouping: str
) -> None:
    path = put(tmp_path / "a.qrels", line + "\n" + line.replace("d1", "d2") + "\n")
    assert read_testset(path, name).grouping == grouping


def test_a_parquet_table_is_judgments_or_a_run_as_it_is_asked_for(tmp_path: Path) -> None:
    import polars as pl

    path = tmp_path / "a.parquet"
    pl.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "grade": [2]}).write_parquet(path)
    assert read_testset(path).grades == {"q1": {"d1": 2.0}}
    assert sniff_run(path).name == "parquet"


def test_a_bad_first_line_does_not_hide_what_a_file_is(tmp_path: Path) -> None:
    assert sniff_run(put(tmp_path / "a.run", "q1 Q0 d1 1 9\nq1 Q0 d2 2 8 tag\n")).name == "trec"
    from cranfield.formats.testsets.trec import read_qrels

    path = put(tmp_path / "a.qrels", "q1 0 d1\nq1 0 d2 1\n")
    with pytest.raises(TestSetError, match=r"a\.qrels:1: 3 columns"):
        read_testset(path)
    with pytest.raises(TestSetError, match=r"a\.qrels:1: 3 columns"):
        read_qrels(path)


def test_json_that_is_cut_short_is_told_where(tmp_path):
    (tmp_path / "cut.json").write_text('[{"query_id": "q1",\n')
    with pytest.raises(TestSetError, match=r"cut\.json:2:1: this JSON cannot be read"):
        read_testset(tmp_path / "cut.json")
