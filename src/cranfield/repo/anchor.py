"""The expected places of a test set, and their anchors in a repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from cranfield.model import Anchor, Entity, File, Hit, MatchingRules, Span, Target, TestSet
from cranfield.ranking.matching.place import ENTITY_MARK, entity_of, path_of, place_of, plain_name
from cranfield.repo.snapshot import Snapshot
from cranfield.repo.symbols import Outline, Symbol, outline_of

_NO_PATH = re.compile(r"[\s:]")


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """A place in which a result is expected."""

    label: str
    """As the test set has it: `src/a.py::Index.add`, `src/a.py:41-61`, `src/a.py`."""
    kind: Literal["entity", "span", "file"]
    path: str
    """Normalised like the paths of results."""
    name: str = ""
    """Name of an entity, in its file."""
    lines: tuple[int, int] = (0, 0)
    """First and last line of a span."""
    queries: list[str] = field(default_factory=list)
    """Ids of the queries that expect it."""


@dataclass
class Outlines:
    """Outlines of the files of a snapshot, each made at its first use."""

    snapshot: Snapshot
    needed: bool = True
    _made: dict[str, Outline | None] = field(default_factory=dict)

    def of(self, path: str) -> Outline | None:
        """Outline of a file; None where it is not there or is no text."""
        if path not in self._made:
            text = self.snapshot.text(path)
            self._made[path] = None if text is None else outline_of(path, text, needed=self.needed)
        return self._made[path]

    def made(self, path: str) -> Outline | None:
        """Outline of a file, if it was made before."""
        return self._made.get(path)


def places(testset: TestSet, snapshot: Snapshot) -> dict[str, ExpectedPlace]:
    """Every expected place, by label, in the order of the queries.

    These are targets that are entities, spans or files; files to cover; graded ids of a grade above 0 that read as
    such a place: `path::name`, `path:1-2`, or a path that is there; and the line ranges and citations of labels.
    """
    found: dict[str, ExpectedPlace] = {}
    for query in testset.queries:
        for place in _of_query(testset, query.id, snapshot):
            queries = found.setdefault(place.label, place).queries
            if query.id not in queries:
                queries.append(query.id)
    return found


def anchor_of(place: ExpectedPlace, outlines: Outlines) -> Anchor | str:
    """The anchor of a place, or why it does not exist."""
    if place.path not in outlines.snapshot:
        return "the file does not exist"
    outline = outlines.of(place.path)
    if outline is None:
        whole = Anchor(place.path, outlines.snapshot.sha256(place.path) or "")
        return whole if place.kind == "file" else "the file cannot be read: it is not text, or it is too large"
    if place.kind == "span":
        return span_anchor(outline, *place.lines)
    if place.kind == "entity" and outline.language:
        symbols = outline.entities.get(plain_name(place.name, place.path))
        if symbols is not None:
            return entity_anchor(outline, symbols)
        return f"the file does not parse ({outline.trouble})" if outline.trouble else outline.missing(place.name)
    return span_anchor(outline, 1, len(outline.lines), whole=True)


def entity_anchor(outline: Outline, symbols: tuple[Symbol, ...]) -> Anchor:
    """The anchor of all definitions of one name."""
    return Anchor(symbols[0].id, outline.entity_body(symbols), 0, sum(symbol.lines for symbol in symbols))


def span_anchor(outline: Outline, start: int, end: int, *, whole: bool = False) -> Anchor | str:
    """The anchor of lines: in the innermost symbol that holds them, or, where `whole`, in the file."""
    length = len(outline.lines)
    if not whole and not 1 <= start <= end <= length:
        return f"lines {start}-{end} are out of range: the file has {length}"
    holder = outline.symbols[0] if whole else outline.innermost(start, end)
    return Anchor(holder.id, outline.body(start, end, holder.names), start - holder.start, end - start + 1)


def _of_query(testset: TestSet, query_id: str, snapshot: Snapshot) -> Iterator[ExpectedPlace]:
    rules = testset.matching
    for target in testset.targets.get(query_id, ()):
        if target.grade > 0:
            yield from _of_target(target, rules)
    for path in testset.files.get(query_id, ()):
        yield ExpectedPlace(path, "file", path_of(path, rules))
    for doc_id, grade in testset.grades.get(query_id, {}).items():
        if grade > 0 and (place := _of_id(doc_id, rules, snapshot)) is not None:
            yield place
    label = testset.labels.get(query_id)
    for lines in label.places if label is not None else ():
        yield ExpectedPlace(str(lines), "span", path_of(lines.file, rules), lines=(lines.start, lines.end))


def _of_target(target: Target, rules: MatchingRules) -> Iterator[ExpectedPlace]:
    match target:
        case Span():
            yield ExpectedPlace(target.label, "span", path_of(target.path, rules), lines=(target.start, target.end))
        case Entity():
            yield _entity(target.label, entity_of(target.id, rules))
            for span in target.spans:
                yield from _of_target(span, rules)
        case File():
            yield ExpectedPlace(target.label, "file", path_of(target.path, rules))
        case _:
            pass


def _entity(label: str, entity: str) -> ExpectedPlace:
    path, mark, name = entity.partition(ENTITY_MARK)
    return ExpectedPlace(label, "entity" if mark else "file", path, name)


def _of_id(doc_id: str, rules: MatchingRules, snapshot: Snapshot) -> ExpectedPlace | None:
    """A document id as a place; None where it does not look like one."""
    found = place_of(Hit(doc_id), rules)
    if found.path not in snapshot and (found.path == found.entity and found.lines is None):
        return None
    if found.path not in snapshot and not _looks_like_a_path(found.path):
        return None
    if found.lines is not None:
        return ExpectedPlace(doc_id, "span", found.path, lines=found.lines)
    return _entity(doc_id, found.entity)


def _looks_like_a_path(text: str) -> bool:
    """Whether a folder, or the end of a file's name, is in it, and no blank and no colon."""
    return ("/" in text[:-1] or "." in text[:-1]) and _NO_PATH.search(text) is None
