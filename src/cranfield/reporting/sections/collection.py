"""Collection of the answers: outcomes, failures, duplicates, judged coverage, changed answers, fields, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from statistics import fmean
from typing import Any

from cranfield.evaluation.absence import in_brackets
from cranfield.evaluation.calls import SystemCalls
from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.evidence.values import caveat_sentences, merged
from cranfield.evaluation.result import SystemResult
from cranfield.model import CallLog, Outcome
from cranfield.model.testset import days_overdue
from cranfield.numbers import format_count, format_percent, format_value
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
    TonedCell,
)
from cranfield.reporting.sections.subject import Subject, Systems
from cranfield.results.testset import TestSetRecord
from cranfield.words import and_list, first_line, first_of, last_lines, n_of, printable, shorten_to

MOST_LISTED = 8
"""Systems of which each has its own warnings; of more, warnings that are alike are given once."""
SHOWN_SYSTEMS = 3
SHOWN_FAILURES = SHOWN_CHANGES = 10
HEAD_CHARS = 800
"""Shown of each stream of a failed call; the log of the run keeps more."""
CAUSE_CHARS, CAUSE_LINES = 300, 3
"""Shown of stderr next to a failure: its last lines; of a Python traceback only the last."""
SHOWN_CAUSE = 120
"""Columns of the most frequent cause in a caveat."""
SHOWN_QUERIES = 3
"""Queries named next to a kind of failure."""


FOUND_BY: Mapping[object, frozenset[str]] = {
    CaveatKind.DUPLICATES: frozenset({"duplicates", "few-ids", "one-id"}),
    CaveatKind.FAILED: frozenset({"failed-queries"}),
    CaveatKind.NO_LINES: frozenset({"results-without-lines"}),
}
"""Kind of a warning to the evidence checks that find the same cause: one cause is one sentence."""
NO_ANSWER = {outcome.value for outcome in Outcome if outcome.is_failure or outcome is Outcome.MISSING}


def warnings(subject: Subject) -> Section | None:
    """What to know before quoting a number; warnings that all systems share are listed once."""
    first, *others = subject.record.systems
    shared = set(first.warnings).intersection(*(other.warnings for other in others))
    of_all = [
        line
        for line in first.warnings
        if line in shared and not all(_is_found(line, each, subject) for each in subject.record.systems)
    ]
    sentences = [*_overdue(subject.record.testset, subject.today), *of_all]
    if subject.compared is None:  # the verdict shows them
        sentences = [*caveat_sentences(subject.record.evidence), *sentences]
    own = [
        (label, line)
        for label, system in subject.systems
        for line in (*_failed(system, subject), *_unsteady(subject.calls.systems[system.name]), *system.warnings)
        if line not in shared and not _is_found(line, system, subject)
    ]
    sentences += _counted_once(own) if len(subject.systems) > MOST_LISTED else merged(own)
    return Section("warnings", "Caveats", (Bullets(tuple(sentences), "warning"),)) if sentences else None


def _is_found(line: str, system: SystemResult, subject: Subject) -> bool:
    """Whether an evidence check of the system gives the same cause, so that the warning would repeat it."""
    checks = FOUND_BY.get(line.kind[0]) if isinstance(line, Caveat) and line.kind else None
    if checks is None:
        return False
    return any(finding.check in checks and finding.system == system.name for finding in subject.record.evidence)


def _counted_once(own: Sequence[tuple[str, str]]) -> list[str]:
    """Warnings of many systems, those of one kind once, with the systems that have them."""
    alike: dict[object, list[tuple[str, str]]] = {}
    for label, line in own:
        alike.setdefault(line.kind if isinstance(line, Caveat) else line, []).append((label, line))
    sentences = []
    for found in alike.values():
        labels = [label for label, _ in found]
        same = len({line for _, line in found}) == 1
        of = f"{len(found)} systems ({first_of(labels, SHOWN_SYSTEMS)})" if len(found) > 1 else labels[0]
        example = "" if same else f", for example {labels[0]}"
        sentences.append(f"{of}{example}: {found[0][1]}")
    return sentences


def collection(subject: Subject) -> Section:
    """Outcome counts, failures, duplicates and judged share of every system."""
    systems = subject.systems
    blocks: list[Block] = [
        _outcomes(systems),
        *_failures(subject),
        *_changed_answers(subject),
        *_coverage(systems),
        *returned_fields(subject),
    ]
    if subject.compared is not None:
        blocks += _left_out(subject.compared.unpaired, str(subject.primary))
    return Section("collection", "Outcomes and failures", tuple(blocks), _key_figure(systems))


def _key_figure(systems: Systems) -> str:
    """How many queries failed, on which systems."""
    failed = [f"{label} {format_count(n)}" for label, system in systems if (n := system.n_failed)]
    return f"failed queries: {first_of(failed, SHOWN_SYSTEMS)}" if failed else "no failures"


def _overdue(testset: TestSetRecord, today: date | None) -> list[str]:
    """A sentence where the test set is older than it should be; nothing where its age, or the day, is not known."""
    late = 0 if today is None else days_overdue(testset.made, testset.refresh_days, today)
    if not late:
        return []
    days = n_of(late, "days", format_count)
    age = f"made on {testset.made}, to be refreshed after {n_of(testset.refresh_days, 'days', format_count)}"
    return [f"test set {testset.name} is overdue for new queries by {days}: {age}"]


def _left_out(dropped: Mapping[str, str], primary: str) -> list[Block]:
    """Queries left out of a comparison (query id to reason), grouped by reason; nothing where none was."""
    if not dropped:
        return []
    reasons: dict[str, list[str]] = {}
    for query_id, why in dropped.items():
        reasons.setdefault(why, []).append(query_id)
    rows: list[tuple[Cell, ...]] = [(why, len(ids), first_of(ids)) for why, ids in reasons.items()]
    columns = (Column("why"), Column("queries", "count"), Column("which", "code"))
    queries = n_of(len(dropped), "queries", format_count)
    names = tuple((f"{why} ({format_count(len(ids))})", ", ".join(ids)) for why, ids in reasons.items())
    return [
        Paragraph(f"{queries} could not be paired on {primary}.", "warning"),
        Table(columns, rows, "Left out of the comparison"),
        Details("Queries left out", (KeyValues(names),)),
    ]


def _failed(system: SystemResult, subject: Subject) -> list[str]:
    """How many queries failed, and of what; nothing where none did."""
    counted = system.outcomes
    kinds = [f"{counted[kind.value]} {kind.value}" for kind in Outcome if kind.is_failure and counted[kind.value]]
    if not kinds:
        return []
    effect = in_brackets(system.failures_count)
    text = f"{system.n_failed} of {system.n_queries} queries failed{effect}: {', '.join(kinds)}"
    cause = _most_frequent_cause(system, subject.calls.systems[system.name].failed)
    text += f"; {cause}" if cause else ""
    return [Caveat(text, CaveatKind.FAILED)]


def _most_frequent_cause(system: SystemResult, logs: Mapping[str, CallLog]) -> str:
    """`most often: exit status 1: no such index`: the reason that most failures have, and what the program wrote; empty where neither is known."""
    causes: Counter[str] = Counter()
    for each in system.failures:
        log = logs.get(each.query)
        output = first_line(_cause(_streams(log, each.outcome))) if log is not None else ""
        causes[": ".join(part for part in (each.reason, output) if part)] += 1
    cause = causes.most_common(1)[0][0]
    return cause and shorten_to(printable(f"{'cause' if len(causes) == 1 else 'most often'}: {cause}"), SHOWN_CAUSE)


def _outcomes(systems: Systems) -> Table:
    counts = [system.outcomes for _, system in systems]
    rows: list[tuple[Cell, ...]] = []
    listed = list(zip(systems, counts, strict=True))
    if len(systems) > MOST_LISTED:  # those with queries that have no answer first
        listed.sort(key=lambda row: not any(row[1].get(name) for name in NO_ANSWER))
    for (label, system), counted in listed:
        cells: list[Cell] = [TonedCell(n, "bad") if n and name in NO_ANSWER else n for name, n in counted.items()]
        rows.append((label, *cells, system.n_queries))
    columns = (Column("system"), *(Column(name, "count") for name in counts[0]), Column("queries", "count"))
    return Table(
        columns, rows, "Outcomes of the queries. Timeout, nonzero exit, error and unparsable output are failures"
    )


def _failures(subject: Subject) -> list[Block]:
    """Each kind of failure with its queries: equal ones are one row."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    heads: list[Block] = []
    for label, system in subject.systems:
        logs = subject.calls.systems[system.name].failed
        for each in system.failures:
            query_id, outcome, reason = each.query, each.outcome, each.reason
            log = logs.get(query_id)
            streams = _streams(log, outcome) if log is not None else {}
            query_ids = groups.setdefault((label, outcome, reason, _cause(streams)), [])
            query_ids.append(query_id)
            if streams and len(query_ids) == 1 and len(heads) < SHOWN_FAILURES:
                codes = tuple(Code(_excerpt(text, stream), stream) for stream, text in streams.items())
                heads.append(Details(f"Output of {label} for {query_id}", codes))
    if not groups:
        return []
    rows: list[tuple[Cell, ...]] = [
        (label, outcome, reason, len(query_ids), first_of(query_ids, SHOWN_QUERIES), cause)
        for (label, outcome, reason, cause), query_ids in groups.items()
    ]
    columns = (
        Column("system"),
        Column("outcome"),
        Column("reason"),
        Column("queries", "count"),
        Column("which", "code"),
        Column("output", "code"),
    )
    return [Table(columns, rows, _failures_caption(subject.systems), shown=SHOWN_FAILURES, wrap=True), *heads]


