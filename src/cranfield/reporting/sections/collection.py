"""Sections on the collection: outcomes, failures, latencies, what was returned, confusion of fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from statistics import fmean
from typing import Any

from cranfield.base.numbers import format_count, format_delta, format_level, format_ms, format_percent, format_value
from cranfield.base.words import and_list, count_noun, first_line, join_first, last_lines, printable, shorten_to
from cranfield.evaluation.absence import in_brackets
from cranfield.evaluation.confusion import Confusion, ExpectedErrors
from cranfield.evaluation.evidence.values import caveat_sentences, merged
from cranfield.evaluation.latency import (
    LatencyDifference,
    LatencyImpact,
    LatencySummary,
    SystemCalls,
    cautions,
    signed_ms,
)
from cranfield.evaluation.result import (
    SHOWN_TERMS,
    ComparisonResult,
    EvaluationResult,
    HitRecord,
    SystemAnswer,
    SystemResult,
)
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.measures import CATALOGUE
from cranfield.measures.catalogue import sign_of
from cranfield.model import Absence, CallLog, Outcome
from cranfield.model.explanation import MAX_DEPTH, MAX_NODES
from cranfield.model.results import TestSetRecord
from cranfield.model.testset import days_overdue
from cranfield.reporting.document import (
    Block,
    Bullets,
    Code,
    Details,
    HitLine,
    HitList,
    HitLists,
    KeyValues,
    Paragraph,
    Section,
    Table,
    TonedCell,
)
from cranfield.reporting.sections.subject import Subject, Systems, has_texts, lettered, query_text
from cranfield.reporting.sections.verdict import query_table, rank_cells
from cranfield.reporting.table_spec import Col, Cols, Columns, Row, TableSpec

MAX_LISTED = 8
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
    sentences += _counted_once(own) if len(subject.systems) > MAX_LISTED else merged(own)
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
        of = f"{len(found)} systems ({join_first(labels, SHOWN_SYSTEMS)})" if len(found) > 1 else labels[0]
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
        *_explanations(subject),
    ]
    if subject.compared is not None:
        blocks += _left_out(subject.compared.unpaired, str(subject.primary))
    return Section("collection", "Outcomes and failures", tuple(blocks), _key_figure(systems))


def _key_figure(systems: Systems) -> str:
    """How many queries failed, on which systems."""
    failed = [f"{label} {format_count(n)}" for label, system in systems if (n := system.n_failed)]
    return f"failed queries: {join_first(failed, SHOWN_SYSTEMS)}" if failed else "no failures"


def _overdue(testset: TestSetRecord, today: date | None) -> list[str]:
    """A sentence where the test set is older than it should be; nothing where its age, or the day, is not known."""
    late = 0 if today is None else days_overdue(testset.made, testset.refresh_days, today)
    if not late:
        return []
    days = count_noun(late, "days", format_count)
    age = f"made on {testset.made}, to be refreshed after {count_noun(testset.refresh_days, 'days', format_count)}"
    return [f"test set {testset.name} is overdue for new queries by {days}: {age}"]


def _left_out(dropped: Mapping[str, str], primary: str) -> list[Block]:
    """Queries left out of a comparison (query id to reason), grouped by reason; nothing where none was."""
    if not dropped:
        return []
    reasons: dict[str, list[str]] = {}
    for query_id, why in dropped.items():
        reasons.setdefault(why, []).append(query_id)
    columns: Columns[tuple[str, list[str]]] = (
        Col("why", lambda row: row[0]),
        Col("queries", lambda row: len(row[1]), "count"),
        Col("which", lambda row: join_first(row[1]), "code"),
    )
    queries = count_noun(len(dropped), "queries", format_count)
    names = tuple((f"{why} ({format_count(len(ids))})", ", ".join(ids)) for why, ids in reasons.items())
    return [
        Paragraph(f"{queries} could not be paired on {primary}.", "warning"),
        TableSpec("Left out of the comparison", list(reasons.items()), columns).table(shown=20),
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
    listed = [(label, system.outcomes, system) for label, system in systems]
    kinds = list(listed[0][1])
    if len(systems) > MAX_LISTED:  # those with queries that have no answer first
        listed.sort(key=lambda row: not any(row[1].get(name) for name in NO_ANSWER))
    columns: Columns[tuple[str, Mapping[str, int], SystemResult]] = (
        Col("system", lambda row: row[0]),
        Cols(kinds, lambda row, kind: TonedCell(n, "bad") if (n := row[1][kind]) and kind in NO_ANSWER else n, "count"),
        Col("queries", lambda row: row[2].n_queries, "count"),
    )
    caption = "Outcomes of the queries. Timeout, nonzero exit, error and unparsable output are failures"
    return TableSpec(caption, listed, columns).table(shown=20)


def _failures(subject: Subject) -> list[Block]:
    """Each kind of failure with its queries: equal ones are one row."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    heads: list[Block] = []
    for label, system in subject.systems:
        logs = subject.calls.systems[system.name].failed
        for each in system.failures:
            log = logs.get(each.query)
            streams = _streams(log, each.outcome) if log is not None else {}
            query_ids = groups.setdefault((label, each.outcome, each.reason, _cause(streams)), [])
            query_ids.append(each.query)
            if streams and len(query_ids) == 1 and len(heads) < SHOWN_FAILURES:
                codes = tuple(Code(_excerpt(text, stream), stream) for stream, text in streams.items())
                heads.append(Details(f"Output of {label} for {each.query}", codes))
    if not groups:
        return []
    columns: Columns[tuple[tuple[str, str, str, str], list[str]]] = (
        Col("system", lambda row: row[0][0]),
        Col("outcome", lambda row: row[0][1]),
        Col("reason", lambda row: row[0][2]),
        Col("queries", lambda row: len(row[1]), "count"),
        Col("which", lambda row: join_first(row[1], SHOWN_QUERIES), "code"),
        Col("output", lambda row: row[0][3], "code"),
    )
    spec = TableSpec(_failures_caption(subject.systems), list(groups.items()), columns)
    return [spec.table(shown=SHOWN_FAILURES, wrap=True), *heads]


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
    shares = [system.judged for _, system in systems]
    first, has_pooled = shares[0].measure, any(share.pooled for share in shares)
    columns: Columns[tuple[str, SystemResult]] = (
        Col("system", lambda row: row[0]),
        Col("results per query", lambda row: row[1].mean_returned, "average"),
        Col("duplicates dropped", lambda row: row[1].n_duplicates, "count"),
        Col(str(first), lambda row: row[1].judged.mean, "percent"),
        Col("pooled, not judged", lambda row: row[1].judged.pooled, "count", when=has_pooled),
        Col("never pooled", lambda row: row[1].judged.never_pooled, "count", when=has_pooled),
    )
    within = f"; results that are not judged, to rank {first.cutoff}" if has_pooled else ""
    table = TableSpec(f"Results per query, and judged coverage{within}", systems, columns).table(shown=20)
    reasons = dict.fromkeys(f"No {share.measure}: {share.why}." for share in shares if share.mean is None)
    return [table, *(Paragraph(reason) for reason in reasons)]


