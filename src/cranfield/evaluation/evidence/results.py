"""Checks of what came back: empty answers, missing queries, short lists, and results that match nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cranfield.evaluation.evidence.inspected import MOST_LISTS, Inspected, Sides, sample
from cranfield.evaluation.evidence.likeness import matching_form
from cranfield.evaluation.evidence.values import Found
from cranfield.matching.id_forms import query_form
from cranfield.model import Outcome
from cranfield.numbers import format_percent
from cranfield.patterns import any_match
from cranfield.words import first_of, n_of

FEWEST = 5
"""Queries below which a share of them proves nothing."""
FEWEST_ALL = 3
"""Queries that prove it where it is true of all of them."""
FEWEST_EMPTY = 2
FEWEST_IDENTICAL = 2
FEWEST_IDS = 3
FEWEST_RESULTS = 10
"""Expected ids and results below which their characters prove nothing."""
SHOWN_IDS = 2
NEARLY_ALL = 0.9
"""Share of empty answers that makes scores void."""


def empty_answers(system: Inspected, limit: float) -> Iterator[Found]:
    """Nearly all queries without a result."""
    total = int(system.expecting.sum())
    empty = system.expecting & ~system.has_results
    count = int(empty.sum())
    if total >= (FEWEST_ALL if count == total else FEWEST) and count >= limit * total:
        yield Found.of(
            f"{count} of {total} queries have no result: the score is that of an empty list",
            system.ids_of(empty),
            total,
        )


def empty_on_one_side(sides: Sides, limit: float) -> Iterator[Found]:
    """Many queries without a result of one system, for which another has results; nearly all are another check's."""
    if len(sides.systems) < 2:
        return
    systems = sides.systems
    answered = set().union(*(system.ids_of(system.has_results) for system in systems))
    for system in systems:
        total = int(system.expecting.sum())
        failed = {
            query_id
            for query_id, outcome in zip(system.query_ids, system.ranking.outcomes, strict=True)
            if outcome is not Outcome.EMPTY
        }
        empty = [
            query_id
            for query_id in system.ids_of(system.expecting & ~system.has_results)
            if query_id in answered and query_id not in failed
        ]
        if max(limit * total, FEWEST_EMPTY) <= len(empty) < (NEARLY_ALL * total if total >= FEWEST else total):
            yield Found.of(
                f"{system.name}: {len(empty)} of {total} queries have no result, and another system has some ({first_of(empty)})",
                empty,
                total,
            )


def cut_short(sides: Sides, _: float) -> Iterator[Found]:
    """A primary measure without a value, because the lists were cut before its cutoff."""
    primary = sides.primary
    for system in sides.systems:
        kept = system.ranking.cut_at
        is_deeper = kept is not None and primary.depth is not None and primary.depth > kept
        if is_deeper and primary in system.scored and not system.scored[primary].any():
            yield Found(
                f"{system.name}: {primary} has no value, because the lists were cut at {n_of(kept or 0, 'results')}; "
                f"ask for {primary.depth} (k)"
            )


def missing_queries(system: Inspected, limit: float) -> Iterator[Found]:
    """Queries that a run file has no line for."""
    if system.run is not None and system.run.says_empty:
        return
    total = int(system.expecting.sum())
    if Outcome.MISSING not in set(system.ranking.outcomes):
        return
    missing = np.array([outcome is Outcome.MISSING for outcome in system.ranking.outcomes]) & system.expecting
    count = int(missing.sum())
    if total < FEWEST or count < max(limit * total, 1) or count == total:
        return
    places = np.flatnonzero(missing)
    is_tail = count > 1 and bool((places == np.flatnonzero(system.expecting)[-count:]).all())
    cut = ": the last ones of the test set, as in a file that was cut short" if is_tail else ""
    yield Found.of(
        f"the run has no line for {count} of {total} queries ({first_of(system.ids_of(missing))}){cut}; they count as 0",
        system.ids_of(missing),
        total,
    )


def query_form_differs(system: Inspected, limit: float) -> Iterator[Found]:
    """Queries that a run answers under ids in another form than those of the test set, where they count as unanswered."""
    if not system.extra_queries:
        return
    outcomes = zip(system.query_ids, system.ranking.outcomes, strict=True)
    answered = {query_id for query_id, outcome in outcomes if outcome is not Outcome.MISSING}
    unanswered = [query_id for query_id in system.testset.query_ids if query_id not in answered]
    form = query_form(system.extra_queries, unanswered, limit)
    if form is None:
        return
    in_run, in_set = form.example
    yield Found.of(
        f"{n_of(len(form.names), 'queries')} of the test set have no answer, and would have one of the run if {form.what} "
        f"(in the run {in_run}, in the test set {in_set})",
        tuple(form.names.values()),
        len(system.testset.query_ids),
    )


