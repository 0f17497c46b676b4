"""A changed test set written back into the golden file that it was read from, by the same mapping.

What changed is made in the text of the file: other keys, comments and their order stay. The result is read back, and is used only
where it is the changed set.
"""

from __future__ import annotations

import copy
import csv
import io
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cranfield.base.errors import TestSetError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.files import decode, read_bytes, shown, suffix_of, write_text
from cranfield.formats.io.tree import plain_values
from cranfield.formats.splice.files import tree_of
from cranfield.formats.splice.parts import UnspliceableError
from cranfield.formats.splice.trees import splice_tree
from cranfield.formats.testsets.field_mapping import EXPECTED_VALUE, FieldMapping, file_values
from cranfield.formats.testsets.mapping import read_mapped
from cranfield.model import Criteria, Query, TestSet
from cranfield.model.kinds import whole

_PLAIN_PATH = re.compile(r'(?:[A-Za-z_]\w*|"[^"\\]+")(?:\.(?:[A-Za-z_]\w*|"[^"\\]+"))*')
_STEP = re.compile(r'[A-Za-z_]\w*|"[^"\\]+"')


def write_back(changed: TestSet, base: Path, target: Path, mapping: FieldMapping | None = None) -> int:
    """Write a golden file with the queries and judgments of a test set.

    Args:
        changed: the test set; what is not in the mapping (ratings, labels, metadata) has no place.
        base: the golden file as it is.
        target: the file to write; `base`, or another one.
        mapping: of the golden file; None: proposed from its data.

    Returns:
        Number of queries that changed, were added or were removed.

    Raises:
        TestSetError: the mapping has no plain path for what changed, or the file read back would be another set; nothing is written.
    """
    source = file_values(base)
    if mapping is None:
        from cranfield.formats.testsets.proposal import propose

        mapping = propose(source)
    before = read_mapped(base, mapping)
    if suffix_of(base) == ".toml" or not isinstance(source.values, list | dict):
        raise TestSetError(
            "a TOML file is not written back", path=shown(base), expected="JSON, JSON Lines, YAML or CSV"
        )
    back = _Back(mapping, before, changed, shown(target))
    values = plain_values(copy.deepcopy(source.values))
    items = back.items_of(values)
    n = back.change(items)
    text = decode(read_bytes(base, TestSetError), base, TestSetError)
    if source.is_table:
        written = _table_text(text, values)
    else:
        try:
            root, is_yaml = tree_of(text, is_list=isinstance(source.values, list))
            written = splice_tree(text, root, plain_values(source.values), values, is_yaml=is_yaml)
        except UnspliceableError:
            raise TestSetError(
                "not written: the change has no place in the text of this file", path=shown(base)
            ) from None
    _require_same(changed, written, target, mapping)
    write_text(target, [written])
    return n


def _table_text(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
    from cranfield.formats.io.delimited import sheet_of

    sheet = sheet_of(text, Path())
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=sheet.separator, lineterminator="\n")
    writer.writerow(sheet.names)
    writer.writerows([row.get(name, "") for name in sheet.names] for row in rows)
    return "".join(f"{line}\n" for line in sheet.comments) + out.getvalue()


def _require_same(changed: TestSet, text: str, target: Path, mapping: FieldMapping) -> None:
    """Refuse a text that is read as another set."""
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder, target.name)
        draft.write_text(text, encoding="utf-8")
        again = read_mapped(draft, mapping)
    wrong = [
        query.id or query.text
        for query in changed.queries
        if query.id not in again.by_id or _truth(changed, query.id) != _truth(again, query.id)
    ]
    if wrong or len(again.queries) != len(changed.queries):
        raise TestSetError(
            f"not written: {count_noun(len(wrong), 'queries')} would be read otherwise: {join_first(wrong)}",
            path=shown(target),
            expected="judgments that the mapping of the file can say",
            hint="`cranfield testset convert IN OUT.yaml` keeps everything",
        )


def _truth(testset: TestSet, query_id: str) -> tuple[object, ...]:
    query = testset.by_id[query_id]
    return (
        query.text,
        dict(testset.grades.get(query_id, {})),
        frozenset(testset.targets.get(query_id, ())),
        frozenset(testset.forbidden.get(query_id, ())),
        query.negative is not None,
        query.exhaustive,
    )


