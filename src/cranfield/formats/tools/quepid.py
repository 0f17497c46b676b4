"""Ratings of Quepid: the basic CSV, the detailed CSV and the learning-to-rank text of a case, and books of judgements with raters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import Sheet, as_number, number_of, read_sheet, short, write_sheet
from cranfield.formats.io.files import decode, read_bytes, write_text
from cranfield.formats.io.records import Loose, indexed_objects, load_json, write_json
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.testsets.trec import RatingMore, TestSetBuilder, by_line
from cranfield.formats.tools.by_text import NO_UNICODE, TextBuilder, counted, judged, written_cells, written_texts
from cranfield.model import Meta, Note, Query, TestSet
from cranfield.model.kinds import FilledText, Grade, Text, source_text, whole
from cranfield.model.note import info
from cranfield.model.query_ids import text_ids

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


ANONYMOUS = "anonymous"
"""The rater of a judgement without a user."""
_NOT_CARRIED = {
    "position": "positions",
    "document_fields": "fields of documents",
    "options": "options",
}
"""Keys of a pair that a test set has no place for, and what they are."""


class _Judgement(Loose):
    rating: Grade | None = None
    unrateable: bool | None = None
    judge_later: bool | None = None
    user_email: Text | None = None
    explanation: Text | None = None


class _Pair(Loose):
    query_text: FilledText
    doc_id: FilledText
    judgements: list[_Judgement] | None = None


class _Book(Loose):
    name: Text | None = None
    scale: list[Grade] | None = None
    support_implicit_judgements: bool | None = None
    query_doc_pairs: list[_Pair]


def read_quepid_book(path: Path | str) -> TestSet:
    """Read a book. A rating of null is a slot that is not filled: not rateable, or put off.

    Raises:
        TestSetError: with everything that is wrong, and both places of ratings of one rater that disagree.
    """
    path = Path(path)
    located = load_json(path)
    builder = TextBuilder(path, located.mark)
    validate(located, _Book, builder.problems)
    book = _Raters(builder)
    data = located.sourced
    for index, pair in indexed_objects(data.get("query_doc_pairs")):
        book.pair(pair, ("query_doc_pairs", index))
    scale = data.get("scale")
    grades = [as_number(grade) for grade in scale] if isinstance(scale, list) else []
    notes = [*book.notes()]
    if data.get("support_implicit_judgements"):
        notes += info("the book takes implicit judgements: Quepid does not round the combined ratings")
    return builder.testset(
        notes,
        name=source_text(data.get("name")) or "",
        consensus="quepid",
        meta=Meta(scale=tuple(sorted({grade for grade in grades if grade is not None}))),
    )


def read_quepid_book_csv(path: Path | str) -> TestSet:
    """Read a book as CSV: `query,docid`, and a column per rater. An empty cell says nothing.

    Raises:
        TestSetError: with every row that cannot be used, and both lines of ratings of one rater that disagree.
    """
    path = Path(path)
    sheet = read_sheet(path, repeats=True)
    builder = TextBuilder(path, by_line, sheet.problems)
    if [name.lower() for name in sheet.names[:2]] != ["query", "docid"] or len(sheet.names) == 2:
        sheet.refuse_header("not a header of a book", ["query", "docid and a column per rater"])
    book = _Raters(builder)
    raters = text_ids(sheet.names[2:])
    for line, (text, doc_id, *cells) in sheet.stripped_rows():
        if not text or not doc_id:
            sheet.fault(line, int(bool(text)), "not a row of a book", expected="a query, a document and ratings")
            continue
        builder.query(text, Query("", text))
        for place, (rater, cell) in enumerate(zip(raters, cells, strict=True), start=2):
            grade = number_of(cell)
            if grade is not None:
                book.take(text, doc_id, rater, grade, line)
            elif cell:
                message = f"the rating of {rater} is not a number"
                sheet.fault(line, place, message, expected="a number, or nothing", got=cell)
    return builder.testset(book.notes(), consensus="quepid")


@dataclass
class _Raters:
    """Ratings of a book, and counts of what it holds beside them."""

    builder: TextBuilder
    lost: Counter[str] = field(default_factory=Counter)
    empty: Counter[str] = field(default_factory=Counter)

    def pair(self, pair: Mapping[str, Any], loc: Loc) -> None:
        """Take one pair with its judgements; what is no pair is left to the schema."""
        text, doc_id = source_text(pair.get("query_text")), source_text(pair.get("doc_id"))
        if not isinstance(text, str) or not isinstance(doc_id, str):
            return
        need, notes = (source_text(pair.get(key)) for key in ("information_need", "notes"))
        texts = [word if isinstance(word, str) else "" for word in (need, notes)]
        self.builder.query(text, Query("", text, need=texts[0], notes=texts[1]))
        self.lost.update(noun for key, noun in _NOT_CARRIED.items() if pair.get(key) not in (None, "", {}, []))
        judgements = indexed_objects(pair.get("judgements"))
        self.empty["unrated pairs"] += not judgements
        for index, judgement in judgements:
            rater = source_text(judgement.get("user_email")) or ANONYMOUS
            grade = as_number(judgement.get("rating"))
            if grade is None:
                kind = "put off" if judgement.get("judge_later") else "not rateable"
                self.empty[f"empty ratings: {kind}"] += 1
            if isinstance(rater, str):
                reason = source_text(judgement.get("explanation"))
                more: RatingMore = {"reason": reason} if isinstance(reason, str) and reason else {}
                self.take(text, doc_id, rater, grade, (*loc, "judgements", index), more)

    def take(
        self, text: str, doc_id: str, rater: str, grade: float | None, at: Any, more: RatingMore | None = None
    ) -> None:
        """Add one rating. Raters without a name are numbered: each of their ratings counts."""
        name, n = rater, 1
        while rater == ANONYMOUS and (doc_id, name) in self.builder.ratings.values.get(text, {}):
            n += 1
            name = f"{ANONYMOUS} {n}"
        self.builder.rate(text, doc_id, name, grade, at, more)

    def notes(self) -> Iterator[Note]:
        """What was left out, and what is empty."""
        yield from counted(self.lost)
        yield from info(*(count_noun(n, what) for what, n in sorted(self.empty.items(), reverse=True) if n))


def write_quepid_book(testset: TestSet, path: Path | str) -> None:
    """Write a book; a document that has a grade and no rating gets one without a user.

    Raises:
        TestSetError: queries without a text, or with the text of another one; there is nothing to rate.
    """
    path = Path(path)
    written_texts(testset, path)
    pairs = [pair for query in testset.queries for pair in _pairs(testset, query)]
    if not pairs:
        raise TestSetError("not written: no document is rated", path=str(path), expected="ratings, or grades")
    rated = {j["rating"] for pair in pairs for j in pair["judgements"] if j["rating"] is not None}
    scale = [whole(grade) for grade in testset.meta.scale] or sorted(rated)
    book = {
        "name": testset.name,
        "show_rank": False,
        "support_implicit_judgements": False,
        "scale": scale,
        "query_doc_pairs": pairs,
    }
    write_json(path, book)


def _pairs(testset: TestSet, query: Query) -> Iterator[dict[str, Any]]:
    by_document: dict[str, list[dict[str, Any]]] = {}
    for rating in testset.ratings.get(query.id, ()):
        judgement: dict[str, Any] = {
            "rating": None if rating.grade is None else whole(rating.grade),
            "unrateable": rating.grade is None,
            "judge_later": False,
        }
        if not re.fullmatch(rf"{ANONYMOUS}( [0-9]+)?", rating.rater):
            judgement["user_email"] = rating.rater
        if rating.reason:
            judgement["explanation"] = rating.reason
        by_document.setdefault(rating.doc_id, []).append(judgement)
    for doc_id, grade in judged(testset, query, fractions=False).items():
        if doc_id not in by_document:
            by_document[doc_id] = [{"rating": grade, "unrateable": False, "judge_later": False}]
    texts = {"information_need": query.need, "notes": query.notes}
    about = {key: text for key, text in texts.items() if text}
    for doc_id, judgements in by_document.items():
        yield {"query_text": query.text, "doc_id": doc_id, **about, "judgements": judgements}
