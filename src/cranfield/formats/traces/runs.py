"""Traces as a run and as queries: which step is meant, and which of several lists of a query counts.

`traces.jsonl#name=vector-search,pick=last` chooses. The order of spans in the file counts for nothing: their times do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote, unquote

from cranfield.base.errors import CranfieldError, Problem, RunFormatError, TestSetError, did_you_mean, shorten
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.files import shown, split_part, stem
from cranfield.formats.testsets.trec import MADE_IDS
from cranfield.formats.traces.spans import Span, read_spans
from cranfield.formats.traces.steps import STEP_KINDS, Step, StepKind, root_query, steps_of
from cranfield.model import Answer, Hit, Outcome, Query, Run, TestSet
from cranfield.model.note import info
from cranfield.model.query_ids import content_id, text_ids

Pick = Literal["first", "last", "union"]
QueryOf = Literal["span", "trace"]
_VALUES = {"kind": STEP_KINDS, "pick": get_args(Pick), "query": get_args(QueryOf)}
HOW = (
    "FILE#name=NAME (`*` stands for any text), kind=retriever, reranker or reranker-input, source=ID, "
    "pick=first, last or union, query=span or trace; several with commas"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which of the steps of traces are meant, as `FILE#…` says it."""

    name: str = ""
    """Name of the span; `*` stands for any text. Empty: the only one."""
    kind: StepKind | Literal[""] = ""
    source: str = ""
    """Id of the data source."""
    pick: Pick | Literal[""] = ""
    """Which of several lists of a query in one trace; empty: the last."""
    query: QueryOf = "span"
    """Whose text the query is: that of the span, or that of the first span of the trace, as what a user asked an agent."""

    def takes(self, step: Step) -> bool:
        """Whether a step is meant."""
        return (
            (not self.name or fnmatchcase(step.name, self.name))
            and self.kind in ("", step.kind)
            and self.source in ("", step.source)
        )


def choice_of(path: Path, error: type[CranfieldError] = RunFormatError) -> tuple[Path, Choice]:
    """The file and the choice of `FILE#name=NAME,pick=last`. Commas and percent signs in a value are percent-encoded.

    Raises:
        CranfieldError: of type `error`: a key or a value that is none.
    """
    file, text = split_part(path)
    given: dict[str, str] = {}
    keys = [each.name for each in fields(Choice)]
    for part in filter(None, text.split(",")):
        key, _, value = part.partition("=")
        key, value = key.strip(), unquote(value)
        if key not in keys or not value:
            hint = did_you_mean(key, keys) if value else None
            raise error(Problem("not a choice of spans", path=str(path), expected=HOW, got=shorten(part), hint=hint))
        if key in _VALUES and value not in _VALUES[key]:
            hint = did_you_mean(value, _VALUES[key])
            expected = ", ".join(_VALUES[key])
            raise error(Problem(f"no such {key}", path=str(path), expected=expected, got=shorten(value), hint=hint))
        given[key] = value
    return file, Choice(**given)  # type: ignore[arg-type]  # checked against the values above


@dataclass
class TraceSteps:
    """The steps of a file, each once, in the order of their times; and what was counted on the way."""

    steps: list[Step]
    n_spans: int = 0
    trace_ids: set[str] = field(default_factory=set)
    queries_of_traces: dict[str, str] = field(default_factory=dict)
    """Trace to what its first span was asked."""
    n_repeated: int = 0
    """Spans that were in the file before."""
    others: Counter[str] = field(default_factory=Counter)

    @property
    def by_step(self) -> dict[tuple[StepKind, str], list[Step]]:
        """Kind and name to the steps of it; the ones with most first, those without any document last."""
        found: dict[tuple[StepKind, str], list[Step]] = {}
        for step in self.steps:
            found.setdefault((step.kind, step.name), []).append(step)
        return dict(sorted(found.items(), key=lambda each: (not _has_documents(each[1]), -len(each[1]), each[0])))


def _has_documents(steps: Iterable[Step]) -> bool:
    return any(step.hits for step in steps)


