"""Measures for PyTerrier, which hands them to ir_measures. tests/frameworks has its `Experiment`."""

import ir_measures
import pandas as pd
import pytest

from cranfield.base.errors import UsageError
from cranfield.compat.pyterrier import measure

QRELS = pd.DataFrame({"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "c"], "relevance": [2, 1, 1]})
RUN = pd.DataFrame({"query_id": ["1", "1", "1"], "doc_id": ["x", "a", "b"], "score": [3.0, 2.0, 1.0], "query": "text"})


@pytest.mark.parametrize("spelling", ["nDCG@10", "RR@10", "AP", "P@2", "R@2", "Judged@10"])
def test_values_are_those_of_ir_measures_own(spelling, caplog):
    theirs = ir_measures.iter_calc([ir_measures.parse_measure(spelling)], QRELS, RUN)
    found = [*ir_measures.iter_calc([measure(spelling)], QRELS, RUN)]
    expected = {each.query_id: each.value for each in theirs}
    assert {each.query_id: each.value for each in found} == pytest.approx(expected)
    assert {str(each.measure) for each in found} == {spelling}
    assert caplog.text == ""


def test_a_frame_without_rows_leaves_every_query_at_zero():
    found = [*ir_measures.iter_calc([measure("RBP(p=0.5)")], QRELS, RUN[:0])]
    assert {(each.query_id, each.value) for each in found} == {("1", 0.0), ("2", 0.0)}


def test_a_measure_that_is_none_is_refused():
    with pytest.raises(UsageError, match="unknown measure"):
        measure("nDGC@10")
