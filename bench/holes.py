"""Judgments needed until a verdict is settled, by the order in which holes are judged. `holes.py [HIDINGS]` prints a table.

Cranfield collection, real systems: SQLite FTS5 and bm25s. The pool of two systems (first ten results of each) is judged by
the collection: its grade, or 0. A hiding hides a share of these judgments, by seed. Then they are judged again, in the
order of holes (by expected effect, re-computed after each judgment, or after each pool of 25; and by effect), in rank order
(rank 1 of A, rank 1 of B, rank 2 of A, ..., of all queries) and in random order. The verdict (nDCG@10, paired t test at
.05) is settled after the first judgment from which on it is the verdict of all judgments. `docs/explanation/measurements.md` has the table.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from cranfield import Query, TestSet, parse
from cranfield.evaluation.joint import OpenLists, open_lists
from cranfield.evaluation.unjudged import shares_of_holes
from cranfield.model import CONVENTIONS, Answer, Hit, Outcome, Run
from cranfield.ranking import rank_run
from cranfield.stats.paired import paired_t

DATA = Path(os.environ.get("CRANFIELD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "cranfield"
DEPTH = 10
MEASURE = parse("nDCG@10")
GRADES = (0.0, 1.0, 2.0, 3.0, 4.0)
SHARES = (0.3, 0.6, 0.9)
WORD = re.compile(r"[a-z0-9]+")
Lists = dict[str, list[str]]
Judgments = Mapping[str, Mapping[str, float]]


def read_lines(name: str, folder: Path = DATA) -> list[dict[str, str]]:
    """Records of a JSONL file of the collection."""
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def read_judgments(folder: Path = DATA) -> dict[str, dict[str, float]]:
    """Query id to document to grade; the collection's code 1 is the best, and -1 not relevant."""
    grades: dict[str, dict[str, float]] = {}
    for line in (folder / "qrels.txt").read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, code = line.split()
        grades.setdefault(query_id, {})[doc_id] = float(5 - int(code)) if int(code) > 0 else 0.0
    return grades


def fts5(tokenizer: str, title_weight: float, folder: Path = DATA) -> Lists:
    """First results of SQLite FTS5: any word of the query, ordered by its BM25."""
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE VIRTUAL TABLE docs USING fts5(id UNINDEXED, title, body, tokenize='{tokenizer}')")
        rows = [(one["_id"], one["title"], one["text"]) for one in read_lines("corpus.jsonl", folder)]
        database.executemany("INSERT INTO docs VALUES (?, ?, ?)", rows)
        sql = f"SELECT id FROM docs WHERE docs MATCH ? ORDER BY bm25(docs, 0, {title_weight}, 1), id LIMIT {DEPTH}"
        return {
            one["_id"]: [row[0] for row in database.execute(sql, (" OR ".join(WORD.findall(one["text"].lower())),))]
            for one in read_lines("queries.jsonl", folder)
        }


def bm25s_lists(folder: Path = DATA) -> Lists:
    """First results of bm25s with its defaults."""
    import bm25s

    corpus, queries = read_lines("corpus.jsonl", folder), read_lines("queries.jsonl", folder)
    index = bm25s.BM25()
    texts = [f"{one['title']} {one['text']}" for one in corpus]
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    asked = bm25s.tokenize([one["text"] for one in queries], show_progress=False)
    found, _ = index.retrieve(asked, k=DEPTH, show_progress=False)
    return {
        one["_id"]: [corpus[place]["_id"] for place in row] for one, row in zip(queries, found.tolist(), strict=True)
    }


def hide(judgments: Judgments, sides: Sequence[Lists], share: float, seed: int) -> tuple[OpenLists, list[float]]:
    """The two systems with a share of the judgments of their pool hidden, and the grades of what is unjudged then."""
    rng = np.random.default_rng(seed)
    known: dict[str, dict[str, float]] = {}
    for query_id in sides[0]:
        judged = judgments.get(query_id, {})
        pool = dict.fromkeys((*sides[0][query_id], *sides[1][query_id]))
        hidden = {doc_id for doc_id in pool if rng.random() < share}
        full = dict(judged) | {doc_id: judged.get(doc_id, 0.0) for doc_id in pool}
        known[query_id] = {doc_id: grade for doc_id, grade in full.items() if doc_id not in hidden}
    testset = TestSet("cranfield", tuple(map(Query, sides[0])), known)
    runs = [
        Run("run", {q: Answer(Outcome.ANSWERED, tuple(map(Hit, docs))) for q, docs in side.items()}) for side in sides
    ]
    first, second = (rank_run(testset, run, CONVENTIONS["trec"]) for run in runs)
    pair = open_lists(MEASURE, (first, second), GRADES)
    if isinstance(pair, str):
        raise SystemExit(pair)
    of = zip(pair.query.tolist(), pair.doc_ids, strict=True)
    return pair, [judgments.get(pair.query_ids[query], {}).get(doc_id, 0.0) for query, doc_id in of]


def settled_after(pair: OpenLists, order: Iterable[int], grades: Sequence[float]) -> int:
    """Judgments, in an order, from which on the verdict is that of all."""
    fixed = np.zeros(len(grades))
    queries, rows = [], []
    order = list(order)
    for hole in order:
        fixed[hole] = grades[hole]
        query = pair.query[hole]
        queries.append(query)
        rows.append(fixed[pair.start[query] : pair.start[query + 1]].copy())
    values = pair.values(np.array(queries, dtype=np.intp), np.concatenate(rows))
    now = pair.judged(np.full(len(grades), np.nan))
    difference = now[:, 1] - now[:, 0]
    verdicts = [verdict(difference)]
    for query, (a, b) in zip(queries, values.tolist(), strict=True):
        changed = difference[query] != b - a
        difference[query] = b - a
        verdicts.append(verdict(difference) if changed else verdicts[-1])
    return next((n for n in range(len(verdicts), 0, -1) if verdicts[n - 1] != verdicts[-1]), 0)


