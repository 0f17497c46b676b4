from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cranfield.app.evaluate import compare, evaluate
from cranfield.base.errors import InternalError
from cranfield.evaluation.result import result_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.measures import parse_all
from cranfield.model import CallLog, Run, TestSet
from cranfield.model.results import to_json, to_jsonable


def test_evaluate_has_the_promised_shape(pair: tuple[Evaluation, Evaluation], testset: TestSet) -> None:
    payload = json.loads(to_json(result_of(pair)))
    assert payload["schema_version"] == 1
    named = {name: payload["testset"][name] for name in ("name", "version", "digest", "n_queries")}
    assert named == {"name": "small", "version": "3", "digest": testset.digest, "n_queries": 8}
    assert payload["convention"] == "trec"
    assert [system["name"] for system in payload["systems"]] == ["plain", "weighted"]
    weighted = payload["systems"][1]
    assert weighted["digest"] == pair[1].run_digest
    assert weighted["pilot"] is False
    assert set(weighted["measures"]) == {"nDCG@10", "RR@10", "AP", "P@5", "R@10", "Success@5", "Judged@10"}
    assert set(weighted["measures"]["AP"]) == {
        "mean",
        "median",
        "std",
        "ci_low",
        "ci_high",
        "n",
        "ci_level",
        "aggregate",
        "total",
        "geometric_mean",
        "weighted_mean",
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
    rr = to_jsonable(result_of([found]))["systems"][0]["measures"]["RR"]
    # one of eight queries has the value 1, seven are missing: 1/8; its weight is 3 of 10; 8th root of 1e-5 ** 7
    assert (rr["mean"], rr["total"], rr["weighted_mean"]) == pytest.approx((1 / 8, 1.0, 3 / 10))
    assert rr["geometric_mean"] == pytest.approx(1e-5 ** (7 / 8))


def test_means_by_stratum_are_those_of_their_queries(pair: tuple[Evaluation, Evaluation]) -> None:
    evaluation = pair[1]
    system = to_jsonable(result_of(pair))["systems"][1]
    assert system["by_stratum"]
    for stratum in system["by_stratum"]:
        members = [q.id for q in evaluation.testset.queries if q.strata.get(stratum["key"]) == stratum["value"]]
        values = [system["queries"][q]["nDCG@10"] for q in members]
        assert stratum["measures"]["nDCG@10"]["n"] == len(values)
        assert stratum["measures"]["nDCG@10"]["mean"] == pytest.approx(sum(values) / len(values))


def test_an_unscored_value_is_null_with_its_reason(pair: tuple[Evaluation, Evaluation]) -> None:
    system = to_jsonable(result_of(pair))["systems"][1]
    assert system["queries"]["q8"]["Judged@10"] is None
    assert system["unscored"]["q8"] == {"Judged@10": "nothing was returned"}
    assert "q1" not in system["unscored"]


def test_the_judged_share_is_there_and_null_where_it_has_no_meaning(
    pair: tuple[Evaluation, Evaluation], patterned: Evaluation
) -> None:
    # plain returned 2 judged of 3, 1 of 2, 2 of 2, 0 of 2, 1 of 2, 2 of 2, 0 of 1, 1 of 1
    judged = to_jsonable(result_of(pair))["systems"][0]["judged"]
    assert judged["measure"] == "Judged@10"
    assert judged["mean"] == pytest.approx((2 / 3 + 1 / 2 + 1 + 0 + 1 / 2 + 1 + 0 + 1) / 8)
    nothing = to_jsonable(result_of([patterned]))["systems"][0]["judged"]
    assert (nothing["measure"], nothing["mean"], nothing["n"]) == ("Judged@10", None, 0)
    assert nothing["why"] == "it is judged by a rule, so no result is unjudged"


def test_compare_has_the_promised_shape(comparison: Comparison) -> None:
    payload = json.loads(to_json(result_of(comparison)))
    assert payload["verdict"] == "not_significant"
    assert payload["verdict_sentence"] == comparison.verdict.sentence
    assert payload["primary"] == "nDCG@10"
    assert payload["test"] == "permutation"
    assert (payload["alpha"], payload["margin"], payload["seed"]) == (0.05, 0.05, 0)
    assert payload["limits"] == {"max_failed_share": 0.2, "min_judged_share": None, "evidence": {}}
    about = payload["comparisons"]["RR@10"]
    assert set(about) >= {
        "baseline",
        "candidate",
        "delta",
        "ci_low",
        "ci_high",
        "interval_method",
        "effect_size",
        "n",
        "n_nonzero",
        "mde",
        "tests",
    }
    # A: ranks 2 1 1 - 2 1 - 1, B: ranks 1 2 1 3 - 1 - failed
    assert about["baseline"]["mean"] == pytest.approx((1 / 2 + 1 + 1 + 0 + 1 / 2 + 1 + 0 + 1) / 8)
    assert about["delta"] == pytest.approx((1 / 2 - 1 / 2 + 0 + 1 / 3 - 1 / 2 + 0 + 0 - 1) / 8)
    assert about["n_nonzero"] == 5
    assert set(about["tests"]["wilcoxon"]) >= {"statistic", "p_two_sided", "p_one_sided", "p_adjusted"}
    assert sum(len(ids) for ids in payload["buckets"].values()) == about["n"] == 8
    assert sum(len(ids) for ids in payload["moves"].values()) == 8
    assert payload["buckets"]["failed in candidate"] == ["q8"]
    assert payload["buckets"]["lost"] == ["q5"]
    strata = [(s["key"], s["value"], s["measures"]["nDCG@10"]["n"]) for s in payload["by_stratum"]]
    assert strata == [("class", "even", 4), ("class", "odd", 4)]
    assert "disagreements" in payload


def test_results_hold_every_query_with_both_answers(comparison: Comparison) -> None:
    queries = to_jsonable(result_of(comparison, with_answers=True))["queries"]
    assert list(queries) == [f"q{n}" for n in range(1, 9)]
    first = queries["q1"]
    assert first["text"] == "json dumps"
    assert first["strata"] == {"class": "odd"}
    assert (first["bucket"], first["move"]) == ("improved", "moved to rank 1")
    assert [side["system"] for side in first["sides"]] == ["plain", "weighted"]
    assert [side["first_relevant_rank"] for side in first["sides"]] == [2, 1]
    told = ("rank", "id", "title", "state", "grade", "item", "credited")
    assert [tuple(hit[name] for name in told) for hit in first["sides"][0]["hits"]] == [
        (1, "x", "About x", "unjudged", None, None, False),
        (2, "q1-a", "About q1-a", "judged", 2, "q1-a", True),
        (3, "q1-b", "About q1-b", "judged", 1, "q1-b", True),
    ]
    assert [side["missed"] for side in first["sides"]] == [[], []]
    failed = queries["q8"]["sides"][1]
    assert failed["missed"] == ["q8-a", "q8-b"]  # best first: grades 2 and 1
    assert (failed["outcome"], failed["reason"], failed["hits"]) == ("timeout", "no answer in 30 s", [])
    assert queries["q5"]["sides"][1]["outcome"] == "empty"
    assert queries["q6"]["sides"][0]["n_duplicates"] == 1


def test_a_result_that_is_known_not_to_be_relevant_has_grade_0(patterned: Evaluation) -> None:
    hits = to_jsonable(result_of([patterned], with_answers=True))["queries"]["p1"]["sides"][0]["hits"]
    assert [(hit["grade"], hit["item"], hit["credited"]) for hit in hits] == [
        (1, "^doc://a", True),
        (0, "^doc://a", False),
        (0, None, False),
    ]


def test_a_query_left_out_of_one_side_says_so(testset: TestSet, runs: tuple[Run, Run]) -> None:
    some = {query_id: answer for query_id, answer in runs[1].answers.items() if query_id != "q3"}
    pair = evaluate(testset, runs[0]), evaluate(testset, replace(runs[1], answers=some), missing="skip")
    payload = to_jsonable(result_of(compare(*pair), with_answers=True))
    side = payload["queries"]["q3"]["sides"][1]
    assert (side["system"], side["outcome"], side["hits"]) == ("weighted", None, [])
    assert payload["unpaired"] == {"q3": "weighted has no answer for it"}
    assert payload["queries"]["q3"]["bucket"] == ""


def test_no_time_and_no_raw_output_enters(comparison: Comparison) -> None:
    text = to_json(result_of(comparison, with_answers=True))
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
    second = compare(*(evaluate(testset, run) for run in again), margin=0.05, limits=comparison.options.limits)
    assert to_json(result_of(second, with_answers=True)) == to_json(result_of(comparison, with_answers=True))


def test_another_process_in_another_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from cranfield import Query, TestSet, compare, evaluate
        from cranfield.evaluation.result import result_of
        from cranfield.model.results import to_json
        queries = tuple(Query(f"q{n}", "text", {"kind": "ab"[n % 2], "size": "s"}) for n in range(12))
        truth = TestSet("t", queries, {query.id: {"d1": 1, "d2": 2} for query in queries})
        a = evaluate(truth, {query.id: ["x", "d1"] for query in queries}, name="a")
        b = evaluate(truth, {query.id: ["d2", "x", "d1"][n % 3:] for n, query in enumerate(queries)}, name="b")
        sys.stdout.write(to_json(result_of(compare(a, b), with_answers=True)))
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
    assert to_json(result_of(other, with_answers=True)) != to_json(result_of(comparison, with_answers=True))


def test_a_number_that_is_no_number_is_refused() -> None:
    with pytest.raises(InternalError, match="cannot represent"):
        to_json({"value": float("nan")})


def test_nothing_a_terminal_would_obey_is_printed(evil: Comparison) -> None:
    text = to_json(result_of(evil, with_answers=True))
    text.encode("utf-8")
    assert not [character for character in text if character != "\n" and not character.isprintable()]
    hits = [h["id"] for q in json.loads(text)["queries"].values() for side in q["sides"] for h in side["hits"]]
    assert "half \udc80 of it" in hits
    assert "\x1b[31mred\u202e" in hits


def test_the_versions_that_made_it_are_named(comparison: Comparison) -> None:
    import numpy as np
    import scipy

    import cranfield

    versions = to_jsonable(result_of(comparison))["versions"]
    assert versions["cranfield"] == cranfield.__version__
    assert versions["numpy"] == np.__version__
    assert versions["scipy"] == scipy.__version__


def test_a_system_without_a_value_has_nulls(testset: TestSet) -> None:
    nothing = evaluate(testset, {query.id: [] for query in testset.queries}, measures=["Judged@10", "RR"])
    measures = to_jsonable(result_of([nothing]))["systems"][0]["measures"]
    assert measures["Judged@10"] == {
        "ci_level": 0.95,
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
