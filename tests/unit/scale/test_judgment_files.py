"""Judgments that are read in blocks are those of the usual readers, and so are their errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.base.errors import CranfieldError, TestSetError
from cranfield.formats.sniff import read_testset
from cranfield.scale import judgment_text
from cranfield.scale.judgment_files import find_source, read_judgments
from cranfield.scale.judgment_rows import JudgmentBlock, RowCollector
from cranfield.scale.judgments import JudgmentTable, is_among, repeated_keys, text_keys

SMALL_BLOCK = 48
"""Bytes: a file of a few lines has several blocks then."""


def same(table: JudgmentTable, other: JudgmentTable) -> None:
    assert table.name == other.name
    assert table.digest == other.digest
    assert table.query_ids.to_pylist() == other.query_ids.to_pylist()
    assert table.start.tolist() == other.start.tolist()
    assert table.doc_ids.to_pylist() == other.doc_ids.to_pylist()
    assert table.grade.tolist() == other.grade.tolist()


def read(path: Path) -> JudgmentTable:
    """As whoever needs a table reads it."""
    return read_judgments(path) or JudgmentTable.of_testset(read_testset(path))


def as_usual(path: Path) -> None:
    """The same table, or the same error, as the usual reader of the file gives."""
    try:
        expected = JudgmentTable.of_testset(read_testset(path))
    except CranfieldError as error:
        refused: CranfieldError = error
    else:
        same(read(path), expected)
        return
    with pytest.raises(type(refused)) as found:
        read(path)
    assert str(found.value) == str(refused)
    assert found.value.problems == refused.problems


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgment_text, "BLOCK_BYTES", SMALL_BLOCK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("judgments")


BLANK = st.sampled_from([" ", " ", "\t", "  ", "\x0b", "\x0c ", " \r"])
QUERY = st.sampled_from(["1", "2", "q3", "é", "\u00a0"])
DOCUMENT = st.sampled_from(["a", "b", "d/3", '"x"', "\u2028", "\U0001d49f"])
GRADE = st.sampled_from(["0", "1", "1.0", "-1", "2e0", "+3", "0.25", "1e300", "-0.0"])
ODD_GRADE = st.sampled_from(["x", "nan", "1_0", "inf", "\u0661"])


@st.composite
def qrels_lines(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return draw(st.sampled_from(["", " ", "# comment 1 2", "\t", "#", "1 0 a", "1 0 a b c", " # 0 d 1"]))
    grade = draw(ODD_GRADE if kind == 1 else GRADE)
    parts = [draw(QUERY), draw(st.sampled_from(["0", "Q0"])), draw(DOCUMENT), grade]
    line = "".join(part + draw(BLANK) for part in parts[:-1]) + parts[-1]
    return draw(st.sampled_from(["", "", " "])) + line + draw(st.sampled_from(["", "", " ", "\r"]))


@given(st.lists(qrels_lines(), max_size=25), st.booleans(), st.sampled_from(["", "qid iter docno rel\n"]))
@settings(max_examples=3 * settings().max_examples)
def test_qrels_are_read_as_usual(folder: Path, lines: Sequence[str], ends: bool, header: str) -> None:
    text = "1 0 first 1\n" + "\n".join(lines)
    if header:
        text = header + text
    path = folder / "some.qrels"
    path.write_bytes((text + "\n" * ends).encode())
    as_usual(path)


CELL = st.sampled_from(["q1", "q2", "d,1", 'd"2', " d3", "d4", "é", "5"])
CELL_GRADE = st.sampled_from(["0", "1", "1.0", " 2", "x", "", "0.5"])
QUOTED = {"d,1": '"d,1"', 'd"2': '"d""2"'}


@given(
    st.lists(st.tuples(CELL, CELL, st.one_of(st.just("1"), CELL_GRADE)), min_size=1, max_size=20),
    st.sampled_from([",", "\t", ";"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", ",", ",extra", "\n"]),
)
@settings(max_examples=3 * settings().max_examples)
def test_tables_are_read_as_usual(
    folder: Path, rows: Sequence[tuple[str, str, str]], separator: str, end: str, last: str
) -> None:
    lines = [separator.join(("query_id", "doc_id", "grade"))]
    lines += [separator.join(QUOTED.get(cell, cell) if separator != "\t" else cell for cell in row) for row in rows]
    path = folder / "some.csv"
    path.write_bytes((end.join(lines) + last + end).encode())
    as_usual(path)


@given(st.lists(st.tuples(CELL, CELL, st.sampled_from([0, 1, 2, 2.5])), min_size=1, max_size=20), st.data())
@settings(max_examples=settings().max_examples)
def test_parquet_is_read_as_usual(folder: Path, rows: Sequence[tuple[str, str, float]], data: st.DataObject) -> None:
    queries, documents, grades = map(list, zip(*rows, strict=True))
    kinds = data.draw(st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]))
    numbers = data.draw(st.sampled_from([grades, [None, *grades[1:]], [float("nan"), *grades[1:]]]))
    columns = {"qid": pa.array(queries, kinds), "docno": pa.array(documents), "rel": pa.array(numbers, pa.float32())}
    path = folder / "some.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3)
    as_usual(path)


@pytest.mark.parametrize(
    ("ids", "grades"),
    [
        ([1, 2], [0, 1]),
        ([1.5, 2.0], [0, 1]),
        ([1, None], [0, 1]),
        ([1, 2], ["0", "1"]),
        ([], []),
        ([1, 2], [-0.0, 1.0]),
        (pa.array([], pa.float64()), pa.array([], pa.int8())),
    ],
)
def test_parquet_of_other_types_is_read_as_usual(tmp_path: Path, ids: Any, grades: Any) -> None:
    path = tmp_path / "some.parquet"
    doc_ids = pa.array([f"d{number}" for number in range(len(grades))], pa.string())
    pq.write_table(pa.table({"query_id": ids, "doc_id": doc_ids, "grade": grades}), path)
    as_usual(path)


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    rows = [("q1", "a", 1), ("q2", "b", 0), ("q1", "c", 2), ("q1", "a", 1)]
    folder = tmp_path / "judged"
    folder.mkdir()
    for number, part in enumerate((rows[:2], rows[2:])):
        columns = dict(zip(("query_id", "doc_id", "grade"), map(list, zip(*part, strict=True)), strict=True))
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet")
    for path in (folder, folder / "*.parquet"):
        table = read_judgments(path)
        assert table is not None
        assert table.name == "judged"
        assert table.query_ids.to_pylist() == ["q1", "q2"]
        assert table.doc_ids.to_pylist() == ["c", "a", "b"]
        assert table.grade.tolist() == [2.0, 1.0, 0.0]


def test_a_contradiction_between_parquet_files_names_both_rows(tmp_path: Path) -> None:
    for number, grade in enumerate((1, 2)):
        columns = {"query_id": ["q0", "q1"], "doc_id": ["z", "a"], "grade": [0, grade]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    with pytest.raises(TestSetError) as found:
        read_judgments(tmp_path)
    problem = found.value.problems[0]
    assert problem.message == f"row 1 of {tmp_path}/1.parquet: query 'q1', document 'a' is judged twice"
    assert problem.expected == f"1, as in row 1 of {tmp_path}/0.parquet"


def beir(folder: Path, queries: Sequence[object], qrels: Sequence[str]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    lines = [query if isinstance(query, str) else json.dumps(query) for query in queries]
    (folder / "queries.jsonl").write_text("\n".join(lines))
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *qrels]))
    return folder


QUERIES = [
    {"_id": "q1", "text": "one", "metadata": {"kind": "a", "n": [1]}},
    {"_id": "q2", "text": 'two "\u00e9"', "metadata": {"kind": "a"}, "lang": "en"},
    {"_id": "q4", "text": "four", "metadata": {"strata": {"kind": "b"}}},
    {"_id": "other", "text": ""},
]


@pytest.mark.parametrize(
    ("queries", "qrels"),
    [
        (QUERIES, ["q1\td1\t1", "q3\td1\t0", "q2\td1\t2", "q4\td2\t1"]),
        ([{"_id": "q1", "text": "one"}], ["q1\td1\t1", "q1\td1\t1"]),
        ([*QUERIES, QUERIES[0], {"_id": "q5"}, "[1]", "{"], ["q1\td1\t1", "q1\td1\t2", "q1\td3\tx"]),
    ],
)
def test_beir_folders_are_read_as_usual(tmp_path: Path, queries: Sequence[object], qrels: Sequence[str]) -> None:
    path = beir(tmp_path / "set", queries, qrels)
    as_usual(path)
    as_usual(path / "qrels" / "test.tsv")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# nothing\n",
        b"1 0 a 1\n1 0 \xff 1\n",
        b"1 0 a 1\n1 0 \xff 1\n1 0 a 2\n",
        b"\xef\xbb\xbf1 0 a 1\n",
        b"1 0 a 1\n1 1 a 2\n",
        b"1 0 a 1\n2 0 b" + b"b" * (1 << 20) + b" 1\n",
        b"query_id,doc_id,grade\n1,a,\xff\n",
        b"query_id,doc_id,grade,x\n1,a,1,\xff\n",
        b"query_id,doc_id\n1,a\n",
        b"query_id,doc_id,grade,grade\n1,a,1,1\n",
        b"query_id, doc_id, grade\n1, a, 1\n",
        b"# about\nquery_id,doc_id,grade\n1,a,1\n\n1,a,1\n",
        b"query_id,doc_id,grade\n1,a,1\n,,\n2,b\n",
        b'query_id,doc_id,grade\n1,a,1\n2,"b\nc",2\n3,"d"e,1\n',
        b"query_id,doc_id,grade,rater\n1,a,1,\n",
        b"query_id,doc_id,grade,query_text\n1,a,1,text\n",
        b'{"query_id": "1", "doc_id": "a", "grade": 1}\n',
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_odd_files_are_read_as_usual(tmp_path: Path, content: bytes, packed: bool) -> None:
    path = tmp_path / ("some.txt.gz" if packed else "some.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    as_usual(path)


def test_as_many_problems_are_found_as_usual(tmp_path: Path) -> None:
    lines = [f"q{k} 0 d 1\nq{k} 0 d 2\n" + ("bad\n" if k % 3 == 0 else "") for k in range(1200)]
    path = tmp_path / "bad.qrels"
    path.write_text("".join(lines))
    as_usual(path)


def test_plain_formats_are_read_in_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("1 0 a 1\n")
    (tmp_path / "b.csv").write_text("query_id,doc_id,grade\n1,a,1\n")
    (tmp_path / "c.yaml").write_text("cranfield_testset: 1\nqueries: []\n")
    assert find_source(tmp_path / "a.qrels") is not None
    assert find_source(tmp_path / "b.csv") is not None
    assert find_source(tmp_path / "c.yaml") is None


def test_rows_far_apart_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.scale.judgment_rows.PIECE", 4)
    random = np.random.default_rng(3)
    rows = [(f"q{q}", f"d{d}", float(g)) for q, d, g in zip(*random.integers(0, 40, (3, 500)), strict=True)]
    first = {row[:2]: row for row in reversed(rows)}
    rows = list(first.values())
    collector = RowCollector()
    for start in range(0, len(rows), 7):
        collector.add(JudgmentBlock.of(*map(list, zip(*rows[start : start + 7], strict=True))))
    collected = collector.rows()
    assert collected.drop_repeated() == (0, frozenset())
    table = collected.table("x")
    order = list(dict.fromkeys(row[0] for row in rows))
    expected = sorted(rows, key=lambda row: (order.index(row[0]), -row[2]))
    assert table.query_ids.to_pylist() == order
    assert table.rows().to_pydict() == {
        name: [row[place] for row in expected] for place, name in enumerate(("query_id", "doc_id", "grade"))
    }


def test_texts_with_equal_keys_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cranfield.scale.judgment_rows.text_keys", lambda texts: np.zeros(len(texts), dtype=np.uint64))
    collector = RowCollector()
    collector.add(JudgmentBlock.of(["1", "1", "2", "1"], ["a", "b", "a", "a"], [1.0, 2.0, 3.0, 1.0]))
    collected = collector.rows()
    assert collected.drop_repeated() == (1, frozenset())
    assert len(collected.table("x")) == 3


@given(st.lists(st.text(max_size=12), max_size=20))
def test_equal_texts_have_equal_keys(texts: list[str]) -> None:
    keys = text_keys(pa.array(texts, pa.large_string()))
    assert dict(zip(texts, keys.tolist(), strict=True)) == dict(zip(texts[::-1], keys.tolist()[::-1], strict=True))
    assert len(set(keys.tolist())) == len(set(texts))
    repeated = {text for text in texts if texts.count(text) > 1}
    assert is_among(keys, repeated_keys(keys)).tolist() == [text in repeated for text in texts]
