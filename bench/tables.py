"""What was measured, as Markdown tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agree import REASONS
from tools import MEASURES, REFERENCES, Tool

Record = dict[str, Any]
NOTHING = "–"


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """A table; the columns of `words` are set left, the others are numbers."""
    body = [list(headings), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in body) for i in range(len(headings))]

    def line(row: Sequence[str]) -> str:
        cells = (cell.ljust(widths[i]) if i in words else cell.rjust(widths[i]) for i, cell in enumerate(row))
        return "| " + " | ".join(cells) + " |"

    rule = "|".join("-" * (w + 2) if i in words else "-" * (w + 1) + ":" for i, w in enumerate(widths))
    return "\n".join([line(body[0]), f"|{rule}|", *map(line, body[1:])]) + "\n"


def seconds(value: float) -> str:
    """Three figures, more or less."""
    return (
        f"{value:.4f}"
        if value < 0.01
        else f"{value:.3f}"
        if value < 1
        else f"{value:.2f}"
        if value < 10
        else f"{value:.1f}"
    )


def times(value: float) -> str:
    """A ratio, to two or three figures."""
    return f"{value:.2g}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def by_round(records: Iterable[Record], key: str) -> dict[int, Record]:
    """The good measurements of a tool, the latest of each round, all of the code measured last."""
    good = [record for record in records if record["tool"] == key and not record["status"]]
    return {record["round"]: record for record in good if record["code"] == good[-1]["code"]}


def ratio(tool: dict[int, Record], reference: dict[int, Record], value: Callable[[Record], float]) -> str:
    """How many times less a tool took than a reference: the median over the rounds that both have."""
    shared = tool.keys() & reference.keys()
    if not shared:
        return NOTHING
    return times(statistics.median(value(reference[round_]) / value(tool[round_]) for round_ in shared))


def wall(record: Record) -> float:
    """Seconds on the clock."""
    return float(record["wall"])


def engine_table(size: str, records: Sequence[Record], everything: Sequence[Tool]) -> str:
    """Cost of each tool, and how many times as fast as each reference it is."""
    references = {key: by_round(records, key) for key in REFERENCES}
    headings = ["tool", "n", "wall s, best", "median", "CPU s", "peak MB", *[f"× {key}" for key in REFERENCES]]
    rows = []
    for tool in everything:
        rounds = by_round(records, tool.key)
        if rounds:
            walls = [wall(record) for record in rounds.values()]
            cpu = statistics.median(record["user"] + record["system"] for record in rounds.values())
            peak = max(record["peak_kb"] for record in rounds.values()) / 1024
            cells = [seconds(min(walls)), seconds(statistics.median(walls)), seconds(cpu), f"{peak:.0f}"]
            ratios = [ratio(rounds, references[key], wall) if tool.values != "none" else NOTHING for key in REFERENCES]
            rows.append([tool.label, str(len(rounds)), *cells, *ratios])
        elif tool.missing and tool.rounds.get(size, 0):
            rows.append([f"{tool.label}: {tool.missing}", *[NOTHING] * (len(headings) - 1)])
        elif failed := [record for record in records if record["tool"] == tool.key]:
            why = failed[-1].get("error", "").splitlines()
            reason = (why[-1] if why else f"exit {failed[-1]['status']}")[:60]
            rows.append([f"{tool.label}: {reason}", *[NOTHING] * (len(headings) - 1)])
        elif tool.rounds.get(size, 0):
            rows.append([f"{tool.label}: not measured", *[NOTHING] * (len(headings) - 1)])
    return f"{size}: from files to values\n\n" + markdown(headings, rows)


def agreement_table(size: str, found: Record, everything: Sequence[Tool]) -> str:
    """Largest difference and number of differing queries per measure, for every tool that gave values."""
    if not found["tools"]:
        return f"{size}: no values to compare\n"
    labels = {tool.key: tool.label for tool in everything}
    rows = []
    for key, about in found["tools"].items():
        if key == found["reference"]:
            continue
        cells = [
            f"{cell['largest']:.1e} ({cell['queries']})" if cell["largest"] else "0"
            for cell in (about["measures"][measure] for measure in MEASURES)
        ]
        rows.append([labels[key], *cells, verdict(key, about)])
    heading = (
        f"{size}: the same values? Largest difference from {labels[found['reference']]}, in brackets the queries that differ "
        f"({found['tied_queries']} queries hold a judged document that ties)\n\n"
    )
    return heading + markdown(["tool", *MEASURES, "differs in"], rows, words=(0, len(MEASURES) + 1))


def verdict(key: str, about: Record) -> str:
    """How many queries differ, and why, as far as it is known."""
    if about["only_in_one"]:
        return f"{about['only_in_one']} queries are in one of the two only: UNEXPLAINED"
    if not about["different"]:
        return "nothing"
    unexplained = len(about["different_without_ties"])
    reason = REASONS.get(key)
    if unexplained or reason is None:
        return f"{about['different']} queries, {unexplained} of them without ties: UNEXPLAINED"
    return f"{about['different']} queries, all with ties: {reason}"


def memory_table(size: str, cases: dict[str, Record]) -> str:
    """First and best call of each case, and whether the means agree."""
    reference = cases.get("pytrec_eval", {}).get("mean")
    headings = ["tool", "first s", "best s", "best CPU s", "× pytrec_eval", "MB before", "MB peak", "means differ by"]
    rows = []
    for about in cases.values():
        if "walls" not in about:
            rows.append([f"{about['label']}: {about['error'][:60]}", *[NOTHING] * (len(headings) - 1)])
            continue
        best = min(about["walls"])
        faster = times(min(cases["pytrec_eval"]["walls"]) / best) if reference else NOTHING
        apart = max(abs(about["mean"][m] - reference[m]) for m in MEASURES) if reference else None
        distance = NOTHING if apart is None else f"{apart:.0e}" if apart else "0"
        memory = [f"{about['ready_mb']:.0f}", f"{about['peak_mb']:.0f}"]
        cpu = seconds(min(about["cpus"]))
        rows.append([about["label"], seconds(about["walls"][0]), seconds(best), cpu, faster, *memory, distance])
    return f"{size}: in memory, dicts of dicts to values and means\n\n" + markdown(headings, rows)


def parts_table(size: str, found: dict[str, Record]) -> str:
    """Seconds of each part, with the kernel and without; the command is timed in a process of its own."""
    names = list(found)
    rows = [["start a bare Python", *[seconds(found[name]["bare"]) for name in names]]]
    rows.append(["imports", *[seconds(found[name]["imports"]) for name in names]])
    rows += [[part, *[seconds(found[name]["parts"][part]) for name in names]] for part in found[names[0]]["parts"]]
    rows.append(["sum", *[seconds(sum((a["bare"], a["imports"], a["whole"]))) for a in found.values()]])
    rows.append(["the command as a whole", *[seconds(found[name]["command"]) for name in names]])
    rows.append(["for scale: the digest alone, 1 thread", *[seconds(found[name]["digest"]) for name in names]])
    headings = ["part, median s", *[f"{name} ({found[name]['engine']}, n = {found[name]['n']})" for name in names]]
    size_of_json = f"{found[names[0]]['json_bytes']:,} bytes of JSON"
    return f"{size}: the parts of `cranfield evaluate --format json` ({size_of_json})\n\n" + markdown(headings, rows)