class _Back:
    """Puts what changed into the items of a file."""

    def __init__(self, mapping: FieldMapping, before: TestSet, changed: TestSet, path: str) -> None:
        self.mapping = mapping
        self.before = before
        self.changed = changed
        self.path = path

    def items_of(self, values: Any) -> Any:
        """The list of items, or the mapping of ids to them, inside the values."""
        found = values
        for step in [] if self.mapping.items == "@" else self._steps(self.mapping.items, "items"):
            found = found[step]
        return found

    def change(self, items: Any) -> int:
        """Make the changes, and count the queries that they are about."""
        kept = {query.id for query in self.changed.queries}
        known = list(self.before.query_ids)
        keys = list(items) if isinstance(items, dict) else list(range(len(items)))
        if len(keys) != len(known):
            raise TestSetError(
                "not written: an item of this file is not one query",
                path=self.path,
                expected="one item for each query",
                got=f"{count_noun(len(keys), 'items')}, {count_noun(len(known), 'queries')}",
                hint="`cranfield testset convert IN OUT.yaml` keeps everything",
            )
        places = dict(zip(known, keys, strict=True))
        n = 0
        for query_id in self.changed.query_ids:
            if query_id not in places:
                self._add(items, query_id)
                n += 1
            elif _truth(self.before, query_id) != _truth(self.changed, query_id):
                self._change(items, places[query_id], query_id)
                n += 1
        gone = [places[query_id] for query_id in known if query_id not in kept]
        for key in reversed(gone):
            del items[key]
        return n + len(gone)

    def _add(self, items: Any, query_id: str) -> None:
        query = self.changed.by_id[query_id]
        item: dict[str, Any] = {}
        if self.mapping.id is not None:
            self._put(item, self.mapping.id, query_id, "id")
        if self.mapping.text is not None:
            self._put(item, self.mapping.text, query.text, "text")
        for name, path in {**self.mapping.strata, **self.mapping.params}.items():
            value = query.strata.get(name, query.params.get(name))
            if value is not None:
                self._put(item, path, value, name)
        self._judge(item, query)
        if isinstance(items, dict):
            items[query.text if self.mapping.id is None and self.mapping.text is None else query_id] = (
                item.get(EXPECTED_VALUE, []) if self.mapping.expected == EXPECTED_VALUE else item
            )
        else:
            items.append(item)

    def _change(self, items: Any, key: Any, query_id: str) -> None:
        query = self.changed.by_id[query_id]
        if self.mapping.expected == EXPECTED_VALUE:
            item = {EXPECTED_VALUE: items[key]}
            self._judge(item, query)
            items[key] = item[EXPECTED_VALUE]
            return
        item = items[key]
        if self.mapping.text is not None and query.text != self.before.by_id[query_id].text:
            self._put(item, self.mapping.text, query.text, "text")
        self._judge(item, query)

    def _judge(self, item: dict[str, Any], query: Query) -> None:
        """Put what is expected and what is forbidden."""
        grades = self.changed.grades.get(query.id, {})
        rows = [Criteria({"id": doc_id}, grade) for doc_id, grade in grades.items()]
        rows += [target for target in self.changed.targets.get(query.id, ()) if isinstance(target, Criteria)]
        if self.mapping.not_relevant is not None:
            irrelevant = [row for row in rows if row.grade == 0]
            rows = [row for row in rows if row.grade != 0]
            self._put(item, self.mapping.not_relevant, [self._value(row) for row in irrelevant], "not_relevant")
        path = self.mapping.expected
        if path is not None and (rows or query.negative is not None):
            self._put(item, path, self._expected(self._at(item, path), rows), "expected")
        if query.id in self.changed.forbidden:
            found = [self._value(row) for row in self.changed.forbidden[query.id]]
            self._put(item, self.mapping.forbidden, found, "forbidden")
        if query.exhaustive:
            self._put(item, self.mapping.exhaustive, True, "exhaustive")

    def _expected(self, there: Any, rows: Sequence[Criteria]) -> Any:
        """Expected values in the form that the item has them."""
        if self.mapping.split is not None and not isinstance(there, list | dict):
            return self.mapping.split.join(str(self._value(row)) for row in rows)
        if isinstance(there, list) and any(isinstance(part, list) for part in there):
            levels = sorted({row.grade for row in rows}, reverse=True)
            if levels == [float(len(levels) - place) for place in range(len(levels))]:
                return [[self._value(row) for row in rows if row.grade == level] for level in levels]
        if self.mapping.grade is not None:
            return self._objects(there, rows)
        if {row.grade for row in rows} <= {1.0} and not isinstance(there, dict):
            single = isinstance(there, str | int | float) and len(rows) == 1
            return self._value(rows[0]) if single else self._objects(there, rows)
        if all(row.where.keys() == {"id"} for row in rows):
            return {row.where["id"]: whole(row.grade) for row in rows}
        raise TestSetError(
            "not written: the mapping has no place for grades",
            path=self.path,
            expected="`grade` in the mapping",
            got=shorten(", ".join(f"{row.label}: {row.grade:g}" for row in rows[:3])),
        )

    def _objects(self, there: Any, rows: Sequence[Criteria]) -> list[Any]:
        """A value for each row; one that is there already keeps its other keys."""
        known: dict[Criteria, Any] = {}
        for value in there if isinstance(there, list) else []:
            found = {
                name: text
                for name, path in self.mapping.where.items()
                if (text := str(value if path == "@" else self._at(value, path) or ""))
                and (path != "@" or not isinstance(value, dict))
            }
            known[Criteria(found)] = value
        made = []
        for row in rows:
            value = known.get(Criteria(row.where))
            value = self._value(row) if value is None else copy.deepcopy(value)
            if self.mapping.grade is not None and isinstance(value, dict):
                words = {grade: word for word, grade in reversed(list(self.mapping.grades.items()))}
                self._put(value, self.mapping.grade, words.get(row.grade, whole(row.grade)), "grade")
            made.append(value)
        return made

    def _value(self, row: Criteria) -> Any:
        """One expected value: the text alone, or an object."""
        if row.where.keys() == {"id"} and self.mapping.where.get("id", "@") == "@":
            return row.where["id"]
        if len(row.where) == 1 and self.mapping.where.get(next(iter(row.where))) == "@":
            return next(iter(row.where.values()))
        made: dict[str, Any] = {}
        for name, text in row.where.items():
            self._put(made, self.mapping.where.get(name), text, f"where: {name}")
        return made

    def _steps(self, path: str | None, name: str) -> list[str]:
        if path is None or not _PLAIN_PATH.fullmatch(path):
            raise TestSetError(
                f"not written: the mapping has no plain path for {name}",
                path=self.path,
                expected="keys with dots between them",
                got=path,
            )
        return [step.strip('"') for step in _STEP.findall(path)]

    def _at(self, item: Any, path: str) -> Any:
        value = item
        for step in self._steps(path, path):
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def _put(self, item: dict[str, Any], path: str | None, value: Any, name: str) -> None:
        *above, last = self._steps(path, name)
        for step in above:
            item = item.setdefault(step, {})
        if value != [] or last in item:
            item[last] = value