def _failures_caption(systems: Systems) -> str:
    """`Failures (counted as 0)`, or by system where they count differently."""
    effects: dict[str, list[str]] = {}
    for label, system in systems:
        if system.failures:
            effects.setdefault(system.failures_count, []).append(label)
    if len(effects) == 1:
        return f"Failures{in_brackets(next(iter(effects)))}"
    return "Failures (" + "; ".join(f"{and_list(labels)}: {effect}" for effect, labels in effects.items()) + ")"


def _cause(streams: Mapping[str, str]) -> str:
    """The part of the output that tells most: the end of stderr, else the beginning of stdout."""
    for stream, text in streams.items():
        n_lines = 1 if text.lstrip().startswith("Traceback") else CAUSE_LINES
        return shorten_to(last_lines(text, n_lines) if stream == "stderr" else first_line(text), CAUSE_CHARS)
    return ""


def _streams(log: CallLog, outcome: str) -> dict[str, str]:
    """Output of a failed call, where there is any; the more informative stream first."""
    streams = {"stderr": log.stderr_head, "stdout": log.stdout_head}
    if outcome == Outcome.UNPARSABLE.value:
        streams = dict(reversed(streams.items()))
    return {name: text for name, text in streams.items() if text.strip()}


def _excerpt(text: str, stream: str) -> str:
    """The end of stderr, or the beginning of stdout."""
    text = text.rstrip()
    if len(text) <= HEAD_CHARS:
        return text
    return f"…\n{text[-HEAD_CHARS:].lstrip()}" if stream == "stderr" else f"{text[:HEAD_CHARS].rstrip()}\n…"