def _changed_answers(subject: Subject) -> list[Block]:
    """Queries whose answer changed when repeated; nothing about queries that were not repeated."""
    rows: list[tuple[str, str, CallLog]] = []
    notes = []
    for label, system in subject.systems:
        again, changed = _repeated(subject.calls.systems[system.name])
        rows += [(label, query_id, log) for query_id, log in changed.items()]
        if again and not changed:
            times = max(len(log.repeat_ms) for log in again.values())
            what = "once" if times == 1 else f"{format_count(times)} times"
            notes.append(
                Paragraph(
                    f"{label}: {count_noun(len(again), 'queries', format_count)} {'was' if len(again) == 1 else 'were'} "
                    f"repeated {what}; no answer changed."
                )
            )
    columns: Columns[tuple[str, str, CallLog]] = (
        Col("system", lambda row: row[0]),
        Col("query", lambda row: row[1], "query id"),
        Col("changed", lambda row: len(row[2].unstable), "count"),
        Col("repeats", lambda row: max(len(row[2].repeat_ms), len(row[2].unstable)), "count"),
        Col("first difference", lambda row: row[2].unstable[0], "code"),
    )
    table = TableSpec("Answers that changed when the query was repeated", rows, columns).table(shown=SHOWN_CHANGES)
    shown = table if len(rows) <= SHOWN_CHANGES else Details(table.caption, (table,), in_text=True)
    return [*notes, shown] if rows else [*notes]


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
    rows: list[tuple[str, str, list[Any]]] = []
    for place, label in enumerate(subject.labels):
        answers = [side.fields for query in subject.queries.values() if (side := query.sides[place]).fields]
        rows += [
            (label, name, [fields[name] for fields in answers if fields.get(name) is not None])
            for name in dict.fromkeys(name for fields in answers for name in fields)
        ]
    columns: Columns[tuple[str, str, list[Any]]] = (
        Col("system", lambda row: row[0]),
        Col("field", lambda row: row[1], "code"),
        Col("answers", lambda row: len(row[2]), "count"),
        Col("in short", lambda row: _in_short(row[2])),
    )
    caption = "Fields of the answers; every value is in results.json and the run"
    return [TableSpec(caption, rows, columns).table(shown=20)] if rows else []


