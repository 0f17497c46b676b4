"""Evidence checks of one run: empty and short answers, missing queries, ids that match nothing, repetitions, order, limits, age."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cranfield.base.numbers import format_duration, format_percent, format_value
from cranfield.base.patterns import any_match
from cranfield.base.words import and_list, count_noun, join_first
from cranfield.evaluation.absence import judged_share, without_judgment, without_relevant
from cranfield.evaluation.evidence.likeness import matching_form
from cranfield.evaluation.evidence.values import MAX_LISTS, Found, Inspected, Scored, Sides, sample
from cranfield.model import Absence, Answer, CallLog, NoteKind, Outcome, Passage
from cranfield.ranking.matching.criteria import expected_fields
from cranfield.ranking.matching.id_forms import query_form

if TYPE_CHECKING:
    from cranfield.model.answer_rule import AnswerRule


FEWEST = 5
"""Queries below which a share of them proves nothing."""
MIN_ALL = 3
"""Queries that prove it where it is true of all of them."""
MIN_EMPTY = 2
MIN_IDENTICAL = 2
MIN_IDS = 3
MIN_RESULTS = 10
"""Expected ids and results below which their characters prove nothing."""
SHOWN_IDS = 2
NEARLY_ALL = 0.9
"""Share of empty answers that makes scores void."""


def empty_answers(system: Inspected, limit: float) -> Iterator[Found]:
    """Nearly all queries without a result."""
    total = int(system.expecting.sum())
    empty = system.expecting & ~system.has_results
    count = int(empty.sum())
    if total >= (MIN_ALL if count == total else FEWEST) and count >= limit * total:
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
        if max(limit * total, MIN_EMPTY) <= len(empty) < (NEARLY_ALL * total if total >= FEWEST else total):
            yield Found.of(
                f"{system.name}: {len(empty)} of {total} queries have no result, and another system has some ({join_first(empty)})",
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
                f"{system.name}: {primary} has no value, because the lists were cut at {count_noun(kept or 0, 'results')}; "
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
        f"the run has no line for {count} of {total} queries ({join_first(system.ids_of(missing))}){cut}; they count as 0",
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
        f"{count_noun(len(form.names), 'queries')} of the test set have no answer, but would match an answer of the run if {form.what} "
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
        f"no result of {count_noun(int(queries.sum()), 'queries')} is anything that the test set judges: results such as "
        f"{_shown(sorted(returned))}; expected such as {_shown(sorted(system.universe))}{why and '; '}{why}",
        system.ids_of(queries),
        int(system.expecting.sum()),
    )


def _other_form(system: Inspected, returned: set[str]) -> str:
    """A character that every expected id has and no result has, or the reverse: proof of another form in a small test set."""
    if len(system.universe) < MIN_IDS or sum(len(each.hits) for each in system.lists) < MIN_RESULTS:
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
    """Lines, passages or fields are expected, and nearly no result has what they are compared with."""
    unplaced = system.ranking.unplaced
    if unplaced is None:
        return
    queries = (unplaced > 0) & system.has_results
    count, total = int(unplaced.sum()), int(system.ranking.n_returned[queries].sum())
    if total and count >= limit * total and int(queries.sum()) >= min(FEWEST, int(system.expecting.sum())):
        if fields := expected_fields(system.testset):
            yield Found(
                f"{count} of {total} results lack a field that is expected ({and_list(fields)}); `result_fields` of a "
                "system's `extract` keeps fields of its results",
                system.ids_of(queries),
                count,
                total,
            )
            return
        if any(isinstance(each, Passage) for targets in system.testset.targets.values() for each in targets):
            yield Found(
                f"{count} of {total} results have no text and do not say their characters or page, so that no passage can be "
                "found in them; `result_fields` of a system's `extract` keeps fields of its results",
                system.ids_of(queries),
                count,
                total,
            )
            return
        span = next((span for each in system.lists for _, span in each.hits if span), None)
        got = "none has a span" if span is None else f"a span such as {span!r} is not of the form `12-40`"
        yield Found(
            f"{count} of {total} results have no line numbers, but lines are expected ({got})",
            system.ids_of(queries),
            count,
            total,
        )


def self_retrieval(system: Inspected, limit: float) -> Iterator[Found]:
    """Most queries get a result with their own id at rank 1, which is not what they expect."""
    places = sample(np.flatnonzero(system.has_results), MAX_LISTS)
    found = [
        query_id
        for place in places.tolist()
        if (query_id := system.query_ids[place]) not in system.expected_of(place)
        and any(hit.id == query_id for hit in system.ranking.top.get(query_id, ())[:1])
    ]
    if len(found) >= max(limit * len(places), MIN_IDENTICAL):
        yield Found.of(
            f"{len(found)} of {count_noun(len(places), 'queries')} have at rank 1 a result whose id is that of "
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
        if len(returned) >= MIN_ALL:
            lengths[system.name] = float((returned if depth is None else np.minimum(returned, depth)).mean())
    longest = max(lengths.values(), default=0.0)
    of = max(lengths, key=lengths.__getitem__, default="")
    for name, length in lengths.items():
        if length < limit * longest and longest > 1:
            within = "" if depth is None else f" among the first {depth}"
            yield Found(
                f"{name} returns {length:.1f} results per query{within}, and {of} {longest:.1f} "
                f"({format_percent(length / longest)}): check that the same number was requested",
                count=round(length),
                total=round(longest),
            )


def _shown(ids: list[str]) -> str:
    """The first ids, quoted."""
    shown = ", ".join(repr(text if len(text) <= 60 else text[:59] + "…") for text in ids[:SHOWN_IDS])
    return shown or count_noun(0, "ids")


MIN_REPEATED_QUERIES = 10
"""Lists below which a repetition proves nothing."""
MIN_LONG = 4
"""The same for equal lists of `LONG_LIST` results or more."""
LONG_LIST = 5
MIN_SHIFTED = 5
MAX_OWN = 4
"""Times as many queries match their neighbour as match what they expect."""
MIN_HITS = 30
MIN_IN_ANSWER = 4


def one_id(system: Inspected, limit: float) -> Iterator[Found]:
    """One id is a large part of all results, repeats in their lists, and is not what the queries expect."""
    if len(system.lists) < MIN_REPEATED_QUERIES:
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
    if system.run is None or len(system.lists) < MIN_REPEATED_QUERIES or len(hits) < MIN_HITS:
        return
    n_repeated = sum(len(each.hits) - len(set(each.hits)) for each in system.lists)
    distinct = dict.fromkeys(doc_id for doc_id, _ in hits)
    if len(distinct) <= limit * len(hits) and 2 * n_repeated >= len(hits):
        yield Found(
            f"{len(hits)} results of {len(system.lists)} queries have {len(distinct)} distinct ids "
            f"({join_first(distinct)}){_extraction(system)}",
            count=len(distinct),
            total=len(hits),
        )


def repeated_ids(answer: Answer, config: Mapping[str, object]) -> Found | None:
    """One answer in which most results repeat an id; None for any other, and for a short one."""
    hits = [(hit.public_id, hit.public_span) for hit in answer.hits]
    distinct = dict.fromkeys(hits)
    if len(hits) < MIN_IN_ANSWER or 2 * len(distinct) > len(hits):
        return None
    ids = join_first(dict.fromkeys(doc_id for doc_id, _ in distinct))
    sentence = f"{len(hits)} results have {count_noun(len(distinct), 'distinct ids')} ({ids}){_regex_of(config)}"
    return Found(sentence, count=len(distinct), total=len(hits))


def _extraction(system: Inspected) -> str:
    """The regular expression that read the ids, where there is one."""
    return "" if system.run is None else _regex_of(system.run.config)


def _regex_of(config: Mapping[str, object]) -> str:
    extract = config.get("extract")
    regex = extract.get("regex") if isinstance(extract, Mapping) else None
    return "" if regex is None else f"; the group of extract.regex may match only a part of the id: {regex}"


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
    if len(system.lists) < MIN_LONG:
        return
    groups: dict[tuple[tuple[str, str | None], ...], set[frozenset[str]]] = {}
    queries: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for each in system.lists:
        groups.setdefault(each.hits, set()).add(system.expected_of(each.query))
        queries[each.hits] += 1
    hits, truths = max(groups.items(), key=lambda group: len(group[1]))
    total = len({system.expected_of(each.query) for each in system.lists})
    fewest = MIN_LONG if len(hits) >= LONG_LIST else MIN_REPEATED_QUERIES
    if len(truths) >= max(fewest, limit * total):
        yield Found(
            f"{queries[hits]} of {len(system.lists)} queries get the same list "
            f"({join_first((doc_id for doc_id, _ in hits), 3)}): does the query reach the system?",
            count=queries[hits],
            total=len(system.lists),
        )


def shifted_answers(system: Inspected, limit: float) -> Iterator[Found]:
    """Queries have the results that the query before or after them expects, and not those that they expect."""
    lists = [each for each in system.lists if system.expected_of(each.query)]
    if len(lists) < MIN_SHIFTED or MAX_OWN * int(system.found.sum()) >= int(system.has_results.sum()):
        return
    for step, where in ((-1, "before"), (1, "after")):
        places = []
        for each in lists:
            if 0 <= (other := each.query + step) < len(system.query_ids):
                texts = system.expected_of(other) - system.expected_of(each.query)
                places += [each.query] if not texts.isdisjoint(system.texts_of(each.query)) else []
        n_own = sum(bool(system.found[each.query]) for each in lists)
        if len(places) >= max(MIN_SHIFTED, limit * len(lists), MAX_OWN * n_own):
            yield Found.of(
                f"{len(places)} of {len(lists)} queries have results expected by the query {where} them, and "
                f"{n_own} have results that they expect: answers are paired with the wrong queries",
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
                    f"{and_list(names)} return the same results on every query: their difference has no effect",
                    count=len(names),
                    total=len(sides.systems),
                )


DECIMALS = 12
"""Decimals to which a share is rounded before it is compared with a limit."""


def failed_queries(system: Scored, limit: float) -> Iterator[Found]:
    """More failed or unanswered queries than the limit."""
    outcomes = system.ranking.outcomes
    # A run file has no line for an empty answer, so a missing query is no failure there.
    is_collected = system.run is not None and system.run.says_empty
    if not any(outcome.is_failure or outcome is Outcome.MISSING for outcome in set(outcomes)):
        return
    bad = [
        query_id
        for query_id, outcome in zip(system.query_ids, outcomes, strict=True)
        if outcome.is_failure or (is_collected and outcome is Outcome.MISSING)
    ]
    if bad and len(bad) / len(outcomes) > limit:
        cause = system.ranking.why_failed(system.run)
        why = f": {cause}" if cause else ""
        yield Found.of(
            f"{len(bad)} of {len(outcomes)} queries failed or have no answer "
            f"({format_percent(len(bad) / len(outcomes))}){why}; the limit is {format_percent(limit)} (limits.max_failed_share)",
            bad,
            len(outcomes),
        )


def low_judged_share(system: Inspected, limit: float) -> Iterator[Found]:
    """A smaller judged share than the limit."""
    share = judged_share(system.ranking, system.depth)
    if share.mean is not None and round(share.mean, DECIMALS) < limit:
        of = f"{share.measure} is {format_percent(share.mean)}"
        yield Found(f"{of}; the limit is {format_percent(limit)} (limits.min_judged_share)")


def mostly_unjudged(sides: Sides, limit: float) -> Iterator[Found]:
    """A judged share with which what is unjudged can matter more than what is judged; of two systems see `Comparison.unjudged`."""
    found = [(system, judged_share(system.ranking, system.depth)) for system in sides.systems]
    shares = {system.name: share.mean for system, share in found}
    if len(found) != 2 and (sentence := mostly_unjudged_sentence(found[0][1].measure, shares, limit)):
        yield Found(sentence)


def mostly_unjudged_sentence(measure: object, shares: Mapping[str, float | None], limit: float) -> str:
    """Sentence that names the systems whose judged share is under the limit; empty where none is."""
    low = {name: share for name, share in shares.items() if share is not None and round(share, DECIMALS) < limit}
    if not low:
        return ""
    named = ", ".join(f"{name} {format_percent(share)}" for name, share in low.items())
    what = f"{measure} is under {format_percent(limit)} ({named})"
    if len(low) == 1:
        ((name, share),) = low.items()
        what = f"{name}: {measure} is {format_percent(share)}, under {format_percent(limit)}"
    return f"{what}: judgments of the other results can change the figures"


def unpaired_queries(sides: Sides, limit: float) -> Iterator[Found]:
    """More queries with a value for some systems only than the limit."""
    primary, systems = sides.primary, sides.systems
    if len(systems) < 2:
        return
    with_value = [
        {system.query_ids[place] for place in np.flatnonzero(system.scored[primary]).tolist()} for system in systems
    ]
    total = len(set().union(*(system.query_ids for system in systems)))
    some, every = set().union(*with_value), set(with_value[0]).intersection(*with_value[1:])
    lost = tuple(sorted(some - every))
    if lost and len(lost) / total > limit:
        where = "on one side only" if len(systems) == 2 else "for some systems only"
        yield Found.of(
            f"{len(lost)} of {total} queries have a value of {primary} {where} ({format_percent(len(lost) / total)}); "
            f"the limit is {format_percent(limit)} (limits.max_failed_share)",
            lost,
            total,
        )


def never_judged_queries(sides: Sides, threshold: float) -> Iterator[Found]:
    """More queries without a judgment than the share: the means are of the others."""
    testset = sides.systems[0].testset
    absent, total = tuple(without_judgment(testset)), len(testset.queries)
    if absent and len(absent) / total > threshold:
        yield Found.of(
            f"{len(absent)} of {total} queries have no judgment ({format_percent(len(absent) / total)}): "
            "the means are of the others",
            absent,
            total,
        )


def nothing_judged(sides: Sides, limit: float) -> Iterator[Found]:
    """As many queries as the share have grades under 0 only, as in a starter test set: their zeros are no scores."""
    system = sides.systems[0]
    ranking = system.ranking
    places = without_relevant(ranking)[Absence.ONLY_POOLED]
    mask = np.zeros(ranking.n_queries, dtype=np.bool_)
    mask[places] = True
    pooled = system.ids_of(mask)
    n_queries = int((~ranking.is_negative).sum())
    if pooled and len(pooled) / n_queries >= limit:
        yield Found.of(
            f"nothing is judged yet: {len(pooled)} of {count_noun(n_queries, 'queries')} have no grade of 0 or more, so their values of 0 "
            "are not informative; judge results, then score them",
            pooled,
            n_queries,
        )


def identical_runs(sides: Sides, _limit: float) -> Iterator[Found]:
    """A sentence for each group of systems whose runs have one digest: usually a file or a setting named twice."""
    by_digest: dict[str, list[str]] = {}
    for system in sides.systems:
        by_digest.setdefault(system.run_digest, []).append(system.name)
    for digest, names in by_digest.items():
        if digest and len(names) > 1:
            yield Found(
                f"the runs of {and_list(names)} are identical ({digest[:19]}…): check that they come from different systems",
                count=len(names),
                total=len(sides.systems),
            )


MIN_ORDERED_QUERIES = 10
MIN_ORDERED_RESULTS = 30
"""Relevant results below which their mean place proves nothing."""
LEAST_LENGTH = 5
"""Results that a list must have for a place in it to mean something."""


def tied_scores(system: Inspected, limit: float) -> Iterator[Found]:
    """All results of a query have one score, so that the order is that of the document ids."""
    ranking = system.ranking
    if ranking.convention.ties == "given" or not len(ranking.query):
        return
    length = ranking.n_returned[ranking.query]
    whole = (length > 1) & (ranking.tie_first == 1) & (ranking.tie_last >= length)
    if 2 * int(whole.sum()) < len(whole):
        return
    several = np.flatnonzero(np.bincount(ranking.query[length > 1], minlength=ranking.n_queries))
    tied = np.flatnonzero(np.bincount(ranking.query[whole], minlength=ranking.n_queries))
    if len(several) >= MIN_ORDERED_QUERIES and len(tied) >= limit * len(several):
        yield Found.of(
            f"all results of a query have the same score in {len(tied)} of {len(several)} queries: the order "
            "is that of the document ids, not of the system",
            [system.query_ids[place] for place in tied.tolist()],
            len(several),
        )


def reversed_order(system: Inspected, limit: float) -> Iterator[Found]:
    """Relevant results are nearer to the end of their list than to its beginning, beyond chance."""
    ranking = system.ranking
    length = ranking.n_returned[ranking.query]
    rows = (
        ((ranking.level >= 1) | (ranking.gain > 0)) & (length >= LEAST_LENGTH) & (ranking.tie_first == ranking.tie_last)
    )
    if rows.sum() < MIN_ORDERED_RESULTS:
        return
    place = (ranking.rank[rows] - 0.5) / length[rows]
    # Uniform on 0 to 1 where the order says nothing: variance 1/12.
    z = (float(place.mean()) - 0.5) * math.sqrt(12 * len(place))
    if z >= limit:
        yield Found(
            f"{len(place)} relevant results are at {format_percent(float(place.mean()))} of the length of "
            "their list on average, near its end: check whether the scores are distances, where lower is better",
            count=len(place),
            total=len(place),
        )


def judged_gap(sides: Sides, limit: float) -> Iterator[Found]:
    """The results of one system are judged far more often than those of another."""
    first = sides.systems[0].ranking
    if not ((first.expected_level < 1) & (first.expected_gain == 0)).any() or first.closed_world.all():
        return  # only relevant documents are judged: a better system has more judged results
    found = {system.name: judged_share(system.ranking, sides.primary.depth) for system in sides.systems}
    shares = {
        name: each.mean for name, each in found.items() if each.mean is not None and each.n >= MIN_ORDERED_QUERIES
    }
    if len(shares) < 2:
        return
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    if shares[high] - shares[low] >= limit:
        yield Found(
            f"{found[high].measure} is {format_value(shares[high])} for {high} and {format_value(shares[low])} for {low}: unjudged "
            f"results count as not relevant, and {low} has more of them",
        )


HOUR_S = 3600
VERIFIED_H = 1
"""Hours for which resumed answers of a system whose `depends` is unchanged are as good as new."""


def kept_answers(system: Scored, limit: float) -> Iterator[Found]:
    """More answers than the limit that the system was not asked for: they were kept from an earlier collection."""
    logs = _logs(system)
    is_file = system.run is not None and "run" in system.run.config  # a run file is not asked
    kept = {query_id: log for query_id, log in logs.items() if log.cached and not (is_file and log.age_s is None)}
    if len(kept) > limit:
        yield Found.of(
            f"{len(kept)} of {len(system.query_ids)} answers were kept from an earlier run{_since(kept)}, and "
            "not requested again",
            kept,
            len(system.query_ids),
        )


def resumed_answers(system: Scored, limit_h: float) -> Iterator[Found]:
    """Answers of an interrupted call that were older than the limit when it was resumed.

    A journal is resumed only where what the system depends on is unchanged; without `depends` that is unknown.
    """
    config = system.run.config if system.run is not None else {}
    limit_s = HOUR_S * (max(limit_h, VERIFIED_H) if {"depends", "run"} & config.keys() else limit_h)
    old = {
        query_id: log
        for query_id, log in _logs(system).items()
        if not log.cached and log.age_s is not None and log.age_s > limit_s
    }
    if old:
        yield Found.of(
            f"{len(old)} of {len(system.query_ids)} answers are of the interrupted part of the run{_since(old)}: "
            "the system may have changed since",
            old,
            len(system.query_ids),
        )


def changed_meanwhile(system: Scored, _limit: float) -> Iterator[Found]:
    """What the system depends on was another when the last query had been sent than before the first."""
    if system.run is not None and system.run.changed:
        yield Found(
            "its dependencies (`depends`) changed while the queries were sent: the answers may come from two versions of its index",
            count=1,
            total=1,
        )


def _logs(system: Scored) -> Mapping[str, CallLog]:
    logs = system.run.logs if system.run is not None else {}
    return {query_id: logs[query_id] for query_id in system.query_ids if query_id in logs}


def _since(logs: Mapping[str, CallLog]) -> str:
    """The time and the age of the oldest: ` (the oldest from 2026-11-21 20:51 UTC, 23 h before)`."""
    known = [(log.at, log.age_s) for log in logs.values() if log.at is not None and log.age_s is not None]
    if not known:
        return " (their time is unknown)"
    at, age_s = min(known, key=lambda log: (-log[1], log[0]))
    return f" (the oldest from {at[:10]} {at[11:16]} UTC, {format_duration(age_s)} before)"


def broken_answer_rules(system: Scored, limit: float) -> Iterator[Found]:
    """A sentence for each declared rule that a larger share of the answers breaks than the limit."""
    run = system.run
    if run is None:
        return
    rules = declared_rules(run.config)
    if not rules:
        return
    from cranfield.model.answer_rule import answers_with_fields, some_broken, violations

    known = set(system.query_ids)
    total = sum(query_id in known for query_id, _ in answers_with_fields(run))
    for rule in rules:
        broken = {query_id: why for query_id, why in violations(rule, run).items() if query_id in known}
        if broken and len(broken) / total > limit:
            verb = "breaks" if len(broken) == 1 else "break"
            yield Found.of(
                f"{len(broken)} of {count_noun(total, 'answers')} {verb} the rule declared in the config for "
                f"every answer, {rule}: {some_broken(broken)}",
                broken,
                total,
            )


def declared_rules(config: Mapping[str, Any]) -> list[AnswerRule]:
    """The rules in the `preflight` of a system's configuration.

    Raises:
        UsageError: one of them is not a rule.
    """
    checks = config.get("preflight") or ()
    written = [check.get("every_answer") for check in checks if isinstance(check, Mapping)]
    if not any(written):
        return []
    from cranfield.model.answer_rule import parse_answer_rule

    return list(dict.fromkeys(parse_answer_rule(text) for text in written if isinstance(text, str)))


def uncommitted_changes(system: Scored, threshold: float) -> Iterator[Found]:
    """Changes of the repository that a note on the test set names; where it has no count, there are some."""
    for note in system.testset.notes:
        if note.kind is NoteKind.UNCOMMITTED and max(note.total, 1) > threshold:
            yield Found(note.text, (), note.total, note.total, of_testset=True)


def queries_noted(kind: NoteKind) -> Callable[[Scored, float], Iterator[Found]]:
    """The check of queries that a note on the test set names: left out by `--intact`, or kept by `--allow-drift`."""

    def check(system: Scored, threshold: float) -> Iterator[Found]:
        for note in system.testset.notes:
            if note.kind is kind and len(note.query_ids) > threshold:
                yield Found(note.text, note.query_ids, len(note.query_ids), note.total, of_testset=True)

    return check


MIN_QUERIES_OF_FAMILY = 3
_SEPARATED = re.compile(r"[^/:#]+(?:://|/|::|:|#)")
_LETTERS = re.compile(r"[A-Za-z]+(?=[-_.]?\d)")
_LITERAL = re.compile(r"\^?((?:[\w:/@-]|\\[^\w])+)")


def families(text: str) -> tuple[str, ...]:
    """The families of an id, the widest first: `a://b/` has `a://` and `a://b/`, `FT911-3` has `FT`.

    Example:
        >>> families("apple-docs://swift/hashable"), families("FT911-3"), families("12")
        (('apple-docs://', 'apple-docs://swift/'), ('FT',), ())
    """
    found: list[str] = []
    end = 0
    while len(found) < 2 and (part := _SEPARATED.match(text, end)) is not None:
        end = part.end()
        found.append(text[:end])
    if not found and (letters := _LETTERS.match(text)) is not None:
        found.append(letters[0])
    return tuple(found)


def literal(regex: str) -> str:
    """The text that every match of an expression starts with, as far as that is plain: `a://b` of `^a://b($|/)`."""
    found = _LITERAL.match(regex)
    return re.sub(r"\\(.)", r"\1", found[1]) if found is not None else ""


def missing_family(sides: Sides, limit: float) -> Iterator[Found]:
    """A family that several queries expect alone, and that is in no result, while the other queries are answered."""
    systems = sides.systems
    by_family = _queries_by_family(systems[0])
    if not by_family:
        return
    found = set().union(*(system.ids_of(system.found) for system in systems))
    expecting = set(systems[0].ids_of(systems[0].expecting))
    reported: list[str] = []
    for family, queries in by_family.items():
        others = expecting - set(queries)
        if len(queries) < MIN_QUERIES_OF_FAMILY or not others or any(family.startswith(wider) for wider in reported):
            continue
        rate = len(found & others) / len(others)
        # Were its queries as easy as the others, none of them would be found with this probability.
        if found & set(queries) or (1 - rate) ** len(queries) > limit or _is_returned(systems, family, queries):
            continue
        reported.append(family)
        names = and_list([system.name for system in systems])
        yield Found.of(
            f"{count_noun(len(queries), 'queries')} expect ids under {family!r} only, and {names} never "
            f"{'returns' if len(systems) == 1 else 'return'} one, while {len(found & others)} of the {len(others)} other queries are "
            "answered: is that part of the corpus indexed?",
            queries,
            len(expecting),
        )


def _queries_by_family(system: Inspected) -> dict[str, list[str]]:
    """Family to the queries whose every expected id is in it; those of a sample of the queries."""
    places = sample(np.flatnonzero(system.expecting), 2 * MAX_LISTS)
    queries: dict[str, list[str]] = {}
    for place in places.tolist():
        regexes = system.targets.get(place, ())
        texts = [literal(text) if text in regexes else text for text in system.expected_of(place)]
        shared = [set(families(text)) for text in texts]
        for family in set.intersection(*shared) if shared else ():
            queries.setdefault(family, []).append(system.query_ids[place])
    return dict(sorted(queries.items(), key=lambda item: (len(item[0]), item[0])))


def _is_returned(systems: Sequence[Inspected], family: str, queries: list[str]) -> bool:
    """Whether any of the first results is of a family."""
    wanted = set(queries)
    for system in systems:
        lists = [each.hits for each in system.lists]
        places = [place for place, query_id in enumerate(system.query_ids) if query_id in wanted]
        lists += [system.hits_of(place) for place in places[:MAX_LISTS]]
        if any(doc_id.startswith(family) for hits in lists for doc_id, _ in hits):
            return True
        if any(text.startswith(family) for place in places[:MAX_LISTS] for text in system.texts_of(place)):
            return True
    return False
