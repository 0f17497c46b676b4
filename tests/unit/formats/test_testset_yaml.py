"""Test sets in YAML and JSON: what they mean, the round trip, and the published schema."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cranfield.base.errors import TestSetError
from cranfield.formats.io.validation import schema_text
from cranfield.formats.testsets import native_form as published
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.formats.testsets.trec import read_qrels
from cranfield.model import Pattern, Query, TestSet

SCHEMA = published.testset_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
EXAMPLE = r"""
cranfield_testset: 1
name: stdlib
version: 1.10
description: |
  Two kinds of
  judgments.
queries:
  - id: q1
    text: JSONDecoder
    strata: {class: A, difficulty: 3, async: true}
    params: {min_version: 3.10, limit: 5, strict: true}
    judgments: {json/decoder.py::JSONDecoder: 2, other: 0.5, nothing: 0, pooled: -1}
  - id: 007
    text: 1984
    patterns:
      - {regex: '^apple-docs://swift/hashable($|/)', grade: 1, credit: once}
      - {regex: 'b', grade: 2, credit: every, expected_count: 4}
      - regex: 12
"""
MEANING = TestSet(
    name="stdlib",
    queries=(
        Query(
            "q1",
            "JSONDecoder",
            {"class": "A", "difficulty": "3", "async": "true"},
            {"min_version": "3.10", "limit": 5, "strict": True},
        ),
        Query("007", "1984"),
    ),
    grades={"q1": {"json/decoder.py::JSONDecoder": 2.0, "other": 0.5, "nothing": 0.0, "pooled": -1.0}},
    targets={
        "007": (
            Pattern(r"^apple-docs://swift/hashable($|/)", 1.0, "once"),
            Pattern("b", 2.0, "every", 4),
            Pattern("12", 1.0, "once"),
        )
    },
    version="1.10",
    description="Two kinds of\njudgments.\n",
)


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_test_set_means_what_it_says(tmp_path: Path) -> None:
    read = read_testset_yaml(put(tmp_path / "t.yaml", EXAMPLE))
    assert read == MEANING
    assert all(type(grade) is float for grade in read.grades["q1"].values())
    assert [type(value) for value in read.queries[0].params.values()] == [str, int, bool]


def test_a_test_set_may_be_packed(tmp_path: Path) -> None:
    (tmp_path / "t.yaml.gz").write_bytes(gzip.compress(EXAMPLE.encode()))
    assert read_testset_yaml(tmp_path / "t.yaml.gz") == MEANING


def test_a_query_may_expect_nothing_relevant(tmp_path: Path) -> None:
    text = "cranfield_testset: 1\nname: n\nqueries: [{id: q, text: t, judgments: {d: 0, e: -1}}]\n"
    assert read_testset_yaml(put(tmp_path / "t.yaml", text)).grades == {"q": {"d": 0.0, "e": -1.0}}


def test_a_negative_zero_is_zero_so_that_equal_files_have_equal_digests(tmp_path: Path) -> None:
    text = "cranfield_testset: 1\nname: n\nqueries: [{id: q, text: t, judgments: {d: %s}}]\n"
    digests = {read_testset_yaml(put(tmp_path / "t.yaml", text % zero)).digest for zero in ("0", "-0", "-0.0", "0e1")}
    assert len(digests) == 1


def test_a_regex_that_later_pythons_may_read_differently_is_no_warning(tmp_path: Path) -> None:
    text = "cranfield_testset: 1\nname: n\nqueries: [{id: q, text: t, patterns: [{regex: '[[a]'}]}]\n"
    assert read_testset_yaml(put(tmp_path / "t.yaml", text)).targets["q"][0].regex == "[[a]"


def test_every_problem_is_told_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = """\
cranfield_testset: 1
verson: 2
queries:
  - {id: q1, text: "", judgments: {a: x}, patterns: [{regex: "("}]}
  - {id: q1, text: t}
