"""The holes of two systems with the test set and the results that they were found in, and the next pool."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from cranfield.evaluation.values import Comparison
from cranfield.judging.pools.build import pooled_query
from cranfield.judging.pools.candidates import union
from cranfield.judging.pools.holes import HoleAnalysis
from cranfield.judging.pools.pool_file import Pool, PooledItem, PooledRun
from cranfield.judging.pools.results import SystemResults
from cranfield.judging.pools.rule_view import Grades, RuleView
from cranfield.model import TestSet
from cranfield.testsets.declared import scale_to_judge


@dataclass(frozen=True)
class FoundHoles:
    """The holes of two systems, and what they were found in."""

    analysis: HoleAnalysis
    testset: TestSet
    """As it was loaded."""
    view: RuleView
    systems: tuple[SystemResults, ...]
    """Their results under the names of documents that the view has."""
    closed: Comparison | None
    """Of a test set of targets, the comparison in which what no target matches is not relevant; None for graded ids."""
    people: Grades | None = None
    """Grades of persons that were given, of queries of the test set and others."""

    def pool(self, top: int, name: str) -> Pool:
        """The first holes as a pool, and of their queries what a rule grades. Holes have the names that people see, and documents of a pool their ids."""
        shown = {
            (query_id, hit.id): hit.public_id
            for system in self.systems
            for query_id, hits in system.hits.items()
            for hit in hits
        }
        chosen = {(hole.query, hole.doc): hole for hole in self.analysis.holes[:top]}
        queries = [query for query in self.testset.queries if any(query.id == query_id for query_id, _ in chosen)]
        depth = max((rank or 0 for hole in chosen.values() for rank in (hole.rank_a, hole.rank_b)), default=1)
        prefilled = self.view.prefilled  # along with them, for what the book is frozen as
        last = max(depth, self.analysis.comparison.primary.depth or sys.maxsize) if prefilled else depth
        found = union(self.systems, [query.id for query in queries], last, self.testset.grades, prefilled)
        return Pool(
            name=name,
            method="holes",
            depth=depth,
            n_left_out=sum(each.judged is not None for each in found),
            testset=self.testset.name,
            testset_digest=self.testset.digest,
            n_earlier=self.testset.n_judgments,
            scale=scale_to_judge(self.testset),
            runs=tuple(PooledRun(name=system.name, digest=system.digest) for system in self.systems),
            queries=tuple(map(pooled_query, queries)),
            items=tuple(
                PooledItem(
                    query=each.query_id,
                    doc=each.doc_id,
                    fields=each.fields,
                    runs=each.ranks,
                    prefilled=each.prefilled,
                    effect=None if hole is None else hole.effect,
                )
                for each in found
                if (hole := chosen.get((each.query_id, shown[each.query_id, each.doc_id])))
                or each.prefilled is not None
            ),
        )
