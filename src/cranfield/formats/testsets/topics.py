"""Texts of queries without judgments: TREC topics, tables of two columns, JSON lines. Each makes a test set without judgments.

Tags are found by this module's own patterns: no parser of XML, so that nothing in a file is resolved or fetched.

Source: the topics of TREC (trec.nist.gov/data/topics_eng), in their classic and their XML form; `queries.jsonl` of BEIR.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cranfield.base.errors import TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import QUERY_COLUMNS, read_sheet
from cranfield.formats.io.files import decode, read_bytes, write_text
from cranfield.formats.io.json_text import json_objects
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.model import Query, TestSet
from cranfield.model.note import info, not_carried

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
_TOP = re.compile(r"<top()>|</top>", re.IGNORECASE)
_CLASSIC = re.compile(rf"<(/?)({'|'.join(CLASSIC_TAGS)})>", re.IGNORECASE)
_TOPIC = re.compile(r"<topic\b([^<>]*)>|</topic\s*>", re.IGNORECASE)
_DECLARATION = re.compile(r"<!DOCTYPE|<!ENTITY", re.IGNORECASE)
_FIELD = re.compile(r"<([A-Za-z_][\w.-]*)\b[^<>]*>(.*?)</\1\s*>", re.DOTALL)
_NUMBER = re.compile(r"""\b(?:number|num|id|qid)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PLAIN = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_LABEL = {
    "num": re.compile(r"\s*Number\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*Topic\s*:", re.IGNORECASE),
    "desc": re.compile(r"\s*Description\s*:", re.IGNORECASE),
    "narr": re.compile(r"\s*Narrative\s*:", re.IGNORECASE),
}
_TEXT_FIELDS = ("title", "query", "question", "text")
"""Fields of an XML topic that are its text, the first that is there."""
_NEED_FIELDS = ("need", "information_need", "desc", "description", "narr", "narrative")
"""Fields that are the information need, one after the other."""
_ID_KEYS, _TEXT_KEYS = ("_id", "id", "query_id", "qid"), ("text", "query", "title")


def _take_need(fields: dict[str, str]) -> str:
    """Take the information need out of the fields of a query."""
    return " ".join(filter(None, (fields.pop(name, "") for name in _NEED_FIELDS)))


def _add(builder: TestSetBuilder, query_id: str, text: str, line: int, need: str = "", notes: str = "") -> None:
    if not query_id.strip():
        builder.problem("the query has no id", line, expected="an id")
    elif not text.strip():
        builder.problem(f"query {shorten(query_id)} has no text", line, expected="the text of the query")
    else:
        builder.new_query(Query(query_id, text, need=need, notes=notes), line)


def read_topics(path: Path | str) -> TestSet:
    """Read TREC topics, in their classic form (`<top> <num> Number: 301 <title> …`) or as XML (`<topic number="1">`).

    The title is the text of the query; without one, in XML, its `query` or `question`, or the text of the topic itself.
    Description and narrative are its information need. White space in a text is one blank.

    Raises:
        TestSetError: with every topic that has no number or no text, or is not closed, at its line.
    """
    return _read(Path(path), _take_topics, '`<top>` with `<num>` and `<title>`, or `<topic number="…">`')


def _read(path: Path, take: Callable[[str, TestSetBuilder], None], expected: str) -> TestSet:
    builder = TestSetBuilder(path)
    take(decode(read_bytes(path, TestSetError), path, TestSetError), builder)
    return builder.testset(expected=expected, noun="query")


def _take_topics(text: str, builder: TestSetBuilder) -> None:
    if _TOP.search(text):
        end = 0
        for start, stop, _ in _topics(text, _TOP, "top", builder):
            _refuse_text(text, end, start, builder)
            _classic_topic(text, start, stop, builder)
            end = stop
        _refuse_text(text, end, len(text), builder)
    else:
        text = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
        _read_xml(_PLAIN.sub(lambda match: html.escape(match.group(1)), text), builder)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refuse_text(text: str, start: int, end: int, builder: TestSetBuilder) -> None:
    """Report text between the end of a topic and the next tag that opens one."""
    opening = next((tag.start() for tag in _TOP.finditer(text, start, end) if tag.group(1) is not None), end)
    between = _TOP.sub(lambda tag: " " * len(tag.group()), text[start:opening])
    if between.strip():
        line = _line(text, start + len(between) - len(between.lstrip()))
        builder.problem("text outside of a topic", line, expected="<top>", got=shorten(between.strip()))


def _topics(text: str, tags: re.Pattern[str], name: str, builder: TestSetBuilder) -> Iterator[tuple[int, int, str]]:
    """Start and end of the content of every topic, and its attributes; tags without a partner are problems."""
    opened: tuple[int, str] | None = None
    for tag in tags.finditer(text):
        if not tag.group().startswith("</"):
            if opened is not None:
                builder.problem("this topic is not closed", _line(text, opened[0]), expected=f"</{name}>")
            opened = tag.end(), tag.group(1)
        elif opened is None:
            line = _line(text, tag.start())
            builder.problem("a topic ends here that did not begin", line, expected=f"<{name}>")
        else:
            yield opened[0], tag.start(), opened[1]
            opened = None
    if opened is not None:
        line, hint = _line(text, opened[0]), "check whether the file was cut short"
        builder.problem("this topic is not closed", line, expected=f"</{name}>", hint=hint)


