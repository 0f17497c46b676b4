"""What happened while the systems were asked: outcomes, failures, duplicates, judged share, latency, warnings."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.model import CallLog, Outcome
from cranfield.numbers import format_count
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Column,
    Details,
    KeyValues,
    Paragraph,
    Section,
    Table,
    Toned,
)
from cranfield.reporting.facts import duplicates, judged_share, latency, outcome_counts
from cranfield.reporting.printable import first_line
from cranfield.reporting.sections.naming import some

SHOWN_FAILURES = 10
HEAD_CHARS = 800
"""Shown of each stream of a failed call; the log beside the run keeps more."""

Systems = Sequence[tuple[str, Evaluation]]
"""A label and the evaluation it stands for, in order."""


def warnings(systems: Systems, of_testset: Sequence[str] = ()) -> Section | None:
    """Sentences a reader must know before quoting a number; those that all systems share are said once."""
    told = [(label, (*_failed(evaluation), *evaluation.warnings)) for label, evaluation in systems]
    shared = [
        sentence for sentence in systems[0][1].warnings if all(sentence in each.warnings for _, each in systems[1:])
    ]
    sentences = [*of_testset, *shared]
    for label, said in told:
        sentences += [f"{label}: {sentence}" for sentence in said if sentence not in shared]
    return Section("warnings", "Before you quote this", (Bullets(tuple(sentences), "warning"),)) if sentences else None


def collection(systems: Systems, depth: int | None, unpaired: Comparison | None = None) -> Section:
    """Outcome counts, failures, duplicates and judged share of every system."""
    blocks: list[Block] = [_outcomes(systems), *_failures(systems), *_coverage(systems, depth)]
    if unpaired is not None and unpaired.dropped:
        blocks += _unpaired(unpaired)
    return Section("collection", "Outcomes and failures", tuple(blocks))


def _unpaired(comparison: Comparison) -> list[Block]:
    """Queries left out of the comparison, by why; every one by name behind a line that opens."""
    reasons: dict[str, list[str]] = {}
    for query_id, why in comparison.dropped.items():
        reasons.setdefault(why, []).append(query_id)
    rows: list[tuple[Cell, ...]] = [(why, len(ids), some(ids)) for why, ids in reasons.items()]
    columns = (Column("why"), Column("queries", "count"), Column("which", "code"))
    n = len(comparison.dropped)
    queries = "1 query" if n == 1 else f"{format_count(n)} queries"
    names = tuple((f"{why} ({format_count(len(ids))})", ", ".join(ids)) for why, ids in reasons.items())
    return [
        Paragraph(f"{queries} could not be paired on {comparison.primary}.", "warning"),
        Table(columns, rows, "Left out of the comparison"),
        Details("Queries left out", (KeyValues(names),)),
    ]


def _failed(evaluation: Evaluation) -> list[str]:
    """How many queries failed, and of what; nothing where none did."""
    counted = outcome_counts(evaluation)
    kinds = [f"{counted[kind.value]} {kind.value}" for kind in Outcome if kind.is_failure and counted[kind.value]]
    if not kinds:
        return []
    n_failed = sum(counted[kind.value] for kind in Outcome if kind.is_failure)
    return [f"{n_failed} of {len(evaluation.query_ids)} queries failed and count as 0: {', '.join(kinds)}"]


def _outcomes(systems: Systems) -> Table:
    counts = [outcome_counts(evaluation) for _, evaluation in systems]
    rows: list[tuple[Cell, ...]] = []
    for (label, evaluation), counted in zip(systems, counts, strict=True):
        bad = {outcome for outcome, _ in _failed_outcomes(evaluation)}
        cells: list[Cell] = [Toned(n, "bad") if n and name in bad else n for name, n in counted.items()]
        rows.append((label, *cells, len(evaluation.query_ids)))
    columns = (Column("system"), *(Column(name, "count") for name in counts[0]), Column("queries", "count"))
    return Table(columns, rows, "What became of the queries. Timeout, nonzero exit and unparsable output are failures")


def _failed_outcomes(evaluation: Evaluation) -> list[tuple[str, int]]:
    return [
        (outcome.value, 1)
        for outcome in evaluation.ranking.outcomes
        if outcome.is_failure or outcome.value == "missing"
    ]


def _failures(systems: Systems) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    heads: list[Block] = []
    for label, evaluation in systems:
        logs = evaluation.run.logs if evaluation.run is not None else {}
        for query_id, outcome, reason in evaluation.failures:
            log = logs.get(query_id)
            streams = _streams(log, outcome) if log is not None else {}
            rows.append((label, query_id, outcome, reason, next(map(first_line, streams.values()), "")))
            if streams and len(heads) < SHOWN_FAILURES:
                codes = tuple(Code(_head(text), stream) for stream, text in streams.items())
                heads.append(Details(f"What {label} wrote for {query_id}", codes))
    if not rows:
        return []
    columns = (
        Column("system"),
        Column("query", "code"),
        Column("outcome"),
        Column("reason"),
        Column("it wrote", "code"),
    )
    return [Table(columns, rows, "Failures, each scored 0", shown=SHOWN_FAILURES), *heads]


def _streams(log: CallLog, outcome: str) -> dict[str, str]:
    """What a failed call wrote, where it wrote anything; first the stream that tells more of this failure."""
    streams = {"stderr": log.stderr_head, "stdout": log.stdout_head}
    if outcome == Outcome.UNPARSABLE.value:
        streams = dict(reversed(streams.items()))
    return {name: text for name, text in streams.items() if text.strip()}


def _head(text: str) -> str:
    return text.rstrip() if len(text) <= HEAD_CHARS else f"{text[:HEAD_CHARS].rstrip()}\n…"


def _coverage(systems: Systems, depth: int | None) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    shares = [judged_share(evaluation, depth) for _, evaluation in systems]
    for (label, evaluation), share in zip(systems, shares, strict=True):
        returned = evaluation.ranking.n_returned
        mean = float(returned.mean()) if returned.size else None
        rows.append((label, mean, duplicates(evaluation), share.mean))
    columns = (
        Column("system"),
        Column("results a query", "average"),
        Column("duplicates dropped", "count"),
        Column(str(shares[0].measure), "percent"),
    )
    table = Table(columns, rows, "What was returned, and how much of it somebody had judged")
    reasons = dict.fromkeys(f"No {share.measure}: {share.why}." for share in shares if share.mean is None)
    return [table, *(Paragraph(reason) for reason in reasons)]


def latencies(systems: Systems) -> Section | None:
    """Percentiles of the time a call took; None where no run has its times."""
    rows: list[tuple[Cell, ...]] = []
    for label, evaluation in systems:
        if (times := latency(evaluation)) is not None:
            rows.append((label, times.n, times.p50_ms, times.p95_ms, times.p99_ms, times.max_ms))
    if not rows:
        return None
    columns = (
        Column("system"),
        Column("calls", "count"),
        Column("p50", "ms"),
        Column("p95", "ms"),
        Column("p99", "ms"),
        Column("max", "ms"),
    )
    blocks: list[Block] = [Table(columns, rows, "Time per call, the program's start included")]
    return Section("latency", "Latency", tuple(blocks))
