"""What a test set in YAML says beside judgments and patterns: each key, each mistake at its line, and the schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest

from cranfield import load
from cranfield.base.errors import TestSetError
from cranfield.formats.convert import fitting_formats
from cranfield.formats.sniff import read_testset
from cranfield.formats.testsets import native_form as published
from cranfield.formats.testsets.native import read_testset_yaml, write_testset_yaml
from cranfield.formats.testsets.native_form import short_span
from cranfield.model import (
    Anchor,
    Entity,
    File,
    GroupedJudgment,
    Legacy,
    MatchingRules,
    Meta,
    Negative,
    Pattern,
    Predicate,
    Query,
    Rating,
    Source,
    Span,
    Split,
    TestSet,
)

VALIDATOR = jsonschema.Draft202012Validator(published.testset_schema())
EXAMPLE = r"""
cranfield_testset: 1
name: everything
classes: {stratum: kind, names: {symbol: canonical, question: G}}
sources: [{name: docs, pattern: "^docs://"}, {name: blog, pattern: "^blog://"}]
matching: {line_base: 0, min_overlap: 2, strip: [/build/], roots: [src], chunk_suffix: '#\d+$'}
databases: {corpus: "sqlite:corpus.db"}
consensus: median
grouping: subtopic
meta:
  uncommitted: "uncommitted changes: src/a.rs (modified)"
  review: agent curated, pending human review
  scale: [0, 1, 2.5]
  made: 2026-11-21
  refresh_days: 30
  commit: abc123
  source_files: {src/a.rs: "sha256:00"}
  anchors: {"src/a.rs:41-61": {symbol: "src/a.rs::A::add", body: "sha256:11", offset: 2, lines: 21}}
  counts: {queries: 8, kind=symbol: 1}
  split: {seed: 7, share: 0.2, by: [kind], held_out: [q1]}
  previous: "sha256:22"
  history: [made]
queries:
  - id: q1
    text: where is add
    strata: {kind: symbol}
    spans: ["src/a.rs:41-61", "src/a.rs:70-70:2", {path: "odd:name", lines: 5, grade: 0.5}]
    entities: {"src/a.py::Index.add": 2}
    patterns: [{regex: "^a"}]
    answer_files: {src/c.py: 2}
    predicates: [{sql: select id from docs}, {sql: select 1, database: other, grade: 2}]
    files: [src/a.rs, src/b.rs]
  - {id: q2, text: two, class: E, judgments: {d: 1}, legacy: [old]}
  - {id: q3, text: three, strata: {kind: question}, judgments: {d: 1}, legacy: {patterns: ["^old"]}}
  - {id: q4, text: four, negative: true}
  - {id: q5, text: five, negative: {below: 0.3, field: confidence}, class: negative}
  - {id: q6, text: six, entities: [a::b, c::d]}
  - {id: q7, text: seven, files: [src/x.py, src/y.py]}
  - {id: q8, text: eight, ratings: {d1: {ann: 2, bob: null}, d2: {ann: 0}}}
  - {id: q9, text: nine, ratings: {d1: {ann: 2}}, judgments: {d1: 2}}
  - {id: q10, text: ten, groups: {"1": {d: 1, e: 0}, "2": {d: 2}}}
