"""What every executor of the kernel of large runs must do, as cases with the values that pytrec_eval finds.

An executor takes the rows of a case, however it gets them, and returns the table of results. `check` compares it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pytrec_eval

from cranfield.scale.judgments import JudgmentTable
from cranfield.scale.scoring import Scoring

MEASURES = {"nDCG@10": "ndcg_cut_10", "AP": "map", "RR": "recip_rank", "P@5": "P_5", "R@10": "recall_10"}
"""Ours to pytrec_eval's."""


@dataclass(frozen=True)
class Case:
    """Rows of runs (system, query, document, score) and judgments."""

    name: str
    rows: tuple[tuple[str, str, str, float], ...]
    qrels: dict[str, dict[str, int]]
    systems: tuple[str, ...] = field(default=("bm25",))

    @property
    def scoring(self) -> Scoring:
        return Scoring.of(self.systems, list(MEASURES))

    @property
    def judgments(self) -> JudgmentTable:
        rows = [(query, doc, grade) for query, judged in self.qrels.items() for doc, grade in judged.items()]
        query, doc, grade = zip(*rows, strict=True)
        return JudgmentTable.from_rows(pa.array(query), pa.array(doc), list(grade), name=self.name, digest="sha256:0")

    def table(self, *, systems: bool | None = None) -> pa.Table:
        """The rows as columns; the one of the system is there where there are several."""
        system, query, doc, score = zip(*self.rows, strict=True)
        columns = {"query_id": query, "doc_id": doc, "score": score}
        with_systems = len(self.systems) > 1 if systems is None else systems
        return pa.table(columns | ({"system": system} if with_systems else {}))


def _drawn(
    name: str, systems: tuple[str, ...], seed: int, *, decimals: int = 2, query: str = "q{}", doc: str = "d{}"
) -> Case:
    """Queries of very different sizes, of which some are not judged, and some not answered by every system."""
    draw = random.Random(seed)
    documents = [doc.format(number) for number in range(60)]
    qrels = {
        query.format(number): {each: draw.randint(-1, 3) for each in draw.sample(documents, draw.randint(1, 25))}
        for number in range(12)
    }
    rows = []
    for system in systems:
        for number in range(14):  # the last two are not judged
            n = 0 if draw.random() < 0.2 else draw.choice([1, 4, 20, 60])
            # pytrec_eval compares scores as 32-bit floats: quarters are exact there.
            rows += [
                (system, query.format(number), each, round(draw.random() * 4 * 10**decimals) / 4)
                for each in draw.sample(documents, n)
            ]
    draw.shuffle(rows)
    return Case(name, tuple(rows), qrels, systems)


def _skewed() -> Case:
    """One query has nearly all the rows."""
    rows = [("bm25", "large", f"d{number}", float(number * 7919 % 500) / 4) for number in range(3000)]
    rows += [("bm25", f"q{number}", "d1", 1.0) for number in range(20)]
    qrels = {
        "large": {f"d{number}": number % 3 for number in range(0, 3000, 11)},
        "q3": {"d1": 1, "d2": 1},
        "none": {"d1": 1},
    }
    return Case("skewed", tuple(rows), qrels)


CASES = (
    _drawn("one system", ("bm25",), 1),
    _drawn("many ties", ("bm25",), 2, decimals=0),
    _drawn("three systems", ("dense", "bm25", "hybrid"), 3),
    _drawn("ids of all scripts", ("läufer", "走る"), 4, query="frage ü{}", doc="📄-{}-é"),
    _drawn("whole numbers", ("bm25",), 5, query="{}", doc="{}"),
    _skewed(),
)


def golden(case: Case) -> dict[tuple[str, str], dict[str, float]]:
    """(system, query) to the value of each measure; 0 for a judged query that a system does not answer."""
    found = {}
    evaluator = pytrec_eval.RelevanceEvaluator(case.qrels, {"ndcg_cut.10", "map", "recip_rank", "P.5", "recall.10"})
    for system in case.systems:
        run: dict[str, dict[str, float]] = {}
        for owner, query, doc, score in case.rows:
            if owner == system:
                run.setdefault(query, {})[doc] = score
        values = evaluator.evaluate(run)
        for query in case.qrels:
            found[system, query] = {
                ours: values[query][theirs] if query in values else 0.0 for ours, theirs in MEASURES.items()
            }
    return found


def check(case: Case, results: pa.Table, *, drops_rows_without_query: bool = False) -> None:
    """One row a judged query and system, every row seen, and the values of pytrec_eval.

    Args:
        case: that was evaluated.
        results: of it, in any order.
        drops_rows_without_query: the executor keeps the count of rows of queries without judgments elsewhere.
    """
    of_queries = results.filter(pc.is_valid(results["query_id"])).to_pylist()
    found = {(row["system"], row["query_id"]): row for row in of_queries}
    expected = golden(case)
    assert len(of_queries) == len(found), "a query has several rows"
    assert found.keys() == expected.keys()
    judged_rows = [row for row in case.rows if row[1] in case.qrels]
    seen = sum(row["n_rows"] for row in (of_queries if drops_rows_without_query else results.to_pylist()))
    assert seen == (len(judged_rows) if drops_rows_without_query else len(case.rows))
    for key, values in expected.items():
        row = found[key]
        n = sum(each[:2] == key for each in case.rows)
        assert (row["n_rows"], row["outcome"]) == (n, "answered" if n else "missing"), key
        for measure, value in values.items():
            assert abs(row[measure] - value) < 1e-12, (case.name, key, measure)


Executor = Callable[[Case], pa.Table]
