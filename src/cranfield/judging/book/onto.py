"""A frozen book put onto the test set that its pool was made for: the next version of that set.

Queries that targets (patterns, spans, entities, files, predicates) judge and that the book judges become queries of graded
ids: grades by the targets of what was pooled, and those of the book in their place. From then on the targets no longer
decide; a document without a match and without a judgment is unjudged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.books.store.schema import RaterKind
from cranfield.books.store.values import BookInfo
from cranfield.evaluation.testset.declared import off_the_scale
from cranfield.evaluation.testset.edit import next_version, recorded
from cranfield.judging.book.freeze import Freezing
from cranfield.judging.book.grades import BookContents, hit_of
from cranfield.judging.pools.rule_view import rule_view
from cranfield.model import Answer, Judging, JudgingOverruled, Outcome, Rating, Run, TestSet
from cranfield.model.note import info
from cranfield.model.query import negative_of
from cranfield.ranking.matching.expectation import by_place
from cranfield.ranking.matching.place import names_lines

Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class _Converted:
    """Queries of targets as queries of graded ids."""

    grades: dict[str, dict[str, float]]
    """Grades of every query converted; -1 for what was pooled and has no grade."""
    unmatched: tuple[str, ...]
    overruled: tuple[JudgingOverruled, ...]


def onto_earlier(
    contents: BookContents, made: Freezing, earlier: TestSet | None, today: date, *, without_earlier: bool = False
) -> Freezing:
    """A frozen book on the test set that its pool was made over, so that what was judged before stays judged.

    Args:
        contents: the book.
        made: what `freeze` made of it.
        earlier: that test set; None: there is none, or it cannot be read.
        today: the date of the version.
        without_earlier: leave out the judgments that only the test set has.

    Raises:
        UsageError: as of `put_onto`; or the test set has judgments, and is not given.
    """
    if without_earlier:
        return made
    if earlier is not None:
        return replace(made, testset=put_onto(earlier, contents, made, today))
    source = contents.info.source
    if n := source.get("n_earlier"):
        where, name = (str(source.get(key) or "") for key in ("testset_file", "testset"))
        raise UsageError(
            f"the {n} earlier judgments of {shorten(name)}, the test set of the pool, would be lost",
            expected=f"the test set at {where}" if where else "the test set",
            hint="name the test set with {onto}, or leave its judgments out with {without_earlier}",
            parameters=("onto", "without_earlier"),
        )
    return made


def left_out(info: BookInfo) -> str:
    """What the judgments of a book alone do not hold of the test set that its pool was made over; empty where it had none."""
    n, name = info.source.get("n_earlier"), str(info.source.get("testset") or "")
    return (
        f"not included: those of the {n} judgments of the test set {shorten(name)} that are not in the book"
        if n
        else ""
    )


def put_onto(old: TestSet, contents: BookContents, made: Freezing, today: date) -> TestSet:
    """The old test set with the judgments of a frozen book.

    A document that the book gives a grade has that one, with its ratings. What only the old set judges stays, also where the
    book has the document pooled and unjudged. Queries of targets become queries of graded ids where the book has a grade that
    is not by the rule; else they stay.

    Args:
        old: the set as its file has it, its predicates evaluated.
        contents: the book.
        made: what `freeze` made of it.
        today: the date of the version.

    Raises:
        UsageError: graded ids that would be matched otherwise, or ratings that became grades by another rule.
    """
    found = _converted(old, contents, made)
    frozen = _for_ids(old, made.testset, found)
    problems = list(_problems(old, frozen))
    if problems:
        raise UsageError(problems)
    grades, ratings = _judgments(old, frozen)
    known = set(old.query_ids)
    judging = frozen.meta.judging
    merged = replace(
        old,
        queries=(*old.queries, *(query for query in frozen.queries if query.id not in known)),
        grades=grades,
        targets={query_id: targets for query_id, targets in old.targets.items() if query_id not in found.grades},
        ratings=ratings,
        consensus=frozen.consensus,
        matching=replace(old.matching, places=old.matching.places or frozen.matching.places),
        version=next_version(old.version, today),
        meta=replace(
            old.meta,
            scale=old.meta.scale or frozen.meta.scale,
            judging=None if judging is None else _with_conversion(judging, old.meta.judging, found),
            previous=old.digest,
        ),
        notes=info(*_notes(old, made, found)),
    )
    if any(off_the_scale(merged)):
        scales = [", ".join(f"{grade:g}" for grade in each.meta.scale) or "none declared" for each in (old, frozen)]
        text = f"grades on two scales: test set {scales[0]}, book {scales[1]}; the new version declares no scale"
        merged = replace(merged, meta=replace(merged.meta, scale=()), notes=(*merged.notes, *info(text)))
    sentence = frozen.meta.history[-1].partition(": ")[2]
    if found.grades:
        sentence += f"; judged by document ids instead of targets: {', '.join(found.grades)}"
    return recorded(merged, sentence, today)


def _converted(old: TestSet, contents: BookContents, made: Freezing) -> _Converted:
    by_rule = {pair for pair, source in made.rated.decided_by.items() if source == RaterKind.RULE}
    judged = {query_id for query_id, _ in made.rated.decided_by.keys() - by_rule} & old.targets.keys()
    hits = {query_id: [hit_of(item) for item in contents.items if item.query == query_id] for query_id in judged}
    pooled = Run("pool", {query_id: Answer(Outcome.ANSWERED, tuple(found)) for query_id, found in hits.items()})
    frozen = made.testset.grades
    given = {q: {doc: grade for doc, grade in frozen[q].items() if grade >= 0} for q in judged}
    view = rule_view(old, [pooled], people=given)
    in_order = [query_id for query_id in old.query_ids if query_id in judged]
    return _Converted(
        {query_id: {**frozen[query_id], **view.testset.grades[query_id]} for query_id in in_order},
        tuple(label for q in in_order for label in view.testset.grades[q] if label not in frozen[q]),
        tuple(
            JudgingOverruled(row.query, row.doc, row.grade, row.person)
            for row in view.differences
            if (row.query, row.doc) not in by_rule
        ),
    )


def _for_ids(old: TestSet, frozen: TestSet, found: _Converted) -> TestSet:
    """The book's judgments of the queries that graded ids judge from now on."""
    stay = (old.targets.keys() - found.grades) | _negative(old)
    return replace(
        frozen,
        grades={q: found.grades.get(q, of_query) for q, of_query in frozen.grades.items() if q not in stay},
        ratings={q: given for q, given in frozen.ratings.items() if q not in stay},
    )


