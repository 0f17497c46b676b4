"""Uploads: every format is read, what reaches beyond the file is refused with its place, bombs and broken files end in a message."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.base.errors import CranfieldError, RunFormatError, TestSetError
from cranfield.workbench.service.children import reader_environment
from cranfield.workbench.service.runs import unpack_testset
from cranfield.workbench.service.upload_child import PACKED, UploadOutcome, UploadTask, read, unpacked
from cranfield.workbench.service.uploads import read_apart, safe_name

TASK = UploadTask("testset", "", None, None, 1_000_000, 1000, 100, 2_000_000_000)
QUERIES = b"q1\tred shoes\nq2\tblue coat\n"
QRELS = b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"
OWN = """cranfield_testset: 1
name: shop
queries:
  - {id: q1, text: red shoes, judgments: {d1: 1}}
"""
SQL = """cranfield_testset: 1
name: shop
databases:
  corpus: env:CRANFIELD_DB
queries:
  - {id: q1, text: red shoes, judgments: {d1: 1}}
  - id: q2
    text: blue coat
    predicates:
      - {sql: "select id from secrets"}
"""
RUN = b"q1 Q0 d1 1 3.5 a\nq1 Q0 d2 2 2.5 a\n"


@pytest.fixture
def reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., UploadOutcome]:
    """Read an upload in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(name: str, data: bytes, queries: bytes | None = None, **limits: object) -> UploadOutcome:
        Path(name).write_bytes(data)
        if queries is not None:
            Path("texts").write_bytes(queries)
        task = replace(TASK, file=name, queries=None if queries is None else "texts", **limits)
        return read(task)

    return call


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # without the time of day
    return packed.getvalue()


BEIR = {
    "shop/queries.jsonl": b'{"_id": "q1", "text": "red shoes"}\n',
    "shop/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\n",
}


@pytest.mark.parametrize(
    ("name", "data", "queries", "found"),
    [
        ("set.yaml", OWN.encode(), None, "yaml"),
        ("set.qrels", QRELS, QUERIES, "qrels"),
        ("set.qrels.gz", gzip.compress(QRELS, mtime=0), QUERIES, "qrels"),
        ("set.zip", zipped({"a/set.yaml": OWN.encode()}), None, "yaml"),
        ("beir.zip", zipped(BEIR), None, "beir"),
        (
            "set.json",
            json.dumps(
                [
                    {
                        "query_id": "q1",
                        "query_text": "red shoes",
                        "query_type": "exact_term",
                        "relevant_docs": [{"doc_id": "d1", "grade": 2}],
                    }
                ]
            ).encode(),
            None,
            "graded-yaml",
        ),
    ],
)
def test_every_format_becomes_a_test_set(
    reading: Callable[..., UploadOutcome], name: str, data: bytes, queries: bytes | None, found: str
) -> None:
    outcome = reading(name, data, queries)
    assert outcome.format == found
    assert unpack_testset(Path(PACKED).read_bytes()).by_id["q1"].text == "red shoes"


def test_qrels_need_no_texts(reading: Callable[..., UploadOutcome]) -> None:
    assert reading("set.qrels", QRELS).format == "qrels"
    assert unpack_testset(Path(PACKED).read_bytes()).grades == {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}


def test_a_run_is_kept_as_it_is(reading: Callable[..., UploadOutcome]) -> None:
    outcome = reading("a.run.gz", gzip.compress(RUN, mtime=0), kind="run")
    assert (outcome.format, Path(outcome.file).read_bytes()) == ("trec", RUN)


def test_databases_and_sql_are_refused_at_their_lines(reading: Callable[..., UploadOutcome]) -> None:
    with pytest.raises(TestSetError) as caught:
        reading("set.yaml", SQL.encode())
    assert [(each.where, each.message) for each in caught.value.problems] == [
        ("set.yaml:3", "the test set refers to 1 database: corpus"),
        ("set.yaml:10:10", "query 'q2' is judged by SQL"),
    ]
    assert all("operator" in each.hint for each in caught.value.problems)


