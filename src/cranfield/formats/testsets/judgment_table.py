"""Judgments in a table of text, a row each: TSV or CSV with a header row, or JSONL with an object a line.

Columns (or keys) are found by name: query, document and grade; a rater, the text of the query and `stratum.NAME` where
there are such. With a rater also `reason`, `time` (ISO 8601) and `final` (`yes`: by adjudication).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.delimited import (
    JUDGMENT_COLUMNS,
    LINE_COLUMNS,
    STRATUM,
    TABLE_HELP,
    Sheet,
    as_number,
    format_time,
    is_id,
    number_of,
    parse_time,
    read_sheet,
    write_sheet,
    write_unicode,
)
from cranfield.formats.io.files import BYTE_ORDER_MARK, decode, opened, read_bytes, shown, suffix_of
from cranfield.formats.io.json_text import json_objects, parse_json
from cranfield.formats.io.records import load_json_values
from cranfield.formats.io.tree import Unreadable, describe
from cranfield.formats.testsets.trec import HINT_RULES, RatingMore, TestSetBuilder, UnknownFields
from cranfield.model import LETTERS, QUERY_CLASSES, Negative, Note, Query, Span, TestSet
from cranfield.model.kinds import whole
from cranfield.model.note import info, not_carried
from cranfield.model.query import NEGATIVE

REQUIRED = ("query_id", "doc_id", "grade")
OF_QUERIES = ("query_class", "class", "negative")
"""Roles of columns that say more of a query."""
OF_RATINGS = ("reason", "time", "final")
"""Roles of columns that say more of a rating."""
FINAL = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
CLASS_WORDS = ", ".join((*QUERY_CLASSES, *LETTERS))
NO_CLASS = "other kinds of queries are strata: rename the column, as to `kind`, or to `stratum.class`"
QUERY_IS_ID = "`query` is read as the id of the query; its text is in `query_text`"
QUERY_IS_TEXT = "`query` is read as the text of the query"

GRADE_TYPES = frozenset({str, int, float})
"""Types of what a grade may be; true/false is none."""
JSON_LINES = {".jsonl", ".ndjson"}
_BREAK = re.compile(r"\r?\n")
_LINE_NUMBER = re.compile(r"[1-9][0-9]{0,8}")

Row = tuple[int, str, str, Any, str, str, Sequence[str], Sequence[str]]
"""Line, query id, document id, grade, rater, text of the query, strata, and more of the rating (see `OF_RATINGS`).