def _explanations(subject: Subject) -> list[Block]:
    """What explanations of scores leave out, and results without one where a system was to explain its scores."""
    found = []
    for place, (label, system) in enumerate(subject.systems):
        hits = [hit for query in subject.queries.values() for hit in query.sides[place].hits]
        explained = [hit for hit in hits if hit.terms is not None]
        cut = [hit for hit in explained if hit.terms and hit.n_terms_cut]
        n_none = len(hits) - len(explained) + sum(not hit.terms for hit in explained)
        if cut:
            n_cut = format_count(sum(hit.n_terms_cut for hit in cut))
            results = count_noun(len(cut), "results", format_count)
            limits = f"a report has {SHOWN_TERMS} of a result, a run {MAX_NODES} down to {MAX_DEPTH} levels"
            found.append(f"{label}: the explanations of the scores of {results} leave {n_cut} parts out; {limits}.")
        if n_none and (explained or (system.config or {}).get("explain")):
            results = count_noun(n_none, "results", format_count)
            found.append(f"{label}: {results}, of {format_count(len(hits))}, without an explanation that can be read.")
    return [Bullets(tuple(found))] if found else []


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


FEW = 4
"""Systems whose times are in the line of the section while it is closed."""
RESAMPLED = "Approximate bootstrap percentile CIs over the queries that both sides answered; for p95 only with 50 queries or more"


def latencies(subject: Subject) -> Section | None:
    """Percentiles of the time per call, and differences to the baseline; None where no run has its times."""
    about = [(label, subject.calls.systems[system.name].latency) for label, system in subject.systems]
    timed = [(label, summary) for label, summary in about if summary is not None]
    if not timed:
        return None
    blocks: list[Block] = [*_against_baseline(subject), _percentiles(timed), *_rule(subject)]
    notes = _cautions(timed)
    notes += [f"{label}: no call times recorded" for label, summary in about if summary is None]
    if notes:
        blocks.append(Bullets(tuple(notes), "warning"))
    return Section("latency", "Latency", tuple(blocks), _latency_figure(timed))


def _latency_figure(timed: Sequence[tuple[str, LatencySummary]]) -> str:
    """The p50 of few systems, the fastest and the slowest of many."""
    found = sorted((summary.p50_ms, label) for label, summary in timed)
    if len(found) > FEW:
        return f"p50 from {format_ms(found[0][0])} to {format_ms(found[-1][0])}"
    return "p50 " + ", ".join(f"{label} {format_ms(summary.p50_ms)}" for label, summary in timed)


def _against_baseline(subject: Subject) -> list[Block]:
    """The differences of a pair; of many systems the median difference to the baseline, a row each."""
    if subject.pair is not None:
        return [
            block
            for each in subject.calls.impacts.values()
            for block in (
                Paragraph(each.sentence),
                _differences(
                    f"Latency differences. {RESAMPLED}",
                    [(found.what, found, each) for found in (each.median, each.p50, each.p95) if found is not None],
                    each.alpha,
                    ("B minus A", "difference"),
                ),
            )
        ]
    if (many := subject.many) is None or many.baseline is None:
        return []
    impacts = subject.calls.impacts.items()
    rows = [(name, impact.median, impact) for name, impact in impacts if impact.median is not None]
    why = [replace(reason, system=reason.system or name) for name, _, impact in rows for reason in impact.incomparable]
    caption = f"Latency minus that of {many.baseline}, per query"
    table = _differences(caption, rows, many.alpha, ("system", "median difference"))
    notes = Bullets(tuple(f"no verdict: {reason}" for reason in dict.fromkeys(why)), "warning")
    return [table, *([notes] if why else [])] if rows else []


