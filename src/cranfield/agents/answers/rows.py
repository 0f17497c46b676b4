"""A row of scores: an answer to a query, what decided it, and what it cost. Scores of one system and of the arms of an
experiment share it.

Quotes and reasons are texts of a model about texts of another: they are cut, and without characters that a program along the
way would interpret. What a judge may not read was removed before it wrote them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cranfield.agents.answers.facts import DecidedBy, FactsScore, FactVerdict
from cranfield.agents.answers.judge import Ballot
from cranfield.base.errors import InputError, ProblemList, shorten
from cranfield.base.words import printable, shorten_to
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import decode, read_bytes, shown
from cranfield.model import Entity, File, Hit, MatchingRules, Span, TestSet
from cranfield.model.judging import Lines
from cranfield.ranking.matching.place import ENTITY_MARK, entity_of, parts_of, path_of, place_of

LONGEST_PLACE = 1_000
"""Characters of a path or an id in a text; what is longer is none."""
_TOKEN = re.compile(r"[\w./\\:#@+~-]+")
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*")
_PART = re.compile(r"\.|::|#")
_FILE_NAME = re.compile(r"[^/]*\.[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """Entities, files and lines that a complete answer names."""

    entities: tuple[str, ...] = ()
    """`path::Qual.name`."""
    files: tuple[str, ...] = ()
    spans: tuple[Lines, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any: without one, the structure of an answer cannot be scored."""
        return bool(self.entities or self.files or self.spans)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer. It does not say who gave it: scores are blind to that."""

    text: str = ""
    entities: tuple[str, ...] | None = None
    """As a field of the answer; None: it has no such field, and they are read from its text."""
    files: tuple[str, ...] | None = None
    spans: tuple[Lines, ...] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """What an answer names, each once, in the one form of the matching rules."""

    entities: frozenset[str]
    files: frozenset[str]
    """With those of the ids and lines that it names."""
    spans: frozenset[Lines]


def expected_places(testset: TestSet, query_id: str) -> ExpectedAnswer:
    """What the label of a query expects: targets of a grade above 0, files, and line ranges of the record."""
    targets = [target for target in testset.targets.get(query_id, ()) if target.grade > 0]
    entities = [target for target in targets if isinstance(target, Entity)]
    spans = [Lines(target.path, target.start, target.end) for target in targets if isinstance(target, Span)]
    spans += [Lines(span.path, span.start, span.end) for entity in entities for span in entity.spans]
    if not spans and query_id in testset.labels:
        spans = list(testset.labels[query_id].line_ranges)
    files = [target.path for target in targets if isinstance(target, File)]
    return ExpectedAnswer(
        tuple(dict.fromkeys(entity.id for entity in entities)),
        tuple(dict.fromkeys([*testset.files.get(query_id, ()), *files])),
        tuple(dict.fromkeys(spans)),
    )


def named_places(answered: Answered, expected: ExpectedAnswer, rules: MatchingRules) -> Named:
    """What an answer names.

    A field counts as it stands. What has no field is read from the text:

    - an entity, where its id stands there; or its qualified name (`Index.add`, `Index::add`), alone or at the end of a longer
      one; or its last name, where its file is named too. A name of one word without `_`, a digit or an inner capital (`run`)
      counts only as code: in backticks, before `(`, or after a dot. Where two expected entities have one qualified
      name, the file of each must be named too; where they are in one file (two `impl` of Rust), it counts in full;
    - a file, where its path stands there, from the root of the repository or from a folder of `MatchingRules.roots`. The
      name of a file alone is no path;
    - lines, where they follow a path (`src/a.py:12-40`, `src/a.py#L12-L40`).

    An id and lines name their file as well. Names that are no id are looked up among the expected entities only:
    what else a text calls by its name alone is not known to be an entity, and not counted.

    Args:
        answered: the answer.
        expected: what the label expects.
        rules: how paths and ids are compared.
    """
    entities, files, spans = _written_places(answered.text, expected, rules)
    if answered.files is not None:
        files = {path_of(path, rules) for path in answered.files}
    if answered.spans is not None:
        spans = {Lines(path_of(span.file, rules), span.start, span.end) for span in answered.spans}
    if answered.entities is not None:
        entities = {entity_of(name, rules) for name in answered.entities}
    files |= {name.partition(ENTITY_MARK)[0] for name in entities if ENTITY_MARK in name} | {s.file for s in spans}
    if answered.entities is None:
        entities |= set(_entities_by_name(answered.text, expected, files, rules))
    return Named(frozenset(entities), frozenset(files), frozenset(spans))


def _written_places(text: str, expected: ExpectedAnswer, rules: MatchingRules) -> tuple[set[str], set[str], set[Lines]]:
    """Ids, paths, and lines of paths that stand in a text."""
    wanted = {entity_of(name, rules): name for name in expected.entities}
    paths = {path_of(path, rules) for path in expected.files}
    entities: set[str] = set()
    for each, name in sorted(wanted.items(), key=lambda item: -len(item[1])):
        if not _TOKEN.fullmatch(name) and name in text:  # a heading, with blanks
            entities.add(each)
            text = text.replace(name, " ")
    files: set[str] = set()
    spans: set[Lines] = set()
    own_lines = replace(rules, line_base=1)
    for found in _TOKEN.finditer(text):
        token = found[0].strip(":#-").rstrip(".:#-")
        if len(token) > LONGEST_PLACE or "://" in token:
            continue
        if (name := entity_of(token, rules)) in wanted:
            entities.add(name)
            continue
        place = place_of(Hit(token), own_lines)
        folder, _, file = place.path.rpartition("/")
        if not (place.path in paths or (_FILE_NAME.fullmatch(file) and (folder or ENTITY_MARK in place.entity))):
            continue
        files.add(place.path)
        if ENTITY_MARK in place.entity:
            entities.add(place.entity)
        if place.lines is not None:
            spans.add(Lines(place.path, *place.lines))
    return entities, files, spans


def _entities_by_name(text: str, expected: ExpectedAnswer, files: set[str], rules: MatchingRules) -> Iterable[str]:
    """Expected entities that the text calls by their names."""
    names = dict(_names(text))
    wanted = {entity_of(name, rules): parts_of(name) for name in expected.entities if ENTITY_MARK in name}
    shared = Counter(wanted.values())
    plain = text.replace("::", ".")
    in_file = Counter((entity.partition(ENTITY_MARK)[0], parts) for entity, parts in wanted.items())
    for entity, parts in wanted.items():
        path, _, full = entity.partition(ENTITY_MARK)
        has_file = path in files
        if in_file[path, parts] > 1:
            if has_file and re.search(rf"(?<![\w.]){re.escape(full)}(?!\w)", plain):
                yield entity
            continue
        by_qualified = _stands(parts, names) and (shared[parts] == 1 or has_file)
        if by_qualified or (has_file and _stands(parts[-1:], names)):
            yield entity


def _stands(parts: tuple[str, ...], names: dict[tuple[str, ...], bool]) -> bool:
    """Whether a name stands in the text, alone or at the end of a longer one; one that may be prose, as code."""
    is_clear = len(parts) > 1 or _is_no_prose(parts[0])
    return any(
        name[-len(parts) :] == parts and (is_clear or is_code or len(name) > len(parts))
        for name, is_code in names.items()
    )


def _is_no_prose(name: str) -> bool:
    return "_" in name or any(letter.isupper() or letter.isdigit() for letter in name[1:])


def _names(text: str) -> Iterable[tuple[tuple[str, ...], bool]]:
    """The names of a text, and whether any of its places is code; code comes last, so that a mapping keeps it."""
    code = [found.span() for found in _CODE.finditer(text)]
    found = []
    place = 0
    for name in _NAME.finditer(text):
        while place < len(code) and code[place][1] <= name.start():
            place += 1
        is_quoted = place < len(code) and code[place][0] <= name.start()
        found.append((tuple(_PART.split(name[0])), is_quoted or text[name.end() : name.end() + 1] == "("))
    return sorted(found, key=lambda each: each[1])


VOTE_COLUMNS = 300
"""Most columns of a quote, a reason or a problem."""
_Count = Annotated[int, Field(ge=0)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Score = Annotated[float, Field(ge=0, le=1)]


class AnswerCost(BaseModel):
    """What an answer cost. None: not known, which is not 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    total_tokens: _Count | None = None
    """In and out, those of tools included."""
    tool_calls: _Count | None = None
    turns: _Count | None = None
    wall_clock_s: _Amount | None = None
    money: _Amount | None = None
    """In the currency of the price list."""