def verdict(difference: np.ndarray) -> int:
    """1 better, -1 worse, 0 no significant difference."""
    found = paired_t(difference)
    if found.ci_low is None or found.ci_high is None:
        return 0
    return 1 if found.ci_low > 0 else -1 if found.ci_high < 0 else 0


def by_rank(pair: OpenLists) -> list[int]:
    """Holes by the better of both ranks; of one rank query by query, A first."""
    return sorted(
        range(len(pair.query)),
        key=lambda hole: min(
            (rank, pair.query[hole], side) for side, rank in enumerate(pair.rank[hole].tolist()) if rank
        ),
    )


def judging_order(
    pair: OpenLists, judge: Callable[[int], float], *, expected: bool = True, batch: int = 1
) -> Iterator[tuple[int, float]]:
    """The holes one by one, the largest effect first, re-computed after each judgment.

    Args:
        pair: the unjudged results.
        judge: called with each hole; returns its grade.
        expected: by expected effect; else by effect.
        batch: judgments between two computations: a pool of so many at a time.

    Yields:
        The hole and its grade.
    """
    shares = shares_of_holes(pair)
    fixed = np.full(len(pair.query), np.nan)
    version = np.zeros(len(pair.query_ids), dtype=np.intp)
    queue: list[tuple[float, int, int]] = []
    waiting = set(range(len(pair.query_ids)))
    n_judged = 0
    while True:
        if n_judged % batch == 0 and waiting:
            queries = np.array(sorted(waiting), dtype=np.intp)
            version[queries] += 1
            _, holes, change = pair.effects(queries, fixed)
            squares = (shares[holes] * change**2).sum(axis=1) if expected else np.abs(change).max(axis=1, initial=0.0)
            for effect, hole in zip(squares.tolist(), holes.tolist(), strict=True):
                heapq.heappush(queue, (-effect, hole, int(version[pair.query[hole]])))
            waiting.clear()
        while queue and (not np.isnan(fixed[queue[0][1]]) or queue[0][2] != version[pair.query[queue[0][1]]]):
            heapq.heappop(queue)
        if not queue:
            return
        hole = heapq.heappop(queue)[1]
        fixed[hole] = judge(hole)
        n_judged += 1
        yield hole, float(fixed[hole])
        if fixed[hole] != pair.grades[0]:  # else it is as it was supposed to be, and nothing changes
            waiting.add(int(pair.query[hole]))


def by_effect(pair: OpenLists, grades: Sequence[float], *, expected: bool = True, batch: int = 1) -> list[int]:
    """Holes in the order of `cranfield holes`."""
    return [hole for hole, _ in judging_order(pair, grades.__getitem__, expected=expected, batch=batch)]


def orders(pair: OpenLists, grades: Sequence[float], seed: int) -> dict[str, list[int]]:
    """Orders of judging by name."""
    return {
        "holes": by_effect(pair, grades),
        "holes, 25 at a time": by_effect(pair, grades, batch=25),
        "holes by effect": by_effect(pair, grades, expected=False),
        "rank": by_rank(pair),
        "random": np.random.default_rng(seed).permutation(len(grades)).tolist(),
    }


def table(name: str, judgments: Judgments, sides: Sequence[Lists], n_hidings: int) -> list[float]:
    """Print the judgments needed for each share hidden; the ratios of all hidings."""
    ratios: list[float] = []
    for share in SHARES:
        needed: dict[str, list[int]] = {}
        n_holes = 0
        for seed in range(n_hidings):
            pair, grades = hide(judgments, sides, share, seed)
            n_holes += len(grades)
            for order, holes in orders(pair, grades, seed).items():
                needed.setdefault(order, []).append(settled_after(pair, holes, grades))
        rank = np.array(needed["rank"])
        none = rank == 0
        print(f"{name}, {share:.0%} hidden, {n_holes / n_hidings:.0f} holes, {n_hidings} hidings", flush=True)
        for order, counts in needed.items():
            each = np.array(counts)
            ratio = each[~none] / rank[~none]
            settled = f"{int((each[none] == 0).sum())} of {int(none.sum())}"
            print(
                f"  {order:20} judgments: median {np.median(each):6.0f}, 9 of 10 hidings {np.percentile(each, 90):6.0f}, "
                f"of rank order: median {_median(ratio):5.2f}, total {each.sum() / max(rank.sum(), 1):5.2f}, "
                f"at most half in {(each <= rank / 2).mean():4.0%}; none needed where rank order needs none: {settled}",
                flush=True,
            )
            if order == "holes":
                ratios += ratio.tolist()
    return ratios


def _median(values: np.ndarray) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def main(n_hidings: int) -> None:
    """Print the table of both pairs of systems."""
    judgments = read_judgments()
    stemmed = fts5("porter unicode61", 1)
    pairs = {
        "bm25s, FTS5 with stemming": (bm25s_lists(), stemmed),
        "FTS5 without, FTS5 with stemming": (fts5("unicode61", 1), stemmed),
        "FTS5, FTS5 with titles x 5": (stemmed, fts5("porter unicode61", 5)),
    }
    for name, sides in pairs.items():
        table(name, judgments, sides, n_hidings)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