def moved_latencies(subject: Subject) -> tuple[str, ...]:
    """One line on the median latency of each system, where it moved against that of the baseline.

    That is where the interval of the difference excludes zero, and the difference is at least the smallest effect.
    """
    moved = [
        f"{name} {signed_ms(by.delta_ms)[0]} ms ({by.verdict.text})"
        for name, impact in subject.calls.impacts.items()
        if (by := impact.median) is not None and by.is_large and by.excludes_zero
    ]
    return (f"Latency at the median: {', '.join(moved)}",) if moved else ()


def _rule(subject: Subject) -> list[Block]:
    """What is left out, and of two systems or more the smallest effect."""
    n_left_out = {system.n_left_out for system in subject.calls.systems.values()}
    sentences = []
    if n_left_out - {0}:
        fewest, most = min(n_left_out), max(n_left_out)
        calls = count_noun(most, "calls") if fewest == most else f"{fewest} to {most} calls"
        sentences.append(f"The first {calls} of each system are a warm-up and are not timed.")
    if subject.compared is not None:
        smallest = subject.calls.rule.smallest
        sentences.append(f"A system is reported as faster or slower if the difference is at least {smallest}.")
    return [Paragraph(" ".join(sentences))] if sentences else []


def _cautions(timed: Sequence[tuple[str, LatencySummary]]) -> list[str]:
    """Cautions on the times; those that hold for every system are listed once."""
    of_each = [(label, cautions(summary)) for label, summary in timed]
    first = of_each[0][1]
    shared = [caution for caution in first if len(timed) > 1 and all(caution in own for _, own in of_each)]
    return [f"every system: {caution}" for caution in shared] + [
        f"{label}: {caution}" for label, own in of_each for caution in own if caution not in shared
    ]


def _percentiles(timed: Sequence[tuple[str, LatencySummary]]) -> Table:
    columns: Columns[tuple[str, LatencySummary]] = (
        Col("system", lambda row: row[0]),
        Col("calls", lambda row: row[1].n, "count"),
        Col("mean", lambda row: row[1].mean_ms, "ms"),
        Col("p50", lambda row: row[1].p50_ms, "ms"),
        Col("p95", lambda row: row[1].p95_ms, "ms"),
        Col("p99", lambda row: row[1].p99_ms, "ms"),
        Col("max", lambda row: row[1].max_ms, "ms"),
        Col("failed", lambda row: row[1].n_timeouts + row[1].n_errors, "count"),
        Col("retried", lambda row: row[1].n_retried, "count"),
        Col("kept", lambda row: row[1].cached_share, "percent"),
    )
    caption = (
        "Time per call, including process start. Kept: answers of an earlier collection, with their original times"
    )
    return TableSpec(caption, timed, columns).table()


def _differences(
    caption: str,
    rows: Sequence[tuple[str, LatencyDifference, LatencyImpact]],
    alpha: float,
    headings: tuple[str, str],
) -> Table:
    columns: Columns[tuple[str, LatencyDifference, LatencyImpact]] = (
        Col(headings[0], lambda row: row[0]),
        Col(headings[1], lambda row: _with_ends(row[1])[0], "ms"),
        Col(f"{format_level(alpha)} CI", lambda row: _with_ends(row[1])[1], "ms"),
        Col("verdict", lambda row: row[1].verdict.text),
        Col("queries", lambda row: row[2].n, "count"),
    )
    return TableSpec(caption, rows, columns).table()


def _with_ends(found: LatencyDifference) -> tuple[str, str | None]:
    """A difference and its interval, all to the same decimals."""
    low, high = found.ci_ms
    if low is None or high is None:
        return f"{signed_ms(found.delta_ms)[0]} ms", None
    delta, *ends = signed_ms(found.delta_ms, low, high)
    return f"{delta} ms", f"{ends[0]} to {ends[1]} ms"


SHOWN_ANSWERS = 5
EXPECTED_ITEMS, MISSED_ITEMS = 6, 3
LABEL = 40
"""Columns of a query in the line of the section while it is closed."""
MATCHED = 72
"""Columns of a pattern or predicate next to a result that it matches; it is in full above the lists."""


def answers(subject: Subject) -> Section | None:
    """Single queries with the result lists: worst and best of a pair, worst of one system; None for several systems."""
    if subject.pair is not None:
        return _worst_and_best(subject.pair)
    return _lowest(subject.record) if len(subject.systems) == 1 else None