A grade is the text of a cell or what a JSON value is; empty or None where there is none. Strata stand in the order of
`Source.strata`. A plain tuple: a million of them are made.
"""


def roles_of(column: Callable[..., Any]) -> dict[str, Any]:
    """Role to where its value is; `column` finds the first of some names.

    A text is looked for only under a name that is not that of the id.
    """
    found: dict[str, Any] = {}
    for role, names in JUDGMENT_COLUMNS.items():
        free = [name for name in names if role != "text" or found.get("query_id") != column(name)]
        place = column(*free) if free else None
        if place is not None:
            found[role] = place
    lines = {role: place for role, names in LINE_COLUMNS.items() if (place := column(*names)) is not None}
    if lines.keys() >= {"start", "end"} or "span" in lines:
        found |= lines
    return found if "rater" in found else {role: place for role, place in found.items() if role not in OF_RATINGS}


class JudgedLines:
    """Lines of documents that a table judges, beside the ids: an id with its lines stands for the span while rows are read."""

    def __init__(self, source: Source, place: Mapping[str, Any]) -> None:
        self._source = source
        self.roles = [role for role in LINE_COLUMNS if role in place]
        self.spans: dict[str, Span] = {}
        """By the id with its lines."""

    def name(self, line: int, doc_id: str, cells: Mapping[str, Any]) -> str:
        """The id of a row with its lines; the id where the row has none. Wrong lines are noted."""
        written = [str(cells.get(role) or "").strip() for role in ("start", "end")]
        role = "start"
        if not any(written) and str(cells.get("span") or "").strip():
            role, written = "span", [part.strip() for part in str(cells["span"]).strip().partition("-")[::2]]
            written[1] = written[1] or written[0]
        if not any(written) or not doc_id:
            return doc_id
        first, last = (int(each) if _LINE_NUMBER.fullmatch(each) else 0 for each in written)
        got, name = "-".join(dict.fromkeys(written)), f"{doc_id}:{'-'.join(written)}"
        if 0 in {first, last}:
            role = "end" if first and role == "start" else role
            self._source.fault(line, role, "no line number", expected="a whole number of 1 or more", got=got)
        elif first > last:
            self._source.fault(line, role, "the range ends before it starts", expected="start-end", got=got)
        else:
            self.spans[name] = Span(doc_id, first, last)
        return name

    def move(self, builder: TestSetBuilder) -> None:
        """Make targets of the judgments of spans."""
        for key, judged in builder.grades.values.items():
            found = [replace(self.spans[name], grade=judged.pop(name)) for name in [*judged] if name in self.spans]
            if found:
                builder.targets[key] = found


YES = {"yes", "true", "1"}
NO = {"", "no", "false", "0"}


class QueryColumns:
    """Columns of judgments that are about the query: its class, whether nothing should be found, and strata.

    A column whose value differs within a query is about the judgments, and not kept.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._roles = {names[role]: role for role in OF_QUERIES if role in names}
        """Name of a column to its role."""
        self._values: dict[str, dict[str, str]] = {}
        self._varying: dict[str, dict[str, list[str]]] = {}
        """Column to the queries that have several values, and these."""
        self.negative: set[str] = set()

    def take(self, query_id: str, name: str, value: str) -> None:
        """Take what a row says of its query."""
        if value and (first := self._values.setdefault(name, {}).setdefault(query_id, value)) != value:
            self._varying.setdefault(name, {}).setdefault(query_id, [first]).append(value)
        role = self._roles.get(name, "")
        word = value.strip()
        if (role == "negative" and word.lower() in YES) or (role and LETTERS.get(word, word) == NEGATIVE):
            self.negative.add(query_id)

    def describe(self, builder: TestSetBuilder, problem: Callable[..., None]) -> Iterator[Note]:
        """Give the queries of a builder their classes and strata; the notes say what became of each column.

        Args:
            builder: its queries are replaced.
            problem: takes what is wrong: message, expected, got, and perhaps a hint.
        """
        more = UnknownFields()
        classes: dict[str, str] = {}
        for name, by_query in self._values.items():
            role = self._roles.get(name, "")
            if role == "class" and "query_class" in self._roles.values():
                role = ""
            names = {query_id: LETTERS.get(word.strip(), word.strip()) for query_id, word in by_query.items()}
            wrong = sorted(set(names.values()) - set(QUERY_CLASSES))
            if name in self._varying and role:
                query_id, several = next(iter(self._varying[name].items()))
                message = f"column {name!r} has several values for query {shorten(query_id)}"
                problem(
                    message,
                    "the same in all rows of a query",
                    join_first(several),
                    NO_CLASS if role != "negative" else None,
                )
            elif name in self._varying:
                yield from not_carried([f"column {name!r}: not the same in all rows of a query"])
            elif role == "negative":
                bad = sorted({word for word in by_query.values() if word.strip().lower() not in YES | NO})
                if bad:
                    problem(f"column {name!r} is neither yes nor no", "yes, no or nothing", bad[0])
            elif role and not wrong:
                classes |= names
                yield from info(f"column {name!r} is read as the query class")
            elif role:
                problem(f"unknown query class in column {name!r}", CLASS_WORDS, join_first(wrong), NO_CLASS)
            else:
                for query_id, value in by_query.items():
                    more.take(query_id, {name: value})
        self._complete(builder, more, classes, problem)
        yield from more.notes()

    def _complete(
        self,
        builder: TestSetBuilder,
        more: UnknownFields,
        classes: Mapping[str, str],
        problem: Callable[..., None],
    ) -> None:
        """Replace the queries by those with classes and strata; negative ones may have no judgment."""
        for query_id in self.negative:
            builder.queries.setdefault(query_id, Query(query_id))
        for key, query in builder.queries.items():
            strata = {**more.strata(query.id), **query.strata}
            negative = Negative() if query.id in self.negative and not builder.grades.values.get(key) else None
            if query.id in self.negative and negative is None:
                problem(f"negative query {shorten(query.id)} has a judgment", "none: nothing should be found", query.id)
            word = classes.get(query.id, query.query_class)
            builder.queries[key] = replace(query, strata=strata, query_class=word, negative=negative)


