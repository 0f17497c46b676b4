"""The structure of an answer: whether it names the entities, files and lines that its label expects.

Pure code, no model. It is scored before anything else of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from cranfield.agents.answers.rows import Answered, ExpectedAnswer, named_places
from cranfield.model import MatchingRules
from cranfield.model.judging import Lines
from cranfield.ranking.matching.place import entity_of, overlap, path_of


class AnswerPart(StrEnum):
    """What an answer names."""

    ENTITIES = "entities"
    FILES = "files"
    SPANS = "spans"


@dataclass(frozen=True, slots=True)
class PartScore:
    """One part of what is expected, against what is named."""

    n_expected: int
    n_named: int
    missing: tuple[str, ...]
    """Expected, and not named."""
    extra: tuple[str, ...]
    """Named, and not expected."""

    @property
    def recall(self) -> float:
        """Share of the expected that is named, in [0, 1]."""
        return (self.n_expected - len(self.missing)) / self.n_expected

    @property
    def precision(self) -> float | None:
        """Share of the named that is expected, in [0, 1]; None where nothing is named."""
        return None if not self.n_named else (self.n_named - len(self.extra)) / self.n_named

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]; 0 where nothing is named."""
        total = self.recall + (self.precision or 0.0)
        return 2 * self.recall * (self.precision or 0.0) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class StructureScore:
    """How far an answer names what its label expects."""

    parts: Mapping[AnswerPart, PartScore]
    """Score of every part that is expected."""

    @property
    def deciding(self) -> tuple[AnswerPart, ...]:
        """The parts that decide: entities and files; lines only where no entity is expected, which they would repeat."""
        return tuple(
            part for part in self.parts if part is not AnswerPart.SPANS or AnswerPart.ENTITIES not in self.parts
        )

    @property
    def complete(self) -> bool:
        """Whether everything expected of the deciding parts is named. More may be named: `score` counts that."""
        return bool(self.parts) and not any(self.parts[part].missing for part in self.deciding)

    @property
    def score(self) -> float:
        """Mean F1 of the deciding parts, in [0, 1]; 1.0 where exactly the expected is named, 0.0 where nothing is."""
        values = [self.parts[part].f1 for part in self.deciding]
        return sum(values) / len(values) if values else 0.0


def score_structure(answered: Answered, expected: ExpectedAnswer, rules: MatchingRules | None = None) -> StructureScore:
    """Score what an answer names against what its label expects.

    An entity and a file match by id and path. Expected lines are found where named lines of their file share
    `min_overlap` lines with them, as results of a search are.

    Args:
        answered: the answer.
        expected: what the label expects. Where it expects nothing, no answer is complete and the score is 0.
        rules: how paths, ids and lines are compared; default: as they stand.
    """
    rules = rules or MatchingRules()
    named = named_places(answered, expected, rules)
    entities = [entity_of(name, rules) for name in expected.entities]
    files = [path_of(path, rules) for path in expected.files]
    spans = [Lines(path_of(span.file, rules), span.start, span.end) for span in expected.spans]
    parts = {
        AnswerPart.ENTITIES: _of_names(entities, named.entities),
        AnswerPart.FILES: _of_names(files, named.files),
        AnswerPart.SPANS: _of_spans(dict.fromkeys(spans), named.spans, rules.min_overlap),
    }
    return StructureScore({part: score for part, score in parts.items() if score.n_expected})


def _of_names(expected: Iterable[str], named: frozenset[str]) -> PartScore:
    wanted = dict.fromkeys(expected)
    missing = tuple(name for name in wanted if name not in named)
    return PartScore(len(wanted), len(named), missing, tuple(sorted(named - wanted.keys())))


def _of_spans(expected: Iterable[Lines], named: Iterable[Lines], min_overlap: int) -> PartScore:
    wanted, given = list(expected), sorted(named, key=lambda span: (span.file, span.start, span.end))
    missing = tuple(str(span) for span in wanted if not any(_match(span, other, min_overlap) for other in given))
    extra = tuple(str(span) for span in given if not any(_match(other, span, min_overlap) for other in wanted))
    return PartScore(len(wanted), len(given), missing, extra)


def _match(expected: Lines, named: Lines, min_overlap: int) -> bool:
    least = min(min_overlap, expected.end - expected.start + 1)
    return expected.file == named.file and overlap((expected.start, expected.end), (named.start, named.end)) >= least
