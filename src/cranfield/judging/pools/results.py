"""The results of the systems that a pool is made of: per query each document once, best first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """Of the run as it was read; empty: as it is."""

    @cached_property
    def digest(self) -> str:
        """Of the run as it was read."""
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
            expected="a name of its own for each run",
            hint="name them: NAME=FILE",
        )
    return tuple(
        SystemResults(name, replace(run, name=name), digest)
        for name, (_, _, run, digest) in zip(names, given, strict=True)
    )