class VoteRow(BaseModel):
    """A vote of the judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: str = ""
    """Empty: the judge could not decide, or there is no vote."""
    quote: str = ""
    reason: str = ""
    problem: str = ""
    """Why there is no vote, and what came; empty: there is one."""
    replies: Annotated[int, Field(ge=0)] = 1
    """To the vote, those of earlier calls that were kept included."""


class FactRow(BaseModel):
    """A statement of the label, and what the answer says about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """`must_mention.2`, `must_not_mention.1`: its place in the label."""
    statement: str
    """As it was judged: without the names that no judge reads."""
    verdict: FactVerdict | None
    by: DecidedBy
    """The rule, or the votes, that decided it; or why there is no verdict."""
    right: bool | None
    """Whether the answer does as it must; null: no verdict."""
    votes: tuple[VoteRow, ...] = ()
    """Empty: a rule decided, or there is no judge."""


def vote_rows(ballot: Ballot | None) -> tuple[VoteRow, ...]:
    """The votes of a ballot as rows."""
    return tuple(
        VoteRow(
            verdict=vote.verdict or "",
            quote=_text(vote.quote),
            reason=_text(vote.reason),
            problem="" if vote.failure is None else _text(f"{vote.failure.kind}: {vote.failure.detail}"),
            replies=vote.n_replies,
        )
        for vote in (() if ballot is None else ballot.cast)
    )


def fact_rows(facts: FactsScore | None) -> tuple[FactRow, ...]:
    """The statements of a label as rows."""
    return tuple(
        FactRow(
            id=fact.id,
            statement=printable(fact.fact),
            verdict=fact.verdict,
            by=fact.by,
            right=fact.is_right,
            votes=vote_rows(fact.ballot),
        )
        for fact in (() if facts is None else facts.facts)
    )


def _text(text: str) -> str:
    return shorten_to(printable(text), VOTE_COLUMNS)


class AnswerScores(BaseModel):
    """The scores of an answer; None where there is no value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_id: str
    answered: bool
    structure_correct: bool | None = None
    structure_score: _Score | None = None
    facts_correct: bool | None = None
    facts_score: _Score | None = None
    narrative: str | None = None
    facts: tuple[FactRow, ...] = ()
    narrative_votes: tuple[VoteRow, ...] = ()


class AnswerRow(AnswerCost, AnswerScores):
    """Scores and cost of an answer."""


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
            expected = "one answer per query: score the answers of two systems in two files"
            message = f"query {answer.query_id!r} has two answers"
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
