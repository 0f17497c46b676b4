"""Do the tools give the same values? `agree.py SIZE` prints, as JSON, how each differs from the reference.

The reference is pytrec_eval, which holds trec_eval's own code; without its values, Cranfield. A query differs where two
values are more than the tolerance apart: 1e-9, or half of the last digit of a tool that prints four.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools import DATA, MEASURES, VALUES, Tool, tools

TOLERANCE = {"cranfield": 1e-9, "peer": 1e-9, "trec_eval": 5.1e-5}
TREC_EVAL_NAMES = {
    "ndcg_cut_10": "nDCG@10",
    "map": "AP",
    "recip_rank": "RR@10",
    "P_10": "P@10",
    "recall_100": "R@100",
    "recall_1000": "R@1000",
    "success_5": "Success@5",
}
REASONS = {
    "ranx": "orders tied documents as its sort leaves them",
    "ranx-cold": "orders tied documents as its sort leaves them",
    "ir_measures": "orders tied documents by ascending id in RR@10 alone",
}
Queries = dict[str, dict[str, float]]


def read(tool: Tool, path: Path) -> tuple[dict[str, float], Queries]:
    """Means, and values by query and measure."""
    if tool.values == "trec_eval":
        return read_trec_eval(path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if tool.values == "peer":
        return document["mean"], document["queries"]
    system = document["systems"][0]
    return {measure: about["mean"] for measure, about in system["measures"].items()}, system["queries"]


def read_trec_eval(path: Path) -> tuple[dict[str, float], Queries]:
    """`measure query value` lines; RR@10 is recip_rank where that is at least 1/10, and its mean is not printed."""
    mean: dict[str, float] = {}
    queries: Queries = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        measure, query, text = line.split("\t")
        name = TREC_EVAL_NAMES.get(measure.strip())
        if name is None:
            continue
        value = float(text)
        if query == "all":
            mean[name] = value
        else:
            queries.setdefault(query, {})[name] = 0.0 if name == "RR@10" and value < 0.1 else value
    mean["RR@10"] = sum(values["RR@10"] for values in queries.values()) / len(queries)
    return mean, queries


def difference(ours: Queries, theirs: Queries, tolerance: float, tied: set[str]) -> dict[str, Any]:
    """Per measure the largest difference and the number of queries that differ, and how many of those hold ties."""
    by_measure, different = {}, set()
    for measure in MEASURES:
        apart = {query: abs(ours[query][measure] - theirs[query][measure]) for query in ours.keys() & theirs.keys()}
        over = {query for query, distance in apart.items() if not distance <= tolerance}  # NaN differs too
        by_measure[measure] = {"largest": max(apart.values(), default=0.0), "queries": len(over)}
        different |= over
    return {
        "measures": by_measure,
        "n_queries": len(theirs),
        "only_in_one": len(ours.keys() ^ theirs.keys()),
        "different": len(different),
        "different_without_ties": sorted(different - tied),
        "tolerance": tolerance,
    }


def main() -> int:
    size = sys.argv[1]
    tied = set(json.loads((DATA / f"{size}.json").read_text(encoding="utf-8"))["tied_judged_queries"])
    held = {}
    for tool in tools():
        path = VALUES / f"{size}-{tool.key}"
        if tool.values != "none" and path.exists():
            held[tool.key] = (tool, *read(tool, path))
    if not held:
        json.dump({"reference": "", "tied_queries": len(tied), "tools": {}}, sys.stdout)
        return 0
    reference = next(key for key in ("pytrec_eval", "cranfield", *held) if key in held)
    found: dict[str, Any] = {"reference": reference, "tied_queries": len(tied), "tools": {}}
    for key, (tool, mean, queries) in held.items():
        about = difference(held[reference][2], queries, TOLERANCE[tool.values], tied)
        found["tools"][key] = about | {"mean": {measure: mean[measure] for measure in MEASURES}}
    json.dump(found, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
