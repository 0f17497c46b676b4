"""Ratings of a Quepid case: the basic CSV, the detailed CSV, and the learning-to-rank text.

A book of judgements, which has raters, is in `quepid_book`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.delimited import Sheet, number_of, read_sheet, short, write_sheet
from cranfield.formats.io.files import decode, read_bytes, write_text
from cranfield.formats.testsets.trec import TestSetBuilder, by_line
from cranfield.formats.tools.by_text import NO_UNICODE, TextBuilder, counted, judged, written_cells
from cranfield.model import Query, TestSet

BASIC = ("query", "docid", "rating")
BASIC_TOO = ("query", "doc_id", "rating")
"""The export of the browser's own making."""
DETAILED = ("team name", "case name", "case id", "query text", "doc id", "doc position", "title", "rating")
"""Columns in lower case; fields of the documents may follow."""
LTR_LINE = re.compile(
    r"(?P<rating>\S+)\s+qid:(?P<query_id>\S+)(?P<features>(?:\s+\d+:\S+)*)"
    r"\s*#\s*(?:docid\s*=\s*)?(?P<doc_id>\S+)(?:\s+(?P<text>.*))?"
)
_BARE = re.compile(r'(?:^|(?<=[,\n]))(?:"(?:[^"]|"")*"(?=[,\r\n]|\Z)|(?P<bare>[^,\r\n]*""[^,\r\n]*))')
"""A cell between quotes; or one that holds doubled quotes and no quotes around it."""
_FORMULA = ("-", "=", "+", "@")
"""What a spreadsheet takes for a formula: Quepid puts a blank before a text that starts so."""


def read_quepid_csv(path: Path | str) -> TestSet:
    """Read `query,docid,rating`, or the detailed export of a case. An empty rating is none: the document is unjudged.

    Raises:
        TestSetError: with every row that cannot be used, and both lines of judgments that disagree.
    """
    path = Path(path)
    sheet = read_sheet(path, preprocess=_fixed_quotes, repeats=True)
    builder = TextBuilder(path, by_line, sheet.problems)
    names = tuple(name.lower() for name in sheet.names)
    if names in {BASIC, BASIC_TOO}:
        columns, extra = (0, 1, 2), 0
    elif names[: len(DETAILED)] == DETAILED:
        columns, extra = (3, 4, 7), len(names) - len(DETAILED)
    else:
        sheet.refuse_header("not a header of Quepid", BASIC)
    n_unrated = sum(_take(sheet, line, cells, columns, builder) for line, cells in sheet.stripped_rows())
    return builder.testset(
        counted({"documents without a rating": n_unrated, "columns with fields of documents": extra})
    )


def _fixed_quotes(text: str) -> str:
    """What the browser exports, as CSV: it doubles quotes, and leaves away those around where no comma asks for them."""
    if not text.lower().startswith(("team name,", "query,doc_id,")):
        return text
    return _BARE.sub(lambda found: found[0] if found["bare"] is None else f'"{found["bare"]}"', text)


def _take(sheet: Sheet, line: int, cells: list[str], columns: tuple[int, int, int], builder: TextBuilder) -> bool:
    """Take one row; True where its document is not rated."""
    text, doc_id, rating = (cells[column] for column in columns)
    if not text:
        sheet.fault(line, columns[0], "the query is empty", expected="its text")
        return False
    builder.query(text, Query("", text))
    if not rating:
        return bool(doc_id)
    grade = number_of(rating)
    if grade is None:
        sheet.fault(line, columns[2], "the rating is not a number", expected="a number, or nothing", got=rating)
    elif not doc_id:
        sheet.fault(line, columns[1], "a rating without a document", expected="a document id", got="nothing")
    else:
        builder.judge(text, doc_id, grade, line)
    return False


def write_quepid_csv(testset: TestSet, path: Path | str) -> None:
    """Write `query,docid,rating`, as Quepid imports it; a query without judgments has a row of its own.

    Raises:
        TestSetError: queries without a text, or with the text of another one; ids that blanks begin or end.
    """
    path = Path(path)
    written_cells(testset, path)
    write_sheet(path, BASIC, _rows(testset), may_have_tabs=False)


def _rows(testset: TestSet) -> Iterator[tuple[str, ...]]:
    for query in testset.queries:
        text = f" {query.text}" if query.text.startswith(_FORMULA) else query.text
        grades = judged(testset, query)
        if not grades:
            yield text, "", ""
        for doc_id, grade in grades.items():
            yield text, doc_id, short(grade)


def read_quepid_ltr(path: Path | str) -> TestSet:
    """Read lines `rating qid:ID # document text`: here queries have ids.

    Lines of RankLib and LETOR have features (`1:0.5`) before the `#`, which are left out and counted; what follows their
    document is about it, and no text of the query.

    Raises:
        TestSetError: with every line that is none, and both lines of judgments that disagree.
    """
    path = Path(path)
    builder = TestSetBuilder(path)
    texts: dict[str, int] = {}
    n_features = 0
    lines = decode(read_bytes(path, TestSetError), path, TestSetError).split("\n")
    for line, content in ((n, text.strip()) for n, text in enumerate(lines, 1) if text.strip()):
        parts = LTR_LINE.fullmatch(content)
        grade = number_of(parts["rating"]) if parts else None
        if parts is None or grade is None:
            expected = "`rating qid:ID [features] # document`"
            builder.problem(
                "not a rating" if parts is None else "the rating is not a number",
                line,
                expected=expected,
                got=shorten(content),
            )
            continue
        n_features += len(parts["features"].split())
        query_id, text = parts["query_id"], "" if parts["features"] else parts["text"] or ""
        builder.queries.setdefault(query_id, Query(query_id, text))
        first = texts.setdefault(query_id, line)
        if builder.queries[query_id].text != text:
            there = f"{shorten(builder.queries[query_id].text)}, as on line {first}"
            builder.problem(f"query {shorten(query_id)} has two texts", line, expected=there, got=shorten(text))
        builder.judge(query_id, parts["doc_id"], grade, line)
    return builder.testset((*builder.repeated(), *counted({"features": n_features})))


def write_quepid_ltr(testset: TestSet, path: Path | str) -> None:
    """Write lines `rating qid:ID # document text`.

    Raises:
        TestSetError: with the ids that are no single word, and the texts that are no single line.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        grades = judged(testset, query)
        for what, name in (("query id", query.id), *(("document id", doc_id) for doc_id in grades)):
            if name.split() != [name] or NO_UNICODE.search(name):
                problems.add(f"not written: {what} {shorten(name)} is not a single word", path=str(path))
        if "\n" in query.text or NO_UNICODE.search(query.text):
            problems.add(f"not written: the text of query {shorten(query.id)} is not a single line", path=str(path))
    problems.raise_if_any()
    write_text(
        path,
        (
            f"{short(grade)} qid:{query.id} # {doc_id} {query.text}".rstrip() + "\n"
            for query in testset.queries
            for doc_id, grade in judged(testset, query).items()
        ),
    )
