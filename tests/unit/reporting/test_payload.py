from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.errors import InternalError
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import parse_all
from cranfield.model import CallLog, Run, TestSet
from cranfield.project.recipe import compare, evaluate
from cranfield.reporting import payload_of, results_payload, to_json


def test_evaluate_has_the_promised_shape(pair: tuple[Evaluation, Evaluation], testset: TestSet) -> None:
    payload = json.loads(to_json(payload_of(pair)))
    assert payload["schema_version"] == 1
    assert payload["testset"] == {"name": "small", "version": "3", "digest": testset.digest, "n_queries": 8}
    assert payload["convention"] == "trec"
    assert [system["name"] for system in payload["systems"]] == ["plain", "weighted"]
    weighted = payload["systems"][1]
    assert weighted["digest"] == pair[1].run_digest
    assert weighted["pilot"] is False
    assert set(weighted["measures"]) == {"nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10"}
    assert set(weighted["measures"]["AP"]) == {
        *("mean", "median", "std", "ci_low", "ci_high", "n"),
        *("aggregate", "total", "geometric_mean", "weighted_mean"),
    }
    # B finds first relevant results at ranks 1 2 1 3 - 1 - and fails on q8: (1 + 1/2 + 1 + 1/3 + 1) / 8
    assert weighted["measures"]["RR@10"]["mean"] == pytest.approx((1 + 1 / 2 + 1 + 1 / 3 + 1) / 8, abs=1e-15)
    assert weighted["measures"]["RR@10"]["n"] == 8
    assert weighted["n_failed"] == 1
    assert weighted["failures"] == [{"query": "q8", "outcome": "timeout", "reason": "no answer in 30 s"}]
    assert weighted["queries"]["q4"]["RR@10"] == pytest.approx(1 / 3)
    assert weighted["n_duplicates"] == 0
    assert payload["systems"][0]["n_duplicates"] == 1
    assert weighted["outcomes"] == {
        "answered": 6,
        "empty": 1,
        "timeout": 1,
        "nonzero exit": 0,
        "error": 0,
        "unparsable": 0,
        "missing": 0,
    }


def test_other_means_are_there(testset: TestSet) -> None:
    weights = {"q1": 3.0}
    queries = tuple(replace(query, weight=weights.get(query.id, 1.0)) for query in testset.queries)
    found = evaluate(
        replace(testset, queries=queries), {q: list(testset.grades[q])[:1] for q in ("q1",)}, measures=["RR"]
    )
    rr = payload_of([found])["systems"][0]["measures"]["RR"]
    # one of eight queries has the value 1, seven are missing: 1/8; its weight is 3 of 10; 8th root of 1e-5 ** 7
    assert (rr["mean"], rr["total"], rr["weighted_mean"]) == pytest.approx((1 / 8, 1.0, 3 / 10))
    assert rr["geometric_mean"] == pytest.approx(1e-5 ** (7 / 8))


def test_means_by_stratum_are_those_of_their_queries(pair: tuple[Evaluation, Evaluation]) -> None:
    evaluation = pair[1]
    system = payload_of(pair)["systems"][1]
    assert system["strata"]
    for stratum in system["strata"]:
        members = [q.id for q in evaluation.testset.queries if q.strata.get(stratum["key"]) == stratum["value"]]
        values = [system["queries"][q][stratum["measure"]] for q in members]
        assert stratum["n"] == len(values)
        assert stratum["mean"] == pytest.approx(sum(values) / len(values))


def test_an_unscored_value_is_null_with_its_reason(pair: tuple[Evaluation, Evaluation]) -> None:
    queries = payload_of(pair)["systems"][1]["queries"]
    assert queries["q8"]["Judged@10"] is None
    assert queries["q8"]["unscored"] == {"Judged@10": "nothing was returned"}
    assert "unscored" not in queries["q1"]