def read_steps(path: Path, error: type[CranfieldError], query: QueryOf = "span") -> TraceSteps:
    """Read the steps of a file of spans.

    What is kept is bounded by the retrievals: other spans are dropped, and equal texts of documents are kept once.

    Args:
        path: the file.
        error: what to raise.
        query: `trace` to keep what the first span of each trace was called with, too.

    Raises:
        CranfieldError: of type `error`, as `read_spans`; or no span is of a retriever or a reranker.
    """
    others: Counter[str] = Counter()
    found = TraceSteps([])
    by_id: dict[tuple[str, str, StepKind], Step] = {}
    texts: dict[str, str] = {}
    roots: dict[str, tuple[int, str]] = {}
    for span in read_spans(path, error, others):
        found.n_spans += 1
        found.trace_ids.add(span.trace_id)
        if query == "trace" and not span.parent_id and (own := (span.start_ns, root_query(span)))[1]:
            roots[span.trace_id] = min(roots.get(span.trace_id, own), own)
        _add_steps(span, by_id, texts, found)
    found.queries_of_traces = {trace_id: text for trace_id, (_, text) in roots.items()}
    found.steps = sorted(by_id.values(), key=_order)
    found.others = others
    if not found.steps:
        expected = (
            "spans with `openinference.span.kind` RETRIEVER or RERANKER, `gen_ai.operation.name` retrieval, "
            "or observations of the type RETRIEVER"
        )
        got = f"{count_noun(found.n_spans, 'spans')} of other kinds"
        raise error(Problem("no retrieval in these traces", path=shown(path), expected=expected, got=got))
    return found


def _add_steps(
    span: Span, by_id: dict[tuple[str, str, StepKind], Step], texts: dict[str, str], found: TraceSteps
) -> None:
    is_repeated = False
    for step in steps_of(span):
        kept = step if step.hits is None else replace(step, hits=tuple(_sharing(hit, texts) for hit in step.hits))
        key = (span.trace_id, span.span_id, step.kind)
        if key in by_id:
            is_repeated = True
            kept = max(by_id[key], kept, key=_completeness)
        by_id[key] = kept
    found.n_repeated += is_repeated


def _sharing(hit: Hit, texts: dict[str, str]) -> Hit:
    """A result whose text is the object that equal texts have."""
    text = hit.fields.get("text") if hit.fields else None
    if not isinstance(text, str):
        return hit
    return replace(hit, fields={**(hit.fields or {}), "text": texts.setdefault(text, text)})


def _order(step: Step) -> tuple[int, str, str, str]:
    return step.start_ns, step.trace_id, step.span_id, step.kind


def _completeness(step: Step) -> tuple[bool, int, int, str]:
    """Sort key of records of one span: the last says most."""
    return bool(step.query), len(step.hits or ()), step.start_ns, repr(step)


def read_trace_run(path: Path | str) -> Run:
    """Read the run of one step of traces; see `Choice`.

    A query goes by its redacted text. Where several traces have one, the last counts; a trace in which a query was asked
    several times gives the list that `pick` says: the first, the last, or all documents by the rank at which each was first
    seen. A query whose spans all failed has failed; one without recorded documents has no answer.

    Raises:
        RunFormatError: the spans cannot be read, several steps are there and none was chosen, or none is as chosen.
    """
    file, choice = choice_of(Path(path))
    return run_of(read_steps(file, RunFormatError, choice.query), choice, file)


def run_of(found: TraceSteps, choice: Choice, file: Path) -> Run:
    """The run of the step that is meant. Raises as `read_trace_run`."""
    chosen, (kind, name) = _chosen(found, choice, file)
    tally = _Tally()
    answers = _answers(chosen, choice, found, tally)
    if not answers:
        raise RunFormatError(
            Problem(
                f"no query with documents in the spans {shorten(name)}",
                path=shown(file),
                got="; ".join(tally.notes(choice)) or None,
                hint=_HINT_NOTHING,
            )
        )
    texts = text_ids(list(answers))
    n_traces = count_noun(len({step.trace_id for step in chosen}), "traces")
    notes = (
        f"from traces: {_words(kind, name)}, {count_noun(len(chosen), 'spans')} of {n_traces}",
        *tally.notes(choice),
        *_not_used(found, chosen, file),
    )
    parts = (stem(file), *(str(value) for value in (choice.name, choice.kind, choice.source, choice.pick) if value))
    return Run("-".join(parts), dict(zip(texts, answers.values(), strict=True)), notes=notes, redacted=True)


_HINT_NOTHING = (
    "instrumentation may leave out contents: OpenTelemetry records `gen_ai.retrieval.query.text` and `gen_ai.retrieval.documents` "
    "only on request"
)


def _chosen(found: TraceSteps, choice: Choice, file: Path) -> tuple[list[Step], tuple[StepKind, str]]:
    """The steps that are meant, and the kind and name of the first.

    Raises:
        RunFormatError: none is as chosen, or they are of several names or kinds.
    """
    groups = {
        key: taken for key, steps in found.by_step.items() if (taken := [step for step in steps if choice.takes(step)])
    }
    if not groups:
        names = [step.name for step in found.steps]
        raise RunFormatError(
            Problem(
                "no span is as chosen",
                path=shown(file),
                expected=join_first(commands_of(found, shown(file)), 10),
                hint=did_you_mean(choice.name, list(dict.fromkeys(names))) if choice.name else None,
            )
        )
    with_documents = {key: steps for key, steps in groups.items() if _has_documents(steps)} or groups
    is_any = "*" in choice.name and len({kind for kind, _ in groups}) == 1
    if len(with_documents) > 1 and not is_any:
        raise RunFormatError(
            Problem(
                f"these traces have {count_noun(len(with_documents), 'retrieval steps')}",
                path=shown(file),
                expected=f"one of them: {join_first(commands_of(found, shown(file), with_documents), 10)}",
                hint=f"`cranfield init {shown(file)}` shows what is in the file. {HOW}",
            )
        )
    first = next(iter(with_documents))
    if is_any:
        return sorted((step for steps in groups.values() for step in steps), key=_order), (first[0], choice.name)
    return with_documents[first], first


