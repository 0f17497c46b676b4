"""Make a pool of the results of several systems.

A document belongs to the smallest rank that any system gives it. Nothing here depends on the order of the runs, except
which of two titles of a document is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from cranfield.base.errors import Problem, UsageError, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery, PooledRun, PoolMethod
from cranfield.evaluation.testset.declared import scale_to_judge
from cranfield.evaluation.testset.split import share_of, shuffled
from cranfield.judging.pools.results import Candidate, SystemResults, is_storable, missed, union
from cranfield.model import Query, TestSet, query_strata

_SAMPLE = re.compile(r"\s*([0-9]{1,7})\s*-\s*([0-9]{1,7})\s*:\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
EXPECTED_SAMPLE = "FIRST-LAST:SHARE% such as 11-50:30%"


@dataclass(frozen=True, slots=True)
class SampledRanks:
    """A range of ranks of which a share of the documents is drawn."""

    first: int
    last: int
    share: float
    """More than 0, at most 1."""

    @property
    def label(self) -> str:
        """`11-50`."""
        return f"{self.first}-{self.last}"


def parse_sample(text: str) -> SampledRanks:
    """The range and share of `11-50:30%`.

    Raises:
        UsageError: it is none, its range ends before it begins, or its share is not above 0 % and at most 100 %.
    """
    found = _SAMPLE.fullmatch(text)
    if not found:
        raise UsageError("not a range of ranks with a share", got=shorten(text), expected=EXPECTED_SAMPLE)
    first, last, percent = int(found[1]), int(found[2]), float(found[3])
    if not 1 <= first <= last:
        raise UsageError("not a range of ranks", got=shorten(text), expected="1 <= first rank <= last rank")
    if not 0 < percent <= 100:
        raise UsageError("not a share of documents", got=shorten(text), expected="above 0 % and at most 100 %")
    return SampledRanks(first, last, percent / 100)


def parse_samples(texts: Iterable[str]) -> tuple[SampledRanks, ...]:
    """The ranges and shares of several.

    Raises:
        UsageError: with every one that is none.
    """
    found: list[SampledRanks] = []
    problems: list[Problem] = []
    for text in texts:
        try:
            found.append(parse_sample(text))
        except UsageError as error:
            problems += error.problems
    if problems:
        raise UsageError(problems)
    return tuple(found)


@dataclass(frozen=True)
class PoolRequest:
    """What a pool holds."""

    depth: int
    samples: tuple[SampledRanks, ...] = ()
    """Ranges below the depth, of which a share is drawn."""
    budget: int | None = None
    """Documents to judge, all queries together; None: all."""
    include_judged: bool = False
    """Documents that the test set has judged are in the pool, with their grades, instead of left out."""
    seed: int = 0
    name: str = "pool"
    only_missed: bool = False
    """Whether each query gets only results of systems that return nothing relevant down to the depth; see
    `alternatives`."""

    def __post_init__(self) -> None:
        """Refuse what cannot be a pool.

        Raises:
            UsageError: with everything that is wrong.
        """
        problems = list(self._problems())
        if problems:
            raise UsageError(problems)

    def _problems(self) -> Sequence[Problem]:
        problems = []
        if self.depth < 1:
            problems.append(Problem(f"the depth of the pool is {self.depth}", expected="1 or more"))
        if self.budget is not None and self.budget < 1:
            problems.append(Problem(f"the budget is {self.budget}", expected="one or more documents"))
        if self.budget is not None and self.samples:
            hint = "a budget takes the first ranks, for which there are no inclusion probabilities: leave out one of the options"
            problems.append(
                Problem("{sample} and {budget} exclude each other", hint=hint, parameters=("sample", "budget"))
            )
        end = self.depth
        for sample in sorted(self.samples, key=lambda sample: sample.first):
            if sample.first <= end:
                expected = f"ranks from {end + 1} on; lower ranks are already in the pool or in another range"
                problems.append(Problem(f"the range {sample.label} of a sample", expected=expected))
            end = max(end, sample.last)
        if not self.name.strip():
            problems.append(Problem("the pool has no name", expected="a name"))
        return problems

    @property
    def method(self) -> PoolMethod:
        """How the documents are chosen."""
        return "budget" if self.budget is not None else "stratified" if self.samples else "depth"

    @property
    def last(self) -> int:
        """The largest rank that is looked at."""
        return max([self.depth, *(sample.last for sample in self.samples)])


@dataclass(frozen=True)
class Selected:
    """A candidate that is in the pool, and how it came there."""

    candidate: Candidate
    stratum: str
    inclusion: float


@dataclass(frozen=True)
class BuiltPool:
    """A pool, and what it was chosen from."""

    pool: Pool
    request: PoolRequest
    systems: tuple[SystemResults, ...]
    candidates: tuple[Candidate, ...]
    """Every document down to the last rank looked at, judged ones included."""
    unknown_queries: tuple[str, ...]
    """Queries of the runs that the test set does not have: left out."""
    unanswered: tuple[str, ...]
    """Queries of the test set that no run answers with a result."""


def build_pool(
    systems: Sequence[SystemResults],
    testset: TestSet | None,
    request: PoolRequest,
    prefilled: Mapping[tuple[str, str], float] | None = None,
) -> BuiltPool:
    """Make a pool.

    Args:
        systems: at least one, under different names.
        testset: queries, and what is judged of them; None: the queries of the runs, without texts.
        request: depth, samples, budget.
        prefilled: query and document to the grade of the rater `rule`: in the pool, and not left to be judged.

    Raises:
        UsageError: there is no run; or none of its results is of a query of the test set, or left to be judged.
    """
    if not systems:
        raise UsageError("no run to pool", expected="one or more runs")
    answered = dict.fromkeys(query_id for system in systems for query_id in system.hits)
    queries = tuple(Query(query_id) for query_id in answered) if testset is None else testset.queries
    known = {query.id for query in queries}
    grades = {} if testset is None else testset.grades
    candidates = union(systems, (query.id for query in queries), request.last, grades, prefilled)
    if not candidates:
        raise UsageError(
            "the runs have no result for a query of the test set",
            expected=f"ids such as {next(iter(known), '')!r}",
            got=f"{next(iter(answered), 'no query')!r}",
        )
    _require_storable(candidates)
    place = {query.id: number for number, query in enumerate(queries)}
    selected = sorted(
        _select(candidates, request), key=lambda each: (place[each.candidate.query_id], each.candidate.doc_id)
    )
    if request.only_missed:
        misses = missed(candidates)
        selected = [
            each for each in selected if any((each.candidate.query_id, s) in misses for s in each.candidate.ranks)
        ]
    in_pool = {each.candidate.query_id for each in selected}
    pool = Pool(
        name=request.name,
        method=request.method,
        depth=request.depth,
        complete_to=0 if request.only_missed else _complete_to(candidates, selected, request),
        n_left_out=0 if request.include_judged else sum(each.judged is not None for each in candidates),
        seed=request.seed,
        testset="" if testset is None else testset.name,
        testset_digest="" if testset is None else testset.digest,
        n_earlier=0 if testset is None else testset.n_judgments,
        scale=() if testset is None else scale_to_judge(testset),
        runs=tuple(PooledRun(name=system.name, digest=system.digest) for system in systems),
        queries=tuple(pooled_query(query) for query in queries if query.id in in_pool),
        items=tuple(map(_item, selected)),
    )
    found = {candidate.query_id for candidate in candidates}
    return BuiltPool(
        pool,
        request,
        tuple(systems),
        tuple(candidates),
        unknown_queries=tuple(query_id for query_id in answered if query_id not in known),
        unanswered=tuple(query.id for query in queries if query.id not in found),
    )


def _require_storable(candidates: Sequence[Candidate]) -> None:
    bad = [each for each in candidates if not (is_storable(each.doc_id) and is_storable(each.query_id))]
    if bad:
        listed = join_first(f"{shorten(each.doc_id)} of query {shorten(each.query_id)}" for each in bad)
        raise UsageError(
            f"{count_noun(len(bad), 'documents')} whose id is not UTF-8 text, or contains NUL: {listed}",
            expected="ids that can be stored in a JSON file and a database",
        )


def pooled_query(query: Query) -> PooledQuery:
    """A query as a rater sees it."""
    return PooledQuery(
        id=query.id, text=query.text, need=query.need, notes=query.notes, strata=dict(query_strata(query))
    )


def _item(selected: Selected) -> PooledItem:
    candidate = selected.candidate
    return PooledItem(
        query=candidate.query_id,
        doc=candidate.doc_id,
        fields=candidate.fields,
        runs=candidate.ranks,
        stratum=selected.stratum,
        inclusion=selected.inclusion,
        judged=candidate.judged,
        prefilled=candidate.prefilled,
    )


def _select(candidates: Sequence[Candidate], request: PoolRequest) -> Iterator[Selected]:
    """Those in the pool, in any order."""
    top = f"1-{request.depth}"
    labels = {rank: sample.label for sample in request.samples for rank in range(sample.first, sample.last + 1)}
    known = (
        each
        for each in candidates
        if each.prefilled is not None or (each.judged is not None and request.include_judged)
    )
    yield from (
        Selected(each, top if each.best <= request.depth else labels[each.best], 1.0)
        for each in known
        if each.best <= request.depth or each.best in labels
    )
    unjudged = [each for each in candidates if each.is_open]
    first = [each for each in unjudged if each.best <= request.depth]
    if request.budget is not None:
        first = by_usefulness(first, request.seed)[: request.budget]
    yield from (Selected(each, top, 1.0) for each in first)
    for sample in request.samples:
        frame = [each for each in unjudged if sample.first <= each.best <= sample.last]
        for _, group in groupby(frame, key=lambda each: each.query_id):
            yield from _sampled(list(group), sample.label, sample.share, request.seed)


def _sampled(frame: Sequence[Candidate], label: str, share: float, seed: int) -> Iterator[Selected]:
    """A simple random sample of the documents of one query and range, of one document at least.

    Every document of the frame has the same chance to be drawn: the size of the sample over that of the frame.
    """
    by_id = {each.doc_id: each for each in frame}
    n = max(share_of(len(by_id), share), 1)
    drawn = shuffled(by_id, seed, f"pool {label}\n{frame[0].query_id}")[:n]
    yield from (Selected(by_id[doc_id], label, n / len(by_id)) for doc_id in drawn)


def by_usefulness(candidates: Iterable[Candidate], seed: int) -> list[Candidate]:
    """The order in which a budget takes documents: rank by rank through all systems and queries.

    Smallest rank first; at one rank those that more systems return first; then by seed. So every query gets about as many,
    and the first ranks of every system are judged before the second ones: the round robin of pooling to a depth that grows.
    """
    found = list(candidates)
    by_seed = {key: place for place, key in enumerate(shuffled(map(_key, found), seed, "budget"))}
    return sorted(found, key=lambda each: (each.best, -len(each.ranks), by_seed[_key(each)]))


def _key(candidate: Candidate) -> str:
    return f"{candidate.query_id!r} {candidate.doc_id!r}"


def _complete_to(candidates: Sequence[Candidate], selected: Sequence[Selected], request: PoolRequest) -> int:
    """The rank down to which every result of every system is in the pool, or judged already."""
    if request.budget is None:
        return request.depth
    taken = {_key(each.candidate) for each in selected}
    left = (each.best for each in candidates if each.is_open and _key(each) not in taken)
    return min(left, default=request.depth + 1) - 1
