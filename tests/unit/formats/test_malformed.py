"""A malformed sample of each kind, in every format of the table: an error of ours that says where, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.by_text import under_texts

from cranfield.base.errors import CranfieldError, TestSetError
from cranfield.formats.convert import write_testset
from cranfield.formats.features import FEATURES
from cranfield.formats.sniff import FORMATS, read_queries, read_testset
from cranfield.model import Entity, File, GroupedJudgment, Pattern, Query, Span, TestSet

FILES = [name for name, entry in FORMATS.items() if entry.kind != "run" and entry.writer and not entry.is_folder]
OF_ANOTHER_KIND = {
    "nothing": b"",
    "blank lines": b"\n\n \n",
    "bytes": bytes(range(256)),
    "not UTF-8": b"\xff\xfe\xe9\n",
    "words": b"some words\nand more of them\n",
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00",
    "JSON of nothing": b"{}",
    "a list of nothing": b"[]",
    "a number": b"7",
    "null": b"null",
    "a page": b"<!doctype html><html><body>no</body></html>",
    "deep brackets": b"[" * 5000,
    "deep braces": b'{"a":' * 5000,
    "a table of another kind": b"x,y,z\n1,2,3\n",
    "a header alone": b"query,docid,rating\n",
    "cut gzip": b"\x1f\x8b\x08\x00",
}


def read(path: Path, name: str) -> TestSet:
    if FORMATS[name].kind == "queries":
        return read_queries(path, name)
    return read_testset(path, name)


def refused_with_its_path(path: Path, name: str) -> bool:
    """Whether reading is refused; no error but one of ours, with the path, comes out."""
    try:
        read(path, name)
    except CranfieldError as error:
        if any(problem.path != str(path) for problem in error.problems):
            raise
        return True
    return False


def sample(name: str) -> TestSet:
    """A small test set that a format can hold."""
    entry = FORMATS[name]
    if entry.kind == "queries":
        return TestSet("s", (Query("1", "one and more"), Query("2", "two and more")))
    text = (lambda i: f"query {i}") if "texts" in entry.holds else (lambda _: "")
    ids = [text(i) if entry.by_text else f"q{i}" for i in (1, 2)]
    queries = tuple(Query(query_id, text(i)) for i, query_id in enumerate(ids, start=1))
    if "grades" in entry.holds:
        grades = {query_id: {"doc-1": 1.0, "doc-2": 1.0} for query_id in ids}
        groups = {
            q: tuple(GroupedJudgment(d, "1", 1.0, "s" if entry.grouping == "preference" else "") for d in docs)
            for q, docs in grades.items()
        }
        return TestSet(
            "s", queries, grades, **({"groups": groups, "grouping": entry.grouping} if entry.grouping else {})
        )  # type: ignore[arg-type]
    kinds = {
        "spans": Span("a/b.py", 1, 9),
        "entities": Entity("a/b.py::c"),
        "patterns": Pattern("^a"),
        "file targets": File("a"),
    }
    target = next(kinds[kind] for kind in kinds if kind in entry.holds)
    return TestSet("s", queries, {}, dict.fromkeys(ids, (target,)))


@pytest.mark.parametrize("kind", OF_ANOTHER_KIND)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "sample"
    path.write_bytes(OF_ANOTHER_KIND[kind])
    with pytest.raises(CranfieldError) as caught:
        read(path, name)
    assert caught.value.exit_code == 2
    assert all(problem.path is not None for problem in caught.value.problems)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("kind", OF_ANOTHER_KIND)
def test_a_file_of_no_kind_is_refused_by_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sample"
    path.write_bytes(OF_ANOTHER_KIND[kind])
    for read_any in (read_testset, read_queries):
        with pytest.raises(TestSetError) as caught:
            read_any(path)
        assert all(problem.path == str(path) for problem in caught.value.problems)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_is_read_or_refused_and_never_breaks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "whole"
    entry = FORMATS[name]
    write = entry.write
    assert write is not None
    write(sample(name), path)
    whole = path.read_bytes()
    found = read(path, name)
    assert (under_texts(found) if entry.by_text else found).query_ids == sample(name).query_ids
    n_refused = 0
    for cut in range(0, len(whole), max(1, len(whole) // 25)):
        path.write_bytes(whole[:cut])
        n_refused += refused_with_its_path(path, name)
    assert n_refused > 0


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_changed_byte_is_read_or_refused_and_never_breaks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "whole"
    write = FORMATS[name].write
    assert write is not None
    write(sample(name), path)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 15)):
        for byte in (b"\xff", b"\0", b"x", b"\n", b'"', b"{"):
            path.write_bytes(whole[:place] + byte + whole[place + 1 :])
            refused_with_its_path(path, name)


# (the sample, its format, the message after the path)
BAD: dict[str, tuple[str, str, str]] = {
    "qrels, a bad grade": ("q 0 d 1\nq 0 e high\n", "qrels", ":2: the grade is not a finite number; expected a number in column 4, got 'high'."),
    "qrels, a column too few": ("q 0 d 1\nq d 1\n", "qrels", ":2: 3 columns; expected 4: query iteration document grade, got 'q d 1'."),
    "subtopics, a bad grade": ("q 1 d x\n", "subtopics", ":1: the grade is not a finite number; expected a number in column 4, got 'x'."),
    "judges, a column too few": ("q 1 d\n", "judges", ":1: 3 columns; expected 4: query judge document grade, got 'q 1 d'."),
    "preferences, a bad value": ("q 1 s d -1\n", "preferences", ":1: query 'q', group '1', document 'd': the value is negative; expected 0 or more, got -1."),
    "YAML, a bad grade": (
        "cranfield_testset: 1\nname: n\nqueries:\n  - {id: q, text: t, judgments: {d: high}}\n",
        "yaml",
        ":4:37: wrong value for queries[0].judgments.d; expected a number, got 'high'.",
    ),
    "YAML, no text": (
        "cranfield_testset: 1\nname: n\nqueries:\n  - {id: q, judgments: {d: 1}}\n",
        "yaml",
        ":4:5: missing key 'text' in queries[0].",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_line_is_named_with_what_was_expected(tmp_path: Path, name: str) -> None:
    text, format_name, message = BAD[name]
    path = tmp_path / "sample"
    path.write_text(text)
    with pytest.raises(TestSetError) as caught:
        read_testset(path, format_name)
    assert str(caught.value) == f"{path}{message}"


def test_nothing_is_written_where_the_name_says_no_format(tmp_path: Path) -> None:
    with pytest.raises(
        TestSetError, match="the format cannot be derived from the file name; expected a name that ends in one of"
    ):
        write_testset(sample("qrels"), tmp_path / "set.what")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "qrels",
            "not written: the format qrels cannot store any of the expected results; expected graded document ids, got 1 span of lines",
        ),
        ("yaml", None),
    ],
)
def test_nothing_is_written_where_no_truth_would_be_left(tmp_path: Path, name: str, told: str | None) -> None:
    spans = TestSet("s", (Query("q", "t"),), {}, {"q": (Span("a", 1, 2),)})
    if told is None:
        assert write_testset(spans, tmp_path / "set", name) == ()
        return
    with pytest.raises(TestSetError, match=told):
        write_testset(spans, tmp_path / "set", name)
    assert list(tmp_path.iterdir()) == []


def test_texts_that_a_format_needs_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="1 of 1 queries have no text; expected texts, which yaml needs"):
        write_testset(TestSet("s", (Query("q"),), {"q": {"d": 1.0}}), tmp_path / "set.yaml")


def test_a_query_that_loses_its_only_truth_is_left_out_and_counted(tmp_path: Path) -> None:
    mixed = TestSet("s", (Query("a", "t"), Query("b", "t")), {"a": {"d": 1.0}}, {"b": (Span("a", 1, 2),)})
    assert write_testset(mixed, tmp_path / "set.qrels") == (
        "not carried over: 1 span of lines",
        "left out: 1 query with judgments that the format cannot store (b)",
        "not carried over: 1 text of queries",
    )
    assert (tmp_path / "set.qrels").read_text() == "a 0 d 1\n"


def test_every_name_of_a_feature_is_that_of_its_row() -> None:
    assert all(name == feature.name for name, feature in FEATURES.items())
