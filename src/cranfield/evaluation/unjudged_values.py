"""What the judgments of unjudged results can make of a verdict, as a comparison holds it; `unjudged` computes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.numbers import format_count, format_percent
from cranfield.words import and_list, n_of


class UnjudgedKind(StrEnum):
    """What the judgments of unjudged results can make of a verdict."""

    HOLDS = "holds"
    """No grades bring another verdict."""
    CAN_TURN = "can_turn"
    UNKNOWN = "unknown"
    """No grades were found that bring another verdict, and none are excluded."""
    NO_BOUND = "no_bound"
    """The measure or the convention has no joint bounds, or there is too much to compute."""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The unjudged results of two systems beside the verdict on them."""

    kind: UnjudgedKind
    n_results: int | None
    """Unjudged documents within the cutoff of either list; None without bounds."""
    n_queries: int | None
    """Queries that have them."""
    n_judgments: int | None = None
    """The fewest judgments found that turn the verdict, if all turn out that way."""
    verdict: VerdictCode | None = None
    """The verdict that they bring."""
    why: str = ""
    """Why there are no bounds."""
    low_shares: tuple[str, ...] = ()
    """Without bounds: the judged share of each side below the limit, `B: Judged@10 14.0 %`."""
    limit: float | None = None
    """The smallest judged share without a caveat."""
    of: str = ""
    """`over all queries`, where classes decide the verdict."""
    command: str = ""
    """The command that makes a pool of these results."""
    best: tuple[str, ...] = ()
    """Of three systems and more: those that are best with these judgments; empty where no two differ significantly then."""

    sentence: str = field(init=False, default="")
    """One sentence for reports; empty where there is nothing to say."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def _sentence(self) -> str:
        if self.kind is UnjudgedKind.NO_BOUND:
            if not self.low_shares:
                return ""
            shares = f"{' and '.join(self.low_shares)}, under {format_percent(self.limit)}"
            return f"most results are unjudged ({shares}), and what they can make of the verdict is not bounded: {self.why}"
        lead = f"{self.of}: " if self.of else ""
        among = f"{n_of(self.n_results or 0, 'unjudged results', format_count)} in {n_of(self.n_queries or 0, 'queries', format_count)}"
        if self.kind is UnjudgedKind.HOLDS:
            return f"{lead}the verdict holds whatever the unjudged results are ({among})"
        if self.n_judgments is None:
            return f"{lead}no judgments were found that turn the verdict, and none are excluded ({among})"
        judgments = n_of(self.n_judgments, "judgments", format_count)
        if self.verdict is not None:
            return f"{lead}{judgments} could turn it to {self.verdict.text} ({among})"
        best = f"{and_list(self.best)} {'are' if len(self.best) > 1 else 'is'} best" if self.best else "none is best"
        return f"{judgments} could turn it: {best} then ({among})"

    @property
    def is_doubt(self) -> bool:
        """Whether it limits the verdict."""
        return self.kind is not UnjudgedKind.HOLDS
