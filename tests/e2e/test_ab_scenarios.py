"""A/B tests of retrieval configurations as users describe them, on files, through the command and the library.

The statistics are held against SciPy's; latencies come from the log beside a run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cranfield import Answer, Comparison, Hit, Outcome, Run, compare, evaluate, load, parse, report
from cranfield.evaluation.latency import latency_impact
from cranfield.formats.runs.jsonl import write_run
from cranfield.model import CallLog

NDCG = parse("nDCG@10")
TYPES = {"exact_term": 20, "paraphrase": 15, "complex_clinical": 15}
"""Fifty queries of three kinds."""
TESTSET = "testset.yaml"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a test set of fifty queries, each with grades 3, 2, 1 and 0."""
    monkeypatch.chdir(tmp_path)
    kinds = [kind for kind, n in TYPES.items() for _ in range(n)]
    lines = ["cranfield_testset: 1", "name: medical", "queries:"]
    for n, kind in enumerate(kinds):
        grades = ", ".join(f"q{n}-{grade}: {grade}" for grade in (3, 2, 1, 0))
        lines += [
            f"  - id: q{n}",
            f"    text: question {n}",
            f"    strata: {{query_type: {kind}}}",
            f"    judgments: {{{grades}}}",
        ]
    (tmp_path / TESTSET).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run_of(
    name: str,
    lists: Mapping[str, Sequence[str]],
    times: Mapping[str, float] | None = None,
    config: Mapping[str, object] | None = None,
) -> Path:
    """A run as `cranfield run` writes it."""
    answers = {query: Answer(Outcome.ANSWERED, tuple(Hit(doc) for doc in docs)) for query, docs in lists.items()}
    logs = {query: CallLog(time, calls_before=3 + n) for n, (query, time) in enumerate((times or {}).items())}
    path = Path(f"{name}.jsonl")
    write_run(Run(name, answers, depth=10, logs=logs, config=config or {}), path)
    return path


def fused(seed: int, skill: float) -> dict[str, list[str]]:
    """Lists in which what is relevant stands the higher the greater the skill."""
    draw = random.Random(seed)
    lists = {}
    for n in range(sum(TYPES.values())):
        ids = [f"x{place}" for place in range(10)]
        for grade in (1, 2, 3):
            if draw.random() < skill:
                ids.insert(
                    min(draw.randrange(10), draw.randrange(10)) if skill > 0.6 else draw.randrange(10), f"q{n}-{grade}"
                )
        lists[f"q{n}"] = ids[:10]
    return lists


