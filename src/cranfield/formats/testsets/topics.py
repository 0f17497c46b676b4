"""Texts of queries without judgments: TREC topics, tables of two columns, JSON lines. Each makes a test set that nobody judged.

Tags are found by this module's own patterns: no parser of XML, so that nothing in a file is resolved or fetched.

Source: the topics of TREC (trec.nist.gov/data/topics_eng), in their classic and their XML form; `queries.jsonl` of BEIR.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.io.files import MAX_PROBLEMS, decode, read_bytes, shown, stem, write_text
from cranfield.model import Query, TestSet
from cranfield.model.note import info
from cranfield.words import n_of

CLASSIC_TAGS = (
    "num",
    "title",
    "desc",
    "narr",
    "dom",
    "smry",
    "con",
    "fac",
    "def",
    "head",
    "nat",
    "time",
    "hist",
    "aspects",
)
_TOP = re.compile(r"</?top>", re.IGNORECASE)
_CLASSIC = re.compile(rf"<(/?)({'|'.join(CLASSIC_TAGS)})>", re.IGNORECASE)
_TOPIC = re.compile(
    r"<topic\b([^<>]*)>|</topic\s*>|</?topics\b[^<>]*>|<\?xml[^<>]*\?>|<!DOCTYPE|<!ENTITY", re.IGNORECASE
)
_FIELD = re.compile(r"<([A-Za-z_][\w.-]*)\b[^<>]*>(.*?)</\1\s*>", re.DOTALL)
_NUMBER = re.compile(r"""\b(?:number|num|id|qid)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PLAIN = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_LABEL = {
    "num": re.compile(r"\s*Number\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*Topic\s*:", re.IGNORECASE),
}
_TEXT_FIELDS = ("title", "query", "question", "text")
"""Fields of an XML topic that are its text, the first that is there."""
_ID_KEYS, _TEXT_KEYS = ("_id", "id", "query_id", "qid"), ("text", "query", "title")
_HEADERS = ({"id", "_id", "qid", "query_id", "query-id", "topic", "topic_id"}, {"text", "query", "title", "query_text"})


@dataclass
class _Texts:
    """Queries as they are found, and what is wrong with them."""

    path: Path
    problems: ProblemList = field(default_factory=lambda: ProblemList(TestSetError))
    texts: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def bad(self, message: str, line: int, **fields: Any) -> None:
        """Note a problem."""
        self.problems.add(message, path=shown(self.path), line=line, **fields)

    def add(self, query_id: str, text: str, line: int) -> None:
        """Take a query."""
        if not query_id.strip():
            self.bad("the query has no id", line, expected="an id")
        elif not text.strip():
            self.bad(f"query {shorten(query_id)} has no text", line, expected="what is asked")
        elif query_id in self.texts:
            message = f"query id {shorten(query_id)} is used twice; it also stands on line {self.lines[query_id]}"
            self.bad(message, line)
        else:
            self.texts[query_id], self.lines[query_id] = text, line

    def testset(self, expected: str) -> TestSet:
        """All of them, as a test set."""
        self.problems.raise_if_any()
        if not self.texts:
            raise TestSetError("no query in this file", path=shown(self.path), expected=expected)
        queries = tuple(Query(query_id, text) for query_id, text in self.texts.items())
        return TestSet(stem(self.path), queries, notes=info(*self.notes))


def read_topics(path: Path | str) -> TestSet:
    """Read TREC topics, in their classic form (`<top> <num> Number: 301 <title> …`) or as XML (`<topic number="1">`).

    The title is the text of the query; without one, in XML, its `query` or `question`, or the text of the topic itself.
    Descriptions and narratives are counted in the notes and not kept. White space in a text is one blank.

    Raises:
        TestSetError: with every topic that has no number or no text, or is not closed, at its line.
    """
    return _read(Path(path), _take_topics, '`<top>` with `<num>` and `<title>`, or `<topic number="…">`')


def _read(path: Path, take: Callable[[str, _Texts], None], expected: str) -> TestSet:
    found = _Texts(path)
    take(decode(read_bytes(path, TestSetError), path, TestSetError), found)
    return found.testset(expected)


