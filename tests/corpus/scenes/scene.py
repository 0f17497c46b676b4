"""A scene, and what several scenes are made of."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

FORMS = ("", "--format json", "--format csv", "--format markdown", "--format brief", "--html report.html")
"""The forms of a report; the first is text."""


UNWATCHED = "unwatched"
"""A folder whose files do not count: databases of a server."""


@dataclass(frozen=True)
class Scene:
    """A folder and the calls made in it.

    Attributes:
        name: of the folder with what is expected.
        calls: command lines of cranfield, or functions whose output counts.
        files: the inputs, by their paths.
        copies: folders of the checkout that are copied in.
        timed: whether durations differ from call to call, because search systems are called.
    """

    name: str
    calls: Sequence[str | Callable[[], None]]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    copies: Sequence[str] = ()
    timed: bool = False


def forms(*commands: str, only: Sequence[str] = FORMS) -> list[str]:
    """Each command in each form of a report."""
    return [f"{command} {form}".strip() for command in commands for form in only]


TEXT_AND_JSON = FORMS[:2]
GRADES = {0: 0.62, 1: 0.2, 2: 0.12, 3: 0.06}


def judged_queries(n: int, seed: int, n_docs: int = 14) -> dict[str, dict[str, int]]:
    """Queries with the grades of their documents."""
    draw = random.Random(seed)
    return {
        f"q{i:02}": {f"d{j:02}": draw.choices(list(GRADES), list(GRADES.values()))[0] for j in range(n_docs)}
        for i in range(1, n + 1)
    }


def qrels(judged: dict[str, dict[str, int]]) -> str:
    return "".join(f"{q} 0 {d} {grade}\n" for q, docs in judged.items() for d, grade in docs.items())


def run(
    judged: dict[str, dict[str, int]], noise: float, seed: int, skipped: Sequence[str] = (), depth: int = 12
) -> str:
    """A run in TREC's form whose scores are the grades with noise; a third of what it finds is judged by nobody."""
    draw = random.Random(seed)
    lines = []
    for q, docs in judged.items():
        if q in skipped:
            continue
        scores = {d: grade + draw.gauss(0, noise) for d, grade in docs.items()}
        scores |= {f"u{j:02}": draw.gauss(0, noise) for j in range(5)}
        ranked = sorted(scores, key=lambda d: -scores[d])[:depth]
        lines += [f"{q} Q0 {d} {rank} {scores[d]:.4f} run{seed}\n" for rank, d in enumerate(ranked, 1)]
    return "".join(lines)


def native(judged: dict[str, dict[str, int]], strata: dict[str, list[str]], **head: object) -> str:
    """A test set in its own form; YAML holds JSON."""
    queries = [
        {
            "id": q,
            "text": f"words of {q}",
            "strata": {name: values[i % len(values)] for name, values in strata.items()},
            "judgments": docs,
        }
        for i, (q, docs) in enumerate(judged.items())
    ]
    return json.dumps({"cranfield_testset": 1, "name": "corpus", "version": "1", **head, "queries": queries}, indent=1)


def collected(name: str, noise: float, ms: float) -> dict[str, str]:
    """A run as it is collected from a system, and its log with the latency of each call."""
    lines: dict[str, list[dict[str, object]]] = {}
    for line in run(SMALL, noise, 9).splitlines():
        query, _, doc, _, score, _ = line.split()
        lines.setdefault(query, []).append({"id": doc, "score": float(score)})
    head = {"cranfield_run": 1, "name": name, "depth": 10, "order": "given"}
    answers = [{"query_id": query, "outcome": "answered", "hits": hits} for query, hits in lines.items()]
    log: list[dict[str, object]] = [{"cranfield_run_log": 1, "machine": "here", "name": name}]
    log += [
        {"at": f"2026-01-02T03:04:{i:02}Z", "calls_before": i, "latency_ms": ms + i * 7 % 5, "query_id": query}
        for i, query in enumerate(lines)
    ]
    return {
        f"{name}.jsonl": "".join(json.dumps(one) + "\n" for one in [head, *answers]),
        f"{name}.log.jsonl": "".join(json.dumps(one) + "\n" for one in log),
    }


def point(number: int, mean: float) -> str:
    """A line of the history of a system."""
    return (
        json.dumps(
            {
                "cranfield_history": 1,
                "time": f"2026-01-{number + 2:02}T03:04:05+00:00",
                "commit": None,
                "dirty": False,
                "testset": "handbook",
                "version": "1",
                "digest": "sha256:" + "a" * 64,
                "system": "titles",
                "convention": "trec",
                "primary": "nDCG@10",
                "measures": {"nDCG@10": {"mean": mean, "n": 12, "ci_low": mean - 0.05, "ci_high": mean + 0.05}},
                "n_queries": 12,
                "n_failed": number % 2,
                "judged": 0.4,
                "p50_ms": 12.0 + number,
                "p95_ms": 20.0,
                "pilot": False,
            }
        )
        + "\n"
    )


SMALL = judged_queries(24, 1)
CLASSED = judged_queries(60, 2)
PAIR: dict[str, str] = {
    "qrels.txt": qrels(SMALL),
    "set.yaml": native(SMALL, {"kind": ["title", "question", "mixed"], "level": ["easy", "hard"]}),
    "a.run": run(SMALL, 1.3, 1),
    "b.run": run(SMALL, 0.6, 2),
    "c.run": run(SMALL, 1.25, 3),
    "gaps.run": run(SMALL, 0.6, 4, skipped=("q03", "q17")),
    "few.run": run(SMALL, 0.6, 5, skipped=[f"q{i:02}" for i in range(1, 15)]),
    "binary.qrels": "q1 0 a 1\nq1 0 b 0\nq2 0 c 1\nq3 0 d 1\n",
    "tiny-a.run": "q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq2 Q0 z 1 1 x\nq3 Q0 d 1 1 x\n",
    "tiny-b.run": "q1 Q0 b 1 3 y\nq1 Q0 a 2 2 y\nq2 Q0 c 1 1 y\nq3 Q0 z 1 2 y\nq3 Q0 d 2 1 y\n",
}

HANDBOOK_CONFIG = """\
testset: handbook/queries.yaml
primary: nDCG@10
latency: {skip_first: 12, smallest_ms: 100000}
systems:
  plain:
    command: ["{python}", search.py, "{query}", "{k}", "1"]
    cwd: handbook
    extract: {jsonl: true, id: id, score: score, title: title}
  titles:
    command: ["{python}", search.py, "{query}", "{k}", "5"]
    cwd: handbook
    extract: {jsonl: true, id: id, score: score, title: title}
gate:
  system: titles
  rules:
    - floor: {measure: nDCG@10, at_least: 0.85}
    - floor: {measure: Success@1, at_least: 0.9}
    - drop: {measure: nDCG@10, at_most: 5 %}
    - failures: {at_most: 0}
"""
