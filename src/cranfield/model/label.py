"""Labels: what a golden set says of a query besides where its answer lies: facts, roles, a narrative, provenance.

A label is no judgment: search is scored without it. Answers of agents are scored by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cranfield.model.target import Entity, Span, Target

_PROVENANCE = "provenance"
_REVIEW = "validation"
"""Key of a record that says how it was checked: provenance by another name."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, counted from 1, both ends included."""

    file: str
    start: int
    end: int

    def __str__(self) -> str:
        """`src/index.rs:41-61`."""
        return f"{self.file}:{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement about the code that can be checked."""

    text: str
    citations: tuple[Lines, ...] = ()
    """Lines that show it; for a statement that an answer must not make, lines that show it to be false."""

    @property
    def record(self) -> str | dict[str, Any]:
        """As a golden record has it: its text alone where nothing is cited."""
        return (
            {"fact": self.text, "citations": [asdict(lines) for lines in self.citations]}
            if self.citations
            else self.text
        )


@dataclass(frozen=True, slots=True)
class EntityRole:
    """What an expected entity is to the answer."""

    entity_id: str
    role: str = ""
    """`primary`, `supporting` or `contextual`; empty: not known."""
    rationale: str = ""

    @property
    def record(self) -> dict[str, str]:
        """As a golden record has it."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class Label:
    """What a record of a golden set says beyond its query, its strata and its targets."""

    roles: tuple[EntityRole, ...] = ()
    """Roles of the expected entities that have a role or a rationale."""
    line_ranges: tuple[Lines, ...] = ()
    """All that the record has, in their order."""
    must_mention: tuple[Fact, ...] = ()
    must_not_mention: tuple[Fact, ...] = ()
    narrative: str = ""
    """The canonical answer in prose."""
    difficulty_rationale: str = ""
    classifier_expectation: str = ""
    """The task type that a classifier is expected to report."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test could answer; None: not known."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Who and what made and reviewed the record: models, prompts, tools, commit, reviewers, edits."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the record, as they were written."""

    @property
    def places(self) -> tuple[Lines, ...]:
        """Its line ranges and the citations of its facts, each once."""
        cited = (lines for fact in (*self.must_mention, *self.must_not_mention) for lines in fact.citations)
        return tuple(dict.fromkeys((*self.line_ranges, *cited)))

    @property
    def record(self) -> dict[str, Any]:
        """The keys and values of a golden record, without what says nothing; entities are those with a role."""
        values = {
            "expected_entities": [role.record for role in self.roles],
            "expected_line_ranges": [asdict(lines) for lines in self.line_ranges],
            "must_mention_facts": [fact.record for fact in self.must_mention],
            "must_not_mention_facts": [fact.record for fact in self.must_not_mention],
            "canonical_narrative": self.narrative,
            "difficulty_rationale": self.difficulty_rationale,
            "classifier_expectation": self.classifier_expectation,
            "baseline_answerable": self.baseline_answerable,
            _PROVENANCE: dict(self.provenance),
        }
        return {key: value for key, value in values.items() if value not in (None, "", [], {})} | dict(self.more)

    @property
    def content(self) -> dict[str, Any]:
        """What `TestSet.labels_digest` covers: the record without provenance."""
        return {key: value for key, value in self.record.items() if key not in {_PROVENANCE, _REVIEW}}

    def moved(self, place: Callable[[Lines], Lines]) -> Label:
        """The same label with its line ranges and citations at other places."""

        def facts(given: tuple[Fact, ...]) -> tuple[Fact, ...]:
            return tuple(replace(fact, citations=tuple(map(place, fact.citations))) for fact in given)

        return replace(
            self,
            line_ranges=tuple(map(place, self.line_ranges)),
            must_mention=facts(self.must_mention),
            must_not_mention=facts(self.must_not_mention),
        )


def lines_of_targets(targets: Iterable[Target]) -> tuple[Lines, ...]:
    """Lines of spans, then of entities, each once."""
    spans = [target for target in targets if isinstance(target, Span)]
    spans += [span for target in targets if isinstance(target, Entity) for span in target.spans]
    return tuple(dict.fromkeys(Lines(span.path, span.start, span.end) for span in spans))
