"""Preferences: which of two result lists of a query is better, judged blind; the result is an exact sign test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cranfield.base.errors import UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun
from cranfield.books.store.schema import RaterKind
from cranfield.judging.pools.results import SystemResults, fields_of
from cranfield.model import Hit, Query
from cranfield.model.results import Record
from cranfield.stats.confusion import exact_interval
from cranfield.stats.paired import sign_test

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo

TIE, A_BETTER, B_BETTER = 0, 1, 2
"""Grades of a book of preferences."""
LISTS = "lists"
"""Id of the item of a query: it has one, the two lists."""


class PreferenceJudgment(Protocol):
    """A judgment of the store, as far as it counts here."""

    @property
    def query(self) -> str:
        """Id of the query."""
        ...

    @property
    def grade(self) -> float | None:
        """`TIE`, `A_BETTER` or `B_BETTER`; None for a skip."""
        ...

    @property
    def repeat_of(self) -> int | None:
        """The item that this one repeats."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceResult(Record):
    """How often each list was better. A query counts once: for the side that more of its raters prefer, or the final one."""

    book: str
    a: str
    b: str
    n: int
    """Queries with a preference or a tie."""
    wins_a: int
    wins_b: int
    ties: int
    """Also where as many raters prefer one side as the other."""
    n_votes: int
    p_value: float | None
    """Two-sided sign test; None without a query."""
    share_b: float | None
    """Share of queries that B wins, among those that are no tie; None where all are ties."""
    ci_low: float | None
    ci_high: float | None
    """Exact 95 % interval of that share."""


def preference_pool(
    name: str, queries: Iterable[Query], a: SystemResults, b: SystemResults, depth: int = 10, seed: int = 0
) -> Pool:
    """Make a pool of one item a query: the first results of two runs. Queries with the same list from both are left out.

    Raises:
        UsageError: nothing is left to compare.
    """
    kept, items = [], []
    for query in queries:
        fields: dict[str, object] = {
            side: [_record(hit) for hit in system.top(query.id, depth)] for side, system in (("a", a), ("b", b))
        }
        if fields["a"] == fields["b"]:
            continue
        kept.append(PooledQuery(id=query.id, text=query.text, need=query.need, notes=query.notes))
        items.append(PooledItem(query=query.id, doc=LISTS, fields=fields))
    if not items:
        raise UsageError(
            f"{a.name} and {b.name} return the same first {depth} results for every query",
            hint="compare more results, with --depth",
        )
    runs = tuple(PooledRun(name=system.name, digest=system.digest) for system in (a, b))
    return Pool(name=name, method="depth", depth=depth, seed=seed, runs=runs, queries=tuple(kept), items=tuple(items))


def _record(hit: Hit) -> dict[str, object]:
    """What is shown of a result: no rank, score or name of a run."""
    return {"doc": hit.id, **fields_of(hit)}


def run_names(source: Mapping[str, object]) -> tuple[str, str]:
    """Names of the runs whose lists are `a` and `b`, as the book's source has them."""
    runs = source.get("runs")
    names = [str(run["name"]) for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
    return (names[0], names[1]) if len(names) == 2 else ("a", "b")


def book_preference(store: Store, book: BookInfo) -> PreferenceResult:
    """Count the preferences of a book: those of persons, and the final ones."""
    finals = {item.query: item.final for item in store.reading.items(book.id) if item.final is not None}
    ratings = store.reading.ratings(book.id, [RaterKind.PERSON])
    return preference_result(run_names(book.source), ratings, finals, book=book.name)


SIGNS = {TIE: 0, A_BETTER: -1, B_BETTER: 1}


def preference_result(
    runs: Sequence[str],
    ratings: Iterable[PreferenceJudgment],
    finals: Mapping[str, float] | None = None,
    *,
    book: str = "",
) -> PreferenceResult:
    """Count the preferences of persons; hidden repeats do not count.

    Args:
        runs: whose lists are `a` and `b`.
        ratings: of a book of preferences.
        finals: by query, what was adjudicated: it stands for the raters' preferences.
        book: name of the book.

    Example:
        >>> preference_result(["old", "new"], []).n
        0
    """
    votes: Mapping[str, list[int]] = defaultdict(list)
    for row in ratings:
        if row.grade is not None and row.repeat_of is None:
            votes[row.query].append(SIGNS[int(row.grade)])
    by_query = {query: (sum(each) > 0) - (sum(each) < 0) for query, each in votes.items()}
    signs = [*(by_query | {query: SIGNS[int(grade)] for query, grade in (finals or {}).items()}).values()]
    wins_a, wins_b = signs.count(-1), signs.count(1)
    decided = wins_a + wins_b
    low, high = exact_interval(wins_b, decided) if decided else (None, None)
    test = sign_test([float(sign) for sign in signs])
    return PreferenceResult(
        book=book,
        a=runs[0],
        b=runs[1],
        n=len(signs),
        wins_a=wins_a,
        wins_b=wins_b,
        ties=signs.count(0),
        n_votes=sum(map(len, votes.values())),
        p_value=test.p_two_sided,
        share_b=wins_b / decided if decided else None,
        ci_low=low,
        ci_high=high,
    )
