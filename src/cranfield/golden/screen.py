"""Candidates before an oracle sees them: cells, quotas, targets, and the text of the query. Pure code.

The verdict on a candidate depends on those that were accepted before it, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from cranfield.base.words import and_list, count_noun
from cranfield.golden.index import content_words, found_by_grep, jaccard
from cranfield.golden.parsed import ParsedSource, lies_in
from cranfield.golden.plan import Plan, Quota, TargetKind
from cranfield.golden.records import QueryCandidate
from cranfield.golden.rules import RULES
from cranfield.golden.targets import Targets, of_candidate
from cranfield.ranking.matching.place import ENTITY_MARK
from cranfield.repo.symbols import language_of


class ScreenReason(StrEnum):
    """Why a candidate is rejected."""

    NOT_PLANNED = "not_planned"
    """The plan has no cell of its type and difficulty."""
    CELL_FULL = "cell_full"
    QUOTA_FULL = "quota_full"
    TARGET_MISSING = "target_missing"
    """A target does not exist in the snapshot."""
    TARGET_KIND = "target_kind"
    """Its targets are not of the kind that the cell wants."""
    OUT_OF_SCOPE = "out_of_scope"
    """Its first target is not in the scope of the cell."""
    DIFFICULTY = "difficulty"
    """Its targets do not fit its difficulty."""
    LEAK = "leak"
    """The query names its target."""
    LEXICAL_OVERLAP = "lexical_overlap"
    """A hard query shares too many words with the names of its targets."""
    GREP_ONLY = "grep_only"
    """A plain search answers a query that is not easy."""
    TARGET_OVERLAP = "target_overlap"
    """It shares more than half of the targets with an accepted candidate."""
    NEAR_DUPLICATE = "near_duplicate"
    """Its text is nearly that of an accepted candidate."""


@dataclass(frozen=True, slots=True)
class ScreenProblem:
    """A reason, and its particulars."""

    reason: ScreenReason
    message: str


class Screener:
    """Judges candidates by a plan and a parsed snapshot."""

    def __init__(self, plan: Plan, source: ParsedSource) -> None:
        self.plan = plan
        self.source = source

    def judge(self, candidate: QueryCandidate, accepted: Sequence[QueryCandidate]) -> tuple[ScreenProblem, ...]:
        """All reasons to reject a candidate; none accepts it.

        Args:
            candidate: not yet judged.
            accepted: candidates that were accepted before it.
        """
        targets = of_candidate(candidate)
        found = [*self._of_cell(candidate, targets, accepted), *self._of_quotas(targets, accepted)]
        missing = [*self._missing(candidate, targets)]
        found += [ScreenProblem(ScreenReason.TARGET_MISSING, message) for message in missing]
        found += self._of_text(candidate, targets)
        for earlier in accepted:
            found += self._of_pair(candidate, targets, earlier)
        return tuple(found)

    def quota_counts(self, accepted: Sequence[QueryCandidate]) -> list[tuple[Quota, int]]:
        """Each quota, and how many accepted candidates count for it: those whose first target lies in its place."""
        first = [of_candidate(candidate).paths()[0] for candidate in accepted]
        return [(quota, sum(lies_in(path, quota.path) for path in first)) for quota in self.plan.quotas]

    def _of_cell(
        self, candidate: QueryCandidate, targets: Targets, accepted: Sequence[QueryCandidate]
    ) -> Iterator[ScreenProblem]:
        cell = self.plan.cell(candidate.task_type, candidate.difficulty)
        name = f"{candidate.task_type}, {candidate.difficulty}"
        if cell is None:
            yield ScreenProblem(ScreenReason.NOT_PLANNED, f"cell {name} is not in the plan")
            return
        taken = sum((other.task_type, other.difficulty) == cell.key for other in accepted)
        if taken >= cell.n:
            yield ScreenProblem(ScreenReason.CELL_FULL, f"the cell {name} has all of its {cell.n}")
        kind = self.plan.targets_of(cell)
        if not _KINDS[kind](targets):
            yield ScreenProblem(ScreenReason.TARGET_KIND, f"the targets are no {kind}")
        scope = self.plan.scope_of(cell)
        first = targets.paths()[0]
        if scope and not any(lies_in(first, place) for place in scope):
            yield ScreenProblem(ScreenReason.OUT_OF_SCOPE, f"{first} is not in {and_list(scope)}")
        for problem in RULES[cell.key].problems(targets.extent):
            yield ScreenProblem(ScreenReason.DIFFICULTY, f"{name}: {problem}")

    def _of_quotas(self, targets: Targets, accepted: Sequence[QueryCandidate]) -> Iterator[ScreenProblem]:
        for quota, taken in self.quota_counts(accepted):
            if quota.most is not None and taken >= quota.most and lies_in(targets.paths()[0], quota.path):
                yield ScreenProblem(ScreenReason.QUOTA_FULL, f"{quota.path} has all of its {quota.most}")

    def _missing(self, candidate: QueryCandidate, targets: Targets) -> Iterator[str]:
        for entity in candidate.target_entity_ids:
            if problem := self.source.entity_problem(entity):
                yield problem
        for span in targets.spans:
            if problem := self.source.range_problem(*span):
                yield problem
        for path in targets.files:
            if path not in self.source.files:
                yield f"{path}: no such file"

    def _of_text(self, candidate: QueryCandidate, targets: Targets) -> Iterator[ScreenProblem]:
        query, bounds = candidate.query_text, self.plan.bounds
        if leak := targets.leak_problem(query):
            yield ScreenProblem(ScreenReason.LEAK, leak)
        hard_overlap = bounds.hard_overlap if candidate.difficulty == "hard" else None
        if hard_overlap is not None and (problem := targets.overlap_problem(query, hard_overlap, self.source)):
            yield ScreenProblem(ScreenReason.LEXICAL_OVERLAP, problem)
        if candidate.difficulty != "easy":
            terms = found_by_grep(query, targets.places(self.source), self.source, bounds)
            if terms:
                yield ScreenProblem(ScreenReason.GREP_ONLY, grep_message(terms))

    def _of_pair(self, candidate: QueryCandidate, targets: Targets, earlier: QueryCandidate) -> Iterator[ScreenProblem]:
        bounds = self.plan.bounds
        shared, smaller = targets.shared_with(of_candidate(earlier), self.source)
        if shared > smaller * Fraction(str(bounds.target_overlap)):
            message = f"shares {count_noun(shared, 'targets')} with {earlier.query_id}; the smaller set has {smaller}"
            yield ScreenProblem(ScreenReason.TARGET_OVERLAP, message)
        common = jaccard(content_words(candidate.query_text), content_words(earlier.query_text))
        if common >= Fraction(str(bounds.text_overlap)):
            message = f"nearly repeats {earlier.query_id}: {earlier.query_text}"
            yield ScreenProblem(ScreenReason.NEAR_DUPLICATE, message)


def grep_message(terms: Sequence[str]) -> str:
    """Which terms answer a query by themselves."""
    return f"a search for {and_list([repr(term) for term in terms])} finds every target, so the query is easy"


def _in_markdown(entity: str) -> bool:
    return language_of(entity.partition(ENTITY_MARK)[0]) == "markdown"


_KINDS: dict[TargetKind, Callable[[Targets], bool]] = {
    "entities": lambda targets: bool(targets.entities) and not any(map(_in_markdown, targets.entities)),
    "files": lambda targets: not (targets.entities or targets.spans),
    "spans": lambda targets: bool(targets.spans) and not targets.entities,
    "headings": lambda targets: bool(targets.entities) and all(map(_in_markdown, targets.entities)),
}