def _take_topics(text: str, found: _Texts) -> None:
    if _TOP.search(text):
        _read_classic(text, found)
    else:
        text = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
        _read_xml(_PLAIN.sub(lambda match: html.escape(match.group(1)), text), found)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _read_classic(text: str, found: _Texts) -> None:
    opened: int | None = None
    last = 0
    counts = {"desc": 0, "narr": 0}
    for tag in _TOP.finditer(text):
        between = text[last : tag.start()]
        if opened is None and between.strip():
            place = last + len(between) - len(between.lstrip())
            found.bad("text outside of a topic", _line(text, place), expected="<top>", got=shorten(between.strip()))
        if tag.group().startswith("</"):
            if opened is None:
                found.bad("a topic ends here that did not begin", _line(text, tag.start()), expected="<top>")
            else:
                _classic_topic(text, opened, tag.start(), found, counts)
            opened = None
        else:
            if opened is not None:
                found.bad("this topic is not closed", _line(text, opened), expected="</top>")
            opened = tag.end()
        last = tag.end()
    if opened is not None:
        hint = "is the file cut short?"
        found.bad("this topic is not closed", _line(text, opened), expected="</top>", hint=hint)
    elif text[last:].strip():
        place = last + len(text[last:]) - len(text[last:].lstrip())
        found.bad("text outside of a topic", _line(text, place), expected="<top>", got=shorten(text[last:].strip()))
    _note_unread(found, {"descriptions": counts["desc"], "narratives": counts["narr"]})


def _classic_topic(text: str, start: int, end: int, found: _Texts, counts: dict[str, int]) -> None:
    fields: dict[str, str] = {}
    tags = list(_CLASSIC.finditer(text, start, end))
    for tag, following in zip(tags, [*[tag.start() for tag in tags[1:]], end], strict=True):
        name = tag.group(2).lower()
        if not tag.group(1) and name not in fields:
            value = text[tag.end() : following]
            fields[name] = " ".join(_LABEL[name].sub("", value, count=1).split() if name in _LABEL else value.split())
    line = _line(text, start)
    for name, what in (("num", "number"), ("title", "title")):
        if not fields.get(name):
            example = "<num> Number: 301" if name == "num" else "<title> and what is asked"
            found.bad(f"the topic has no {what}", line, expected=example)
    for name in counts:
        counts[name] += bool(fields.get(name))
    if fields.get("num") and fields.get("title"):
        found.add(fields["num"], fields["title"], line)


def _read_xml(text: str, found: _Texts) -> None:
    opened: tuple[int, str] | None = None
    unread: dict[str, int] = {}
    for tag in _TOPIC.finditer(text):
        line, said = _line(text, tag.start()), tag.group().lower()
        if said in {"<!doctype", "<!entity"}:
            found.bad("a declaration", line, expected="topics without declarations of types and entities")
        elif said.startswith(("<topics", "</topics", "<?xml")):
            continue
        elif said.startswith("</"):
            if opened is None:
                found.bad("a topic ends here that did not begin", line, expected="<topic>")
            else:
                _xml_topic(text, opened, tag.start(), found, unread)
            opened = None
        else:
            if opened is not None:
                found.bad("this topic is not closed", _line(text, opened[0]), expected="</topic>")
            opened = (tag.end(), tag.group(1) or "")
    if opened is not None:
        hint = "is the file cut short?"
        found.bad("this topic is not closed", _line(text, opened[0]), expected="</topic>", hint=hint)
    _note_unread(found, unread)


def _xml_topic(text: str, opened: tuple[int, str], end: int, found: _Texts, unread: dict[str, int]) -> None:
    start, attributes = opened
    body = text[start:end]
    fields: dict[str, str] = {}
    for one in _FIELD.finditer(body):
        fields.setdefault(one.group(1).lower(), _xml_text(one.group(2)))
    number = _NUMBER.search(attributes)
    named = html.unescape(number.group(1) or number.group(2) or "") if number else ""
    query_id = " ".join((named or fields.pop("number", "") or fields.pop("num", "")).split())
    query_id = _LABEL["num"].sub("", query_id).strip()
    key = next((name for name in _TEXT_FIELDS if fields.get(name)), None)
    asked = fields.pop(key) if key else _xml_text(_FIELD.sub(" ", body))
    line = _line(text, start)
    if not query_id:
        found.bad("the topic has no number", line, expected='<topic number="1">')
    elif not asked:
        found.bad(f"topic {shorten(query_id)} has no text", line, expected="<title>, <query> or <question>")
    elif "<" in _FIELD.sub("", body):
        place = start + body.index("<")
        found.bad("a tag that is not closed", _line(text, place), expected="fields like <title>…</title>")
    else:
        found.add(query_id, asked, line)
        for name, value in fields.items():
            unread[name] = unread.get(name, 0) + bool(value)


def _xml_text(text: str) -> str:
    """Text between tags, with its characters by name or number as themselves."""
    return " ".join(html.unescape(text).split())


def _note_unread(found: _Texts, counts: dict[str, int]) -> None:
    listed = [n_of(n, name) for name, n in counts.items() if n]
    if listed:
        found.notes.append(f"not read beside the titles: {', '.join(listed)}")


def read_queries_tsv(path: Path | str) -> TestSet:
    """Read queries from lines `id<TAB>text`; a first line that names the columns is skipped and noted.

    Raises:
        TestSetError: with every line that is no pair, and every id that stands twice.
    """
    return _read(Path(path), _take_tsv, "lines `id<TAB>text`")


