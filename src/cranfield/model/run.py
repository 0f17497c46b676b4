"""What a system answered: hits, outcomes, and the run that holds them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

from cranfield.base.display import Displayed, in_line
from cranfield.base.words import count_noun, last_lines, shorten_to
from cranfield.model.explanation import Explanation

Order = Literal["given", "descending", "ascending"]
"""How a run is ordered: as given, or by score (best first, in the direction named)."""
CAUSE_COLUMNS = 300
"""Most columns of a line of stderr in the reason of a failure."""


class Outcome(StrEnum):
    """The outcome of one query. A failure is never an empty list of results."""

    ANSWERED = "answered"
    EMPTY = "empty"
    """The system answered, with no hit."""
    TIMEOUT = "timeout"
    NONZERO_EXIT = "nonzero exit"
    """The program ended with an error, or could not be started."""
    ERROR = "error"
    """The call failed: a refused connection, an HTTP status, an exception, an error of a tool."""
    UNPARSABLE = "unparsable"
    """The program ended well, and its output is not what the config says it is."""
    MISSING = "missing"
    """The run holds no answer for a judged query."""

    @property
    def is_failure(self) -> bool:
        """True for timeout, non-zero exit, error and unparsable output."""
        return self in {Outcome.TIMEOUT, Outcome.NONZERO_EXIT, Outcome.ERROR, Outcome.UNPARSABLE}


TEXTS = ("snippet", "text", "body", "content", "description")
"""Fields of a result that hold its text; the first one counts."""
SHOWN_TEXT = 120
"""Columns of a text that stands for a title."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result, as the system gave it."""

    id: str
    score: float | None = None
    title: str | None = None
    span: str | None = None
    """Place inside the document, in the system's own words (`12-40`)."""
    tokens: float | None = None
    """What reading it costs, in tokens (or any unit that the whole run uses); None when unknown."""
    redacted_id: str | None = None
    """The id for people to see, where it holds a secret of the system's settings; `id` is what is matched."""
    redacted_span: str | None = None
    fields: Mapping[str, Any] | None = None
    """What the system says of the document, for raters: `text`, `url`, `image`; None where it says nothing."""
    explanation: Explanation | None = None
    """How its score came about, where the system was to explain it; not in the digest of a run."""

    def __hash__(self) -> int:
        """Hash of the id: equal results have equal hashes."""
        return hash(self.id)

    @property
    def public_id(self) -> str:
        """The id, without secrets."""
        return self.id if self.redacted_id is None else self.redacted_id

    @property
    def shown_title(self) -> str | None:
        """Its title; without one the beginning of its text, for lists of results."""
        if self.title or not self.fields:
            return self.title
        text = next((text for name in TEXTS if isinstance(text := self.fields.get(name), str) and text.strip()), None)
        return None if text is None else shorten_to(" ".join(text[: 4 * SHOWN_TEXT].split()), SHOWN_TEXT)

    @property
    def public_span(self) -> str | None:
        """The span, without secrets."""
        return self.span if self.redacted_span is None else self.redacted_span


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything a system returned for one query, in its order, before any cut, sort or de-duplication."""

    outcome: Outcome
    hits: tuple[Hit, ...] = ()
    reason: str | None = None
    """Why it failed, in words that are the same on every machine: no path, no time."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Per-query extras the config extracts: confidence, answer, tokens."""

    def __hash__(self) -> int:
        """Hash of the outcome and the results: equal answers have equal hashes."""
        return hash((self.outcome, self.hits))


@dataclass(frozen=True, slots=True)
class CallLog:
    """What differs from one collection to the next: kept beside a run, never in its digest."""

    latency_ms: float
    """Latency of the attempt that ended the call, in milliseconds; waiting between attempts is not in it."""
    stdout_head: str = ""
    """The first characters of the raw output, so that a parse problem can be seen."""
    stderr_head: str = ""
    """The last characters of stderr: programs write the cause of a failure at the end."""
    attempts: int = 1
    """Times the call was tried: 1 and its retries; 0 where the program had ended too often to be started again."""
    repeat_ms: tuple[float, ...] = ()
    """Latency of each repeated call."""
    unstable: tuple[str, ...] = ()
    """For each of those times that brought another answer, the first difference: `rank 2: d7, then d9`."""
    cached: bool = False
    """The answer was kept from an earlier collection; latency and the rest are of that one."""
    calls_before: int | None = field(default=None, compare=False)
    """Calls that this collection had made to the system before, its warm-up included; None where it is not known."""
    at: str | None = field(default=None, compare=False)
    """Time of the answer, UTC: `2026-11-21T20:51:03Z`."""
    age_s: float | None = field(default=None, compare=False)
    """Seconds between the answer and the call that used it, where that did not ask for it: it is cached, or of a collection
    that was interrupted. None where it was asked for."""

    def cause(self, outcome: Outcome, reason: str) -> str:
        """The reason of a failure; where a command ended in error, with the last line that it wrote on stderr."""
        has_ended = outcome is Outcome.NONZERO_EXIT
        wrote = shorten_to(last_lines(self.stderr_head, 1), CAUSE_COLUMNS) if has_ended else ""
        return ": ".join(part for part in (reason, wrote) if part)


