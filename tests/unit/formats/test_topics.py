"""Texts of queries: TREC topics in both forms, lines of two columns, lines of JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cranfield.base.errors import TestSetError
from cranfield.formats.sniff import read_queries, read_testset
from cranfield.formats.testsets.topics import write_queries_jsonl, write_queries_tsv, write_topics
from cranfield.model import Query, TestSet

CLASSIC = """\
<top>

<num> Number: 301
<title> International Organized
  Crime

<desc> Description:
Identify organizations.

<narr> Narrative:
A relevant document must, at least, name one <b>organization</b>.

</top>

<top><head> Tipster</head>
<num> Number:  302 </num>
<dom> Domain: Medicine
<title> Topic:  Poliomyelitis & Post-Polio </title>
</top>
"""
XML = """\
<?xml version="1.0" encoding="utf-8"?>
<!-- <topic number="0"><title>not this</title></topic> -->
<topics task="covid">
  <topic number="1">
    <query>coronavirus &amp; origin</query>
    <question>what is the origin?</question>
  </topic>
  <topic type="single" number='2'><title>A &lt; B</title><query>b</query></topic>
  <topic number="3">A 19-year-old
    patient <![CDATA[& more]]></topic>
  <topic><num>Number: 4</num><title>four</title></topic>
</topics>
"""
NEED = "Identify organizations. A relevant document must, at least, name one <b>organization</b>."


def put(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_classic_topics_give_their_titles(tmp_path: Path) -> None:
    read = read_queries(put(tmp_path / "t", CLASSIC))
    assert read.queries == (
        Query("301", "International Organized Crime", need=NEED),
        Query("302", "Poliomyelitis & Post-Polio"),
    )
    assert tuple(map(str, read.notes)) == ()


@pytest.mark.parametrize(
    "text",
    [
        '<topics><topic number="1"><title>a</title><description>b</description><narrative>c</narrative></topic></topics>',
        '{"_id": "1", "text": "a", "information_need": "b", "narrative": "c"}\n',
    ],
    ids=["XML", "JSONL"],
)
def test_description_and_narrative_are_the_information_need(tmp_path: Path, text: str) -> None:
    read = read_queries(put(tmp_path / "q", text))
    assert (read.queries, read.notes) == ((Query("1", "a", need="b c"),), ())


@pytest.mark.parametrize("write", [write_topics, write_queries_jsonl])
def test_the_information_need_is_written_and_read_back(tmp_path: Path, write: Callable[[TestSet, Path], None]) -> None:
    queries = (Query("1", "a", need="what b is"), Query("2", "c"))
    write(TestSet("t", queries), tmp_path / "q")
    assert read_queries(tmp_path / "q").queries == queries


def test_notes_are_written_as_json_lines_only(tmp_path: Path) -> None:
    queries = (Query("1", "a", notes="no b"),)
    write_queries_jsonl(TestSet("t", queries), tmp_path / "q")
    assert read_queries(tmp_path / "q").queries == queries


def test_a_need_of_several_lines_is_no_topic(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="information need cannot be stored"):
        write_topics(TestSet("t", (Query("1", "a", need="b\nc"),)), tmp_path / "q")


def test_xml_topics_give_their_titles_or_what_stands_for_one(tmp_path: Path) -> None:
    read = read_queries(put(tmp_path / "t", XML))
    assert [(query.id, query.text) for query in read.queries] == [
        ("1", "coronavirus & origin"),
        ("2", "A < B"),
        ("3", "A 19-year-old patient & more"),
        ("4", "four"),
    ]
    assert tuple(map(str, read.notes)) == ("not read in addition to the titles: 1 question, 1 query",)


@pytest.mark.parametrize(
    ("text", "ids", "notes"),
    [
        ("1\twhat is it\n\n2\twhere is it\r\n", ["1", "2"], ()),
        ("query_id\ttext\n1\ta b\n", ["1"], ("line 1 is a header row and was skipped: 'query_id\\ttext'",)),
        ('{"_id": "1", "text": "a", "metadata": {}}\n{"id": 2, "query": "b"}\n', ["1", "2"], ()),
        (
            '{"query_id": "x", "title": "a", "metadata": {"k": 1}}\n',
            ["x"],
            ("not read in addition to the titles: 1 metadata",),
        ),
    ],
    ids=["TSV", "TSV with a header", "JSONL", "JSONL with more"],
)
def test_lines_give_queries(tmp_path: Path, text: str, ids: list[str], notes: tuple[str, ...]) -> None:
    read = read_queries(put(tmp_path / "q", text))
    assert list(read.query_ids) == ids
    assert tuple(map(str, read.notes)) == notes


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ("", None, ": the file is empty"),
        ("just words\n", None, ": not a query file"),
        ("<top>\n<title> a\n</top>\n", None, ":1: the topic has no number; expected <num> Number: 301."),
        (
            "\n<top>\n<num> Number: 1\n</top>\n",
            None,
            ":2: the topic has no title; expected <title> and the text of the query.",
        ),
        ("<top>\n<num> 1\n<title> a\n", None, ":1: this topic is not closed; expected </top>."),
        ("<top><num>1<title>a</top>\nx\n<top>", None, ":2: text outside of a topic; expected <top>, got 'x'."),
        (
            "<top><num>1<title>a</top>\n<top><num>1<title>b</top>",
            None,
            ":2: query id '1' is used twice; it also occurs on line 1.",
        ),
        (
            "<topics>\n<topic><title>a</title></topic></topics>",
            None,
            ':2: the topic has no number; expected <topic number="1">.',
        ),
        (
            '<topics>\n<topic number="1"></topic></topics>',
            None,
            ":2: topic '1' has no text; expected <title>, <query> or <question>.",
        ),
        ('<topics>\n<topic number="1"><title>a', None, ":2: this topic is not closed; expected </topic>."),
        (
            '<topics>\n<topic number="1">a <title>b</topic>',
            None,
            ":2: a tag that is not closed; expected fields like <title>…</title>.",
        ),
        (
            '<!DOCTYPE t [\n<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<topic number="1">&a;</topic>',
            None,
            ":1: a declaration; expected topics without declarations of types and entities.",
        ),
        ("1\ta\tb\n", "queries-tsv", ":1: 3 columns; expected 2: id, a tab, text, got '1\\ta\\tb'."),
        ("1\ta\n2\n", "queries-tsv", ":2: 1 columns; expected 2: id, a tab, text, got '2'."),
        ("1\t \n", "queries-tsv", ":1: query '1' has no text; expected the text of the query."),
        ("\ta\n", "queries-tsv", ":1: the query has no id; expected an id."),
        ('{"_id": "1", "text"\n', "queries-jsonl", ":1:20: not valid JSON: Expecting ':' delimiter"),
        ("[1]\n", "queries-jsonl", ":1: no object; expected"),
        ('\n{"text": "a"}\n', "queries-jsonl", ":2: no key '_id'; expected _id or id or query_id or qid, got 'text'."),
        ('{"_id": 1}\n', "queries-jsonl", ":1: no key 'text'; expected text or query or title, got '_id'."),
        ('{"_id": 1.5, "text": "a"}\n', "queries-jsonl", ":1: the id is neither text nor a whole number; got 1.5."),
        ('{"_id": "1", "text": null}\n', "queries-jsonl", ":1: the text is not a string; got None."),
        ("[" * 100_000, "queries-jsonl", ":1: not valid JSON"),
    ],
)
def test_what_is_wrong_is_said_at_its_line(tmp_path: Path, text: str, format: str | None, message: str) -> None:  # noqa: A002
    path = put(tmp_path / "q", text)
    with pytest.raises(TestSetError) as caught:
        read_queries(path, format)
    assert str(caught.value).startswith(f"{path}{message}")


def test_an_entity_is_never_resolved(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    assert read_queries(put(tmp_path / "t", '<topic number="1">&secret; x</topic>')).queries[0].text == "&secret; x"


def test_texts_are_no_test_set(tmp_path: Path) -> None:
    with pytest.raises(TestSetError, match="query texts are passed together with judgments"):
        read_testset(put(tmp_path / "t", CLASSIC))


@pytest.mark.parametrize(
    "query", [Query("1", "a <title> b"), Query("1", "a\tb"), Query("1", "a\nb"), Query("", "a"), Query("1", "")]
)
@pytest.mark.parametrize("write", [write_topics, write_queries_tsv], ids=["topics", "TSV"])
def test_what_would_be_read_as_something_else_is_not_written(tmp_path: Path, write: object, query: Query) -> None:
    if write is write_queries_tsv and "<" in query.text:
        write_queries_tsv(TestSet("t", (query,)), tmp_path / "q")
        assert read_queries(tmp_path / "q").queries == (query,)
        return
    with pytest.raises(TestSetError, match="not written: 1 query whose id, text or"):
        write(TestSet("t", (query,)), tmp_path / "q")  # type: ignore[operator]  # one of the two
    assert list(tmp_path.iterdir()) == []


def test_json_lines_hold_any_text(tmp_path: Path) -> None:
    queries = (Query("1", "a\tb\n<title>"), Query("é", "x\u2028y"))
    write_queries_jsonl(TestSet("t", queries), tmp_path / "q")
    assert read_queries(tmp_path / "q").queries == queries


def test_an_empty_topic_is_refused_with_its_line(tmp_path):
    path = tmp_path / "a.topics"
    path.write_text("<top>\n<num> 1\n<title> one\n</top>\n<top>\n</top>\n")
    with pytest.raises(TestSetError, match=r":5: the topic has no number"):
        read_queries(path, "topics")


@pytest.mark.parametrize("text", ["query_id,text\nq1,foo bar\nq2,z\n", "qid;query;owner\nq1;foo bar;me\nq2;z;you\n"])
def test_queries_in_a_csv_table(tmp_path, text):
    path = tmp_path / "topics.csv"
    path.write_text(text)
    found = read_queries(path)
    assert [(query.id, query.text) for query in found.queries] == [("q1", "foo bar"), ("q2", "z")]
    path.write_text("foo,bar\n1,2\n")
    with pytest.raises(TestSetError, match="not a query file: the columns of this table have other names"):
        read_queries(path)
