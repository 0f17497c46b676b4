"""Spans that applications send: their queries are production queries, and what was retrieved are documents to judge.

A request is worked on at once, so nothing waits in memory; how many are worked on at a time is limited. Every span that comes is
counted under what became of it.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING

from cranfield.base.errors import UnknownNameError, UsageError
from cranfield.books.pool_file import Pool, PooledItem, PooledQuery
from cranfield.books.settings import BookSettings
from cranfield.books.store.schema import BookState
from cranfield.formats.traces.spans import Span
from cranfield.formats.traces.steps import Step, as_it_is, steps_of
from cranfield.judging.pools.results import is_storable
from cranfield.model.query_ids import content_id
from cranfield.workbench.service.intake.intake import Taking
from cranfield.workbench.service.intake.reading import LoggedQuery, day_of_ns, trace_digest

if TYPE_CHECKING:
    from cranfield.books.store.values import BookInfo
    from cranfield.workbench.service.context import Context

AT_A_TIME = 4
"""Requests that are worked on; a further one is refused, and sent again by the exporter."""
REMEMBERED = 100_000
"""Spans, and queries of traces, that are recognised when they are sent again, by a digest."""
MAX_TEXT_CHARS = 20_000
"""Characters of the text of a document that are kept in a book."""
MAX_ID_CHARS = 1_000


class SpanFate(StrEnum):
    """What became of a span."""

    TAKEN = "taken"
    OTHER = "other"
    """Neither of a retriever nor of a reranker, or of a name that is not taken."""
    NOT_SAMPLED = "not_sampled"
    REPEATED = "repeated"
    """It came before."""
    NO_QUERY = "no_query"
    """Without a text of the query."""
    DROPPED = "dropped"
    """Its query is not kept: too long, too old, or nothing is left when it is redacted."""


REJECTED = frozenset({SpanFate.DROPPED})
"""What a response counts as rejected; the rest is taken, or deliberately left out."""


class BusyError(Exception):
    """As many requests as are allowed are worked on."""


@dataclass
class TraceCounts:
    """What came, since the server was started."""

    requests: int = 0
    spans: Counter[SpanFate] = field(default_factory=Counter)
    documents_added: int = 0
    """Documents that are new in the book."""
    documents_dropped: Counter[str] = field(default_factory=Counter)
    """Why: `book_full`, `book_closed`, `no_id`."""


class TraceReceiver:
    """Takes in spans. Use it from any thread."""

    def __init__(self, service: Context) -> None:
        self._service = service
        self._turn = threading.Lock()
        self._slots = threading.BoundedSemaphore(AT_A_TIME)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self.counts = TraceCounts()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """A place among the requests that are worked on.

        Raises:
            BusyError: there is none.
        """
        if not self._slots.acquire(blocking=False):
            raise BusyError
        try:
            yield
        finally:
            self._slots.release()

    def take(self, spans: Iterable[Span]) -> Counter[SpanFate]:
        """Take in the spans of a request; how many had which fate.

        Raises:
            UsageError: the book of the operator's file cannot be made.
        """
        config = self._service.workbench.traces
        fates: Counter[SpanFate] = Counter()
        chosen: list[tuple[Span, list[Step]]] = []
        for span in spans:
            fate, steps = self._fate(span)
            if fate is SpanFate.TAKEN:
                chosen.append((span, steps))
            else:
                fates[fate] += 1
        taking = Taking(self._service.queries, self._service.workbench.intake, config.source, self._service.clock)
        pooled: list[tuple[str, Step]] = []
        queries: dict[bytes, None] = {}
        for span, steps in chosen:
            # A query counts once for a trace, which may search several times and rerank.
            sent = trace_digest(span.trace_id, steps[0].query)
            asks = steps[0].kind == "retriever" and sent not in self._known and sent not in queries
            queries[sent] = None
            record = LoggedQuery(steps[0].query, day=day_of_ns(span.start_ns))
            text = taking.take(record) if asks else taking.redacted(record)
            fates[SpanFate.DROPPED if text is None else SpanFate.TAKEN] += 1
            if text is not None:
                pooled += [(text, step) for step in steps if step.hits and step.kind != "reranker-input"]
        taking.batch(())
        added, dropped = self._pool(pooled) if config.book and pooled else (0, Counter())
        with self._turn:
            self.counts.requests += 1
            self.counts.spans += fates
            self.counts.documents_added += added
            self.counts.documents_dropped += dropped
            self._known |= dict.fromkeys(_digest(span) for span, _ in chosen) | queries
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return fates

    def _fate(self, span: Span) -> tuple[SpanFate, list[Step]]:
        config = self._service.workbench.traces
        steps = list(steps_of(span, redact=as_it_is))
        if not steps or not any(fnmatchcase(span.name, name) for name in config.names):
            return SpanFate.OTHER, []
        if not is_sampled(span.trace_id, config.sample):
            return SpanFate.NOT_SAMPLED, []
        with self._turn:
            if _digest(span) in self._known:
                return SpanFate.REPEATED, []
        return (SpanFate.TAKEN if steps[0].query else SpanFate.NO_QUERY), steps

    def _pool(self, found: list[tuple[str, Step]]) -> tuple[int, Counter[str]]:
        """Put the first documents of each list into the book; how many are new, and why others are not."""
        config = self._service.workbench.traces
        dropped: Counter[str] = Counter()
        queries: dict[str, PooledQuery] = {}
        items: dict[tuple[str, str], PooledItem] = {}
        for text, step in found:
            query_id = content_id(text)
            for rank, hit in enumerate((step.hits or ())[: config.depth], start=1):
                if step.n_unnamed or not is_storable(hit.id) or not 0 < len(hit.id.strip()) <= MAX_ID_CHARS:
                    dropped["no_id"] += 1
                    continue
                queries.setdefault(query_id, PooledQuery(id=query_id, text=text))
                earlier = items.get((query_id, hit.id))
                runs = {**(earlier.runs if earlier else {}), step.name or step.kind: rank}
                fields = {**_fields(hit.fields or {}, hit.title), **(earlier.fields if earlier else {})}
                items[query_id, hit.id] = PooledItem(query=query_id, doc=hit.id, fields=fields, runs=runs)
        book = self._book()
        if book.state != BookState.OPEN:
            return 0, dropped + Counter(book_closed=len(items))
        kept = dict(list(items.items())[: max(0, config.most_documents - book.n_items)])
        if len(kept) < len(items):
            dropped["book_full"] += len(items) - len(kept)
        named = {query_id for query_id, _ in kept}
        pool = _empty(book.name, config.depth).model_copy(
            update={
                "queries": tuple(query for query in queries.values() if query.id in named),
                "items": tuple(kept.values()),
            }
        )
        return (self._service.store.books.add_pool(book.id, pool) if kept else 0), dropped

    def _book(self) -> BookInfo:
        """The book of the operator's file, which is made where there is none."""
        name, books = self._service.workbench.traces.book, self._service.store.books
        try:
            return books.get(name)
        except UnknownNameError:
            pass
        try:
            return books.create(name, _empty(name, self._service.workbench.traces.depth), BookSettings())
        except UsageError:  # another request has made it meanwhile, or the name is none
            return books.get(name)


def _empty(name: str, depth: int) -> Pool:
    return Pool(name=name, method="traces", depth=depth, runs=(), queries=(), items=())


def _fields(given: object, title: str | None) -> dict[str, object]:
    """What is known of a document, as far as a database holds it."""
    found = {"title": title, **given} if isinstance(given, dict) else {"title": title}
    return {
        name: value[:MAX_TEXT_CHARS] if isinstance(value, str) else value
        for name, value in found.items()
        if value is not None and is_storable(name) and (not isinstance(value, str) or is_storable(value))
    }


def _digest(span: Span) -> bytes:
    return trace_digest(span.trace_id, f"span {span.span_id}")


def is_sampled(trace_id: str, share: float) -> bool:
    """Whether a trace is among those that are kept: the same for all of its spans, on every server.

    Example:
        >>> sum(is_sampled(f"{number:032x}", 0.25) for number in range(1000))
        244
    """
    number = int.from_bytes(sha256(trace_id.lower().encode("utf-8", "surrogatepass")).digest()[:8], "big")
    return number < share * 2.0**64