def _classic_topic(text: str, start: int, end: int, builder: TestSetBuilder) -> None:
    fields: dict[str, str] = {}
    tags = list(_CLASSIC.finditer(text, start, end))
    for tag, following in zip(tags, [*(tag.start() for tag in tags[1:]), end], strict=False):  # a topic may hold no tag
        name = tag.group(2).lower()
        if not tag.group(1) and name not in fields:
            value = text[tag.end() : following]
            fields[name] = " ".join(_LABEL[name].sub("", value, count=1).split() if name in _LABEL else value.split())
    line = _line(text, start)
    for name, what in (("num", "number"), ("title", "title")):
        if not fields.get(name):
            example = "<num> Number: 301" if name == "num" else "<title> and the text of the query"
            builder.problem(f"the topic has no {what}", line, expected=example)
    if fields.get("num") and fields.get("title"):
        _add(builder, fields["num"], fields["title"], line, _take_need(fields))


def _read_xml(text: str, builder: TestSetBuilder) -> None:
    unread: dict[str, int] = {}
    for found in _DECLARATION.finditer(text):
        expected = "topics without declarations of types and entities"
        builder.problem("a declaration", _line(text, found.start()), expected=expected)
    for start, end, attributes in _topics(text, _TOPIC, "topic", builder):
        _xml_topic(text, (start, end, attributes), builder, unread)
    _note_unread(builder, unread)


def _xml_topic(text: str, topic: tuple[int, int, str], builder: TestSetBuilder, unread: dict[str, int]) -> None:
    start, end, attributes = topic
    body = text[start:end]
    fields: dict[str, str] = {}
    for tag in _FIELD.finditer(body):
        fields.setdefault(tag.group(1).lower(), _xml_text(tag.group(2)))
    number = _NUMBER.search(attributes)
    named = html.unescape(number.group(1) or number.group(2) or "") if number else ""
    query_id = " ".join((named or fields.pop("number", "") or fields.pop("num", "")).split())
    query_id = _LABEL["num"].sub("", query_id).strip()
    key = next((name for name in _TEXT_FIELDS if fields.get(name)), None)
    query_text = fields.pop(key) if key else _xml_text(_FIELD.sub(" ", body))
    line = _line(text, start)
    if not query_id:
        builder.problem("the topic has no number", line, expected='<topic number="1">')
    elif not query_text:
        builder.problem(f"topic {shorten(query_id)} has no text", line, expected="<title>, <query> or <question>")
    elif "<" in _FIELD.sub("", body):
        place = start + body.index("<")
        builder.problem("a tag that is not closed", _line(text, place), expected="fields like <title>…</title>")
    else:
        _add(builder, query_id, query_text, line, _take_need(fields))
        for name, value in fields.items():
            unread[name] = unread.get(name, 0) + bool(value)


def _xml_text(text: str) -> str:
    """Text between tags, with its characters by name or number as themselves."""
    return " ".join(html.unescape(text).split())


def _note_unread(builder: TestSetBuilder, counts: dict[str, int]) -> None:
    listed = [count_noun(n, name) for name, n in counts.items() if n]
    if listed:
        builder.notes += info(f"not read in addition to the titles: {', '.join(listed)}")


def read_queries_tsv(path: Path | str) -> TestSet:
    """Read queries from lines `id<TAB>text`; a first line that names the columns is skipped and noted.

    Raises:
        TestSetError: with every line that is no pair, and every id that stands twice.
    """
    return _read(Path(path), _take_tsv, "lines `id<TAB>text`")


def _take_tsv(text: str, builder: TestSetBuilder) -> None:
    take_tsv(text.split("\n"), builder)


def take_tsv(lines: Iterable[str], builder: TestSetBuilder) -> None:
    """Take the queries of lines `id<TAB>text`. Lines end at line feeds alone; blank ones are skipped."""
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        line = raw.removesuffix("\r")
        columns = line.split("\t")
        if len(columns) != 2:
            builder.problem(f"{len(columns)} columns", number, expected="2: id, a tab, text", got=shorten(line))
        elif number == 1 and all(
            word.strip().lower() in usual for word, usual in zip(columns, QUERY_COLUMNS.values(), strict=True)
        ):
            builder.notes += info(f"line 1 is a header row and was skipped: {shorten(line)}")
        else:
            _add(builder, columns[0].strip(), columns[1].strip(), number)
        if builder.is_full:
            break