def _coverage(systems: Systems) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    shares = [system.judged for _, system in systems]
    has_pooled = any(share.pooled for share in shares)
    for (label, system), share in zip(systems, shares, strict=True):
        unjudged = (share.pooled, share.never_pooled) if has_pooled else ()
        rows.append((label, system.mean_returned, system.n_duplicates, share.mean, *unjudged))
    columns = (
        Column("system"),
        Column("results per query", "average"),
        Column("duplicates dropped", "count"),
        Column(str(shares[0].measure), "percent"),
        *((Column("pooled, not judged", "count"), Column("never pooled", "count")) if has_pooled else ()),
    )
    within = f"; results that are not judged, to rank {shares[0].measure.cutoff}" if has_pooled else ""
    table = Table(columns, rows, f"Results per query, and judged coverage{within}")
    reasons = dict.fromkeys(f"No {share.measure}: {share.why}." for share in shares if share.mean is None)
    return [table, *(Paragraph(reason) for reason in reasons)]


def _changed_answers(subject: Subject) -> list[Block]:
    """Queries whose answer changed when repeated; nothing about queries that were not repeated."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for label, system in subject.systems:
        again, changed = _repeated(subject.calls.systems[system.name])
        for query_id, log in changed.items():
            rows.append(
                (label, query_id, len(log.unstable), max(len(log.repeat_ms), len(log.unstable)), log.unstable[0])
            )
        if again and not changed:
            times = max(len(log.repeat_ms) for log in again.values())
            what = "once" if times == 1 else f"{format_count(times)} times"
            notes.append(
                Paragraph(
                    f"{label}: {n_of(len(again), 'queries', format_count)} {'was' if len(again) == 1 else 'were'} "
                    f"repeated {what}; no answer changed."
                )
            )
    if not rows:
        return [*notes]
    columns = (
        Column("system"),
        Column("query", "query id"),
        Column("changed", "count"),
        Column("repeats", "count"),
        Column("first difference", "code"),
    )
    table = Table(columns, rows, "Answers that changed when the query was repeated", shown=SHOWN_CHANGES)
    return [*notes, table] if len(rows) <= SHOWN_CHANGES else [*notes, Details(table.caption, (table,), in_text=True)]


def _unsteady(calls: SystemCalls) -> list[str]:
    """A sentence where answers to a repeated query changed."""
    again, changed = _repeated(calls)
    if not changed:
        return []
    text = f"{len(changed)} of {len(again)} repeated queries changed their answer; the first answer counts"
    return [Caveat(text, CaveatKind.UNSTEADY)]


def _repeated(calls: SystemCalls) -> tuple[Mapping[str, CallLog], Mapping[str, CallLog]]:
    """Logs of the queries that were repeated, and of those whose answer changed."""
    return calls.repeated, {query_id: log for query_id, log in calls.repeated.items() if log.unstable}


def returned_fields(subject: Subject) -> list[Block]:
    """A row for each field of each system: how many answers have it, and a summary of its values; nothing where there are none."""
    rows: list[tuple[Cell, ...]] = []
    for place, label in enumerate(subject.labels):
        answers = {q: side.fields for q, query in subject.queries.items() if (side := query.sides[place]).fields}
        for name in dict.fromkeys(name for fields in answers.values() for name in fields):
            values = [fields[name] for fields in answers.values() if fields.get(name) is not None]
            rows.append((label, name, len(values), _in_short(values)))
    if not rows:
        return []
    columns = (Column("system"), Column("field", "code"), Column("answers", "count"), Column("in short"))
    return [Table(columns, rows, "Fields of the answers; every value is in results.json and the run")]


def _in_short(values: Sequence[Any]) -> str:
    if not values:
        return "null throughout"
    if all(isinstance(value, bool) for value in values):
        return f"true in {format_percent(sum(values) / len(values))}"
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(values):
        low, high = min(numbers), max(numbers)
        if low == high:
            return f"{_number(low)} throughout"
        return f"mean {_number(fmean(numbers))}, from {_number(low)} to {_number(high)}"
    n = len({repr(value) for value in values})
    return "1 value" if n == 1 else f"{n} different values"


def _number(value: float) -> str:
    """Tokens as `1,234`, confidence as `0.5645`."""
    return format_value(value) if abs(value) < 10 and not value.is_integer() else format_count(round(value))
