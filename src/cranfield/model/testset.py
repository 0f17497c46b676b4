"""A test set: queries, and what is expected for each.

Judgments come in two kinds. *Graded ids* say which documents are relevant and how much; a result that is not among them
is unjudged. *Patterns* say which ids are relevant by a regular expression; their truth is closed: what no pattern
matches is not relevant, and nothing is unjudged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Literal

from cranfield.model.query import Query

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))

Credit = Literal["once", "every"]
Grouping = Literal["subtopic", "judge", "preference"]
"""What the group of a grouped judgment is: a subtopic of the query, one of several sets of judgments, or one of several
sets of preferences (higher values are preferred; a subgroup holds values that may be compared)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression on the result id, searched (not anchored) and case-sensitive."""

    regex: str
    grade: float = 1
    credit: Credit = "once"
    """`once`: the pattern is one expected item, earned by the first match. `every`: each match is an item."""
    expected_count: int | None = None
    """How many documents match in the whole corpus, where known; a `once` pattern always counts as one."""

    @property
    def count(self) -> int | None:
        """Expected items this pattern stands for; None when `every` match counts and nobody said how many."""
        return 1 if self.credit == "once" else self.expected_count


@dataclass(frozen=True, slots=True)
class GroupedJudgment:
    """One judgment that holds within a group only: a subtopic, a judge, or a set of preferences."""

    doc_id: str
    group: str
    value: float
    """Grade, or strength of preference."""
    subgroup: str = ""
    """For preferences: values are compared within a subgroup alone."""


@dataclass(frozen=True)
class TestSet:
    """Queries with their judgments. Identity is content: see `digest`."""

    __test__ = False

    name: str
    queries: tuple[Query, ...]
    grades: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Query id to document id to grade. A grade under 0 means pooled but not judged."""
    patterns: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    """Query id to its patterns. A query has graded ids or patterns, not both."""
    version: str = ""
    description: str = ""
    groups: Mapping[str, tuple[GroupedJudgment, ...]] = field(default_factory=dict)
    """Query id to judgments by group, for measures that need them. Their documents stand in `grades` too, each with the
    highest value any group gave it."""
    grouping: Grouping | None = None
    """What a group is; None when there are none."""

    @cached_property
    def query_ids(self) -> tuple[str, ...]:
        """Ids in the order of the file."""
        return tuple(query.id for query in self.queries)

    @cached_property
    def by_id(self) -> Mapping[str, Query]:
        """Queries by id."""
        return {query.id: query for query in self.queries}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over queries and judgments, in id order; name, version and description do not enter."""
        hasher = sha256(b"cranfield testset 1\n")
        for query in sorted(self.queries, key=lambda query: query.id):
            record: list[object] = [
                query.id,
                query.text,
                dict(query.strata),
                dict(query.params),
                {doc_id: float(grade) for doc_id, grade in self.grades.get(query.id, {}).items()},
                [[p.regex, float(p.grade), p.credit, p.expected_count] for p in self.patterns.get(query.id, ())],
            ]
            if query.id in self.groups:
                record.append(
                    [self.grouping, [[g.doc_id, g.group, g.subgroup, g.value] for g in self.groups[query.id]]]
                )
            if query.weight != 1:
                record.append({"weight": query.weight})
            text = _ENCODER.encode(record)
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return "sha256:" + hasher.hexdigest()
