"""A pytest plugin: `ir_measures` is the drop-in module, with the names of the peer's insides that its own tests reach for.

The providers are the libraries that the peer asks; here one module computes what each of them does.
"""

import sys
import unittest
from functools import partial
from types import ModuleType, SimpleNamespace

from cranfield.compat import ir_measures

PROVIDERS = "pytrec_eval judged msmarco cwl_eval compat accuracy trectools pyndeval DefaultPipeline"


class Provider:
    """One of the peer's libraries: what it is asked for, the drop-in module computes."""

    iter_calc = staticmethod(ir_measures.iter_calc)
    calc_aggregate = staticmethod(ir_measures.calc_aggregate)
    evaluator = staticmethod(ir_measures.evaluator)

    def supports(self, measure: object) -> bool:
        """Whether it computes a measure: of those that are known, all."""
        return isinstance(measure, ir_measures.Measure)


class AskedDirectly(Provider):
    """A library whose own tests pass over what ir_measures would ask it for: each measure stands for another."""

    def __init__(self, meant, decimals=20):
        self.meant, self.decimals = meant, decimals

    def iter_calc(self, measures, qrels, run):
        for measure in measures:
            for found in ir_measures.iter_calc([self.meant(measure)], qrels, run):
                yield ir_measures.Metric(found.query_id, measure, round(found.value, self.decimals))

    def calc_aggregate(self, measures, qrels, run):
        values = {measure: [found.value for found in self.iter_calc([measure], qrels, run)] for measure in measures}
        return {measure: sum(found) / len(found) for measure, found in values.items()}

    def evaluator(self, measures, qrels):
        return SimpleNamespace(calc_aggregate=partial(self.calc_aggregate, measures, qrels))


def by_gdeval(measure):
    """gdeval.pl has no other gains than 2^g - 1, whatever the measure says."""
    return measure(dcg="exp-log2") if measure.NAME == "nDCG" else measure


def by_ranx(measure):
    """With ranx, a measure of a set may have a cutoff."""
    is_cut_set = measure.NAME in {"SetP", "SetR"} and measure["cutoff"]
    return getattr(ir_measures, measure.NAME.removeprefix("Set"))(**measure.params) if is_cut_set else measure


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
module.gdeval, module.ranx = AskedDirectly(by_gdeval, decimals=5), AskedDirectly(by_ranx)
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
