"""Lines of JSONL as rows of judgments, for `judgment_table`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cranfield.errors import ProblemList, TestSetError
from cranfield.formats.io.columns import JUDGMENT_COLUMNS
from cranfield.formats.io.delimited import STRATUM
from cranfield.formats.io.files import decode, read_bytes, shown
from cranfield.formats.io.json_lines import json_objects
from cranfield.formats.io.json_tree import parse_json
from cranfield.formats.io.table import as_number, is_id
from cranfield.formats.io.tree import Unreadable, describe
from cranfield.formats.testsets.judgment_rows import QUERY_IS_ID, REQUIRED, Row, roles_of
from cranfield.model import Note
from cranfield.model.note import info, not_carried
from cranfield.words import n_of

_BREAK = re.compile(r"\r?\n")


class JsonSource:
    """Rows of a JSONL file: an object a line; the keys of the first one say what the roles are called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems = ProblemList(TestSetError)
        self._key: dict[str, Any] = {}
        self._lines = _BREAK.split(decode(read_bytes(path, TestSetError), path, TestSetError))
        first = next((record for _, record in self._records()), {})
        self.problems.problems.clear()
        lower = {str(key).lower(): key for key in reversed(first)}
        self._key = roles_of(lambda *names: next((lower[name] for name in names if name in lower), None))
        self.strata: list[str] = []
        """Grows as lines come: a line may bring one that those before had not."""
        self.has_rater = "rater" in self._key
        self._others: Counter[str] = Counter()
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
        known = {*self._key.values()}
        if query is None or document is None:
            return
        self._others.clear()
        for line, record in self._records():
            strata: tuple[str, ...] | list[str] = ()
            if len(record) > len(known) or not known.issuperset(record):
                strata = self._more(line, record, known)
            query_id, doc_id = record.get(query), record.get(document)
            yield (
                line,
                query_id if type(query_id) is str else self._text(line, "query_id", query_id),
                doc_id if type(doc_id) is str else self._text(line, "doc_id", doc_id),
                record.get(grade),
                self._text(line, "rater", record.get(rater)) if rater else "",
                self._text(line, "text", record.get(text)) if text else "",
                strata,
            )

    def _text(self, line: int, role: str, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if is_id(value):
            return str(value)
        self.fault(line, role, f"{role} is neither text nor a whole number", expected="text", got=value)
        return "?"

    def _more(self, line: int, record: dict[str, Any], known: set[Any]) -> list[str]:
        """Values of the strata, in their order; what else there is is counted."""
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
                self._others[key] += 1
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
        except Unreadable:
            return None
        return None if value is None else value.column

    def mark(self, line: int) -> tuple[int, int | None]:
        """Line and column of the grade."""
        return line, self._column(line, self._key.get("grade", ""))

    def number(self, value: Any) -> float | None:
        """A grade as JSON has it."""
        return as_number(value)

    def notes(self) -> Iterator[Note]:
        """Keys that mean nothing here."""
        if str(self._key.get("query_id")).lower() == "query":
            yield from info(QUERY_IS_ID)
        yield from not_carried(
            f"{n_of(n, 'values')} of {key!r}; the key of a stratum is called `{STRATUM}{key}`"
            for key, n in self._others.items()
        )


def _plain(value: Any) -> str | None:
    """A number or true/false as JSON writes it."""
    return json.dumps(value) if isinstance(value, bool | int | float) else None
