"""A pytest plugin: `ir_measures` is the drop-in module, with the names of the peer's insides that its own tests reach for.

The providers are the libraries that the peer asks; here one module computes what each of them does.
"""

import sys
import unittest
from types import ModuleType, SimpleNamespace

from cranfield.compat import ir_measures

PROVIDERS = "pytrec_eval gdeval judged msmarco cwl_eval compat accuracy trectools ranx pyndeval DefaultPipeline"


class Provider:
    """One of the peer's libraries."""

    iter_calc = staticmethod(ir_measures.iter_calc)
    calc_aggregate = staticmethod(ir_measures.calc_aggregate)
    evaluator = staticmethod(ir_measures.evaluator)

    def supports(self, measure: object) -> bool:
        """Whether it computes a measure: of those that are known, all."""
        return isinstance(measure, ir_measures.Measure)


class MeasureTest(unittest.TestCase):
    """`tests/base.py` of the peer, which its package lacks: values are equal to 1e-5."""

    def assertMetrics(self, found, expected, not_equal=False):
        found, expected = list(found), list(expected)
        assert [each[:2] for each in found] == [each[:2] for each in expected]
        values = [(ours.value, theirs.value) for ours, theirs in zip(found, expected, strict=True)]
        assert all(abs(ours - theirs) <= 1e-05 for ours, theirs in values) == (not not_equal), values


def cwl_metric(query_id, measure, value, *_):
    """The value alone: the drop-in module gives no totals of gain and cost."""
    return ir_measures.Metric(query_id, measure, value)


module = ModuleType("ir_measures")
module.__dict__.update({name: getattr(ir_measures, name) for name in dir(ir_measures)})
module.__dict__.update(dict.fromkeys(PROVIDERS.split(), Provider()), CwlMetric=cwl_metric)
module.__all__ = [*ir_measures.__all__, "Metric"]
module.providers = SimpleNamespace(PytrecEvalProvider=Provider, registry={})
module.measures = ModuleType("ir_measures.measures")
module.measures.__dict__.update({name: getattr(ir_measures, name) for name in ir_measures.measure_names()})
accuracy = ModuleType("ir_measures.measures.accuracy")
accuracy.Accuracy = ir_measures.Accuracy
base = ModuleType("tests.base")
base.BaseMeasureTest = MeasureTest
sys.modules |= {
    "ir_measures": module,
    "ir_measures.measures": module.measures,
    "ir_measures.measures.accuracy": accuracy,
    "tests.base": base,
}
