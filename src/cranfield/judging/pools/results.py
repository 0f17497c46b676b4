"""The results of the systems that a pool is made of: per query each document once, best first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cranfield.base.errors import UsageError
from cranfield.base.words import and_list
from cranfield.model import Hit, Run


@dataclass(frozen=True)
class SystemResults:
    """One run, under the name that it has in a pool."""

    name: str
    run: Run
    """With the results of each query best first."""
    given_digest: str = ""
    """Digest of the run as it was read; empty: that of `run`."""

    @cached_property
    def digest(self) -> str:
        """Digest of the run as it was read."""
        return self.given_digest or self.run.digest

    @cached_property
    def hits(self) -> Mapping[str, tuple[Hit, ...]]:
        """Query id to its results, best first, each document once, down to the depth of the run; none where it failed."""
        return {
            query_id: () if answer.outcome.is_failure else self._ranked(answer.hits)
            for query_id, answer in self.run.answers.items()
        }

    def _ranked(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        first: dict[str, Hit] = {}
        for hit in hits:
            first.setdefault(hit.id, hit)
        return tuple(first.values())[: self.run.depth]

    def top(self, query_id: str, depth: int) -> tuple[Hit, ...]:
        """The first results of a query, rank 1 first; none where the run does not answer it."""
        return self.hits.get(query_id, ())[:depth]


def with_names(systems: Iterable[tuple[str, str, Run, str]]) -> tuple[SystemResults, ...]:
    """Runs with a name of their own each.

    Args:
        systems: the name that the user gave, or an empty text; the name of the file; the run; its digest.

    Returns:
        The name given, else the name of the run, or of its file where two runs have one name.

    Raises:
        UsageError: two have one name all the same.
    """
    given = list(systems)
    names = [name or run.name for name, _, run, _ in given]
    if len(set(names)) < len(names):
        names = [name or file for name, file, _, _ in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"two runs are called {and_list(list(map(repr, twice)))}",
            expected="a different name for each run",
            hint="name them: NAME=FILE",
        )
    return tuple(
        SystemResults(name, replace(run, name=name), digest)
        for name, (_, _, run, digest) in zip(names, given, strict=True)
    )


@dataclass(slots=True)
class Candidate:
    """A document of a query that at least one system returned."""

    query_id: str
    doc_id: str
    ranks: dict[str, int] = field(default_factory=dict)
    """System to rank."""
    fields: dict[str, object] = field(default_factory=dict)
    """What the runs say of it; of two that differ the first run's."""
    judged: float | None = None
    """Grade of the test set; None where it has none, also where it names the document as pooled only (a grade under 0)."""

    prefilled: float | None = None
    """Grade of the rater `rule`; None where no pattern, span, entity or predicate of the test set matches."""

    @property
    def is_open(self) -> bool:
        """Whether a person is still to judge it."""
        return self.judged is None and self.prefilled is None

    @property
    def best(self) -> int:
        """Smallest rank."""
        return min(self.ranks.values())


def union(
    systems: Sequence[SystemResults],
    query_ids: Iterable[str],
    depth: int,
    grades: Mapping[str, Mapping[str, float]],
    prefilled: Mapping[tuple[str, str], float] | None = None,
) -> list[Candidate]:
    """Every document that a system returns down to a depth, by query, then by document id.

    Args:
        systems: at least one.
        query_ids: in the order of the pool.
        depth: 1 or more.
        grades: of the test set; under 0 is pooled, and not judged.
        prefilled: query and document to the grade of the rater `rule`.
    """
    found: list[Candidate] = []
    for query_id in query_ids:
        of_query: dict[str, Candidate] = {}
        for system in systems:
            for rank, hit in enumerate(system.top(query_id, depth), start=1):
                candidate = of_query.setdefault(hit.id, Candidate(query_id, hit.id))
                candidate.ranks[system.name] = rank
                candidate.fields = {**fields_of(hit), **candidate.fields}
        judged = grades.get(query_id, {})
        for doc_id in sorted(of_query):
            if judged.get(doc_id, -1) >= 0:
                of_query[doc_id].judged = judged[doc_id]
            of_query[doc_id].prefilled = (prefilled or {}).get((query_id, doc_id))
            found.append(of_query[doc_id])
    return found


def fields_of(hit: Hit) -> dict[str, object]:
    """What a result says of its document, as JSON can hold it."""
    named = {"title": hit.title, "span": hit.public_span}
    given = {name: value for name, value in named.items() if value is not None}
    return {_text(name): _plain(value) for name, value in {**given, **(hit.fields or {})}.items()}


def _plain(value: object) -> object:
    """A value that JSON files and databases can hold."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable(name: str) -> bool:
    """Whether an id can be in a JSON file and in a database: bytes that are no UTF-8, and NUL, cannot."""
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def found_by(candidates: Iterable[Candidate], name: str, depth: int) -> list[Candidate]:
    """Those that a system returned down to a depth."""
    return [candidate for candidate in candidates if candidate.ranks.get(name, depth + 1) <= depth]


def only_by(candidates: Iterable[Candidate], name: str, depth: int) -> list[Candidate]:
    """Those that a system returned down to a depth, and no other system."""
    return [
        candidate
        for candidate in candidates
        if {system for system, rank in candidate.ranks.items() if rank <= depth} == {name}
    ]