def _worst_and_best(comparison: ComparisonResult) -> Section:
    """The queries that lost and gained most on the primary measure."""
    found = comparison.comparisons[comparison.primary].differences
    sign = sign_of(comparison.primary)
    # Sorting is stable: equal differences stay in the order of the test set.
    losers = sorted((q for q, delta in found.items() if sign * delta < 0), key=lambda q: sign * found[q])
    winners = sorted((q for q, delta in found.items() if sign * delta > 0), key=lambda q: -sign * found[q])
    return Section(
        "answers",
        "Worst and best queries",
        (
            *_extremes(comparison, losers[:SHOWN_ANSWERS], "Largest losses on B", "No query is worse on B."),
            *_extremes(comparison, winners[:SHOWN_ANSWERS], "Largest gains on B", "No query is better on B."),
        ),
        " and ".join(
            f"{format_delta(found[ids[0]])} of {shorten_to(query_label(comparison, ids[0]), LABEL)}"
            for ids in (losers, winners)
            if ids
        )
        or "no query differs",
    )


def _extremes(comparison: ComparisonResult, query_ids: Sequence[str], caption: str, none: str) -> list[Block]:
    if not query_ids:
        return [Paragraph(none)]
    found = comparison.comparisons[comparison.primary].differences
    ranks = [rank_cells(comparison, place) for place in (0, 1)]
    blocks: list[Block] = [query_table(comparison, query_ids, caption)]
    for place, query_id in enumerate(query_ids):
        before, after = (_rank_words(side[query_id]) for side in ranks)
        summary = f"{query_label(comparison, query_id)}: {format_delta(found[query_id])} (A {before}, B {after})"
        blocks.append(
            Details(summary, (side_by_side(comparison, query_id, lettered(comparison.names)),), is_open=place == 0)
        )
    return blocks


def _lowest(record: EvaluationResult) -> Section | None:
    """The queries with the worst values of one system, with its results."""
    (system,) = record.systems
    if not system.measures:
        return None
    measure = next(iter(system.measures))
    values = {q: value for q, of_query in system.queries.items() if (value := of_query[measure]) is not None}
    query_ids = sorted(values, key=lambda q: sign_of(measure) * values[q])[:SHOWN_ANSWERS]
    if not query_ids:
        return None
    ranks, queries = rank_cells(record, 0), record.queries or {}
    end = "Lowest" if CATALOGUE[measure.name].higher_is_better else "Highest"
    columns: Columns[str] = (
        Col("query", lambda query: query, "query id"),
        Col("text", lambda query: query_text(record, query), "code", when=has_texts(record)),
        Col(str(measure), values.__getitem__, "value"),
        Col("rank", ranks.__getitem__, "count"),
        Col("outcome", lambda query: queries[query].sides[0].outcome),
        _missed([queries[query].sides[0] for query in query_ids], lambda query: queries[query].sides[0]),
    )
    caption = f"{end} on {measure}, and the rank of the first relevant result"
    blocks: list[Block] = [TableSpec(caption, query_ids, columns).table(shown=20)]
    blocks += [
        Details(
            f"{query_label(record, query_id)}: {measure} {format_value(values[query_id])}, {_rank_words(ranks[query_id])}",
            (side_by_side(record, query_id, record.names),),
            is_open=place == 0,
        )
        for place, query_id in enumerate(query_ids)
    ]
    worst = f"{measure} {format_value(values[query_ids[0]])} of {shorten_to(query_label(record, query_ids[0]), LABEL)}"
    return Section("answers", "Worst queries", tuple(blocks), worst)


def by_query(subject: Subject) -> Section | None:
    """A row for every query of every system: outcome and every value; None unless requested."""
    if not subject.by_query:
        return None
    record, queries = subject.record, subject.queries
    rows = [
        (query_id, system, queries[query_id].sides[place])
        for place, system in enumerate(record.systems)
        for query_id in system.queries
    ]
    columns: Columns[tuple[str, SystemResult, SystemAnswer]] = (
        Col("query", lambda row: row[0], "query id"),
        Col("system", lambda row: row[1].name, when=len(record.systems) > 1),
        Col("text", lambda row: queries[row[0]].text, "code", when=has_texts(record)),
        Col("outcome", lambda row: row[2].outcome),
        Cols(subject.measures, lambda row, measure: row[1].queries[row[0]].get(measure), "value"),
        _missed([side for _, _, side in rows], lambda row: row[2]),
    )
    table = TableSpec("Every query", rows, columns).table()
    return Section("queries", "Per-query results", (table,), count_noun(len(rows), "rows", format_count))


