"""A class of queries on the page, in the REST API and in the metrics: each with its own measures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.workbench.records import with_mean, with_scores
from tests.unit.workbench.service.metrics.observations import observed, written

from cranfield import Query, TestSet, evaluate
from cranfield.evaluation.result import result_of, without_queries
from cranfield.evaluation.values import Evaluation
from cranfield.model import Answer, Hit, Negative, Outcome, Run
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Chart, TonedCell
from cranfield.workbench.server.summary import headline, summary_sections
from cranfield.workbench.server.tables import state_cell
from cranfield.workbench.server.v1.results import evaluation_response
from cranfield.workbench.service.metrics.observed import from_results
from cranfield.workbench.service.metrics.scrape import measured
from cranfield.workbench.service.scoring import facts_of, record_of
from cranfield.workbench.service.values import EvaluationInfo

KINDS = TestSet(
    "kinds",
    (
        *(Query(f"a{i}", query_class="canonical", strata={"class": "A"}) for i in range(3)),
        *(Query(f"n{i}", negative=Negative(), strata={"class": "N"}) for i in range(4)),
    ),
    {f"a{i}": {"good": 1} for i in range(3)},
)
LISTS = {"a0": ["good"], "a1": ["x", "good"], "a2": ["good"], "n0": [], "n1": [], "n2": [], "n3": ["x"]}
SILENCE = {"mean": 0.75, "n": 4}
"""Nothing was returned for three of four."""


@pytest.fixture
def scored() -> Evaluation:
    answers = {q: Answer(Outcome.ANSWERED if ids else Outcome.EMPTY, tuple(map(Hit, ids))) for q, ids in LISTS.items()}
    return evaluate(KINDS, Run("new", answers), measures=["nDCG@10"])


@pytest.fixture
def info(bench, scored: Evaluation) -> EvaluationInfo:
    stored = bench.service.evaluations.get(bench.ids["second"])
    return replace(stored, record=without_queries(record_of(scored)), facts=facts_of(scored))


def test_queries_where_nothing_should_be_found_have_their_measure_in_the_api(info: EvaluationInfo) -> None:
    found = evaluation_response(info)
    [system] = found.result["systems"]
    strata = {each["value"]: each["measures"] for each in system["by_stratum"] if each["key"] == "class"}
    quiet = strata["N"]
    assert {name: quiet["Silence"][name] for name in SILENCE} == SILENCE
    assert (quiet["nDCG@10"]["mean"], quiet["nDCG@10"]["n"]) == (None, 0)
    assert found.per_query_type["N"] == {"ndcg_at_10": None, "silence": 0.75}
    assert strata["A"]["RR@10"]["mean"] == found.per_query_type["A"]["mrr_at_10"] == pytest.approx(5 / 6)
    assert "Silence" not in strata["A"]
    assert list(system["measures"]) == ["nDCG@10"]


def test_without_a_value_of_the_primary_measure_nothing_is_valid(info: EvaluationInfo) -> None:
    nothing = replace(info, record=with_mean(info.record, None))
    assert (evaluation_response(info).state, evaluation_response(nothing).state) == ("valid", "no_value")
    assert state_cell(nothing) == TonedCell("no value", "open")
    assert state_cell(info) == TonedCell("valid", "")
    block = headline(nothing)
    assert (block.name, block.sentence) == ("no value", "No query has a value of nDCG@10 yet.")
    without = headline(replace(nothing, record=with_scores(info.record, measures={})))
    assert without.sentence == "No query has a value yet."
    assert headline(replace(nothing, void=("every query failed",))).reasons == ("every query failed",)


def test_they_are_in_the_heat_map_and_the_tables_of_the_page(info: EvaluationInfo, scored: Evaluation) -> None:
    [strata] = [
        section for section in summary_sections(info, to_jsonable(record_of(scored))) if section.name == "strata"
    ]
    [drawn] = [block for block in strata.blocks if isinstance(block, Chart)]
    assert "N (4)" in str(drawn.spec)
    assert "N (4), Silence: 0.75" in str(drawn.spec)
    table = drawn.table
    [row] = [row for row in table.rows if row[0] == "N"]
    values = dict(zip((column.title for column in table.columns), row, strict=True))
    assert (values["n"], values["Silence"], values["nDCG@10"]) == (4, 0.75, None)


def test_they_are_a_series_of_the_metrics(info: EvaluationInfo, scored: Evaluation) -> None:
    from_server = written(observed(measured(info)))
    [file] = from_results(to_jsonable(result_of([scored], with_answers=True)), 1_000.0)
    for lines in (from_server, written(file)):
        [line] = [line for line in lines if line.startswith('cranfield_measure{measure="Silence",stratum="class=N"')]
        assert line.endswith(" 0.75")
        [n] = [
            line for line in lines if line.startswith('cranfield_measure_queries{measure="Silence",stratum="class=N"')
        ]
        assert n.endswith(" 4.0")
