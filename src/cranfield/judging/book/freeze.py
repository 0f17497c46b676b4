"""A book frozen as a version of a test set, with a manifest: who judged, by which guidelines, how far they agree, and how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from itertools import count
from typing import cast

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.base.words import count_noun
from cranfield.books.store.schema import Action, ItemState, Origin, RaterKind
from cranfield.books.store.store import Store
from cranfield.books.store.values import FrozenInfo
from cranfield.evaluation.testset.consensus import rated_pairs
from cranfield.evaluation.testset.edit import recorded
from cranfield.formats.io.yaml_text import yaml_text
from cranfield.formats.testsets.native import document_of
from cranfield.judging.book.grades import BookContents, RatedBook, contents_of, rated_book
from cranfield.judging.raters.raters import RaterKappa
from cranfield.model import (
    Judging,
    JudgingAgreement,
    JudgingGuideline,
    JudgingPool,
    JudgingRater,
    Rating,
    TestSet,
)
from cranfield.stats.agreement import Agreement, agreement
from cranfield.stats.consensus import SlotTable, slot_table

REPORTED = ("agreement", "alpha-nominal", "alpha-ordinal", "cohen", "cohen-quadratic")
"""Coefficients in the manifest."""
MODEL_SETTINGS = ("model", "prompt", "prompt_digest", "temperature", "max_tokens")
"""What the manifest says of a model."""
N_RATERS = 2
_WAITING = (ItemState.OPEN, ItemState.ADJUDICATE)
Names = Mapping[str, str]
"""Rater to the name in the test set."""


class NoAgreementError(UsageError):
    """The raters do not agree as much as the book asks for."""


@dataclass(frozen=True)
class Freezing:
    """What a book comes to."""

    testset: TestSet
    """With its manifest as `meta.judging`."""
    rated: RatedBook
    unfinished: int
    """Documents of the pool that still wait for a rater or for adjudication, or have no grade."""
    kappa: RaterKappa | None
    """Kappa of the two raters, where the book has a limit."""


def freeze(
    contents: BookContents,
    *,
    today: date,
    rule: str | None = None,
    models: bool = False,
    allow_partial: bool = False,
    pseudonyms: bool = False,
    seed: int = 0,
) -> Freezing:
    """Make a test set of a book, whole or half graded.

    Args:
        contents: the book.
        today: the date of the version.
        rule: consensus rule; None is that of the book.
        models: whether a model's grade counts where nothing else gives one.
        allow_partial: whether documents may be without a grade.
        pseudonyms: whether raters are called `rater 1`, `rater 2`, ...
        seed: of the resamples behind the intervals.

    Raises:
        NoAgreementError: Cohen's kappa of the raters is not above the limit of the book.
        UsageError: the book is not finished and `allow_partial` is not given, or nothing is graded.
    """
    rated = rated_book(contents, rule=rule, models=models)
    unfinished = _unfinished(contents, rated)
    name = contents.info.name
    if not rated.decided_by:
        raise UsageError(f"book {name!r} has no grades", expected="a grade of a rater, or judgments carried over")
    if unfinished and not allow_partial:
        n = sum(item.origin is not Origin.CALIBRATION for item in contents.items)
        raise UsageError(
            (
                f"book {name!r} is not finished: {unfinished} of {count_noun(n, 'documents')} need a rater, "
                "adjudication or a grade"
            ),
            hint="{allow_partial} freezes the current state; documents without a grade stay unjudged",
            parameters=("allow_partial",),
        )
    table = persons_table(contents)
    kappa = _check_kappa(contents, table, seed)
    people = rater_names(contents, pseudonyms=pseudonyms)
    judging = _judging(contents, rated, people, _agreement(table, seed))
    testset = replace(renamed(rated.testset, people), version=str(judging.number), notes=())
    previous = contents.frozen[-1].digest if contents.frozen else ""
    testset = replace(testset, meta=replace(testset.meta, judging=judging, previous=previous))
    sentence = f"frozen from book {name}: {judging.coverage['judged']} of {count_noun(judging.coverage['pooled'], 'documents')} judged, grades by {judging.rule}"
    return Freezing(recorded(testset, sentence, today), rated, unfinished, kappa)


def record_frozen(store: Store, contents: BookContents, made: Freezing) -> FrozenInfo:
    """Record a frozen version in the database, with the whole test set.

    Raises:
        ChangedMeanwhileError: another one was recorded since the contents were read.
    """
    manifest: dict[str, object] = {"testset": document_of(made.testset)}
    return store.books.add_frozen(contents.info.id, made.testset.digest, manifest, len(contents.frozen) + 1)


def frozen_text(store: Store, book: str | int, number: int) -> str:
    """A frozen version as the YAML of its test set.

    Raises:
        UnknownNameError: the book has no such version, or came without it.
    """
    info = store.books.get(book)
    found = next((row for row in store.books.frozen(info.id) if row.number == number), None)
    document = None if found is None else found.manifest.get("testset")
    if not isinstance(document, dict):
        raise UnknownNameError(f"book {info.name!r} has no version {number}")
    return yaml_text(document)


def _check_kappa(contents: BookContents, table: SlotTable, seed: int) -> RaterKappa | None:
    """Cohen's kappa of the two raters with the most documents in common; None where the book has no limit.

    Raises:
        NoAgreementError: it is not above the limit of the book, or not defined.
    """
    limit = contents.info.settings.kappa_limit
    if limit is None:
        return None
    found = _closest(table, seed)
    if found is None:
        raise NoAgreementError(
            f"not frozen: book {contents.info.name!r} requires Cohen's kappa above {limit:g}",
            expected="documents that two raters graded",
        )
    if not found.exceeds(limit):
        raise NoAgreementError(
            f"not frozen: {found.sentence}",
            expected=f"kappa above {limit:g}",
            hint="resolve the disagreements of the raters, and judge again",
        )
    return found


def _closest(table: SlotTable, seed: int) -> RaterKappa | None:
    """Cohen's kappa of the two raters with the most documents in common; None with fewer than two raters."""
    if len(table.raters) < N_RATERS:
        return None
    found = agreement(table, seed=seed, pairwise=True)
    if not found.pairs:
        return RaterKappa((table.raters[0], table.raters[1]), found.coefficients["cohen"])
    most = max(found.pairs, key=lambda pair: pair.n)
    return RaterKappa((most.first, most.second), next(c for c in most.coefficients if c.name == "cohen"))