class SheetSource:
    """Rows of a TSV or CSV file."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet
        self.problems = self.sheet.problems
        self.place = roles_of(self.sheet.column)
        """Role to the place of its column."""
        self._strata = self.sheet.strata()
        self.strata = list(self._strata.values())
        taken = {place for role, place in self.place.items() if role not in OF_QUERIES}
        self._others = list(self.sheet.others({*taken, *self._strata}).items())
        names = {role: self.sheet.names[place] for role, place in self.place.items()}
        self.of_queries = QueryColumns(names)
        self.lines = JudgedLines(self, self.place)
        self.has_texts_for_ids = self.place.get("query_id") == self.sheet.column("query") and "text" not in self.place
        self.has_rater = "rater" in self.place
        for role in REQUIRED:
            if role not in self.place:
                self.sheet.missing_column(role, JUDGMENT_COLUMNS[role])

    def rows(self) -> Iterator[Row]:
        """The rows; none where a column is missing."""
        if any(role not in self.place for role in REQUIRED):
            return
        query, document, grade = (self.place[role] for role in REQUIRED)
        rater, text = self.place.get("rater"), self.place.get("text")
        strata = list(self._strata)
        more = [self.place.get(role) for role in OF_RATINGS] if self.place.keys() & OF_RATINGS else []
        for line, cells in self.sheet.rows():
            for place, name in self._others:
                self.of_queries.take(cells[query], name, cells[place])
            doc_id = cells[document]
            if self.lines.roles:
                doc_id = self.lines.name(line, doc_id, {role: cells[self.place[role]] for role in self.lines.roles})
            yield (
                line,
                cells[query],
                doc_id,
                cells[grade],
                "" if rater is None else cells[rater],
                "" if text is None else cells[text],
                [cells[place] for place in strata] if strata else (),
                ["" if place is None else cells[place] for place in more] if more else (),
            )

    def fault(self, line: int, role: str, message: str, *, expected: str, got: Any = None) -> None:
        """Note what is wrong with one cell."""
        place = self.place.get(role)
        if place is None:
            place = next((place for place, name in self._strata.items() if STRATUM + name == role), None)
        self.sheet.fault(line, place, message, expected=expected, got=got)

    def mark(self, line: int) -> tuple[int, int | None]:
        """Line and column of the grade."""
        return self.sheet.mark((line, self.place.get("grade")))

    def number(self, value: Any) -> float | None:
        """A grade as its cell has it."""
        return number_of(value)

    def notes(self) -> Iterator[Note]:
        """How the columns were read."""
        if self.place.get("query_id") == self.sheet.column("query"):
            yield from info(QUERY_IS_TEXT if self.has_texts_for_ids else QUERY_IS_ID)


class _JsonSource:
    """Rows of a JSONL file: an object a line; the keys of the first one say what the roles are called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = ProblemList(TestSetError)
        self._key: dict[str, Any] = {}
        text = decode(read_bytes(path, TestSetError), path, TestSetError)
        self._lines = _BREAK.split(text)
        if text.lstrip().startswith("["):  # a record a line, wherever the list has them
            self._lines = [json.dumps(record, ensure_ascii=False) for record in load_json_values(path, TestSetError)]
        first = next((record for _, record in self._records()), {})
        self.problems.problems.clear()
        lower = {str(key).lower(): key for key in reversed(first)}
        self._key = roles_of(lambda *names: next((lower[name] for name in names if name in lower), None))
        self.strata: list[str] = []
        """Grows as lines come: a line may bring one that those before had not."""
        self.has_rater = "rater" in self._key
        self.of_queries = QueryColumns(self._key)
        self.lines = JudgedLines(self, self._key)
        self.has_texts_for_ids = str(self._key.get("query_id")).lower() == "query" and "text" not in self._key
        for role in REQUIRED:
            if role not in self._key and (role != "grade" or not self.has_rater):
                got = "keys " + ", ".join(map(str, first))
                self.fault(1, role, f"no key {role}", expected=" or ".join(JUDGMENT_COLUMNS[role]), got=got)

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        return json_objects(self._lines, shown(self.path), self.problems, unique_keys=True)

    def rows(self) -> Iterator[Row]:
        """The rows; none where a key is missing from the first."""
        query, document, grade = (self._key.get(role) for role in REQUIRED)
        grade = "" if grade is None else grade  # no key is empty: nothing is found under it
        rater, text = self._key.get("rater", ""), self._key.get("text", "")
        more = [(role, self._key.get(role, "")) for role in OF_RATINGS] if self._key.keys() & OF_RATINGS else []
        known = {key for role, key in self._key.items() if role not in OF_QUERIES}
        if query is None or document is None:
            return
        for line, record in self._records():
            strata: tuple[str, ...] | list[str] = ()
            if len(record) > len(known) or not known.issuperset(record):
                strata = self._more(line, record, known, str(record.get(query) or ""))
            query_id, doc_id = record.get(query), record.get(document)
            doc_id = doc_id if type(doc_id) is str else self._text(line, "doc_id", doc_id)
            if self.lines.roles:
                doc_id = self.lines.name(line, doc_id, {role: record.get(self._key[role]) for role in self.lines.roles})
            yield (
                line,
                query_id if type(query_id) is str else self._text(line, "query_id", query_id),
                doc_id,
                record.get(grade),
                self._text(line, "rater", record.get(rater)) if rater else "",
                self._text(line, "text", record.get(text)) if text else "",
                strata,
                [self._text(line, role, record.get(key)) if key else "" for role, key in more],
            )

    def _text(self, line: int, role: str, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if is_id(value):
            return str(value)
        self.fault(line, role, f"{role} is neither text nor a whole number", expected="text", got=value)
        return "?"

    def _more(self, line: int, record: dict[str, Any], known: set[Any], query_id: str) -> list[str]:
        """Values of the strata, in their order; what else there is goes to the columns of queries."""
        found = {}
        for key, value in record.items():
            if key in known or value is None:
                continue
            if key.startswith(STRATUM):
                name = key[len(STRATUM) :]
                found[name] = value if isinstance(value, str) else _plain(value)
                if found[name] is None:
                    self.fault(line, key, f"{key} is a list or keys", expected="text", got=value)
                if name not in self.strata:
                    self.strata.append(name)
            else:
                self.of_queries.take(query_id, key, value if isinstance(value, str) else json.dumps(value))
        return [found.get(name) or "" for name in self.strata]

    def fault(self, line: int, role: str, message: str, *, expected: str, got: Any = None) -> None:
        """Note what is wrong with one value."""
        got = None if got is None else describe(got)
        column = self._column(line, self._key.get(role, role))
        self.problems.add(message, path=shown(self.path), line=line, column=column, expected=expected, got=got)

    def _column(self, line: int, key: str) -> int | None:
        """Where the value of a key begins; None where it is not there."""
        try:
            value = parse_json(self._lines[line - 1]).child(key)
        except (Unreadable, IndexError):  # a list without records
            return None
        return None if value is None else value.column

    def mark(self, line: int) -> tuple[int, int | None]:
        """Line and column of the grade."""
        return line, self._column(line, self._key.get("grade", ""))

    def number(self, value: Any) -> float | None:
        """A grade as JSON has it."""
        return as_number(value)

    def notes(self) -> Iterator[Note]:
        """How the keys were read."""
        if str(self._key.get("query_id")).lower() == "query":
            yield from info(QUERY_IS_TEXT if self.has_texts_for_ids else QUERY_IS_ID)


def _plain(value: Any) -> str | None:
    """A number or true/false as JSON writes it."""
    return json.dumps(value) if isinstance(value, bool | int | float) else None


Source = SheetSource | _JsonSource
"""Where rows come from."""


def read_judgment_table(path: Path | str) -> TestSet:
    """Read judgments, a row each.

    With a column `rater` the rows are ratings: an empty grade is a slot that is not filled, and a row without a rater is
    a final grade. Without one, an empty grade is a mistake, and so is a document judged twice, differently.

    Raises:
        TestSetError: with every bad value, each at its line, and both lines of what contradicts.
    """
    path = Path(path)
    source: Source = _JsonSource(path) if _is_json(path) else SheetSource(read_sheet(path))
    builder = TestSetBuilder(path, source.mark, source.problems)
    texts: dict[str, dict[str, str]] = {}
    builder.judge_rows(judgment_rows(source, builder, texts))
    for query_id, values in texts.items():
        strata = {name: value for name, value in values.items() if name}
        builder.queries[query_id] = Query(query_id, values.get("", ""), strata)
    source.lines.move(builder)
    of_queries = list(source.of_queries.describe(builder, partial(_table_problem, source)))
    if source.has_texts_for_ids:
        ids = builder.query_ids()
        source.has_texts_for_ids = 2 * sum(" " in query_id.strip() for query_id in ids) > len(ids)
    if source.has_texts_for_ids:
        builder.queries = {key: replace(query, text=query.id) for key, query in builder.queries.items()}
    n_final = sum(map(len, builder.grades.values.values())) if source.has_rater else 0
    notes = [*source.notes(), *of_queries, *builder.repeated()]
    notes += info(f"{count_noun(n_final, 'rows')} without a rater: taken as final") if n_final else ()
    builder.makes_ids = source.has_texts_for_ids
    return builder.testset(notes, expected="a row per judgment")


def _table_problem(source: Source, message: str, expected: str, got: str, hint: str | None = None) -> None:
    path = source.path if isinstance(source, _JsonSource) else source.sheet.path
    source.problems.add(message, path=shown(path), expected=expected, got=shorten(got), hint=hint)


def _is_json(path: Path) -> bool:
    with opened(path, TestSetError) as stream:
        return stream.read(1 << 16).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in {b"{", b"["}


def judgment_rows(
    source: Source, builder: TestSetBuilder, texts: dict[str, dict[str, str]]
) -> Iterator[tuple[str, str, float, int]]:
    """The judgments of a source; ratings and faults go to the builder, texts and strata of the queries to `texts`."""
    numbers: dict[Any, float] = {}
    """Grades by how they are written: a file holds few different ones."""
    for line, query_id, doc_id, written, rater, text, strata, more in source.rows():
        if not query_id.strip() or not doc_id.strip():
            _without_id(source, builder, texts, (line, query_id, text, strata))
            continue
        grade = numbers.get(written) if type(written) in GRADE_TYPES else None
        if grade is None and not (rater and (written is None or written == "")):
            grade = _number(source, line, written)
            if grade is not None:
                numbers[written] = grade
        if text or strata:
            _describe(source, texts.setdefault(query_id, {}), (line, query_id, text, strata))
        if rater:
            if query_id not in builder.queries:
                builder.queries[query_id] = Query(query_id)
            builder.rate(query_id, doc_id, rater, grade, line, _rating_more(source, line, more) if more else None)
        elif grade is not None:
            yield query_id, doc_id, grade, line


def _without_id(
    source: Source, builder: TestSetBuilder, texts: dict[str, dict[str, str]], row: tuple[int, str, str, Sequence[str]]
) -> None:
    """Take a row without a document of a negative query; any other is a problem."""
    line, query_id, text, strata = row
    if not query_id.strip():
        source.fault(line, "query_id", "no query_id", expected="an id in each row")
    elif query_id not in source.of_queries.negative:
        source.fault(line, "doc_id", "no doc_id", expected=f"an id in each row; {'; '.join(TABLE_HELP[1:])}")
    else:
        builder.queries.setdefault(query_id, Query(query_id))
        if text or strata:
            _describe(source, texts.setdefault(query_id, {}), row)


def _rating_more(source: Source, line: int, cells: Sequence[str]) -> RatingMore:
    """Reason, time and whether it is final, as far as the row says them."""
    reason, time, final = cells
    more: RatingMore = {"reason": reason} if reason else {}
    if time:
        try:
            more["at"] = parse_time(time)
        except ValueError:
            source.fault(line, "time", "the time is not valid", expected="2026-11-23T09:30:00Z", got=time)
    if final and final.lower() not in FINAL:
        source.fault(line, "final", "final is neither yes nor no", expected="yes, no or nothing", got=final)
    elif final and FINAL[final.lower()]:
        more["final"] = True
    return more


def _number(source: Source, line: int, written: Any) -> float | None:
    if written is None or written == "":
        source.fault(line, "grade", "no grade", expected="a number")
        return None
    grade = source.number(written) if type(written) in GRADE_TYPES else None
    if grade is None:
        source.fault(line, "grade", "the grade is not a finite number", expected="a number", got=written)
    return grade


def _describe(source: Source, known: dict[str, str], row: tuple[int, str, str, Sequence[str]]) -> None:
    """Keep the text and strata of a query; a problem where an earlier row has others."""
    line, query_id, text, strata = row
    for name, value in (("", text), *zip(source.strata, strata, strict=True)):
        if value and known.setdefault(name, value) != value:
            what = f"stratum {name!r}" if name else "text"
            message = f"query {query_id!r} has a different {what} than in an earlier row"
            role = STRATUM + name if name else "text"
            source.fault(line, role, message, expected=shorten(known[name]), got=value)


def write_judgment_table(testset: TestSet, path: Path | str) -> None:
    """Write graded ids and ratings, a row each: JSONL where the file's name ends in `.jsonl`, TSV in `.tsv`, else CSV.

    Raises:
        TestSetError: a query judged by a rule, or what no cell can hold.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        if testset.targets.get(query.id):
            message = f"not written: query {query.id!r} is judged by a rule"
            problems.add(message, path=str(path), expected="graded document ids", hint=HINT_RULES)
        if not all(query.strata.values()):
            message = f"not written: query {query.id!r} has an empty stratum"
            problems.add(message, path=str(path), expected="a value")
    problems.raise_if_any()
    records = list(_records(testset))
    used = {name for record in records for name, value in record.items() if value is not None}
    strata = dict.fromkeys(key for query in testset.queries for key in query.strata)
    names: list[str] = [
        name
        for name in ("query_id", "query_text", "query_class", "negative", "doc_id", "grade", "rater", *OF_RATINGS)
        if name in {*REQUIRED, *used}
    ]
    names += [STRATUM + key for key in strata]
    if suffix_of(path) in JSON_LINES:
        kept = ({name: record[name] for name in names if record.get(name) is not None} for record in records)
        write_unicode(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in kept))
        return
    cells = ([_cell(record.get(name)) for name in names] for record in records)
    write_sheet(path, names, cells)


def _records(testset: TestSet) -> Iterator[dict[str, Any]]:
    for query in testset.queries:
        values: dict[str, Any] = {"query_id": query.id, "query_text": query.text or None}
        values["query_class"] = query.query_class or None
        strata = {STRATUM + key: value for key, value in query.strata.items()}
        if query.negative is not None:
            yield {**values, "negative": "yes", **strata}
        for rating in testset.ratings.get(query.id, ()):
            grade = None if rating.grade is None else whole(rating.grade)
            more = {
                "reason": rating.reason or None,
                "time": None if rating.at is None else format_time(rating.at),
                "final": "yes" if rating.final else None,
            }
            yield {**values, "doc_id": rating.doc_id, "grade": grade, "rater": rating.rater, **more, **strata}
        for doc_id, grade in testset.grades.get(query.id, {}).items():
            yield {**values, "doc_id": doc_id, "grade": whole(grade), "rater": None, **strata}


def _cell(value: Any) -> str:
    return "" if value is None else str(value)
