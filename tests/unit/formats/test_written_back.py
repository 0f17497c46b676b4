"""What is written is read back the same, or is refused, or what becomes of it is said; packed where the name says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.convert import EQUAL_QUESTIONS, write_testset
from cranfield.formats.io.files import GZIP_MAGIC, ZSTD_MAGIC
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets.native import write_testset_yaml
from cranfield.model import Entity, File, GroupedJudgment, Negative, Pattern, Query, Rating, Target, TestSet

Q = Query("q", "boots")
BY_ID = TestSet("set", (Q,), {"q": {"d": 1.0}})


def preferences(*judgments: GroupedJudgment) -> TestSet:
    grades = {one.doc_id: one.value for one in judgments}
    return TestSet("p", (Q,), {"q": grades}, groups={"q": judgments}, grouping="preference")


@pytest.mark.parametrize(
    "targets",
    [
        (Entity("a.py::f", 1), Entity("a.py::f", 2)),
        (Entity("a.py::f", 1), Entity("a.py::f", 1)),
        (File("a.py", 1), File("a.py", 2)),
    ],
    ids=["entities", "an entity twice", "files"],
)
@pytest.mark.parametrize("end", ["yaml", "json"])
def test_a_set_that_would_be_read_back_otherwise_is_not_written(
    tmp_path: Path, end: str, targets: tuple[Target, ...]
) -> None:
    with pytest.raises(TestSetError, match="not written: 1 of 1 queries would change when read back"):
        write_testset_yaml(TestSet("s", (Q,), targets={"q": targets}), tmp_path / f"set.{end}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "format_name"), [("s.yaml", "yaml"), ("s.csv", "table"), ("s.json", "quepid-book")])
def test_a_rating_that_stands_twice_is_not_written(tmp_path: Path, name: str, format_name: str) -> None:
    ratings = (Rating("d", "ann", 1.0), Rating("d", "ann", 2.0))
    with pytest.raises(TestSetError, match="not written: query 'q': ann rates document 'd' twice; expected one rating"):
        write_testset(TestSet("s", (Q,), ratings={"q": ratings}), tmp_path / name, format_name)
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_is_called_like_a_subgroup_is_not_written_as_yaml(tmp_path: Path) -> None:
    mixed = preferences(GroupedJudgment("d", "1", 1.0), GroupedJudgment("e", "1", 2.0, "d"))
    with pytest.raises(TestSetError, match="would change when read back"):
        write_testset(mixed, tmp_path / "p.yaml")


def test_preferences_without_a_subgroup_are_written_under_one_and_that_is_said(tmp_path: Path) -> None:
    bare = preferences(GroupedJudgment("d", "1", 1.0), GroupedJudgment("e", "1", 2.0))
    said = write_testset(bare, tmp_path / "p", "preferences")
    assert said[0] == "preferences without a subgroup are written with the subgroup 0"
    assert (tmp_path / "p").read_text() == "q 1 0 d 1\nq 1 0 e 2\n"
    mixed = preferences(GroupedJudgment("d", "1", 1.0), GroupedJudgment("e", "1", 2.0, "0"))
    with pytest.raises(TestSetError, match="group '1' has a subgroup '0' and one without a name"):
        write_testset(mixed, tmp_path / "mixed", "preferences")


def test_negative_queries_of_every_class_are_written_as_patterns(tmp_path: Path) -> None:
    queries = (
        Query("a", "one", query_class="negative", negative=Negative()),
        Query("b", "two", query_class="canonical", negative=Negative()),
        Query("c", "three", negative=Negative()),
        Query("d", "four", query_class="canonical"),
    )
    testset = TestSet("s", queries, targets={"d": (Pattern("x"),)})
    assert write_testset(testset, tmp_path / "s.csv", "patterns") == ()
    assert read_testset(tmp_path / "s.csv") == testset


def test_one_text_twice_is_written_where_topics_or_groups_tell_the_queries_apart(tmp_path: Path) -> None:
    queries = tuple(Query(name, "boots", {"query_group": name}) for name in ("men", "women"))
    testset = TestSet("s", queries, {"men": {"d": 1.0}, "women": {"e": 1.0}})
    assert write_testset(testset, tmp_path / "r.json", "rre")[-1] == EQUAL_QUESTIONS
    with pytest.raises(TestSetError, match="the question 'boots' is the same for queries 1, 2"):
        read_testset(tmp_path / "r.json")
    with pytest.raises(TestSetError, match="queries 'men', 'women' have the same text"):
        write_testset(testset, tmp_path / "r.csv", "quepid-csv")


@pytest.mark.parametrize("name", ["set.qrels", "set.yaml", "set.json", "set.csv", "set.tsv", "set.jsonl"])
@pytest.mark.parametrize(("end", "magic"), [(".gz", GZIP_MAGIC), (".zst", ZSTD_MAGIC), (".GZ", GZIP_MAGIC)])
def test_a_name_that_says_packed_is_written_packed(tmp_path: Path, name: str, end: str, magic: bytes) -> None:
    write_testset(BY_ID, tmp_path / name)
    write_testset(BY_ID, tmp_path / (name + end))
    packed = (tmp_path / (name + end)).read_bytes()
    assert packed.startswith(magic)
    assert read_testset(tmp_path / (name + end)) == read_testset(tmp_path / name)
    write_testset(BY_ID, tmp_path / (name + end))
    assert (tmp_path / (name + end)).read_bytes() == packed


def test_a_parquet_file_is_not_packed_again(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match=r"a Parquet file is packed by itself; expected the name set\.parquet"):
        write_testset(BY_ID, tmp_path / "set.parquet.gz")
    assert list(tmp_path.iterdir()) == []
