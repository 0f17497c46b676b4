"""Turn a published pair of result lists into two runs and a pattern test set.

The input is JSON of the shape that cupertino, an Apple-documentation search, publishes with its version audits:

    {"per_query": [{"query": ..., "pattern": REGEX, "brew": {"top10": [URI, ...]}, "new": {"top10": [...]}}, ...]}

Truth is a regular expression on the URI, and each query's pattern becomes one expected item with grade 1. Then:

    python examples/paired_uri_lists.py versiondiff.json out/
    cranfield compare out/testset.yaml out/brew.jsonl out/new.jsonl --convention cupertino \\
        -m RR@10 -m P@1 -m P@5 -m nDCG@10 --primary RR@10 --test wilcoxon

scores it as its authors do: the order given, every match credited, ideal DCG fixed at 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cranfield import Answer, Hit, Outcome, Pattern, Query, Run, TestSet
from cranfield.formats.runs.jsonl import write_run
from cranfield.formats.testsets.native import write_testset_yaml

SYSTEMS = ("brew", "new")


def convert(source: Path, out: Path) -> list[Path]:
    """Write `testset.yaml`, `brew.jsonl` and `new.jsonl` into `out`; return their paths."""
    records = json.loads(source.read_text(encoding="utf-8"))["per_query"]
    query_ids = [f"q{number:02d}" for number in range(1, len(records) + 1)]
    testset = TestSet(
        name="versiondiff",
        version="1",
        queries=tuple(Query(q, record["query"]) for q, record in zip(query_ids, records, strict=True)),
        targets={q: (Pattern(record["pattern"]),) for q, record in zip(query_ids, records, strict=True)},
    )
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / "testset.yaml"]
    write_testset_yaml(testset, paths[0])
    for system in SYSTEMS:
        lists = {q: record[system]["top10"] for q, record in zip(query_ids, records, strict=True)}
        answers = {
            q: Answer(Outcome.ANSWERED if uris else Outcome.EMPTY, tuple(Hit(uri) for uri in uris))
            for q, uris in lists.items()
        }
        paths.append(out / f"{system}.jsonl")
        write_run(Run(system, answers, depth=10, testset_digest=testset.digest), paths[-1])
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/paired_uri_lists.py SOURCE.json OUT_DIR")
    for path in convert(Path(sys.argv[1]), Path(sys.argv[2])):
        print(f"wrote {path}")