"""
    with pytest.raises(TestSetError) as caught:
        read_testset_yaml(put(tmp_path / "t.yaml", text))
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (1, "missing key 'name'"),
        (2, "unknown key 'verson'"),
        (4, "queries[0].text is empty"),
        (4, "wrong value for queries[0].judgments.a"),
        (4, "queries[0].patterns[0].regex does not compile: missing ), unterminated subpattern at position 0"),
        (4, "queries[0] has both judgments and patterns"),
        (5, "query id 'q1' is used twice; it also occurs on line 4"),
        (5, "queries[1] has no judgments"),
    ]


@pytest.mark.parametrize("name", ["t.yaml", "t.json", "t.yml"])
def test_what_is_written_is_read_as_it_was(tmp_path: Path, name: str) -> None:
    write_testset_yaml(MEANING, tmp_path / name)
    read = read_testset_yaml(tmp_path / name)
    assert read == MEANING
    assert read.digest == MEANING.digest
    first = (tmp_path / name).read_bytes()
    write_testset_yaml(read, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_written_yaml_looks_as_a_person_would_write_it(tmp_path: Path) -> None:
    write_testset_yaml(MEANING, tmp_path / "t.yaml")
    assert (
        (tmp_path / "t.yaml").read_text()
        == r"""cranfield_testset: 1
name: stdlib
version: "1.10"
description: |
  Two kinds of
  judgments.
queries:
  - id: q1
    text: JSONDecoder
    strata:
      class: A
      difficulty: "3"
      async: "true"
    params:
      min_version: "3.10"
      limit: 5
      strict: true
    judgments:
      json/decoder.py::JSONDecoder: 2
      other: 0.5
      nothing: 0
      pooled: -1
  - id: "007"
    text: "1984"
    patterns:
      - regex: ^apple-docs://swift/hashable($|/)
        grade: 1
        credit: once
      - regex: b
        grade: 2
        credit: every
        expected_count: 4
      - regex: "12"
        grade: 1
        credit: once