"""
MEANING = TestSet(
    name="everything",
    queries=(
        Query("q1", "where is add", {"kind": "symbol"}, query_class="canonical"),
        Query("q2", "two", query_class="deprecation"),
        Query("q3", "three", {"kind": "question"}, query_class="prose"),
        Query("q4", "four", negative=Negative()),
        Query("q5", "five", query_class="negative", negative=Negative(0.3, "confidence")),
        Query("q6", "six"),
        Query("q7", "seven"),
        Query("q8", "eight"),
        Query("q9", "nine"),
        Query("q10", "ten"),
    ),
    grades={"q2": {"d": 1.0}, "q3": {"d": 1.0}, "q9": {"d1": 2.0}, "q10": {"d": 2.0, "e": 0.0}},
    targets={
        "q1": (
            Pattern("^a", 1.0),
            Span("src/a.rs", 41, 61, 1.0),
            Span("src/a.rs", 70, 70, 2.0),
            Span("odd:name", 5, 5, 0.5),
            Entity("src/a.py::Index.add", 2.0),
            File("src/c.py", 2.0),
            Predicate("select id from docs", "corpus", 1.0),
            Predicate("select 1", "other", 2.0),
        ),
        "q6": (Entity("a::b", 1.0), Entity("c::d", 1.0)),
        "q7": (File("src/x.py", 1.0), File("src/y.py", 1.0)),
    },
    groups={"q10": (GroupedJudgment("d", "1", 1.0), GroupedJudgment("d", "2", 2.0), GroupedJudgment("e", "1", 0.0))},
    grouping="subtopic",
    files={"q1": ("src/a.rs", "src/b.rs"), "q7": ("src/x.py", "src/y.py")},
    legacy={"q2": Legacy(("old",)), "q3": Legacy((), ("^old",))},
    sources=(Source("docs", "^docs://"), Source("blog", "^blog://")),
    matching=MatchingRules(0, 2, ("/build/",), ("src",), r"#\d+$"),
    databases={"corpus": "sqlite:corpus.db"},
    ratings={
        "q8": (Rating("d1", "ann", 2.0), Rating("d1", "bob", None), Rating("d2", "ann", 0.0)),
        "q9": (Rating("d1", "ann", 2.0),),
    },
    consensus="median",
)
META = Meta(
    "uncommitted changes: src/a.rs (modified)",
    "agent curated, pending human review",
    (0.0, 1.0, 2.5),
    "2026-11-21",
    30,
    "abc123",
    {"src/a.rs": "sha256:00"},
    {"src/a.rs:41-61": Anchor("src/a.rs::A::add", "sha256:11", 2, 21)},
    {"queries": 8, "kind=symbol": 1},
    Split(7, 0.2, ("q1",), by=("kind",)),
    "sha256:22",
    ("made",),
)


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_every_key_means_what_it_says(tmp_path: Path) -> None:
    read = read_testset_yaml(put(tmp_path / "t.yaml", EXAMPLE))
    assert read == MEANING
    assert read.meta == META


@pytest.mark.parametrize("name", ["t.yaml", "t.json"])
def test_every_key_is_written_and_read_back(tmp_path: Path, name: str) -> None:
    read = read_testset_yaml(put(tmp_path / "first.yaml", EXAMPLE))
    write_testset_yaml(read, tmp_path / name)
    again = read_testset_yaml(tmp_path / name)
    assert again == read
    assert again.meta == META
    assert again.digest == read.digest


def test_a_set_that_says_nothing_new_is_written_as_ever(tmp_path: Path) -> None:
    write_testset_yaml(TestSet("n", (Query("q", "t"),), {"q": {"d": 1.0}}), tmp_path / "t.yaml")
    assert (tmp_path / "t.yaml").read_text() == (
        "cranfield_testset: 1\nname: n\nqueries:\n  - id: q\n    text: t\n    judgments:\n      d: 1\n"
    )


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("src/a.rs:41-61", Span("src/a.rs", 41, 61, 1.0)),
        ("src/a.rs:41-61:2", Span("src/a.rs", 41, 61, 2.0)),
        ("a:1-1:0.5", Span("a", 1, 1, 0.5)),
        ("C:/a b/c.rs:1-2", Span("C:/a b/c.rs", 1, 2, 1.0)),
        ("a:1-2:3-4", Span("a:1-2", 3, 4, 1.0)),
        ("a", None),
        ("a:5", None),
        ("a:0-4", None),
        ("a:6-5", None),
        (":1-2", None),
        ("a:1-2:x", None),
        ("a:1-2:1e999", None),
    ],
)
def test_the_short_form_of_a_span(text: str, span: Span | None) -> None:
    assert short_span(text) == span


HEAD = "cranfield_testset: 1\nname: n\n"
Q = "queries:\n  - {id: q1, text: t, "
GOOD = Q + "judgments: {d: 1}}\n"

# (what follows the head, the message after the path). Line 3 is the first after the head.
MESSAGES: dict[str, tuple[str, str]] = {
    "an unknown class": (
        Q + "class: canonicle, judgments: {d: 1}}",
        (
            ":4:30: queries[0].class is no query class; expected canonical, root, synonym, fragment, deprecation, "
            "cross-source, prose, attribute, negative, or a letter (A, B, C, D, E, F, G, H, N), got 'canonicle'.\n"
            "Hint: did you mean canonical? Other kinds of queries are strata: `strata: {kind: NAME}`."
        ),
    ),
    "a stratum that is no class": (
        "classes: {stratum: kind}\n" + Q + "strata: {kind: symbol}, judgments: {d: 1}}",
        (
            ":5:38: queries[0].strata.kind is no query class; expected canonical, root, synonym, fragment, deprecation, "
            "cross-source, prose, attribute, negative, or a letter (A, B, C, D, E, F, G, H, N), got 'symbol'.\n"
            "Hint: `classes: {stratum: kind, names: {symbol: canonical}}` says what it stands for."
        ),
    ),
    "a name for no class": (
        "classes: {stratum: kind, names: {a: X}}\n" + GOOD,
        (
            ":3:37: classes.names.a is no query class; expected canonical, root, synonym, fragment, deprecation, "
            "cross-source, prose, attribute, negative, or a letter (A, B, C, D, E, F, G, H, N), got 'X'."
        ),
    ),
    "negative with judgments": (
        Q + "negative: true, judgments: {d: 1}}",
        (
            ":4:39: queries[0] is negative and has judgments; expected nothing that is expected.\n"
            "Hint: a negative query is right when nothing comes back."
        ),
    ),
    "negative that is text": (
        Q + "negative: maybe}",
        ":4:33: wrong value for queries[0].negative; expected true or false or keys with values, got 'maybe'.",
    ),
    "negative with a bound that is text": (
        Q + "negative: {below: low}}",
        ":4:41: wrong value for queries[0].negative.below; expected a number, got 'low'.",
    ),
    "not negative and nothing else": (
        Q + "negative: false}",
        (
            ":4:5: queries[0] has no judgments.\nHint: add `judgments: {document id: grade}`, `patterns` on the id, spans, "
            "entities or files; or `negative: true` where nothing should be found."
        ),
    ),
    "judgments and spans": (
        Q + "judgments: {d: 1}, spans: ['a:1-2']}",
        ":4:42: queries[0] has both judgments and spans; expected one of them.",
    ),
    "ratings and entities": (
        Q + "ratings: {d: {ann: 1}}, entities: [a]}",
        ":4:47: queries[0] has both ratings and entities; expected one of them.",
    ),
    "a span that is none": (
        Q + "spans: ['a:1-2', 'a:5']}",
        ":4:40: queries[0].spans[1] is no span of lines; expected PATH:FIRST-LAST or PATH:FIRST-LAST:GRADE, got 'a:5'.",
    ),
    "a span that is a number": (
        Q + "spans: [7]}",
        ":4:31: queries[0].spans[0] is no span of lines; expected PATH:FIRST-LAST, or path and lines, got 7.",
    ),
    "lines that are none": (
        Q + "spans: [{path: a, lines: 9-5}]}",
        (
            ":4:48: queries[0].spans[0].lines says no lines; "
            "expected a first line of 1 or more, and a last one not before it, got '9-5'."
        ),
    ),
    "a span without lines": (Q + "spans: [{path: a}]}", ":4:31: missing key 'lines' in queries[0].spans[0]."),
    "an entity twice": (
        Q + "entities: [a, b, a]}",
        ":4:40: queries[0].entities names 'a' twice; it also stands on line 4.",
    ),
    "an entity without a name": (Q + "entities: [a, '']}", ":4:37: queries[0].entities[1] is empty."),
    "an entity's grade that is text": (
        Q + "entities: {a: high}}",
        ":4:37: wrong value for queries[0].entities.a; expected a number, got 'high'.",
    ),
    "a file twice": (
        Q + "files: [a, a]}",
        ":4:34: queries[0].files names 'a' twice; it also stands on line 4.",
    ),
    "a predicate without SQL": (
        Q + "predicates: [{database: x}]}",
        ":4:36: missing key 'sql' in queries[0].predicates[0].",
    ),
    "legacy of nothing": (
        Q + "judgments: {d: 1}, legacy: []}",
        ":4:50: queries[0].legacy names neither ids nor patterns.",
    ),
    "legacy without anything in it": (
        Q + "judgments: {d: 1}, legacy: {ids: []}}",
        ":4:50: queries[0].legacy names neither ids nor patterns.",
    ),
    "a legacy pattern that does not compile": (
        Q + "judgments: {d: 1}, legacy: {patterns: ['(']}}",
        (
            ":4:62: queries[0].legacy.patterns[0] does not compile: "
            "missing ), unterminated subpattern at position 0; got '('."
        ),
    ),
    "a document nobody rated": (Q + "ratings: {d: {}}}", ":4:36: queries[0].ratings.d is empty."),
    "a rating that is text": (
        Q + "ratings: {d: {ann: good}}}",
        ":4:42: wrong value for queries[0].ratings.d.ann; expected a number, got 'good'.",
    ),
    "groups nobody names": (
        Q + "groups: {'1': {d: 1}}}",
        (
            ":4:23: queries[0] has groups, and the set does not say what they are; "
            "expected `grouping: subtopic`, `judge` or `preference` above the queries."
        ),
    ),
    "groups and judgments": (
        "grouping: judge\n" + Q + "groups: {'1': {d: 1}}, judgments: {d: 1}}",
        (
            ":5:23: queries[0] has both judgments and groups; expected one of them.\n"
            "Hint: a document's grade is the highest that any group gave it."
        ),
    ),
    "grouping without groups": ("grouping: judge\n" + GOOD, ":3:1: grouping is named, and no query has groups."),
    "preferences in a circle": (
        "grouping: preference\n" + Q + "groups: {g: {s: {a: 2, b: 1}, t: {b: 2, c: 1}, u: {c: 2, a: 1}}}}",
        (
            ":5:23: query 'q1', group 'g': its preferences contradict each other; expected an order without a circle in a "
            "group, got 'b > c > a > b'.\n"
            "Hint: opinions that differ belong in groups of their own."
        ),
    ),
    "a source that does not compile": (
        "sources: [{name: a, pattern: '('}]\n" + GOOD,
        ":3:30: sources[0].pattern does not compile: missing ), unterminated subpattern at position 0; got '('.",
    ),
    "a line base that is neither": (
        "matching: {line_base: 2}\n" + GOOD,
        ":3:23: wrong value for matching.line_base; expected 0 or 1, got 2.",
    ),
    "an overlap under a line": (
        "matching: {min_overlap: 0}\n" + GOOD,
        ":3:25: wrong value for matching.min_overlap; expected 1 or more, got 0.",
    ),
    "a chunk suffix that does not compile": (
        "matching: {chunk_suffix: '['}\n" + GOOD,
        ":3:26: matching.chunk_suffix does not compile: unterminated character set at position 0; got '['.",
    ),
    "a database of no kind": (
        "databases: {corpus: corpus.db}\n" + GOOD,
        ":3:21: databases.corpus is no place of a database; expected sqlite:FILE, duckdb:FILE or env:VARIABLE.",
    ),
    "a date that is none": (
        "meta: {made: yesterday}\n" + GOOD,
        ":3:14: meta.made is no date; expected a date like 2026-11-21, got 'yesterday'.",
    ),
    "a refresh interval of nothing": (
        "meta: {refresh_days: 0}\n" + GOOD,
        ":3:22: wrong value for meta.refresh_days; expected 1 or more, got 0.",
    ),
    "a share beyond one": (
        "meta: {split: {seed: 1, share: 2, held_out: []}}\n" + GOOD,
        ":3:32: wrong value for meta.split.share; expected 1 or less, got 2.",
    ),
    "an anchor without its text": (
        "meta: {anchors: {a: {symbol: b}}}\n" + GOOD,
        ":3:21: missing key 'body' in meta.anchors.a.",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_each_mistake_is_told_at_its_place(tmp_path: Path, name: str) -> None:
    text, message = MESSAGES[name]
    path = put(tmp_path / "t.yaml", HEAD + text)
    with pytest.raises(TestSetError) as caught:
        read_testset_yaml(path)
    assert str(caught.value) == f"{path}{message}"


BASE: dict[str, Any] = {"id": "q", "text": "t"}
GOOD_QUERIES: dict[str, dict[str, Any]] = {
    "a short span": {"spans": ["a:1-2"]},
    "a long span": {"spans": [{"path": "a", "lines": "1-2", "grade": 2}]},
    "a line": {"spans": [{"path": "a", "lines": 7}]},
    "entities": {"entities": {"a": 1}},
    "a list of entities": {"entities": ["a", 7]},
    "files": {"files": ["a"]},
    "files that are answers": {"answer_files": {"a": 2}},
    "a predicate": {"predicates": [{"sql": "select 1"}]},
    "kinds together": {"spans": ["a:1-2"], "entities": ["b"], "patterns": [{"regex": "c"}], "files": ["d"]},
    "files beside judgments": {"judgments": {"d": 1}, "files": ["a"]},
    "negative": {"negative": True},
    "negative with a bound": {"negative": {"below": 0.5}},
    "not negative": {"negative": False, "judgments": {"d": 1}},
    "a class": {"class": "E", "judgments": {"d": 1}, "legacy": ["o"]},
    "legacy": {"judgments": {"d": 1}, "legacy": {"ids": ["o"], "patterns": ["^p"]}},
    "ratings": {"ratings": {"d": {"ann": 1, "bob": None}}},
    "ratings and judgments": {"ratings": {"d": {"ann": 1}}, "judgments": {"d": 1}},
}
BAD_QUERIES: dict[str, dict[str, Any]] = {
    "judgments and spans": {"judgments": {"d": 1}, "spans": ["a:1-2"]},
    "ratings and files that are answers": {"ratings": {"d": {"ann": 1}}, "answer_files": {"a": 1}},
    "negative and files": {"negative": True, "files": ["a"]},
    "negative and entities": {"negative": {"below": 1}, "entities": ["a"]},
    "not negative": {"negative": False},
    "nothing": {"spans": [], "entities": {}, "files": []},
    "no span": {"spans": ["a"]},
    "a grade that is text": {"spans": [{"path": "a", "lines": "1-2", "grade": "high"}]},
    "no class": {"class": "X", "judgments": {"d": 1}},
    "legacy of nothing": {"judgments": {"d": 1}, "legacy": {}},
    "an empty list of legacy": {"judgments": {"d": 1}, "legacy": []},
    "a rater without a document": {"ratings": {"d": {}}},
}


def document(query: dict[str, Any]) -> dict[str, Any]:
    return {"cranfield_testset": 1, "name": "n", "queries": [BASE | query]}


@pytest.mark.parametrize("name", GOOD_QUERIES)
def test_schema_and_reader_accept_the_same(tmp_path: Path, name: str) -> None:
    text = document(GOOD_QUERIES[name])
    VALIDATOR.validate(text)
    read_testset_yaml(put(tmp_path / "t.json", json.dumps(text)))


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, name: str) -> None:
    text = document(BAD_QUERIES[name])
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(text)
    with pytest.raises(TestSetError):
        read_testset_yaml(put(tmp_path / "t.json", json.dumps(text)))


def test_classes_that_are_none_are_one_error_that_names_strata(tmp_path: Path) -> None:
    path = tmp_path / "set.yaml"
    queries = "".join(f"  - {{id: q{n}, text: w, class: {kind}, judgments: {{d: 1}}}}\n" for n, kind in
                      enumerate(("nav", "info", "nav")))  # fmt: skip
    path.write_text("cranfield_testset: 1\nname: t\nqueries:\n" + queries)
    with pytest.raises(TestSetError) as caught:
        read_testset_yaml(path)
    (problem,) = caught.value.problems
    assert problem.message == "the classes of 3 queries are no query classes"
    assert (problem.line, problem.got) == (4, "'nav', 'info'")
    assert problem.expected is not None
    assert problem.expected.startswith("canonical, root, synonym")
    assert problem.hint == "other kinds of queries are strata: `strata: {kind: NAME}`"


ROWS_OF_CLASSES = (("q1", "canonical"), ("q2", "nav"), ("q3", "info"), ("q4", "nav"))
TABLES_OF_CLASSES = {
    "patterns.tsv": "query\tpattern\t{0}\n" + "".join(f"{q}\tx\t{word}\n" for q, word in ROWS_OF_CLASSES),
    "judgments.csv": "query_id,doc_id,grade,{0}\n" + "".join(f"{q},d,1,{word}\n" for q, word in ROWS_OF_CLASSES),
    "judgments.jsonl": "".join(
        json.dumps({"query_id": q, "doc_id": "d", "grade": 1, "NAME": word}) + "\n" for q, word in ROWS_OF_CLASSES
    ).replace("NAME", "{0}"),
}


@pytest.mark.parametrize("column", ["class", "query_class"])
@pytest.mark.parametrize("form", [*TABLES_OF_CLASSES, "frame"])
def test_classes_of_a_table_that_are_none_are_one_error_that_names_strata(
    tmp_path: Path, form: str, column: str
) -> None:
    def read(name: str) -> TestSet:
        table = tmp_path / ("judgments.csv" if form == "frame" else form)
        table.write_text(TABLES_OF_CLASSES[table.name].replace("{0}", name))
        return load(pd.read_csv(table) if form == "frame" else table)

    with pytest.raises(TestSetError) as caught:
        read(column)
    (problem,) = caught.value.problems
    assert problem.message == f"unknown query class in column {column!r}"
    assert set((problem.got or "").strip("'").split(", ")) == {"nav", "info"}
    assert (problem.expected or "").startswith("canonical, root, synonym")
    assert problem.hint == "other kinds of queries are strata: rename the column, as to `kind`, or to `stratum.class`"
    # As the hint says, the words are strata under either name.
    for name, stratum in (("kind", "kind"), ("stratum.class", "class")):
        strata = [dict(query.strata) for query in read(name).queries]
        assert [found.get(stratum) for found in strata] == ["canonical", "nav", "info", "nav"]


def test_beside_query_class_a_column_called_class_is_a_stratum(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("query_id,doc_id,grade,query_class,class\nq1,d,1,prose,a\nq2,d,1,prose,a\n")
    assert read_testset(table).queries[0] == Query("q1", strata={"class": "a"}, query_class="prose")


def test_formats_are_offered_that_can_hold_what_is_expected():
    graded = TestSet("t", (Query("q1", "wool"),), {"q1": {"d1": 1}})
    found = fitting_formats(graded)
    assert {"yaml", "qrels"} <= set(found)
    assert not {"judges", "subtopics", "preferences", "golden-json", "spans-csv"} & set(found)
    assert found == sorted(found)
    assert fitting_formats(replace(graded, grades={})) == []