def nothing_matched(system: Inspected, limit: float) -> Iterator[Found]:
    """No result of any query is among all that the test set judges: ids of another kind, or of another corpus."""
    queries = system.expecting & system.has_results
    if not queries.any() or system.joined.any() or not system.lists:
        return
    returned = {system.text_of(each.query, hit) for each in system.lists for hit in each.hits}
    if _known(system, returned):
        return
    form = matching_form(system, np.flatnonzero(queries))
    why = f"they would match if {form}" if form else _other_form(system, returned)
    if queries.sum() < limit and not why:
        return
    yield Found.of(
        f"no result of {n_of(int(queries.sum()), 'queries')} is anything that the test set judges: results such as "
        f"{_shown(sorted(returned))}; expected such as {_shown(sorted(system.universe))}{why and '; '}{why}",
        system.ids_of(queries),
        int(system.expecting.sum()),
    )


def _other_form(system: Inspected, returned: set[str]) -> str:
    """A character that every expected id has and no result has, or the reverse: proof of another form in a small test set."""
    if len(system.universe) < FEWEST_IDS or sum(len(each.hits) for each in system.lists) < FEWEST_RESULTS:
        return ""
    if system.patterns:
        return ""
    expected = [_characters(text) for text in system.universe]
    results = [_characters(text) for text in returned]
    for all_of, none_of, sentence in (
        (expected, results, "every expected id has {}, and no result has"),
        (results, expected, "every result has {}, and no expected id has"),
    ):
        found = set.intersection(*all_of) - set().union(*none_of)
        if found:
            return sentence.format(min(found))
    return ""


def _characters(text: str) -> set[str]:
    """The kinds of characters of an id: its punctuation and blanks, and whether it has letters."""
    marks = {repr(character) for character in text if not character.isalnum()}
    return marks | ({"a letter"} if any(character.isalpha() for character in text) else set())


def _known(system: Inspected, returned: set[str]) -> bool:
    """Whether a result of any query is what another query expects."""
    if returned & system.universe:
        return True
    return any(any_match(regex, returned) for regex in system.patterns)


def nothing_relevant(system: Inspected, limit: float) -> Iterator[Found]:
    """No relevant result on any query."""
    queries = system.expecting & system.has_results
    count = int(queries.sum())
    if count >= max(limit, 1) and not system.found.any():
        yield Found.of(
            f"no result of {count} queries is relevant; check the form of the ids, the corpus and the test set",
            system.ids_of(queries),
            int(system.expecting.sum()),
        )


def results_without_lines(system: Inspected, limit: float) -> Iterator[Found]:
    """Lines are expected, and nearly no result says which lines it is."""
    unplaced = system.ranking.unplaced
    if unplaced is None:
        return
    queries = (unplaced > 0) & system.has_results
    count, total = int(unplaced.sum()), int(system.ranking.n_returned[queries].sum())
    if total and count >= limit * total and int(queries.sum()) >= min(FEWEST, int(system.expecting.sum())):
        span = next((span for each in system.lists for _, span in each.hits if span), None)
        got = "none has a span" if span is None else f"a span such as {span!r} is no `12-40`"
        yield Found(
            f"{count} of {total} results do not say which lines they are, where lines are expected ({got})",
            system.ids_of(queries),
            count,
            total,
        )


def self_retrieval(system: Inspected, limit: float) -> Iterator[Found]:
    """Most queries get a result with their own id at rank 1, which is not what they expect."""
    places = sample(np.flatnonzero(system.has_results), MOST_LISTS)
    found = [
        query_id
        for place in places.tolist()
        if (query_id := system.query_ids[place]) not in system.expected_of(place)
        and any(hit.id == query_id for hit in system.ranking.top.get(query_id, ())[:1])
    ]
    if len(found) >= max(limit * len(places), FEWEST_IDENTICAL):
        yield Found.of(
            f"{len(found)} of {n_of(len(places), 'queries')} get themselves at rank 1, a result whose id is that of "
            "the query; leave such results out with --ignore-identical-ids",
            found,
            len(places),
        )


def short_lists(sides: Sides, limit: float) -> Iterator[Found]:
    """Lists of one system that are far shorter than those of another, within the depth of the primary measure."""
    depth = sides.primary.depth
    lengths: dict[str, float] = {}
    for system in sides.systems:
        returned = system.ranking.n_returned[system.ranking.n_returned > 0]
        if len(returned) >= FEWEST_ALL:
            lengths[system.name] = float((returned if depth is None else np.minimum(returned, depth)).mean())
    longest = max(lengths.values(), default=0.0)
    of = max(lengths, key=lengths.__getitem__, default="")
    for name, length in lengths.items():
        if length < limit * longest and longest > 1:
            within = "" if depth is None else f" among the first {depth}"
            yield Found(
                f"{name} returns {length:.1f} results a query{within}, and {of} {longest:.1f} "
                f"({format_percent(length / longest)}): was it asked for as many?",
                count=round(length),
                total=round(longest),
            )


def _shown(ids: list[str]) -> str:
    """The first ids, quoted."""
    shown = ", ".join(repr(text if len(text) <= 60 else text[:59] + "…") for text in ids[:SHOWN_IDS])
    return shown or n_of(0, "ids")