def _negative(old: TestSet) -> set[str]:
    return {query.id for query in old.queries if negative_of(query) is not None}


def _with_conversion(judging: Judging, before: Judging | None, found: _Converted) -> Judging:
    """The manifest, with what an earlier book converted."""
    return replace(
        judging,
        by_id=(*(before.by_id if before else ()), *found.grades),
        unmatched=(*(before.unmatched if before else ()), *found.unmatched),
        overruled=(*(before.overruled if before else ()), *found.overruled),
    )


def _notes(old: TestSet, made: Freezing, found: _Converted) -> Iterator[str]:
    judging = made.testset.meta.judging
    if judging is not None and judging.pool is not None and judging.pool.testset not in {"", old.digest}:
        yield "the pool of the book was created for another version of the test set"
    stay = [query_id for query_id in made.testset.query_ids if query_id in old.targets.keys() - found.grades]
    if stay:
        n = count_noun(len(stay), "queries")
        yield f"still judged by targets, because the book has only grades of the rule: {n} ({join_first(stay)})"
    expects_nothing = _negative(old)
    negative = {q: made.testset.grades[q] for q in made.testset.query_ids if q in expects_nothing}
    if negative:
        found_good = join_first(f"{q} {shorten(doc)}" for q, docs in negative.items() for doc in docs if docs[doc] > 0)
        graded = f"; grades above 0 for these queries, not written: {found_good}" if found_good else ""
        yield (
            f"negative queries (no document should be found), unchanged: {count_noun(len(negative), 'queries')} "
            f"({join_first(negative)}){graded}"
        )
    by_rule = max((target.grade for query_id in found.grades for target in old.targets[query_id]), default=0.0)
    highest = max(made.testset.meta.scale, default=by_rule)
    if found.grades and by_rule < highest:
        yield (
            f"documents that match a target have grade {by_rule:g}, but raters may give up to {highest:g}: "
            "for graded measures set `grade` of the targets, or judge on the binary scale"
        )


def _problems(old: TestSet, frozen: TestSet) -> Iterator[Problem]:
    otherwise = [q for q, judged in old.grades.items() if any(map(names_lines, judged)) and not by_place(old, q)]
    if frozen.matching.places and otherwise:
        yield Problem(
            (
                f"the graded ids of {join_first(otherwise)} end in numbers and are matched by id only, but those "
                "of the book are matched by id and lines"
            ),
            hint=(
                "create a separate test set with {without_earlier}; or set `matching: {places: true}` in the "
                "test set if those ids name lines"
            ),
            parameters=("without_earlier",),
        )
    if any(old.ratings.values()) and old.consensus != frozen.consensus:
        yield Problem(
            f"the ratings of {shorten(old.name)} became grades by {old.consensus or 'an unnamed rule'}",
            got=frozen.consensus,
            hint=f"{{rule={old.consensus}}}" if old.consensus else None,
            parameters=("rule",),
        )


def _judgments(old: TestSet, frozen: TestSet) -> tuple[dict[str, dict[str, float]], dict[str, tuple[Rating, ...]]]:
    """Grades and ratings of both; those of the book where it has a grade."""
    grades = {query_id: dict(judged) for query_id, judged in old.grades.items()}
    ratings = dict(old.ratings)
    for query_id, judged in frozen.grades.items():
        here = grades.setdefault(query_id, {})
        new = {doc_id for doc_id, grade in judged.items() if grade >= 0 or here.get(doc_id, -1.0) < 0}
        here |= {doc_id: judged[doc_id] for doc_id in judged if doc_id in new}
        given = [rating for rating in frozen.ratings.get(query_id, ()) if rating.doc_id in new]
        kept = [rating for rating in ratings.get(query_id, ()) if rating.doc_id not in {r.doc_id for r in given}]
        if kept or given:
            ratings[query_id] = (*kept, *given)
    return grades, ratings
