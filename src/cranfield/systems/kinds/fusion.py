"""A system that fuses the results of other systems, its parts.

An answer of a part is kept in memory until every fusion of that part has used it, so that several fusions, or the points of
a grid, ask it once.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from cranfield.base.errors import UsageError
from cranfield.config.systems import Fusion, FusionConfig, Normalisation
from cranfield.model import Answer, CallLog, Explanation, Hit, Order, Outcome, Query, Scalar
from cranfield.systems.calls.stages import CheckFailedError, Step
from cranfield.systems.configured import ConfiguredSystem, Exchange, Received, Reply
from cranfield.systems.kinds.run_file import RunFileSystem

LARGEST_SCORE = 1e150
"""Larger scores are rejected: their squares overflow."""

Place = tuple[str, str | None]
"""Key of a result: its id, and its span if every result has one."""
T = TypeVar("T")


class UnusableScoreError(Exception):
    """A result has no usable score, and the method needs one."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """The results of one fused system."""

    name: str
    hits: Sequence[Hit]
    order: Order = "given"
    """`given`: best first; else the list is sorted by score. `ascending`: lower is better."""
    weight: float = 1.0


def fuse(parts: Sequence[ResultList], how: Fusion, *, depth: int, k: int, explain: bool = False) -> list[Hit]:
    """Fuse lists into one, best first, each hit with its fused score.

    The score of a document is the sum of weight times contribution over the lists. The contribution is 1 / (rrf_k + rank)
    with `rrf` (Cormack, Clarke & Büttcher 2009, SIGIR); with `sum` the normalised score (CombSUM: Fox & Shaw 1994,
    TREC-2), see `normalised` for documents that are missing from a list. Sums are rounded once, so that they do not depend
    on the order of the parts. Ties are broken by document id, larger first, in bytes. A single list keeps its order.

    Args:
        parts: the lists; those of weight 0 are ignored.
        how: method and its constants; `of`, `weights` and `depth` are not used.
        depth: cutoff of each list.
        k: cutoff of the result.
        explain: each hit says what every list gives to its score.

    Raises:
        UnusableScoreError: a score is missing or too large, for `sum` or a list to be sorted; names the part.
    """
    active = [part for part in parts if part.weight > 0]
    by_span = all(hit.span is not None for part in active for hit in part.hits)
    tops = [_top_unique(best_first(part), depth, by_span=by_span) for part in active]
    by_rank = how.method == "rrf" or len(active) == 1
    shares = [
        _by_rank(top, how.rrf_k) if by_rank else _by_score(part, top, how.normalise)
        for part, top in zip(active, tops, strict=True)
    ]
    places = dict.fromkeys(place for top in tops for place in top)
    scores = {
        place: math.fsum(
            part.weight * share.get(place, absent) for part, (share, absent) in zip(active, shares, strict=True)
        )
        for place in places
    }
    best = sorted(places, key=lambda place: (scores[place], *_bytes(place)), reverse=True)
    hits = [_fused([top[place] for top in tops if place in top], scores[place]) for place in best[:k]]
    if not explain:
        return hits
    ranks = [{place: rank for rank, place in enumerate(top, start=1)} for top in tops]
    return [
        replace(
            hit,
            explanation=Explanation(
                "sum",
                scores[place],
                tuple(
                    _given(part, rank.get(place), share.get(place, absent), top.get(place))
                    for part, (share, absent), top, rank in zip(active, shares, tops, ranks, strict=True)
                    if place in rank or absent
                ),
            ),
        )
        for place, hit in zip(best, hits, strict=False)
    ]


def _given(part: ResultList, rank: int | None, share: float, hit: Hit | None) -> Explanation:
    """What a list gives to the score of a result: its weight times its share, and the explanation that the list has of it."""
    at = () if rank is None else (Explanation("rank", float(rank)),)
    own = () if hit is None or hit.explanation is None else (replace(hit.explanation, name="score"),)
    return Explanation(part.name, part.weight * share, (Explanation("weight", part.weight), *at, *own))


def best_first(part: ResultList) -> list[Hit]:
    """Hits in rank order; ties of scores are broken by document id, larger first.

    Raises:
        UnusableScoreError: a list to be sorted has a hit without a usable score.
    """
    if part.order == "given":
        return list(part.hits)
    by_id = sorted(part.hits, key=lambda hit: _bytes((hit.id, hit.span)), reverse=True)
    return sorted(by_id, key=lambda hit: _score(part, hit), reverse=part.order == "descending")


def normalised(scores: Sequence[float], how: Normalisation) -> tuple[list[float], float]:
    """Normalised scores of a list, and the score of a document that is missing from it.

    `min-max`: 0 to 1, missing 0; equal scores are all 1, as in OpenSearch (in ranx 0, which discards a list of one result).
    `z`: standard scores by the population's standard deviation, 0 if all are equal; missing is the lowest of the list (in
    ranx 0, the mean, better than half of the list), or -1 if all are equal, so that a list of one result is not discarded.
    `none`: unchanged; missing 0, or the lowest if that is negative: a missing document never scores higher than a found one.
    """
    if not scores:
        return [], 0.0
    lowest, highest = min(scores), max(scores)
    if how == "none":
        return list(scores), min(0.0, lowest)
    if how == "min-max":
        return [1.0 if lowest == highest else (score - lowest) / (highest - lowest) for score in scores], 0.0
    mean = math.fsum(scores) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
    if lowest == highest or not spread:
        return [0.0] * len(scores), -1.0
    found = [(score - mean) / spread for score in scores]
    return found, min(found)


def _by_rank(top: Mapping[Place, T], rrf_k: float) -> tuple[dict[Place, float], float]:
    return {place: 1 / (rrf_k + rank) for rank, place in enumerate(top, start=1)}, 0.0


def _by_score(part: ResultList, top: Mapping[Place, Hit], how: Normalisation) -> tuple[dict[Place, float], float]:
    # Negated where lower is better.
    sign = -1.0 if part.order == "ascending" else 1.0
    scores, absent = normalised([sign * _score(part, hit) for hit in top.values()], how)
    return dict(zip(top, scores, strict=True)), absent


def _top_unique(hits: Sequence[Hit], depth: int, *, by_span: bool) -> dict[Place, Hit]:
    """The first `depth` distinct results, each at its best rank."""
    found: dict[Place, Hit] = {}
    for hit in hits:
        place = (hit.id, hit.span if by_span else None)
        if place not in found and len(found) == depth:
            break
        found.setdefault(place, hit)
    return found


def _fused(same: Sequence[Hit], score: float) -> Hit:
    """Merge equal results: of each field the first value that is not None."""
    first = same[0]
    for other in same[1:]:
        first = replace(
            first,
            title=other.title if first.title is None else first.title,
            span=other.span if first.span is None else first.span,
            tokens=other.tokens if first.tokens is None else first.tokens,
            fields=other.fields if first.fields is None else first.fields,
        )
    return replace(first, score=score, explanation=None)


def _score(part: ResultList, hit: Hit) -> float:
    if hit.score is None:
        raise UnusableScoreError(f"{part.name}: a result without a score")
    if not abs(hit.score) <= LARGEST_SCORE:
        raise UnusableScoreError(f"{part.name}: a score that cannot be added")
    return float(hit.score)


def _bytes(place: Place) -> tuple[bytes, bytes]:
    return place[0].encode("utf-8", "surrogatepass"), (place[1] or "").encode("utf-8", "surrogatepass")


DEFAULT_DEPTH = 100
"""Default number of results requested from each part; k if that is larger."""

Request = tuple[str, str, str, int, int]
"""Query id, text, params, depth, and number of earlier equal requests of the same fusion."""


class FusionSystem(ConfiguredSystem):
    """A fusion of systems of cranfield.yaml. `build_systems` sets `parts`.

    Parts are called one after the other, so the latency of a call is the sum of theirs. A part with weight 0 is not
    called. If a part fails, the fusion fails with its outcome and reason: the other parts would be a different system. So it
    does where the run file of a part lacks an answer, unless a file of its format has no other way to say that it is empty.
    """

    kind = "fusion"
    config: FusionConfig

    def prepare(self) -> None:
        """Initialise the counts of requests."""
        self._times: Counter[Request] = Counter()

    @property
    def parts(self) -> Mapping[str, ConfiguredSystem]:
        """Its parts by name."""
        return self._parts

    @parts.setter
    def parts(self, parts: Mapping[str, ConfiguredSystem]) -> None:
        """Set the parts, and register this fusion with each."""
        self._parts = parts
        for name, part in parts.items():
            if self.fusion.weights.get(name, 1.0) > 0:
                _memory(part).fusions.add(self)  # all fusions are registered before the first call

    @property
    def fusion(self) -> Fusion:
        """The fusion settings."""
        return self.config.fusion

    @property
    def active_parts(self) -> dict[str, ConfiguredSystem]:
        """The parts with a weight above 0, in their order.

        Raises:
            UsageError: a part was not set, or no part has a weight.
        """
        how = self.fusion
        missing = [name for name in how.of if name not in self.parts]
        if missing:
            hint = "build_systems makes a fusion together with its parts."
            raise UsageError(f"the fusion {self.name} was made without its part {missing[0]}", hint=hint)
        parts = {name: self.parts[name] for name in how.of if how.weights.get(name, 1.0) > 0}
        if not parts:
            raise UsageError(f"every part of the fusion {self.name} has weight 0", hint="give one of them a weight.")
        return parts

    @property
    def order(self) -> Order:
        """By the fused score."""
        return "descending"

    @property
    def concurrency(self) -> int:
        """As configured; by default the lowest of its parts."""
        if "concurrency" in self.declared.model_fields_set:
            return self.config.concurrency
        return min((part.concurrency for part in self.parts.values()), default=self.config.concurrency)

    @property
    def rate_per_s(self) -> float | None:
        """The lowest of its own and its parts', because each call calls every part."""
        rates = [rate for rate in (self.config.rate_per_s, *(part.rate_per_s for part in self.parts.values())) if rate]
        return min(rates, default=None)

    @property
    def config_digest(self) -> str:
        """SHA-256 over its own configuration and the digests of its parts."""
        parts = {name: part.config_digest for name, part in self.parts.items()}
        text = json.dumps([super().config_digest, parts], sort_keys=True)
        return "sha256:" + sha256(b"cranfield fusion 1\n" + text.encode()).hexdigest()

    def public_config(self) -> Mapping[str, Any]:
        """As configured, with the configuration of each part under `parts`."""
        return {**super().public_config(), "parts": {name: part.public_config() for name, part in self.parts.items()}}

    def depends_on(self) -> Iterator[Path]:
        """Dependencies of it and its parts, each once."""
        found = [*super().depends_on(), *(path for part in self.parts.values() for path in part.depends_on())]
        return iter(dict.fromkeys(found))

    def ready_steps(self) -> Iterator[Step]:
        """All checks of its parts."""
        for name, part in self.active_parts.items():
            yield from _steps_of(name, part)

    def close(self) -> None:
        """Close its parts."""
        for part in self.parts.values():
            part.close()

    def params_of(self, query: Query) -> dict[str, Scalar]:
        """Parameters that override those of every part: of the fusion, of the set, of the query."""
        return {**self.config.params, **self.set_params, **query.params}

    def request(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """The requests of its parts."""
        depth = self._depth(k)
        whole = Query("request", query, params=dict(params))
        sent = ((part, part.request(query, depth, part.params_of(whole))) for part in self.active_parts.values())
        return "\n".join(f"{part.name}: {part.redactor.redact(request)}" for part, request in sent)

    async def sent(self, query: str, k: int, params: Mapping[str, Scalar]) -> str:
        """What its parts send."""
        depth, whole = self._depth(k), Query("request", query, params=dict(params))
        parts = self.active_parts.values()
        sent = [part.redactor.redact(await part.sent(query, depth, part.params_of(whole))) for part in parts]
        return "\n".join(f"{part.name}: {text}" for part, text in zip(parts, sent, strict=True))

    async def attempt(self, query: str, k: int, params: Mapping[str, Scalar], received: Received) -> Reply:  # noqa: ARG002
        """Call every part once."""
        answer, log = await self._ask_parts(Query("attempt", query, params=dict(params)), k)
        return Reply(log.stdout_head, log.stderr_head, answer)

    async def ask_async(self, query: Query, k: int, *, is_shown: bool = False) -> Exchange:
        """One call in full; retries and time limits are those of its parts."""
        params = self.params_of(query)
        with self._interruptible():
            answer, log = await self._ask_parts(Query(query.id, query.text, params=params), k)
        request = await self.sent(query.text, k, params) if is_shown else ""
        shown = (log.stdout_head, log.stderr_head) if is_shown else ("", "")
        return Exchange(request, *shown, answer, log)

    def _depth(self, k: int) -> int:
        return self.fusion.depth or max(DEFAULT_DEPTH, k)

    async def _ask_parts(self, query: Query, k: int) -> tuple[Answer, CallLog]:
        """Call the parts in order, up to the first failure."""
        depth = self._depth(k)
        params = json.dumps(query.params, sort_keys=True, default=str)
        first: Request = (query.id, query.text, params, depth, 0)
        request: Request = (*first[:4], self._times[first])
        answers: dict[str, Answer] = {}
        logs: dict[str, CallLog] = {}
        failure: Answer | None = None
        for name, part in self.active_parts.items():
            answers[name], logs[name] = await _memory(part).ask(self, part, query, request)
            if answers[name].outcome.is_failure or _is_lacking(part, query, answers[name]):
                answer = answers[name]
                reason = f"{name}: {answer.outcome.value}" + (f": {answer.reason}" if answer.reason else "")
                failure = Answer(answer.outcome, reason=reason)
                break
        self._times[first] += 1
        return failure or self._fused(answers, depth, k), _log_of(logs)

    def _fused(self, answers: Mapping[str, Answer], depth: int, k: int) -> Answer:
        how = self.fusion
        lists = [
            ResultList(name, answer.hits, self.parts[name].list_order, how.weights.get(name, 1.0))
            for name, answer in answers.items()
        ]
        try:
            hits = fuse(lists, how, depth=depth, k=k, explain=self.config.explain)
        except UnusableScoreError as unusable:
            needs = "method: sum needs scores" if how.method == "sum" else "it is to be sorted by score"
            return Answer(Outcome.ERROR, reason=f"{unusable} ({needs})")
        fields = {f"{name}.{key}": value for name, answer in answers.items() for key, value in answer.fields.items()}
        return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, tuple(hits), fields=fields)


