"""Entities, files and lines that an answer names: in fields of its own, or in its text by the rules of `named_places`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cranfield.model import Entity, File, Hit, MatchingRules, Span, TestSet
from cranfield.model.label import Lines
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
