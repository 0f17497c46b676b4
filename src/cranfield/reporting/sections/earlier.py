"""What a gate read and did not make in its call: the sentence that comes first, and the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cranfield.gate.result import EarlierSource, GateResult
from cranfield.numbers import format_count
from cranfield.reporting.document import Table
from cranfield.reporting.table_spec import Col, TableSpec

EARLIER = "Read, not made in this call"
"""Heading of the table."""


def earlier_lines(results: Sequence[GateResult]) -> Iterator[str]:
    """How many answers were not made in this call, and when."""
    for result in results:
        if not result.n_earlier:
            continue
        lead = f"{result.name}: " if result.name else ""
        total = result.evaluation.n_queries
        times = [source.oldest for source in result.earlier if source.oldest and source.kind != "baseline"]
        when = f"the oldest is from {_time_text(min(times))}" if times else "the time is not known"
        yield f"{lead}{format_count(result.n_earlier)} of {format_count(total)} answers are not of this call; {when}"


def is_of_run_files(results: Sequence[GateResult]) -> bool:
    """Whether all that was read beside a baseline are run files that the config or the call names, and no ref protects them."""
    sources = [source for result in results for source in result.earlier if source.kind != "baseline"]
    by_ref = any(result.baseline is not None and result.baseline.ref for result in results)
    return not by_ref and all(source.kind in {"run file", "run file of the config"} for source in sources)


def _time_text(time: str) -> str:
    """`2026-11-21 20:51 UTC`; a day as it is."""
    day, _, clock = time.partition("T")
    return f"{day} {clock[:5]} UTC" if clock else day


def earlier_table(result: GateResult) -> Table:
    """A row for each thing that was read."""
    columns: tuple[Col[EarlierSource], ...] = (
        Col("path", lambda source: source.path),
        Col("kind", lambda source: source.kind),
        Col("digest", lambda source: source.digest[:19]),
        Col("made", _made),
        Col("answers", lambda source: source.n_answers, "count"),
    )
    return TableSpec(EARLIER, result.earlier, columns).table(wrap=True)


def _made(source: EarlierSource) -> str:
    times = dict.fromkeys(_time_text(time) for time in (source.oldest, source.latest) if time)
    return " to ".join(times) or "unknown"