@pytest.mark.parametrize(
    ("name", "data", "limits", "message"),
    [
        ("set.qrels", b"\xff\xfe broken", {}, ""),
        ("set.yaml", OWN.replace("red", "\ud800").encode("utf-8", "surrogatepass"), {}, "not UTF-8"),
        ("set.png", b"\x89PNG\r\n\x1a\n" + bytes(100), {}, ""),
        ("set.json", b'{"cranfield_testset": 1, "queries": [', {}, ""),
        ("set.json", b"[" * 100_000, {}, ""),
        ("set.qrels", b"q1 0 " + b"d" * 2_000_000 + b" 1\n", {"n_bytes": 10_000_000}, ""),
        ("empty.qrels", b"", {}, "the file is empty"),
        ("set.qrels.gz", gzip.compress(QRELS, mtime=0)[:-9], {}, "the gzip data are damaged or cut short"),
        ("bomb.qrels.gz", gzip.compress(b"q1 0 d1 1\n" * 200_000, mtime=0), {}, "the unpacked file is too large"),
        ("bomb.zip", zipped({"set.qrels": bytes(5_000_000)}), {}, "the unpacked file is too large"),
        ("large.qrels", QRELS, {"n_bytes": 10}, "the unpacked file is too large"),
        ("many.qrels", QRELS, {"n_rows": 2}, "the file has 3 judgments"),
        ("many.qrels", QRELS, {"n_queries": 1}, "the file has 2 queries"),
        ("out.zip", zipped({"../set.yaml": OWN.encode()}), {}, "the archive contains '../set.yaml'"),
        ("abs.zip", zipped({"/etc/set.yaml": OWN.encode()}), {}, "the archive contains '/etc/set.yaml'"),
        ("two.zip", zipped({"a.yaml": OWN.encode(), "b.yaml": OWN.encode()}), {}, "the archive contains 2 files"),
        ("cut.zip", zipped({"a.yaml": OWN.encode()})[:-30], {}, ""),
        ("set.yaml", OWN.encode(), {"format": "ir_datasets"}, "an upload cannot have the format ir_datasets"),
        (
            "hub.zip",
            zipped({"README.md": b"- config_name: queries\n", "queries.jsonl": b"{}\n", "qrels/test.jsonl": b"{}\n"}),
            {},
            "an upload cannot have the format huggingface",
        ),
        ("set.yaml", OWN.encode(), {"format": "nope"}, "unknown test set format 'nope'"),
        ("set.yaml", OWN.replace("judgments: {d1: 1}", "patterns: [{regex: '(('}]").encode(), {}, ""),
    ],
)
def test_what_is_no_test_set_ends_in_a_message(
    reading: Callable[..., UploadOutcome], name: str, data: bytes, limits: dict[str, object], message: str
) -> None:
    with pytest.raises(CranfieldError) as caught:
        reading(name, data, **limits)
    assert message in caught.value.problems[0].message


def test_a_link_in_an_archive_is_refused(reading: Callable[..., UploadOutcome]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        link = zipfile.ZipInfo("set.yaml")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(TestSetError, match=r"the archive contains 'set\.yaml'"):
        reading("link.zip", packed.getvalue())


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("set.yaml", "set.yaml"),
        ("../../etc/passwd", "passwd"),
        ("C:\\data\\set.csv", "set.csv"),
        ("-", "upload"),
        ("", "upload"),
        ("--help", "help"),
        ("a b;rm -rf.qrels", "a_b_rm_-rf.qrels"),
        (".meta.json", "meta.json"),
    ],
)
def test_a_file_name_is_never_a_path_or_an_option(sent: str, kept: str) -> None:
    assert safe_name(sent) == kept


def test_the_process_has_no_variable_of_the_server() -> None:
    assert "CRANFIELD_DB" not in reader_environment({"CRANFIELD_DB": "postgresql://user:secret@host/db"})


@pytest.mark.slow
def test_a_process_of_its_own_reads_and_reports(tmp_path: Path) -> None:
    (tmp_path / "set.yaml").write_text(SQL)
    (tmp_path / "yaml.py").write_text("raise SystemExit('a file of the upload was imported')")
    with pytest.raises(TestSetError, match="refers to 1 database"):
        read_apart(tmp_path, replace(TASK, file="set.yaml"), 60)
    (tmp_path / "a.run").write_bytes(RUN)
    assert read_apart(tmp_path, replace(TASK, kind="run", file="a.run"), 60).format == "trec"


@pytest.mark.slow
def test_reading_ends_with_its_time_and_memory(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_bytes(RUN)
    with pytest.raises(RunFormatError, match=r"takes over 0\.01 s"):
        read_apart(tmp_path, replace(TASK, kind="run", file="a.run"), 0.01)
    if sys.platform == "linux":
        with pytest.raises(RunFormatError, match=r"memory|ended early"):
            read_apart(tmp_path, replace(TASK, kind="run", file="a.run", n_memory=30_000_000), 60)


def test_a_packed_upload_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set.yaml", "cranfield_testset: 1")

    def refuse(_: Path) -> bytes:
        raise AssertionError("the whole file was read")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert unpacked(path, TASK).read_text() == "cranfield_testset: 1"