def persons_table(contents: BookContents) -> SlotTable:
    """The grades of persons as slots, those that adjudication overruled among them; calibration and repeats are not."""
    testset = persons_testset(contents)
    return rated_pairs(testset).table if any(testset.ratings.values()) else slot_table([])


def persons_testset(contents: BookContents) -> TestSet:
    """The book with the ratings of persons alone, of whom agreement is measured."""
    by_query: dict[str, list[Rating]] = {}
    for item in contents.items:
        if item.origin is Origin.CALIBRATION or item.gold is not None:
            continue
        for row in item.ratings:
            if row.kind is RaterKind.PERSON and row.action in {Action.GRADE, Action.SKIP}:
                by_query.setdefault(item.query, []).append(Rating(item.doc, row.rater, row.grade))
    bare = rated_book(contents).testset
    ratings = {query_id: tuple(given) for query_id, given in by_query.items()} or dict.fromkeys(bare.query_ids[:1], ())
    return replace(bare, ratings=ratings, notes=())


def rater_names(contents: BookContents, *, pseudonyms: bool) -> Names:
    """Persons by the name that they have in what leaves the book: their own, or `rater 1`, ... by account."""
    rows = [row for item in contents.items for row in item.ratings]
    ids = {row.account_id: row.rater for row in rows if row.kind is RaterKind.PERSON}
    deciding = {item.final_by for item in contents.items if item.final_by} - set(ids.values())
    names = [*(ids[account_id] for account_id in sorted(ids)), *sorted(deciding)]
    if not pseudonyms:
        return dict(zip(names, names, strict=True))
    others = {row.rater for row in rows if row.kind is not RaterKind.PERSON}
    numbered = (name for place in count(1) if (name := f"rater {place}") not in others)
    return dict(zip(names, numbered, strict=False))


def renamed(testset: TestSet, names: Names) -> TestSet:
    """The test set with the names that raters have in what leaves the book."""
    ratings = {
        query_id: tuple(replace(rating, rater=names.get(rating.rater, rating.rater)) for rating in given)
        for query_id, given in testset.ratings.items()
    }
    return replace(testset, ratings=ratings)


def is_unfinished(store: Store, book_id: int) -> bool:
    """Whether freezing a book needs `allow_partial`; False where nothing is graded."""
    coverage = store.reading.coverage(book_id)
    if not coverage.judged_lowest + coverage.judged_higher:
        return False
    if any(coverage.states.get(state) for state in _WAITING):
        return True
    contents = contents_of(store, book_id)
    return _unfinished(contents, rated_book(contents)) > 0