@dataclass(frozen=True, repr=False)
class Run(Displayed):
    """The answers of one system to the queries of one test set."""

    name: str
    answers: Mapping[str, Answer]
    """Query id to answer."""
    depth: int | None = None
    """Ranks kept per query (the `k` requested); None keeps all."""
    order: Order = "given"
    logs: Mapping[str, CallLog] = field(default_factory=dict)
    testset_digest: str | None = None
    """Digest of the test set whose queries were sent; None when unknown."""
    config_digest: str | None = None
    """Digest of the system's configuration as written, before any path is expanded."""
    pilot: bool = False
    """Stamped as not for the record."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The system's configuration as written, for the provenance of a report; holds no secret."""
    changed: bool = False
    """What the system depends on changed while it was asked: the answers may be of two versions of its index."""
    machine: str | None = None
    """A digest that tells the machine of the collection from others; None where it is not known."""
    says_empty: bool = True
    """False where it was read from a table of results, which has no row for an answer without a result."""
    extra_queries: tuple[str, ...] = ()
    """Ids of the file that the answers were looked up in and that no query of the test set has; a thousand at most."""
    notes: tuple[str, ...] = ()
    """What its reader chose and left out, sentences for people; not in a file of a run."""
    redacted: bool = False
    """Whether queries go by their redacted texts, as those of traces do."""

    def __hash__(self) -> int:
        """Hash of the name and the queries: equal runs have equal hashes."""
        return hash((self.name, frozenset(self.answers)))

    @classmethod
    def from_arrays(
        cls,
        ids: Any,
        scores: Any = None,
        *,
        query_ids: Any,
        doc_ids: Any = None,
        name: str = "run",
        depth: int | None = None,
    ) -> Run:
        """Make a run of arrays of results, as vector indexes return them; `evaluate` takes such arrays directly.

        Args:
            ids: int[N, K], a row per query, best first, -1 for padding: positions in `doc_ids`, or document ids; or text.
            scores: float[N, K], shown beside the results; the order is that of the columns.
            query_ids: N texts or whole numbers.
            doc_ids: D texts or whole numbers; None: `ids` holds the ids.
            name: of the run.
            depth: number of results that were requested; None: the number of columns.

        Raises:
            UsageError: with every array that is of another type or shape than this.
        """
        from cranfield.model.arrays import ResultArrays

        arrays = ResultArrays.of(ids, scores, query_ids=query_ids, doc_ids=doc_ids, name=name)
        answers = {}
        for query_id, documents, values in arrays.answers(()):
            found: Iterable[float | None] = values or itertools.repeat(None, len(documents))
            hits = tuple(Hit(doc_id, score) for doc_id, score in zip(documents, found, strict=True))
            answers[query_id] = Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits)
        return cls(name, answers, depth=depth or arrays.ids.shape[1], order="given")

    @cached_property
    def digest(self) -> str:
        """SHA-256 over order, depth and answers; name, logs, explanations of scores and provenance do not enter."""
        hasher = sha256(f"cranfield run 1 {self.order} {self.depth}\n".encode())
        for query_id in sorted(self.answers):
            answer = self.answers[query_id]
            # The same number for 1 and 1.0, so that they have one digest.
            hits = [
                [hit.id, None if hit.score is None else float(hit.score), hit.title, hit.span, *_extras(hit)]
                for hit in answer.hits
            ]
            record = [query_id, answer.outcome.value, answer.reason, hits, dict(answer.fields)]
            text = json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
            hasher.update(text.encode("utf-8", "surrogatepass") + b"\n")
        return "sha256:" + hasher.hexdigest()

    def _summary(self) -> str:
        answers = self.answers.values()
        n_failed = sum(answer.outcome.is_failure for answer in answers)
        counts = [
            count_noun(len(answers), "queries"),
            count_noun(sum(len(answer.hits) for answer in answers), "results"),
        ]
        counts += [f"{n_failed} failed"] if n_failed else []
        return f"{in_line(self.name)}: {', '.join([*counts, *(['pilot'] if self.pilot else [])])}"


def _extras(hit: Hit) -> list[object]:
    """What only some results have."""
    return [
        *([] if hit.tokens is None else [float(hit.tokens)]),
        *([] if hit.fields is None else [dict(hit.fields)]),
    ]
