"""Runs that name queries by another rule of ids than the test set: matched with its queries, and reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from cranfield.errors import InputError, NoCommonQueryError
from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.matching.id_forms import query_form
from cranfield.model import Answer, IdRule, Outcome, Run, TestSet
from cranfield.model.renaming import IdMatch, match_ids, rule_of_digest, under_rule
from cranfield.ranking import RankedRun
from cranfield.ranking.join import no_common_query
from cranfield.ranking.transform import rename_queries
from cranfield.words import first_of, shown_id

T = TypeVar("T")


class RunMatch(NamedTuple):
    """How a run was matched."""

    rule: IdRule | None = None
    """Rule by which it names the queries; None: by the ids of the set."""
    warnings: tuple[str, ...] = ()


CARRY = "`cranfield testset migrate-ids SET FILE --old EARLIER` gives files of an earlier version the ids of this one"


def by_own_ids(testset: TestSet, run: Run) -> tuple[Run, RunMatch]:
    """A collected run with the ids of a test set, and how it was matched; unchanged where it has them, or fits no rule.

    Raises:
        InputError: it names rows of another version of the test set, which may be other queries.
    """
    match = match_ids(testset, run.answers)
    if match is None:
        return run, RunMatch()
    known = run.testset_digest is not None and rule_of_digest(testset, run.testset_digest) == match.rule
    if match.rule == "row" and run.testset_digest is not None and not known:
        raise InputError(
            f"run {run.name!r} names queries by row, and was collected on another version of the test set: "
            "its rows may be other queries",
            expected="the rows of this version (the digests differ)",
            hint=CARRY,
        )
    if match.rule == "row" and not known:
        _refuse_fewer(run.name, max(map(int, match.names)), len(testset.queries))
    named = replace(
        run,
        answers=_renamed(run.answers, match),
        logs=_renamed(run.logs, match),
        testset_digest=testset.digest if known else run.testset_digest,
    )
    return named, RunMatch(match.rule, (_caveat(run.name, match),))


def read_for(testset: TestSet, convention: str, path: Path) -> Run:
    """A run file as a system under test answers from it: read for the queries of a test set, under its ids.

    A query that the file has under an id in another form has an answer, which is missing.

    Raises:
        RunFormatError: as in scoring the file.
        NoCommonQueryError: it answers no query of the set, by any rule of ids.
    """
    from cranfield.ranking.stored import read_run_file

    try:
        run = read_run_file(path, testset, convention)
    except NoCommonQueryError as error:
        run, match = by_own_ids(testset, read_run_file(path, None, convention))
        if match.rule is None:
            raise error from None
    run, _ = by_own_ids(testset, run)
    if run.answers and not any(query_id in testset.by_id for query_id in run.answers):
        raise no_common_query(testset.name, testset.query_ids, tuple(run.answers))
    extra = (*run.extra_queries, *(query_id for query_id in run.answers if query_id not in testset.by_id))
    form = query_form(extra, (query_id for query_id in testset.query_ids if query_id not in run.answers))
    if form is None:
        return run
    missing = {
        in_set: Answer(Outcome.MISSING, reason=f"the run file has an answer for {shown_id(in_run)}")
        for in_run, in_set in form.names.items()
    }
    return replace(run, answers={**run.answers, **missing}, extra_queries=(*form.names, *run.extra_queries))


def _caveat(name: str, match: IdMatch) -> Caveat:
    return Caveat(f"run {name!r} {match.sentence}", CaveatKind.OTHER_IDS, match.rule)


def _renamed(values: Mapping[str, T], match: IdMatch) -> dict[str, T]:
    return {match.names.get(query_id, query_id): value for query_id, value in values.items()}


def _refuse_fewer(name: str, last: int, n_rows: int) -> None:
    """Refuse a run of unknown version that ends before the last row: rows may have been added anywhere since.

    Raises:
        InputError: it does.
    """
    if last < n_rows:
        raise InputError(
            f"run {name!r} names queries by row up to {last}, and the test set has {n_rows} rows: they may be other queries",
            expected=f"a result for row {n_rows}, or a run that records its test set",
            hint="{ids=row} reads the set by row, if its rows are those of the run; else " + CARRY,
            parameters=("ids",),
        )


def ranked_by_own_ids(
    testset: TestSet, rank: Callable[[TestSet], RankedRun], error: NoCommonQueryError
) -> tuple[RankedRun, RunMatch]:
    """A run file that shares no query with a test set, ranked under the rule of ids that it follows.

    Args:
        testset: the judged queries.
        rank: ranks the file against a set.
        error: that it shares no query.

    Raises:
        NoCommonQueryError: `error`, where it follows no rule.
    """
    if testset.id_rules is None:
        raise error
    for rule in testset.id_rules.names:
        if rule == testset.meta.ids:
            continue
        names = testset.id_rules.names[rule]
        try:
            ranked = rank(under_rule(testset, rule))
        except NoCommonQueryError:
            continue
        beyond = [name for name in ranked.extra_queries if name not in names]
        if rule == "row" and beyond:
            raise InputError(
                f"run {ranked.name!r} names queries by row, and the test set has {len(names)} rows",
                expected=f"rows from 1 to {len(names)}",
                got=first_of(beyond),
                hint=CARRY,
            ) from error
        if rule == "row":
            answered = [row for row, outcome in enumerate(ranked.ranking.outcomes, 1) if outcome is not Outcome.MISSING]
            _refuse_fewer(ranked.name, max(answered), len(ranked.ranking.outcomes))
        own = replace(
            ranked,
            ranking=rename_queries(ranked.ranking, names),
            extra_queries=tuple(names.get(name, name) for name in ranked.extra_queries),
            misranked=tuple(names.get(name, name) for name in ranked.misranked),
        )
        return own, RunMatch(rule, (_caveat(ranked.name, IdMatch(rule, names)),))
    raise error