"""
    )


def test_any_yaml_reader_reads_what_is_written(tmp_path: Path) -> None:
    write_testset_yaml(MEANING, tmp_path / "t.yaml")
    data = yaml.safe_load((tmp_path / "t.yaml").read_text())
    assert data["version"] == "1.10"
    assert data["queries"][1]["id"] == "007"
    assert data["queries"][0]["judgments"]["pooled"] == -1


def test_ids_that_are_no_text_are_written_as_json(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_bytes(b"q\xff 0 d\xe9 1\n")
    qrels = read_qrels(tmp_path / "a.qrels")
    testset = TestSet("a", (Query("q\udcff", "text"),), qrels.grades)
    write_testset_yaml(testset, tmp_path / "a.json")
    assert read_testset_yaml(tmp_path / "a.json") == testset


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
grades = st.floats(allow_nan=False, allow_infinity=False).map(lambda grade: grade + 0.0) | st.integers(-3, 9).map(float)
params = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    texts | st.integers(-(10**30), 10**30) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
    max_size=3,
)
once = st.builds(
    Pattern, st.sampled_from(["a", "^x$", r"\d+", "no", "1.10"]), grades, st.just("once"), st.none() | st.just(1)
)
every = st.builds(Pattern, st.sampled_from(["a", "b|c"]), grades, st.just("every"), st.none() | st.integers(1, 10**6))


@st.composite
def any_testset(draw: st.DrawFn) -> TestSet:
    ids = draw(st.lists(words, min_size=1, max_size=4, unique=True))
    queries = [
        Query(query_id, draw(words), draw(st.dictionaries(words, texts, max_size=2)), draw(params)) for query_id in ids
    ]
    by_id: dict[str, Any] = {}
    by_pattern: dict[str, Any] = {}
    for query_id in ids:
        if draw(st.booleans()):
            by_id[query_id] = draw(st.dictionaries(words, grades, min_size=1, max_size=4))
        else:
            by_pattern[query_id] = tuple(draw(st.lists(once | every, min_size=1, max_size=3)))
    return TestSet(draw(words), tuple(queries), by_id, by_pattern, version=draw(texts), description=draw(texts))


@given(testset=any_testset(), name=st.sampled_from(["t.yaml", "t.json"]))
def test_any_test_set_survives_a_round_trip(
    tmp_path_factory: pytest.TempPathFactory, testset: TestSet, name: str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    write_testset_yaml(testset, path)
    read = read_testset_yaml(path)
    assert read == testset
    assert read.digest == testset.digest


def test_the_published_schema_is_that_of_the_models() -> None:
    assert published.SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(SCHEMA), (
        "write it anew: python -m cranfield.formats.testsets.native_form"
    )


def test_the_schema_is_valid_and_names_no_host() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"].startswith("urn:")
    assert "http" not in schema_text(SCHEMA).replace("https://json-schema.org/draft/2020-12/schema", "")


GOOD_QUERY: dict[str, Any] = {"id": "q", "text": "t", "judgments": {"d": 1}}
BY_PATTERN: dict[str, Any] = {"id": "q", "text": "t", "patterns": [{"regex": "a"}]}


@pytest.mark.parametrize(
    "query",
    [
        GOOD_QUERY,
        BY_PATTERN,
        GOOD_QUERY | {"id": 7, "text": 1984},
        GOOD_QUERY | {"patterns": []},
        BY_PATTERN | {"judgments": {}},
        GOOD_QUERY | {"strata": {"class": "A", "level": 2}, "params": {"min_version": "3.10", "k": 2, "_x": True}},
        GOOD_QUERY | {"judgments": {"d": -1, "e": 0.5}},
        BY_PATTERN | {"patterns": [{"regex": "a", "grade": 2, "credit": "every", "expected_count": 3}]},
        BY_PATTERN | {"patterns": [{"regex": "a", "expected_count": None}]},
        BY_PATTERN | {"patterns": [{"regex": "a", "expected_count": 1}]},
    ],
)
def test_schema_and_reader_accept_the_same(tmp_path: Path, query: dict[str, Any]) -> None:
    document = {"cranfield_testset": 1, "name": "n", "queries": [query]}
    VALIDATOR.validate(document)
    read_testset_yaml(put(tmp_path / "t.json", json.dumps(document)))


def without(query: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in query.items() if name != key}


@pytest.mark.parametrize(
    "query",
    [
        without(GOOD_QUERY, "id"),
        without(GOOD_QUERY, "text"),
        without(GOOD_QUERY, "judgments"),
        GOOD_QUERY | {"judgments": {}},
        GOOD_QUERY | {"judgments": None},
        BY_PATTERN | {"patterns": []},
        GOOD_QUERY | BY_PATTERN,
        GOOD_QUERY | {"text": " "},
        GOOD_QUERY | {"id": ""},
        GOOD_QUERY | {"id": None},
        GOOD_QUERY | {"judgements": {}},
        GOOD_QUERY | {"judgments": {"d": "1"}},
        GOOD_QUERY | {"judgments": {"": 1}},
        GOOD_QUERY | {"judgments": ["d"]},
        GOOD_QUERY | {"strata": {"class": ["A"]}},
        GOOD_QUERY | {"params": {"min-version": 1}},
        GOOD_QUERY | {"params": {"a": None}},
        BY_PATTERN | {"patterns": [{"grade": 1}]},
        BY_PATTERN | {"patterns": [{"regex": ""}]},
        BY_PATTERN | {"patterns": [{"regex": "a", "credit": "twice"}]},
        BY_PATTERN | {"patterns": [{"regex": "a", "credit": "every", "expected_count": 0}]},
        BY_PATTERN | {"patterns": [{"regex": "a", "credit": "every", "expected_count": 1.5}]},
    ],
)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, query: dict[str, Any]) -> None:
    document = {"cranfield_testset": 1, "name": "n", "queries": [query]}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
    with pytest.raises(TestSetError):
        read_testset_yaml(put(tmp_path / "t.json", json.dumps(document)))


@pytest.mark.parametrize(
    "document",
    [
        {"name": "n", "queries": [GOOD_QUERY]},
        {"cranfield_testset": 2, "name": "n", "queries": [GOOD_QUERY]},
        {"cranfield_testset": "1", "name": "n", "queries": [GOOD_QUERY]},
        {"cranfield_testset": 1, "queries": [GOOD_QUERY]},
        {"cranfield_testset": 1, "name": "n", "queries": []},
        {"cranfield_testset": 1, "name": "n", "queries": [GOOD_QUERY], "x": 1},
    ],
)
def test_schema_and_reader_refuse_the_same_documents(tmp_path: Path, document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
    with pytest.raises(TestSetError):
        read_testset_yaml(put(tmp_path / "t.json", json.dumps(document)))


def test_a_grade_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    for grade in (math.nan, math.inf):
        with pytest.raises(TestSetError, match="expected a finite number"):
            write_testset_yaml(TestSet("t", (Query("q", "t"),), {"q": {"d": grade}}), tmp_path / "t.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_count_that_no_corpus_has_is_refused(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(
        "cranfield_testset: 1\nname: t\nqueries:\n"
        "  - {id: q1, text: one, patterns: [{regex: a, credit: every, expected_count: 10000001}]}\n"
    )
    with pytest.raises(TestSetError, match="10000000 or less"):
        read_testset_yaml(path)