def cranfield(*args: str, code: int = 0) -> str:
    done = subprocess.run(
        ["cranfield", *args],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if not code else done.stdout + done.stderr


def compared(a: Path, b: Path, **options: object) -> Comparison:
    testset = load(TESTSET)
    return compare(evaluate(testset, a), evaluate(testset, b), **options)  # type: ignore[arg-type]


def values(comparison: Comparison) -> tuple[np.ndarray, np.ndarray]:
    return comparison.baseline.values[NDCG], comparison.candidate.values[NDCG]


@pytest.mark.usefixtures("folder")
def test_two_fusions_have_mean_difference_t_and_p_and_the_p_decides() -> None:
    a, b = run_of("rrf", fused(1, 0.5)), run_of("weighted", fused(2, 0.85))
    comparison = compared(a, b, test="t")
    old, new = values(comparison)
    expected = stats.ttest_rel(new, old)
    about = comparison.measures[NDCG]
    assert about.delta == pytest.approx(float((new - old).mean()))
    assert about.tests["t"].statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert about.tests["t"].p_two_sided == pytest.approx(expected.pvalue, rel=1e-9)
    interval = expected.confidence_interval()
    assert (about.ci_low, about.ci_high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert expected.pvalue < 0.05
    assert comparison.verdict.name == "better"
    assert about.tests["wilcoxon"].p_two_sided == pytest.approx(
        stats.wilcoxon(new - old, method="approx").pvalue, abs=5e-3
    )


@pytest.mark.usefixtures("folder")
def test_a_constant_difference_is_significant() -> None:
    """The t of a constant difference is infinite: its p is 0, and not 1 or nothing."""
    found = {f"q{n}": [f"q{n}-3", f"q{n}-2", f"q{n}-1"] for n in range(50)}
    last = {query: ["x", *docs] for query, docs in found.items()}
    comparison = compared(run_of("down-one", last), run_of("on-top", found))
    about = comparison.measures[NDCG]
    assert comparison.verdict.name == "better"
    assert about.tests["t"].p_two_sided == 0
    assert about.tests["t"].note is not None
    # 100,000 sign patterns, of which the observed one and its mirror image alone are as far from zero
    assert about.tests["permutation"].p_two_sided == pytest.approx(2 / 100_000)
    # 2 of 2^50 patterns
    assert about.tests["sign"].p_two_sided == pytest.approx(stats.binomtest(50, 50).pvalue)
    assert compared(Path("on-top.jsonl"), Path("down-one.jsonl"), test="t").verdict.name == "worse"


@pytest.mark.usefixtures("folder")
def test_no_difference_is_none() -> None:
    lists = fused(3, 0.6)
    comparison = compared(run_of("one", lists), run_of("two", lists))
    assert comparison.verdict.name == "no significant difference"
    assert comparison.measures[NDCG].delta == 0
    for name in ("permutation", "t", "sign"):
        assert comparison.measures[NDCG].tests[name].p_two_sided == 1
    (unchanged,) = comparison.verdict.reasons
    assert comparison.evidence[0].sentence.startswith("the runs of one and two are identical (sha256:")
    assert "no query differs" in unchanged


@pytest.mark.usefixtures("folder")
def test_two_systems_of_the_same_skill_are_not_told_apart() -> None:
    comparison = compared(run_of("one", fused(4, 0.6)), run_of("two", fused(5, 0.6)))
    old, new = values(comparison)
    assert stats.ttest_rel(new, old).pvalue > 0.05
    assert comparison.verdict.name == "no significant difference"


@pytest.mark.usefixtures("folder")
def test_pairs_are_made_by_query_and_not_by_place() -> None:
    lists = fused(6, 0.7)
    backwards = dict(reversed(lists.items()))
    comparison = compared(run_of("one", lists), run_of("two", backwards))
    assert comparison.measures[NDCG].n_nonzero == 0


@pytest.mark.usefixtures("folder")
def test_the_difference_is_told_for_each_type_of_query() -> None:
    lists = fused(7, 0.5)
    better = dict(lists) | {f"q{n}": [f"q{n}-3", f"q{n}-2", f"q{n}-1"] for n in range(20)}  # the exact terms alone
    comparison = compared(run_of("plain", lists), run_of("boosted", better))
    old, new = values(comparison)
    rows = {stratum.value: stratum for stratum in comparison.strata}
    assert {value: row.n for value, row in rows.items()} == TYPES
    assert rows["exact_term"].delta == pytest.approx(float((new - old)[:20].mean()))
    assert rows["paraphrase"].delta == rows["complex_clinical"].delta == 0
    interval = stats.ttest_rel(new[:20], old[:20]).confidence_interval()
    assert rows["exact_term"].ci_low == pytest.approx(interval.low, rel=1e-9)


@pytest.mark.usefixtures("folder")
def test_reranking_is_better_and_slower_both_with_intervals() -> None:
    draw = random.Random(8)
    queries = [f"q{n}" for n in range(50)]
    first = {query: 40 + draw.uniform(-10, 10) for query in queries}
    reranked = {query: time + 12 + draw.uniform(-3, 3) for query, time in first.items()}
    a = run_of("fusion", fused(9, 0.5), first)
    b = run_of("fusion-reranked", {f"q{n}": [f"q{n}-3", f"q{n}-2", "x"] for n in range(50)}, reranked)
    comparison = compared(a, b)
    assert comparison.verdict.name == "better"
    impact = latency_impact(comparison.baseline, comparison.candidate)
    assert impact is not None
    assert impact.median is not None
    differences = [reranked[query] - first[query] for query in queries]
    assert impact.median.delta_ms == pytest.approx(float(np.median(differences)))
    low, high = impact.median.ci_ms
    assert low is not None
    assert high is not None
    assert 9 < low <= impact.median.delta_ms <= high < 15
    assert impact.median.verdict.text == "slower"
    said = report(comparison)
    assert impact.sentence in " ".join(said.split())
    assert "difference of p95" in said


@pytest.mark.usefixtures("folder")
def test_kept_answers_and_parallel_calls_are_said_beside_the_times() -> None:
    lists = fused(10, 0.6)
    times = {f"q{n}": 10.0 + n for n in range(50)}
    a, b = run_of("old", lists, times), run_of("new", lists, times, {"concurrency": 8})
    testset = load(TESTSET)
    kept = evaluate(testset, a)
    assert kept.run is not None
    logs = {query: replace(log, cached=True) for query, log in kept.run.logs.items()}
    kept = evaluate(testset, replace(kept.run, logs=logs))
    said = " ".join(report(compare(kept, evaluate(testset, b))).split())
    assert "A old: 50 of 50 answers and their latencies are cached from an earlier collection" in said
    assert "B new: up to 8 calls ran concurrently" in said


@pytest.fixture
def four(folder: Path) -> list[str]:
    """Runs of each component alone and of their fusion."""
    assert folder.is_dir()
    skills = {"bm25": 0.4, "splade": 0.45, "dense": 0.5, "hybrid": 0.95}
    return [str(run_of(name, fused(20 + place, skill))) for place, (name, skill) in enumerate(skills.items())]


def test_four_runs_are_compared_at_once_against_the_first(four: list[str]) -> None:
    payload = json.loads(cranfield("compare", TESTSET, *four, "--format", "json", "--test", "t"))
    assert payload["verdict"] == "one_best"
    assert payload["best"] == ["hybrid"]
    assert payload["baseline"] == "bm25"
    assert [(pair["first"], pair["second"]) for pair in payload["against_baseline"]] == [
        ("bm25", name) for name in ("splade", "dense", "hybrid")
    ]
    assert len(payload["pairs"]) == 6
    assert {row["value"] for row in payload["strata"]} == set(TYPES)
    testset = load(TESTSET)
    columns = [evaluate(testset, path).values[NDCG] for path in four]
    assert payload["omnibus"]["friedman"]["statistic"] == pytest.approx(stats.friedmanchisquare(*columns).statistic)
    for pair in payload["pairs"]:
        names = ["bm25", "splade", "dense", "hybrid"]
        first, second = (columns[names.index(pair[side])] for side in ("first", "second"))
        assert pair["result"]["p_two_sided"] == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-9)


def test_a_comparison_of_many_runs_exits_as_fail_on_requires(four: list[str]) -> None:
    bm25, splade, dense, hybrid = four
    quick = ("--test", "t")
    cranfield("compare", TESTSET, bm25, splade, hybrid, "--fail-on", "better", *quick, code=1)
    cranfield("compare", TESTSET, hybrid, bm25, dense, "--fail-on", "worse", *quick, code=1)
    cranfield(
        "compare", TESTSET, bm25, splade, dense, "--baseline-less", "--fail-on", "not-significant", *quick, code=4
    )
    cranfield("compare", TESTSET, bm25, splade, hybrid, "--fail-on", "worse", *quick)


def test_options_that_do_not_go_with_so_many_runs_are_refused_together(four: list[str]) -> None:
    bm25, splade, dense, _ = four
    said = cranfield("compare", TESTSET, bm25, splade, "--baseline-less", code=2)
    assert "--baseline-less needs three or more runs" in said
    said = cranfield(
        *("compare", TESTSET, bm25, splade, dense, "--baseline-less", "--sensitivity"),
        *("--fail-on", "worse", "--fail-on", "equivalent"),
        code=2,
    )
    assert "--sensitivity needs exactly two runs" in said
    assert "--fail-on better and --fail-on worse need a baseline" in said
    assert "--fail-on equivalent needs exactly two runs" in said


def test_a_report_of_many_is_written_as_one_page(four: list[str]) -> None:
    cranfield("compare", TESTSET, *four, "--html", "many.html", "--contrast", "query_type=exact_term,paraphrase")
    page = Path("many.html").read_text(encoding="utf-8")
    assert "Which of 4 systems is best?" in page
    assert page.count("<svg") >= 6  # pairs, against, ranks and a map, each for page and phone
    assert "exact_term minus paraphrase" in page


def test_sensitivity_is_one_option_away(four: list[str]) -> None:
    text = cranfield("compare", TESTSET, four[0], four[3], "--sensitivity")
    assert "alternative analyses also favour B" in text
    assert text.index("alternative analyses") < text.index("All alternative analyses, those that disagree first")
    payload = json.loads(cranfield("compare", TESTSET, four[0], four[3], "--sensitivity", "--format", "json"))
    assert payload["sensitivity"]["line"] in text.replace("\n", " ")
    assert json.loads(cranfield("compare", TESTSET, four[0], four[3], "--format", "json"))["sensitivity"] is None