def test_the_judged_share_is_there_and_null_where_it_has_no_meaning(
    pair: tuple[Evaluation, Evaluation], patterned: Evaluation
) -> None:
    # plain returned 2 judged of 3, 1 of 2, 2 of 2, 0 of 2, 1 of 2, 2 of 2, 0 of 1, 1 of 1
    judged = payload_of(pair)["systems"][0]["judged"]
    assert judged["measure"] == "Judged@10"
    assert judged["mean"] == pytest.approx((2 / 3 + 1 / 2 + 1 + 0 + 1 / 2 + 1 + 0 + 1) / 8)
    assert payload_of([patterned])["systems"][0]["judged"] == {"measure": "Judged@10", "mean": None, "n": 0}


def test_compare_has_the_promised_shape(comparison: Comparison) -> None:
    payload = json.loads(to_json(payload_of(comparison)))
    assert payload["verdict"] == "not_significant"
    assert payload["verdict_sentence"] == comparison.verdict.sentence
    assert payload["primary"] == "nDCG@10"
    assert payload["test"] == "permutation"
    assert (payload["alpha"], payload["margin"], payload["seed"]) == (0.05, 0.05, 0)
    assert payload["limits"] == {"max_failed_share": 0.2, "min_judged_share": None}
    about = payload["comparisons"]["RR@10"]
    assert set(about) >= {
        *("baseline", "candidate", "delta", "ci_low", "ci_high", "interval_method", "effect_size"),
        *("n", "n_nonzero", "mde", "tests"),
    }
    # A: ranks 2 1 1 - 2 1 - 1, B: ranks 1 2 1 3 - 1 - failed
    assert about["baseline"] == pytest.approx((1 / 2 + 1 + 1 + 0 + 1 / 2 + 1 + 0 + 1) / 8)
    assert about["delta"] == pytest.approx((1 / 2 - 1 / 2 + 0 + 1 / 3 - 1 / 2 + 0 + 0 - 1) / 8)
    assert about["n_nonzero"] == 5
    assert set(about["tests"]["wilcoxon"]) >= {"statistic", "p_two_sided", "p_one_sided", "p_adjusted"}
    assert sum(len(ids) for ids in payload["buckets"].values()) == about["n"] == 8
    assert sum(len(ids) for ids in payload["moves"].values()) == 8
    assert payload["buckets"]["failed in candidate"] == ["q8"]
    assert payload["buckets"]["lost"] == ["q5"]
    assert [(s["key"], s["value"], s["n"]) for s in payload["strata"]] == [("class", "even", 4), ("class", "odd", 4)]
    assert "disagreements" in payload


def test_results_hold_every_query_with_both_answers(comparison: Comparison) -> None:
    queries = results_payload(comparison)["queries"]
    assert list(queries) == [f"q{n}" for n in range(1, 9)]
    first = queries["q1"]
    assert first["text"] == "json dumps"
    assert first["strata"] == {"class": "odd"}
    assert (first["bucket"], first["move"]) == ("improved", "moved to rank 1")
    assert [side["system"] for side in first["sides"]] == ["plain", "weighted"]
    assert [side["first_relevant_rank"] for side in first["sides"]] == [2, 1]
    assert first["sides"][0]["hits"] == [
        {"rank": 1, "id": "x", "title": "About x", "grade": None, "item": None, "credited": False},
        {"rank": 2, "id": "q1-a", "title": "About q1-a", "grade": 2, "item": "q1-a", "credited": True},
        {"rank": 3, "id": "q1-b", "title": "About q1-b", "grade": 1, "item": "q1-b", "credited": True},
    ]
    assert [side["missed"] for side in first["sides"]] == [[], []]
    failed = queries["q8"]["sides"][1]
    assert failed["missed"] == ["q8-a", "q8-b"]  # best first: grades 2 and 1
    assert (failed["outcome"], failed["reason"], failed["hits"]) == ("timeout", "no answer in 30 s", [])
    assert queries["q5"]["sides"][1]["outcome"] == "empty"
    assert queries["q6"]["sides"][0]["n_duplicates"] == 1


def test_a_result_that_is_known_not_to_be_relevant_has_grade_0(patterned: Evaluation) -> None:
    hits = results_payload([patterned])["queries"]["p1"]["sides"][0]["hits"]
    assert [(hit["grade"], hit["item"], hit["credited"]) for hit in hits] == [
        (1, "^doc://a", True),
        (0, "^doc://a", False),
        (0, None, False),
    ]


