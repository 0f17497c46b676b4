"""How much better a system could be: with what it found in the best order, and with all that was expected; and what became of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from cranfield.evaluation.causes import why_not_parted
from cranfield.evaluation.evaluate import SAME, ExpectedItemsByQuery
from cranfield.evaluation.values import Evaluation
from cranfield.measures import Measure, compute
from cranfield.measures.catalogue import sign_of
from cranfield.ranking.matching.id_forms import folded
from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking, ResultState

MAX_OF_ITEM = 1_000
"""Documents of one expected item that an ideal list holds."""
MAX_SPELLED = 200_000
"""Ids returned, up to which other spellings are looked for."""
SHOWN = 20
"""Queries and documents that a result names, those with most to gain first."""


class Failure(StrEnum):
    """What keeps a query from its best value."""

    ORDER = "order"
    """Most of it is the order: what was expected was found, and stands too low."""
    RECALL = "recall"
    """Most of it was not found."""


class Absent(StrEnum):
    """What became of a relevant document that is not among the results that count."""

    BELOW = "below the cutoff"
    OTHER_QUERIES = "returned for other queries"
    """It is in the index, and no filter of all queries leaves it out."""
    OTHER_FORM = "returned under another spelling of its id"
    NEVER = "returned for no query"
    """It may not be in the index, be left out by a filter, or stand below the lists."""


@dataclass(frozen=True, slots=True)
class QueryHeadroom:
    """What one query could gain."""

    query: str
    value: float
    reordered: float
    """Its value if all that was found stood in the best order."""
    ideal: float
    """Its value if all that was expected was found, in the best order."""
    failure: Failure


@dataclass(frozen=True, slots=True)
class AbsentDocument:
    """A relevant document that is not among the results that count."""

    query: str
    doc: str
    grade: float
    kind: Absent
    rank: int | None
    """Where it stands, if below the cutoff."""
    form: str
    """The id that is returned in its place, where only the spelling differs."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much better one system could be on one measure."""

    measure: Measure
    n: int
    """Queries with a value, and with an ideal one: those whose expected documents are counted."""
    mean: float | None
    reordered: float | None
    """Mean if all that each list holds stood in the best order: what another ranking of the same results can reach."""
    ideal: float | None
    """Mean if all that was expected was found, in the best order."""
    failures: Mapping[Failure, int]
    """How many queries have most to gain from each."""
    queries: tuple[QueryHeadroom, ...]
    """Those with most to gain, at most `SHOWN`."""
    absent: Mapping[Absent, int]
    """Relevant documents that are not among the results that count, by what became of them; empty without the run itself."""
    documents: tuple[AbsentDocument, ...]
    """Some of them, at most `SHOWN`: those that a spelling or the index may explain first, of the highest grade first."""


def headroom_of(evaluation: Evaluation, measure: Measure) -> Headroom | None:
    """How much better a system could be on a measure; None for one that is not a measure of judged documents.

    The list kept counts as what was found: to look deeper, collect more results.
    """
    if why_not_parted(measure):
        return None
    ranking = evaluation.ranking
    columns = [_values(measure, each) for each in (ranking, reordered(ranking), ideal(ranking))]
    known = np.array(~np.isnan(np.stack(columns)).any(axis=0))
    known[ranking.expected_query[ranking.expected_count == UNKNOWN_COUNT]] = False
    value, found, best = (column[known] for column in columns)
    sign = sign_of(measure)
    gains = sign * (best - value)
    by_order = sign * (found - value) >= gains / 2
    open_queries = gains > SAME
    names = np.array(evaluation.query_ids, dtype=object)[known]
    failure = {Failure.ORDER: by_order & open_queries, Failure.RECALL: ~by_order & open_queries}
    most = [place for place in np.argsort(-gains, kind="stable").tolist() if open_queries[place]][:SHOWN]
    documents = sorted(_absent(evaluation, measure), key=lambda each: (-list(Absent).index(each.kind), -each.grade))
    mean, reached, top = (float(column.mean()) if len(column) else None for column in (value, found, best))
    return Headroom(
        measure=measure,
        n=int(known.sum()),
        mean=mean,
        reordered=reached,
        ideal=top,
        failures={kind: int(rows.sum()) for kind, rows in failure.items()},
        queries=tuple(
            QueryHeadroom(
                str(names[place]),
                float(value[place]),
                float(found[place]),
                float(best[place]),
                Failure.ORDER if by_order[place] else Failure.RECALL,
            )
            for place in most
        ),
        absent={kind: n for kind in Absent if (n := sum(each.kind is kind for each in documents))},
        documents=tuple(documents[:SHOWN]),
    )


