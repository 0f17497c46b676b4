"""Stored evaluations: records without queries for lists, and the whole ones."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence

from sqlalchemy import Select, Text, false, func, select, update
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from cranfield.base.errors import UsageError
from cranfield.books.store.rows import as_value, checked_name
from cranfield.books.store.schema import Book, BookState, Item, ItemState, Origin
from cranfield.evaluation.result import EvaluationResult, without_queries
from cranfield.measures.measure import KEEP_UNKNOWN
from cranfield.model.results import from_jsonable, to_json, to_jsonable
from cranfield.workbench.service.requests import Settings
from cranfield.workbench.service.responses import StoredSource, Trigger
from cranfield.workbench.service.store.blobs import ServicePart, account_names, blob_json, keep_blob, row_of
from cranfield.workbench.service.store.runs import keep_run
from cranfield.workbench.service.store.schema import Blob, Job, StoredEvaluation, StoredSet
from cranfield.workbench.service.values import (
    EvaluationFacts,
    EvaluationFilter,
    EvaluationInfo,
    Json,
    NewEvaluation,
    label_of,
)

MAX_TAGS = 50
MAX_FOLLOWED = 20
"""Evaluations of one system on one test set among which the last value of each measure is looked for."""
ALL = EvaluationFilter()
JUDGED_ORIGINS = (Origin.POOL, Origin.ADDED)
"""Origins of items that give a result its grade: the others repeat one, or show how a rater grades."""


class StoredEvaluations(ServicePart):
    """Evaluations of one system on one test set each."""

    def all(self, chosen: EvaluationFilter = ALL) -> tuple[EvaluationInfo, ...]:
        """Those that the conditions hold for, the latest first."""
        with self._database.read() as session:
            return evaluation_infos(session, session.scalars(_selected(chosen)).all())

    def followed(self, since: int, triggers: Sequence[str]) -> tuple[EvaluationInfo, ...]:
        """The last evaluations of each test set, system, variant and components, the latest first: those as configured.

        Of each there are up to 20 whose figures count, and up to 20 that are void, so that a series of void ones hides none.

        Args:
            since: made at this time or later.
            triggers: what asked for them.
        """
        row = StoredEvaluation
        group = (row.testset_name, row.system, row.variant, row.components)
        is_void = func.coalesce(sql_cast(row.void, Text), "null") != "null"
        place = func.row_number().over(partition_by=(*group, is_void), order_by=row.id.desc())
        chosen = (row.configured.is_(True), row.at >= since, row.trigger.in_(triggers))
        numbered = select(row.id, place.label("place")).where(*chosen).subquery()
        last = select(numbered.c.id).where(numbered.c.place <= MAX_FOLLOWED)
        with self._database.read() as session:
            found = session.scalars(select(row).where(row.id.in_(last)).order_by(*group, row.id.desc()))
            return evaluation_infos(session, found.all())

    def baseline(self, testset: str) -> EvaluationInfo | None:
        """The pinned evaluation of a test set; None where none is."""
        return next(iter(self.all(EvaluationFilter(testset=testset, pinned=True, limit=1))), None)

    def systems(self) -> tuple[str, ...]:
        """The systems that have evaluations, by name."""
        with self._database.read() as session:
            return tuple(session.scalars(select(StoredEvaluation.system).distinct().order_by(StoredEvaluation.system)))

    def last_of_systems(self) -> dict[str, EvaluationInfo]:
        """Systems with their last evaluation, of any test set, variant and components; pilots do not count."""
        row = StoredEvaluation
        is_pilot = func.coalesce(row.record["systems", 0, "pilot"].as_boolean(), false())
        last = select(func.max(row.id)).where(is_pilot.is_(False)).group_by(row.system)
        with self._database.read() as session:
            found = evaluation_infos(session, session.scalars(select(row).where(row.id.in_(last))).all())
        return {info.system: info for info in found}

    def get(self, evaluation_id: int) -> EvaluationInfo:
        """An evaluation.

        Raises:
            UnknownNameError: there is none of this number.
        """
        with self._database.read() as session:
            return evaluation_info(session, evaluation_row(session, evaluation_id))

    def labels(self, ids: Collection[int]) -> dict[int, str]:
        """Number to label of those of these evaluations that there are."""
        row = StoredEvaluation
        query = select(row.id, row.system, row.variant, row.components).where(row.id.in_(ids))
        with self._database.read() as session:
            return {number: label_of(*parts) for number, *parts in session.execute(query)}

    def first_of_run(self, run_id: int) -> EvaluationInfo | None:
        """The first evaluation of a stored run: the one that collected it, where a system gave it; None where it has none."""
        query = select(StoredEvaluation).where(StoredEvaluation.run_id == run_id).order_by(StoredEvaluation.id)
        with self._database.read() as session:
            row = session.scalar(query.limit(1))
            return None if row is None else evaluation_info(session, row)

    def for_job(self, job_id: int) -> tuple[EvaluationInfo, ...]:
        """The evaluations that a job made, in the order of its request."""
        query = select(StoredEvaluation).where(StoredEvaluation.job_id == job_id).order_by(StoredEvaluation.position)
        with self._database.read() as session:
            return evaluation_infos(session, session.scalars(query).all())

    def named(self, ids: Collection[int]) -> Mapping[int, EvaluationInfo]:
        """The evaluations of some ids, by id; those that are not there are left out."""
        with self._database.read() as session:
            rows = session.scalars(select(StoredEvaluation).where(StoredEvaluation.id.in_(ids))).all()
            return {info.id: info for info in evaluation_infos(session, rows)}

    def payload(self, evaluation_id: int) -> Json:
        """The JSON of the evaluation, with every query; as `results.json` of `cranfield run`."""
        with self._database.read() as session:
            return blob_json(session, evaluation_row(session, evaluation_id).payload)

    def calls(self, evaluation_id: int) -> Json:
        """The JSON of the calls of its system."""
        with self._database.read() as session:
            return blob_json(session, evaluation_row(session, evaluation_id).calls)

    def settings(self, evaluation_id: int) -> Settings:
        """What scores its run again."""
        with self._database.read() as session:
            return from_jsonable(Settings, evaluation_row(session, evaluation_id).settings)

    def storage(self) -> tuple[int, int]:
        """How many evaluations there are, and the bytes of all contents: test sets, runs, results."""
        with self._database.read() as session:
            n = session.scalar(select(func.count()).select_from(StoredEvaluation)) or 0
            return n, session.scalar(select(func.sum(func.length(Blob.data)))) or 0

    def pin(self, evaluation_id: int, *, pinned: bool = True) -> EvaluationInfo:
        """Make it the baseline of its test set, in the place of another; or no longer."""
        return self.change(evaluation_id, pinned=pinned)

    def change(
        self,
        evaluation_id: int,
        *,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        pinned: bool | None = None,
        check: Callable[[EvaluationInfo], None] | None = None,
    ) -> EvaluationInfo:
        """Change tags, note and pin, all or none; None leaves them.

        Args:
            evaluation_id: of the evaluation.
            tags: replace those that it has.
            note: replaces the one that it has.
            pinned: whether it is the baseline of its test set; a pinned one takes the place of another.
            check: called with the evaluation as it is, in the same transaction: what it raises refuses the change.

        Raises:
            UsageError: not a tag, or too many.
        """
        given = {"tags": None if tags is None else checked_tags(tags), "note": note, "pinned": pinned}
        with self._database.write() as session:
            row, table = evaluation_row(session, evaluation_id, lock=True), StoredEvaluation
            if check is not None:
                check(evaluation_info(session, row))
            if pinned:
                others = update(table).where(table.testset_name == row.testset_name, table.pinned.is_(True))
                session.execute(others.values(pinned=False))
            for name, value in given.items():
                if value is not None:
                    setattr(row, name, value)
            session.flush()
            return evaluation_info(session, row)


def checked_tags(tags: Sequence[str]) -> list[str]:
    """Tags without spaces around them, each once.

    Raises:
        UsageError: not a tag, or too many.
    """
    found = list(dict.fromkeys(checked_name(tag) for tag in tags))
    if len(found) > MAX_TAGS:
        raise UsageError(f"{len(found)} tags", path="tags", expected=f"{MAX_TAGS} or fewer")
    return found


def _selected(chosen: EvaluationFilter) -> Select[StoredEvaluation]:
    row = StoredEvaluation
    query = select(row).order_by(row.id.desc()).limit(chosen.limit)
    equal = {row.testset_name: chosen.testset, row.system: chosen.system, row.variant: chosen.variant}
    equal |= {row.components: chosen.components}
    for column, value in equal.items():
        if value is not None:
            query = query.where(column == value)
    if chosen.tag is not None:
        query = query.where(sql_cast(row.tags, Text).contains(json.dumps(chosen.tag), autoescape=True))
    if chosen.pinned is not None:
        query = query.where(row.pinned.is_(chosen.pinned))
    if chosen.book is not None:
        query = query.where(row.book_id == chosen.book)
    if chosen.since is not None:
        query = query.where(row.at >= chosen.since)
    return query if chosen.before is None else query.where(row.id < chosen.before)


def evaluation_row(session: Session, evaluation_id: int, *, lock: bool = False) -> StoredEvaluation:
    """An evaluation; locked until the transaction ends.

    Raises:
        UnknownNameError: there is none of this number.
    """
    return row_of(session, StoredEvaluation, evaluation_id, "evaluation", lock=lock)


def evaluation_info(session: Session, row: StoredEvaluation) -> EvaluationInfo:
    """An evaluation as a value."""
    return evaluation_infos(session, [row])[0]


def evaluation_infos(session: Session, rows: Sequence[StoredEvaluation]) -> tuple[EvaluationInfo, ...]:
    """Evaluations as values: three queries, however many evaluations."""
    names = account_names(session, (row.account_id for row in rows))
    table = StoredSet
    versions = select(table.id, table.version, table.digest).where(table.id.in_({row.testset_id for row in rows}))
    sets = {number: (version, digest) for number, version, digest in session.execute(versions)}
    waiting = _waiting(session, {row.book_id for row in rows if row.book_id is not None})
    return tuple(
        as_value(
            EvaluationInfo,
            row,
            testset_version=sets[row.testset_id][0],
            testset_digest=sets[row.testset_id][1],
            trigger=Trigger(row.trigger),
            account=names[row.account_id],
            record=from_jsonable(EvaluationResult, row.record, KEEP_UNKNOWN),
            facts=from_jsonable(EvaluationFacts, row.facts),
            void=tuple(row.void or ()),
            tags=tuple(row.tags),
            n_waiting=_n_waiting(waiting.get(row.book_id or 0, []), row.settings.get("newest_item")),
        )
        for row in rows
    )


def _n_waiting(items: Sequence[int], newest: object) -> int:
    """Number of items, by id, up to the newest of an evaluation; all of them where that is not known."""
    return bisect_right(items, newest) if isinstance(newest, int) else len(items)


def _waiting(session: Session, books: Collection[int]) -> Mapping[int, list[int]]:
    """Items that wait for a grade, by book, for books that take grades, in the order of their ids."""
    if not books:
        return {}
    query = (
        select(Item.book_id, Item.id)
        .join(Book, Book.id == Item.book_id)
        .where(Item.book_id.in_(books), Book.state == BookState.OPEN, Item.origin.in_(JUDGED_ORIGINS))
        .where(Item.state.in_((ItemState.OPEN, ItemState.ADJUDICATE)))
        .order_by(Item.id)
    )
    found: dict[int, list[int]] = {}
    for book_id, item_id in session.execute(query):
        found.setdefault(book_id, []).append(item_id)
    return found


def add_evaluation(session: Session, job: Job, position: int, made: NewEvaluation, now: int) -> StoredEvaluation:
    """Store an evaluation that a job made."""
    run = made.run
    run_id = (
        run if isinstance(run, int) else keep_run(session, run, StoredSource.COLLECTED, "jsonl", job.account_id, now).id
    )
    testset = session.get_one(StoredSet, made.testset)
    row = StoredEvaluation(
        job_id=job.id,
        position=position,
        testset_id=testset.id,
        testset_name=testset.name,
        run_id=run_id,
        system=made.system,
        variant=made.variant,
        components=made.components,
        config_digest=made.config_digest,
        trigger=job.trigger,
        at=now,
        configured=made.configured,
        account_id=job.account_id,
        settings=to_jsonable(made.settings),
        record=to_jsonable(without_queries(made.record)),
        facts=to_jsonable(made.facts),
        void=list(made.void) or None,
        payload=keep_blob(session, to_json(made.record).encode()),
        calls=keep_blob(session, to_json(made.calls).encode()),
        book_id=made.book_id,
        tags=list(made.tags),
        note=made.note,
        pinned=False,
    )
    session.add(row)
    session.flush()
    return row
