"""A book of judgements that Quepid exports: pairs of query and document, with the grade of each rater.

JSON is detected by its content. CSV it has a column per rater, under the rater's name, and has to be named.

What the ratings come to is not in the file: Quepid's rule, `consensus="quepid"`, says it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cranfield.base.errors import TestSetError
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import as_number, number_of, read_sheet
from cranfield.formats.io.records import Loose, indexed_objects, load_json, write_json
from cranfield.formats.io.tree import Loc
from cranfield.formats.io.validation import validate
from cranfield.formats.testsets.trec import RatingMore, by_line
from cranfield.formats.tools.by_text import TextBuilder, counted, judged, written_texts
from cranfield.model import Meta, Note, Query, TestSet
from cranfield.model.kinds import FilledText, Grade, Text, source_text, whole
from cranfield.model.note import info
from cranfield.model.query_ids import text_ids

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