def _values(measure: Measure, ranking: Ranking) -> FloatQ:
    values, scored, _ = compute(measure, ranking)
    return np.where(scored, values, np.nan)


def reordered(ranking: Ranking) -> Ranking:
    """The judged results of each list in the best order, at its top; as many results as before."""
    order = np.lexsort((ranking.rank, -ranking.level, -ranking.gain, ranking.query))
    first = np.searchsorted(ranking.query, np.arange(ranking.n_queries))
    rank = (np.arange(len(order)) - first[ranking.query] + 1).astype(np.int32)  # rows stay sorted by query
    columns = {name: getattr(ranking, name)[order] for name in ("gain", "level", "state", "item")}
    covered = None
    if ranking.covered is not None:
        covered = np.where(ranking.covered > 0, 1, 0).astype(np.int32)
    return replace(
        ranking,
        **columns,
        rank=rank,
        tie_first=rank,
        tie_last=rank,
        covered=covered,
        aspects=None,
        texts=None,
        tokens=None,
    )


def ideal(ranking: Ranking) -> Ranking:
    """A list of all expected items, best first, each as often as it is expected; once where that is not known."""
    counted = np.where(ranking.expected_count == UNKNOWN_COUNT, 1, np.minimum(ranking.expected_count, MAX_OF_ITEM))
    worth = (ranking.expected_gain > 0) | (ranking.expected_level >= 1)
    entries = np.repeat(np.arange(len(counted)), np.where(worth, counted, 0))
    entries = entries[
        np.lexsort((-ranking.expected_level[entries], -ranking.expected_gain[entries], ranking.expected_query[entries]))
    ]
    query = ranking.expected_query[entries]
    first = np.searchsorted(query, np.arange(ranking.n_queries))
    rank = (np.arange(len(query)) - first[query] + 1).astype(np.int32)
    n = np.bincount(query, minlength=ranking.n_queries).astype(np.int32)
    return replace(
        ranking,
        query=query,
        rank=rank,
        gain=ranking.expected_gain[entries],
        level=ranking.expected_level[entries],
        state=np.full(len(query), ResultState.JUDGED, dtype=np.int8),
        item=(entries - ranking.expected_start[query]).astype(np.int32),
        tie_first=rank,
        tie_last=rank,
        n_returned=np.maximum(ranking.n_returned, n),
        covered=None if ranking.covered is None else np.where(worth, 1, 0).astype(np.int32),
        aspects=None,
        texts=None,
        tokens=None,
    )


def _absent(evaluation: Evaluation, measure: Measure) -> Iterator[AbsentDocument]:
    """The relevant documents of each query that are not among the results that count."""
    run = evaluation.run
    if run is None:
        return
    returned = Counter(doc for answer in run.answers.values() for doc in {hit.id for hit in answer.hits})
    spelled = {folded(doc): doc for doc in returned} if len(returned) <= MAX_SPELLED else {}
    for query_id, items in ExpectedItemsByQuery(evaluation).items():
        if not evaluation.testset.grades.get(query_id):
            continue  # patterns and places are no ids that could be looked for
        for item in items:
            doc, grade, rank = item.name, float(item.grade), item.rank
            if rank and (measure.depth is None or rank <= measure.depth):
                continue
            if rank:
                yield AbsentDocument(query_id, doc, grade, Absent.BELOW, rank, "")
            elif returned[doc]:
                yield AbsentDocument(query_id, doc, grade, Absent.OTHER_QUERIES, None, "")
            else:
                other = spelled.get(folded(doc), "")
                yield AbsentDocument(query_id, doc, grade, Absent.OTHER_FORM if other else Absent.NEVER, None, other)
