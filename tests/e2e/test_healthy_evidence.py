"""Comparisons on published collections in which no evidence check finds anything; the number of false alarms is printed.

The systems are small searches over the collections themselves, and the published result lists. Each pair is compared on all
queries, on halves of them, with several primary measures, and as collected runs and as run files.
"""

from __future__ import annotations

import csv
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cranfield import Answer, Comparison, Evaluation, Hit, Outcome, Query, Run, TestSet, compare, evaluate, load
from cranfield.evaluation.absence import judged_share
from cranfield.evaluation.unjudged import MOSTLY_UNJUDGED
from cranfield.model import Pattern

Lists = Mapping[str, Sequence[Hit | str]]
Made = Callable[[Path], Iterator[tuple[str, Comparison]]]


def run_of(name: str, lists: Lists) -> Run:
    """A collected run."""
    return Run(
        name,
        {
            query_id: Answer(
                Outcome.ANSWERED if hits else Outcome.EMPTY,
                tuple(hit if isinstance(hit, Hit) else Hit(hit) for hit in hits),
            )
            for query_id, hits in lists.items()
        },
    )


class Index:
    """BM25 over a few documents."""

    def __init__(self, documents: Mapping[str, str], words: Callable[[str], list[str]]) -> None:
        self.words = words
        self.ids = sorted(documents)
        lengths = np.zeros(len(documents))
        postings: dict[str, list[tuple[int, int]]] = {}
        for row, doc_id in enumerate(self.ids):
            counts = Counter(words(documents[doc_id]))
            lengths[row] = counts.total()
            for word, n in counts.items():
                postings.setdefault(word, []).append((row, n))
        self.lengths = lengths / lengths.mean()
        self.postings = {word: np.array(found).T for word, found in postings.items()}
        """Word to the rows of the documents that have it, and how often."""

    def search(self, query: str, k: int, b: float = 0.75) -> dict[str, float]:
        """The best documents with their scores; equal scores in the order of ids."""
        scores = np.zeros(len(self.ids))
        for word in sorted(set(self.words(query)) & self.postings.keys()):
            rows, n = self.postings[word]
            weight = math.log(1 + (len(self.ids) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += weight * n * 2.2 / (n + 1.2 * (1 - b + b * self.lengths[rows]))
        best = np.argsort(-scores, kind="stable")[:k]
        return {self.ids[row]: float(scores[row]) for row in best if scores[row] > 0}


def whole_words(text: str) -> list[str]:
    """Words as written, in lower case."""
    return re.findall(r"[a-z0-9]+", text.lower())


def stems(text: str) -> list[str]:
    """The first five letters of each word of three letters or more."""
    return [word[:5] for word in whole_words(text) if len(word) > 2]


def cranfield_collection(data: Path) -> Iterator[tuple[str, Comparison]]:
    """Four searches over the abstracts."""
    folder = data / "cranfield"
    documents = {
        record["_id"]: f"{record.get('title', '')} {record['text']}"
        for record in map(json.loads, (folder / "corpus.jsonl").read_text().splitlines())
    }
    testset = load(folder / "qrels.txt")
    texts = {
        record["_id"]: record["text"] for record in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())
    }
    titles = {doc_id: " ".join(text.split()[:15]) for doc_id, text in documents.items()}
    indexes = {"words": Index(documents, whole_words), "stems": Index(documents, stems), "titles": Index(titles, stems)}
    runs = {
        name: {query_id: index.search(texts[query_id], 50) for query_id in testset.query_ids}
        for name, index in indexes.items()
    }
    runs["long"] = {query_id: indexes["stems"].search(texts[query_id], 50, b=0.2) for query_id in testset.query_ids}
    measures = ["nDCG@10", "AP", "P@5", "RR"]
    files = {name: evaluate(testset, run, measures=measures, name=name) for name, run in runs.items()}
    collected = {
        name: evaluate(testset, run_of(name, {query_id: list(row) for query_id, row in run.items()}), measures=measures)
        for name, run in runs.items()
    }
    for first, second in (("words", "stems"), ("titles", "words"), ("stems", "long"), ("titles", "long")):
        for primary in ("nDCG@10", "AP"):
            yield f"cranfield files {first} {second} {primary}", compare(files[first], files[second], primary=primary)
        yield f"cranfield runs {first} {second} P@5", compare(collected[first], collected[second], primary="P@5")


def halves(testset: TestSet, runs: Mapping[str, Lists], measures: Sequence[str]) -> Iterator[tuple[str, Comparison]]:
    """Every pair of runs on all queries and on either half, on each measure."""
    ids = list(testset.query_ids)
    random.Random(3).shuffle(ids)
    parts = {"all": ids, "half": ids[: len(ids) // 2], "other half": ids[len(ids) // 2 :]}
    for part, kept in parts.items():
        within = set(kept)
        smaller = replace(
            testset,
            queries=tuple(query for query in testset.queries if query.id in within),
            grades={query_id: grades for query_id, grades in testset.grades.items() if query_id in within},
            targets={query_id: targets for query_id, targets in testset.targets.items() if query_id in within},
            files={query_id: files for query_id, files in testset.files.items() if query_id in within},
        )
        sides: list[Evaluation] = [
            evaluate(smaller, run_of(name, {query_id: lists[query_id] for query_id in kept}), measures=measures)
            for name, lists in runs.items()
        ]
        for measure in measures:
            yield f"{testset.name} {part} {measure}", compare(sides[0], sides[1], primary=measure)


def cupertino(data: Path) -> Iterator[tuple[str, Comparison]]:
    """Two releases of a documentation search, with patterns on addresses as the truth."""
    records = json.loads((data / "cupertino/versiondiff.json").read_text())["per_query"]
    names = {f"q{number}": record for number, record in enumerate(records, start=1)}
    testset = TestSet(
        "cupertino",
        tuple(Query(query_id, record["query"]) for query_id, record in names.items()),
        {},
        targets={query_id: (Pattern(record["pattern"]),) for query_id, record in names.items()},
    )
    runs = {side: {query_id: record[side]["top10"] for query_id, record in names.items()} for side in ("brew", "new")}
    yield from halves(testset, runs, ["RR@10", "P@1"])


def octocode(data: Path) -> Iterator[tuple[str, Comparison]]:
    """Windows of lines, as ranked and with every second window left out."""
    testset = load(data / "octocode/code.csv")
    lists: dict[str, list[Hit]] = {}
    with (data / "octocode/run-bm25-window40-code.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            query_id = testset.query_ids[int(row["qid"]) - 1]
            span = f"{row['start_line']}-{row['end_line']}"
            lists.setdefault(query_id, []).append(Hit(row["path"], float(row["score"]), span=span))
    thinned = {query_id: hits[:1] + hits[2::2] + hits[1::2] for query_id, hits in lists.items()}
    yield from halves(replace(testset, name="octocode"), {"bm25": lists, "thinned": thinned}, ["nDCG@10", "RR"])


def knowcode(data: Path) -> Iterator[tuple[str, Comparison]]:
    """Symbols of a repository, found by the words of their names."""
    testset = load(data / "knowcode/golden_v1.0.json")
    records: list[dict[str, Any]] = json.loads((data / "knowcode/golden_v1.0.json").read_text())
    symbols = sorted({entity for record in records for entity in record["expected_entities"]})
    split = {symbol: re.sub(r"([a-z])([A-Z])", r"\1 \2", symbol).replace("_", " ") for symbol in symbols}
    indexes = (
        Index(split, stems),
        Index({symbol: text.partition("::")[2] for symbol, text in split.items()}, whole_words),
    )
    runs = {
        name: {query.id: list(index.search(query.text, 10)) for query in testset.queries}
        for name, index in zip(("paths", "names"), indexes, strict=True)
    }
    yield from halves(replace(testset, name="knowcode"), runs, ["RR", "R@10"])


SMALL = (cupertino, octocode, knowcode)


@pytest.mark.parametrize(
    ("made", "fewest"), [(SMALL, 18), pytest.param((cranfield_collection, *SMALL), 30, marks=pytest.mark.slow)]
)
def test_no_check_finds_anything_in_healthy_comparisons(
    shared_data: Path, capsys: pytest.CaptureFixture[str], made: tuple[Made, ...], fewest: int
) -> None:
    healthy = {name: comparison for build in made for name, comparison in build(shared_data)}
    alarms = {name: found for name, comparison in healthy.items() if (found := comparison.evidence)}
    with capsys.disabled():
        print(f"\nfalse alarms of the evidence checks: {len(alarms)} of {len(healthy)} healthy comparisons")
    assert len(healthy) >= fewest
    assert not alarms
    sides = {id(side): side for comparison in healthy.values() for side in comparison.evaluations}
    for (
        side
    ) in sides.values():  # of published judgments too, most of the results can be unjudged: that is no false alarm
        share = judged_share(side.ranking, 10).mean
        is_low = share is not None and share < 0.5
        assert [finding.check for finding in side.evidence] == ([MOSTLY_UNJUDGED] if is_low else []), side.name
    assert {comparison.verdict.code for comparison in healthy.values()} >= {"better", "worse", "not_significant"}


def test_the_demo_has_no_finding(demo: Path) -> None:
    results = json.loads(next(demo.rglob("results.json")).read_text())
    assert results["evidence"] == []
    assert results["verdict"] != "invalid"
