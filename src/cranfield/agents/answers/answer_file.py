"""Files of answers to score: JSON Lines, an answer each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cranfield.agents.answers.places import Answered
from cranfield.agents.answers.rows import AnswerCost, AnswerRow
from cranfield.base.errors import InputError, ProblemList, shorten
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import decode, read_bytes, shown
from cranfield.model.label import Lines

EXPECTED = '{"query_id": "q1", "text": "...", "entities": ["src/a.py::A.b"], "files": ["src/a.py"]}'
_Filled = Annotated[str, Field(min_length=1)]
_Line = Annotated[int, Field(ge=1, le=999_999_999)]


class _Record(BaseModel):
    """Other keys (a system, an arm) are left out: scores are blind to them."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Span(_Record):
    file: _Filled
    start: _Line
    end: _Line


class _Answer(AnswerCost, _Record):
    model_config = ConfigDict(frozen=True, extra="ignore")

    query_id: _Filled
    text: str = ""
    entities: list[_Filled] | None = None
    files: list[_Filled] | None = None
    spans: list[_Span] | None = None

    def answered(self) -> Answered:
        spans = None if self.spans is None else tuple(Lines(span.file, span.start, span.end) for span in self.spans)
        entities = None if self.entities is None else tuple(self.entities)
        return Answered(self.text, entities, None if self.files is None else tuple(self.files), spans)

    def cost(self) -> AnswerCost:
        return AnswerCost(**{name: getattr(self, name) for name in AnswerCost.model_fields})


def read_answers(path: Path) -> tuple[dict[str, Answered], dict[str, AnswerCost]]:
    """Query id to its answer, in the order of the file, and to what it cost, which no scorer receives.

    Raises:
        InputError: with every line that is no answer, or answers a query a second time.
    """
    problems = ProblemList(InputError)
    found: dict[str, Answered] = {}
    costs: dict[str, AnswerCost] = {}
    for number, line in enumerate(decode(read_bytes(path, InputError), path, InputError).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            answer = _Answer.model_validate_json(line)
        except ValidationError as error:
            for each in error.errors(include_url=False)[:3]:
                where = ".".join(map(str, each["loc"]))
                message = f"not an answer: {where + ': ' if where else ''}{each['msg']}"
                problems.add(message, path=shown(path), line=number, expected=EXPECTED, got=shorten(line))
            continue
        if answer.query_id in found:
            expected = "an answer each: score the answers of two systems in two files"
            message = f"query {answer.query_id!r} is answered twice"
            problems.add(message, path=shown(path), line=number, expected=expected)
        found[answer.query_id], costs[answer.query_id] = answer.answered(), answer.cost()
    problems.raise_if_any()
    if not found:
        raise InputError("the file has no answer", path=shown(path), expected=EXPECTED)
    return found, costs


def write_rows(rows: Iterable[AnswerRow], path: Path) -> None:
    """Write rows of scores as JSON Lines."""
    lines = (json.dumps(row.model_dump(mode="json"), ensure_ascii=False) + "\n" for row in rows)
    write_unicode(path, lines, InputError)