def commands_of(found: TraceSteps, file: str, groups: Iterable[tuple[StepKind, str]] | None = None) -> list[str]:
    """What to write for each step: `traces.jsonl#name=vector-search`, with the kind where two have the name."""
    there = found.by_step
    names = Counter(name for _, name in there)
    return [
        f"{file}#name=" + quote(name, safe="/:.@") + (f",kind={kind}" if names[name] > 1 else "")
        for kind, name in (there if groups is None else groups)
    ]


def _words(kind: StepKind, name: str) -> str:
    what = {"retriever": "retriever", "reranker": "output of reranker", "reranker-input": "input of reranker"}[kind]
    return f"{what} {shorten(name)}"


def _not_used(found: TraceSteps, chosen: Sequence[Step], file: Path) -> Iterator[str]:
    """What the file has besides, and how to choose it."""
    used = {(step.kind, step.name) for step in chosen}
    others = [key for key in found.by_step if key not in used]
    if others:
        which = join_first(commands_of(found, file.name, others), 5)
        yield f"not used: {count_noun(len(others), 'other steps')} ({which})"
    yield from file_notes(found)


def file_notes(found: TraceSteps) -> Iterator[str]:
    """What the file holds that no step has."""
    if found.n_repeated:
        yield f"{count_noun(found.n_repeated, 'spans')} were in the file twice, and count once"
    for what, n in found.others.items():
        yield f"left out: {n} {what}"


@dataclass
class _Tally:
    """What the steps of a run do not say, and what is left out of it."""

    no_query: int = 0
    no_documents: int = 0
    failed: int = 0
    failed_queries: int = 0
    unanswered: list[str] = field(default_factory=list)
    in_trace: int = 0
    """Pairs of trace and query with several lists."""
    in_traces: int = 0
    """Queries of several traces."""
    differing: int = 0
    """Queries of several traces whose lists differ."""
    unnamed: int = 0
    gaps: int = 0
    redacted: Counter[str] = field(default_factory=Counter)

    def notes(self, choice: Choice) -> list[str]:
        """A sentence for each count that is not 0."""
        found = []
        if self.no_query:
            where = "first span of the trace" if choice.query == "trace" else "span"
            hint = "" if choice.query == "trace" else "; query=trace takes that of the first span of the trace"
            found.append(f"without a query in the {where}: {count_noun(self.no_query, 'spans')}{hint}")
        if self.no_documents:
            found.append(f"without recorded documents: {count_noun(self.no_documents, 'spans')}")
        if self.failed:
            all_of = f"; no other for {count_noun(self.failed_queries, 'queries')}" if self.failed_queries else ""
            found.append(f"failed: {count_noun(self.failed, 'spans')}{all_of}")
        if self.unanswered:
            names = join_first(map(shorten, self.unanswered))
            found.append(
                f"left out: {count_noun(len(self.unanswered), 'queries')} without recorded documents ({names})"
            )
        if self.in_trace:
            used = {"first": "the first list is", "union": "the union is"}.get(choice.pick, "the last list is")
            hint = "" if choice.pick else "; pick=first, last or union chooses"
            pairs = count_noun(self.in_trace, "queries")
            found.append(f"asked several times in one trace: {pairs}, of which {used} used{hint}")
        if self.in_traces:
            differ = f", in {self.differing} of them the results differ" if self.differing else ""
            found.append(f"asked in several traces: {count_noun(self.in_traces, 'queries')}, the last is used{differ}")
        if self.unnamed:
            found.append(f"without an id and a text: {count_noun(self.unnamed, 'documents')}, which keep their rank")
        if self.gaps:
            limit = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT of the SDK may be too low (128)"
            found.append(f"documents may be missing: {count_noun(self.gaps, 'spans')} lack attributes; {limit}")
        if self.redacted:
            kinds = ", ".join(f"{n} {kind}" for kind, n in self.redacted.most_common())
            found.append(f"redacted in texts of queries: {kinds}")
        return found


def _query_of(step: Step, choice: Choice, found: TraceSteps) -> str:
    return found.queries_of_traces.get(step.trace_id, "") if choice.query == "trace" else step.query


