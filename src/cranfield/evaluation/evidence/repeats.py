"""Checks of results that repeat: one id everywhere, few ids, duplicates, one list for all queries, one list for two systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from cranfield.evaluation.evidence.inspected import Inspected, Sides
from cranfield.evaluation.evidence.values import Found
from cranfield.model import Answer
from cranfield.numbers import format_percent
from cranfield.words import and_list, first_of, n_of

FEWEST_QUERIES = 10
"""Lists below which a repetition proves nothing."""
FEWEST_LONG = 4
"""The same for equal lists of `LONG_LIST` results or more."""
LONG_LIST = 5
FEWEST_SHIFTED = 5
MOST_OWN = 4
"""Times as many queries match their neighbour as match what they expect."""
FEWEST_HITS = 30
FEWEST_IN_ANSWER = 4


def one_id(system: Inspected, limit: float) -> Iterator[Found]:
    """One id is a large part of all results, repeats in their lists, and is not what the queries expect."""
    if len(system.lists) < FEWEST_QUERIES:
        return
    counts: Counter[tuple[str, str | None]] = Counter()
    total = 0
    for each in system.lists:
        total += len(each.hits)
        expected = system.expected_of(each.query)
        counts.update(hit for hit in each.hits if hit[0] not in expected)
    if not counts:
        return
    (doc_id, _), count = counts.most_common(1)[0]
    # Once in each list, it may be a result that every query gets; an id that repeats in a list names no result.
    if count >= limit * total and count > len(system.lists):
        yield Found(
            f"{doc_id!r} is {count} of {total} results ({format_percent(count / total)}) of {len(system.lists)} "
            f"queries{_extraction(system)}",
            count=count,
            total=total,
        )


def few_ids(system: Inspected, limit: float) -> Iterator[Found]:
    """The results of many queries take few distinct ids, mostly as duplicates within a list."""
    hits = [hit for each in system.lists for hit in each.hits]
    if system.run is None or len(system.lists) < FEWEST_QUERIES or len(hits) < FEWEST_HITS:
        return
    n_repeated = sum(len(each.hits) - len(set(each.hits)) for each in system.lists)
    distinct = dict.fromkeys(doc_id for doc_id, _ in hits)
    if len(distinct) <= limit * len(hits) and 2 * n_repeated >= len(hits):
        yield Found(
            f"{len(hits)} results of {len(system.lists)} queries have {len(distinct)} distinct ids "
            f"({first_of(distinct)}){_extraction(system)}",
            count=len(distinct),
            total=len(hits),
        )


def repeated_ids(answer: Answer, config: Mapping[str, object]) -> Found | None:
    """One answer in which most results repeat an id; None for any other, and for a short one."""
    hits = [(hit.public_id, hit.public_span) for hit in answer.hits]
    distinct = dict.fromkeys(hits)
    if len(hits) < FEWEST_IN_ANSWER or 2 * len(distinct) > len(hits):
        return None
    ids = first_of(dict.fromkeys(doc_id for doc_id, _ in distinct))
    sentence = f"{len(hits)} results have {n_of(len(distinct), 'distinct ids')} ({ids}){_regex_of(config)}"
    return Found(sentence, count=len(distinct), total=len(hits))


def _extraction(system: Inspected) -> str:
    """The regular expression that read the ids, where there is one."""
    return "" if system.run is None else _regex_of(system.run.config)


def _regex_of(config: Mapping[str, object]) -> str:
    extract = config.get("extract")
    regex = extract.get("regex") if isinstance(extract, Mapping) else None
    return "" if regex is None else f"; the group of extract.regex may hold a part of the id only: {regex}"


def duplicates(system: Inspected, limit: float) -> Iterator[Found]:
    """A large part of the results repeat an id of their list, and were dropped."""
    dropped = int(system.ranking.n_duplicates.sum())
    total = dropped + int(system.ranking.n_returned.sum())
    if dropped and dropped >= limit * total:
        queries = system.ranking.n_duplicates > 0
        yield Found(
            f"{dropped} of {total} results ({format_percent(dropped / total)}) repeat an id of their list and are dropped",
            system.ids_of(queries),
            dropped,
            total,
        )


def same_list(system: Inspected, limit: float) -> Iterator[Found]:
    """Queries that expect different things get the same list."""
    if len(system.lists) < FEWEST_LONG:
        return
    groups: dict[tuple[tuple[str, str | None], ...], set[frozenset[str]]] = {}
    queries: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for each in system.lists:
        groups.setdefault(each.hits, set()).add(system.expected_of(each.query))
        queries[each.hits] += 1
    hits, truths = max(groups.items(), key=lambda group: len(group[1]))
    total = len({system.expected_of(each.query) for each in system.lists})
    fewest = FEWEST_LONG if len(hits) >= LONG_LIST else FEWEST_QUERIES
    if len(truths) >= max(fewest, limit * total):
        yield Found(
            f"{queries[hits]} of {len(system.lists)} queries get the same list "
            f"({first_of((doc_id for doc_id, _ in hits), 3)}): does the query reach the system?",
            count=queries[hits],
            total=len(system.lists),
        )


def shifted_answers(system: Inspected, limit: float) -> Iterator[Found]:
    """Queries have the results that the query before or after them expects, and not those that they expect."""
    lists = [each for each in system.lists if system.expected_of(each.query)]
    if len(lists) < FEWEST_SHIFTED or MOST_OWN * int(system.found.sum()) >= int(system.has_results.sum()):
        return
    for step, where in ((-1, "before"), (1, "after")):
        places = []
        for each in lists:
            if 0 <= (other := each.query + step) < len(system.query_ids):
                texts = system.expected_of(other) - system.expected_of(each.query)
                places += [each.query] if not texts.isdisjoint(system.texts_of(each.query)) else []
        n_own = sum(bool(system.found[each.query]) for each in lists)
        if len(places) >= max(FEWEST_SHIFTED, limit * len(lists), MOST_OWN * n_own):
            yield Found.of(
                f"{len(places)} of {len(lists)} queries have results that the query {where} them expects, and "
                f"{n_own} that they expect: answers are paired with the wrong queries",
                [system.query_ids[place] for place in places],
                len(lists),
            )


def same_results(sides: Sides, limit: float) -> Iterator[Found]:
    """Two systems whose runs differ return the same results on every query."""
    if len(sides.systems) < 2:
        return
    groups: dict[tuple[bytes, ...], list[Inspected]] = {}
    for system in sides.systems:
        if len(system.query_ids) >= limit:
            ranking = system.ranking
            columns = (ranking.query, ranking.rank, ranking.item, ranking.n_returned)
            groups.setdefault(tuple(np.ascontiguousarray(column).tobytes() for column in columns), []).append(system)
    for group in groups.values():
        by_lists: dict[object, list[Inspected]] = {}
        for system in group if len(group) > 1 else ():
            by_lists.setdefault(system.lists, []).append(system)
        for same in by_lists.values():
            if len(same) > 1 and len({system.run_digest for system in same}) > 1 and same[0].lists:
                names = [system.name for system in same]
                yield Found(
                    f"{and_list(names)} return the same results on every query: what differs between them has no effect",
                    count=len(names),
                    total=len(sides.systems),
                )