def _missed(shown: Sequence[SystemAnswer], side: Callable[[Row], SystemAnswer]) -> Col[Row]:
    """Expected items that were missed; no column where none was."""
    return Col(
        "expected and missed",
        lambda row: join_first(side(row).missed, MISSED_ITEMS),
        "code",
        when=any(each.missed for each in shown),
    )


def query_label(record: EvaluationResult, query_id: str) -> str:
    """`q17 “json dumps”`, or the id alone."""
    text = query_text(record, query_id)
    return f"{query_id} “{text}”" if text and text != query_id else query_id


def side_by_side(record: EvaluationResult, query_id: str, titles: Sequence[str]) -> HitLists:
    """The expected items of a query, and the results of each system."""
    query = (record.queries or {})[query_id]
    named = join_first((f"{each.item} (grade {each.grade:g})" for each in query.expected), EXPECTED_ITEMS)
    lists = (
        HitList(title, list_note(side), tuple(map(hit_line, side.hits)) if has_list(side) else ())
        for title, side in zip(titles, query.sides, strict=True)
    )
    return HitLists(named or query.nothing_expected, tuple(lists))


def has_list(side: SystemAnswer) -> bool:
    """Whether a system answered a query with results."""
    outcome = Outcome.MISSING if side.outcome is None else Outcome(side.outcome)
    return side.n_returned > 0 and not outcome.is_failure and outcome is not Outcome.MISSING


def list_note(side: SystemAnswer) -> str:
    """The outcome of a query in words: `first relevant result at rank 3; 10 returned`, `timeout: no answer in 30 s`."""
    if side.outcome is None:
        return str(Absence.NOT_RETURNED)
    outcome = Outcome(side.outcome)
    if outcome.is_failure or outcome is Outcome.MISSING:
        return f"{outcome.value}: {side.reason}" if side.reason else outcome.value
    if not side.n_returned:
        return "no results returned"
    rank = side.first_relevant_rank
    note = "no relevant result" if rank is None else f"first relevant result at rank {rank}"
    dropped = f", {count_noun(side.n_duplicates, 'duplicates')} dropped" if side.n_duplicates else ""
    return f"{note}; {side.n_returned} returned{dropped}"


def hit_line(hit: HitRecord) -> HitLine:
    """One result, with how it was judged in words."""
    # The place, where the id does not contain it.
    title = ", ".join(part for part in (hit.title, hit.span and f"at {hit.span}") if part)
    if hit.state == "forbidden":
        return HitLine(hit.rank, hit.id, title, "forbidden: must not be found", "bad")
    if hit.item is not None and not hit.credited:
        return HitLine(
            hit.rank, hit.id, title, f"duplicate match of {shorten_to(hit.item, MATCHED)}, credited above", "even"
        )
    if hit.state in {"unjudged", "pooled"}:
        words = "not judged" if hit.state == "unjudged" else "in the pool, not judged"
        return HitLine(hit.rank, hit.id, title, words, "open")
    level = hit.grade or 0
    if level < 1 and hit.gain > 0:
        return HitLine(hit.rank, hit.id, title, "expected, with a grade below 1", "even")
    if level < 1:
        return HitLine(hit.rank, hit.id, title, "not relevant")
    matched = "expected" if hit.item == hit.id else f"matches {shorten_to(hit.item or '', MATCHED)}"
    return HitLine(hit.rank, hit.id, title, f"{matched}, grade {level}", "good")


def _rank_words(cell: str | int) -> str:
    return f"rank {cell}" if isinstance(cell, int) else cell


SHOWN = 4
"""Accuracies in the line of the section while it is closed."""
MAX_LABELS = 12
"""Predicted values that have a column; the others are one column together."""


