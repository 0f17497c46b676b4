"""A set that is checked in columns has the findings of a set that is read whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cranfield.app.loading import load
from cranfield.base.errors import CranfieldError, TestSetError
from cranfield.cli.main import run_command_line
from cranfield.evaluation.options.blocks import TestSetOptions
from cranfield.evaluation.testset.validate import validate
from cranfield.scale import validation as large_validation
from cranfield.scale.validation import validate_large

TODAY = date(2026, 11, 21)


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_validation, "LARGE_BYTES", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sets")


def as_usual(path: Path, options: TestSetOptions | None = None) -> None:
    options = options or TestSetOptions()
    try:
        testset = load(path, options=options)
    except CranfieldError as error:
        refused: CranfieldError = error
    else:
        large = validate_large(path, options=options)
        assert large is not None
        usual = validate(testset, today=TODAY)
        assert large == replace(usual, testset=replace(usual.testset, notes=()))
        return
    with pytest.raises(type(refused)) as found:
        validate_large(path, options=options)
    assert found.value.problems == refused.problems


TEXT = st.sampled_from(["one two three four five", "one two three four", "One, two three four!", "", " ", "other", "é"])
STRATA = st.dictionaries(st.sampled_from(["kind", "task"]), st.sampled_from(["a", "b", ""]), max_size=2)
JUDGMENT = st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(0, 2))


@given(st.lists(JUDGMENT, min_size=1, max_size=20), st.lists(st.tuples(TEXT, STRATA), max_size=9), st.booleans())
@settings(max_examples=min(150, settings().max_examples))
def test_beir_folders_have_the_usual_findings(
    folder: Path,
    judgments: Sequence[tuple[int, int, int]],
    queries: Sequence[tuple[str, dict[str, str]]],
    nest: bool,
) -> None:
    path = folder / "beir"
    (path / "qrels").mkdir(parents=True, exist_ok=True)
    rows = {row[:2]: row for row in judgments}.values()
    lines = ["query-id\tcorpus-id\tscore", *(f"q{query}\td{doc}\t{grade}" for query, doc, grade in rows)]
    (path / "qrels" / "test.tsv").write_text("\n".join(lines))
    records = [
        {"_id": f"q{number}", "text": text, "metadata": {"strata": strata} if nest else strata}
        for number, (text, strata) in enumerate(queries)
    ]
    (path / "queries.jsonl").write_text("\n".join(map(json.dumps, records)))
    as_usual(path)


LINE = st.one_of(
    st.builds("q{}\t{}".format, st.integers(0, 5), st.sampled_from(["one", "two", " ", "x\r"])),
    st.sampled_from(["", "no tab", "\tno id", "q1\ta\tb", "id\ttext"]),
)


@given(st.lists(LINE, max_size=12), st.booleans())
@settings(max_examples=2 * settings().max_examples)
def test_texts_of_another_file_are_taken_as_usual(folder: Path, lines: Sequence[str], as_json: bool) -> None:
    path, queries = folder / "some.qrels", folder / "queries"
    path.write_text("q1 0 d 1\nq2 0 d 0\nq2 0 e 0\n")
    start = "q7\tseven\n"
    text = start + "\n".join(lines)
    if as_json:
        pairs = [line.split("\t") for line in text.split("\n")]
        text = "\n".join(json.dumps(dict(zip(("_id", "text", "x"), pair, strict=False))) for pair in pairs)
    queries.write_text(text)
    options = TestSetOptions(queries=queries)
    try:
        testset = load(path, options=options)
    except TestSetError as error:
        if "share no query" in str(error):
            assert validate_large(path, options=options) is None
            return
        as_usual(path, options)
    else:
        assert testset.queries
        as_usual(path, options)


def test_a_folder_of_parquet_files_is_checked(tmp_path: Path) -> None:
    for number, grade in enumerate((0, 1)):
        columns = {"query_id": [f"q{number}"], "doc_id": ["d"], "grade": [grade]}
        pq.write_table(pa.table(columns), tmp_path / f"part-{number}.parquet")
    large = validate_large(tmp_path)
    assert large is not None
    assert [(finding.check, finding.query_id) for finding in large.findings] == [("relevant", "q0"), ("texts", "")]


def test_of_many_texts_those_of_the_same_words_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_validation, "MAX_NEAR", 3)
    texts = ["one two", "Two, one!", "one two three four five", "one two three four", " ", ""]
    (tmp_path / "a.qrels").write_text("".join(f"q{number} 0 d 1\n" for number in range(len(texts))))
    lines = [
        json.dumps({"_id": f"q{number}", "text": text or "!"}) for number, text in enumerate(texts) if text.strip()
    ]
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    large = validate_large(tmp_path / "a.qrels", options=TestSetOptions(queries=tmp_path / "queries.jsonl"))
    assert large is not None
    near = [finding for finding in large.findings if finding.check == "near duplicates"]
    assert [(finding.query_id, finding.message) for finding in near] == [
        ("q1", "it has the same words as query q0: 'Two, one!', 'one two'")
    ]
    (note,) = large.testset.notes
    assert str(note) == "near duplicates: of 6 queries, only texts with the same words were searched for"


def test_many_findings_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_validation, "MAX_FINDINGS", 2)
    (tmp_path / "a.qrels").write_text("".join(f"q{number} 0 d 0\n" for number in range(5)))
    large = validate_large(tmp_path / "a.qrels")
    assert large is not None
    assert [finding.query_id for finding in large.findings if finding.check == "relevant"] == ["q0", "q1", ""]
    assert large.findings[2].message == "3 more of this kind"


def test_other_sets_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.qrels"
    path.write_text("q1 0 d 1\n")
    assert validate_large(path) is not None
    assert validate_large(path, options=TestSetOptions(line_base=1)) is None
    (tmp_path / "a.qrels.meta.json").write_text('{"cranfield_meta": 1}')
    assert validate_large(path) is None


def test_the_command_says_the_same_of_a_set_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.qrels"
    path.write_text("q1 0 d 1\nq2 0 d 0\n")
    results = []
    for size in (0, 1 << 30):
        monkeypatch.setattr(large_validation, "LARGE_BYTES", size)
        code = run_command_line(["testset", "validate", str(path), "--format", "json"])
        results.append((code, *capsys.readouterr()))
    assert results[0] == results[1]
    assert results[0][0] == 2


def test_the_command_says_that_a_large_set_is_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("cranfield_testset: 1\nname: a\nqueries:\n- {id: q1, text: one, grades: {d: 1}}\n")
    run_command_line(["testset", "validate", str(path)])
    assert "this test set is loaded as a whole" in capsys.readouterr().err