def _unfinished(contents: BookContents, rated: RatedBook) -> int:
    return sum(
        item.state in _WAITING or (item.query, item.doc) not in rated.decided_by
        for item in contents.items
        if item.origin is not Origin.CALIBRATION
    )


def _judging(contents: BookContents, rated: RatedBook, names: Names, agreed: Sequence[JudgingAgreement]) -> Judging:
    digests = {row.version: guideline_digest(row.text) for row in contents.guidelines}
    used = Counter(
        row.guideline_version
        for item in contents.items
        for row in item.ratings
        if row.kind is RaterKind.PERSON and row.grade is not None and row.guideline_version in digests
    )
    return Judging(
        contents.info.name,
        len(contents.frozen) + 1,
        rated.testset.consensus,
        raters=_raters(contents, names),
        guidelines=tuple(
            JudgingGuideline(version, digests[version], n) for version, n in sorted(used.items()) if version
        ),
        agreement=tuple(agreed),
        coverage=_coverage(contents, rated),
        skipped=dict(sorted(_skips(contents).items())),
        pool=_pool(contents),
    )


def _raters(contents: BookContents, names: Names) -> tuple[JudgingRater, ...]:
    counts: Counter[tuple[RaterKind, str]] = Counter(
        (row.kind, row.rater) for item in contents.items for row in item.ratings if row.grade is not None
    )
    order = list(RaterKind)
    rows = sorted(counts.items(), key=lambda row: (order.index(row[0][0]), names.get(row[0][1], row[0][1])))
    return tuple(
        JudgingRater(
            names.get(rater, rater),
            kind.value,
            n,
            {key: str(value) for key, value in contents.models.get(rater, {}).items() if key in MODEL_SETTINGS},
        )
        for (kind, rater), n in rows
    )


def guideline_digest(text: str) -> str:
    """Identity of a version of the guidelines: its text."""
    return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _agreement(table: SlotTable, seed: int) -> Sequence[JudgingAgreement]:
    if len(table.raters) < N_RATERS:
        return ()
    found: Agreement = agreement(table, seed=seed, pairwise=False)
    coefficients = (found.coefficients[name] for name in REPORTED)
    return [JudgingAgreement(c.name, c.value, c.ci_low, c.ci_high, c.n, c.note or "") for c in coefficients]


def _coverage(contents: BookContents, rated: RatedBook) -> dict[str, int]:
    items = [item for item in contents.items if item.origin is not Origin.CALIBRATION]
    by_source = Counter(rated.decided_by.values())
    undecided = [item for item in items if (item.query, item.doc) not in rated.decided_by]
    tied = sum(any(r.grade is not None and r.kind is RaterKind.PERSON for r in item.ratings) for item in undecided)
    skipped = sum(any(r.action is Action.SKIP for r in item.ratings) for item in undecided)
    counts = {
        "pooled": len(items),
        "judged": len(rated.decided_by),
        "adjudicated": by_source[Action.ADJUDICATE],
        **{f"by {kind.value}": by_source[kind] for kind in RaterKind},
        "unjudged": len(undecided),
        "unjudged: tied": tied,
        "unjudged: skipped": skipped,
        "stale": sum(any(row.stale for row in item.ratings) for item in items),
        "sources differ": len(rated.differences),
        "calibration items left out": rated.left_out,
    }
    return {name: n for name, n in counts.items() if n or name in {"pooled", "judged", "unjudged"}}


def _skips(contents: BookContents) -> Counter[str]:
    return Counter(
        row.skip_reason.value
        for item in contents.items
        for row in item.ratings
        if row.kind is RaterKind.PERSON and row.skip_reason is not None
    )


def _pool(contents: BookContents) -> JudgingPool | None:
    source = contents.info.source
    method, depth = source.get("method"), source.get("depth")
    seed, complete_to = (found if isinstance(found := source.get(key), int) else 0 for key in ("seed", "complete_to"))
    if not isinstance(method, str) or not isinstance(depth, int):
        return None
    runs = cast("Sequence[Mapping[str, object]]", source.get("runs") or ())
    return JudgingPool(
        method,
        depth,
        seed,
        {str(run["name"]): str(run["digest"]) for run in runs},
        str(source.get("testset_digest") or ""),
        complete_to,
    )