def confusion(subject: Subject) -> Section | None:
    """How often a field of the answers is what the stratum of the query expects."""
    tables = [(label, found) for label, system in subject.systems for found in system.confusion]
    if not tables:
        return None
    columns: Columns[tuple[str, Confusion]] = (
        Col("system", lambda row: row[0]),
        Col("field", lambda row: row[1].field, "code"),
        Col("expected", lambda row: row[1].stratum, "code"),
        Col("accuracy", lambda row: row[1].accuracy, "value"),
        Col(f"{format_level(1 - tables[0][1].level)} CI", lambda row: row[1].interval, "interval"),
        Col("commonest value", lambda row: row[1].commonest, "value"),
        Col("n", lambda row: row[1].n, "count"),
    )
    caption = "Accuracy, its Wilson interval, and the accuracy of always predicting the commonest expected value"
    blocks: list[Block] = [TableSpec(caption, tables, columns).table(shown=20)]
    blocks += _expected_errors(tables)
    for label, found in tables:
        blocks += [*_counts(label, found), *_confusion_notes(label, found)]
    accuracies = [f"{label} {format_value(found.accuracy)}" for label, found in tables if found.accuracy is not None]
    key_figure = f"accuracy {join_first(accuracies, SHOWN)}" if accuracies else "no accuracy"
    return Section("confusion", "Predicted and expected", tuple(blocks), key_figure)


def _expected_errors(tables: Sequence[tuple[str, Confusion]]) -> list[Block]:
    """How often each system picked the wrong task type that the labels expect."""
    rows = [(label, table.field, errors) for label, table in tables if (errors := table.expected_errors) is not None]
    if not rows:
        return []
    columns: Columns[tuple[str, str, ExpectedErrors]] = (
        Col("system", lambda row: row[0]),
        Col("field", lambda row: row[1], "code"),
        Col("expected wrong type", lambda row: row[2].n_as_expected, "count"),
        Col("share", lambda row: row[2].share, "value"),
        Col(f"{format_level(1 - rows[0][2].level)} CI", lambda row: row[2].interval, "interval"),
        Col("right type", lambda row: row[2].n_right, "count"),
        Col("other", lambda row: row[2].n - row[2].n_as_expected - row[2].n_right, "count"),
        Col("n", lambda row: row[2].n, "count"),
    )
    caption = "Queries whose label names a wrong task type that a classifier is expected to pick, and what it picked"
    return [TableSpec(caption, rows, columns).table(shown=20)]


def _counts(label: str, found: Confusion) -> list[Block]:
    shown, rest = found.predicted[:MAX_LABELS], len(found.predicted) - MAX_LABELS
    columns: Columns[tuple[str, Sequence[int]]] = (
        Col(found.stratum, lambda row: row[0]),
        Cols(range(len(shown)), lambda row, place: row[1][place], "count", shown.__getitem__),
        Col(f"{format_count(rest)} others", lambda row: sum(row[1][MAX_LABELS:]), "count", when=rest > 0),
        Col("n", lambda row: sum(row[1]), "count"),
        Col("recall", lambda row: found.recall[row[0]], "value"),
    )
    caption = f"{label}: {found.stratum} expected (rows), {found.field} predicted (columns)"
    counts = TableSpec(caption, list(zip(found.expected, found.counts, strict=True)), columns).table(shown=20)
    of_predicted: Columns[tuple[int, str]] = (
        Col(found.field, lambda row: row[1]),
        Col("predicted", lambda row: sum(of_expected[row[0]] for of_expected in found.counts), "count"),
        Col("precision", lambda row: found.precision[row[1]], "value"),
    )
    right = [row for row in enumerate(found.predicted) if row[1] in found.expected and found.is_prediction]
    precisions = TableSpec(f"{label}: precision of each predicted value", right, of_predicted).table(shown=20)
    return [counts, *([precisions] if right else [])]


def _confusion_notes(label: str, found: Confusion) -> Iterator[Block]:
    if not found.is_prediction:
        sentence = f"{label}: no value of {found.field} is a value of {found.stratum}, so there is no accuracy."
        yield Paragraph(sentence, "note")
    if found.differs_by_case:
        pairs = and_list([f"{value} is {expected}" for value, expected in found.differs_by_case.items()])
        yield Paragraph(f"{label}: {pairs} in different case, and counts as a different value.", "warning")
    if found.n_unanswered:
        left_out = count_noun(found.n_unanswered, "queries", format_count)
        have, are = ("has", "is") if found.n_unanswered == 1 else ("have", "are")
        yield Paragraph(f"{label}: {left_out} failed or {have} no answer, and {are} not in the table.", "note")
