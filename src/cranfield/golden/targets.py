"""What a query aims at: entities, spans or files, of a candidate or of an answer, as lines of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from cranfield.base.words import and_list
from cranfield.golden.index import leaks, overlap, target_names
from cranfield.golden.parsed import LineCoverage, Lines, ParsedSource
from cranfield.golden.records import CitedLines, OracleAnswer, QueryCandidate
from cranfield.golden.rules import Extent
from cranfield.ranking.matching.place import ENTITY_MARK, plain_entity


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets of a query. Files count as targets only where there is nothing else: they follow from the others."""

    entities: tuple[str, ...] = ()
    """As `plain_entity` has them, each once: overloads are one target."""
    spans: tuple[Lines, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def extent(self) -> Extent:
        """What the rule of its difficulty is about."""
        count = len(self.entities) or len(self.spans) or None
        return Extent(count, frozenset(self.paths()))

    def paths(self) -> list[str]:
        """Files that hold them, in their order."""
        holding = [entity.partition(ENTITY_MARK)[0] for entity in self.entities] + [path for path, _, _ in self.spans]
        return list(dict.fromkeys([*holding, *self.files]))

    def places(self, source: ParsedSource) -> dict[str, tuple[Lines, ...]]:
        """Label of each target to its lines; none of a target that does not exist."""
        found: dict[str, tuple[Lines, ...]] = {}
        for entity in self.entities:
            path = entity.partition(ENTITY_MARK)[0]
            found[entity] = tuple((path, start, end) for start, end in source.ranges(entity))
        found |= {f"{path}:{start}-{end}": ((path, start, end),) for path, start, end in self.spans}
        if not found:
            found = {path: ((path, 1, len(source.lines(path) or ())),) for path in self.files}
        return found

    def leak_problem(self, query: str) -> str | None:
        """Which names of its targets a query contains; None where it contains none."""
        found = leaks(query, self.entities, self.paths())
        return f"the query names its target: {and_list(found)}" if found else None

    def overlap_problem(self, query: str, bound: float, source: ParsedSource) -> str | None:
        """Why a hard query shares too many words with its targets; None where it does not."""
        shared, total = overlap(query, target_names(self.entities, self.paths(), source))
        if shared < total * Fraction(str(bound)) or not total:
            return None
        return (
            f"a hard query shares {shared} of its {total} words with its targets; expected a part of less than {bound}"
        )

    def shared_with(self, other: Targets, source: ParsedSource) -> tuple[int, int]:
        """How many of the smaller set the other has too, and how many the smaller set has.

        Of the smaller set, so that the order in which two queries come does not matter, and a query about one of the targets
        of another is not counted as new. Entities and files are the same by their ids; spans by lines: more than half of the
        shorter one is in the other, which may be an entity.
        """
        smaller, larger = sorted((self.places(source), other.places(source)), key=len)
        same = sum(
            any(_same(label, lines, other_label, others) for other_label, others in larger.items())
            for label, lines in smaller.items()
        )
        return same, len(smaller)


def _same(label: str, lines: tuple[Lines, ...], other: str, others: tuple[Lines, ...]) -> bool:
    if label == other:
        return True
    if (ENTITY_MARK in label and ENTITY_MARK in other) or not _is_range(label) or not _is_range(other):
        return False
    first, second = sorted((lines, others), key=_count)
    cover = LineCoverage(second)
    return 2 * sum(cover.shared(*part) for part in first) > _count(first) > 0


def _is_range(label: str) -> bool:
    """Whether it stands for lines of a file, and not for the file."""
    return ENTITY_MARK in label or label.rpartition(":")[2].partition("-")[0].isdigit()


def _count(lines: Iterable[Lines]) -> int:
    return sum(end - start + 1 for _, start, end in lines)


def of_candidate(candidate: QueryCandidate) -> Targets:
    """What an author aims at."""
    spans = tuple((span.file, span.start, span.end) for span in candidate.target_spans)
    return Targets(_each_once(candidate.target_entity_ids), spans, tuple(candidate.target_files))


def of_answer(answer: OracleAnswer) -> Targets:
    """What an answer must name: contextual entities, and files that hold nothing else, are left out."""
    counted = [entity.entity_id for entity in answer.expected_entities if entity.role != "contextual"]
    context = {entity.entity_id.partition(ENTITY_MARK)[0] for entity in answer.expected_entities}
    context -= {entity.partition(ENTITY_MARK)[0] for entity in counted}
    spans = () if counted else tuple(lines_of(answer.expected_line_ranges))
    files = tuple(path for path in answer.expected_files if path not in context)
    return Targets(_each_once(counted), spans, files)


def _each_once(entity_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(plain_entity, entity_ids)))


def lines_of(cited: Iterable[CitedLines]) -> Iterator[Lines]:
    """File, first and last line."""
    for part in cited:
        yield part.file, part.start, part.end