def test_a_query_left_out_of_one_side_says_so(testset: TestSet, runs: tuple[Run, Run]) -> None:
    some = {query_id: answer for query_id, answer in runs[1].answers.items() if query_id != "q3"}
    pair = evaluate(testset, runs[0]), evaluate(testset, replace(runs[1], answers=some), missing="skip")
    payload = results_payload(compare(*pair))
    assert payload["queries"]["q3"]["sides"][1] == {"system": "weighted", "outcome": None}
    assert payload["unpaired"] == {"q3": "weighted does not answer it"}
    assert "bucket" not in payload["queries"]["q3"]


def test_no_time_and_no_raw_output_enters(comparison: Comparison) -> None:
    text = to_json(results_payload(comparison))
    assert "boom" not in text
    assert "latency" not in text
    assert not re.search(r"(?<![\d.])30000", text)


def test_the_same_collected_afresh_gives_the_same_bytes(
    comparison: Comparison, testset: TestSet, runs: tuple[Run, Run]
) -> None:
    again = [
        replace(
            run,
            answers=dict(reversed(run.answers.items())),
            logs={query_id: CallLog(log.latency_ms * 7, "other output") for query_id, log in run.logs.items()},
        )
        for run in runs
    ]
    second = compare(*(evaluate(testset, run) for run in again), margin=0.05, limits=comparison.limits)
    assert to_json(results_payload(second)) == to_json(results_payload(comparison))


def test_another_process_in_another_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from cranfield import Query, TestSet, compare, evaluate
        from cranfield.reporting import results_payload, to_json
        queries = tuple(Query(f"q{n}", "text", {"kind": "ab"[n % 2], "size": "s"}) for n in range(12))
        truth = TestSet("t", queries, {query.id: {"d1": 1, "d2": 2} for query in queries})
        a = evaluate(truth, {query.id: ["x", "d1"] for query in queries}, name="a")
        b = evaluate(truth, {query.id: ["d2", "x", "d1"][n % 3:] for n, query in enumerate(queries)}, name="b")
        sys.stdout.write(to_json(results_payload(compare(a, b))))
    """
    found = set()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1
    assert json.loads(found.pop())["comparisons"]["nDCG@10"]["n"] == 12


def test_the_bytes_differ_when_a_result_does(testset: TestSet, runs: tuple[Run, Run], comparison: Comparison) -> None:
    answers = dict(runs[1].answers) | {"q1": runs[1].answers["q2"]}
    other = compare(evaluate(testset, runs[0]), evaluate(testset, replace(runs[1], answers=answers)))
    assert to_json(results_payload(other)) != to_json(results_payload(comparison))


def test_a_number_that_is_no_number_is_refused() -> None:
    with pytest.raises(InternalError, match="cannot represent"):
        to_json({"value": float("nan")})


def test_nothing_a_terminal_would_obey_is_printed(evil: Comparison) -> None:
    text = to_json(results_payload(evil))
    text.encode("utf-8")
    assert not [character for character in text if character != "\n" and not character.isprintable()]
    hits = [h["id"] for q in json.loads(text)["queries"].values() for side in q["sides"] for h in side["hits"]]
    assert "half \udc80 of it" in hits
    assert "\x1b[31mred\u202e" in hits


def test_the_versions_that_made_it_are_named(comparison: Comparison) -> None:
    import numpy as np
    import scipy

    import cranfield

    versions = payload_of(comparison)["provenance"]["versions"]
    assert versions["cranfield"] == cranfield.__version__
    assert versions["numpy"] == np.__version__
    assert versions["scipy"] == scipy.__version__


def test_a_system_without_a_value_has_nulls(testset: TestSet) -> None:
    nothing = evaluate(testset, {query.id: [] for query in testset.queries}, measures=["Judged@10", "RR"])
    measures = payload_of([nothing])["systems"][0]["measures"]
    assert measures["Judged@10"] == {
        "aggregate": "mean",
        "mean": None,
        "median": None,
        "std": None,
        "ci_low": None,
        "ci_high": None,
        "n": 0,
        "total": None,
        "geometric_mean": None,
        "weighted_mean": None,
    }
    assert measures[str(parse_all(["RR"])[0])]["mean"] == 0.0