def _take_tsv(text: str, found: _Texts) -> None:
    for number, line in _lines(text):
        columns = line.split("\t")
        if len(columns) != 2:
            found.bad(f"{len(columns)} columns", number, expected="2: id, a tab, text", got=shorten(line))
        elif number == 1 and all(word.strip().lower() in usual for word, usual in zip(columns, _HEADERS, strict=True)):
            found.notes.append(f"line 1 is a header row and was skipped: {shorten(line)}")
        else:
            found.add(columns[0].strip(), columns[1].strip(), number)
        if len(found.problems.problems) >= MAX_PROBLEMS:
            break


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each line that is not blank. Lines end at line feeds alone."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def read_queries_jsonl(path: Path | str) -> TestSet:
    """Read queries from lines of JSON: `{"_id": "1", "text": "what is asked"}`, or `id`, `query_id`; `query`, `title`.

    Other keys are counted in the notes and not kept.

    Raises:
        TestSetError: with every line that is no such object, at its line and, for bad JSON, its column.
    """
    return _read(Path(path), _take_jsonl, 'lines `{"_id": "1", "text": "…"}`')


def _take_jsonl(text: str, found: _Texts) -> None:
    others: dict[str, int] = {}
    for number, line in _lines(text):
        _take_json(line, number, found, others)
        if len(found.problems.problems) >= MAX_PROBLEMS:
            break
    _note_unread(found, others)


def _take_json(line: str, number: int, found: _Texts, others: dict[str, int]) -> None:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        found.problems.problems.append(
            Problem(
                f"not valid JSON: {error.msg}",
                path=shown(found.path),
                line=number,
                column=error.colno,
                expected='`{"_id": "1", "text": "…"}`',
            )
        )
        return
    except (RecursionError, ValueError):
        found.bad("not valid JSON: too deep, or a number too long", number)
        return
    if not isinstance(record, dict):
        found.bad("no object", number, expected='`{"_id": "1", "text": "…"}`', got=shorten(line))
        return
    id_key = next((key for key in _ID_KEYS if key in record), None)
    text_key = next((key for key in _TEXT_KEYS if key in record), None)
    if id_key is None or text_key is None:
        missing = _ID_KEYS if id_key is None else _TEXT_KEYS
        found.bad(f"no key {missing[0]!r}", number, expected=" or ".join(missing), got=shorten(", ".join(record)))
        return
    query_id, text = record[id_key], record[text_key]
    if isinstance(query_id, bool) or not isinstance(query_id, str | int):
        found.bad("the id is neither text nor a whole number", number, got=shorten(query_id))
    elif not isinstance(text, str):
        found.bad("the text is no text", number, got=shorten(text))
    else:
        found.add(str(query_id), text, number)
        for key in record.keys() - {id_key, text_key}:
            others[key] = others.get(key, 0) + bool(record[key])


def write_topics(testset: TestSet, path: Path | str) -> None:
    """Write texts as classic TREC topics: number and title.

    Raises:
        TestSetError: an id or a text is empty, or holds what such a file would read as something else.
    """
    parts = [f"<top>\n<num> Number: {query.id}\n<title> {query.text}\n</top>\n\n" for query in testset.queries]
    _write(testset, Path(path), parts, _take_topics)


def write_queries_tsv(testset: TestSet, path: Path | str) -> None:
    """Write texts as lines `id<TAB>text`. Raises as `write_topics`."""
    _write(testset, Path(path), [f"{query.id}\t{query.text}\n" for query in testset.queries], _take_tsv)


def write_queries_jsonl(testset: TestSet, path: Path | str) -> None:
    """Write texts as lines of JSON, `{"_id": "1", "text": "…"}`. Raises as `write_topics`."""
    parts = [json.dumps({"_id": query.id, "text": query.text}, ensure_ascii=False) + "\n" for query in testset.queries]
    _write(testset, Path(path), parts, _take_jsonl)


def _write(testset: TestSet, path: Path, parts: Sequence[str], take: Callable[[str, _Texts], None]) -> None:
    """Write what is read back the same, or say which queries would not be."""
    wanted = {query.id: query.text for query in testset.queries}
    found = _Texts(path)
    take("".join(parts), found)
    if found.texts != wanted or len(wanted) != len(testset.queries):
        different = [query.id for query in testset.queries if found.texts.get(query.id) != query.text]
        raise TestSetError(
            f"not written: {n_of(len(different), 'queries')} whose id or text cannot stand in this format",
            path=str(path),
            expected="filled ids and texts without line ends, tags or doubled blanks",
            got=shorten(", ".join(different[:5])),
            hint="JSON lines hold any text",
        )
    write_text(path, parts, errors="surrogatepass")
