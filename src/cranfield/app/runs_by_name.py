"""Runs that name queries by text, or by row where the file of the test set has no ids: matched with its queries, and reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cranfield.base.errors import NoCommonQueryError
from cranfield.base.redaction import redact_text
from cranfield.base.words import shown_id
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.model import Answer, Criteria, Hit, Outcome, Run, TestSet
from cranfield.model.query_ids import BY_ROW, BY_TEXT, are_rows, ids_by_row, ids_by_text, renamed, row_names, text_names
from cranfield.ranking import RankedRun
from cranfield.ranking.join import no_common_query
from cranfield.ranking.matching.id_forms import query_form
from cranfield.ranking.value import rename_queries

BY_SOURCE = "has a source and an id of each result; the ids were taken, as those of the set are such"


def with_ids(testset: TestSet, run: Run) -> tuple[Run, tuple[str, ...]]:
    """A collected run with the ids of a test set where it names queries or documents otherwise, and the caveats of that."""
    run, by_own = _with_own_ids(testset, run)
    names, how = ids_by_text(testset, run.answers), BY_TEXT
    if run.redacted:
        names = _by_redacted(testset, run.answers) | names
    if not names:
        names, how = ids_by_row(testset, run.answers), BY_ROW
    if not names:
        return run, by_own
    named = replace(
        run,
        answers={names.get(query_id, query_id): answer for query_id, answer in run.answers.items()},
        logs={names.get(query_id, query_id): log for query_id, log in run.logs.items()},
    )
    return named, (*by_own, _caveat(run.name, how))


def _by_redacted(testset: TestSet, given: Mapping[str, Answer]) -> dict[str, str]:
    """Given texts to the queries whose redacted text each is: those of traces are redacted, with single blanks."""
    if any(name in testset.by_id for name in given):
        return {}
    by_text: dict[str, list[str]] = {}
    for query in testset.queries:
        by_text.setdefault(redact_text(query.text)[0], []).append(query.id)
    return {name: by_text[name][0] for name in given if len(by_text.get(name, ())) == 1}


def _with_own_ids(testset: TestSet, run: Run) -> tuple[Run, tuple[str, ...]]:
    """A run whose results go by their sources with the ids that they have besides, where the test set has those alone."""
    own = {
        str(hit.fields["document_id"]): hit.id
        for answer in run.answers.values()
        for hit in answer.hits
        if hit.fields and "document_id" in hit.fields
    }
    if not own:
        return run, ()
    wanted = {doc_id for grades in testset.grades.values() for doc_id in grades}
    for targets in (*testset.targets.values(), *testset.forbidden.values()):
        wanted.update(target.where["id"] for target in targets if isinstance(target, Criteria) and "id" in target.where)
    if not wanted & own.keys() or wanted & {*own.values()}:
        return run, ()
    answers = {
        query_id: replace(answer, hits=tuple(map(_by_own_id, answer.hits))) for query_id, answer in run.answers.items()
    }
    return replace(run, answers=answers), (_caveat(run.name, BY_SOURCE),)


def _by_own_id(hit: Hit) -> Hit:
    fields = dict(hit.fields or {})
    own = fields.pop("document_id", None)
    return hit if own is None else replace(hit, id=str(own), fields={"source": hit.id, **fields})


def read_for(testset: TestSet, convention: str, path: Path, run_format: str | None = None) -> Run:
    """A run file as a system under test answers from it: read for the queries of a test set, under its ids.

    A query that the file has under an id in another form has an answer, which is missing.

    Raises:
        RunFormatError: as in scoring the file.
        NoCommonQueryError: it answers no query of the set, neither by id nor by text or row.
    """
    from cranfield.ranking.collected import read_run_file

    try:
        run = read_run_file(path, testset, convention, run_format=run_format)
    except NoCommonQueryError:
        if not text_names(testset):
            raise
        run = read_run_file(path, None, convention, run_format=run_format)
    run, _ = with_ids(testset, run)
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


def ranked_by_name(
    testset: TestSet, rank: Callable[[TestSet], RankedRun], error: NoCommonQueryError
) -> tuple[RankedRun, tuple[str, ...]]:
    """A run that shares no id with a test set, ranked by the texts or the rows of the queries.

    Args:
        testset: the judged queries.
        rank: ranks the run against a set.
        error: that it shares no id.

    Raises:
        NoCommonQueryError: `error`, where the run names no query so either.
    """
    for names, how in ((text_names(testset), BY_TEXT), (row_names(testset), BY_ROW)):
        if not names:
            continue
        try:
            ranked = rank(renamed(testset, {query_id: name for name, query_id in names.items()}))
        except NoCommonQueryError:
            continue
        if how == BY_ROW and not are_rows(testset, _answered(ranked)):
            continue
        named = replace(
            ranked,
            ranking=rename_queries(ranked.ranking, names),
            extra_queries=tuple(names.get(name, name) for name in ranked.extra_queries),
            misranked=tuple(names.get(name, name) for name in ranked.misranked),
        )
        return named, (_caveat(ranked.name, how),)
    raise error


def _answered(ranked: RankedRun) -> set[str]:
    """Ids of the queries of a run, those that the test set does not have among them."""
    outcomes = zip(ranked.ranking.query_ids, ranked.ranking.outcomes, strict=True)
    return {query_id for query_id, outcome in outcomes if outcome is not Outcome.MISSING} | {*ranked.extra_queries}


def _caveat(name: str, how: str) -> Caveat:
    return Caveat(f"run {name!r} {how}", CaveatKind.OTHER_NAMES, how)