def _is_lacking(part: ConfiguredSystem, query: Query, answer: Answer) -> bool:
    """Whether a missing answer of a part is more than an empty one that the format of its run file cannot say."""
    if answer.outcome is not Outcome.MISSING:
        return False
    return not isinstance(part, RunFileSystem) or part.says_empty or query.id in part.run.answers


def _log_of(logs: Mapping[str, CallLog]) -> CallLog:
    """Sums of latencies and retries; output of each part after its name."""

    def written(heads: Mapping[str, str]) -> str:
        return "\n".join(f"{name}: {head}" for name, head in heads.items() if head)

    return CallLog(
        latency_ms=sum(log.latency_ms for log in logs.values()),
        stdout_head=written({name: log.stdout_head for name, log in logs.items()}),
        stderr_head=written({name: log.stderr_head for name, log in logs.items()}),
        attempts=1 + sum(log.attempts - 1 for log in logs.values()),
    )


@dataclass(eq=False)
class _Entry:
    """A request to a part: its answer, and the fusions that have used it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    found: tuple[Answer, CallLog] | None = None
    takers: WeakSet[FusionSystem] = field(default_factory=WeakSet)


class _Memory:
    """Answers of one part that are still needed by a fusion."""

    def __init__(self, part: ConfiguredSystem) -> None:
        self.fusions: WeakSet[FusionSystem] = WeakSet()
        self._entries: dict[Request, _Entry] = {}
        self._room = asyncio.Semaphore(max(part.concurrency, 1))

    async def ask(
        self, fusion: FusionSystem, part: ConfiguredSystem, query: Query, request: Request
    ) -> tuple[Answer, CallLog]:
        """The answer of the part, which is called once for all fusions."""
        entry = self._entries.setdefault(request, _Entry())
        async with entry.lock:
            if entry.found is None:
                async with self._room:
                    entry.found = await part.search_async(query, request[3])
            entry.takers.add(fusion)
            found = entry.found
        if len(entry.takers) >= len(self.fusions):
            self._entries.pop(request, None)
        return found


_MEMORIES: WeakKeyDictionary[ConfiguredSystem, _Memory] = WeakKeyDictionary()
_MAKING = Lock()


def _memory(part: ConfiguredSystem) -> _Memory:
    with _MAKING:
        return _MEMORIES.setdefault(part, _Memory(part)) if part not in _MEMORIES else _MEMORIES[part]


def _steps_of(name: str, part: ConfiguredSystem) -> Iterator[Step]:
    """Checks of a part, labelled with its name, without its secrets."""
    from cranfield.systems.collect.preflight import steps_of

    redact = part.redactor.redact

    def redacted(check: Callable[[], str]) -> str:
        try:
            return redact(check())
        except CheckFailedError as failure:
            raise failure.redacted(redact) from None

    for label, check in steps_of(part, 10):
        yield f"{name}: {redact(label)}", partial(redacted, check)