def read_queries_csv(path: Path | str) -> TestSet:
    """Read queries from a table with a header row, `query_id` and `text` among its columns; the others are noted.

    Raises:
        TestSetError: with every row without an id or a text, and every id that stands twice.
    """
    sheet = read_sheet(Path(path))
    builder = TestSetBuilder(sheet.path, problems=sheet.problems)
    place = sheet.places(QUERY_COLUMNS)
    for role, names in QUERY_COLUMNS.items():
        if role not in place:
            sheet.missing_column(role, names)
    for line, cells in sheet.rows() if len(place) == len(QUERY_COLUMNS) else ():
        _add(builder, cells[place["query_id"]].strip(), cells[place["text"]].strip(), line)
    notes = not_carried(f"column {name!r}" for name in sheet.others({*place.values()}).values())
    return builder.testset(notes, expected="rows of a query", noun="query")


def read_queries_jsonl(path: Path | str) -> TestSet:
    """Read queries from lines of JSON: `{"_id": "1", "text": "the query"}`, or `id`, `query_id`; `query`, `title`.

    `need`, `information_need`, `description` and `narrative` are its information need, `notes` its notes. Other keys are
    counted in the notes of the set and not kept.

    Raises:
        TestSetError: with every line that is no such object, at its line and, for bad JSON, its column.
    """
    return _read(Path(path), _take_jsonl, 'lines `{"_id": "1", "text": "…"}`')


def _take_jsonl(text: str, builder: TestSetBuilder) -> None:
    take_jsonl(text.split("\n"), builder)


def take_jsonl(lines: Iterable[str], builder: TestSetBuilder) -> None:
    """Take the queries of lines of JSON."""
    others: dict[str, int] = {}
    expected = '`{"_id": "1", "text": "…"}`'
    for number, record in json_objects(lines, builder.source, builder.problems, expected=expected):
        _take_record(record, number, builder, others)
        if builder.is_full:
            break
    _note_unread(builder, others)


def _take_record(record: dict[str, Any], number: int, builder: TestSetBuilder, others: dict[str, int]) -> None:
    id_key = next((key for key in _ID_KEYS if key in record), None)
    text_key = next((key for key in _TEXT_KEYS if key in record), None)
    if id_key is None or text_key is None:
        missing = _ID_KEYS if id_key is None else _TEXT_KEYS
        builder.problem(f"no key {missing[0]!r}", number, expected=" or ".join(missing), got=shorten(", ".join(record)))
        return
    query_id, text = record[id_key], record[text_key]
    if isinstance(query_id, bool) or not isinstance(query_id, str | int):
        builder.problem("the id is neither text nor a whole number", number, got=shorten(query_id))
    elif not isinstance(text, str):
        builder.problem("the text is not a string", number, got=shorten(text))
    else:
        texts = {
            key: value for key, value in record.items() if key not in {id_key, text_key} and isinstance(value, str)
        }
        kept = texts.keys() & {*_NEED_FIELDS, "notes"}
        _add(builder, str(query_id), text, number, _take_need(texts), texts.get("notes", ""))
        for key in record.keys() - {id_key, text_key, *kept}:
            others[key] = others.get(key, 0) + bool(record[key])


def write_topics(testset: TestSet, path: Path | str) -> None:
    """Write texts as classic TREC topics: number, title, and the information need as the narrative.

    Raises:
        TestSetError: an id or a text is empty, or holds what such a file would read as something else.
    """
    narratives = {query.id: f"<narr> Narrative: {query.need}\n" if query.need else "" for query in testset.queries}
    parts = [
        f"<top>\n<num> Number: {query.id}\n<title> {query.text}\n{narratives[query.id]}</top>\n\n"
        for query in testset.queries
    ]
    _write(testset, Path(path), parts, _take_topics)


def write_queries_tsv(testset: TestSet, path: Path | str) -> None:
    """Write texts as lines `id<TAB>text`. Raises as `write_topics`."""
    _write(testset, Path(path), [f"{query.id}\t{query.text}\n" for query in testset.queries], _take_tsv)


def write_queries_jsonl(testset: TestSet, path: Path | str) -> None:
    """Write texts as lines of JSON, `{"_id": "1", "text": "…"}`. Raises as `write_topics`."""
    records = (
        {"_id": query.id, "text": query.text, **_filled({"need": query.need, "notes": query.notes})}
        for query in testset.queries
    )
    parts = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    _write(testset, Path(path), parts, _take_jsonl)


def _filled(texts: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if text}


def _write(testset: TestSet, path: Path, parts: Sequence[str], take: Callable[[str, TestSetBuilder], None]) -> None:
    """Write what is read back the same, or say which queries would not be."""
    holds_need = take is not _take_tsv
    wanted = {query.id: (query.text, query.need if holds_need else "") for query in testset.queries}
    builder = TestSetBuilder(path)
    take("".join(parts), builder)
    texts = {query.id: (query.text, query.need) for query in builder.queries.values()}
    if texts != wanted or len(wanted) != len(testset.queries):
        different = [query.id for query in testset.queries if texts.get(query.id) != wanted[query.id]]
        raise TestSetError(
            f"not written: {count_noun(len(different), 'queries')} whose id, text or information need cannot be stored in this format",
            path=str(path),
            expected="ids that are not empty, and texts without line breaks, tags or double blanks",
            got=shorten(", ".join(different[:5])),
            hint="the JSON lines format can store any text",
        )
    write_text(path, parts, errors="surrogatepass")