def _answers(chosen: Sequence[Step], choice: Choice, found: TraceSteps, tally: _Tally) -> dict[str, Answer]:
    """The answer to each query, queries in the order of their texts."""
    by_query: defaultdict[str, dict[str, list[Step]]] = defaultdict(dict)
    for step in chosen:
        tally.failed += bool(step.reason)
        tally.no_documents += step.hits is None and not step.reason
        query = _query_of(step, choice, found)
        if query:
            by_query[query].setdefault(step.trace_id, []).append(step)
        tally.no_query += not query
    answers: dict[str, Answer] = {}
    for query in sorted(by_query):
        answer = _answer(by_query[query].values(), choice, tally)
        if answer is None:
            tally.unanswered.append(query)
        else:
            answers[query] = answer
            if choice.query == "span":
                tally.redacted.update(next(iter(by_query[query].values()))[0].redacted)
    return answers


def _answer(traces: Iterable[list[Step]], choice: Choice, tally: _Tally) -> Answer | None:
    """The answer of the last trace that has one; a failure where every span failed; None where no documents are recorded."""
    lists: list[tuple[tuple[int, str, str, str], tuple[Hit, ...], list[Step]]] = []
    reasons = []
    for steps in traces:
        good = [step for step in steps if step.hits is not None and not step.reason]
        reasons += [step.reason for step in steps if step.reason]
        if not good:
            continue
        tally.in_trace += len(good) > 1
        used = good if choice.pick == "union" else [good[0 if choice.pick == "first" else -1]]
        hits = _union(used) if choice.pick == "union" else used[0].hits or ()
        lists.append((_order(good[-1]), hits, used))
    if not lists:
        tally.failed_queries += bool(reasons)
        return Answer(Outcome.ERROR, reason=reasons[-1]) if reasons else None
    _, hits, used = max(lists, key=lambda each: each[0])
    tally.in_traces += len(lists) > 1
    tally.differing += len({tuple(hit.id for hit in each) for _, each, _ in lists}) > 1
    tally.unnamed += sum(step.n_unnamed for step in used)
    tally.gaps += sum(step.has_gap for step in used)
    return Answer(Outcome.ANSWERED if hits else Outcome.EMPTY, hits)


def _union(steps: Sequence[Step]) -> tuple[Hit, ...]:
    """The documents of several lists, each by the rank at which it first occurs; at one rank, the earlier list first."""
    places: dict[tuple[str, str | None, object], tuple[int, int, Hit]] = {}
    for number, step in enumerate(steps):
        for rank, hit in enumerate(step.hits or (), start=1):
            own = hit.fields.get("document_id") if hit.fields else None
            places.setdefault((hit.id, hit.span, own), (rank, number, hit))
    return tuple(hit for _, _, hit in sorted(places.values(), key=lambda place: place[:2]))


def read_trace_queries(path: Path | str) -> TestSet:
    """Read the queries of traces, redacted, as a test set in which nothing is judged yet.

    What was retrieved are the documents to judge (grade -1); the weight of a query is in how many traces it is. All retrievers
    count where no step is chosen; rerankers where there is no retriever.

    Raises:
        TestSetError: the spans cannot be read, or none has a query.
    """
    file, choice = choice_of(Path(path), TestSetError)
    found = read_steps(file, TestSetError, choice.query)
    kinds = [kind for kind in STEP_KINDS if any(step.kind == kind for step in found.steps)]
    is_chosen = bool(choice.kind or choice.name or choice.source)
    tally = _Tally()
    texts: dict[str, str] = {}
    traces: defaultdict[str, set[str]] = defaultdict(set)
    grades: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for step in found.steps:
        if not choice.takes(step) or (not is_chosen and step.kind != kinds[0]):
            continue
        query = _query_of(step, choice, found)
        tally.no_query += not query
        if not query:
            continue
        query_id = content_id(query)
        if query_id not in texts and choice.query == "span":
            tally.redacted.update(step.redacted)
        texts.setdefault(query_id, query)
        traces[query_id].add(step.trace_id)
        documents = [hit.id for hit in step.hits or ()] if step.n_unnamed == 0 else []
        grades[query_id].update(dict.fromkeys(documents, -1.0))
    if not texts:
        got = "; ".join(tally.notes(choice)) or None
        raise TestSetError(Problem("no span has a query", path=shown(file), got=got, hint=_HINT_NOTHING))
    counted = sorted(texts, key=lambda query_id: (-len(traces[query_id]), texts[query_id]))
    queries = tuple(Query(each, texts[each], weight=float(len(traces[each]))) for each in counted)
    pooled = {each: dict(sorted(grades[each].items())) for each in counted if grades[each]}
    return TestSet(stem(file), queries, pooled, notes=info(MADE_IDS, *tally.notes(choice), *file_notes(found)))
