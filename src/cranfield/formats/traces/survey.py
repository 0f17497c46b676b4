"""What a file of traces holds: its steps, queries, documents and times, for people who have to choose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.files import shown
from cranfield.formats.traces.runs import TraceSteps, commands_of, file_notes
from cranfield.formats.traces.steps import Step, StepKind

_SHOWN_FIELDS = 20


@dataclass(frozen=True, slots=True)
class StepSurvey:
    """The spans of one name and kind."""

    kind: StepKind
    name: str
    choice: str
    """What names them: `traces.jsonl#name=search`."""
    n_spans: int
    n_traces: int
    n_queries: int
    n_documents: int
    """Different ones."""
    most: int
    """Documents of the longest list."""
    n_failed: int
    n_without_query: int
    n_without_documents: int


@dataclass(frozen=True, slots=True)
class TraceSurvey:
    """What a file of traces holds."""

    file: str
    n_spans: int
    """Spans of all kinds."""
    n_traces: int
    steps: tuple[StepSurvey, ...]
    n_queries: int
    first_ns: int
    """Start of the first retrieval, in nanoseconds since 1970; 0 where no time is known."""
    last_ns: int
    fields: tuple[str, ...]
    """Names of what is known of documents, besides id and score; most frequent first."""
    notes: tuple[str, ...] = ()

    def sentences(self) -> Iterator[str]:
        """The counts, for people."""
        n_steps = sum(step.n_spans for step in self.steps)
        yield (
            f"{self.file}: {count_noun(self.n_traces, 'traces')}, {count_noun(self.n_spans, 'spans')}, {n_steps} lists of documents, "
            f"{count_noun(self.n_queries, 'queries')}"
        )
        if self.first_ns:
            yield f"retrievals from {_time(self.first_ns)} to {_time(self.last_ns)} (UTC)"
        if self.fields:
            yield f"fields of documents: {join_first(self.fields, _SHOWN_FIELDS)}"
        yield from self.notes


def _time(ns: int) -> str:
    try:
        return datetime.fromtimestamp(ns / 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "an impossible time"


def survey_of(found: TraceSteps, file: Path) -> TraceSurvey:
    """Count what the steps of a file hold."""
    groups = found.by_step
    names: dict[str, int] = {}
    for step in found.steps:
        for hit in step.hits or ():
            for name in hit.fields or ():
                names[name] = names.get(name, 0) + 1
    times = [step.start_ns for step in found.steps if step.start_ns > 0]
    return TraceSurvey(
        shown(file),
        found.n_spans,
        len(found.trace_ids),
        tuple(
            _step_survey(key, steps, choice)
            for (key, steps), choice in zip(groups.items(), commands_of(found, shown(file)), strict=True)
        ),
        len({step.query for step in found.steps if step.query}),
        min(times, default=0),
        max(times, default=0),
        tuple(sorted(names, key=lambda name: (-names[name], name))),
        tuple(file_notes(found)),
    )


def _step_survey(key: tuple[StepKind, str], steps: Sequence[Step], choice: str) -> StepSurvey:
    return StepSurvey(
        *key,
        choice,
        len(steps),
        len({step.trace_id for step in steps}),
        len({step.query for step in steps if step.query}),
        len({hit.id for step in steps for hit in step.hits or ()}),
        max((len(step.hits or ()) for step in steps), default=0),
        sum(bool(step.reason) for step in steps),
        sum(not step.query for step in steps),
        sum(step.hits is None and not step.reason for step in steps),
    )
