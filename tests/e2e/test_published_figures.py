"""A published comparison of two real systems comes out as it was published, where it was right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def cranfield(*args):
    done = subprocess.run(
        [sys.executable, "-m", "cranfield", *map(str, args)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pair(tmp_path_factory, shared_data):
    out = tmp_path_factory.mktemp("pair")
    script = ROOT / "examples" / "paired_uri_lists.py"
    subprocess.run([sys.executable, script, shared_data / "cupertino" / "versiondiff.json", out], check=True)
    return out


@pytest.fixture(scope="module")
def comparison(pair):
    measures = [option for measure in ("RR@10", "P@1", "P@5", "nDCG@10") for option in ("-m", measure)]
    files = [pair / name for name in ("testset.yaml", "brew.jsonl", "new.jsonl")]
    options = ["--convention", "cupertino", "--primary", "RR@10", "--test", "wilcoxon", "--format", "json"]
    return json.loads(cranfield("compare", *files, *measures, *options))


@pytest.mark.parametrize(
    ("measure", "baseline", "candidate"),
    [("RR@10", 0.7967, 0.9467), ("P@1", 0.68, 0.92), ("P@5", 0.276, 0.328), ("nDCG@10", 1.2562, 1.7385)],
)
def test_means(comparison, measure, baseline, candidate):
    row = comparison["comparisons"][measure]
    assert (round(row["baseline"], 4), round(row["candidate"], 4)) == (baseline, candidate)
    assert row["n"] == 50


def test_wilcoxon(comparison):
    row = comparison["comparisons"]["RR@10"]
    test = row["tests"]["wilcoxon"]
    assert row["n_nonzero"] == 14
    assert test["statistic"] == 1.5
    assert round(test["p_two_sided"], 6) == 0.001147
    assert round(test["p_one_sided"], 6) == 0.000574
    assert round(test["extra"]["p_exact_two_sided"], 6) == 0.000366


def test_mcnemar_finds_twelve_and_none_not_the_thirteen_published(comparison):
    test = comparison["comparisons"]["P@1"]["tests"]["mcnemar"]
    assert (test["extra"]["candidate_only"], test["extra"]["baseline_only"]) == (12, 0)
    # exact: 2 * 0.5**12
    assert test["p_two_sided"] == pytest.approx(2 * 0.5**12)
    assert comparison["rank_one"]["extra"]["candidate_only"] == 12


def test_the_verdict_and_both_partitions_cover_every_query(comparison):
    assert comparison["verdict"] == "better"
    for partition in ("buckets", "moves"):
        placed = [query for queries in comparison[partition].values() for query in queries]
        assert sorted(placed) == sorted(set(placed))
        assert len(placed) == 50
    # The audit's own buckets hold 49: `Combine Publisher`, which rose from rank 3 to 2, fell through.
    assert len(comparison["moves"]["moved to rank 1"]) == 12


def test_under_the_default_convention_a_pattern_is_earned_once(pair):
    files = [pair / name for name in ("testset.yaml", "brew.jsonl", "new.jsonl")]
    result = json.loads(cranfield("compare", *files, "--format", "json"))
    row = result["comparisons"]["nDCG@10"]
    assert row["candidate"] <= 1
    assert "Judged@10" not in result["comparisons"]
