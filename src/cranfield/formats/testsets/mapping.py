"""Any file of queries as a test set, by a mapping: where its queries are, and which of their fields says what.

Fields are JMESPath expressions. Where a file gives no mapping, one is proposed from its data (`proposal`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.files import shown
from cranfield.formats.io.json_text import json_values
from cranfield.formats.io.tree import describe, plain_values
from cranfield.formats.testsets.field_mapping import (
    EXPECTED_VALUE,
    LINES,
    FieldMapping,
    FileValues,
    file_values,
    is_decimal,
    is_pair,
)
from cranfield.formats.testsets.names import is_graded
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.model import Criteria, MatchingRules, Negative, Note, NoteKind, Query, Scalar, TestSet
from cranfield.model.kinds import plain_scalar, source_text
from cranfield.model.note import info
from cranfield.model.query_ids import content_id
from cranfield.model.target import condition

MAX_LISTED = 5
"""Places of values that are not carried over that a note names."""
_WITH_LINES = re.compile(rf"(?P<path>.*[^:])(?P<lines>{LINES})")
_NAME = re.compile(r"[A-Za-z_]\w*")


def read_mapped(path: Path | str, mapping: FieldMapping | None = None) -> TestSet:
    """Read any file of queries.

    Args:
        path: JSON, JSON Lines, YAML, TOML, CSV, TSV, Excel or Parquet.
        mapping: which of its fields says what; None: one is proposed from the data, and stated in a note.

    Raises:
        TestSetError: with everything that cannot be mapped, each at its place.
    """
    source = file_values(Path(path))
    proposed = mapping is None
    if mapping is None:
        from cranfield.formats.testsets.proposal import propose

        mapping = propose(source)
    return _Reader(source, mapping).read(proposed=proposed)


class _Unmapped(Exception):  # noqa: N818 - caught by the reader, which adds the place
    def __init__(self, message: str, expected: str, got: object) -> None:
        super().__init__(message)
        self.expected = expected
        self.got = got


class _Reader:
    """Reads the items of a file by a mapping, and gathers what is wrong and what is left over."""

    def __init__(self, source: FileValues, mapping: FieldMapping) -> None:
        import jmespath

        self.source = source
        self.mapping = mapping
        self._compiled: dict[str, Any] = {}
        self._compile = jmespath.compile
        self._places = source.places()
        self._used: set[str] = set()
        """Keys that a field of the mapping names."""
        self._used_inside: set[str] = set()
        """The same of keys of expected objects."""
        self._over: set[str] = set()
        """Keys of expected objects of the item in hand that no field names."""
        self.builder = TestSetBuilder(source.path, source.place)
        self.builder.makes_ids = mapping.id is None
        self.targets: dict[int, tuple[Criteria, ...]] = {}
        self.forbidden: dict[int, tuple[Criteria, ...]] = {}
        self.left: dict[str, list[int | None]] = {}
        """Key that no field of the mapping names, to the lines of the items that have it."""
        self.unjudged: list[str] = []
        self._first: dict[str, int] = {}
        """Id of a query, or what an id is made of, to the number of the first item that has it."""
        self.merged: dict[int, int] = {}
        """Number of a query to how many items more say what is expected of it."""
        self._qrels: Mapping[str, Any] = {}

    def read(self, *, proposed: bool) -> TestSet:
        items = self._items()
        self._used = {name for path in self._item_paths() for name in self._names(path)}
        inside = (self.mapping.expected, self.mapping.forbidden, self.mapping.grade, self.mapping.top)
        paths = (*inside, *self.mapping.where.values())
        self._used_inside = {name for path in paths if path for name in self._names(path)}
        qrels = self._pick(self.mapping.qrels, self.source.values)
        self._qrels = {str(key): value for key, value in qrels.items()} if isinstance(qrels, dict) else {}
        ids = [self._id(item, key) for key, item in items]
        self.builder.makes_ids = self.builder.makes_ids and not any(ids)
        number = 0
        for (key, item), query_id in zip(items, ids, strict=True):
            for text, name in self._texts(item, key, query_id):
                self._item(item, text, number, name)
                number += 1
        self.builder.problems.raise_if_any()
        read = self.builder.testset(self._notes(proposed=proposed), **self._head())
        # The builder keeps queries by number until their ids are known.
        by_number: dict[Any, str] = dict(zip(self.builder.queries, read.query_ids, strict=True))
        return replace(
            read,
            targets={by_number[number]: targets for number, targets in self.targets.items()},
            forbidden={by_number[number]: targets for number, targets in self.forbidden.items()},
            matching=MatchingRules(urls=self.mapping.urls),
        )

    def _item_paths(self) -> Iterator[str]:
        for row in fields(self.mapping):
            value = getattr(self.mapping, row.name)
            if row.name in {"strata", "params", "floors"}:
                yield from value.values()
            elif isinstance(value, str) and row.name not in {"items", "split", "grade", "qrels"}:
                yield value

    def _names(self, path: str) -> Iterator[str]:
        """Names of the keys in a JMESPath."""
        left = [self._compile(path).parsed]
        while left:
            node = left.pop()
            if node["type"] == "field":
                yield node["value"]
            left += node["children"]

    def _pick(self, path: str | None, value: Any) -> Any:
        from jmespath.exceptions import JMESPathError

        if path is None:
            return None
        if _NAME.fullmatch(path):  # the usual case, and far faster
            return value.get(path) if isinstance(value, dict) else None
        if path not in self._compiled:
            self._compiled[path] = self._compile(path)
        try:
            return self._compiled[path].search(value)
        except (JMESPathError, TypeError, ValueError, RecursionError):
            return None

    def _items(self) -> list[tuple[str | None, dict[str, Any]]]:
        """Every item with its key, where the items are a mapping."""
        found = self._pick(self.mapping.items, self.source.values)
        mapping = self.mapping
        is_records = isinstance(found, dict) and all(isinstance(value, dict) for value in found.values())
        if is_records and found and EXPECTED_VALUE not in (mapping.expected, mapping.text):
            return [(str(key), value) for key, value in found.items()]
        is_by_key = EXPECTED_VALUE in (mapping.expected, mapping.text) or (mapping.text, mapping.id) == (None, None)
        if isinstance(found, dict) and found and is_by_key and mapping.id is None:
            return [(str(key), {EXPECTED_VALUE: value}) for key, value in found.items()]
        if isinstance(found, dict) and found:
            found = [found]
        if not isinstance(found, list) or not found:
            keys = (
                join_first(self.source.values) if isinstance(self.source.values, dict) else describe(self.source.values)
            )
            raise TestSetError(
                f"items: {self.mapping.items} is {describe(found)}",
                path=shown(self.source.path),
                expected="the list of queries",
                got=f"at the top of the file: {keys}",
            )
        for number, item in enumerate(found, start=1):
            if not isinstance(item, dict):
                self._problem(None, f"item {number} is {describe(item)}", "keys with values")
        self.builder.problems.raise_if_any()
        return [(None, item) for item in found]

    def _id(self, item: dict[str, Any], key: str | None) -> str:
        value = source_text(self._pick(self.mapping.id, item))
        return value.strip() if isinstance(value, str) else key or ""

    def _problem(self, item: Any, message: str, expected: str, got: object = None, hint: str | None = None) -> None:
        line, column = self.source.place(self._places.get(id(item), ()))
        self.builder.problems.add(
            message,
            path=shown(self.source.path),
            line=line,
            column=column,
            expected=expected,
            got=None if got is None else f"keys {join_first(got)}" if isinstance(got, dict) else describe(got),
            hint=hint,
        )

    def _texts(self, item: dict[str, Any], key: str | None, query_id: str) -> Iterator[tuple[str, str]]:
        """Text and id of each query of an item: one, or one for each text in a list."""
        found = self._pick(self.mapping.text, item)
        texts = [source_text(each) for each in found] if isinstance(found, list) else [source_text(found)]
        if self.mapping.text is None:
            texts = [key or ""]
        for number, text in enumerate(texts, start=1):
            name = f"{query_id}-{number}" if query_id and len(texts) > 1 else query_id
            yield text if isinstance(text, str) else "", name

    def _item(self, item: dict[str, Any], text: str, number: int, query_id: str) -> None:
        """Take one query; a problem where it is none, or its id is that of another query."""
        mapping = self.mapping
        if not self._is_named(item, number, query_id, text):
            return
        name = query_id or text
        where = f"query {shorten(name)}"
        self._over = set()
        grades, targets, is_negative = self._truth(item, where, query_id)
        if grades is None:
            self.unjudged.append(name)
        query = Query(
            query_id,
            text,
            strata=self._strata(item),
            params=self._params(item, where),
            negative=Negative() if is_negative else None,
            need=self._text(mapping.need, item),
            notes=self._text(mapping.notes, item),
            exhaustive=self._is_true(mapping.exhaustive, item),
            floors=self._floors(item, where),
            weight=self._number(item, mapping.weight, where, 1.0),
        )
        number = self._number_of(query, number, item)
        at = self._places.get(id(item), ())
        for doc_id, grade in (grades or {}).items():
            self.builder.judge(number, doc_id, grade, at)
        if targets:
            self.targets[number] = tuple(dict.fromkeys((*self.targets.get(number, ()), *targets)))
        if forbidden := self._values(item, mapping.forbidden, where, "forbidden"):
            rows = (replace(row, grade=1.0) for row in forbidden)
            self.forbidden[number] = tuple(dict.fromkeys((*self.forbidden.get(number, ()), *rows)))
        self._leave(item)

    def _leave(self, item: dict[str, Any]) -> None:
        """Gather the keys of an item, and of its expected objects, that no field of the mapping names."""
        line, _ = self.source.place(self._places.get(id(item), ()))
        for name, value in item.items():
            if name not in self._used and value not in (None, "", [], {}):
                self.left.setdefault(str(name), []).append(line)
            elif isinstance(value, dict) and name not in self._used_inside:
                for inner in (key for key in value if key not in self._used and value[key] not in (None, "", [], {})):
                    self.left.setdefault(f"{name}.{inner}", []).append(line)
        for name in sorted(self._over):
            self.left.setdefault(name, []).append(line)

    def _number_of(self, query: Query, number: int, item: dict[str, Any]) -> int:
        """Number of the query of an item: that of an earlier item, where the two are alike but for what is expected."""
        key = query.id or content_id(query.text, query.params)
        first = self._first.setdefault(key, number)
        there = self.builder.queries.get(first)
        if first == number or there is None:
            self.builder.queries[number] = query
            return number
        notes = "\n".join(dict.fromkeys(text for text in (there.notes, query.notes) if text))
        if replace(there, notes=notes) == replace(query, notes=notes) and query.negative is None:
            self.builder.queries[first] = replace(there, notes=notes)
            self.merged[first] = self.merged.get(first, 0) + 1
            return first
        if query.id:
            expected = f"each id once, or the same query with more that is expected; it is that of item {first + 1} too"
            self._problem(item, f"query id {shorten(query.id)} is used twice", expected)
        self.builder.queries[number] = query
        return number

    def _is_named(self, item: dict[str, Any], number: int, query_id: str, text: str) -> bool:
        """Whether an item has a text or an id of its own."""
        if not (query_id or text).strip():
            wanted = " or ".join(path for path in (self.mapping.text, self.mapping.id) if path)
            self._problem(item, f"item {number + 1} has no query", wanted or "text or id in the mapping", dict(item))
            return False
        if not query_id and not self.builder.makes_ids:
            expected = f"an id in each query, as others have ({self.mapping.id})"
            self._problem(item, f"query {shorten(text)} has no id", expected)
            return False
        return True

    def _is_true(self, path: str | None, item: dict[str, Any]) -> bool:
        return str(self._pick(path, item)).lower() in {"true", "yes", "1"}

    def _truth(
        self, item: dict[str, Any], where: str, query_id: str
    ) -> tuple[dict[str, float] | None, list[Criteria], bool]:
        """Graded ids, or conditions, of one query, and whether nothing should be found; None where nothing is known of it."""
        grades, targets, n_expected = self._expected(item, where, query_id)
        for row in self._values(item, self.mapping.not_relevant, where, "not_relevant"):
            if row.where.keys() == {"id"} and not targets:
                grades.setdefault(row.where["id"], 0.0)
            else:
                targets.append(replace(row, grade=0.0))
        if targets:  # ids too are conditions where others are
            targets = [*(Criteria({"id": doc_id}, grade) for doc_id, grade in grades.items()), *targets]
            grades = {}
        is_empty = not grades and not targets
        is_negative = is_empty and (n_expected == 0 or self._is_true(self.mapping.negative, item))
        return (None if is_empty and not is_negative else grades), targets, is_negative

    def _expected(
        self, item: dict[str, Any], where: str, query_id: str
    ) -> tuple[dict[str, float], list[Criteria], int | None]:
        """Graded ids, or conditions, and how many values there were; None where there is no judgment."""
        value = self._qrels.get(query_id) if self.mapping.qrels else self._pick(self.mapping.expected, item)
        singles = [] if value is None else list(self._singles(value))
        if value is None or value == "" or (not singles and value not in ([], {})):
            return {}, [], None
        rows = self._rows(item, singles, where, "expected")
        if all(row.where.keys() == {"id"} for row in rows):
            grades: dict[str, float] = {}
            for row in rows:
                doc_id = row.where["id"]
                if grades.setdefault(doc_id, row.grade) != row.grade:
                    self._problem(
                        item, f"{where}: {shorten(doc_id)} is expected with two grades", "one grade", row.grade
                    )
            return grades, [], len(rows)
        return {}, rows, len(rows)

    def _values(self, item: dict[str, Any], path: str | None, where: str, name: str) -> list[Criteria]:
        """Values of an item as conditions with grades."""
        value = self._pick(path, item)
        return [] if value is None else self._rows(item, self._singles(value), where, name)

    def _rows(
        self, item: dict[str, Any], singles: Iterable[tuple[Any, float | None]], where: str, name: str
    ) -> list[Criteria]:
        rows: list[Criteria] = []
        for place, (single, grade) in enumerate(singles):
            try:
                rows.append(self._criteria(single, grade))
            except _Unmapped as error:
                self._problem(
                    single if isinstance(single, dict | list) else item,
                    f"{where}: {name}[{place}] {error}",
                    error.expected,
                    error.got,
                )
        return rows

    def _singles(self, value: Any) -> Iterator[tuple[Any, float | None]]:
        """Single expected values, each with its grade where its place says it. Empty text and nothing are no values."""
        if isinstance(value, str):
            value = self._cell(value)
        if isinstance(value, dict) and is_graded(value) and not self._has_condition(value):
            yield from ((str(doc_id), float(grade)) for doc_id, grade in value.items())
            return
        if not isinstance(value, list):
            yield value, None
            return
        is_pairs = all(map(is_pair, value))
        is_tiers = not is_pairs and any(isinstance(part, list) for part in value)
        for place, part in enumerate(value):
            if is_pairs:
                yield part[0], float(part[1])
                continue
            grade = float(len(value) - place) if is_tiers else None
            for single in part if isinstance(part, list) else [part]:
                parts = self._cell(single) if isinstance(single, str) and self.mapping.split is not None else [single]
                yield from ((each, grade) for each in parts if each is not None and each != "")

    def _cell(self, text: str) -> list[Any] | dict[str, Any]:
        """The values in one text: cut at `split`, or JSON in a cell of a table."""
        if self.mapping.split is not None:
            return [part.strip() for part in text.split(self.mapping.split) if part.strip()]
        given = json_values(text) if self.source.is_table and text[:1] in {"[", "{"} else None
        values = [text] if given is None else plain_values(given)
        return values if isinstance(values, list | dict) else [values]

    def _has_condition(self, value: Any) -> bool:
        return any(self._pick(path, value) is not None for path in self.mapping.where.values() if path != "@")

    def _criteria(self, value: Any, tier: float | None) -> Criteria:
        where: dict[str, str] = {}
        conditions = self.mapping.where
        if (
            not isinstance(value, dict | list) and "@" not in conditions.values()
        ):  # an id alone, where others are objects
            conditions = {"id" if "id" in conditions else next(iter(conditions)): "@"}
        for name, path in conditions.items():
            found = source_text(value if path == "@" else self._pick(path, value) if isinstance(value, dict) else None)
            if name == "lines" and isinstance(found, list):
                found = "-".join(str(line) for line in found if line is not None)
            if isinstance(found, str) and found.strip():
                where[name] = found.strip() if condition(name)[1] != "contains" else found
                is_place = condition(name)[0] == "path" and condition(name)[1] in {"is", "ends"}
                if is_place and (place := _WITH_LINES.fullmatch(where[name])):
                    where |= {name: place["path"], "lines": place["lines"].lstrip(":#").replace("L", "")}
            elif found not in (None, "") and path != "@":
                raise _Unmapped(f"has {path}, which is no text", "text or a number", found)
        if isinstance(value, dict):
            over = (str(key) for key, inner in value.items() if inner not in (None, "", [], {}))
            self._over |= {f"{key} of what is expected" for key in over if key not in self._used_inside}
        if not where:
            expected = " or ".join(dict.fromkeys(self.mapping.where.values()))
            what = "the value itself" if expected == "@" else f"`{expected}`"
            raise _Unmapped("says nothing that `where` of the mapping names", what, value)
        grade = tier
        if self.mapping.grade is not None and isinstance(value, dict):
            grade = self._grade(self._pick(self.mapping.grade, value))
        return Criteria(where, 1.0 if grade is None else grade)

    def _grade(self, value: Any) -> float:
        if value is None:
            return 1.0
        if isinstance(value, bool):
            return float(value)
        word = source_text(value)
        if isinstance(word, str) and word in self.mapping.grades:
            return self.mapping.grades[word]
        if isinstance(word, str) and is_decimal(word):
            return float(word) + 0.0
        known = ", ".join(self.mapping.grades) or "no word: `grades` of the mapping gives words their grades"
        raise _Unmapped("has an unknown grade", f"a number, or one of {known}", value)

    def _text(self, path: str | None, item: dict[str, Any]) -> str:
        value = source_text(self._pick(path, item))
        return value if isinstance(value, str) else "" if value is None else json.dumps(plain_values(value))

    def _strata(self, item: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, path in self.mapping.strata.items():
            value = self._pick(path, item)
            parts = value if isinstance(value, list) else [value]
            texts = [text for part in parts if isinstance(text := source_text(part), str) and text]
            if texts:
                found[name] = ", ".join(texts)
        return found

    def _params(self, item: dict[str, Any], where: str) -> dict[str, Scalar]:
        found: dict[str, Scalar] = {}
        for name, path in self.mapping.params.items():
            value = self._pick(path, item)
            if isinstance(value, dict | list):
                self._problem(
                    item, f"{where}: parameter {name} is no single value", "text, a number, true or false", value
                )
            elif value is not None and value != "":
                found[name] = plain_scalar(value)
        return found

    def _floors(self, item: dict[str, Any], where: str) -> dict[str, float]:
        found = {measure: self._number(item, path, where, None) for measure, path in self.mapping.floors.items()}
        top = self._number(item, self.mapping.top, where, None)
        if top is not None:
            found[f"Success@{max(int(top), 1)}"] = 1.0
        return {measure: least for measure, least in found.items() if least is not None}

    def _number(self, item: dict[str, Any], path: str | None, where: str, default: Any) -> Any:
        value = self._pick(path, item)
        if value is None or value == "":
            return default
        try:
            return float(value)
        except (TypeError, ValueError):
            self._problem(item, f"{where}: {path} is no number", "a number", value)
            return default

    def _head(self) -> dict[str, Any]:
        """Name, version and description of the set, where the file has them beside its items."""
        top = self.source.values if isinstance(self.source.values, dict) and self.mapping.items != "@" else {}
        return {
            name: text
            for name in ("name", "version", "description")
            if isinstance(text := source_text(top.get(name)), str) and text.strip()
        }

    def _around(self) -> Iterator[Note]:
        """What the file says beside the queries, at the top and on the way to them."""
        steps = [
            step for step in re.split(r"(\[\]|\*)?\.|\[\]|\[\*\]", self.mapping.items) if step and step not in "*[]@"
        ]
        above: list[Any] = [self.source.values] if steps else []
        known = {"name", "version", "description", (self.mapping.qrels or "").strip('"')}
        for depth, step in enumerate(step.strip('"') for step in steps):
            found: dict[str, list[Any]] = {}
            for name, value in (
                (name, value) for each in above if isinstance(each, dict) for name, value in each.items()
            ):
                if name != step and not (name in known and depth == 0) and value not in (None, "", [], {}):
                    found.setdefault(str(name), []).append(value)
            for name, values in found.items():
                if depth == 0 and isinstance(text := source_text(values[0]), str):
                    yield from info(f"{name}: {text}")
                else:
                    what = describe(values[0]) if depth == 0 else f"beside {step}, {count_noun(len(values), 'values')}"
                    yield Note(NoteKind.NOT_CARRIED, f"not carried over: {name}, {what}")
            below = [each[step] for each in above if isinstance(each, dict) and step in each]
            above = [row for each in below for row in (each if isinstance(each, list) else [each])]

    def _notes(self, *, proposed: bool) -> list[Note]:
        """The mapping, what the file says beside its items, and what is not carried over."""
        notes = list(
            info(f"mapping proposed from the data: {self.mapping}" if proposed else f"mapping: {self.mapping}")
        )
        notes += self._around()
        if self.merged:
            names = [self.builder.queries[number].id or self.builder.queries[number].text for number in self.merged]
            notes += info(
                f"several items of one query, whose expectations were put together: {count_noun(len(names), 'queries')}, "
                f"{join_first(names)}"
            )
        negative = [query.id or query.text for query in self.builder.queries.values() if query.negative is not None]
        if negative:
            notes += info(f"nothing should be found for {count_noun(len(negative), 'queries')}: {join_first(negative)}")
        fractions = [g for grades in self.builder.grades.values.values() for g in grades.values() if 0 < g < 1]
        fractions += [target.grade for targets in self.targets.values() for target in targets if 0 < target.grade < 1]
        if fractions:
            notes += info(
                f"{count_noun(len(fractions), 'grades')} between 0 and 1 count as gains of nDCG, and not as relevant in P, R, RR and AP"
            )
        if self.unjudged:
            notes += info(f"{count_noun(len(self.unjudged), 'queries')} without judgments: {join_first(self.unjudged)}")
        words = self.mapping.grades
        if words:
            notes += info("grades: " + ", ".join(f"{word} = {grade:g}" for word, grade in words.items()))
        for name, lines in self.left.items():
            known = [str(line) for line in dict.fromkeys(lines) if line is not None]
            place = f" ({'line' if len(known) == 1 else 'lines'} {join_first(known, MAX_LISTED)})" if known else ""
            notes.append(
                Note(NoteKind.NOT_CARRIED, f"not carried over: {name} of {count_noun(len(lines), 'queries')}{place}")
            )
        return notes
